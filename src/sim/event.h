/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What will happen, in order: by time, then by class, then by who asked first. Nothing is
 * cancelled: whoever no longer wants an event knows it for a stale one when it comes.
 *
 * A radix heap: the nearest stretch of time is cut into buckets of one tick (2^tick_shift ps), what
 * lies further off into ever wider ones that are dealt out when their time has come; only the events
 * of one tick are ever sorted. So an event costs O(1) plus the sorting of the few beside it, however
 * many are pending, as long as a tick is about the distance between events; the order does not
 * depend on it.
 */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include <stdbool.h>
#include <stdint.h>

enum {
	EVENT_KINDS = 16, /* kinds and classes are below this */
	EVENT_NEAR_BITS = 13,
	EVENT_NEAR_BUCKETS = 1 << EVENT_NEAR_BITS,
	EVENT_FAR_BITS = 8,
	EVENT_FAR_BUCKETS = 1 << EVENT_FAR_BITS,
	EVENT_FAR_LEVELS = 7, /* beyond the near buckets, up to the end of time */
	EVENT_TICK_SHIFT_MAX = 40
};

struct event {
	uint64_t time_ps;
	uint64_t order; /* class, number of insertion, kind, from the top */
	void *object;
};

static inline unsigned event_kind(const struct event *e)
{
	return e->order % EVENT_KINDS;
}

struct event_node {
	struct event event;
	uint32_t next; /* in its bucket or the free list; 0: the last */
};

/* Open for its size and for event_push(); the fields are the queue's own. */
struct event_queue {
	struct event *heap; /* the events of the tick that is now, and of earlier ones */
	struct event_node *nodes;
	uint64_t tick; /* the one whose events lie in the heap */
	uint64_t inserted;
	uint64_t pending;
	uint32_t heap_count, heap_size;
	uint32_t free, node_count, node_size;
	uint32_t tick_shift;
	bool out_of_memory;
	uint64_t near_words; /* which words of near_map are not 0 are told by two words of this */
	uint64_t near_words_high;
	uint64_t near_map[EVENT_NEAR_BUCKETS / 64];
	uint64_t far_map[EVENT_FAR_LEVELS][EVENT_FAR_BUCKETS / 64];
	uint32_t far[EVENT_FAR_LEVELS][EVENT_FAR_BUCKETS];
	uint32_t near[EVENT_NEAR_BUCKETS];
};

/* 0 or -ENOMEM. tick_shift is cut to EVENT_TICK_SHIFT_MAX. */
int event_queue_init(struct event_queue *, unsigned tick_shift);
void event_queue_fini(struct event_queue *);

/*
 * Borrows the object. `time_ps` may lie before the event that was popped last: it then comes next. When
 * memory runs out the event is lost and out_of_memory is set.
 */
void event_push(struct event_queue *, uint64_t time_ps, unsigned class, unsigned kind, void *object);
/* The next event, taken out, if it is due by `until_ps`; else false. */
bool event_pop(struct event_queue *, uint64_t until_ps, struct event *);

#endif
