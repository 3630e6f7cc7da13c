/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the preloaded library share.
 *
 * Private to src/lockstep.
 */
#pragma once

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lockstep/lockstep.h"

#define OURS __attribute__((visibility("default")))

/* NULL: not in simulated time. */
extern const struct lockstep_page *preload_page;

/* The number of the host. */
uint32_t preload_host(void);
/* The calling thread is one of those that run one at a time. */
bool preload_takes_part(void);
/* It has slept, and waits for its turn. errno stays. */
void preload_take(void);
/* Whether a call on a descriptor would return at once. errno stays. */
bool preload_is_ready(int fd, short events);

/* The next definition of a call, looked up once. */
#define NEXT(name)                                                                           \
	({                                                                                   \
		static __typeof__(&name) _Atomic next;                                       \
		__typeof__(&name) found = atomic_load_explicit(&next, memory_order_relaxed); \
		if (!found) {                                                                \
			found = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                  \
			atomic_store_explicit(&next, found, memory_order_relaxed);           \
		}                                                                            \
		found;                                                                       \
	})

/* The call, which may sleep, and then the thread's turn. */
#define SLEEPS(type, call)         \
	({                         \
		type slept = call; \
		preload_take();    \
		slept;             \
	})
