/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the engine's thread works, and when and for how long it sleeps: the rules of that, as a function of the time
 * and of what was seen. It has no clock, takes no lock and calls nothing outside; thread.c does what it says.
 *
 * Who does the work
 * -----------------
 * All work is turns of the loop; the holder of the engine's lock does them. The engine's thread is in one of four
 * states, and leaves work to programs' threads in three of them:
 *
 *     RUN      it looks by itself, now and soon again
 *     NAP      a program polls: the thread sleeps for 50 us or more at a time, up to a millisecond, and looks
 *              whether it still does
 *     AWAIT    the thread that polled waits for a processor, and packets come through memory alone. This thread would
 *              take the processor away. It sleeps until that one has waited AWAIT_GROWTH times as long, several times,
 *              until that one polls or has waited for AWAIT_NS_MAX
 *     BLOCKED  it sleeps on every descriptor, until `sleep_until_ns` at most
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
 * A thread in NAP sleeps in nap() and not in wait(), so packets that a poller will fetch wake nobody.
 * Each nap disturbs the poller for some microseconds, so naps grow while a program goes on polling.
 * A poller never makes a system call for the thread's sake but one: the wake-up above. To make even
 * that rare, BLOCKED lasts at most HEARTBEAT_NS as long as there was traffic in the last
 * HEARTBEAT_FOR_NS; a new deadline is mostly later than that. An idle process sleeps for good.
 *
 * Private to src/engine.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/pkt.h"

enum {
	/* A program that has not polled for so long has stopped, if it had not polled for long before. */
	NAP_NS = 50000,
	NAP_NS_MAX = 1000000,
	NAP_SHARE = 16,            /* the longest nap, as a part of the time of polling */
	GAP_SHARE = 4,             /* and a gap that is no stop, as a part of that nap */
	POLLED_QUIET_NS = 1000000, /* after polling this long without traffic the thread blocks */
	/* Three of the scheduler's slices: eight programs a processor that all poll come round in that. */
	AWAIT_NS_MAX = 10000000,
	/* The thread looks at the poller when it has waited for this many times as long; each look costs 10 us. */
	AWAIT_GROWTH = 4,
	AWAIT_RAN_QUARTERS = 3,    /* who ran for as many quarters of the thread's sleep did not wait for a processor */
	SERVE_NS = 5000000,        /* interval of serving the group, and of looking at the port, outside of wait() */
	LENT_TIMES = 6,            /* the thread spins for this many times as long while a peer reads what was sent, */
	CROWDED_TIMES = 10,        /* and not at all for this many times as long as it waited for its processor, */
	CROWDED_NS_MAX = 20000000, /* up to this, */
	YIELD_LONG_NS = 20000,     /* after two yields in a row that took longer than this */
	/*
	 * No timer that a poller's turn sets acts sooner (PTO_NS_MIN in start.c). Only the question to a peer process
	 * that may not be run is due half of that ahead of its timer, and asks without harm when the timer acts.
	 */
	HEARTBEAT_NS = 2000000,
	HEARTBEAT_FOR_NS = 100000000,

	TURN_NS_MAX = 10000000,                 /* a turn takes less, unless its thread is not running */
	BOUNCES_A_YIELD = 64,                   /* polls that find the lock held, then the thread yields */
	BRIEF_TURN_PACKETS = 4,                 /* a poll's turn that moved no more of them counts as no time */
	DEFERRED_KICKS_MAX = PKT_TRAIN_MAX - 1, /* the next makes a whole train of small messages */
	/* Of one QP whose packets go through memory: sending costs little there, and the peer can begin. */
	NEAR_KICKS_MAX = 20,
	KICK_STREAM_NS = 2000 /* a post this soon after the last one was sent is one of many */
};

/* ---- the thread ---- */

/* What the thread does next, and then it says what it saw by that. */
enum waiting_act {
	WAITING_LOOK,    /* it releases the lock if it has it, and reads the clock and what others left: SEEN_TRACES */
	WAITING_SERVE,   /* if the lock is free, it serves the group, or does output, as the step says: SEEN_SERVED */
	WAITING_TRY,     /* if the lock is free, it does a turn: SEEN_TURN, or SEEN_HELD; it keeps the lock */
	WAITING_TURN,    /* it waits for the lock and does a turn: SEEN_TURN; it keeps the lock */
	WAITING_MEASURE, /* it looks how long the thread that polled has run since its own last sleep began: SEEN_RAN */
	WAITING_QUESTION, /* it looks whether that thread wants a processor, and whether packets may wait: SEEN_WANTS */
	WAITING_YIELD,    /* it releases the lock and yields: SEEN_YIELD */
	WAITING_REST,     /* it has the lock, lets the loop rest and keeps the lock: SEEN_DEADLINE */
	/* Sleep until until_ns at most, and then SEEN_WAKING. */
	WAITING_NAP,
	WAITING_AWAIT,
	WAITING_BLOCK /* it has the lock, and releases it */
};

enum waiting_sight {
	SEEN_TRACES,
	SEEN_SERVED,
	SEEN_TURN,
	SEEN_HELD,
	SEEN_RAN,
	SEEN_WANTS,
	SEEN_YIELD,
	SEEN_DEADLINE,
	SEEN_WAKING
};

/* What the thread saw. A member that is not named for a sight is as it was at the last one. */
struct waiting_seen {
	enum waiting_sight what;
	/* SEEN_TRACES; the first two at SEEN_YIELD, moved_ns at SEEN_TURN too. */
	uint64_t now_ns;
	uint64_t moved_ns;      /* when packets last moved; it may be later than now_ns */
	uint64_t polled_ns;     /* the last poll; in future: it goes on; 0: the program handed over */
	uint64_t post_turns_ns; /* how long posts' turns took since then */
	bool bounced;           /* since the last look a poll found the lock held */
	bool serve_wanted;      /* the group waits to be served since WAITING_SERVE found the lock held */
	/* SEEN_SERVED, SEEN_TURN */
	bool locked; /* the lock was free, and the thread has it */
	bool moved;  /* packets moved */
	bool lends;  /* a peer reads memory of this process, or may */
	/* SEEN_RAN, UINT64_MAX: that is not known; SEEN_WANTS */
	uint64_t ran_ns;
	bool wants;
	bool may_wait; /* packets come through memory alone, where none is lost meanwhile */
	/* SEEN_DEADLINE */
	uint64_t deadline_ns;
	uint64_t stirred_ns; /* when a packet last came, or last left without a timer as the reason */
	/* SEEN_WAKING */
	bool group_asks;
	bool port_asks;
};

struct waiting_step {
	enum waiting_act act;
	uint64_t until_ns; /* of a sleep; UINT64_MAX: for good */
	bool serve;        /* WAITING_SERVE, WAITING_TRY, WAITING_TURN: the group is served */
	bool output;       /* WAITING_SERVE: with a turn of output */
};

/* The thread's own, zeroed but for the settings. */
struct waiting {
	uint64_t spin_ns; /* a setting: how long after traffic it looks without sleeping */

	uint64_t looked_ns; /* the last SEEN_TRACES */
	uint64_t nap_until_ns;
	uint64_t serve_due_ns;
	uint64_t look_due_ns; /* when to look at the port, without that it asks */
	uint64_t crowded_until_ns;
	uint64_t polling_since_ns; /* waits for a processor included; 0: nobody polls */
	uint64_t slept_ns;         /* when it last began to sleep for a poller's sake */
	uint64_t instead_of_ns;    /* the last poll of the thread whose work it does, or did last */
	bool excused;              /* that one waited for a processor then */
	bool looked_again;         /* the lock was held, and nobody polled */
	bool yielded_long;         /* the last time */
	bool group_asks;
	bool port_asks;
};

/* What to do, now that this was seen. */
struct waiting_step waiting_next(struct waiting *, const struct waiting_seen *);
/* Whether to look at the port's state now, before SEEN_TRACES. */
bool waiting_port_is_due(struct waiting *, uint64_t now_ns);

/* ---- threads that poll and post ---- */

/* What they leave behind, for the thread and for each other, at each call. */
struct polls {
	_Atomic uint64_t polled_ns;     /* struct waiting_seen has the meaning */
	_Atomic uint64_t post_turns_ns; /* written under the lock */
	_Atomic pid_t poller;           /* the thread that polled last */
	_Atomic bool bounced;
	_Atomic uint64_t kicked_ns;        /* when the last post's turn ended */
	_Atomic uint32_t deferred_kicks;   /* since the last turn; a hint */
	_Atomic(const void *) deferred_qp; /* likewise, the last one's QP, only compared; NULL: there was a turn */
	_Atomic uint32_t deferred_run;     /* and how many in a row were that one's */
};

/* Lock held, around the turn of a poll. A turn that sends much takes longer than the thread waits for the next poll. */
static inline void polls_begin(struct polls *p, pid_t poller, uint64_t now_ns)
{
	atomic_store_explicit(&p->polled_ns, now_ns + TURN_NS_MAX, memory_order_relaxed);
	atomic_store_explicit(&p->post_turns_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&p->poller, poller, memory_order_relaxed);
}

static inline void polls_end(struct polls *p, uint64_t now_ns)
{
	atomic_store_explicit(&p->polled_ns, now_ns, memory_order_relaxed);
}

/* Lock held, around the turn of a post. A thread that posts cannot poll meanwhile, so this turn does not count as time
 * without polls. Returns what polls_post_end() is given. */
static inline uint64_t polls_post_begin(struct polls *p)
{
	uint64_t turns_ns = atomic_load_explicit(&p->post_turns_ns, memory_order_relaxed);

	atomic_store_explicit(&p->post_turns_ns, turns_ns + TURN_NS_MAX, memory_order_relaxed);
	return turns_ns;
}

static inline void polls_post_end(struct polls *p, uint64_t turns_ns, uint64_t begun_ns, uint64_t now_ns)
{
	atomic_store_explicit(&p->post_turns_ns, turns_ns + (now_ns - begun_ns), memory_order_relaxed);
	atomic_store_explicit(&p->kicked_ns, now_ns, memory_order_relaxed);
}

/* Lock held: a turn sends what was deferred. */
static inline void polls_turn(struct polls *p)
{
	atomic_store_explicit(&p->deferred_kicks, 0, memory_order_relaxed);
	atomic_store_explicit(&p->deferred_qp, NULL, memory_order_relaxed);
}

/* The program sleeps from now on: the thread takes over at once. */
static inline void polls_hand_over(struct polls *p)
{
	atomic_store_explicit(&p->bounced, false, memory_order_relaxed);
	atomic_store(&p->polled_ns, 0);
}

/*
 * A poll that finds the lock held leaves the work to the holder and comes back at once. Where there are more
 * threads than processors the holder may not be running, and a thread that polls keeps the processor from it.
 * So one of many such polls gives the processor away: then this returns true. *bounces counts those of a thread.
 */
static inline bool polls_bounce(struct polls *p, uint32_t *bounces)
{
	if (!atomic_load_explicit(&p->bounced, memory_order_relaxed))
		atomic_store_explicit(&p->bounced, true, memory_order_relaxed);
	return ++*bounces % BOUNCES_A_YIELD == 0;
}

/* Whether a post at that time is one of many. Only that distinguishes a stream of UD messages from a single one. */
static inline bool polls_are_posts_many(const struct polls *p, uint64_t now_ns)
{
	return now_ns - atomic_load_explicit(&p->kicked_ns, memory_order_relaxed) <= KICK_STREAM_NS;
}

/* A post is left to the next poll, while the thread naps. False: too many are. */
static inline bool polls_may_defer(struct polls *p)
{
	uint32_t deferred = atomic_load_explicit(&p->deferred_kicks, memory_order_relaxed);

	atomic_store_explicit(&p->deferred_kicks, deferred + 1, memory_order_relaxed);
	return deferred < DEFERRED_KICKS_MAX;
}

/* Whether more than NEAR_KICKS_MAX posts in a row, without a turn between, were this QP's. */
static inline bool polls_run_on(struct polls *p, const void *qp)
{
	bool same = atomic_load_explicit(&p->deferred_qp, memory_order_relaxed) == qp;
	uint32_t run = same ? atomic_load_explicit(&p->deferred_run, memory_order_relaxed) + 1 : 1;

	atomic_store_explicit(&p->deferred_qp, qp, memory_order_relaxed);
	atomic_store_explicit(&p->deferred_run, run, memory_order_relaxed);
	return run > NEAR_KICKS_MAX;
}
