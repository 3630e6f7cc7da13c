/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library that stands before libc and lets the monotonic clock run sixteen times as fast, for what a program does
 * only after half a minute in which it polls. All processes that have it agree about the time.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FASTER = 16 };

int clock_gettime(clockid_t clock, struct timespec *now)
{
	long status = syscall(SYS_clock_gettime, clock, now);

	if (!status && clock == CLOCK_MONOTONIC) {
		long long ns = (now->tv_sec * 1000000000LL + now->tv_nsec) * FASTER;

		now->tv_sec = ns / 1000000000;
		now->tv_nsec = ns % 1000000000;
	}
	return (int)status;
}
