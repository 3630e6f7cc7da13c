/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface that a UDP packet leaves by: that of its source GID, as an adapter is the port of one interface, if
 * this has a route to the destination. Otherwise, and between addresses of this host, the routing table chooses; unless
 * the back end is bound: then nothing to another host leaves by another interface. What was found out is kept for a while,
 * for each pair of addresses.
 *
 * Private to src/io.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pkt.h"
#include "io/by_interface.h"
#include "io/udp/udp.h"

struct udp_route {
	uint8_t src[16], dst[16];
	uint32_t asked_ifindex; /* of the flow */
	uint32_t ifindex;       /* to name to the kernel; 0: none, the routing table chooses */
	uint32_t turn;          /* 0: empty; another than that of the routes: forgotten */
	uint64_t until_ns;
	struct io_interface *counts; /* of the interface that it leaves by */
};

struct udp_routes {
	struct io_gid gids[IO_GIDS_MAX]; /* of interfaces that lead to other hosts */
	size_t gid_count;
	int fd; /* rtnetlink; -1: there is none, and the routing table chooses */
	struct io_interfaces *interfaces;
	struct io_interface uncounted; /* for those that have no row */
	uint32_t turn;
	struct udp_route *kept;
	bool bound; /* only ever by the interface of the source GID, whether it has a route or not */
};

/* interfaces is *borrowed*; NULL: nobody reads it. 0 or -ENOMEM. */
int udp_routes_open(struct udp_routes *, struct io_interfaces *interfaces, bool bound);
void udp_routes_close(struct udp_routes *);
/* The kernel is not asked any more; and again, where sockets are made now, with nothing that was known. */
void udp_routes_leave(struct udp_routes *);
void udp_routes_return(struct udp_routes *);
/* Forgets the routes that it keeps. `fd` is any socket, for ioctls here. */
void udp_routes_set_gids(struct udp_routes *, int fd, const struct io_gid *, size_t count);

/* Never NULL; *lent* until the next call. */
const struct udp_route *udp_route(struct udp_routes *, const struct flow *, uint64_t now_ns);
