/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of a process while it joins, and the parts of joining: the lock, the members, a place. Joining
 * depends on no member's answer: a stopped member neither answers nor releases anything.
 *
 * Private to src/group.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "group/group.h"
#include "group/group_link.h"
#include "group/group_state.h"
#include "io/clock.h"

enum member_state {
	NOBODY,
	ALIVE,    /* answered */
	SILENT,   /* exists, but did not answer in time */
	RESERVED, /* a joiner took the name, and is not yet a member */
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
	uint64_t lock_until_ms;    /* how long to wait for the lock; UINT64_MAX: as long as its holder lives */
	uint64_t deadline_ms;      /* how long to try with the lock */
	uint64_t closing_until_ms; /* how long sockets of the dead may remain */
	unsigned lock_level;       /* which lock we have, or had last */
	uint64_t digest;           /* of what the members gave us */
	struct member members[GROUP_SLOTS];
	bool fresh[GROUP_LANES_MAX][GROUP_SOCKETS_MAX]; /* sockets that we made or located */
	char *why;
	size_t why_bytes;
};

/* Puts a sentence into why, and returns err, or -EMFILE for any lack of descriptors. */
int join_explain(struct join *, int err, const char *doing);

/*
 * The lock: a descriptor to close, or a negative errno. Waits for whoever has it. If that process is stopped,
 * another lock is taken instead: see group_lock.c.
 */
int join_lock(struct join *);
/* Whether another process that runs has such another lock now, because we were stopped. */
bool join_lock_is_passed(const struct join *);

/*
 * Connects to every name and waits a short while for answers. 0, or a negative errno that ends the
 * attempt.
 */
int join_call(struct join *);
/* Gets the memory that the members share, or makes it. */
void join_share(struct join *);
/* Takes the sockets that members give. */
int join_fetch(struct join *);
/*
 * Takes the sockets of members that do not answer, where the kernel lets this process look into them
 * (ptrace(2), "Ptrace access mode checking"); stops at until_ms.
 */
void join_take(struct join *, uint64_t until_ms);
/* Gives the members the sockets that they lack. */
void join_give(struct join *);
void join_hang_up(struct join *);

/*
 * Takes a slot: its name, reserved in g->listener, and in each lane the socket with that index, and as many
 * more as the invariant requires. -EAGAIN: worth another attempt, with the reason set.
 */
int join_place(struct join *);
/* For a process that stays alone: sockets whose ports no other process can share. */
int join_place_alone(struct join *);
