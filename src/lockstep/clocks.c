/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clocks, and sleeps. Simulated time stands still while a thread runs, and a program that reads a clock until it has gone
 * on would never end. So after many reads at one moment each further read takes a while: first on the thread's own
 * account, which only its clocks show, and then all programs' time follows. It does before the thread does anything else,
 * or waits (clocks_catch_up()). A few reads, as programs make them around what they measure, take no time.
 */
#undef _FORTIFY_SOURCE /* the calls are defined here, not called */
#include <errno.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "lockstep/preload.h"

enum {
	READS_FREE = 4096,
	READ_NS = 50,
	AHEAD_NS = 10000, /* or an eighth of the time for which the thread has read */
	AHEAD_SHARE = 8
};

/* Of the calling thread. */
static _Thread_local struct {
	uint64_t since_ns; /* it does nothing but read */
	uint64_t at_ns;    /* the moment of its last read, */
	uint64_t ahead_ns; /* and so much more is what it read */
	uint64_t reads;    /* since then */
} account;

bool clocks_are_ahead(void)
{
	return account.ahead_ns;
}

void clocks_catch_up(void)
{
	int saved = errno;

	if (!account.ahead_ns || !preload_takes_part())
		return;
	account.at_ns += account.ahead_ns;
	account.ahead_ns = 0;
	while (waits_sleep(account.at_ns))
		;
	errno = saved;
}

static bool is_far_ahead(void)
{
	uint64_t share_ns = (account.at_ns - account.since_ns) / AHEAD_SHARE;

	return account.ahead_ns >= (share_ns > AHEAD_NS ? share_ns : AHEAD_NS);
}

uint64_t clocks_read_ns(void)
{
	uint64_t now_ns = preload_now_ns();

	counter_forget();
	if (now_ns > account.at_ns + account.ahead_ns) {
		account.since_ns = account.at_ns = now_ns;
		account.ahead_ns = account.reads = 0;
	} else if (preload_is_counted() && ++account.reads > READS_FREE) {
		account.ahead_ns += READ_NS;
		if (is_far_ahead())
			clocks_catch_up();
	}
	return account.at_ns + account.ahead_ns;
}

static bool is_simulated(clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_BOOTTIME:
	case CLOCK_TAI: return preload_page;
	default: return false; /* processor time */
	}
}

static uint64_t read_ns(clockid_t clock)
{
	bool since_1970 = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;

	return clocks_read_ns() + (since_1970 ? LOCKSTEP_WALL_NS : 0);
}

OURS int clock_gettime(clockid_t clock, struct timespec *t)
{
	if (!is_simulated(clock))
		return NEXT(clock_gettime)(clock, t);
	*t = ns_timespec(read_ns(clock));
	return 0;
}

OURS int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	uint64_t ns;

	if (!preload_page || !t)
		return NEXT(gettimeofday)(t, zone);
	ns = read_ns(CLOCK_REALTIME);
	*t = (struct timeval){(time_t)(ns / BILLION), (suseconds_t)(ns % BILLION / 1000)};
	return 0;
}

OURS time_t time(time_t *out)
{
	time_t now;

	if (!preload_page)
		return NEXT(time)(out);
	now = (time_t)(read_ns(CLOCK_REALTIME) / BILLION);
	if (out)
		*out = now;
	return now;
}

OURS int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *left)
{
	uint64_t until_ns, now_ns;
	int saved = errno, rc;

	if (!is_simulated(clock) || !t || !timespec_is_valid(t))
		return NEXT(clock_nanosleep)(clock, flags, t, left);
	clocks_catch_up();
	now_ns = preload_now_ns();
	until_ns = flags & TIMER_ABSTIME ? moment_ns(t) : later_ns(now_ns, timespec_ns(t));
	rc = waits_sleep(until_ns) ? EINTR : 0;
	errno = saved;
	now_ns = preload_now_ns();
	if (rc && left && !(flags & TIMER_ABSTIME))
		*left = ns_timespec(until_ns > now_ns ? until_ns - now_ns : 0);
	return rc;
}

OURS int nanosleep(const struct timespec *t, struct timespec *left)
{
	int err;

	if (!preload_page)
		return NEXT(nanosleep)(t, left);
	err = clock_nanosleep(CLOCK_MONOTONIC, 0, t, left);
	if (!err)
		return 0;
	errno = err;
	return -1;
}

OURS int usleep(useconds_t us)
{
	const struct timespec t = {us / 1000000, us % 1000000 * 1000L};

	return preload_page ? nanosleep(&t, NULL) : NEXT(usleep)(us);
}

OURS unsigned sleep(unsigned seconds)
{
	struct timespec t = {.tv_sec = seconds}, left;

	if (!preload_page)
		return NEXT(sleep)(seconds);
	return nanosleep(&t, &left) ? (unsigned)left.tv_sec + (left.tv_nsec > 0) : 0;
}
