/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls in which a program waits: for descriptors, conditions and semaphores, and for a time.
 *
 * A thread that waits notes until when, and sleeps in the kernel's ppoll() for the descriptors of the call and one of its
 * own, by which it is woken when its time has come, or when what it waits for has happened. Who wakes it takes the note
 * away first, so a thread is woken once. When it has the baton again, it looks whether it has what it waited for; so if
 * that came at the last moment, it has come.
 *
 * Conditions are kept here alone: a thread that the kernel wakes from one would take the mutex at once, beside the
 * thread that has the baton. Threads that wait for one condition are woken in the order in which they came.
 */
#undef _FORTIFY_SOURCE /* the calls are defined here, not called */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lockstep/preload.h"

enum {
	FEW = 64,            /* descriptors that need no memory */
	CONDITION_SHARED = 1 /* of glibc's own: threads of other processes may wait for it */
};

struct waiter {
	_Atomic uint64_t until_ns;  /* 0: it does not wait, or has been woken */
	const void *_Atomic object; /* what it waits for; NULL: nothing that has an address */
	_Atomic uint64_t order;
	atomic_bool late; /* it was woken because its time had come */
	int fd;           /* readable: it has been woken; 0: not made yet */
};

static struct waiter waiters[PRELOAD_THREADS_MAX];
static _Atomic unsigned places; /* that have ever been used */
static _Atomic uint64_t orders;

static const struct timespec at_once;

/* ---- who wakes whom ---- */

static bool wake(struct waiter *w, bool late)
{
	uint64_t one = 1;

	if (!atomic_exchange(&w->until_ns, 0))
		return false;
	atomic_store(&w->late, late);
	return syscall(SYS_write, w->fd, &one, sizeof(one)) > 0;
}

/* The one that has waited longest; NULL: none does. */
static struct waiter *first_of(const void *object)
{
	struct waiter *first = NULL;

	for (unsigned i = 0; i < places; i++) {
		struct waiter *w = &waiters[i];

		if (w->until_ns && w->object == object && (!first || w->order < first->order))
			first = w;
	}
	return first;
}

static bool wake_first(const void *object)
{
	struct waiter *w;
	int saved = errno;
	bool woken = false;

	while (!woken && (w = first_of(object)))
		woken = wake(w, false);
	errno = saved;
	return woken;
}

uint64_t waits_next_ns(void)
{
	uint64_t first_ns = UINT64_MAX;

	for (unsigned i = 0; i < places; i++) {
		uint64_t until_ns = waiters[i].until_ns;

		if (until_ns && until_ns < first_ns)
			first_ns = until_ns;
	}
	return first_ns;
}

void waits_expire(uint64_t now_ns)
{
	for (unsigned i = 0; i < places; i++) {
		uint64_t until_ns = waiters[i].until_ns;

		if (until_ns && until_ns <= now_ns)
			wake(&waiters[i], true);
	}
}

/* ---- the thread that waits ---- */

/* NULL: there are no descriptors left. */
static struct waiter *note(const void *object, uint64_t until_ns)
{
	unsigned place = preload_place(), seen = places;
	struct waiter *w = &waiters[place];

	if (w->fd <= 0)
		w->fd = preload_fd_away(eventfd(0, EFD_CLOEXEC));
	if (w->fd < 0)
		return NULL;
	while (seen <= place && !atomic_compare_exchange_weak(&places, &seen, place + 1))
		;
	w->object = object;
	w->order = ++orders;
	w->late = false;
	atomic_store(&w->until_ns, until_ns);
	return w;
}

static void forget(struct waiter *w)
{
	uint64_t count;

	if (!atomic_exchange(&w->until_ns, 0))
		syscall(SYS_read, w->fd, &count, sizeof(count)); /* it has been woken, or is this very moment */
}

void waits_leave(unsigned place)
{
	struct waiter *w = &waiters[place];

	atomic_store(&w->until_ns, 0);
	if (w->fd > 0)
		close(w->fd);
	w->fd = 0;
}

/* As ppoll(), until a descriptor is ready, it is woken, or a signal has come. 0 or -1. */
static int sleep_for(struct waiter *w, const struct pollfd *fds, nfds_t count, const sigset_t *mask)
{
	struct pollfd few[FEW + 1], *all = count > FEW ? malloc((count + 1) * sizeof(*all)) : few;
	unsigned looks;
	int n;

	if (!all) {
		errno = ENOMEM;
		return -1;
	}
	if (count)
		memcpy(all, fds, count * sizeof(*all));
	all[count] = (struct pollfd){.fd = w->fd, .events = POLLIN};
	do {
		looks = counter_looks();
		n = NEXT(ppoll)(all, count + 1, NULL, mask);
	} while (n < 0 && errno == EINTR && counter_looks() != looks);
	if (all != few)
		free(all);
	return n < 0 ? -1 : 0;
}

/* One wait for descriptors or a time, and then the thread's turn. 0 or -1. */
static int wait_once(const struct pollfd *fds, nfds_t count, const sigset_t *mask, const void *object,
		     uint64_t until_ns)
{
	struct waiter *w = note(object, until_ns);
	int rc;

	if (!w)
		return -1;
	rc = sleep_for(w, fds, count, mask);
	preload_take();
	if (rc && !w->until_ns)
		rc = 0; /* the signal came as well */
	forget(w);
	return rc;
}

int waits_sleep(uint64_t until_ns)
{
	while (preload_takes_part() && preload_now_ns() < until_ns)
		if (wait_once(NULL, 0, NULL, NULL, until_ns))
			return -1;
	return 0;
}

/* ---- descriptors ---- */

bool preload_is_ready(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};
	int saved = errno, n = NEXT(poll)(&p, 1, 0);

	errno = saved;
	return n != 0;
}

/*
 * One that is not to wait, whatever is there, is left alone: its caller may hold a lock that others need to go on. What
 * is sent by TCP is sent at the time that the thread has read.
 */
static bool may_wait(int fd, int flags)
{
	if (!preload_takes_part() || flags & MSG_DONTWAIT)
		return false;
	if (clocks_are_ahead() && preload_is_tcp(fd))
		clocks_catch_up();
	return true;
}

#define DESCRIPTOR(type, name, events, flags, arguments, ...)             \
	OURS type name arguments                                          \
	{                                                                 \
		if (!may_wait(fd, flags) || preload_is_ready(fd, events)) \
			return NEXT(name)(__VA_ARGS__);                   \
		return SLEEPS(type, NEXT(name)(__VA_ARGS__));             \
	}

DESCRIPTOR(ssize_t, read, POLLIN, 0, (int fd, void *to, size_t bytes), fd, to, bytes)
DESCRIPTOR(ssize_t, recv, POLLIN, flags, (int fd, void *to, size_t bytes, int flags), fd, to, bytes, flags)
DESCRIPTOR(ssize_t, recvmsg, POLLIN, flags, (int fd, struct msghdr *m, int flags), fd, m, flags)
DESCRIPTOR(ssize_t, recvfrom, POLLIN, flags,
	   (int fd, void *to, size_t bytes, int flags, __SOCKADDR_ARG from, socklen_t *len), fd, to, bytes, flags, from,
	   len)
DESCRIPTOR(ssize_t, write, POLLOUT, 0, (int fd, const void *from, size_t bytes), fd, from, bytes)
DESCRIPTOR(ssize_t, send, POLLOUT, flags, (int fd, const void *from, size_t bytes, int flags), fd, from, bytes, flags)
DESCRIPTOR(ssize_t, sendmsg, POLLOUT, flags, (int fd, const struct msghdr *m, int flags), fd, m, flags)

/* Until when a wait with this limit lasts; NULL: for good. */
static uint64_t limit_ns(const struct timespec *t)
{
	clocks_catch_up();
	return t ? later_ns(preload_now_ns(), timespec_ns(t)) : UINT64_MAX;
}

static struct timespec ms_timespec(int ms)
{
	return (struct timespec){ms / 1000, ms % 1000 * 1000000L};
}

static bool waits_simulated(const struct timespec *t)
{
	return preload_takes_part() && (!t || timespec_is_valid(t));
}

OURS int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *t, const sigset_t *mask)
{
	uint64_t until_ns;
	int n;

	if (!waits_simulated(t))
		return NEXT(ppoll)(fds, count, t, mask);
	for (until_ns = limit_ns(t);;) {
		n = NEXT(ppoll)(fds, count, &at_once, mask);
		if (n || preload_now_ns() >= until_ns)
			return n;
		if (wait_once(fds, count, mask, NULL, until_ns))
			return -1;
	}
}

OURS int poll(struct pollfd *fds, nfds_t count, int ms)
{
	struct timespec t = ms_timespec(ms);

	return preload_takes_part() ? ppoll(fds, count, ms < 0 ? NULL : &t, NULL) : NEXT(poll)(fds, count, ms);
}

static int wait_for_events(int fd, struct epoll_event *events, int max, const struct timespec *t, const sigset_t *mask)
{
	const struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t until_ns = limit_ns(t);

	for (;;) {
		int n = NEXT(epoll_pwait)(fd, events, max, 0, mask);

		if (n || preload_now_ns() >= until_ns)
			return n;
		if (wait_once(&p, 1, mask, NULL, until_ns))
			return -1;
	}
}

OURS int epoll_pwait(int fd, struct epoll_event *events, int max, int ms, const sigset_t *mask)
{
	struct timespec t = ms_timespec(ms);

	return preload_takes_part() ? wait_for_events(fd, events, max, ms < 0 ? NULL : &t, mask)
				    : NEXT(epoll_pwait)(fd, events, max, ms, mask);
}

OURS int epoll_wait(int fd, struct epoll_event *events, int max, int ms)
{
	return epoll_pwait(fd, events, max, ms, NULL);
}

#if __GLIBC_PREREQ(2, 35)
OURS int epoll_pwait2(int fd, struct epoll_event *events, int max, const struct timespec *t, const sigset_t *mask)
{
	return waits_simulated(t) ? wait_for_events(fd, events, max, t, mask)
				  : NEXT(epoll_pwait2)(fd, events, max, t, mask);
}
#endif

/* What poll() calls the events of a descriptor in these sets. */
static short events_of(int fd, const fd_set *in, const fd_set *out, const fd_set *except)
{
	return (short)((in && FD_ISSET(fd, in) ? POLLIN : 0) | (out && FD_ISSET(fd, out) ? POLLOUT : 0) |
		       (except && FD_ISSET(fd, except) ? POLLPRI : 0));
}

/* Once one of them is ready, or it is time, the kernel fills in the sets. */
static int select_until(int n, fd_set *in, fd_set *out, fd_set *except, uint64_t until_ns, const sigset_t *mask)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t count = 0;

	for (int fd = 0; fd < n; fd++) {
		short events = events_of(fd, in, out, except);

		if (events)
			fds[count++] = (struct pollfd){.fd = fd, .events = events};
	}
	while (!NEXT(ppoll)(fds, count, &at_once, mask) && preload_now_ns() < until_ns)
		if (wait_once(fds, count, mask, NULL, until_ns))
			return -1;
	return NEXT(pselect)(n, in, out, except, &at_once, mask);
}

OURS int pselect(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
		 const struct timespec *restrict t, const sigset_t *restrict mask)
{
	if (!waits_simulated(t) || n < 0 || n > FD_SETSIZE)
		return NEXT(pselect)(n, in, out, except, t, mask);
	return select_until(n, in, out, except, limit_ns(t), mask);
}

OURS int select(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except, struct timeval *restrict t)
{
	struct timespec limit = {0};
	uint64_t until_ns, now_ns;
	int rc;

	if (t)
		limit = (struct timespec){t->tv_sec + t->tv_usec / 1000000, t->tv_usec % 1000000 * 1000};
	if (!waits_simulated(&limit) || n < 0 || n > FD_SETSIZE)
		return NEXT(select)(n, in, out, except, t);
	until_ns = limit_ns(t ? &limit : NULL);
	rc = select_until(n, in, out, except, until_ns, NULL);
	now_ns = preload_now_ns();
	limit = ns_timespec(until_ns > now_ns ? until_ns - now_ns : 0);
	if (t)
		*t = (struct timeval){limit.tv_sec, limit.tv_nsec / 1000}; /* what is left, as Linux does */
	return rc;
}

/* ---- conditions ---- */

static void lock_again(void *mutex)
{
	pthread_mutex_lock(mutex);
}

/* It is noted before the mutex is free, so no signal is missed. It may be woken without one. */
static int wait_for_condition(pthread_cond_t *c, pthread_mutex_t *m, uint64_t until_ns)
{
	struct waiter *w;
	int saved = errno, rc;
	bool late;

	clocks_catch_up();
	w = note(c, until_ns);
	if (!w)
		return ENOMEM;
	rc = pthread_mutex_unlock(m);
	if (rc) {
		forget(w);
		return rc;
	}
	pthread_cleanup_push(lock_again, m);
	while (sleep_for(w, NULL, 0, NULL) && errno == EINTR && w->until_ns)
		;
	preload_take();
	late = w->late;
	forget(w);
	pthread_cleanup_pop(true);
	errno = saved;
	return late ? ETIMEDOUT : 0;
}

/* Those that threads of other processes may signal are the kernel's. */
static bool is_own(const pthread_cond_t *c)
{
	return preload_takes_part() && !(c->__data.__wrefs & CONDITION_SHARED);
}

OURS int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	if (is_own(c))
		return wait_for_condition(c, m, UINT64_MAX);
	return preload_takes_part() ? SLEEPS(int, NEXT(pthread_cond_wait)(c, m)) : NEXT(pthread_cond_wait)(c, m);
}

OURS int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
				const struct timespec *restrict t)
{
	if (is_own(c) && timespec_is_valid(t))
		return wait_for_condition(c, m, moment_ns(t));
	return NEXT(pthread_cond_timedwait)(c, m, t);
}

OURS int pthread_cond_clockwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m, clockid_t clock,
				const struct timespec *restrict t)
{
	if (is_own(c) && timespec_is_valid(t))
		return wait_for_condition(c, m, moment_ns(t));
	return NEXT(pthread_cond_clockwait)(c, m, clock, t);
}

OURS int pthread_cond_signal(pthread_cond_t *c)
{
	return wake_first(c) ? 0 : NEXT(pthread_cond_signal)(c);
}

OURS int pthread_cond_broadcast(pthread_cond_t *c)
{
	while (wake_first(c))
		;
	return NEXT(pthread_cond_broadcast)(c);
}

/* ---- semaphores ---- */

OURS int sem_wait(sem_t *s)
{
	if (!preload_takes_part())
		return NEXT(sem_wait)(s);
	return sem_trywait(s) ? SLEEPS(int, NEXT(sem_wait)(s)) : 0;
}

static int wait_for_semaphore(sem_t *s, uint64_t until_ns)
{
	clocks_catch_up();
	while (sem_trywait(s)) {
		if (preload_now_ns() >= until_ns) {
			errno = ETIMEDOUT;
			return -1;
		}
		if (wait_once(NULL, 0, NULL, s, until_ns))
			return -1;
	}
	return 0;
}

OURS int sem_timedwait(sem_t *restrict s, const struct timespec *restrict t)
{
	return waits_simulated(t) ? wait_for_semaphore(s, moment_ns(t)) : NEXT(sem_timedwait)(s, t);
}

OURS int sem_clockwait(sem_t *restrict s, clockid_t clock, const struct timespec *restrict t)
{
	return waits_simulated(t) ? wait_for_semaphore(s, moment_ns(t)) : NEXT(sem_clockwait)(s, clock, t);
}

/* Those that wait with a limit look again. */
OURS int sem_post(sem_t *s)
{
	int rc = NEXT(sem_post)(s);

	wake_first(s);
	return rc;
}
