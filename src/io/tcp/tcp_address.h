/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of TCP connections, which flows have as GIDs and sockets as the kernel's structs. Pure.
 *
 * Private to src/io.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

union tcp_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Whether a GID is an IPv4 address. */
bool tcp_address_is_ipv4(const uint8_t gid[16]);
/* Returns the length of what it wrote. The interface counts for addresses of a link alone. */
socklen_t tcp_address_write(union tcp_address *, const uint8_t gid[16], uint16_t port, uint32_t ifindex);
void tcp_address_read(const union tcp_address *, uint8_t gid[16], uint16_t *port);
