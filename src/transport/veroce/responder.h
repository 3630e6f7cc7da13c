/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder: packets in space Q to memory and receive WQEs. responder_reads.h has READs and atomics.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/veroce/work.h"

struct veroce_packet;

/* A request: judged, placed or kept for its turn, and acknowledged. */
void veroce_responder_input(struct transport *, struct qp *, const struct pkt *, const struct veroce_packet *,
			    uint64_t now_ns);
/*
 * The fast path of veroce_responder_input() for most packets of a long message: a Middle packet in its
 * turn that needs no acknowledgement now. False: it is not such a packet, or cannot be accepted, and
 * nothing was done.
 */
bool veroce_responder_middle(struct transport *, struct qp *, const struct pkt *, const struct veroce_packet *,
			     uint64_t now_ns);
/*
 * Where a SEND's or WRITE's packet, whose turn it will be, is placed; NULL: nowhere, or in pieces. `is_next`: its turn
 * is now; otherwise only packets of its own message come before it.
 */
uint8_t *veroce_responder_place(const struct transport *, const struct qp *, const struct veroce_packet *,
				bool is_next);
__attribute__((cold)) void veroce_responder_retry_stalled(struct transport *, struct qp *, uint64_t now_ns);
/* A receive WQE may have been posted: finishes a message that waits for one. */
static inline void veroce_responder_retry(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	if (qp->veroce->w->q_in.stalled)
		veroce_responder_retry_stalled(tp, qp, now_ns);
}

/* Flushes the bound receive WQEs, in order. */
void veroce_responder_flush(struct transport *, struct qp *, uint64_t now_ns);
/* Gives the bound receive WQEs back, without completions. */
void veroce_responder_drop(struct transport *, struct qp *);
/* No receive WQE is bound: gives back the memory that lists them. */
void veroce_responder_rest(struct transport *, struct veroce_work *);
