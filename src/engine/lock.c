/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's lock; lock.h has the argument why no work is lost. */
#include "engine/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPINS_BEFORE_SLEEP = 200 };

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

bool lock_take_or_pend(struct lock *l)
{
	uint32_t w = atomic_load(&l->word);

	for (;;) {
		if (w == 0) {
			if (atomic_compare_exchange_weak(&l->word, &w, LOCK_HELD))
				return true;
		} else if (w & LOCK_PENDING) {
			/*
			 * A read would be enough on x86; the swap orders our work before the
			 * present bit.
			 */
			if (atomic_compare_exchange_weak(&l->word, &w, w))
				return false;
		} else if (w & LOCK_HELD || w >= LOCK_WAITER) {
			if (atomic_compare_exchange_weak(&l->word, &w, w | LOCK_PENDING))
				return false;
		}
	}
}

void lock_wait(struct lock *l)
{
	uint32_t w = 0;
	int spins = 0;

	if (atomic_compare_exchange_strong(&l->word, &w, LOCK_HELD))
		return;
	w = atomic_fetch_add(&l->word, LOCK_WAITER) + LOCK_WAITER;
	for (;;) {
		if (!(w & LOCK_HELD)) {
			if (atomic_compare_exchange_weak(&l->word, &w, (w - LOCK_WAITER) | LOCK_HELD))
				return;
		} else if (spins++ < SPINS_BEFORE_SLEEP) {
			pause_cpu();
			w = atomic_load(&l->word);
		} else {
			syscall(SYS_futex, &l->word, FUTEX_WAIT_PRIVATE, w, NULL, NULL, 0);
			w = atomic_load(&l->word);
		}
	}
}

bool lock_release(struct lock *l)
{
	uint32_t w = atomic_load_explicit(&l->word, memory_order_relaxed);

	for (;;) {
		if (w & LOCK_PENDING) {
			atomic_fetch_and(&l->word, ~(uint32_t)LOCK_PENDING);
			return false;
		}
		if (atomic_compare_exchange_weak(&l->word, &w, w & ~(uint32_t)LOCK_HELD))
			break;
	}
	if (w >= LOCK_WAITER)
		syscall(SYS_futex, &l->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, NULL, 0);
	return true;
}
