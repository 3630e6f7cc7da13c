/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock for sections of a few hundred instructions that several threads of the program may enter.
 * A waiting thread gives the processor away after a while, because on a small machine the holder
 * may not be running.
 *
 * Private to src/verbs.
 */
#pragma once

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "engine/engine.h"

#if defined(__x86_64__) || defined(__i386__)
#define spin_pause() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define spin_pause() __asm__ volatile("yield")
#else
#define spin_pause() ((void)0)
#endif

struct spin {
	atomic_int held;
};

static inline bool spin_trylock(struct spin *s)
{
	return !atomic_exchange_explicit(&s->held, 1, memory_order_acquire);
}

/*
 * Takes the lock, waiting for it. 0, or EIO in a child of fork(): the holder may be a thread of the parent's, which
 * does not exist here to release it.
 */
static inline int spin_lock(struct spin *s, const struct engine *e)
{
	for (unsigned int turns = 1; !spin_trylock(s); turns++) {
		if (turns % 64)
			spin_pause();
		else if (engine_is_lost(e))
			return EIO;
		else
			sched_yield();
	}
	return 0;
}

static inline void spin_unlock(struct spin *s)
{
	atomic_store_explicit(&s->held, 0, memory_order_release);
}
