/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The GID table: every local address that a peer can reach this host by, in an order that depends on
 * nothing but the configuration of the interfaces. It needs no privilege and does not join a group,
 * so tools use it beside running engines.
 */
#ifndef ENGINE_GIDS_H
#define ENGINE_GIDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "nic/nic.h"

struct gid_table {
	struct nic_gid gids[NIC_GIDS_MAX];
	struct engine_interface interfaces[NIC_GIDS_MAX]; /* of the GID with the same index */
	uint32_t count;
};

/* One address as the kernel reports it. */
struct gid_candidate {
	uint8_t raw[16]; /* GID form */
	uint32_t sequence; /* the kernel's order */
	bool loopback;   /* the interface is */
	struct engine_interface interface;
};

/*
 * Interfaces that are up, named in `only` (a comma list; NULL or empty: all of them). 0, or -errno
 * with a sentence in err: -ENODEV when a name in `only` is unknown, -EADDRNOTAVAIL when there is no
 * address at all. Addresses for which the table has no room are left out.
 */
int gids_load(struct gid_table *, const char *only, char *err, size_t err_bytes);

/*
 * Puts candidates in the table's order: interfaces by index, loopback last; of each its IPv6
 * link-local address, then IPv4, then other IPv6; the kernel's order within.
 */
void gids_sort(struct gid_candidate *, size_t n);

#endif
