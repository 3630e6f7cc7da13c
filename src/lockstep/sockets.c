/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets of TCP between programs in simulated time (lockstep.h): each is one of AF_UNIX from the beginning, so whatever
 * a program does with it, waiting included, is the kernel's. The name of a socket says which end it is, so nothing is
 * kept here, and descriptors may be duplicated and inherited.
 *
 * Addresses are shown in the form of IPv4. A connection is made while connect() waits, also if the socket is not to
 * wait. Sockets of other kinds are the host's.
 */
#undef _FORTIFY_SOURCE /* the calls are defined here, not called */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lockstep/preload.h"

enum { PORT_FIRST = 32768, PORTS = 28232, TYPE_MASK = 15 };

static const struct lockstep_end none;

bool preload_is_tcp(int fd)
{
	int saved = errno, domain = 0, type = 0;
	socklen_t bytes = sizeof(int), more = sizeof(int);
	bool ours = preload_page && !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) && domain == AF_UNIX &&
		    !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &more) && type == SOCK_STREAM;

	errno = saved;
	return ours;
}

/* ---- addresses ---- */

/* Any address, and that of loopback in IPv6, is the own host's. False: it is no host's. */
static bool end_of(const struct sockaddr *a, socklen_t bytes, struct lockstep_end *end)
{
	static const uint8_t any4[16] = {[10] = 0xff, [11] = 0xff};
	uint8_t gid[16];

	if (a->sa_family == AF_INET && bytes >= sizeof(struct sockaddr_in)) {
		const struct sockaddr_in *in = (const void *)a;

		memcpy(gid, any4, sizeof(gid));
		memcpy(gid + 12, &in->sin_addr, 4);
		end->port = ntohs(in->sin_port);
	} else if (a->sa_family == AF_INET6 && bytes >= sizeof(struct sockaddr_in6)) {
		const struct sockaddr_in6 *in = (const void *)a;

		memcpy(gid, &in->sin6_addr, sizeof(gid));
		end->port = ntohs(in->sin6_port);
	} else {
		return false;
	}
	end->host = preload_host();
	return !memcmp(gid, any4, 16) || !memcmp(gid, &in6addr_any, 16) || !memcmp(gid, &in6addr_loopback, 16) ||
	       lockstep_host(gid, &end->host);
}

/* As the kernel writes an address: as much as there is room for, and its whole length. */
static void show_end(struct lockstep_end end, struct sockaddr *out, socklen_t *bytes)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(end.port)};
	uint8_t gid[16];

	if (!out || !bytes)
		return;
	lockstep_address(end.host, gid);
	memcpy(&in.sin_addr, gid + 12, 4);
	memcpy(out, &in, *bytes < sizeof(in) ? *bytes : sizeof(in));
	*bytes = sizeof(in);
}

/* Which end this name is, seen from that socket; false: it has none yet. */
static bool name_of(int (*look)(int, __SOCKADDR_ARG, socklen_t *), int fd, enum lockstep_socket *kind,
		    struct lockstep_end *own, struct lockstep_end *peer)
{
	struct sockaddr_un a = {0};
	socklen_t bytes = sizeof(a);

	return !look(fd, (__SOCKADDR_ARG){(struct sockaddr *)&a}, &bytes) &&
	       lockstep_name_read(&a, bytes, kind, own, peer);
}

OURS int getsockname(int fd, __SOCKADDR_ARG out, socklen_t *restrict bytes)
{
	enum lockstep_socket kind;
	struct lockstep_end own = {.host = preload_host()}, peer;

	if (!preload_is_tcp(fd) || !out.__sockaddr__)
		return NEXT(getsockname)(fd, out, bytes);
	if (!name_of(NEXT(getsockname), fd, &kind, &own, &peer))
		own.port = 0;
	show_end(own, out.__sockaddr__, bytes);
	return 0;
}

OURS int getpeername(int fd, __SOCKADDR_ARG out, socklen_t *restrict bytes)
{
	enum lockstep_socket kind;
	struct lockstep_end own, peer;

	if (!preload_is_tcp(fd) || !name_of(NEXT(getpeername), fd, &kind, &own, &peer))
		return NEXT(getpeername)(fd, out, bytes);
	if (kind == LOCKSTEP_SWITCH && name_of(NEXT(getsockname), fd, &kind, &own, &peer))
		own = peer;
	show_end(own, out.__sockaddr__, bytes);
	return 0;
}

/* ---- life ---- */

OURS int socket(int domain, int type, int protocol)
{
	bool tcp = (domain == AF_INET || domain == AF_INET6) && (type & TYPE_MASK) == SOCK_STREAM &&
		   (!protocol || protocol == IPPROTO_TCP);

	return preload_page && tcp ? NEXT(socket)(AF_UNIX, type, 0) : NEXT(socket)(domain, type, protocol);
}

static int bind_as(int fd, enum lockstep_socket kind, struct lockstep_end own, struct lockstep_end peer)
{
	static _Atomic unsigned drawn;
	struct sockaddr_un a;
	socklen_t bytes;
	int rc;

	for (unsigned i = 0; i < PORTS; i++) {
		struct lockstep_end end = own;

		if (!own.port)
			end.port = (uint16_t)(PORT_FIRST + drawn++ % PORTS);
		bytes = lockstep_name(&a, preload_page->run, kind, end, peer);
		rc = NEXT(bind)(fd, (__CONST_SOCKADDR_ARG){(struct sockaddr *)&a}, bytes);
		if (!rc || own.port || errno != EADDRINUSE)
			return rc;
	}
	return -1;
}

OURS int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes)
{
	const struct sockaddr *a = address.__sockaddr__;
	struct lockstep_end own;

	if (!a || a->sa_family == AF_UNIX || !preload_is_tcp(fd))
		return NEXT(bind)(fd, address, bytes);
	if (end_of(a, bytes, &own) && own.host == preload_host())
		return bind_as(fd, LOCKSTEP_LISTENER, own, none);
	errno = EADDRNOTAVAIL;
	return -1;
}

OURS int listen(int fd, int backlog)
{
	enum lockstep_socket kind;
	struct lockstep_end own = {.host = preload_host()}, peer;

	if (preload_is_tcp(fd) && !name_of(NEXT(getsockname), fd, &kind, &own, &peer) &&
	    bind_as(fd, LOCKSTEP_LISTENER, own, none))
		return -1;
	return NEXT(listen)(fd, backlog);
}

/* The simulator's answer, after the time that it takes. */
static int await_answer(int fd)
{
	char answer = 0;
	ssize_t n;

	do
		n = SLEEPS(ssize_t, NEXT(recv)(fd, &answer, 1, 0));
	while (n < 0 && errno == EINTR);
	if (n == 1 && answer == LOCKSTEP_ACCEPTED)
		return 0;
	errno = ECONNREFUSED;
	return -1;
}

static int call(int fd, struct lockstep_end to)
{
	int flags = fcntl(fd, F_GETFL), rc;
	struct sockaddr_un a;
	socklen_t bytes;

	if (bind_as(fd, LOCKSTEP_CLIENT, (struct lockstep_end){.host = preload_host()}, to))
		return -1;
	fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	bytes = lockstep_name(&a, preload_page->run, LOCKSTEP_SWITCH, none, none);
	rc = NEXT(connect)(fd, (__CONST_SOCKADDR_ARG){(struct sockaddr *)&a}, bytes);
	rc = rc ? rc : await_answer(fd);
	fcntl(fd, F_SETFL, flags);
	return rc;
}

OURS int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes)
{
	const struct sockaddr *a = address.__sockaddr__;
	struct lockstep_end to;

	if (!a || (a->sa_family != AF_INET && a->sa_family != AF_INET6) || !preload_is_tcp(fd))
		return NEXT(connect)(fd, address, bytes);
	if (end_of(a, bytes, &to))
		return call(fd, to);
	fprintf(stderr, "verbena: a program in simulated time cannot connect to a host outside; hosts are host0 "
			"(127.0.0.1), host1 (127.0.0.2) and so on\n");
	errno = ENETUNREACH;
	return -1;
}

static int show_call(int fd, __SOCKADDR_ARG from, socklen_t *bytes)
{
	int saved = errno;

	if (fd >= 0 && from.__sockaddr__)
		getpeername(fd, from, bytes);
	errno = saved;
	return fd;
}

OURS int accept4(int fd, __SOCKADDR_ARG from, socklen_t *bytes, int flags)
{
	__SOCKADDR_ARG unasked = {NULL};

	if (!preload_is_tcp(fd)) {
		if (!preload_takes_part() || preload_is_ready(fd, POLLIN))
			return NEXT(accept4)(fd, from, bytes, flags);
		return SLEEPS(int, NEXT(accept4)(fd, from, bytes, flags));
	}
	if (!preload_takes_part() || preload_is_ready(fd, POLLIN))
		return show_call(NEXT(accept4)(fd, unasked, NULL, flags), from, bytes);
	return show_call(SLEEPS(int, NEXT(accept4)(fd, unasked, NULL, flags)), from, bytes);
}

OURS int accept(int fd, __SOCKADDR_ARG from, socklen_t *bytes)
{
	return accept4(fd, from, bytes, 0);
}

/* Options of TCP and IP succeed, and have no effect. */
OURS int setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
	if ((level == IPPROTO_TCP || level == IPPROTO_IP || level == IPPROTO_IPV6) && preload_is_tcp(fd))
		return 0;
	return NEXT(setsockopt)(fd, level, name, value, bytes);
}

/* ---- names ---- */

OURS int getaddrinfo(const char *restrict name, const char *restrict service, const struct addrinfo *restrict hints,
		     struct addrinfo **restrict out)
{
	char text[INET_ADDRSTRLEN];
	uint8_t gid[16];
	uint32_t host;

	if (!preload_page || !name || !lockstep_host_name(name, &host))
		return NEXT(getaddrinfo)(name, service, hints, out);
	lockstep_address(host, gid);
	return NEXT(getaddrinfo)(inet_ntop(AF_INET, gid + 12, text, sizeof(text)), service, hints, out);
}

OURS int gethostname(char *name, size_t bytes)
{
	int n;

	if (!preload_page)
		return NEXT(gethostname)(name, bytes);
	n = snprintf(name, bytes, "host%u", preload_host());
	if (n >= 0 && (size_t)n < bytes)
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}
