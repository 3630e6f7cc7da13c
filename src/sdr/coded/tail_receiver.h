/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tail coding, the receiving end of one message: names the packets that are lost and that no code can give back.
 *
 * A packet is missed when a later one has come. One before the tail is named at once; one of the tail only when its
 * group is short, which shows when packets of the next block, or the word that all was sent, are there, or when nothing
 * has come for a quarter of an RTT: as many packets of the group are named as it lacks, and a few more. A naming is
 * said three times within RTT / 32, as words may be lost, and again after 17/16 RTT if the packet did not come.
 *
 * The owner reports each packet once, hands over what the sender says, calls tail_receiver_expire() when
 * tail_receiver_deadline() has come, and then tail_receiver_tell() until that returns 0. Recovering packets is its own
 * affair. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "sdr/coded/tail_words.h"

enum { TAIL_STAGES = 4 };

/* Packets in the order in which they will be named; each stage has one delay for all. */
struct tail_stage {
	uint32_t first, last;
};

struct tail_missing {
	uint32_t next;
	uint32_t tick; /* when to name it */
};

/* A group of the code. */
struct tail_group {
	uint16_t data, parity; /* packets that are there */
	bool done;             /* it is whole, or can be computed */
	bool judged;           /* found short, and named */
};

struct tail_receiver {
	uint64_t rtt_ns, start_ns;
	uint32_t packets, have;
	uint32_t next;           /* one more than the last packet that came */
	uint32_t parity_packets; /* room for parities */
	bool planned, ended;
	uint32_t groups_done;
	uint32_t head_have;                   /* packets before the tail */
	uint32_t judged_blocks;               /* blocks before were looked at for short groups */
	uint32_t look_blocks;                 /* blocks before have been sent */
	uint32_t finals;                      /* STATEs of the whole that are left */
	uint64_t came_ns, state_ns, judge_ns; /* UINT64_MAX: never */
	struct tail_state state;
	struct tail_plan plan;
	struct tail_stage stage[TAIL_STAGES];
	struct tail_missing *missing; /* by packet; tick 0 and next 0: in no stage */
	uint64_t *bits, *named;       /* packets that are there; that were named */
	uint64_t *parity_bits;        /* parities that are there */
	struct tail_group *group;     /* once planned */
	const struct alloc *alloc;
};

/* packets > 0, rtt_ns > 0; parity_packets: of the receive for parities. Borrows alloc until tail_receiver_free().
 * -ENOMEM. */
int tail_receiver_init(struct tail_receiver *, uint64_t rtt_ns, uint32_t packets, uint32_t parity_packets,
		       uint64_t now_ns, const struct alloc *);
void tail_receiver_free(struct tail_receiver *);

/* A packet of the message, or of the parity message, came; one that is there or has no place is ignored. */
void tail_receiver_came(struct tail_receiver *, bool parity, uint32_t packet, uint64_t now_ns);
/* Takes a CONTROL_TAIL_PLAN. False, and nothing changes, if it cannot be of this message. */
bool tail_receiver_plan(struct tail_receiver *, const uint8_t *payload, uint64_t now_ns);

static inline bool tail_receiver_whole(const struct tail_receiver *r)
{
	return r->state.whole;
}
/* Whether it has said so as often as it does unasked. */
static inline bool tail_receiver_quiet(const struct tail_receiver *r)
{
	return r->state.whole && !r->finals;
}

uint64_t tail_receiver_deadline(const struct tail_receiver *);
void tail_receiver_expire(struct tail_receiver *, uint64_t now_ns);
/* Writes the payload of the message that is due; returns its length, at most max, or 0 when none is due. max >= 64. */
uint16_t tail_receiver_tell(struct tail_receiver *, uint8_t *, size_t max, enum control_type *, uint64_t now_ns);
