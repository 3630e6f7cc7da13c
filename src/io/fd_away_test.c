/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd_away.h"
#include "support/test.h"

static void limit_to(rlim_t n)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(a_descriptor_gets_a_high_number)
{
	struct stat before, after;
	int fd = open("/dev/null", O_RDONLY), away;

	limit_to(1000);
	fstat(fd, &before);
	away = fd_away(fd);
	assert_true(away >= 500 && away < 1000);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(fcntl(away, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fstat(away, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(fd_away(away), away);
	close(away);
}

TEST(without_room_it_stays)
{
	int fd = open("/dev/null", O_RDONLY);

	limit_to(64);
	assert_int_equal(fd_away(fd), fd);
	close(fd);
	errno = ENOENT;
	assert_int_equal(fd_away(-1), -1);
	assert_int_equal(errno, ENOENT);
}
