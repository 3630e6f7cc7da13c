/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an engine has from outside: the time, ways to wait for it, and what its packets go through. The host's is made
 * by env_host_open(); engine_set_env() gives the engines of a process another one, whose time need not be that of the
 * world. Nothing else in src/engine reads a clock or lets time pass.
 *
 * An environment is of one engine, which *borrows* it until it calls close(). Everything in it is called with `env`
 * itself. No call is a cancellation point but where it says so.
 *
 * Private to src/engine.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/config.h"
#include "engine/gids.h"
#include "io/io.h"
#include "io/udp/udp.h"

struct engine_env;

/* Something has happened on a watched descriptor. */
struct env_event {
	int fd;
	bool hung_up; /* its other end is closed */
};

/* What an environment that opens no sockets says of the engine's port. Zeroed before the call that fills it. */
struct env_port {
	struct io *io; /* packets go through it; *taken* by the engine */
	struct gid_table gids;
	unsigned slot;  /* the high bits of its QPNs */
	uint32_t paths; /* UDP source ports, of which packets may have any */
	uint16_t sport_ipv4[UDP_PATHS_MAX];
	uint16_t sport_ipv6[UDP_PATHS_MAX];
	size_t rcvbuf_bytes; /* what a receiver has room for, as udp_rcvbuf_bytes() */
};

struct engine_env {
	/* The time of the engine, which may be behind that of the clock and may stand still: env_now_ns(). Zero at first. */
	_Atomic uint64_t behind_ns;
	_Atomic uint64_t stands_at_ns; /* 0: it does not */

	/* ---- any thread ---- */

	/* The clock, in nanoseconds, which is never set back; and the wall clock, since 1970. */
	uint64_t (*now_ns)(const struct engine_env *);
	uint64_t (*wall_ns)(const struct engine_env *);
	/* Ends a wait() that lasts, or the next one. errno stays. */
	void (*wake)(struct engine_env *);
	/* Ends a nap() that lasts. The caller has changed *word before. errno stays. */
	void (*end_nap)(struct engine_env *, _Atomic uint32_t *word);
	/* Others that want the processor have it first. */
	void (*yield)(struct engine_env *);
	/*
	 * NULL: time passes by itself. Otherwise a thread of the program has polled, nothing has moved, and this sleeps
	 * until something may have, or returns at once if that was since the thread's last such call.
	 */
	void (*idle)(struct engine_env *);
	/* NULL where idle is. Before a thread of the program posts: time becomes what its clocks have shown it. It may sleep. */
	void (*catch_up)(struct engine_env *);
	/* Lets so much time pass. A cancellation point. */
	void (*pause)(struct engine_env *, uint64_t ns);
	/*
	 * Events of that descriptor end wait(): that there is something to read, if `reads`; that its other end is
	 * closed, always, and again at each wait() until it is closed here. For one that is watched `reads` is
	 * changed. 0 or a negative errno.
	 */
	int (*watch)(struct engine_env *, int fd, bool reads);
	/* They end it no more. Before that descriptor is closed, if other processes have it too. */
	void (*unwatch)(struct engine_env *, int fd);

	/* ---- the engine's thread alone. It begins with a wait() until now. Times are the clock's: env_clock_ns() ---- */

	/* Sleeps until until_ns at most, and not at all unless *word is `value`. It may return sooner. */
	void (*nap)(struct engine_env *, _Atomic uint32_t *word, uint32_t value, uint64_t until_ns);
	/*
	 * Sleeps until something has happened on a watched descriptor, wake() is called or has been since the last
	 * wait(), or until until_ns (UINT64_MAX: for good). Returns how many events it has written, at most max, which
	 * is 0 if it returned for another reason. The rest comes with the next call.
	 */
	size_t (*wait)(struct engine_env *, uint64_t until_ns, struct env_event *, size_t max);
	/* How long a thread of this process has run, in nanoseconds; 0: there is none, or that is not known. */
	uint64_t (*ran_ns)(struct engine_env *, pid_t tid);
	/* Whether it runs or wants to: it is neither asleep nor stopped. False where that is not known. */
	bool (*is_ready)(struct engine_env *, pid_t tid);

	/* ---- the engine's start and end ---- */

	/* NULL: random numbers are the kernel's. Otherwise writes others; false: there are none. */
	bool (*draw)(struct engine_env *, void *, size_t bytes);
	/*
	 * NULL: packets go through the host's own back end, as the settings say, and addresses are the host's.
	 * Otherwise this is in place of that; the counters are *lent* until the io is closed. 0, or a negative errno
	 * with a sentence in why.
	 */
	int (*open_port)(struct engine_env *, const struct config *, struct io_counters *, struct env_port *, char *why,
			 size_t why_bytes);
	/*
	 * The engine has ended, or its process is a child of fork, whose engine is none: what it has of the host is
	 * released. Clocks and yield() go on, for calls into such an engine do nothing else.
	 */
	void (*close)(struct engine_env *);
};

/* The host's: see env_host.c. */
struct env_host {
	struct engine_env env;
	int epoll_fd;
	int wake_fd;
};

/* 0 or a negative errno, with nothing to close. */
int env_host_open(struct env_host *);

/* The environment of the engine of a device, or NULL: the host's. */
typedef struct engine_env *engine_env_fn(unsigned device);
/* Before the first engine_get(): where engines get their environment. */
void engine_set_env(engine_env_fn *);

/* The calling thread, as gettid(2) says; it is asked once. */
pid_t env_self(void);
/* In a child of fork, whose thread has another number. */
void env_forget_self(void);

/*
 * Now, on the clock that everything in the engine goes by. What was read before a stop and is used after it is a time in
 * the past, and never one in future: the clock is looked at first.
 */
static inline uint64_t env_now_ns(const struct engine_env *env)
{
	uint64_t clock_ns = env->now_ns(env);
	uint64_t stands_at_ns = atomic_load_explicit(&env->stands_at_ns, memory_order_acquire);

	if (__builtin_expect(stands_at_ns != 0, 0))
		return stands_at_ns;
	return clock_ns - atomic_load_explicit(&env->behind_ns, memory_order_relaxed);
}

/* The clock's time when that of the engine will be `ns`, unless it stands meanwhile. UINT64_MAX stays. */
static inline uint64_t env_clock_ns(const struct engine_env *env, uint64_t ns)
{
	return ns == UINT64_MAX ? ns : ns + atomic_load_explicit(&env->behind_ns, memory_order_relaxed);
}

/* One thread at a time: from now on the engine's time stands still; and it goes on from there. */
void env_stop_time(struct engine_env *);
void env_let_time_go_on(struct engine_env *);
