/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a group, shared by group_join.c, which builds it, and group.c, which runs it. */
#ifndef IO_GROUP_STATE_H
#define IO_GROUP_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "io/group.h"
#include "io/group_msg.h"

enum {
	GROUP_CLIENTS_MAX = 192, /* every other member forwarding to us, and some who ask */
	GROUP_FORWARDED_MAX = 16
};

struct forwarded {
	struct flow flow;
	uint32_t len;
	uint8_t data[GROUP_FORWARD_BYTES_MAX];
};

/*
 * Invariants of a member:
 *	slot < held, and socks[lane][i] is open for every lane and i < held, -1 beyond;
 *	index i of a lane's group in the kernel is socks[lane][i], as long as any member lives.
 */
struct group {
	unsigned slot;
	unsigned held;
	struct group_lane lanes[GROUP_LANES_MAX];
	uint8_t lane_count;
	int stat_fd;
	struct io_counters *counters;

	int epoll;
	int listener;
	int spare; /* given up for a moment to turn a caller away when no descriptor is left */
	int clients[GROUP_CLIENTS_MAX];
	int peers[GROUP_SLOTS]; /* connections that we forward over, made when needed */
	int socks[GROUP_LANES_MAX][GROUP_SLOTS];

	/* Forwarded to us: `lent` from head on are with the caller, count in all. */
	struct forwarded *ring;
	unsigned head, lent, count;
	struct io_counters own_counters; /* where the opener wants none */
	uint8_t message[GROUP_MSG_BYTES_MAX];
};

/* Everything closed and no memory but itself; NULL without memory. */
struct group *group_new(void);

/* Closes every descriptor and forgets lanes, slot and connections; the group can be built again. */
void group_reset(struct group *);

/*
 * Adds sockets that arrived, lane by lane for each index from `first` on, to those that are held.
 * Takes every descriptor: those that are held already, or leave a gap, are closed. False: one of
 * them is not a socket of its lane, and none was taken in.
 */
bool group_hold(struct group *, unsigned first, unsigned count, const int *fds);

/* Sends the sockets first .. first+count-1; as many records as it takes. 0 or a negative errno. */
int group_give(const struct group *, int link, enum group_msg_type type, unsigned first,
	       unsigned count);

#endif
