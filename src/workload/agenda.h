/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is due, and when: values in a binary heap, by time, and by the caller's order at one time. Of what moves or is cancelled
 * base/timer.h is the heap.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define AGENDA_NEVER UINT64_MAX

struct agenda_item {
	uint64_t at;    /* in the caller's unit */
	uint64_t order; /* no two of one time have the same */
	void *subject;  /* the caller's, like `what` */
	uint32_t what;
};

/* Zeroes are an empty one. */
struct agenda {
	struct agenda_item *items;
	uint32_t count, room;
};

void agenda_free(struct agenda *);

/* Room for so many items in all, so that agenda_add() does not fail. False: no memory, and nothing has changed. */
bool agenda_make_room(struct agenda *, uint64_t items);
/* There is room. */
void agenda_add(struct agenda *, struct agenda_item);
/* The first, taken out; there is one. */
struct agenda_item agenda_take(struct agenda *);

/* When the first is due; AGENDA_NEVER: there is none. */
static inline uint64_t agenda_due(const struct agenda *a)
{
	return a->count ? a->items[0].at : AGENDA_NEVER;
}

static inline bool agenda_is_due(const struct agenda *a, uint64_t now)
{
	return a->count && a->items[0].at <= now;
}
