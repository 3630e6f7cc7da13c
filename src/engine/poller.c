/* SPDX-License-Identifier: BSD-2-Clause */
/* See poller.h. */
#include "engine/poller.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STAT_BYTES = 128 }; /* up to the state: a number and a name of 16 bytes */

static _Thread_local pid_t self;

pid_t poller_self(void)
{
	if (!self)
		self = (pid_t)syscall(SYS_gettid);
	return self;
}

void poller_forget_self(void)
{
	self = 0;
}

/* The clock of a thread's processor time, as pthread_getcpuclockid() makes it, which needs a thread that has not ended.
 */
static clockid_t clock_of(pid_t tid)
{
	return (clockid_t)(~(unsigned)tid << 3 | 6);
}

uint64_t poller_ran_ns(pid_t tid)
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

bool poller_waits(pid_t tid, uint64_t ran_ns, uint64_t for_ns)
{
	uint64_t now_ns = poller_ran_ns(tid);

	return now_ns && ran_ns && now_ns - ran_ns < for_ns / 4 * 3 && state_of(tid) == 'R';
}
