/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that all members share: a memfd that the first one makes and the others get with the sockets. Its content is
 * its users' matter; here it is made and passed on, and it never shrinks, so that no access to it faults.
 *
 * A joiner to which nobody gives it, because all members are stopped and may not be looked into, makes one of its own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/fd_away.h"

#include "group/group_join.h"
#include "space/space.h"

#define NAME "verbena-group"

enum { ANSWER_MS = 250, SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

void group_shared_close(struct group *g)
{
	if (g->shared)
		space_unmap(g->shared, g->shared_bytes);
	if (g->shared_fd >= 0)
		close(g->shared_fd);
	g->shared = NULL;
	g->shared_fd = -1;
}

/* Takes fd. False: it is not such memory. */
static bool use(struct group *g, int fd, size_t bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *p = NULL;

	if (seals >= 0 && (seals & SEALS) == SEALS && !fstat(fd, &st) && st.st_size == (off_t)bytes)
		p = space_map(fd, bytes);
	if (!p) {
		close(fd);
		return false;
	}
	/* Mostly holes, which a core file would have as zeros. */
	madvise(p, bytes, MADV_DONTDUMP);
	g->shared = p;
	g->shared_fd = fd;
	g->shared_bytes = bytes;
	return true;
}

static bool make(struct group *g, size_t bytes)
{
	struct rlimit limit;
	int fd;

	/* To pass it would be a signal. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < bytes)
		return false;
	fd = fd_away(memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (fd < 0)
		return false;
	if (ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, SEALS)) {
		close(fd);
		return false;
	}
	return use(g, fd, bytes);
}

/* Asks a member for it. */
static bool ask(struct join *j, struct member *m)
{
	struct group_msg msg = {.type = GROUP_SHARE};
	struct pollfd p = {.fd = m->link, .events = POLLIN};
	uint8_t buf[GROUP_MSG_HEADER_LEN];
	int fds[1];
	size_t n = 0;
	ssize_t len;

	if (link_send(m->link, buf, group_msg_encode(buf, &msg), NULL, 0, NULL, 0) < 0 || poll(&p, 1, ANSWER_MS) <= 0)
		return false;
	len = link_recv(m->link, buf, sizeof(buf), fds, 1, &n);
	if (len <= 0)
		return false;
	if (group_msg_decode(&msg, buf, (size_t)len) != GROUP_MSG_OK || msg.type != GROUP_SHARE_FD || !n) {
		link_close_all(fds, n);
		return false;
	}
	return use(j->g, fds[0], j->cfg->shared_bytes);
}

static bool is_ours(int dir, const char *name)
{
	static const char prefix[] = "/memfd:" NAME " ";
	char target[sizeof(prefix)] = "";

	return readlinkat(dir, name, target, sizeof(target) - 1) > 0 && !strcmp(target, prefix);
}

/* As with sockets (group_take.c). */
static bool take(struct join *j, pid_t pid)
{
	char path[32];
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	DIR *dir;
	bool done = false;

	snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
	dir = pidfd < 0 ? NULL : opendir(path);
	for (struct dirent *e; dir && !done && (e = readdir(dir));) {
		int fd = is_ours(dirfd(dir), e->d_name) ? (int)syscall(SYS_pidfd_getfd, pidfd, atoi(e->d_name), 0) : -1;

		done = fd >= 0 && use(j->g, fd, j->cfg->shared_bytes);
	}
	if (dir)
		closedir(dir);
	if (pidfd >= 0)
		close(pidfd);
	return done;
}

void join_share(struct join *j)
{
	size_t bytes = j->cfg->shared_bytes;
	bool have = !bytes;

	for (unsigned s = 0; s < GROUP_SLOTS && !have; s++)
		have = j->members[s].state == ALIVE && j->members[s].link >= 0 && ask(j, &j->members[s]);
	for (unsigned s = 0; s < GROUP_SLOTS && !have && !j->cfg->no_taking; s++)
		have = j->members[s].state == SILENT && j->members[s].peer.pid && take(j, j->members[s].peer.pid);
	if (!have && j->cfg->shared_fd > 0)
		have = use(j->g, fd_away(fcntl(j->cfg->shared_fd, F_DUPFD_CLOEXEC, 0)), bytes);
	if (!have)
		make(j->g, bytes);
	if (j->g->shared && j->cfg->requests_slot)
		j->g->requests_slot = j->cfg->requests_slot(j->g->shared);
}

void *group_shared(const struct group *g)
{
	return g->shared;
}
