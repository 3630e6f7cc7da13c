/* SPDX-License-Identifier: BSD-2-Clause */
#include "io/fd_away.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* A table of descriptors is as large as its highest number, so that is not higher than need be. */
enum { FIRST_MAX = 1024, LIMIT_MIN = 256 };

int fd_away_first(void)
{
	struct rlimit limit = {.rlim_cur = 0};

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < LIMIT_MIN)
		return 0;
	return limit.rlim_cur / 2 < FIRST_MAX ? (int)(limit.rlim_cur / 2) : FIRST_MAX;
}

int fd_away(int fd)
{
	int first = fd_away_first(), away;

	if (fd < 0 || fd >= first)
		return fd;
	away = fcntl(fd, F_DUPFD_CLOEXEC, first);
	if (away < 0)
		return fd;
	close(fd);
	return away;
}
