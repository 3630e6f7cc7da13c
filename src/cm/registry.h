/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The knowledge that the connection managers of one host share: the ports and listeners of each, the process that took
 * in a request, and the connections that end for their peers when a process is killed.
 *
 * It is a block of memory without a lock, so a process that is stopped or killed in the middle of a call holds up
 * nobody. Each process has a slot with an area of its own, which it alone writes; the few words that several write
 * change by compare-and-swap. A reader copies, bounds and judges all that it reads: at worst a process that writes
 * rubbish takes ports that it has no right to.
 *
 * A member's life is a number that it draws when it joins. Rows with the number of another life belong to a process
 * that has ended: its ports are free, its wills are carried out by others.
 *
 * A port is claimed in three steps: the row is written as tentative, then all others are read, then the row is made
 * firm. When two claim at the same time, at least one sees the other; the one with the lower slot takes the other's
 * tentative row back, and the other gives way. So one of them has the port, and neither waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pkt.h"
#include "cm/cm.h"

enum {
	REGISTRY_SLOTS = 127,
	REGISTRY_ROWS = 2048,   /* ports of a member that a program has bound */
	REGISTRY_WILLS = 16384, /* connections of a member */
	REGISTRY_NO_ROW = 0xffffffff,
	REGISTRY_NOBODY = -1
};

struct registry_page; /* the memory; all zero: nobody has joined yet */

/* One member's access to it. */
struct registry {
	struct registry_page *page; /* NULL: there is nobody else; every call succeeds and finds nothing */
	uint32_t slot, life;
	/* Whether the process with a slot exists still; called only when a row of it is in the way. */
	bool (*lives)(void *ctx, uint32_t slot);
	void *ctx;
	uint32_t row_hint, will_hint;
	int in_the_way; /* the slot that the last claim failed for */
};

/* A claim to a port. */
struct registry_claim {
	enum cm_space space;
	struct cm_addr addr;
	bool reuse, afonly, listening;
};

/*
 * The addresses of the host that the member has, where those are not all of them (cm_config.bound): a wildcard address
 * stands for these alone. From the NIC_GIDS_MAX-th on they are not known to others.
 */
void registry_set_own(struct registry *, const uint8_t (*ip)[16], uint32_t count);
/* Another member that has an address, or REGISTRY_NOBODY. */
int registry_owner(struct registry *, const uint8_t *ip);

/* How much memory; the same in every process of this version. */
size_t registry_bytes(void);

/* r has page (borrowed), slot, lives and ctx. `life` is not 0 and was drawn. Ports of the slot's last owner are free
 * from now on. */
void registry_join(struct registry *, uint32_t life);
/* Gives back all ports. */
void registry_leave(struct registry *);

/* Whether the process with a slot has ended; its ports are free then. */
bool registry_is_gone(struct registry *, uint32_t slot);

/* ---- ports ------------------------------------------------------------------------------------ */

/* 0, or why both cannot have their ports, which are the same number of the same space: -EADDRINUSE, -EADDRNOTAVAIL. */
int registry_clash(const struct registry_claim *there, const struct registry_claim *wanted);
/* How well a listener there fits a request to an address: 0 not at all, 1 IPv6 wildcard for IPv4, 2 wildcard, 3
 * address. */
int registry_fit(const struct registry_claim *there, const uint8_t *ip);

/*
 * Takes a port of this claim against other members; *row names it from then on. -EADDRINUSE and -EADDRNOTAVAIL as
 * registry_clash(), with in_the_way set; -ENOMEM: all rows are taken.
 */
int registry_bind(struct registry *, const struct registry_claim *, uint32_t *row);
/* The claim of *row is now this one, which differs in its flags. Fails as registry_bind(); the row is unchanged then.
 */
int registry_change(struct registry *, uint32_t *row, const struct registry_claim *);
/* Likewise, for a change that no other member can object to. */
void registry_amend(struct registry *, uint32_t row, const struct registry_claim *);
/* more: another row of this member's has the port too. REGISTRY_NO_ROW is harmless. */
void registry_release(struct registry *, uint32_t row, bool more);

/* Takes a port that nobody has, on all addresses; it needs no row. False: somebody has it. */
bool registry_draw(struct registry *, enum cm_space, uint16_t port);
void registry_undraw(struct registry *, enum cm_space, uint16_t port);

/*
 * Of the other members that have the address `gid`, to which a request was sent, the one whose listener fits best, or
 * REGISTRY_NOBODY; *fit says how well. ip is the address that the request asks for.
 */
int registry_listener(struct registry *, enum cm_space, const uint8_t *gid, const uint8_t *ip, uint16_t port, int *fit);

/* The claim in a member's row, for tools: false: there is none. `slot` and `row` are bounded here. */
bool registry_row(const struct registry_page *, uint32_t slot, uint32_t row, struct registry_claim *);

/* ---- requests that came ----------------------------------------------------------------------- */

/* Whose a request is; the newest of many are remembered. `key` is a hash of what makes it the same one. */
void registry_note(struct registry *, uint64_t key);
int registry_noted(const struct registry *, uint64_t key); /* a slot, or REGISTRY_NOBODY */

/* ---- last wills ------------------------------------------------------------------------------- */

struct registry_will {
	struct flow flow; /* to the peer: addresses and interface */
	uint32_t local_comm_id, remote_comm_id, remote_qpn;
};

/* REGISTRY_NO_ROW: there is no room, and the peer gets no message. */
uint32_t registry_make_will(struct registry *, const struct registry_will *);
void registry_drop_will(struct registry *, uint32_t will); /* REGISTRY_NO_ROW is harmless */

/* Goes through the wills of the dead; all zero: from the beginning. */
struct registry_sweep {
	uint32_t slot, will;
	uint32_t end; /* before this slot; 0: of all */
	bool looked;  /* whether the slot's owner lives */
};

/* The next will of somebody who has ended, which is taken out. False: there is none any more. */
bool registry_next_will(struct registry *, struct registry_sweep *, struct registry_will *);

/* ---- the registrar ---------------------------------------------------------------------------- */

/* The member that gets what names nobody, or REGISTRY_NOBODY. */
int registry_registrar(const struct registry *);
int registry_requests_slot(const struct registry_page *); /* likewise, for who has no slot yet */
/* This member is the registrar now, if the other (or nobody) still was. */
bool registry_take_over(struct registry *, int from);
