/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which interface and which MACs a RoCEv1 packet leaves with. Answers are kept for a second.
 *
 * Private to src/io.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pkt.h"
#include "io/raw/raw.h"
#include "wire/rocev1.h"

enum { RAW_ROUTES = 256 /* a power of 2 */ };

enum raw_way {
	RAW_NOWHERE, /* the source is no address of a usable interface */
	RAW_ASKED,   /* the kernel is looking for the destination */
	RAW_KNOWN
};

struct raw_route {
	uint8_t src[16], dst[16];
	uint32_t asked_ifindex; /* of the flow */
	enum raw_way way;
	bool everywhere; /* to a group: a copy goes over the loopback interface, too */
	uint32_t ifindex;
	struct rocev1_link link;
	uint64_t until_ns; /* 0: empty */
	uint64_t asked_ns; /* when the kernel was last told to look */
};

struct raw_interface {
	uint32_t ifindex;
	bool is_ethernet;
	bool is_loopback;
	uint8_t mac[ROCEV1_MAC_LEN];
};

struct raw_routes {
	struct io_gid gids[IO_GIDS_MAX];
	struct raw_interface interfaces[IO_GIDS_MAX]; /* of the GID with the same index */
	size_t gid_count;
	uint32_t loopback; /* interface index */
	int neighbour_fd;
	struct raw_route kept[RAW_ROUTES];
};

/* Whether it is that of a multicast group: its packets need no ARP. */
bool raw_gid_is_group(const uint8_t gid[16]);

/* `fd` is any socket, for ioctls here. 0 or a negative errno. */
int raw_routes_open(struct raw_routes *, int fd, const struct io_gid *, size_t count);
void raw_routes_close(struct raw_routes *);
/* Other addresses and interfaces from now on; no answer is kept. */
void raw_routes_set(struct raw_routes *, int fd, const struct io_gid *, size_t count);

/* The index of that GID of this host, on that interface unless it is 0; -1. */
int raw_gid_find(const struct raw_routes *, const uint8_t gid[16], uint32_t ifindex);

/* Never NULL; *lent* until the next call. */
const struct raw_route *raw_route(struct raw_routes *, const struct flow *, uint64_t now_ns);
/* The route for that source and destination; NULL: there is none. */
const struct raw_route *raw_route_kept(const struct raw_routes *, const uint8_t src[16], const uint8_t dst[16]);
