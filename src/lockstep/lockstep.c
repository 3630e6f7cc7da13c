/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages and addresses: see lockstep.h. Calls go past libc, whose functions are points of cancellation. */
#include "lockstep/lockstep.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint8_t loopback[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};

bool lockstep_parse(const char *text, int *socket_fd, int *page_fd)
{
	int end = 0;

	if (sscanf(text, "%d,%d%n", socket_fd, page_fd, &end) != 2 || text[end])
		return false;
	return *socket_fd >= 0 && *page_fd >= 0;
}

int lockstep_send(int fd, const struct lockstep_head *head, const void *bytes)
{
	struct iovec iov[] = {{(void *)head, sizeof(*head)}, {(void *)bytes, head->bytes}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = head->bytes ? 2 : 1};

	while (syscall(SYS_sendmsg, fd, &m, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static bool is_message(const struct lockstep_message *m, size_t n)
{
	const struct lockstep_head *h = &m->head;

	if (n < sizeof(*h) || n != sizeof(*h) + h->bytes || h->kind < LOCKSTEP_JOIN || h->kind >= LOCKSTEP_KINDS)
		return false;
	return (h->kind == LOCKSTEP_PACKET) == (h->bytes > 0);
}

int lockstep_receive(int fd, struct lockstep_message *m, bool wait)
{
	struct iovec iov = {m, offsetof(struct lockstep_message, bytes) + sizeof(m->bytes)};
	struct msghdr hdr = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	do
		n = syscall(SYS_recvmsg, fd, &hdr, wait ? 0 : MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	return !(hdr.msg_flags & MSG_TRUNC) && is_message(m, (size_t)n) ? 1 : -EBADMSG;
}

void lockstep_address(uint32_t host, uint8_t gid[16])
{
	uint32_t n = host + LOCKSTEP_ADDRESS_FIRST;

	memcpy(gid, loopback, sizeof(loopback));
	gid[13] = (uint8_t)(n >> 16);
	gid[14] = (uint8_t)(n >> 8);
	gid[15] = (uint8_t)n;
}

bool lockstep_host(const uint8_t gid[16], uint32_t *host)
{
	uint32_t n = (uint32_t)gid[13] << 16 | (uint32_t)gid[14] << 8 | gid[15];

	if (memcmp(gid, loopback, sizeof(loopback)) != 0 || n < LOCKSTEP_ADDRESS_FIRST)
		return false;
	*host = n - LOCKSTEP_ADDRESS_FIRST;
	return true;
}

bool lockstep_host_name(const char *name, uint32_t *host)
{
	int end = 0;

	return !strncmp(name, "host", 4) && isdigit((unsigned char)name[4]) &&
	       sscanf(name + 4, "%8" SCNu32 "%n", host, &end) == 1 && !name[4 + end];
}

socklen_t lockstep_name(struct sockaddr_un *a, uint64_t run, enum lockstep_socket kind, struct lockstep_end own,
			struct lockstep_end peer)
{
	int n;

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
		     "verbena-%" PRIx64 "/%c/%" PRIu32 ":%" PRIu16 "/%" PRIu32 ":%" PRIu16, run, kind, own.host,
		     own.port, peer.host, peer.port);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

bool lockstep_name_read(const struct sockaddr_un *a, socklen_t bytes, enum lockstep_socket *kind,
			struct lockstep_end *own, struct lockstep_end *peer)
{
	char text[sizeof(a->sun_path)] = {0}, letter;
	size_t before = offsetof(struct sockaddr_un, sun_path) + 1;
	uint64_t run;

	if (a->sun_family != AF_UNIX || bytes <= before || bytes > sizeof(*a) || a->sun_path[0])
		return false;
	memcpy(text, a->sun_path + 1, bytes - before);
	if (sscanf(text, "verbena-%" SCNx64 "/%c/%" SCNu32 ":%" SCNu16 "/%" SCNu32 ":%" SCNu16, &run, &letter,
		   &own->host, &own->port, &peer->host, &peer->port) != 6)
		return false;
	*kind = (enum lockstep_socket)letter;
	return true;
}
