/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests alone: sockets and addresses for the UDP back end. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/udp/udp.h"
#include "support/test.h"

/* A socket that reads, bound to a free port of any address; -1: the family is not there. */
static inline int bind_any(enum udp_family family, uint16_t *port)
{
	struct sockaddr_in6 a = {.sin6_family = family == UDP_V4 ? AF_INET : AF_INET6};
	socklen_t len = family == UDP_V4 ? sizeof(struct sockaddr_in) : sizeof(a);
	int fd = udp_rx_socket(family);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0)
		return -1;
	getsockname(fd, (struct sockaddr *)&a, &len);
	*port = ntohs(a.sin6_port);
	return fd;
}

/* IPv4 as ::ffff:a.b.c.d. */
static inline void set_addr(uint8_t *gid, const char *text)
{
	struct in_addr v4;

	memset(gid, 0, 16);
	if (inet_pton(AF_INET, text, &v4) == 1) {
		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, &v4, 4);
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, gid), 1);
	}
}
