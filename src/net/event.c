/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event queue. A bucket is a list of nodes that are named by index, so that they can move when
 * their array grows; node 0 stands for no node. Invariants: every event of tick `tick` and before
 * it is in the list of the present tick or in the heap; a near bucket holds one tick that shares
 * all bits above EVENT_NEAR_BITS with `tick` and comes after it; a far bucket of level n holds
 * ticks that first differ from `tick` in the bits of that level, and there are later. The newest
 * event of a bucket comes first in its list, so a reversed list is in order of insertion, which is
 * nearly the order of time for the many events of equal links and packets.
 */
#include "net/event.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	NUMBER_BITS = 56,
	FIRST_NODES = 1024,
	FIRST_HEAP = 64,
	INSERTION_MAX = 24, /* events sorted by insertion; more are merged */
	STEPS_MAX = 64,     /* past other nodes, for all of a list */
	NEAR_WORDS = EVENT_NEAR_BUCKETS / 64
};

static_assert(1 << EVENT_KIND_BITS == EVENT_KINDS, "a kind fits");
static_assert(EVENT_KIND_BITS + NUMBER_BITS == EVENT_CLASS_SHIFT, "order is full");
static_assert(NEAR_WORDS % 64 == 0, "words tell which words are not 0");
static_assert(EVENT_NEAR_BITS + EVENT_FAR_BITS * EVENT_FAR_LEVELS >= 64, "all of time has a bucket");

int event_queue_init(struct event_queue *q, unsigned tick_shift)
{
	memset(q, 0, sizeof(*q));
	q->tick_shift = tick_shift < EVENT_TICK_SHIFT_MAX ? tick_shift : EVENT_TICK_SHIFT_MAX;
	q->node_count = 1; /* node 0 stands for none */
	q->node_size = FIRST_NODES;
	q->nodes = malloc(FIRST_NODES * sizeof(*q->nodes));
	if (q->nodes)
		q->nodes[0] = (struct event_node){0};
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
	q->now = 0;
}

static inline bool before(const struct event *a, const struct event *b)
{
	return a->time_ps < b->time_ps || (a->time_ps == b->time_ps && a->order < b->order);
}

/* Doubles the array, or leaves it and sets out_of_memory. */
static __attribute__((noinline, cold)) void *grow(struct event_queue *q, void *array, uint32_t *size, size_t each)
{
	void *larger = NULL;

	if (*size < UINT32_MAX / 2)
		larger = realloc(array, 2 * (size_t)*size * each);
	if (!larger) {
		q->out_of_memory = true;
		return array;
	}
	*size *= 2;
	return larger;
}

static bool heap_push(struct event_queue *q, const struct event *e)
{
	if (q->heap_count == q->heap_size) {
		q->heap = grow(q, q->heap, &q->heap_size, sizeof(*q->heap));
		if (q->heap_count == q->heap_size)
			return false;
	}
	struct event *heap = q->heap;
	uint32_t i = q->heap_count++;

	while (i > 0 && before(e, &heap[(i - 1) / 2])) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = *e;
	return true;
}

static void heap_pop(struct event_queue *q)
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

	if (__builtin_expect(differs < EVENT_NEAR_BUCKETS, 1)) {
		uint32_t i = tick % EVENT_NEAR_BUCKETS;

		bucket = &q->near[i];
		if (!*bucket) {
			q->near_map[i / 64] |= UINT64_C(1) << i % 64;
			q->near_words[i / 64 / 64] |= UINT64_C(1) << i / 64 % 64;
		}
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

static uint32_t node_new(struct event_queue *q)
{
	uint32_t node = q->free;

	if (node) {
		q->free = q->nodes[node].next;
		return node;
	}
	if (q->node_count == q->node_size) {
		q->nodes = grow(q, q->nodes, &q->node_size, sizeof(*q->nodes));
		if (q->node_count == q->node_size)
			return 0;
	}
	return q->node_count++;
}

void event_push_slow(struct event_queue *q, uint64_t time_ps, uint64_t order, void *object)
{
	const struct event e = {time_ps, order, object};
	uint64_t tick = time_ps >> q->tick_shift;
	uint32_t node;

	if (tick <= q->tick) {
		q->pending += heap_push(q, &e);
		return;
	}
	node = node_new(q);
	if (!node)
		return;
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
	uint64_t bits;
	int word;

	if (from >= EVENT_NEAR_BUCKETS)
		return -1;
	bits = q->near_map[from / 64] & UINT64_MAX << from % 64;
	if (bits)
		return (int)(from / 64 * 64 + (unsigned)__builtin_ctzll(bits));
	word = map_next(q->near_words, NEAR_WORDS / 64, from / 64 + 1);
	if (word < 0)
		return -1;
	return word * 64 + __builtin_ctzll(q->near_map[word]);
}

/* Takes the list of a near bucket whose tick is now. */
static inline uint32_t near_take(struct event_queue *q, uint32_t i)
{
	uint32_t node = q->near[i];

	q->near[i] = 0;
	q->near_map[i / 64] &= ~(UINT64_C(1) << i % 64);
	if (!q->near_map[i / 64])
		q->near_words[i / 64 / 64] &= ~(UINT64_C(1) << i / 64 % 64);
	q->tick = (q->tick & ~(uint64_t)(EVENT_NEAR_BUCKETS - 1)) | i;
	return node;
}

static inline void node_free(struct event_queue *q, uint32_t node)
{
	q->nodes[node].next = q->free;
	q->free = node;
}

static void insertion_sort(struct event *run, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		struct event e = run[i];
		uint32_t at = i;

		while (at > 0 && before(&e, &run[at - 1])) {
			run[at] = run[at - 1];
			at--;
		}
		run[at] = e;
	}
}

/* Merges two neighbouring runs, the first by way of the scratch space. */
static void merge(struct event *run, uint32_t first, uint32_t count, struct event *scratch)
{
	uint32_t i = 0, j = first, at = 0;

	if (!before(&run[first], &run[first - 1]))
		return;
	memcpy(scratch, run, first * sizeof(*run));
	while (i < first && j < count)
		run[at++] = before(&run[j], &scratch[i]) ? run[j++] : scratch[i++];
	memcpy(&run[at], &scratch[i], (first - i) * sizeof(*run));
}

static void sort(struct event *run, uint32_t count, struct event *scratch)
{
	for (uint32_t i = 0; i < count; i += INSERTION_MAX)
		insertion_sort(&run[i], count - i < INSERTION_MAX ? count - i : INSERTION_MAX);
	for (uint32_t width = INSERTION_MAX; width < count; width *= 2) {
		for (uint32_t i = 0; i + width < count; i += 2 * width)
			merge(&run[i], width, count - i < 2 * width ? count - i : 2 * width, scratch);
	}
}

/* Sorts the events of a list by way of the heap's memory: the heap is empty. */
static bool sort_list(struct event_queue *q, uint32_t list)
{
	uint32_t count = 0;

	for (uint32_t node = list; node; node = q->nodes[node].next) {
		while (2 * count + 2 > q->heap_size) {
			q->heap = grow(q, q->heap, &q->heap_size, sizeof(*q->heap));
			if (q->out_of_memory)
				return false;
		}
		q->heap[count++] = q->nodes[node].event;
	}
	sort(q->heap, count, &q->heap[count]);
	count = 0;
	for (uint32_t node = list; node; node = q->nodes[node].next)
		q->nodes[node].event = q->heap[count++];
	return true;
}

/*
 * The list of a tick that is now, put in order. Most nodes, taken newest first, belong at the front
 * of the list built so far; where many do not, the rest is sorted at once.
 */
static bool open_list(struct event_queue *q, uint32_t node)
{
	struct event_node *nodes = q->nodes;
	uint32_t list = 0;
	int steps = STEPS_MAX;

	while (node) {
		uint32_t next = nodes[node].next, *at = &list;

		while (*at && steps > 0 && before(&nodes[*at].event, &nodes[node].event)) {
			at = &nodes[*at].next;
			steps--;
		}
		nodes[node].next = *at;
		*at = node;
		node = next;
	}
	q->now = list;
	return steps > 0 || sort_list(q, list);
}

/* Reverses a list, so that its nodes are filed again in their first order. */
static uint32_t reversed(struct event_queue *q, uint32_t node)
{
	uint32_t last = 0;

	while (node) {
		uint32_t next = q->nodes[node].next;

		q->nodes[node].next = last;
		last = node;
		node = next;
	}
	return last;
}

/* Deals out the first bucket of the lowest far level that has one. */
static bool open_far(struct event_queue *q)
{
	for (unsigned level = 0; level < EVENT_FAR_LEVELS; level++) {
		unsigned shift = EVENT_NEAR_BITS + EVENT_FAR_BITS * level;
		int i = map_next(q->far_map[level], EVENT_FAR_BUCKETS / 64, 0);

		if (i < 0)
			continue;
		uint32_t node = reversed(q, q->far[level][i]);
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
				node_free(q, node);
			}
			node = next;
		}
		return true;
	}
	return false;
}

/* Makes sure that the present tick or the heap has an event. */
static bool advance(struct event_queue *q)
{
	while (!q->heap_count) {
		int i;

		if (!q->pending || q->out_of_memory)
			return false;
		i = near_next(q, q->tick % EVENT_NEAR_BUCKETS + 1);
		if (i >= 0)
			return open_list(q, near_take(q, (uint32_t)i));
		if (!open_far(q))
			return false;
	}
	return true;
}

/* The heap's first event, which stays in a node so that it can be lent. */
static const struct event *pop_heap(struct event_queue *q)
{
	uint32_t node = node_new(q);

	if (!node)
		return NULL;
	q->nodes[node].event = q->heap[0];
	heap_pop(q);
	node_free(q, node);
	q->pending--;
	return &q->nodes[node].event;
}

const struct event *event_pop_slow(struct event_queue *q, uint64_t until_ps)
{
	struct event_node *n;

	if (!q->now && !q->heap_count && !advance(q))
		return NULL;
	n = &q->nodes[q->now];
	if (q->heap_count && (!q->now || before(&q->heap[0], &n->event)))
		return q->heap[0].time_ps > until_ps ? NULL : pop_heap(q);
	if (n->event.time_ps > until_ps)
		return NULL;
	uint32_t node = q->now;

	q->now = n->next;
	node_free(q, node);
	q->pending--;
	return &n->event;
}

const struct event *event_peek(struct event_queue *q)
{
	if (!q->now && !q->heap_count && !advance(q))
		return NULL;
	if (q->heap_count && (!q->now || before(&q->heap[0], &q->nodes[q->now].event)))
		return &q->heap[0];
	return &q->nodes[q->now].event;
}

uint64_t event_next_ps(struct event_queue *q)
{
	const struct event *e = event_peek(q);

	return e ? e->time_ps : UINT64_MAX;
}
