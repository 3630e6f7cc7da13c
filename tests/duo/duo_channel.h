/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The channel of a duo, for what stands between it and the nics: duo_rings.c.
 *
 * Private to tests/duo.
 */
#pragma once

#include "duo/duo.h"

/* A packet on its way. */
struct duo_flight {
	uint64_t behind; /* held: packets of its direction still to pass */
	enum duo_side from;
	struct flow flow;
	uint32_t len;
	uint8_t *data;           /* exactly len bytes, so that an overread is caught */
	struct duo_flight *next; /* held */
};

/* Sends one by the channel, where rules and faults decide about it. */
void duo_transmit(struct duo *, enum duo_side from, const struct pkt *);
/* The next flight that has arrived by then, if any; the caller owns its bytes. */
bool duo_land(struct duo *, uint64_t until_ns, struct duo_flight *);
/* The host with that address, or NULL. */
struct duo_host *duo_addressee(struct duo *, const struct flow *);
void duo_trace(struct duo *, const uint8_t *bytes, size_t n);
bool duo_is_stopped(const struct duo_host *);

/* ---- duo_rings.c, for a duo that has rings ---- */

/* Before packets are made. */
void duo_rings_look(struct duo_host *);
void duo_rings_send(struct duo_host *, const struct pkt *, size_t n);
/* What has arrived by now gets to the nics. */
void duo_rings_happen(struct duo *);
/* When a host looks next; UINT64_MAX: when something comes. */
uint64_t duo_rings_next_ns(struct duo *);
void duo_rings_close(struct duo *);
