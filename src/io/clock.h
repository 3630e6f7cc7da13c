/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's clocks, for what deals with the host itself: its sockets, its other processes, tools. What serves an
 * engine has its time from the engine's environment (engine/env.h): as an argument, or, if it needs it later, by a
 * struct io_clock.
 */
#pragma once

#include <stdint.h>
#include <time.h>

/* The time of an engine, as it is at the call. The ctx is *borrowed* by whom the clock is given to. */
struct io_clock {
	uint64_t (*now_ns)(const void *ctx); /* NULL: there is none */
	const void *ctx;
};

static inline uint64_t clock_read_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* CLOCK_MONOTONIC, which is never set back. */
static inline uint64_t clock_now_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

static inline uint64_t clock_now_ms(void)
{
	return clock_now_ns() / 1000000;
}

/* Since 1970. */
static inline uint64_t clock_wall_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

/* Sleeps that long, or until a signal is handled. */
static inline void clock_sleep_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	nanosleep(&t, NULL);
}
