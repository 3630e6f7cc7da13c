/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source address of a connected UDP socket is the one that the kernel would give to a packet. Sockets are opened by
 * system call, because librspreload replaces socket() of libc by rsocket().
 */
#include "rdmacm/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rdmacm/ucma_addr.h"

enum { PRIVILEGED_PORTS = 1024 };

static bool is_wildcard(const struct cm_addr *a)
{
	static const uint8_t zeros[16], mapped[16] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(a->ip, zeros, sizeof(zeros)) || !memcmp(a->ip, mapped, sizeof(mapped));
}

/* For connect() the wildcard address is this host. */
static void name_oneself(struct cm_addr *a)
{
	if (!is_wildcard(a))
		return;
	if (a->family == CM_IPV4)
		a->ip[12] = 127;
	a->ip[15] = 1;
}

static int ask(int fd, struct cm_addr *src, const struct cm_addr *dst)
{
	struct sockaddr_in6 to = {0}, from = {0};
	struct cm_addr port_any = *src, found;
	socklen_t len = sizeof(from);
	int err;

	port_any.port = 0;
	if (!is_wildcard(src)) {
		size_t n = ucma_addr_write(&from, sizeof(from), &port_any);

		if (syscall(SYS_bind, fd, &from, n) < 0)
			return -errno;
	}
	if (syscall(SYS_connect, fd, &to, ucma_addr_write(&to, sizeof(to), dst)) < 0 ||
	    syscall(SYS_getsockname, fd, &from, &len) < 0)
		return -errno;
	err = ucma_addr_read(&found, &from, sizeof(from));
	if (err)
		return err;
	found.port = src->port;
	*src = found;
	return 0;
}

int source_find(struct cm_addr *src, struct cm_addr *dst)
{
	struct cm_addr to = *dst, from = *src;
	int fd, err;

	name_oneself(&to);
	if (!to.port)
		to.port = 1; /* the kernel demands a port; no packet is sent */
	if (from.family == CM_NO_FAMILY)
		from = (struct cm_addr){.family = to.family};
	fd = (int)syscall(SYS_socket, to.family == CM_IPV4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	err = ask(fd, &from, &to);
	close(fd);
	if (err)
		return err;
	to.port = dst->port;
	*src = from;
	*dst = to;
	return 0;
}

static bool is_mapped(const struct cm_addr *a)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(a->ip, mapped, sizeof(mapped));
}

static bool is_among(const struct cm_addr *own, size_t count, const struct cm_addr *a)
{
	for (size_t i = 0; i < count; i++)
		if (!memcmp(own[i].ip, a->ip, sizeof(a->ip)))
			return true;
	return false;
}

/* As the kernel does between a host's own addresses, which knows no interface for 127.0.0.2. */
static bool to_oneself(const struct cm_addr *own, size_t count, struct cm_addr *src, struct cm_addr *dst)
{
	struct cm_addr from = *dst, to = *dst;

	if (!is_among(own, count, dst))
		return false;
	from.port = src->port;
	if (source_find(&from, &to))
		return false;
	*src = from;
	*dst = to;
	return true;
}

int source_find_among(const struct cm_addr *own, size_t count, struct cm_addr *src, struct cm_addr *dst)
{
	struct cm_addr from = *src, to = *dst;
	int err = source_find(&from, &to);

	if (!is_wildcard(src) || is_among(own, count, &from)) {
		if (!err) {
			*src = from;
			*dst = to;
		}
		return err;
	}
	if (to_oneself(own, count, src, dst))
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (is_mapped(&own[i]) != is_mapped(dst))
			continue;
		from = own[i];
		from.port = src->port;
		from.family = dst->family;
		to = *dst;
		if (is_wildcard(&to)) {
			to = from;
			to.port = dst->port;
		}
		err = source_find(&from, &to);
		if (err)
			continue;
		*src = from;
		*dst = to;
		return 0;
	}
	return err ? err : -EADDRNOTAVAIL;
}

uint16_t source_first_port(void)
{
	FILE *f = geteuid() ? fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "re") : NULL;
	unsigned first = PRIVILEGED_PORTS;

	if (!geteuid())
		return 0;
	if (f) {
		if (fscanf(f, "%u", &first) != 1 || first > UINT16_MAX)
			first = PRIVILEGED_PORTS;
		fclose(f);
	}
	return (uint16_t)first;
}
