/* SPDX-License-Identifier: BSD-2-Clause */
/* What will happen on a channel in virtual time: a binary heap by time; of equal times the earlier
 * added first. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum { EVENTS_MAX = 65536 };

struct event {
	uint64_t at_ns, order;
	uint32_t kind, index;
};

struct events {
	struct event heap[EVENTS_MAX];
	uint32_t count;
	uint64_t added;
};

static inline bool events_before(const struct events *e, uint32_t a, uint32_t b)
{
	if (e->heap[a].at_ns != e->heap[b].at_ns)
		return e->heap[a].at_ns < e->heap[b].at_ns;
	return e->heap[a].order < e->heap[b].order;
}

static inline void events_swap(struct events *e, uint32_t a, uint32_t b)
{
	struct event t = e->heap[a];

	e->heap[a] = e->heap[b];
	e->heap[b] = t;
}

static inline void events_add(struct events *e, uint64_t at_ns, uint32_t kind, uint32_t index)
{
	uint32_t i = e->count++;

	assert(e->count < EVENTS_MAX);
	e->heap[i] = (struct event){at_ns, e->added++, kind, index};
	for (; i && events_before(e, i, (i - 1) / 2); i = (i - 1) / 2)
		events_swap(e, i, (i - 1) / 2);
}

static inline struct event events_take(struct events *e)
{
	struct event taken = e->heap[0];
	uint32_t i = 0, least = 0;

	events_swap(e, 0, --e->count);
	for (;;) {
		for (uint32_t k = 2 * i + 1; k <= 2 * i + 2; k++) {
			if (k < e->count && events_before(e, k, least))
				least = k;
		}
		if (least == i)
			return taken;
		events_swap(e, i, least);
		i = least;
	}
}
