/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The environment of an engine that runs on this host: CLOCK_MONOTONIC, epoll with an eventfd, a futex, and what
 * proc(5) shows of threads. See env.h.
 */
#include "engine/env.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/clock.h"
#include "io/fd_away.h"
#include "io/uncancelled.h"

enum {
	EVENTS_MAX = IO_FDS_MAX + 3,
	STAT_BYTES = 128 /* up to the state: a number and a name of 16 bytes */
};

static struct env_host *of(struct engine_env *env)
{
	return (struct env_host *)env;
}

/*
 * For a call that waits. It is for so long and not until a time: a program may have another clock than the kernel, by a
 * library that stands before libc (libfaketime).
 */
static struct timespec time_until(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns(), ns = until_ns > now_ns ? until_ns - now_ns : 0;

	return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

static uint64_t now_ns(const struct engine_env *env)
{
	return clock_now_ns();
}

static uint64_t wall_ns(const struct engine_env *env)
{
	return clock_wall_ns();
}

static void wake(struct engine_env *env)
{
	static const uint64_t one = 1;
	int saved = errno;

	if (uncancelled_write(of(env)->wake_fd, &one, sizeof(one)) < 0) {
		/* EAGAIN: the thread is about to wake anyway. */
	}
	errno = saved;
}

static void nap(struct engine_env *env, _Atomic uint32_t *word, uint32_t value, uint64_t until_ns)
{
	struct timespec timeout = time_until(until_ns);

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &timeout, NULL, 0);
}

static void end_nap(struct engine_env *env, _Atomic uint32_t *word)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, NULL, 0);
	errno = saved;
}

static void yield(struct engine_env *env)
{
	sched_yield();
}

static void pause_for(struct engine_env *env, uint64_t ns)
{
	clock_sleep_ns(ns);
}

static int watch(struct engine_env *env, int fd, bool reads)
{
	struct epoll_event ev = {.events = reads ? EPOLLIN : 0, .data.fd = fd};

	if (!epoll_ctl(of(env)->epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		return 0;
	return errno == EEXIST && !epoll_ctl(of(env)->epoll_fd, EPOLL_CTL_MOD, fd, &ev) ? 0 : -errno;
}

static void unwatch(struct engine_env *env, int fd)
{
	epoll_ctl(of(env)->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* epoll with a timeout in nanoseconds, on kernels before 5.11 too. */
static int wait_events(int epoll_fd, struct epoll_event *ev, int max, const struct timespec *timeout)
{
	static bool no_pwait2;
	struct pollfd p = {.fd = epoll_fd, .events = POLLIN};

	if (!no_pwait2) {
		int n = epoll_pwait2(epoll_fd, ev, max, timeout, NULL);

		if (n >= 0 || errno != ENOSYS)
			return n;
		no_pwait2 = true;
	}
	return ppoll(&p, 1, timeout, NULL) > 0 ? epoll_wait(epoll_fd, ev, max, 0) : 0;
}

static size_t wait_for(struct engine_env *env, uint64_t until_ns, struct env_event *events, size_t max)
{
	struct env_host *h = of(env);
	struct timespec timeout = time_until(until_ns);
	uint64_t junk;
	struct epoll_event ev[EVENTS_MAX];
	size_t count = 0;
	int n = wait_events(h->epoll_fd, ev, max < EVENTS_MAX ? (int)max : EVENTS_MAX,
			    until_ns == UINT64_MAX ? NULL : &timeout);

	for (int i = 0; i < n; i++) {
		/* Whoever else read it has woken as well. */
		if (ev[i].data.fd != h->wake_fd)
			events[count++] = (struct env_event){ev[i].data.fd, ev[i].events & EPOLLHUP};
		else if (read(h->wake_fd, &junk, sizeof(junk)) < 0)
			continue;
	}
	return count;
}

/* The clock of a thread's processor time, as pthread_getcpuclockid() makes it, which needs a thread that has not ended.
 */
static clockid_t clock_of(pid_t tid)
{
	return (clockid_t)(~(unsigned)tid << 3 | 6);
}

static uint64_t ran_ns(struct engine_env *env, pid_t tid)
{
	struct timespec t;

	if (!tid || clock_gettime(clock_of(tid), &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The state that proc(5) tells; 0: it does not. */
static char state_of(pid_t tid)
{
	char path[48], text[STAT_BYTES];
	const char *name_end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	name_end = strrchr(text, ')');
	return name_end && name_end[1] ? name_end[2] : 0;
}

static bool is_ready(struct engine_env *env, pid_t tid)
{
	return tid && state_of(tid) == 'R';
}

static void close_host(struct engine_env *env)
{
	struct env_host *h = of(env);

	close(h->epoll_fd);
	close(h->wake_fd);
	h->epoll_fd = h->wake_fd = -1;
}

int env_host_open(struct env_host *h)
{
	int err;

	*h = (struct env_host){
		.env = {.now_ns = now_ns,
			.wall_ns = wall_ns,
			.wake = wake,
			.end_nap = end_nap,
			.yield = yield,
			.pause = pause_for,
			.watch = watch,
			.unwatch = unwatch,
			.ran_ns = ran_ns,
			.is_ready = is_ready,
			.nap = nap,
			.wait = wait_for,
			.close = close_host},
		.epoll_fd = fd_away(epoll_create1(EPOLL_CLOEXEC)),
		.wake_fd = fd_away(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
	};
	err = h->epoll_fd < 0 || h->wake_fd < 0 ? -errno : watch(&h->env, h->wake_fd, true);
	if (!err)
		return 0;
	if (h->epoll_fd >= 0)
		close(h->epoll_fd);
	if (h->wake_fd >= 0)
		close(h->wake_fd);
	return err;
}

/* ---- threads of the program ---- */

static _Thread_local pid_t self;

pid_t env_self(void)
{
	if (!self)
		self = (pid_t)syscall(SYS_gettid);
	return self;
}

void env_forget_self(void)
{
	self = 0;
}
