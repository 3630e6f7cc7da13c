/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel shows threads one after the other, and one that was asleep may be woken by one that is looked at later. So
 * all are looked at twice. Who was asleep both times and has not run in between has slept all the while, so all were
 * asleep together when the first look ended. A thread that is woken is ready at once, although it does not run yet.
 *
 * Nothing here takes memory: the program's heap is not the device's, and its thread may hold the lock of it.
 */
#include "engine/asleep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/env.h"
#include "io/fd_away.h"

enum { ENTRIES_BYTES = 4096, STATUS_BYTES = 4096 };

/* As getdents64(2) writes it. */
struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

int asleep_open(struct asleep *a)
{
	a->tasks_fd = fd_away(open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	return a->tasks_fd < 0 ? -errno : 0;
}

void asleep_close(struct asleep *a)
{
	close(a->tasks_fd);
	a->tasks_fd = -1;
}

/* The text behind a line's name; NULL: there is no such line. */
static const char *value_of(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? at + strlen(name) : NULL;
}

/* How often a thread that is asleep has stopped running. False: it is not asleep, or gone. */
static bool look_at(int tasks_fd, const char *tid, uint64_t *switches)
{
	char path[32], text[STATUS_BYTES];
	const char *state, *own, *forced;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%.16s/status", tid);
	fd = openat(tasks_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = syscall(SYS_read, fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	state = value_of(text, "\nState:\t");
	own = value_of(text, "\nvoluntary_ctxt_switches:\t");
	forced = value_of(text, "\nnonvoluntary_ctxt_switches:\t");
	/* A main thread that has ended is a zombie until the others have. */
	if (!state || !own || !forced || (*state != 'S' && *state != 'Z'))
		return false;
	*switches = strtoull(own, NULL, 10) + strtoull(forced, NULL, 10);
	return true;
}

static bool look(struct asleep *a, struct asleep_look *l)
{
	_Alignas(struct entry) char entries[ENTRIES_BYTES];
	pid_t self = env_self();
	ssize_t n;

	l->count = 0;
	a->runner = 0;
	lseek(a->tasks_fd, 0, SEEK_SET);
	while ((n = syscall(SYS_getdents64, a->tasks_fd, entries, sizeof(entries))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct entry *e = (void *)(entries + at);
			pid_t tid = atoi(e->name);

			at += e->bytes;
			if (tid <= 0 || tid == self)
				continue;
			if (l->count == ASLEEP_THREADS_MAX)
				return false;
			if (!look_at(a->tasks_fd, e->name, &l->threads[l->count].switches)) {
				a->runner = tid;
				return false;
			}
			l->threads[l->count++].tid = tid;
		}
	}
	return !n;
}

static bool are_equal(const struct asleep_look *a, const struct asleep_look *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (a->threads[i].tid != b->threads[i].tid || a->threads[i].switches != b->threads[i].switches)
			return false;
	return true;
}

bool asleep_all(struct asleep *a)
{
	return look(a, &a->before) && look(a, &a->now) && are_equal(&a->before, &a->now);
}
