/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's lock: a combining lock in one word. Its holder does the work that others leave
 * behind, so leaving work costs one atomic operation and never a wait.
 *
 * The word is (waiters << 2 | pending << 1 | held). Every transition is one compare-and-swap on it,
 * so all of them are in one total order; the arguments below need nothing else.
 *
 *   - No work is lost. A leaver makes its work visible first, then calls lock_take_or_pend(). That
 *     either takes the lock, or sets `pending` while the word still says that a holder, or a waiter
 *     sure to become one, is there. A holder lets go only by a swap from a word whose `pending` is
 *     clear, so it sees the bit, and by acquire/release the work, before it can release the lock.
 *   - A waiter does not starve. Takers that need not have the lock (pollers, leavers) yield to
 *     waiters: they take the word only when it is all zero. Only a waiter that gets no processor is
 *     overtaken, by takers that have first given it theirs: lock_pass().
 *   - No system call unless somebody sleeps in lock_wait().
 *
 * Not recursive.
 *
 * Private to src/engine.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lock {
	_Atomic uint32_t word;
};

enum { LOCK_HELD = 1, LOCK_PENDING = 2, LOCK_WAITER = 4 };

static inline void lock_init(struct lock *l)
{
	atomic_init(&l->word, 0);
}

/* True if the lock is the caller's now. */
static inline bool lock_try(struct lock *l)
{
	uint32_t free = 0;

	return atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
	       atomic_compare_exchange_strong(&l->word, &free, LOCK_HELD);
}

/*
 * As lock_try(), but overtakes waiters. For a caller that tried many times and gave its processor away in
 * between: a waiter that still has not taken a free lock has no processor, and all others would wait for
 * it.
 */
static inline bool lock_pass(struct lock *l)
{
	uint32_t w = atomic_load_explicit(&l->word, memory_order_relaxed);

	return !(w & LOCK_HELD) && atomic_compare_exchange_strong(&l->word, &w, w | LOCK_HELD);
}

/* True if the caller has the lock now; otherwise its holder will find the caller's work. */
bool lock_take_or_pend(struct lock *);

/* Takes the lock, blocking. */
void lock_wait(struct lock *);

/*
 * Holder: releases the lock and returns true, or returns false and keeps it because work was left;
 * the caller does that work and calls again.
 */
bool lock_release(struct lock *);

/* Holder, a hint: somebody blocks in lock_wait(). */
static inline bool lock_is_wanted(const struct lock *l)
{
	return atomic_load_explicit(&l->word, memory_order_relaxed) >= LOCK_WAITER;
}
