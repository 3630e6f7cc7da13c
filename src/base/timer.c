/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairing heap (Fredman et al. 1986). Invariant: a node's deadline is not before its parent's;
 * children of one parent are a list, the first child's `prev` being the parent.
 */
#include <assert.h>
#include <stddef.h>

#include "base/timer.h"

void timer_init(struct timer *t)
{
	*t = (struct timer){.deadline_ns = TIMER_NEVER};
}

/* Both are roots or NULL; returns the root of the union. */
static struct timer *meld(struct timer *a, struct timer *b)
{
	if (!a || !b)
		return a ? a : b;
	if (b->deadline_ns < a->deadline_ns) {
		struct timer *t = a;

		a = b;
		b = t;
	}
	b->next = a->child;
	if (a->child)
		a->child->prev = b;
	b->prev = a;
	a->child = b;
	a->next = NULL;
	a->prev = NULL;
	return a;
}

/* Two passes over a list of siblings: pairs from the left, then together from the right. */
static struct timer *meld_siblings(struct timer *first)
{
	struct timer *pairs = NULL, *root = NULL;

	while (first) {
		struct timer *a = first, *b = first->next;

		first = b ? b->next : NULL;
		a->next = NULL;
		a->prev = NULL;
		if (b) {
			b->next = NULL;
			b->prev = NULL;
		}
		a = meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		struct timer *rest = pairs->next;

		pairs->next = NULL;
		root = meld(root, pairs);
		pairs = rest;
	}
	return root;
}

void timer_set(struct timers *h, struct timer *t, uint64_t deadline_ns)
{
	assert(deadline_ns != TIMER_NEVER);
	timer_cancel(h, t);
	t->deadline_ns = deadline_ns;
	h->root = meld(h->root, t);
}

void timer_cancel(struct timers *h, struct timer *t)
{
	struct timer *sub;

	if (!timer_is_set(t))
		return;
	sub = meld_siblings(t->child);
	if (t == h->root) {
		h->root = sub;
	} else {
		if (t->prev->child == t)
			t->prev->child = t->next;
		else
			t->prev->next = t->next;
		if (t->next)
			t->next->prev = t->prev;
		h->root = meld(h->root, sub);
	}
	timer_init(t);
}

struct timer *timers_take_due(struct timers *h, uint64_t now_ns)
{
	struct timer *t = h->root;

	if (!t || t->deadline_ns > now_ns)
		return NULL;
	timer_cancel(h, t);
	return t;
}
