/* SPDX-License-Identifier: BSD-2-Clause */
/* Common parts of the sockets of both directions (udp_rx.h, udp_tx.h); internal to the UDP back end. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "io/udp/udp.h"

enum { UDP_CONTROL_BYTES = 192 };

struct udp_control {
	_Alignas(struct cmsghdr) uint8_t bytes[UDP_CONTROL_BYTES];
};

union udp_address {
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Sets an option that helps but is not needed; failure is ignored. */
void udp_set_option(int fd, int level, int option, int value);
/* Sets a size with `force`, which needs a privilege, else with `plain`. */
void udp_set_buffer(int fd, int force, int plain, int bytes);
/* Unbound, IPv6 alone in that family. A negative errno. */
int udp_make_socket(enum udp_family);
/* Host order; 0: it has none. */
uint16_t udp_bound_port(int fd, enum udp_family);

static inline bool udp_is_link_local(const uint8_t *addr)
{
	return addr[0] == 0xfe && (addr[1] & 0xc0) == 0x80;
}
