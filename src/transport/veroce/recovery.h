/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender's bookkeeping: the packets that it may send, and those that acknowledgements confirm.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/paths/pair.h"
#include "transport/veroce/responder_reads.h"
#include "transport/veroce/work.h"

struct veroce_packet;

/* Whether this is the sender of requests, not of responses. */
static inline bool veroce_is_q(const struct qp *qp, const struct sender *s)
{
	return s == &qp->veroce->w->q;
}

/* An ACK, SACK or NAK of one space arrived. */
void recovery_input(struct transport *, struct qp *, struct sender *, const struct pkt *, const struct veroce_packet *,
		    uint64_t now_ns);
/*
 * A packet other than an acknowledgement shows that the peer has every packet up to that outstanding PSN and every
 * message up to that MSN. Has the effect of a plain ACK: may complete WQEs, and so end the QP.
 */
void recovery_acked_to(struct transport *, struct qp *, struct sender *, uint32_t psn, uint32_t msn, uint64_t now_ns);
/* A path for the next packet of the space; PAIR_NO_PATH: wait for an acknowledgement. */
int recovery_pick(struct transport *, struct qp *, struct sender *, uint32_t bytes, const struct tx_record *again,
		  uint64_t now_ns);
/*
 * After recovery_pick() and veroce_reserve() for a new packet of `bytes`, which has `len`: how many packets of that
 * size may leave on that path now, that one included, and max at most.
 */
uint32_t recovery_run(const struct qp *, const struct sender *, int path, uint32_t bytes, uint32_t len, uint32_t max);
/* Records packets that were laid out: one, or as many as recovery_run() allows. */
void recovery_sent(struct transport *, struct qp *, struct sender *, const struct tx_run *, uint64_t now_ns);
void recovery_resent(struct transport *, struct qp *, struct sender *, uint32_t psn, int path, uint64_t now_ns);
/*
 * There may be room for QPs that wait. Activates the first of them, and the next one after the turn of the first, if
 * that had room or needed none. So all wait equally long, and an acknowledgement costs no more if thousands wait. A
 * QP that found no room stays the first.
 */
void recovery_wake(struct transport *, struct pair *);
/*
 * What the QP has in flight in Q has left the network, and is at the peer or lost: while it waits because of an RNR NAK
 * it takes no room from other QPs. Called with false before any of it is acknowledged, lost or sent again. Harmless if
 * that is so already.
 */
void recovery_idle(struct transport *, struct qp *, bool idles);
/* Called after a QP's turn at the nic; `more`: it will have another one in any case. */
void recovery_end_turn(struct transport *, struct qp *, bool more);
/* `bytes` are no longer in flight. Nothing says how each packet left, so the count of what went through memory falls
 * first. */
void recovery_near_left(struct veroce *, uint64_t bytes);
/* Takes a record for lost. */
void recovery_lose(struct transport *, struct qp *, struct sender *, uint32_t psn, uint64_t now_ns);
/*
 * Whether to send the copy of that PSN twice: the packet was lost twice already, and would close the window before
 * yet another copy could be acknowledged. Such packets are few (our choice).
 */
bool recovery_doubles(const struct sender *, uint32_t psn);

/* Whether a turn would send anything, now that there is room. */
static inline bool veroce_has_more(const struct qp *qp)
{
	const struct veroce_work *w = qp->veroce->w;

	return w->wqe != sq_head(&qp->sq) || w->q.tx.lost || responder_reads_due(qp) || w->fatal;
}
