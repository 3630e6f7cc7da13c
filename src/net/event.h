/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pending events in order: by time, then by class, then by the number of whom they are about, then by kind. So the
 * order does not depend on which other events there are, nor on when they were pushed: a network that is divided among
 * threads has the same. Events that are alike in all of this are equal. They are not cancelled: a receiver that no
 * longer needs one recognises it as stale.
 *
 * A radix heap: the nearest stretch of time is cut into buckets of one tick (2^tick_shift ps),
 * later time into wider and wider ones, whose events are distributed when their time has come; only
 * the events of one tick are ever sorted. So an event costs O(1) plus the sorting of the few in its
 * tick, however many are pending, as long as a tick is about the distance between events. The order
 * does not depend on the width of a tick.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	EVENT_KINDS = 16, /* kinds and classes are below this */
	EVENT_KIND_BITS = 4,
	EVENT_CLASS_SHIFT = 60,
	EVENT_NEAR_BITS = 13,
	EVENT_NEAR_BUCKETS = 1 << EVENT_NEAR_BITS,
	EVENT_FAR_BITS = 8,
	EVENT_FAR_BUCKETS = 1 << EVENT_FAR_BITS,
	EVENT_FAR_LEVELS = 7, /* beyond the near buckets, up to the end of time */
	EVENT_TICK_SHIFT_MAX = 40
};

struct event {
	uint64_t time_ps;
	uint64_t order; /* class, number, kind, from the top */
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

/* Open for its size and the inline functions; the fields are the queue's own. */
struct event_queue {
	struct event_node *nodes;
	uint64_t tick; /* the present tick */
	uint64_t pending;
	uint32_t now; /* the list of that tick's events, in order */
	uint32_t free;
	uint32_t tick_shift;
	uint32_t heap_count;
	struct event *heap; /* events pushed into the present tick or before */
	uint32_t heap_size, node_count, node_size;
	bool out_of_memory;
	uint64_t near_words[EVENT_NEAR_BUCKETS / 64 / 64]; /* which words of near_map are not 0 */
	uint64_t near_map[EVENT_NEAR_BUCKETS / 64];
	uint64_t far_map[EVENT_FAR_LEVELS][EVENT_FAR_BUCKETS / 64];
	uint32_t far[EVENT_FAR_LEVELS][EVENT_FAR_BUCKETS];
	uint32_t near[EVENT_NEAR_BUCKETS];
};

/* 0 or -ENOMEM. tick_shift is cut to EVENT_TICK_SHIFT_MAX. */
int event_queue_init(struct event_queue *, unsigned tick_shift);
void event_queue_fini(struct event_queue *);

/* What the inline forms above do where the events are in the heap. */
void event_push_slow(struct event_queue *, uint64_t time_ps, uint64_t order, void *object);
const struct event *event_pop_slow(struct event_queue *, uint64_t until_ps);

/*
 * Borrows the object, whose number is below 2^56. `time_ps` may lie before the event that was popped last: it then comes next.
 * When memory runs out the event is lost and out_of_memory is set.
 */
static inline void event_push(struct event_queue *q, uint64_t time_ps, unsigned class, unsigned kind, uint64_t number,
			      void *object)
{
	uint64_t order = (uint64_t) class << EVENT_CLASS_SHIFT | number << EVENT_KIND_BITS | kind;
	uint64_t tick = time_ps >> q->tick_shift;
	uint32_t node = q->free, i = tick % EVENT_NEAR_BUCKETS;

	bool near = tick > q->tick && (tick ^ q->tick) < EVENT_NEAR_BUCKETS;

	if (__builtin_expect(!near || !node, 0)) {
		event_push_slow(q, time_ps, order, object);
		return;
	}
	struct event_node *n = &q->nodes[node];

	q->pending++;
	q->free = n->next;
	n->event = (struct event){time_ps, order, object};
	n->next = q->near[i];
	q->near[i] = node;
	q->near_map[i / 64] |= UINT64_C(1) << i % 64;
	q->near_words[i / 64 / 64] |= UINT64_C(1) << i / 64 % 64;
}

/* The next event, which stays; NULL: there is none. Lent until the next push or pop. */
const struct event *event_peek(struct event_queue *);
/* The time of the next event; UINT64_MAX: there is none. */
uint64_t event_next_ps(struct event_queue *);

/* The next event, taken out, if it is due by `until_ps`; else NULL. Lent until the next push or pop. */
static inline const struct event *event_pop(struct event_queue *q, uint64_t until_ps)
{
	struct event_node *n = &q->nodes[q->now];

	if (__builtin_expect(!q->now || q->heap_count || n->event.time_ps > until_ps, 0))
		return event_pop_slow(q, until_ps);
	uint32_t next = n->next;

	n->next = q->free;
	q->free = q->now;
	q->now = next;
	q->pending--;
	__builtin_prefetch(q->nodes[next].event.object);
	return &n->event;
}
