/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of a program in simulated time run one at a time. The library that is preloaded (preload.c) stands before the
 * calls in which threads wait: a thread that has slept in one of them waits for the baton before it goes on. When all
 * threads are asleep, the engine's thread passes the baton to the next one that waits for it, in the order of their
 * creation, so which one runs does not depend on the kernel.
 *
 * A thread goes on without the baton if it has slept in a call that the library does not know, or was not made by
 * pthread_create(). pthread_create() makes 1023 threads at a time at most.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BATON_SYMBOL "verbena_baton"

struct baton {
	/* The engine's thread, once: from now on threads wait for the baton. It never does itself. */
	void (*begin)(void);
	/* The engine's thread, when all others are asleep: wakes the next that waits. False: none does. */
	bool (*pass)(void);
	/* A thread that has slept waits for its turn. */
	void (*take)(void);
	/* Set before begin(). A thread waits for the baton; and lets so much time pass. */
	void (*wants)(void *ctx);
	void (*pause)(void *ctx, uint64_t ns);
	void *ctx;
};

/* The library's; found by its name elsewhere. */
extern struct baton verbena_baton;
