/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MACs of hosts on a link, as the kernel's neighbour table has them. It needs no privilege.
 *
 * Private to src/io.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum neighbour_state {
	NEIGHBOUR_UNKNOWN, /* or it does not answer */
	NEIGHBOUR_STALE,   /* it was there, but has not answered lately */
	NEIGHBOUR_KNOWN
};

/* A socket for neighbour_look(), which the caller closes; or a negative errno. */
int neighbour_open(void);

/* Address in GID form. Sets mac unless it is unknown. One exchange with the kernel; does not wait for the network. */
enum neighbour_state neighbour_look(int fd, uint32_t ifindex, const uint8_t address[16], uint8_t mac[6]);

/*
 * Makes the kernel look for it (ARP, Neighbour Discovery) or confirm what it knows, by an empty datagram to UDP port 9,
 * "discard" (RFC 863), which the kernel must find the MAC for. Does not wait.
 */
void neighbour_ask(uint32_t ifindex, const uint8_t address[16]);
