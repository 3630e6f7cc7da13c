/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library that stands before libc and lets the clock of gettimeofday() run sixteen times as fast. perftest asks that
 * clock for nothing but the processor's frequency, for a fifth of a second that it spins away at each end.
 */
#include <sys/time.h>
#include <time.h>

enum { FASTER = 16 };

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_MONOTONIC, &now);

	long long ns = (now.tv_sec * 1000000000LL + now.tv_nsec) * FASTER;

	t->tv_sec = ns / 1000000000;
	t->tv_usec = ns % 1000000000 / 1000;
	return 0;
}
