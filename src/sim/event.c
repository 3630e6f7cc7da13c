/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event queue. A bucket is a list of nodes that are named by index, so that they can move when
 * their array grows; node 0 stands for no node. Invariants: every event of tick `tick` and before it
 * is in the heap; a near bucket holds one tick that shares all bits above EVENT_NEAR_BITS with
 * `tick` and comes after it; a far bucket of level n holds ticks that first differ from `tick` in the
 * bits of that level, and there are later.
 */
#include "sim/event.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	KIND_BITS = 4,
	SEQ_BITS = 56,
	CLASS_SHIFT = 60,
	FIRST_NODES = 1024,
	FIRST_HEAP = 64,
	NEAR_WORDS = EVENT_NEAR_BUCKETS / 64
};

static_assert(1 << KIND_BITS == EVENT_KINDS, "a kind fits");
static_assert(KIND_BITS + SEQ_BITS == CLASS_SHIFT, "order is full");
static_assert(NEAR_WORDS <= 128, "two words tell which words are not 0");
static_assert(EVENT_NEAR_BITS + EVENT_FAR_BITS * EVENT_FAR_LEVELS >= 64, "all of time has a bucket");

int event_queue_init(struct event_queue *q, unsigned tick_shift)
{
	memset(q, 0, sizeof(*q));
	q->tick_shift = tick_shift < EVENT_TICK_SHIFT_MAX ? tick_shift : EVENT_TICK_SHIFT_MAX;
	q->node_count = 1;
	q->node_size = FIRST_NODES;
	q->nodes = malloc(FIRST_NODES * sizeof(*q->nodes));
	q->heap_size = FIRST_HEAP;
	q->heap = malloc(FIRST_HEAP * sizeof(*q->heap));
	if (!q->nodes || !q->heap) {
		event_queue_fini(q);
		return -ENOMEM;
	}
	return 0;
}

void event_queue_fini(struct event_queue *q)
{
	free(q->nodes);
	free(q->heap);
	q->nodes = NULL;
	q->heap = NULL;
	q->pending = 0;
}

static inline bool before(const struct event *a, const struct event *b)
{
	return a->time_ps < b->time_ps || (a->time_ps == b->time_ps && a->order < b->order);
}

static __attribute__((noinline, cold)) bool heap_grow(struct event_queue *q)
{
	struct event *heap = NULL;

	if (q->heap_size < UINT32_MAX / 2)
		heap = realloc(q->heap, 2 * (size_t)q->heap_size * sizeof(*heap));
	if (!heap) {
		q->out_of_memory = true;
		return false;
	}
	q->heap = heap;
	q->heap_size *= 2;
	return true;
}

static __attribute__((noinline, cold)) bool nodes_grow(struct event_queue *q)
{
	struct event_node *nodes = NULL;

	if (q->node_size < UINT32_MAX / 2)
		nodes = realloc(q->nodes, 2 * (size_t)q->node_size * sizeof(*nodes));
	if (!nodes) {
		q->out_of_memory = true;
		return false;
	}
	q->nodes = nodes;
	q->node_size *= 2;
	return true;
}

static inline bool heap_push(struct event_queue *q, const struct event *e)
{
	if (q->heap_count == q->heap_size && !heap_grow(q))
		return false;
	struct event *heap = q->heap;
	uint32_t i = q->heap_count++;

	while (i > 0 && before(e, &heap[(i - 1) / 2])) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = *e;
	return true;
}

static inline void heap_pop(struct event_queue *q)
{
	struct event *heap = q->heap;
	uint32_t n = --q->heap_count;
	struct event last = heap[n];
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < n) {
		if (child + 1 < n && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
}

/* Files a node whose tick comes after the present one. */
static inline void file(struct event_queue *q, uint32_t node, uint64_t tick)
{
	uint64_t differs = tick ^ q->tick;
	uint32_t *bucket;

	if (differs < EVENT_NEAR_BUCKETS) {
		uint32_t i = tick % EVENT_NEAR_BUCKETS, word = i / 64;

		bucket = &q->near[i];
		q->near_map[word] |= UINT64_C(1) << i % 64;
		if (word < 64)
			q->near_words |= UINT64_C(1) << word;
		else
			q->near_words_high |= UINT64_C(1) << (word - 64);
	} else {
		unsigned top = 63 - (unsigned)__builtin_clzll(differs);
		unsigned level = (top - EVENT_NEAR_BITS) / EVENT_FAR_BITS;
		unsigned shift = EVENT_NEAR_BITS + EVENT_FAR_BITS * level;
		uint32_t i = (tick >> shift) % EVENT_FAR_BUCKETS;

		bucket = &q->far[level][i];
		q->far_map[level][i / 64] |= UINT64_C(1) << i % 64;
	}
	q->nodes[node].next = *bucket;
	*bucket = node;
}

void event_push(struct event_queue *q, uint64_t time_ps, unsigned class, unsigned kind, void *object)
{
	const struct event e = {
		time_ps,
		(uint64_t)class << CLASS_SHIFT | q->inserted++ << KIND_BITS | kind,
		object,
	};
	uint64_t tick = time_ps >> q->tick_shift;

	assert(class < EVENT_KINDS && kind < EVENT_KINDS);
	if (tick <= q->tick) {
		q->pending += heap_push(q, &e);
		return;
	}
	uint32_t node = q->free;

	if (node) {
		q->free = q->nodes[node].next;
	} else {
		if (q->node_count == q->node_size && !nodes_grow(q))
			return;
		node = q->node_count++;
	}
	q->nodes[node].event = e;
	file(q, node, tick);
	q->pending++;
}

/* The lowest set bit from `from` on in `words` words of map, or -1. */
static inline int map_next(const uint64_t *map, unsigned words, unsigned from)
{
	unsigned word = from / 64;
	uint64_t bits;

	if (word >= words)
		return -1;
	bits = map[word] & UINT64_MAX << from % 64;
	while (!bits) {
		if (++word == words)
			return -1;
		bits = map[word];
	}
	return (int)(word * 64 + (unsigned)__builtin_ctzll(bits));
}

static inline int near_next(const struct event_queue *q, unsigned from)
{
	const uint64_t words[2] = {q->near_words, q->near_words_high};
	uint64_t bits;
	int word;

	if (from >= EVENT_NEAR_BUCKETS)
		return -1;
	bits = q->near_map[from / 64] & UINT64_MAX << from % 64;
	if (bits)
		return (int)(from / 64 * 64 + (unsigned)__builtin_ctzll(bits));
	word = map_next(words, 2, from / 64 + 1);
	if (word < 0)
		return -1;
	return word * 64 + __builtin_ctzll(q->near_map[word]);
}

/* Puts the events of a near bucket, which is now, into the heap. */
static bool open_near(struct event_queue *q, uint32_t i)
{
	uint32_t node = q->near[i], word = i / 64;

	q->near[i] = 0;
	q->near_map[word] &= ~(UINT64_C(1) << i % 64);
	if (!q->near_map[word]) {
		if (word < 64)
			q->near_words &= ~(UINT64_C(1) << word);
		else
			q->near_words_high &= ~(UINT64_C(1) << (word - 64));
	}
	q->tick = (q->tick & ~(uint64_t)(EVENT_NEAR_BUCKETS - 1)) | i;
	while (node) {
		struct event_node *n = &q->nodes[node];
		uint32_t next = n->next;

		if (!heap_push(q, &n->event))
			return false;
		n->next = q->free;
		q->free = node;
		node = next;
	}
	return true;
}

/* Deals out the first bucket of the lowest far level that has one. */
static bool open_far(struct event_queue *q)
{
	for (unsigned level = 0; level < EVENT_FAR_LEVELS; level++) {
		unsigned shift = EVENT_NEAR_BITS + EVENT_FAR_BITS * level;
		int i = map_next(q->far_map[level], EVENT_FAR_BUCKETS / 64, 0);

		if (i < 0)
			continue;
		uint32_t node = q->far[level][i];
		uint64_t above = shift + EVENT_FAR_BITS < 64 ? UINT64_MAX << (shift + EVENT_FAR_BITS) : 0;

		q->far[level][i] = 0;
		q->far_map[level][i / 64] &= ~(UINT64_C(1) << i % 64);
		q->tick = (q->tick & above) | (uint64_t)i << shift;
		while (node) {
			struct event_node *n = &q->nodes[node];
			uint32_t next = n->next;
			uint64_t tick = n->event.time_ps >> q->tick_shift;

			if (tick > q->tick) {
				file(q, node, tick);
			} else {
				if (!heap_push(q, &n->event))
					return false;
				n->next = q->free;
				q->free = node;
			}
			node = next;
		}
		return true;
	}
	return false;
}

bool event_pop(struct event_queue *q, uint64_t until_ps, struct event *e)
{
	while (!q->heap_count) {
		int i;

		if (!q->pending || q->out_of_memory)
			return false;
		i = near_next(q, q->tick % EVENT_NEAR_BUCKETS + 1);
		if (!(i < 0 ? open_far(q) : open_near(q, (uint32_t)i)))
			return false;
	}
	if (q->heap[0].time_ps > until_ps)
		return false;
	*e = q->heap[0];
	heap_pop(q);
	q->pending--;
	return true;
}
