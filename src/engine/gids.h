/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The GID table: the local addresses that peers reach this host by. A new one has an order that depends on nothing but
 * the configuration of the interfaces; then it follows the world, and what is at an index stays there while it exists.
 * It needs no privilege and does not join a group, so tools use it beside running engines.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "engine/profile.h"
#include "nic/nic.h"

enum { GID_MAC_BYTES = 32, GIDS_HIDDEN_MAX = 8 };

/* What the settings leave of the addresses; NULL or empty: all of them that peers can be told of (struct gid_table,
 * networked). */
struct gid_choice {
	const char *interfaces; /* comma list of names */
	/*
	 * Comma list of at most GROUP_ADDRESSES_MAX addresses of them, a link-local one perhaps with %interface. An
	 * address that no interface has, but the kernel takes for this host's, is one too: any of 127.0.0.0/8.
	 */
	const char *addresses;
	uint32_t kinds; /* a bit for each enum profile_gid that is taken; 0: all */
	/*
	 * One of those interfaces, or one of those addresses, which alone is taken: what a device is bound to. An address
	 * may be one of 127.0.0.0/8 that no interface has, unless `addresses` leaves others.
	 */
	const char *rail;
};

struct config;

/* What the settings leave to a device. Borrows them. */
struct gid_choice gids_choice(const struct config *, unsigned device);

/* A network interface. */
struct gid_link {
	struct engine_interface interface;
	bool loopback;
	bool up;      /* it may be used, */
	bool running; /* and has a carrier */
	uint8_t mac[GID_MAC_BYTES];
};

struct gid_table {
	struct nic_gid gids[NIC_GIDS_MAX]; /* all zero: the address has gone, or there was none yet */
	struct engine_interface
		interfaces[NIC_GIDS_MAX]; /* of the GID with the same index, or of the one that was there */
	uint8_t last[NIC_GIDS_MAX][16];   /* that GID, which gets its index again when it returns */
	uint32_t count;                   /* of indices that have a GID or had one */
	struct gid_link
		links[NIC_GIDS_MAX]; /* the port's interfaces: those that are named, or that had one of the GIDs */
	uint32_t link_count;
	/*
	 * An interface other than loopback has been up, with an address. From then on loopback is no part of the port,
	 * and its addresses that no other host reaches are not added, unless the choice names it.
	 */
	bool networked;
	/* Addresses that are to be gone although interfaces have them; all zero: none. */
	uint8_t hidden[GIDS_HIDDEN_MAX][16];
	struct engine_port port;
	uint32_t loopback_mtu; /* bytes of an IP packet, whatever the choice; 0: there is no loopback interface that is
				  up */
};

/* One address as the kernel reports it. */
struct gid_candidate {
	uint8_t raw[16];    /* GID form */
	uint32_t sequence;  /* the kernel's order */
	bool loopback;      /* the interface is */
	bool up, running;   /* likewise */
	bool of_host;       /* no other host reaches it */
	bool placed;        /* it is in the table */
	uint8_t prefix_len; /* of the address in its own family */
	struct engine_interface interface;
};

/*
 * A new table, of interfaces that are up; it may be empty. NULL: every address of the host. 0, or -errno with a
 * sentence in err: -ENODEV when an interface of the choice is unknown, -EINVAL when an address is none, -EADDRNOTAVAIL
 * when it is not this host's. Addresses for which the table has no room are left out.
 */
int gids_load(struct gid_table *, const struct gid_choice *, char *err, size_t err_bytes);
/* A table for each device of the settings, as programs see it (map_file.h): all alike, or, with rails, without an address
 * in common. Likewise. */
int gids_load_all(struct gid_table *, const struct config *, char *err, size_t err_bytes);
/*
 * Brings a table up to date. An address stays while an interface has it, be that down or up; one that comes takes the
 * index that it had before, or else the first that none has had. The port's state is the caller's to follow:
 * gids_port(). 0, or a negative errno with the table unchanged.
 */
int gids_follow(struct gid_table *, const struct gid_choice *);
/* On another host: an address keeps its index whichever interface has it there. gids_follow() comes next. */
void gids_leave_interfaces(struct gid_table *);
/*
 * For faults. An address goes, as if its interface had lost it, until it is shown again; or it moves to the first index
 * that none has had. False: it is not in the table, was not hidden, or there is no room.
 */
bool gids_hide(struct gid_table *, const uint8_t gid[16]);
bool gids_show(struct gid_table *, const uint8_t gid[16], const struct gid_choice *);
bool gids_move(struct gid_table *, const uint8_t gid[16]);
/* The port's state by the flags of its links. */
struct engine_port gids_port(const struct gid_table *);

/*
 * Puts candidates in the table's order: interfaces by index, loopback last; of each its IPv6
 * link-local address, then IPv4, then other IPv6; the kernel's order within.
 */
void gids_sort(struct gid_candidate *, size_t n);
