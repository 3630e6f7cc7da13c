/* SPDX-License-Identifier: BSD-2-Clause */
/* Owns no state. Every function leaves no descriptor behind when it fails. */
#include "group/group_link.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "group/group_msg.h"
#include "io/fd_away.h"
#include "io/net.h"

enum {
	BACKLOG = 256,
	OVERFLOW_UID = 65534 /* unless the administrator chose another */
};

static socklen_t make_name(struct sockaddr_un *a, const struct group_id *id, int slot)
{
	unsigned uid = id->uid;
	int n;

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	/* The first byte stays 0: the name is abstract. */
	if (slot == LINK_LOCK)
		n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "verbena.%u.%u.lock", uid, id->port);
	else if (slot < 0)
		n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "verbena.%u.%u.lock%d", uid, id->port,
			     LINK_LOCK - slot);
	else if (id->addresses)
		n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "verbena.%u.%u@%016" PRIx64 ".%d", uid, id->port,
			     id->addresses, slot);
	else
		n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "verbena.%u.%u.%d", uid, id->port, slot);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int make_socket(void)
{
	int fd = fd_away(net_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

	return fd < 0 ? -errno : fd;
}

int link_reserve(const struct group_id *id, int slot)
{
	struct sockaddr_un a;
	socklen_t len = make_name(&a, id, slot);
	int fd = make_socket();

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&a, len) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

int link_publish(int fd)
{
	return listen(fd, BACKLOG) < 0 ? -errno : 0;
}

int link_listen(const struct group_id *id, int slot)
{
	int fd = link_reserve(id, slot);
	int err = fd < 0 ? fd : link_publish(fd);

	if (err < 0 && fd >= 0)
		close(fd);
	return err < 0 ? err : fd;
}

/* Looked up once; two threads that do so at the same time get the same answer. */
static uid_t overflow_uid(void)
{
	static _Atomic uid_t known;
	unsigned uid = known;
	FILE *f = uid ? NULL : fopen("/proc/sys/kernel/overflowuid", "re");

	if (f) {
		if (fscanf(f, "%u", &uid) == 1)
			known = uid;
		fclose(f);
	}
	return uid ? uid : OVERFLOW_UID;
}

bool link_uid_is_certain(uid_t uid)
{
	unsigned long long known = 0, count;
	FILE *f;

	if (uid != overflow_uid())
		return true;
	/*
	 * Where every user has a number, as outside of all user namespaces, this number is an
	 * ordinary user.
	 */
	f = fopen("/proc/self/uid_map", "re");
	while (f && fscanf(f, "%*u %*u %llu", &count) == 1)
		known += count;
	if (f)
		fclose(f);
	return known >= UINT32_MAX; /* all numbers but -1, which is none */
}

bool link_is_stopped(pid_t pid)
{
	char path[32], line[128] = "", *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	f = pid ? fopen(path, "re") : NULL;
	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	/* The state follows the name, which may contain any character. */
	end = strrchr(line, ')');
	return end && end[1] == ' ' && (end[2] == 'T' || end[2] == 't');
}

struct link_peer link_peer_of(int fd)
{
	struct ucred c = {.pid = 0, .uid = (uid_t)LINK_NO_UID};
	socklen_t len = sizeof(c);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &len);
	if (!link_uid_is_certain(c.uid))
		c.uid = (uid_t)LINK_NO_UID;
	return (struct link_peer){.pid = c.pid, .uid = c.uid};
}

int link_connect(const struct group_id *id, int slot, struct link_peer *peer)
{
	struct sockaddr_un a;
	socklen_t len = make_name(&a, id, slot);
	int fd = make_socket();

	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&a, len) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	*peer = link_peer_of(fd);
	if (peer->uid != id->uid) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

union fd_control {
	struct cmsghdr align;
	uint8_t bytes[CMSG_SPACE(sizeof(int) * GROUP_MSG_FDS_MAX)];
};

int link_send(int fd, const void *head, size_t head_len, const void *data, size_t data_len, const int *fds,
	      size_t fd_count)
{
	struct iovec iov[2] = {{(void *)head, head_len}, {(void *)data, data_len}};
	struct msghdr h = {.msg_iov = iov, .msg_iovlen = data_len ? 2 : 1};
	union fd_control control;

	assert(fd_count <= GROUP_MSG_FDS_MAX);
	if (fd_count) {
		h.msg_control = &control;
		h.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		memset(&control, 0, h.msg_controllen);

		struct cmsghdr *c = CMSG_FIRSTHDR(&h);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
	}
	return sendmsg(fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void link_close_all(const int *fds, size_t count)
{
	while (count)
		close(fds[--count]);
}

ssize_t link_recv(int fd, void *buf, size_t max, int *fds, size_t fds_max, size_t *fd_count)
{
	struct iovec iov = {buf, max};
	union fd_control control;
	struct msghdr h = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int got[GROUP_MSG_FDS_MAX];
	size_t n = 0;
	ssize_t len;

	do {
		len = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(got, CMSG_DATA(c), n * sizeof(int));
	}
	if (len == 0 || h.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || n > fds_max) {
		link_close_all(got, n);
		if (len == 0)
			return 0;
		return h.msg_flags & MSG_CTRUNC ? -EMFILE : -EMSGSIZE;
	}
	for (size_t i = 0; i < n; i++)
		fds[i] = fd_away(got[i]);
	*fd_count = n;
	return len;
}
