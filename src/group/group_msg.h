/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages between members of a group: one message is one SOCK_SEQPACKET record. Numbers are in
 * network order.
 *
 *	 0       1       2       3
 *	+-------+-------+-------+-------+
 *	| 'V'   | 'b'   | version       |
 *	| type  | lanes | slot          |
 *	| first         | count         |
 *	| held          | lane  | 0     |
 *	| family| 0     | port          |  eight lanes, unused ones zero
 *	|  ...                          |
 *	| digest (8 bytes)              |
 *	+-------+-------+-------+-------+
 *	| flow (48 bytes), packet ...   |  FORWARD only
 *
 *	HELLO    joiner: who are you?
 *	INFO     member: slot, lanes, how many sockets it holds of each, and the digest of what it holds
 *	FETCH    joiner: give me what you hold
 *	FDS      member: `count` sockets of a lane, of the indices from `first` on, as descriptors; the
 *	         last record has none
 *	ADOPT    joiner, while it holds the lock: hold these; as FDS
 *	ACK      member: that was the last of ADOPT
 *	STAT     tool: your counters, please
 *	STAT_FD  member: slot, and a descriptor if it has one
 *	FORWARD  member: a packet that came to me and is yours; `first` says how often it was passed on before
 *	SHARE    joiner, tool: the memory that you share, please
 *	SHARE_FD member: slot, and a descriptor if it has one
 *	WATCH    member: while I live this connection does
 *	FAULT    tool: a command for the fault engine, as text behind the header
 *	FAULTED  member: what is wrong with it, as text; empty: nothing
 *	QPS      tool: what your queue pairs do, please, from where `digest` says on
 *	QPS_FD   member: slot, and a descriptor unless it cannot answer now
 *	FREEZE   tool: a command about time that stands still, as text; FAULTED answers it
 *	MOVE     tool: likewise, to go to the network namespace of the descriptor that comes with it
 *	RING     member of `slot`: a ring from me to you, as two descriptors; while we both want it this connection lives
 *
 * Private to src/group.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/pkt.h"
#include "group/group.h"

enum group_msg_type {
	GROUP_HELLO = 1,
	GROUP_INFO,
	GROUP_FETCH,
	GROUP_FDS,
	GROUP_ADOPT,
	GROUP_ACK,
	GROUP_STAT,
	GROUP_STAT_FD,
	GROUP_FORWARD,
	GROUP_SHARE,
	GROUP_SHARE_FD,
	GROUP_WATCH,
	GROUP_RING,
	GROUP_FAULT,
	GROUP_FAULTED,
	GROUP_QPS,
	GROUP_QPS_FD,
	GROUP_FREEZE,
	GROUP_MOVE,
	GROUP_MSG_TYPES_END
};

enum {
	GROUP_MSG_VERSION = 6,
	GROUP_MSG_HEADER_LEN = 56,
	GROUP_MSG_FLOW_LEN = 48,
	GROUP_MSG_BYTES_MAX = GROUP_MSG_HEADER_LEN + GROUP_MSG_FLOW_LEN + GROUP_FORWARD_BYTES_MAX,
	GROUP_MSG_TEXT_MAX = 1024, /* of FAULT, FREEZE, MOVE and FAULTED */
	GROUP_MSG_FDS_MAX = 252    /* the kernel passes 253 at once */
};

struct group_lane {
	uint8_t family; /* enum udp_family */
	uint16_t port;
	/* Zero: every address. Not in messages: the members of a group have the same, in the same order. */
	struct group_address at;
};

struct group_msg {
	enum group_msg_type type;
	uint8_t lane_count; /* 0 where the type has no use for lanes */
	uint16_t slot;
	uint16_t first;
	uint16_t count;
	uint16_t held;
	uint8_t lane;
	struct group_lane lanes[GROUP_LANES_MAX];
	uint64_t digest;
	struct flow flow; /* FORWARD */
	/* FORWARD, and those with text */
	const uint8_t *data; /* points into the message */
	uint32_t data_len;
};

enum group_msg_verdict { GROUP_MSG_OK, GROUP_MSG_BAD, GROUP_MSG_OTHER_VERSION };

/* In a message decoded as OK every index and count is within its bounds. */
enum group_msg_verdict group_msg_decode(struct group_msg *, const uint8_t *buf, size_t len);

/*
 * Writes the header, and the flow of FORWARD, at most GROUP_MSG_HEADER_LEN + GROUP_MSG_FLOW_LEN
 * bytes; returns their length. The packet of FORWARD and the text of others follow.
 */
size_t group_msg_encode(uint8_t *buf, const struct group_msg *);

/* How many descriptors come with the message: exactly this many; for STAT_FD, SHARE_FD and QPS_FD also none. */
size_t group_msg_fds(const struct group_msg *);
