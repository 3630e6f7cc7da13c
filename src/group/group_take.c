/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets of a member that does not answer. Without them a joiner has to bind one more than
 * there are, so seven members, each stopped before the next one joins, would use up all slots.
 *
 * A process that may debug another one may have copies of its descriptors, and the other does not
 * notice. Where that is forbidden (another PID namespace, Yama, a container's filter of system
 * calls) nothing is taken.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/fd_away.h"

#include "group/group_join.h"

static bool is_held(const struct group *g, unsigned lane, unsigned slot)
{
	for (unsigned i = 0; i < GROUP_SOCKETS_MAX; i++)
		if (group_owner(g, lane, i) == (int)slot)
			return true;
	return false;
}

/*
 * A process that holds the sockets on which a member receives mostly holds all that the member
 * does.
 */
static bool has_news(const struct group *g, unsigned slot)
{
	for (unsigned lane = 0; lane < g->lane_count; lane++)
		if (!is_held(g, lane, slot))
			return true;
	return false;
}

/* Takes fd. Sockets that a process bound in sequence have indices in sequence; *next has, by lane,
 * the index that is due. */
static void keep(struct group *g, int fd, unsigned *next)
{
	int lane = group_lane_of(g, fd), owner;
	unsigned at;

	if (lane < 0) {
		close(fd);
		return;
	}
	at = group_add(g, (unsigned)lane, next[lane], fd);
	if (at == GROUP_SOCKETS_MAX)
		return;
	owner = group_owner(g, (unsigned)lane, at);
	if (owner != GROUP_NOBODY && g->socks[lane][owner].fd < 0) {
		group_swap(g, (unsigned)lane, at, (unsigned)owner);
		at = (unsigned)owner;
	}
	next[lane] = at + 1;
}

/* Our own descriptor of the socket that another process has under this name in /proc/PID/fd; -1: it
 * is no socket. */
static int copy_socket(int pidfd, int dir, const char *name)
{
	static const char prefix[] = "socket:";
	char target[sizeof(prefix)] = "";

	if (readlinkat(dir, name, target, sizeof(target) - 1) < 0 || strcmp(target, prefix) != 0)
		return -1;
	return fd_away((int)syscall(SYS_pidfd_getfd, pidfd, atoi(name), 0));
}

static void take_from(struct join *j, pid_t pid, uint64_t until_ms)
{
	unsigned next[GROUP_LANES_MAX] = {0};
	char path[32];
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
	dir = pidfd < 0 ? NULL : opendir(path);
	/* In the order of their numbers, which is mostly that of bind. */
	for (struct dirent *e; dir && clock_now_ms() < until_ms && (e = readdir(dir));) {
		int fd = copy_socket(pidfd, dirfd(dir), e->d_name);

		if (fd >= 0)
			keep(j->g, fd, next);
	}
	if (dir)
		closedir(dir);
	if (pidfd >= 0)
		close(pidfd);
}

void join_take(struct join *j, uint64_t until_ms)
{
	for (unsigned s = 0; s < GROUP_SLOTS && !j->cfg->no_taking; s++) {
		const struct member *m = &j->members[s];

		if (m->state == SILENT && m->peer.pid && has_news(j->g, s))
			take_from(j, m->peer.pid, until_ms);
	}
}
