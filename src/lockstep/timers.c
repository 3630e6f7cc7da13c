/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers in simulated time: timerfd is an eventfd, whose count is what a timerfd's is, and alarm() and setitimer() send
 * their signal. The engine's thread makes them expire. A timerfd ends with the descriptor that the program was given;
 * it has no effect through a duplicate.
 */
#undef _FORTIFY_SOURCE /* the calls are defined here, not called */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lockstep/preload.h"

static_assert((int)TFD_NONBLOCK == (int)EFD_NONBLOCK && (int)TFD_CLOEXEC == (int)EFD_CLOEXEC, "flags are the same");

enum { TIMERS_MAX = 256 };

struct timer {
	int fd;                   /* as the program has it; 0: free */
	_Atomic uint64_t next_ns; /* 0: not set */
	uint64_t interval_ns;     /* 0: it expires once */
};

static struct timer timers[TIMERS_MAX], alarm_timer;
static _Atomic unsigned timers_used; /* so that close() looks nowhere else */

/* ---- expiry ---- */

/* How often, until now. */
static uint64_t advance(struct timer *t, uint64_t now_ns)
{
	uint64_t next_ns = t->next_ns, times = 1;

	if (!next_ns || next_ns > now_ns)
		return 0;
	if (t->interval_ns)
		times += (now_ns - next_ns) / t->interval_ns;
	t->next_ns = t->interval_ns ? later_ns(next_ns, times * t->interval_ns) : 0;
	return times;
}

static uint64_t earlier(const struct timer *t, uint64_t first_ns)
{
	uint64_t next_ns = t->next_ns;

	return next_ns && next_ns < first_ns ? next_ns : first_ns;
}

uint64_t timers_next_ns(void)
{
	uint64_t first_ns = earlier(&alarm_timer, UINT64_MAX);

	for (unsigned i = 0; i < timers_used; i++)
		first_ns = earlier(&timers[i], first_ns);
	return first_ns;
}

void timers_expire(uint64_t now_ns)
{
	for (unsigned i = 0; i < timers_used; i++) {
		uint64_t times = advance(&timers[i], now_ns);

		if (times)
			syscall(SYS_write, timers[i].fd, &times, sizeof(times));
	}
	if (advance(&alarm_timer, now_ns))
		kill(getpid(), SIGALRM);
}

static void set(struct timer *t, uint64_t next_ns, uint64_t interval_ns)
{
	t->interval_ns = interval_ns;
	t->next_ns = next_ns;
}

static uint64_t left_ns(const struct timer *t)
{
	uint64_t next_ns = t->next_ns, now_ns = preload_now_ns();

	return next_ns > now_ns ? next_ns - now_ns : 0;
}

/* ---- timerfd ---- */

static struct timer *timer_of(int fd)
{
	for (unsigned i = 0; i < timers_used; i++)
		if (timers[i].fd == fd)
			return &timers[i];
	return NULL;
}

OURS int timerfd_create(int clock, int flags)
{
	struct timer *t = NULL;
	int fd;

	if (!preload_takes_part() || (flags & ~(TFD_NONBLOCK | TFD_CLOEXEC)))
		return NEXT(timerfd_create)(clock, flags);
	for (unsigned i = 0; i < TIMERS_MAX && !t; i++)
		t = timers[i].fd ? NULL : &timers[i];
	if (!t) {
		errno = EMFILE;
		return -1;
	}
	fd = eventfd(0, flags);
	if (fd <= 0)
		return fd;
	t->fd = fd;
	if (t == &timers[timers_used])
		timers_used++;
	return fd;
}

static struct itimerspec show(const struct timer *t)
{
	return (struct itimerspec){.it_interval = ns_timespec(t->interval_ns), .it_value = ns_timespec(left_ns(t))};
}

/* What has expired and was not read counts no more. */
static void drain(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	uint64_t count;

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	syscall(SYS_read, fd, &count, sizeof(count));
	fcntl(fd, F_SETFL, flags);
}

OURS int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	struct timer *t = timer_of(fd);
	uint64_t value_ns, next_ns;
	int saved = errno;

	if (!t)
		return NEXT(timerfd_settime)(fd, flags, new, old);
	if (!timespec_is_valid(&new->it_value) || !timespec_is_valid(&new->it_interval)) {
		errno = EINVAL;
		return -1;
	}
	if (old)
		*old = show(t);
	value_ns = timespec_ns(&new->it_value);
	next_ns = flags & TFD_TIMER_ABSTIME ? moment_ns(&new->it_value) : later_ns(preload_now_ns(), value_ns);
	drain(fd);
	set(t, value_ns ? next_ns : 0, timespec_ns(&new->it_interval));
	errno = saved;
	return 0;
}

OURS int timerfd_gettime(int fd, struct itimerspec *now)
{
	struct timer *t = timer_of(fd);

	if (!t)
		return NEXT(timerfd_gettime)(fd, now);
	*now = show(t);
	return 0;
}

OURS int close(int fd)
{
	struct timer *t = fd > 0 ? timer_of(fd) : NULL;

	if (t)
		*t = (struct timer){0};
	return NEXT(close)(fd);
}

/* ---- the alarm ---- */

static uint64_t timeval_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * BILLION + (uint64_t)t->tv_usec * 1000;
}

static struct timeval ns_timeval(uint64_t ns)
{
	return (struct timeval){(time_t)(ns / BILLION), (suseconds_t)(ns % BILLION / 1000)};
}

OURS int getitimer(__itimer_which_t which, struct itimerval *now)
{
	if (!preload_takes_part() || which != ITIMER_REAL)
		return NEXT(getitimer)(which, now);
	*now = (struct itimerval){ns_timeval(alarm_timer.interval_ns), ns_timeval(left_ns(&alarm_timer))};
	return 0;
}

OURS int setitimer(__itimer_which_t which, const struct itimerval *restrict new, struct itimerval *restrict old)
{
	uint64_t value_ns;

	if (!preload_takes_part() || which != ITIMER_REAL || !new)
		return NEXT(setitimer)(which, new, old);
	if (old)
		getitimer(which, old);
	value_ns = timeval_ns(&new->it_value);
	set(&alarm_timer, value_ns ? later_ns(preload_now_ns(), value_ns) : 0, timeval_ns(&new->it_interval));
	return 0;
}

OURS unsigned alarm(unsigned seconds)
{
	struct itimerval new = {.it_value.tv_sec = seconds}, old = {0};

	if (!preload_takes_part())
		return NEXT(alarm)(seconds);
	setitimer(ITIMER_REAL, &new, &old);
	return (unsigned)old.it_value.tv_sec + (old.it_value.tv_usec > 0);
}
