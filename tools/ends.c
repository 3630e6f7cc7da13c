/* SPDX-License-Identifier: BSD-2-Clause */
/* By copies of the process's descriptors, pidfd_getfd(2), which who may dump a process may have. */
#include "ends.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES = 64 };

/* False: no more descriptors need be looked at. `fd` is *borrowed*. */
typedef bool end_fn(void *ctx, int fd, const struct stat *);

static void each_descriptor(pid_t pid, int pidfd, mode_t type, end_fn *each, void *ctx)
{
	char path[PATH_BYTES];
	struct dirent *e;
	struct stat st;
	bool more = true;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	while (d && more && (e = readdir(d))) {
		int fd;

		if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, 0) || (st.st_mode & S_IFMT) != type)
			continue;
		fd = (int)syscall(SYS_pidfd_getfd, pidfd, atoi(e->d_name), 0);
		if (fd < 0)
			continue;
		more = each(ctx, fd, &st);
		close(fd);
	}
	if (d)
		closedir(d);
}

/* ---- TCP ---- */

static bool is_connection(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info), its = sizeof(int);
	int protocol = 0;

	return !getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &its) && protocol == IPPROTO_TCP &&
	       !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) && info.tcpi_state != TCP_LISTEN &&
	       info.tcpi_state != TCP_CLOSE;
}

static bool address_of(int fd, uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct sockaddr_storage at = {0};
	socklen_t len = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &len))
		return false;
	if (at.ss_family == AF_INET6) {
		memcpy(gid, &((struct sockaddr_in6 *)&at)->sin6_addr, 16);
	} else {
		memcpy(gid, mapped, sizeof(mapped));
		memcpy(gid + 12, &((struct sockaddr_in *)&at)->sin_addr, 4);
	}
	return true;
}

struct wanted {
	size_t left;
	uint8_t *gid;
	bool found;
};

static bool look_at_address(void *ctx, int fd, const struct stat *st)
{
	struct wanted *w = ctx;

	(void)st;
	if (is_connection(fd) && !w->left--)
		w->found = address_of(fd, w->gid);
	return !w->found;
}

bool ends_tcp_address(pid_t pid, int pidfd, size_t number, uint8_t gid[16])
{
	struct wanted w = {.left = number, .gid = gid};

	each_descriptor(pid, pidfd, S_IFSOCK, look_at_address, &w);
	return w.found;
}

struct hearing {
	bool deaf, failed;
};

static bool change_hearing(void *ctx, int fd, const struct stat *st)
{
	struct sock_filter drop = {.code = BPF_RET | BPF_K, .k = 0};
	struct sock_fprog all = {.len = 1, .filter = &drop};
	struct hearing *h = ctx;
	int none = 0;

	(void)st;
	if (is_connection(fd))
		h->failed |= h->deaf ? setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof(all)) < 0
				     : setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)) < 0;
	return true;
}

bool ends_deafen(pid_t pid, int pidfd, bool deaf)
{
	struct hearing h = {.deaf = deaf};

	each_descriptor(pid, pidfd, S_IFSOCK, change_hearing, &h);
	return !h.failed;
}

/* ---- pipes ---- */

struct pipes {
	struct {
		unsigned long inode;
		int fd;
		int modes; /* bits 1 << O_RDONLY and so on */
	} of[4 * ENDS_PIPES_MAX];
	size_t count;
};

static bool look_at_pipe(void *ctx, int fd, const struct stat *st)
{
	struct pipes *p = ctx;
	size_t i = 0;

	while (i < p->count && p->of[i].inode != st->st_ino)
		i++;
	if (i == sizeof(p->of) / sizeof(p->of[0]))
		return false;
	if (i == p->count) {
		p->of[i].inode = st->st_ino;
		p->of[i].fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		p->of[i].modes = 0;
		p->count++;
	}
	p->of[i].modes |= 1 << (fcntl(fd, F_GETFL) & O_ACCMODE);
	return true;
}

size_t ends_pipes(pid_t pid, int pidfd, struct ends_pipe pipes[ENDS_PIPES_MAX])
{
	struct pipes all = {.count = 0};
	size_t n = 0;

	each_descriptor(pid, pidfd, S_IFIFO, look_at_pipe, &all);
	for (size_t i = 0; i < all.count; i++) {
		bool one_end = all.of[i].modes == 1 << O_RDONLY || all.of[i].modes == 1 << O_WRONLY;

		if (one_end && n < ENDS_PIPES_MAX && all.of[i].fd >= 0)
			pipes[n++] = (struct ends_pipe){.inode = all.of[i].inode, .fd = all.of[i].fd};
		else if (all.of[i].fd >= 0)
			close(all.of[i].fd);
	}
	return n;
}
