/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process knows while it joins, and the parts of joining: the lock, the members, a place. Nothing
 * here is needed of any member: a stopped one neither answers nor lets go, and is done without.
 */
#ifndef GROUP_GROUP_JOIN_H
#define GROUP_GROUP_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "group/group.h"
#include "group/group_link.h"
#include "group/group_state.h"

enum member_state {
	NOBODY,
	ALIVE,    /* answered */
	SILENT,   /* there, but did not answer in time */
	RESERVED, /* a joiner took the name, and has gone no further */
	OTHER,    /* speaks another version */
	FOREIGN   /* another user has the name */
};

struct member {
	enum member_state state;
	int link; /* -1 unless ALIVE */
	struct link_peer peer;
	unsigned held;
	uint64_t digest;
};

struct join {
	struct group *g;
	const struct group_config *cfg;
	uid_t uid;
	uint64_t deadline_ms;
	uint64_t closing_until_ms; /* so long may sockets of the dead still be about */
	uint64_t lease_until_ms;   /* so long the lock is ours for certain */
	uint64_t digest;           /* of what the members gave us */
	struct member members[GROUP_SLOTS];
	bool fresh[GROUP_LANES_MAX]
		  [GROUP_SOCKETS_MAX]; /* sockets that we made, or found out about */
	char *why;
	size_t why_bytes;
};

uint64_t group_now_ms(void);
void group_sleep_ms(unsigned ms);

/* Says why in words, and returns err, or -EMFILE for all that is want of descriptors. */
int join_explain(struct join *, int err, const char *doing);

/*
 * The lock: a descriptor to close, or a negative errno. Whoever has had it for longer than a join takes is
 * left alone with it, and another lock is taken beside: see group_lock.c.
 */
int join_lock(struct join *);
/* Whether the lock may be another's by now, because we were stopped. */
bool join_lock_is_old(const struct join *);

/* Calls every name and waits for answers: a short while. 0, or a negative errno that ends the attempt. */
int join_call(struct join *);
/* Takes over what the members hold, as far as they give it. */
int join_fetch(struct join *);
/* Gives the members what they lack. */
void join_give(struct join *);
void join_hang_up(struct join *);

/*
 * Takes a slot: its name, reserved in g->listener, and in each lane a socket whose index it is, with as many
 * besides as the invariant asks for. -EAGAIN: worth another attempt, with the reason set.
 */
int join_place(struct join *);
/* For a process that is to be alone: sockets that nobody can share the ports with. */
int join_place_alone(struct join *);

#endif
