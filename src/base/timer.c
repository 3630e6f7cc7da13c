/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairing heap (Fredman et al. 1986). Invariant: a node's deadline is not before its parent's;
 * children of one parent are a list, the first child's `prev` being the parent.
 */
#include <assert.h>
#include <stddef.h>

#include "base/timer.h"

#include "base/archive.h"

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

/* ---- as bytes: the tree from its root on, each timer with its depth ------------------------------------ */

static struct timer *parent_of(const struct timer *t)
{
	while (t->prev && t->prev->child != t)
		t = t->prev;
	return t->prev;
}

/* The timer behind t in that order, and its depth. */
static struct timer *behind(struct timer *t, uint32_t *depth)
{
	if (t->child) {
		++*depth;
		return t->child;
	}
	for (; t && !t->next; --*depth)
		t = parent_of(t);
	return t ? t->next : NULL;
}

/*
 * Hangs t behind `last`, the one that was hung before, so many levels above a child of it. False, and it is not hung:
 * there are not as many levels.
 */
static bool hang(struct timers *h, struct timer *last, struct timer *t, uint32_t up)
{
	struct timer *sibling = last;

	if (!last) {
		h->root = t;
		return true;
	}
	for (; sibling && up > 1; up--)
		sibling = parent_of(sibling);
	if (!sibling || (up && sibling == h->root))
		return false;
	t->prev = up ? sibling : last;
	*(up ? &sibling->next : &last->child) = t;
	return true;
}

/* Loads one; *depth is that of `last`, which was loaded before it, and becomes its own. */
static void load(struct archive *a, struct timers *h, struct timer *t, struct timer *last, uint32_t *depth)
{
	const struct timer *parent;
	uint64_t deadline_ns = 0;
	uint32_t last_depth = *depth;

	archive_bytes(a, depth, sizeof(*depth));
	archive_time(a, &deadline_ns);
	if (!archive_judge(a, t && !timer_is_set(t) && deadline_ns != TIMER_NEVER) ||
	    !archive_judge(a, last ? *depth && *depth <= last_depth + 1 : !*depth) ||
	    !archive_judge(a, hang(h, last, t, last_depth + 1 - *depth)))
		return;
	t->deadline_ns = deadline_ns;
	parent = parent_of(t);
	archive_judge(a, !parent || parent->deadline_ns <= deadline_ns);
}

void timers_archive(struct archive *a, struct timers *h, uint32_t kind, size_t offset)
{
	struct timer *t = h->root, *last = NULL;
	uint32_t count = 0, depth = 0;

	for (struct timer *i = t; !a->loads && i; i = behind(i, &depth))
		count++;
	count = archive_count(a, count, UINT32_MAX);
	for (depth = 0; count && !a->err; count--) {
		uint8_t *object = archive_refer(a, a->loads ? NULL : (uint8_t *)t - offset, kind);

		if (a->loads) {
			t = object ? (struct timer *)(object + offset) : NULL;
			load(a, h, t, last, &depth);
			last = t;
			continue;
		}
		archive_bytes(a, &depth, sizeof(depth));
		archive_time(a, &t->deadline_ns);
		t = behind(t, &depth);
	}
}
