/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The back end of RoCEv1: Ethernet frames with Ethertype 0x8915 through one packet socket, for all interfaces that have
 * a GID. It needs CAP_NET_RAW in the user namespace that owns the network namespace.
 *
 * A frame leaves by the interface of its source GID. Packets to an address of this host, and copies of those to a
 * multicast group, go over the loopback interface, as they do with IP. The MAC of a link-local GID is in it; that of an
 * IP address is in the kernel's neighbour table. Packets to an address that the kernel is looking for wait, a second at
 * most and few; then they are dropped.
 *
 * A packet arrives if its GIDs fit the interface: the destination has an address there, and the source is none of this
 * host, or came over the loopback interface. Every process of the host that has such a socket gets every frame, and
 * takes the packets that are for its slot.
 *
 * There are no trains: a packet is a frame.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/by_interface.h"
#include "io/io.h"

enum { RAW_JOINS_MAX = 256, RAW_WAITING_MAX = 64, RAW_PACKET_BYTES_MAX = 8192 };

struct raw_config {
	const struct io_gid *gids; /* *borrowed* for the call; at most IO_GIDS_MAX */
	size_t gid_count;
	unsigned slot; /* the high 7 bits of the QPNs of this process */
	/* Whether a packet to QPN 1 is this process's; any thread that holds the io. NULL: all are. */
	bool (*is_ours)(void *ctx, const struct pkt *);
	void *ctx;
	struct io_counters *counters;     /* *borrowed* */
	struct io_interfaces *interfaces; /* likewise; NULL: nobody reads it */
};

/* 0, or a negative errno with a sentence in why: -EPERM without the capability. */
int raw_open(struct io **, const struct raw_config *, char *why, size_t why_bytes);

/* The host's addresses have changed, or something about their interfaces; as in struct raw_config. */
void raw_set_gids(struct io *, const struct io_gid *gids, size_t count);
/* As mcast_join() and mcast_keep() of mcast.h. */
int raw_join(struct io *, const uint8_t gid[16], const uint32_t *ifindex, size_t count);
void raw_keep(struct io *, bool (*keep)(const void *ctx, const uint8_t gid[16], uint32_t ifindex), const void *ctx);

/* As the kernel counts. */
size_t raw_rcvbuf_bytes(const struct io *);

/* What stands before that packet on the wire: its length, at most 58. MACs that are not known are 0. For captures. */
size_t raw_head(const struct io *, uint8_t *out, const struct pkt *);
