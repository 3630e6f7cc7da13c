/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A wrapper that adds multicast groups to what a back end receives: for each group and interface a socket of its own,
 * bound to the group's address, by whose membership the kernel speaks IGMP (RFC 3376) or MLD (RFC 3810). So the sockets
 * that processes of a host share and pass to each other (group.h) have no memberships, and those of a process that is
 * killed go with it. All sockets of a group get each packet, whichever process they belong to.
 *
 * Only packets for the multicast QPN are taken: no queue pair has its own packets sent to a group.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/io.h"

enum { MCAST_JOINS_MAX = 256 }; /* groups times interfaces */

/* *Takes* lower. `port` is the UDP port of all groups. Borrows the counters. 0 or a negative errno. */
int mcast_open(struct io **, struct io *lower, uint16_t port, struct io_counters *);

/*
 * Joins on those interfaces, where it was not joined already. 0 if it is joined on one of them, else a negative errno:
 * -ENOMEM where there are too many.
 */
int mcast_join(struct io *, const uint8_t gid[16], const uint32_t *ifindex, size_t count);
/* Leaves all, but knows them; and joins them again, each on the interface that there() says, 0: on none. */
void mcast_leave(struct io *);
void mcast_return(struct io *, uint32_t (*there)(const void *ctx, uint32_t ifindex), const void *ctx);
/* Leaves all for which keep() is false. */
void mcast_keep(struct io *, bool (*keep)(const void *ctx, const uint8_t gid[16], uint32_t ifindex), const void *ctx);
