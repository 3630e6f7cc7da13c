/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Early packets of a receiver: those that arrived before their turn and are kept until then.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/qp.h"
#include "transport/veroce/receiver.h"
#include "wire/veroce.h"

/* A packet that waits for its turn. */
struct early_packet {
	struct veroce_packet p; /* as it arrived, but its payload is a copy */
	uint8_t *payload;       /* NULL: it has none */
};

/*
 * Whether an early packet's payload is placed when it arrives. In message order it is if the packet belongs to the
 * oldest incomplete message and does not end it: its PO is as far from the one that is due as its PSN is from epsn.
 */
static inline bool early_lands(const struct transport *tp, const struct receiver *in, const struct veroce_packet *p)
{
	if (tp->config.veroce.order != ORDER_MESSAGE)
		return tp->config.veroce.order == ORDER_WEAK;
	return p->msn == psn_add(in->amsn, 1) && !(p->info->flags & F_END) &&
	       !((p->po - in->po - (p->bth.psn - in->rx.epsn)) & PSN_MASK);
}

/* Copies and records an early packet that was judged RX_NEW. False: no room, and nothing was done. */
bool early_keep(struct transport *, struct receiver *, const struct veroce_packet *);
/* Likewise, whether or not it may have the room, without counting it. False: no memory. */
bool early_put(struct transport *, struct receiver *, const struct veroce_packet *);
/* Removes the packet from its record; the caller frees it. */
struct early_packet *early_take(struct transport *, struct receiver *, struct rx_meta *);
void early_free(struct transport *, struct early_packet *);
/* Frees all recorded packets; the caller drops the records next. */
void early_drop(struct transport *, struct receiver *);
