/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of READs and atomics at the requester: packets of space R in any order, placed by response MSN
 * and place in the message (veRoCE 7.4), when they arrive or in their turn, as early_lands() decides; and the
 * order in which WQEs complete.
 *
 * A SEND or WRITE is done when the peer's aMSN has reached it, a READ or atomic when all of its response
 * is in memory. WQEs complete in the order they were posted (out-of-order R5).
 */
#include "transport/veroce/completer.h"

#include "transport/message.h"
#include "transport/request.h"
#include "transport/veroce/acks.h"
#include "transport/veroce/caps.h"
#include "transport/veroce/early.h"
#include "transport/veroce/recovery.h"
#include "transport/veroce/veroce.h"

static bool is_outstanding(const struct veroce *vr, uint32_t r)
{
	return psn_diff(r, vr->w->reads_done) > 0 && psn_diff(r, vr->reads) <= 0;
}

static struct send_wqe *wqe_of(const struct qp *qp, uint32_t r)
{
	return sq_at(&qp->sq, *veroce_read(qp->veroce, r));
}

/* Whether the request was sent; there is no response to it before. */
static bool is_asked(const struct veroce *vr, const struct send_wqe *w)
{
	return psn_diff(w->psn_first, vr->w->q.tx.nxt) < 0;
}

/* Whether the response fits the request: both numbers, the kind, the place, the length. */
static bool fits(const struct qp *qp, const struct send_wqe *w, const struct veroce_packet *p)
{
	uint64_t off = (uint64_t)p->po * qp->veroce->mtu;
	uint32_t bytes = request_result_bytes(w);
	bool last = off + qp->veroce->mtu >= bytes;

	if (p->aeth.msn != w->msn)
		return false;
	if (p->info->flags & F_ATOMIC)
		return request_is_atomic(w);
	if (request_is_atomic(w) || (p->po && off >= bytes) || veroce_starts_message(p) != !p->po ||
	    !(p->info->flags & F_END) == last)
		return false;
	return p->payload_len == (last ? bytes - off : qp->veroce->mtu);
}

static bool place(struct transport *tp, struct qp *qp, struct send_wqe *w, const struct veroce_packet *p)
{
	const uint8_t *from = p->payload;
	uint32_t len = p->payload_len, off = p->po * qp->veroce->mtu;

	if (p->info->flags & F_ATOMIC) {
		from = (const uint8_t *)&p->orig;
		len = sizeof(p->orig);
		off = 0;
	}
	return !len || sge_scatter(&tp->mrs, qp->user.pd, send_wqe_sges(w), off, from, len);
}

void veroce_completer_complete(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint32_t una = qp->sq.una;

	while (qp->sq.una != qp->sq.next && qp_get_state(qp) != QPS_ERR &&
	       !(qp->failed && qp->sq.una == qp->failed_wqe)) {
		const struct send_wqe *w = sq_at(&qp->sq, qp->sq.una);

		if (request_has_response(w)) {
			if (!w->done)
				break;
		} else if (psn_diff(w->msn, vr->acked_msn) > 0 || psn_diff(w->psn_last, vr->w->q.tx.una) >= 0) {
			break;
		}
		complete_send(tp, qp, WC_SUCCESS, now_ns);
	}
	if (qp->sq.una == una || qp_get_state(qp) == QPS_ERR)
		return;
	vr->w->rnr_retries = qp->rnr_retry;
	atomic_store_explicit(&qp->in_flight, qp->sq.una != qp->sq.next, memory_order_relaxed);
	if (qp->failed && qp->sq.una == qp->failed_wqe) {
		complete_send(tp, qp, (enum wc_status)qp->failed, now_ns);
		qp_to_error(tp, qp, now_ns);
		return;
	}
	qp_check_drained(tp, qp);
	if (veroce_has_more(qp))
		qp_activate(tp, qp);
}

/* The oldest response has arrived completely. */
static void finish(struct transport *tp, struct qp *qp, uint32_t r, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct send_wqe *w = wqe_of(qp, r);

	w->done = true;
	vr->w->reads_done = r;
	vr->w->watch_tries = 0;
	vr->w->watch_ns = 0;
	/* The response to a request acknowledges it and all requests before it: they were executed in order. */
	if (tx_is_outstanding(&vr->w->q.tx, w->psn_first))
		recovery_acked_to(tp, qp, &vr->w->q, w->psn_first, w->msn, now_ns);
	veroce_completer_complete(tp, qp, now_ns);
	qp_activate(tp, qp);
}

/* Steps over the packet at epsn. */
static void step(struct transport *tp, struct qp *qp, bool end, uint64_t now_ns)
{
	struct receiver *in = &qp->veroce->w->r_in;

	in->po = end ? 0 : psn_add(in->po, 1);
	rx_step(&in->rx, &tp->pool);
	if (!end)
		return;
	in->amsn = psn_add(in->amsn, 1);
	finish(tp, qp, in->amsn, now_ns);
}

/* A packet of a response arrived: the READ is requested again later. */
static void watched(struct veroce *vr, uint64_t now_ns)
{
	if (!vr->w->watch_ns)
		return;
	vr->w->watch_ns = now_ns + VEROCE_WATCH_RTOS * vr->pair->rto_ns;
	vr->w->watch_since_ns = now_ns;
	vr->w->watch_tries = 0; /* a slow responder is no failure */
}

/* The response whose turn it is fits no request (veRoCE 11). */
static void fail(struct transport *tp, struct qp *qp, enum wc_status status, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint32_t index;

	acks_nak(tp, qp, &vr->w->r_in, vr->w->r_in.rx.epsn, AETH_NAK | NAK_INVALID_REQUEST);
	index = vr->w->reads_done == vr->reads ? qp->sq.una /* nothing was requested */
					       : *veroce_read(vr, psn_add(vr->w->reads_done, 1));
	if (index == qp->sq.next)
		return;
	request_fail_in_turn(tp, qp, index, status, now_ns);
}

bool veroce_completer_middle(struct transport *tp, struct qp *qp, const struct pkt *pkt, const struct veroce_packet *p,
			     uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct receiver *in = &vr->w->r_in;
	const struct receiver before = *in; /* for the debug build */
	uint64_t off = (uint64_t)p->po * qp->veroce->mtu;
	struct send_wqe *w;

	/* The First packet has shown that the message was requested, and the WQE is not done before the Last. */
	if (!acks_counts_only(tp, qp, in, pkt, p) || !in->po || p->po != in->po || p->msn != psn_add(in->amsn, 1))
		return false;
	w = wqe_of(qp, p->msn);
	/* The checks of fits() and place() for such a packet. */
	if (p->aeth.msn != w->msn || !request_is_read(w) || p->payload_len != qp->veroce->mtu ||
	    off + qp->veroce->mtu >= w->length ||
	    !sge_scatter(&tp->mrs, qp->user.pd, send_wqe_sges(w), off, p->payload, qp->veroce->mtu))
		return false;
	veroce_arrival(qp, in, pkt, p, now_ns);
	in->po = psn_add(in->po, 1);
	rx_step(&in->rx, &tp->pool);
	in->unacked++;
	watched(vr, now_ns);
	acks_counted(tp, qp, &before, in, p);
	return true;
}

/* The WQE that the packet responds to, if it fits; NULL: none. */
static struct send_wqe *answered(const struct qp *qp, const struct veroce_packet *p, bool *asked)
{
	const struct veroce *vr = qp->veroce;
	struct send_wqe *w = is_outstanding(vr, p->msn) ? wqe_of(qp, p->msn) : NULL;

	*asked = w && is_asked(vr, w);
	return *asked && fits(qp, w, p) ? w : NULL;
}

uint8_t *veroce_completer_place(const struct transport *tp, const struct qp *qp, const struct veroce_packet *p,
				bool is_next)
{
	const struct receiver *in = &qp->veroce->w->r_in;
	bool asked;
	const struct send_wqe *w = answered(qp, p, &asked);

	if (!w || !p->payload_len || (is_next && (p->po != in->po || p->msn != psn_add(in->amsn, 1))))
		return NULL;
	return sge_place(&tp->mrs, qp->user.pd, send_wqe_sges(w), (uint64_t)p->po * qp->veroce->mtu, p->payload_len,
			 MR_LOCAL_WRITE);
}

/* Handles the packet that was due. False: it was not accepted. */
static bool take(struct transport *tp, struct qp *qp, const struct veroce_packet *p, uint64_t now_ns)
{
	struct receiver *in = &qp->veroce->w->r_in;
	bool asked;
	struct send_wqe *w = answered(qp, p, &asked);

	if (!w || p->po != in->po || p->msn != psn_add(in->amsn, 1)) {
		tp->counters.rx_dropped++;
		if (asked)
			fail(tp, qp, WC_BAD_RESP_ERR, now_ns);
		return false;
	}
	if (!place(tp, qp, w, p)) {
		tp->counters.rx_dropped++;
		fail(tp, qp, WC_LOC_PROT_ERR, now_ns);
		return false;
	}
	step(tp, qp, p->info->flags & F_END, now_ns);
	return true;
}

/* Handles the packets that have arrived, up to the next hole. False: the next one fits no request. */
static bool advance(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	const struct rx_meta *kept;

	while (qp_get_state(qp) != QPS_ERR && rx_epsn_arrived(&qp->veroce->w->r_in.rx, &kept)) {
		struct receiver *in = &qp->veroce->w->r_in;

		if (kept && kept->early) {
			struct early_packet *k = early_take(tp, in, rx_meta_at(&in->rx, in->rx.epsn));
			bool taken = take(tp, qp, &k->p, now_ns);

			early_free(tp, k);
			if (!taken)
				return false;
			continue;
		}
		if (kept && (kept->po != in->po || kept->msn != psn_add(in->amsn, 1))) {
			fail(tp, qp, WC_BAD_RESP_ERR, now_ns);
			return false;
		}
		step(tp, qp, kept, now_ns);
	}
	return true;
}

/* A packet before its turn: places or keeps it, and records it. False: dropped without a record. */
static bool early(struct transport *tp, struct qp *qp, const struct veroce_packet *p)
{
	struct receiver *in = &qp->veroce->w->r_in;
	struct rx_meta meta = {.opcode = p->bth.opcode, .msn = p->msn, .po = p->po};
	bool asked;
	struct send_wqe *w = answered(qp, p, &asked);

	if (!w)
		return false;
	tp->counters.rx_out_of_sequence++;
	if (!early_lands(tp, in, p))
		return early_keep(tp, in, p);
	return place(tp, qp, w, p) && rx_record(&in->rx, &tp->pool, p->bth.psn, p->info->flags & F_END ? &meta : NULL);
}

void veroce_completer_input(struct transport *tp, struct qp *qp, const struct pkt *pkt, const struct veroce_packet *p,
			    uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct receiver *in = &vr->w->r_in;
	struct acks_before before = acks_before(in);

	veroce_arrival(qp, in, pkt, p, now_ns);
	switch (rx_judge(&in->rx, p->bth.psn, caps_rx_window(tp, vr))) {
	case RX_BEYOND: tp->counters.rx_beyond_window++; return;
	case RX_OLD:
		tp->counters.rx_duplicates++;
		in->dups++;
		acks_note(tp, qp, in, true, now_ns);
		return;
	case RX_NEW: break;
	}
	if (veroce_is_trimmed(qp, pkt)) {
		acks_trimmed(tp, qp, in, p->bth.psn);
		return;
	}
	if (p->bth.psn == in->rx.epsn) {
		if (!take(tp, qp, p, now_ns) || !advance(tp, qp, now_ns))
			return;
	} else if (pkt->far_bytes || !early(tp, qp, p)) {
		/* A packet before it was not taken. It cannot be kept: its payload lies at its place, and not in the
		 * packet. */
		tp->counters.rx_dropped++;
		return;
	}
	if (qp_get_state(qp) == QPS_ERR)
		return;
	watched(vr, now_ns);
	acks_arrived(tp, qp, in, p, before, now_ns);
}
