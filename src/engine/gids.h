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

/* What the settings leave of the addresses; NULL or empty: all of them. */
struct gid_choice {
	const char *interfaces; /* comma list of names */
	/*
	 * Comma list of at most GROUP_ADDRESSES_MAX addresses of them, a link-local one perhaps with %interface. An address
	 * that no interface has, but the kernel takes for this host's, is one too: any of 127.0.0.0/8.
	 */
	const char *addresses;
};

struct gid_table {
	struct nic_gid gids[NIC_GIDS_MAX];
	struct engine_interface interfaces[NIC_GIDS_MAX]; /* of the GID with the same index */
	uint32_t count;
	uint32_t loopback_mtu; /* bytes of an IP packet, whatever the choice; 0: there is no loopback interface that is up */
};

/* One address as the kernel reports it. */
struct gid_candidate {
	uint8_t raw[16]; /* GID form */
	uint32_t sequence; /* the kernel's order */
	bool loopback;   /* the interface is */
	uint8_t prefix_len; /* of the address in its own family */
	struct engine_interface interface;
};

/*
 * Of interfaces that are up. NULL: no choice. 0, or -errno with a sentence in err: -ENODEV when an interface of the choice
 * is unknown, -EINVAL when an address is none, -EADDRNOTAVAIL when it is not this host's or there is no address at all.
 * Addresses for which the table has no room are left out.
 */
int gids_load(struct gid_table *, const struct gid_choice *, char *err, size_t err_bytes);

/*
 * Puts candidates in the table's order: interfaces by index, loopback last; of each its IPv6
 * link-local address, then IPv4, then other IPv6; the kernel's order within.
 */
void gids_sort(struct gid_candidate *, size_t n);

#endif
