/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State that engine.c (the calls of programs' threads) and thread.c (the engine's own) share.
 *
 * Who does the work
 * -----------------
 * All work is turns of the loop; the holder of `lock` does them. The engine thread is in one of four
 * states, and leaves work to programs' threads in three of them:
 *
 *     RUN      it looks by itself, now and soon again
 *     NAP      a program polls: the thread sleeps for 50 us or more at a time, up to a millisecond, and looks
 *              whether it still does
 *     AWAIT    the thread that polled waits for a processor, and packets come through memory alone. This
 *              thread would take the processor away. It sleeps until that one has waited AWAIT_GROWTH times as long, several times,
 *              until that one polls or has waited for AWAIT_NS_MAX
 *     BLOCKED  it sleeps in wait() on every socket, until `sleep_until_ns` at most
 *
 *          nobody polled for 50 us or more, or engine_hand_over()
 *     NAP, AWAIT -----------------------------------------> RUN
 *      ^                                                     |
 *      +-----------------------------------------------------+  somebody polls
 *                                                            |
 *     BLOCKED <----------------------------------------------+  nothing moved for spin_us
 *      |
 *      +---> RUN     a packet, a request of the group, the deadline, or a wake-up
 *
 * The invariant: whenever the lock is free and work is outstanding, the thread will do it.
 *
 *   packet in a socket   RUN, NAP and AWAIT look again by themselves; BLOCKED is in wait() on that socket,
 *                        level-triggered, so a packet that came before counts too.
 *   a deadline           as above; BLOCKED is entered under the lock with sleep_until_ns no later
 *                        than the deadline of that moment, and a later holder of the lock that leaves
 *                        an earlier deadline behind wakes the thread.
 *   the rest of a turn   which a poll that found packets left out: it is a deadline in the past until the next poll
 *                        or the thread has done it.
 *   a doorbell           engine_kick() rings it, unless it gets the lock at once, then reads the state (both
 *                        sequentially consistent). Only if it reads NAP may it walk away without a turn: then
 *                        the thread's store of RUN comes later in the total order, so the turn that the thread
 *                        does after it finds the doorbell, unless a poll's turn found it before.
 *                        Otherwise it takes the lock or leaves a mark for the holder (lock.h).
 *
 * A thread in NAP sleeps in nap(), not in wait(), so packets that a poller will fetch wake nobody.
 * Each nap disturbs the poller for some microseconds, so naps grow while a program goes on polling.
 * A poller never makes a system call for the thread's sake but one: the wake-up above. To make even
 * that rare, BLOCKED lasts at most HEARTBEAT_NS as long as there was traffic in the last
 * HEARTBEAT_FOR_NS; a new deadline is mostly later than that. An idle process sleeps for good.
 *
 * Private to src/engine.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/pkt.h"
#include "engine/config.h"
#include "engine/engine.h"
#include "engine/env.h"
#include "engine/gids.h"
#include "engine/lock.h"
#include "engine/loop.h"
#include "group/group.h"
#include "io/udp/mcast.h"
#include "io/raw/raw.h"
#include "io/udp/udp.h"

enum thread_state { THREAD_RUN, THREAD_NAP, THREAD_AWAIT, THREAD_BLOCKED };

enum {
	NAP_NS =
		50000, /* a program that has not polled for so long has stopped, if it had not polled for long before */
	NAP_NS_MAX = 1000000,
	AWAIT_NS_MAX = 10000000, /* three of the scheduler's slices: eight programs a processor that all poll come round
				    in that */
	AWAIT_GROWTH =
		4, /* looks at the poller are made when it has waited for this many times as long; each costs 10 us */
	NAP_SHARE = 16,                         /* the longest nap, as a part of the time of polling */
	GAP_SHARE = 4,                          /* and a gap that is no stop, as a part of that nap */
	POLLED_QUIET_NS = 1000000,              /* after polling this long without traffic it blocks */
	SERVE_NS = 5000000,                     /* interval of serving the group outside of epoll */
	TURN_NS_MAX = 10000000,                 /* a turn takes less, unless its thread is not running */
	BRIEF_TURN_PACKETS = 4,                 /* a poll's turn that moved no more of them counts as no time */
	BOUNCES_A_YIELD = 64,                   /* polls that find the lock held, then the thread yields */
	DEFERRED_KICKS_MAX = PKT_TRAIN_MAX - 1, /* the next makes a whole train of small messages */
	NEAR_KICKS_MAX =
		20, /* of one QP whose packets go through memory: sending costs little there, and the peer can begin */
	KICK_STREAM_NS = 2000, /* a post this soon after the last one was sent is one of many */
	/*
	 * PTO_NS_MIN: no timer that a poller's turn sets acts sooner. Only the question to a peer process that may not
	 * be run is due half of that ahead of its timer, and asks without harm when the timer acts.
	 */
	HEARTBEAT_NS = 2000000,
	HEARTBEAT_FOR_NS = 100000000
};

struct engine {
	/* Read by every call, written by few. */
	struct engine_env *env;
	struct env_host host; /* env, unless engine_set_env() gave another one */
	struct config config;
	unsigned device;
	struct gid_table gids;
	struct group *group;
	/* Innermost of loop.io, which closes it: the UDP sockets, RoCEv1's packet socket, or TCP streams; the others
	 * are NULL. */
	struct io *udp;
	struct io *raw;
	struct io *tcp;
	struct io *mcast; /* around udp; NULL without it */
	uint32_t paths;   /* UDP source ports of the back end, in each family */
	uint16_t sport_ipv4[UDP_PATHS_MAX];
	uint16_t sport_ipv6[UDP_PATHS_MAX]; /* 0: no IPv6 */
	bool may_cancel;     /* the back end makes calls that are cancellation points: streams, raw frames, a capture */
	size_t rcvbuf_bytes; /* as the kernel counts */
	int stat_fd;
	int port_fd;           /* of port.h; -1: none */
	bool port_stale;       /* the table is; the thread alone */
	uint64_t wall_at_0_ns; /* the wall clock's time when that of the environment was 0 */
	pthread_t thread;

	/* Any thread. */
	_Alignas(64) struct lock lock;

	/* Written by pollers and posters, on every call. */
	_Alignas(64) _Atomic uint64_t polled_ns; /* the last poll; in future: it goes on; 0: handed over */
	_Atomic uint64_t post_turns_ns;          /* how long posts' turns took since then, written under the lock */
	_Atomic pid_t poller;                    /* its thread */
	_Atomic bool bounced;                    /* a poll found the lock held */
	_Atomic uint64_t kicked_ns;              /* when the last post's turn ended */
	_Atomic uint32_t deferred_kicks;         /* since the last turn; a hint */
	_Atomic(const struct qp *) deferred_qp; /* likewise, the last one's QP, only compared; NULL: there was a turn */
	_Atomic uint32_t deferred_run;          /* and how many in a row were that one's */

	/* Written by the thread; a hand-over turns NAP into RUN. A futex. */
	_Alignas(64) _Atomic uint32_t state;
	_Atomic bool serve_wanted; /* the thread leaves the group's requests to the next poll, which clears this */

	/* Under the lock. */
	_Alignas(64) struct loop loop;
	int cancel_state;          /* to which engine_unlock() brings the holder's thread back */
	uint64_t sleep_until_ns;   /* in BLOCKED */
	uint64_t turned_ns;        /* the last turn's time: that of the next is no earlier */
	_Atomic uint64_t moved_ns; /* when packets last moved; the thread peeks without the lock */
	bool closed;               /* the process exits, or forked away: turns do nothing */
	bool forked;               /* forked away */
};

/* Reads the back end's source ports; before there is a thread, or with the lock held. */
void engine_note_paths(struct engine *);
/* Likewise: tells the back end which interface each GID has, or that the routes of the host have changed. */
void engine_note_gids(struct engine *);

/* Lock held. A turn and everything that follows from it; true when packets moved. No cancellation point. */
bool engine_turn(struct engine *, enum loop_work, uint64_t now_ns);
/* Lock held. Answers the group's requests, and takes serve_wanted back. No cancellation point. */
void engine_serve_group(struct engine *, uint64_t now_ns);
/*
 * Lock held: does the work that others left, wakes the thread if it would sleep too long, and
 * releases the lock.
 */
void engine_leave(struct engine *);

/* Watches the descriptors of the loop, the port and the group, and makes the thread. 0 or a negative errno. */
int thread_start(struct engine *);
/* Any thread. */
void thread_end_nap(struct engine *);

/* The process exits: ends the engine, within `tries`, which are used up. end.c. */
void engine_end(struct engine *, int *tries);
