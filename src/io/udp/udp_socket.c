/* SPDX-License-Identifier: BSD-2-Clause */
/* Options and addresses of UDP sockets of both directions. */
#include "io/udp/udp_socket.h"

#include <errno.h>

#include "io/fd_away.h"
#include "io/net.h"

void udp_set_option(int fd, int level, int option, int value)
{
	(void)!setsockopt(fd, level, option, &value, sizeof(value));
}

void udp_set_buffer(int fd, int force, int plain, int bytes)
{
	if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof(bytes)) < 0)
		udp_set_option(fd, SOL_SOCKET, plain, bytes); /* the kernel cuts it to its limit */
}

int udp_make_socket(enum udp_family family)
{
	int fd = fd_away(
		net_socket(family == UDP_V4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

	if (fd < 0)
		return -errno;
	if (family == UDP_V6)
		udp_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	return fd;
}

uint16_t udp_bound_port(int fd, enum udp_family family)
{
	union udp_address a = {0};
	socklen_t len = sizeof(a);

	getsockname(fd, (struct sockaddr *)&a, &len);
	return ntohs(family == UDP_V4 ? a.v4.sin_port : a.v6.sin6_port);
}
