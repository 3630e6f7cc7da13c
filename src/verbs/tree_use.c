/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See tree_use.h. The lock is on the directory's inode, so after waiting for it the name must be checked
 * again. Processes call this at their end, even from a signal handler, so nothing here allocates or takes a
 * lock of libc.
 */
#include "verbs/tree_use.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NUMBER = 200, BATCH_BYTES = 2048, DEPTH_MAX = 12, PASSES_MAX = 4 };

static bool is_at(int fd, const char *dir)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && lstat(dir, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Returns a descriptor of the directory with that lock. */
static int lock(const char *dir, int operation)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = flock(fd, operation) < 0 ? -errno : is_at(fd, dir) ? 0 : -ENOENT;
	if (err == 0)
		return fd;
	close(fd);
	return err;
}

/* A descriptor number that programs are unlikely to use, if the limit allows one. */
static int move_away(int fd)
{
	struct rlimit limit = {.rlim_cur = NUMBER + 1};
	int away;

	getrlimit(RLIMIT_NOFILE, &limit);
	away = fcntl(fd, F_DUPFD, limit.rlim_cur > NUMBER ? NUMBER : (int)limit.rlim_cur - 1);
	if (away < 0)
		away = fcntl(fd, F_DUPFD, 3);
	close(fd);
	return away < 0 ? -EMFILE : away;
}

int tree_use(const char *dir)
{
	int fd = lock(dir, LOCK_SH);

	return fd < 0 ? fd : move_away(fd);
}

int tree_use_inherited(const char *dir, int fd)
{
	return fd >= 0 && is_at(fd, dir) ? fd : tree_use(dir);
}

struct entry { /* linux_dirent64, which libc's headers lack under this name */
	uint64_t ino;
	int64_t off;
	unsigned short bytes;
	unsigned char type;
	char name[];
};

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Removes the content of a directory, at most `depth` levels of it. True: there was some. */
static bool empty(int dir, int depth)
{
	_Alignas(struct entry) char buf[BATCH_BYTES];
	bool any = false;
	long n;

	while ((n = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n; at += ((struct entry *)(buf + at))->bytes) {
			const char *name = ((struct entry *)(buf + at))->name;
			int below;

			if (is_dots(name))
				continue;
			any = true;
			if (unlinkat(dir, name, 0) == 0 || !depth)
				continue;
			below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (below < 0)
				continue;
			empty(below, depth - 1);
			close(below);
			unlinkat(dir, name, AT_REMOVEDIR);
		}
	}
	return any;
}

void tree_remove(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	/* A directory that changes while it is read may not show all entries at once. */
	for (int i = 0; fd >= 0 && i < PASSES_MAX && empty(fd, DEPTH_MAX); i++)
		lseek(fd, 0, SEEK_SET);
	if (fd >= 0)
		close(fd);
	rmdir(dir);
}

int tree_remove_unused(const char *dir)
{
	int fd = lock(dir, LOCK_EX | LOCK_NB);

	if (fd < 0)
		return fd;
	tree_remove(dir);
	close(fd);
	return 0;
}
