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
#include <sys/types.h>
#include <time.h>

#include "lockstep/lockstep.h"

#define OURS __attribute__((visibility("default")))

enum {
	PRELOAD_THREADS_MAX = 1024,
	PRELOAD_FD_FIRST = 900, /* of descriptors of our own: programs have the low ones */
	BILLION = 1000000000
};

/* NULL: not in simulated time. */
extern const struct lockstep_page *preload_page;

/* The number of the host. */
uint32_t preload_host(void);
/* The calling thread is one of those that run one at a time. */
bool preload_takes_part(void);
/* It is, and does not wait for its turn. */
bool preload_runs(void);
/* It will be, once the device is open. */
bool preload_is_counted(void);
/* Of a thread that takes part: its number, below PRELOAD_THREADS_MAX. */
unsigned preload_place(void);
/* It has slept, and waits for its turn. errno stays. */
void preload_take(void);
/* Whether a call on a descriptor would return at once. errno stays. */
bool preload_is_ready(int fd, short events);
/* It is a socket of TCP between programs. errno stays. */
bool preload_is_tcp(int fd);
/* Simulated time. */
uint64_t preload_now_ns(void);
/* A descriptor of the library's own, away from the program's; takes fd, which may be -1. */
int preload_fd_away(int fd);

/*
 * The calling thread sleeps until simulated time is until_ns. 0, or -1: a signal has come, errno is EINTR. Before the
 * device is open no time passes, and a sleep ends at once.
 */
int waits_sleep(uint64_t until_ns);
/* When the first thread's limit is there, and wakes all whose limit is: as those of struct baton. */
uint64_t waits_next_ns(void);
void waits_expire(uint64_t now_ns);
/* The thread in this place ends. */
void waits_leave(unsigned place);

/* What the clocks of the calling thread show, as simulated time; the thread may sleep in it. errno stays. */
uint64_t clocks_read_ns(void);
/* They show more than the time that others see. */
bool clocks_are_ahead(void);
/* Before the thread does something that others may see: time becomes what it has read. errno stays. */
void clocks_catch_up(void);

/* The processor's counter becomes one of simulated time (counter.c). */
void counter_find(void);
/* As of struct baton. */
void counter_look_at(pid_t tid);
/* The calling thread reads a clock, and so does more than to read memory. */
void counter_forget(void);
/* How often the calling thread was: a signal that interrupts a call. */
unsigned counter_looks(void);

/* The same for timers. */
uint64_t timers_next_ns(void);
void timers_expire(uint64_t now_ns);

/* Later by so much, UINT64_MAX at most. */
static inline uint64_t later_ns(uint64_t now_ns, uint64_t ns)
{
	return ns < UINT64_MAX - now_ns ? now_ns + ns : UINT64_MAX;
}

static inline bool timespec_is_valid(const struct timespec *t)
{
	return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < BILLION;
}

static inline uint64_t timespec_ns(const struct timespec *t)
{
	uint64_t s = (uint64_t)t->tv_sec;

	return s < UINT64_MAX / BILLION ? s * BILLION + (uint64_t)t->tv_nsec : UINT64_MAX;
}

static inline struct timespec ns_timespec(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / BILLION), (long)(ns % BILLION)};
}

/* A moment of the wall clock or of another one, which never come near each other, as simulated time; at least 1. */
static inline uint64_t moment_ns(const struct timespec *t)
{
	uint64_t ns = timespec_ns(t);

	if (ns >= LOCKSTEP_WALL_NS)
		ns -= LOCKSTEP_WALL_NS;
	return ns ? ns : 1;
}

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
		clocks_catch_up(); \
		type slept = call; \
		preload_take();    \
		slept;             \
	})
