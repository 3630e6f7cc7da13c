/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlines in one intrusive pairing heap: no memory of its own, O(1) to set, O(log n) amortised to
 * take the earliest. The caller chooses the clock; it counts nanoseconds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMER_NEVER UINT64_MAX

struct timer {
	uint64_t deadline_ns; /* TIMER_NEVER when not set */
	struct timer *child;
	struct timer *next;
	struct timer *prev; /* left sibling, or the parent of a first child; NULL at the root */
};

struct timers {
	struct timer *root;
};

/* Not set. */
void timer_init(struct timer *);
static inline bool timer_is_set(const struct timer *t)
{
	return t->deadline_ns != TIMER_NEVER;
}

/* Sets or moves; deadline_ns must not be TIMER_NEVER. */
void timer_set(struct timers *, struct timer *, uint64_t deadline_ns);
/* Harmless on a timer that is not set. */
void timer_cancel(struct timers *, struct timer *);
/* The earliest deadline, or TIMER_NEVER. */
static inline uint64_t timers_deadline(const struct timers *h)
{
	return h->root ? h->root->deadline_ns : TIMER_NEVER;
}

/* Takes the earliest timer due at now_ns out of the heap, or returns NULL. */
struct timer *timers_take_due(struct timers *, uint64_t now_ns);

struct archive;
/*
 * Which timers of objects of that kind are set, so far behind their beginnings, and their order, even of those that
 * are due at the same time. Loading, none is set.
 */
void timers_archive(struct archive *, struct timers *, uint32_t kind, size_t offset);
