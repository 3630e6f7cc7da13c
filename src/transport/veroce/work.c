/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory that a QP has from the pool while something is outstanding, awaited or due: struct veroce_work. A packet
 * or a WQE takes it (veroce_wake), and it goes back when the QP has been quiet for a while. In between, struct
 * veroce_quiet keeps the values that the next one begins with.
 *
 * Invariant: a quiet QP that gives its work back and takes it again loses only state that expires anyway.
 */
#include <assert.h>
#include <string.h>

#include "transport/veroce/work.h"

#include "transport/veroce/acks.h"
#include "transport/veroce/early.h"
#include "transport/veroce/recovery.h"
#include "transport/veroce/responder.h"
#include "transport/veroce/veroce.h"
#include "wire/capseth.h"

/* How many packets one acknowledgement covers: a power of two, as `least` is. */
static uint32_t ack_packets(const struct transport *tp, const struct qp *qp, uint32_t least)
{
	uint64_t half = qp->veroce->acks_rarely ? tp->config.window_bytes / 2 / qp->veroce->mtu : 0;
	uint32_t packets = VEROCE_ACK_PACKETS_RARE;

	if (qp->veroce->caps & CAPS_LARGE)
		least = 2;
	while (packets > half && packets > least)
		packets /= 2;
	return packets;
}

uint16_t veroce_calm_at_first(const struct qp *qp)
{
	return qp->peer->local ? VEROCE_CALM_PACKETS : 0;
}

void veroce_sender_init(const struct transport *tp, const struct qp *qp, struct sender *s, uint32_t psn,
			uint32_t peer_window, uint16_t calm)
{
	uint32_t ackreq = ack_packets(tp, qp, VEROCE_ACKREQ_PACKETS);

	*s = (struct sender){.peer_window = peer_window,
			     .ackreq_packets = ackreq,
			     .ackreq_now = ackreq,
			     .calm = calm,
			     .rxt_psn = (psn - 1) & PSN_MASK};
	tx_space_init(&s->tx, psn);
}

void veroce_receiver_init(const struct transport *tp, const struct qp *qp, struct receiver *in, uint32_t epsn,
			  uint32_t amsn, uint16_t ext)
{
	*in = (struct receiver){
		.amsn = amsn, .ext = ext, .ack_packets = (uint16_t)ack_packets(tp, qp, VEROCE_ACK_PACKETS)};
	rx_space_init(&in->rx, epsn);
}

void veroce_fit_acks(const struct transport *tp, struct qp *qp)
{
	struct veroce_work *w = qp->veroce->w;
	uint32_t ackreq = ack_packets(tp, qp, VEROCE_ACKREQ_PACKETS), acks = ack_packets(tp, qp, VEROCE_ACK_PACKETS);

	w->q.ackreq_packets = w->r.ackreq_packets = w->q.ackreq_now = w->r.ackreq_now = ackreq;
	w->q_in.ack_packets = w->r_in.ack_packets = (uint16_t)acks;
}

bool veroce_take_work(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;
	const struct veroce_quiet *k = &vr->quiet;
	struct veroce_work *w = pool_get(&tp->pool, sizeof(*w));

	if (!w)
		return false;
	memset(w, 0, sizeof(*w));
	w->qp = qp;
	w->flow = veroce_flow_of(tp, qp, 0, false);
	list_init(&w->waiting);
	veroce_sender_init(tp, qp, &w->q, vr->psn_new, vr->q_window, k->q_calm);
	veroce_sender_init(tp, qp, &w->r, k->r_psn, vr->r_window, k->r_calm);
	veroce_receiver_init(tp, qp, &w->q_in, k->q_epsn, k->q_amsn, k->q_ext);
	veroce_receiver_init(tp, qp, &w->r_in, k->r_epsn, k->r_amsn, k->r_ext);
	w->wqe = qp->sq.next;
	w->rnr_retries = qp->rnr_retry;
	w->reads_done = vr->reads;
	w->rq_bound = vr->rq_done;
	w->released = vr->executed;
	w->emit = psn_add(vr->executed, 1);
	vr->w = w;
	return true;
}

bool veroce_is_quiet(const struct qp *qp)
{
	const struct veroce *vr = qp->veroce;
	const struct veroce_work *w = vr->w;
	const struct receiver *ins[] = {&w->q_in, &w->r_in};

	for (int i = 0; i < 2; i++) {
		const struct receiver *in = ins[i];

		if (rx_has_holes(&in->rx) || in->message || in->po || in->ack_due || in->nak_due || in->trims ||
		    in->hole_ns || in->ce)
			return false;
	}
	return !tx_outstanding(&w->q.tx) && !tx_outstanding(&w->r.tx) && list_empty(&w->waiting) &&
	       list_empty(&qp->active) && list_empty(&qp->held) && qp->sq.una == sq_head(&qp->sq) &&
	       vr->reads == w->reads_done && psn_diff(w->emit, vr->executed) > 0 && vr->rq_done == w->rq_bound &&
	       !w->fatal && !w->rnr_until_ns && !w->rtt_reply && !w->slow_due && !w->ask_again && !qp->failed;
}

/* T shrinks with time (5.4). Each rest counts as such a time: otherwise the T of a QP that rests often never would. */
static uint16_t rested_ext(const struct receiver *in)
{
	return in->ext_ns ? (uint16_t)(in->ext - in->ext / 8) : in->ext;
}

void veroce_rest(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;
	struct veroce_work *w = vr->w;

	vr->quiet = (struct veroce_quiet){
		.r_psn = w->r.tx.nxt,
		.q_epsn = w->q_in.rx.epsn,
		.r_epsn = w->r_in.rx.epsn,
		.q_amsn = w->q_in.amsn,
		.r_amsn = w->r_in.amsn,
		.q_ext = rested_ext(&w->q_in),
		.r_ext = rested_ext(&w->r_in),
		.q_calm = w->q.calm,
		.r_calm = w->r.calm,
	};
	vr->psn_new = w->q.tx.nxt;
	tx_space_drop(&w->q.tx, &tp->pool);
	tx_space_drop(&w->r.tx, &tp->pool);
	veroce_responder_rest(tp, w);
	pool_put(&tp->pool, w->reads, w->reads_size * sizeof(*w->reads));
	pool_put(&tp->pool, w->slots, w->slots_size * sizeof(*w->slots));
	pool_put(&tp->pool, w, sizeof(*w));
	vr->w = NULL;
}

/* Removes the packets in flight from the paths' counts. */
static void forget_flying(struct veroce *vr, const struct sender *s)
{
	for (uint32_t psn = s->tx.una; s->tx.ring && psn != s->tx.nxt; psn = psn_add(psn, 1)) {
		const struct tx_record *r = tx_record(&s->tx, psn);

		if (r->state == TX_FLYING) {
			path_forget(vr->pair, r->path, r->bytes);
			recovery_near_left(vr, r->bytes);
		}
	}
}

void veroce_forget(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;
	struct veroce_work *w = vr->w;

	recovery_idle(tp, qp, false);
	forget_flying(vr, &w->q);
	forget_flying(vr, &w->r);
	tx_space_drop(&w->q.tx, &tp->pool);
	tx_space_drop(&w->r.tx, &tp->pool);
	early_drop(tp, &w->q_in);
	early_drop(tp, &w->r_in);
	rx_space_drop(&w->q_in.rx, &tp->pool);
	rx_space_drop(&w->r_in.rx, &tp->pool);
	acks_drop(tp, &w->q_in);
	acks_drop(tp, &w->r_in);
	list_remove(&w->waiting);
	w->woken = false;
	recovery_wake(tp, vr->pair);
}

void veroce_drop_work(struct transport *tp, struct qp *qp)
{
	if (!qp->veroce->w)
		return;
	veroce_forget(tp, qp);
	veroce_rest(tp, qp);
}

/* ---- invariants between two events ------------------------------------------------------------- */

static const char *idle_fault(const struct veroce *vr)
{
	MUST(!vr->w->idles || vr->w->rnr_until_ns || vr->held);
	MUST(!vr->w->idles || vr->pair->idle_bytes <= vr->pair->sent_bytes - vr->pair->gone_bytes);
	return NULL;
}

static const char *sender_fault(const struct veroce_work *w, const struct sender *s, bool dead)
{
	uint32_t out = tx_outstanding(&s->tx);

	MUST(out <= TX_WINDOW_MAX);
	MUST(!out || s->tx.ring);
	MUST(!dead || !out);
	MUST(s->tx.flying + s->tx.lost <= out);
	MUST(!s->tx.lost || tx_is_outstanding(&s->tx, s->tx.again_head));
	MUST(!dead || list_empty(&w->waiting));
	return NULL;
}

static const char *receiver_fault(const struct receiver *in, bool dead)
{
	MUST(rx_has_holes(&in->rx) == (rx_distance(&in->rx) > 0));
	MUST(!in->early_bytes || rx_has_holes(&in->rx));
	MUST(!in->stalled || rx_has_holes(&in->rx) || dead); /* the record was dropped with all others */
	MUST(in->trims_count <= in->trims_size);
	MUST(in->trims_sent <= in->trims_count);
	return NULL;
}

/* A power of two, or none. */
static bool is_ring_size(uint32_t size)
{
	return !(size & (size - 1));
}

const char *veroce_work_fault(const struct transport *tp, const struct qp *qp)
{
	const struct veroce *vr = qp->veroce;
	const struct veroce_work *w = vr->w;
	bool dead = qp_get_state(qp) == QPS_ERR;

	const char *fault = sender_fault(w, &w->q, dead) ?: sender_fault(w, &w->r, dead) ?: idle_fault(vr) ?:
			    receiver_fault(&w->q_in, dead) ?: receiver_fault(&w->r_in, dead);

	if (fault)
		return fault;
	MUST(w->qp == qp);
	/* Requester: each READ without a complete answer has its place. */
	MUST(is_ring_size(w->reads_size));
	MUST(((vr->reads - w->reads_done) & PSN_MASK) <= w->reads_size);
	MUST((int32_t)(w->wqe - qp->sq.una) >= 0 || dead);
	MUST((int32_t)(qp->sq.next - w->wqe) >= 0 || dead);
	/* Responder: released <= emit - 1 <= executed, and each READ that is not released has its slot. */
	MUST(is_ring_size(w->slots_size));
	MUST(psn_diff(w->released, w->emit) < 0);
	MUST(psn_diff(w->emit, vr->executed) <= 1);
	MUST(((vr->executed - w->released) & PSN_MASK) <= w->slots_size);
	MUST(psn_diff(vr->rq_done, w->rq_bound) <= 0);
	MUST(((w->rq_bound - vr->rq_done) & PSN_MASK) <= w->bound_size);
	MUST(!w->fatal || w->q_in.nak_due || dead);
	/* While packets are in flight the QP gets another turn. */
	MUST(dead || !(tx_outstanding(&w->q.tx) || (tx_outstanding(&w->r.tx) && !w->unheard)) ||
	     veroce_is_scheduled(qp));
	MUST(!w->unheard || !w->r.tx.flying);
	MUST(w->q.peer_window == vr->q_window);
	MUST(w->r.peer_window == vr->r_window);
	return NULL;
}
