/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READs and atomics at the responder: executed in space Q, answered in space R.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/message.h"
#include "transport/veroce/work.h"
#include "wire/psn.h"

struct veroce_packet;

/* Executes a READ or atomic whose turn has come. */
enum rx_verdict responder_reads_execute(struct transport *, struct qp *, const struct rx_meta *, uint64_t now_ns);
/* The verdict on a READ or atomic that arrives before its turn, apart from its order. */
enum rx_verdict responder_reads_judge(const struct transport *, const struct qp *, const struct rx_meta *);
/* Sends responses that are due. False: no room. */
bool responder_reads_send(struct transport *, struct qp *, uint64_t now_ns);
/* Whether a response packet is left to send, for the first time or again. */
static inline bool responder_reads_due(const struct qp *qp)
{
	const struct veroce_work *w = qp->veroce->w;

	return !w->unheard && (w->r.tx.lost || psn_diff(w->emit, qp->veroce->executed) <= 0);
}
/* Sends responses, lost ones first. True: stopped for lack of room or budget only. */
static inline bool responder_reads_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	return responder_reads_due(qp) && responder_reads_send(tp, qp, now_ns);
}

/* Whether a response is still unsent or unacknowledged. */
bool responder_reads_pending(const struct qp *);
/*
 * Called after an acknowledgement of responses, while w->asked_ns is set: if the peer misses a response whose region
 * is gone, ends the connection.
 */
void responder_reads_answered(struct transport *, struct qp *, const struct veroce_packet *, uint64_t now_ns);
/*
 * The peer does not answer: from now on responses wait until something is heard of it, which responder_reads_heard()
 * tells. A NAK that waits for them leaves, and ends the connection.
 */
void responder_reads_hush(struct transport *, struct qp *, uint64_t now_ns);
void responder_reads_heard(struct transport *, struct qp *, uint64_t now_ns);
/* Frees the slots up to response MSN r. */
void responder_reads_release(struct qp *, uint32_t r);
