/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IP addresses that a device takes along to another network namespace, and what neighbours are told of it there. By
 * rtnetlink, so it needs CAP_NET_ADMIN in both.
 *
 * Private to src/engine and to `verbena move`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A connection to the kernel about addresses of the namespace where sockets are made now. A negative errno. */
int address_open(void);

struct address {
	uint8_t gid[16];
	uint32_t ifindex;
	uint8_t prefix_len; /* in its own family */
};

/* The interface through which the network of an address is reached directly, loopback left out; 0: there is none. */
uint32_t address_interface(int fd, const uint8_t gid[16]);
/* Where an address is. False: no interface has it. */
bool address_find(int fd, const uint8_t gid[16], struct address *);
/*
 * Gives it to the interface through which its network is reached directly there, and writes to `at` where it is then. 0,
 * or a negative errno: -ENETUNREACH, there is no such interface.
 */
int address_add(int fd, const struct address *, struct address *at);
int address_remove(int fd, const struct address *);

/* Neighbours on that interface learn that the address is here: ARP (RFC 5227 3) or NDP (RFC 4861 7.2.6). Without
 * CAP_NET_RAW they find out by themselves. */
void address_announce(const uint8_t gid[16], uint32_t ifindex);
