/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of a program in simulated time run one at a time. The library that is preloaded (preload.c) stands before the
 * calls in which threads wait: a thread that has slept in one of them waits for the baton before it goes on. When all
 * threads are asleep, the engine's thread passes the baton to the next one that waits for it, in the order of their
 * creation, so which one runs does not depend on the kernel.
 *
 * A thread that waits with a limit, and a timer, have a time at which something happens. The engine's thread lets
 * simulated time go no further than the first of these, and then tells the library that it is there.
 *
 * A thread goes on without the baton if it has slept in a call that the library does not know, or was not made by
 * pthread_create(). pthread_create() makes 1023 threads at a time at most.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BATON_SYMBOL "verbena_baton"

struct baton {
	/* From now on threads wait for the baton, but for the next one that the caller makes: the engine's. */
	void (*begin)(void);
	/* There will be no engine. */
	void (*end)(void);
	/* The engine's thread, when all others are asleep: wakes the next that waits. False: none does. */
	bool (*pass)(void);
	/* A thread that has slept waits for its turn. */
	void (*take)(void);
	/* Before a thread does something that others may see: time becomes what it has read from its clocks. It may sleep. */
	void (*catch_up)(void);
	/* The engine's thread: when the first limit or timer is there, nanoseconds of the page; UINT64_MAX: none is set. */
	uint64_t (*next_ns)(void);
	/* The engine's thread: wakes those whose time has come. */
	void (*expire)(uint64_t now_ns);
	/*
	 * The engine's thread, now and then while this thread runs: if all that it does is to read memory until that changes,
	 * it goes to sleep until something has happened.
	 */
	void (*look_at)(pid_t tid);
	/* Set before begin(). A thread waits for the baton; and sleeps until something has happened. */
	void (*wants)(void *ctx);
	void (*idle)(void *ctx);
	void *ctx;
};

/* The library's; found by its name elsewhere. */
extern struct baton verbena_baton;
