/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reliable connection over veRoCE: joins the engine's files. A QP begins in `veroce_asking_ops`, unless
 * what its peer's host speaks is known, and ends up with `veroce_ops` or RoCEv2's.
 */
#include <errno.h>
#include <string.h>

#include "base/ipudp.h"
#include "base/siphash.h"
#include "transport/request.h"
#include "transport/veroce/veroce.h"

enum { WATCH_SHIFT_MAX = 6 };

static const uint64_t rest_after_ns = 10000000;

uint64_t transport_secret(struct transport *tp)
{
	return siphash_u64(tp->secret, tp->secret_serial++);
}

/* ---- life --------------------------------------------------------------------------------------- */

/*
 * Of which the peer hears, or we do, in one acknowledgement: a power of two, as `least` is, which it is where
 * there is a network.
 */
static uint32_t ack_packets(const struct transport *tp, const struct qp *qp, uint32_t least)
{
	uint64_t half = qp->local ? tp->pairs.config.window_bytes / 2 / qp->mtu : 0;
	uint32_t packets = VEROCE_ACK_PACKETS_LOCAL;

	while (packets > half && packets > least)
		packets /= 2;
	return packets;
}

static void sender_init(const struct transport *tp, const struct qp *qp, struct sender *s, uint32_t psn,
			uint32_t peer_window)
{
	*s = (struct sender){.peer_window = peer_window,
			     .ackreq_packets = ack_packets(tp, qp, VEROCE_ACKREQ_PACKETS),
			     .rxt_psn = (psn - 1) & PSN_MASK};
	tx_space_init(&s->tx, psn);
}

static void receiver_init(const struct transport *tp, const struct qp *qp, struct receiver *in,
			  uint32_t epsn, uint32_t amsn, uint16_t ext)
{
	*in = (struct receiver){.amsn = amsn,
				.ext = ext,
				.ack_packets = (uint16_t)ack_packets(tp, qp, VEROCE_ACK_PACKETS)};
	rx_space_init(&in->rx, epsn);
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
	sender_init(tp, qp, &w->q, vr->psn_new, vr->q_window);
	sender_init(tp, qp, &w->r, k->r_psn, vr->r_window);
	receiver_init(tp, qp, &w->q_in, k->q_epsn, k->q_amsn, k->q_ext);
	receiver_init(tp, qp, &w->r_in, k->r_epsn, k->r_amsn, k->r_ext);
	w->wqe = qp->sq.next;
	w->rnr_retries = qp->rnr_retry;
	w->reads_done = vr->reads;
	w->rq_bound = vr->rq_done;
	w->released = vr->executed;
	w->emit = psn_add(vr->executed, 1);
	vr->w = w;
	return true;
}

/* Nothing is outstanding, waited for or owed in either direction. */
static bool is_quiet(const struct qp *qp)
{
	const struct veroce *vr = qp->veroce;
	const struct veroce_work *w = vr->w;
	const struct receiver *ins[] = {&w->q_in, &w->r_in};

	for (int i = 0; i < 2; i++) {
		const struct receiver *in = ins[i];

		if (rx_has_holes(&in->rx) || in->message || in->po || in->ack_due || in->nak_due ||
		    in->trims || in->hole_ns || in->ce)
			return false;
	}
	return !tx_outstanding(&w->q.tx) && !tx_outstanding(&w->r.tx) && list_empty(&w->waiting) &&
	       list_empty(&qp->active) && list_empty(&qp->held) &&
	       qp->sq.una == sq_head(&qp->sq) && vr->reads == w->reads_done &&
	       psn_diff(w->emit, vr->executed) > 0 && vr->rq_done == w->rq_bound && !w->fatal &&
	       !w->rnr_until_ns && !w->rtt_reply && !w->slow_due && !w->ask_again && !qp->failed;
}

/* T fades in time (5.4), and a QP that rests has had some: else who rests often would never forget. */
static uint16_t rested_ext(const struct receiver *in)
{
	return in->ext_ns ? (uint16_t)(in->ext - in->ext / 8) : in->ext;
}

/* Gives back what is taken to wake. The next packet or WQE takes it again. */
static void rest(struct transport *tp, struct qp *qp)
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

/* rq_psn is the peer's initial Q PSN, and so that of the responses to it (veRoCE 4.1, our choice). */
static void connect_spaces(struct qp *qp)
{
	struct veroce *vr = qp->veroce;
	uint16_t ext = acks_ext_start(vr->pair->path_count);

	vr->quiet = (struct veroce_quiet){
		.r_psn = qp->rq_psn,
		.q_epsn = qp->rq_psn,
		.r_epsn = qp->sq_psn,
		.q_ext = ext,
		.r_ext = ext,
	};
	vr->psn_new = qp->sq_psn;
}

int veroce_create(struct transport *tp, struct qp *qp, bool local, uint64_t now_ns)
{
	struct veroce *vr = alloc_get(&tp->alloc, sizeof(*vr));
	enum pair_speaks speaks;

	if (!vr)
		return -ENOMEM;
	vr->pair = pair_get(&tp->pairs, qp->flow.src, qp->flow.dst, local, qp->mtu, now_ns);
	if (!vr->pair)
		goto free_vr;
	qp->veroce = vr;
	vr->q_window = VEROCE_BASE_WINDOW;
	vr->r_window = VEROCE_BASE_WINDOW;
	connect_spaces(qp);
	speaks = pair_speaks(vr->pair, now_ns);
	if (tp->protocol == TRANSPORT_ROCEV2 ||
	    (speaks == PAIR_ROCEV2 && tp->protocol == TRANSPORT_AUTO)) {
		/* It answers who asks, and no more. */
		if (gbn_create(tp, qp))
			goto put_pair;
		qp->ops = &rc_ops;
		return 0;
	}
	if (speaks == PAIR_VEROCE || tp->protocol == TRANSPORT_VEROCE) {
		qp->ops = &veroce_ops;
		vr->peer = PEER_ASSUMED;
	} else {
		qp->ops = &veroce_asking_ops;
	}
	caps_start(tp, qp, now_ns);
	return 0;

put_pair:
	pair_put(&tp->pairs, vr->pair);
free_vr:
	qp->veroce = NULL;
	alloc_put(&tp->alloc, vr, sizeof(*vr));
	return -ENOMEM;
}

/* What is in flight fills no path any more. */
static void forget_flying(struct veroce *vr, const struct sender *s)
{
	for (uint32_t psn = s->tx.una; s->tx.ring && psn != s->tx.nxt; psn = psn_add(psn, 1)) {
		const struct tx_record *r = tx_record(&s->tx, psn);

		if (r->state == TX_FLYING)
			path_forget(vr->pair, r->path, r->bytes);
	}
}

/* Everything outstanding is forgotten, in both directions; bound receive WQEs are given up before. */
static void forget_work(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;
	struct veroce_work *w = vr->w;

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

static void drop_work(struct transport *tp, struct qp *qp)
{
	if (!qp->veroce->w)
		return;
	forget_work(tp, qp);
	rest(tp, qp);
}

void veroce_destroy(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;

	if (!vr)
		return;
	if (vr->w)
		veroce_responder_drop(tp, qp);
	drop_work(tp, qp);
	pair_put(&tp->pairs, vr->pair);
	alloc_put(&tp->alloc, vr, sizeof(*vr));
	qp->veroce = NULL;
	qp->secret = 0;
	qp->ops = &rc_ops;
}

/* sq_psn is known only now (IBTA 11.2.5.2). */
void veroce_start(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;

	if (!vr)
		return;
	vr->psn_new = qp->sq_psn;
	vr->quiet.r_epsn = qp->sq_psn;
	if (!vr->w)
		return;
	sender_init(tp, qp, &vr->w->q, qp->sq_psn, vr->q_window);
	receiver_init(tp, qp, &vr->w->r_in, qp->sq_psn, 0, vr->quiet.r_ext);
	vr->w->wqe = qp->sq.next;
	vr->w->rnr_retries = qp->rnr_retry;
}

void veroce_query(const struct qp *qp, uint32_t *rq_psn, uint32_t *sq_psn)
{
	const struct veroce *vr = qp->veroce;

	*rq_psn = vr->w ? vr->w->q_in.rx.epsn : vr->quiet.q_epsn;
	*sq_psn = vr->psn_new;
}

void veroce_fall_back(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	drop_work(tp, qp);
	connect_spaces(qp);
	vr->decide_ns = 0;
	vr->caps_ask = false;
	qp->ops = &rc_ops;
	tp->counters.fallbacks++;
	timer_cancel(&tp->timers, &qp->timer);
	qp->sq.next = qp->sq.una;
	if (gbn_create(tp, qp)) {
		qp_raise(tp, qp, EVENT_QP_FATAL);
		qp_to_error(tp, qp, now_ns);
		return;
	}
	if (qp_get_state(qp) == QPS_RTS || qp_get_state(qp) == QPS_SQD)
		requester_start(tp, qp, now_ns);
	qp_activate(tp, qp);
}

void veroce_readdress(const struct transport *tp, struct qp *qp)
{
	if (qp->veroce && qp->veroce->w)
		qp->veroce->w->flow = veroce_flow_of(tp, qp, 0, false);
}

struct flow veroce_flow_of(const struct transport *tp, const struct qp *qp, uint32_t path, bool trimmable)
{
	struct flow f = qp->flow;

	f.sport = (flow_is_ipv4(&f) ? tp->sport_ipv4 : tp->sport_ipv6)[path];
	f.dport = tp->veroce_port;
	/* ECT(0); acknowledgements too, to travel with data, unless only data may be trimmed. */
	f.tos = (uint8_t)((f.tos & ~3u) | 2);
	if (trimmable)
		f.tos = VEROCE_DSCP_TRIMMABLE << 2 | 2;
	return f;
}

const struct flow *veroce_make_flow(struct transport *tp, const struct qp *qp, uint32_t path,
				    bool trimmable)
{
	struct flow f = veroce_flow_of(tp, qp, path, trimmable);
	const struct flow *kept;

	kept = tx_keep_flow(&tp->tx, &f);
	if (kept)
		tx_name_flow(&tp->tx, qp, path << 1 | trimmable);
	return kept;
}

void veroce_stamped(struct qp *qp, struct receiver *in, const struct veroce_packet *p, bool ce,
		    uint64_t now_ns)
{
	in->echo_tx1 = p->ts.tx1;
	in->echo_rx1 = (uint32_t)now_ns | 1; /* 0 says none; a nanosecond does not matter */
	if (p->ts.path_id < TX_PATHS_MAX) {
		qp->veroce->pair->arrivals[p->ts.path_id].packets++;
		qp->veroce->pair->arrivals[p->ts.path_id].ce += ce;
	}
}

/* ---- input -------------------------------------------------------------------------------------- */

static void note_established(struct transport *tp, struct qp *qp)
{
	if (qp->comm_est || qp_get_state(qp) != QPS_RTR)
		return;
	qp->comm_est = true;
	qp_raise(tp, qp, EVENT_COMM_EST);
}

static bool can_send(const struct qp *qp)
{
	return qp_get_state(qp) == QPS_RTS || qp_get_state(qp) == QPS_SQD;
}

static void dispatch(struct transport *tp, struct qp *qp, const struct pkt *pkt,
		     const struct veroce_packet *p, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (p->info->flags & F_REQUEST) {
		note_established(tp, qp);
		veroce_responder_input(tp, qp, pkt, p, now_ns);
		return;
	}
	switch (p->bth.opcode) {
	case OP_RC_ACK:
	case OP_RC_SACK:
		if (can_send(qp))
			recovery_input(tp, qp, &vr->w->q, p, now_ns);
		break;
	case OP_RC_ACK_RSP:
	case OP_RC_SACK_RSP:
		recovery_input(tp, qp, &vr->w->r, p, now_ns);
		if (vr->w->asked_ns)
			responder_reads_answered(tp, qp, p, now_ns);
		break;
	case OP_CNP:
	case OP_RTT_REQUEST:
	case OP_RTT_RESPONSE:
	case OP_SLOW_PACKET:
		control_input(tp, qp, pkt, p, now_ns);
		break;
	default:
		if (can_send(qp))
			veroce_completer_input(tp, qp, pkt, p, now_ns);
	}
}

/*
 * A turn of output comes, and ends with that: at once, or when the acknowledgement of the data that came is
 * due. Data by itself brings nothing nearer than that.
 */
static bool output_rearms(const struct qp *qp, const struct veroce_packet *p)
{
	bool data = p->info->flags & (F_REQUEST | F_RESPONSE) && !(p->info->flags & F_ACK);

	return qp->veroce->w && qp_get_state(qp) != QPS_ERR &&
	       (!list_empty(&qp->active) || (data && !list_empty(&qp->held)));
}

/* A packet of what a share is given of, or of what fills the line beside that. */
static void count_arrival(struct transport *tp, struct qp *qp, const struct pkt *pkt,
			  const struct veroce_packet *p, uint64_t now_ns)
{
	bool data = p->info->flags & (F_REQUEST | F_RESPONSE) && !(p->info->flags & F_ACK);

	rxshare_arrived(&tp->rxshare, data ? &qp->veroce->w->arrived : NULL,
			qp->veroce->caps & CAPS_RXSHARE, pkt->len + tp->wire_overhead_bytes, now_ns);
}

static void input_any(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	const struct veroce_packet *p = rx->veroce;
	uint64_t now_ns = rx->now_ns;

	if (opcode_is_caps(p->bth.opcode)) {
		caps_input(tp, qp, p, rx->ip_id, now_ns);
	} else {
		bool proved = qp->veroce->peer == PEER_CONFIRMED;

		if ((!proved && !caps_is_plausible(qp->veroce, p)) || !veroce_wake(tp, qp)) {
			tp->counters.rx_dropped++;
			return;
		}
		if (!proved && (!(p->info->flags & F_REQUEST) || caps_is_due(qp->veroce, p)))
			caps_hears(tp, qp, true, now_ns);
		if (tp->rxshare.line_kbps)
			count_arrival(tp, qp, rx->pkt, p, now_ns);
		dispatch(tp, qp, rx->pkt, p, now_ns);
	}
	if (qp->ops == &veroce_ops && !output_rearms(qp, p))
		veroce_rearm(tp, qp, now_ns);
}

static bool is_settled(const struct transport *tp, const struct qp *qp)
{
	return qp->veroce->w && qp->veroce->peer == PEER_CONFIRMED && !tp->rxshare.line_kbps;
}

/* RoCEv2 of this peer, for this QP: it has decided, so we have (see caps.c). */
static void rocev2_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	struct veroce *vr = qp->veroce;
	uint32_t flags = rx->info->flags;

	/* Nothing of ours was sent in RoCEv2, so that there is only one packet that it can have sent first. */
	if (vr->peer == PEER_CONFIRMED || tp->protocol == TRANSPORT_VEROCE || flags & F_RESPONSE ||
	    !(flags & F_START) || rx->bth->psn != qp->rq_psn) {
		tp->counters.rx_wrong_source++;
		return;
	}
	pair_learn(vr->pair, PAIR_UNKNOWN, rx->now_ns);
	veroce_fall_back(tp, qp, rx->now_ns);
	if (!qp->gbn)
		return;
	rc_ops.input(tp, qp, rx);
}

static void input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	uint32_t flags = rx->info->flags;

	if (!rx->veroce) {
		rocev2_input(tp, qp, rx);
		return;
	}
	/* Of those that only add to an acknowledgement which is due no timer needs to know. */
	if (flags & F_MIDDLE && is_settled(tp, qp) &&
	    (flags & F_REQUEST ? veroce_responder_middle(tp, qp, rx->pkt, rx->veroce, rx->now_ns)
			       : can_send(qp) && veroce_completer_middle(tp, qp, rx->pkt, rx->veroce, rx->now_ns)))
		return;
	input_any(tp, qp, rx);
}

/* ---- output --------------------------------------------------------------------------------------- */

static void starve(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint32_t ms = (uint32_t)(now_ns / 1000000);

	if (!vr->starved_ms)
		vr->starved_ms = ms | 1;
	if ((int32_t)(ms - vr->starved_ms) >= VEROCE_STARVED_MS) {
		qp_raise(tp, qp, EVENT_QP_FATAL);
		qp_to_error(tp, qp, now_ns);
		return;
	}
	if (qp->timer.deadline_ns > now_ns + VEROCE_STARVED_NS)
		timer_set(&tp->timers, &qp->timer, now_ns + VEROCE_STARVED_NS);
}

static bool take_turn(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	bool more;
	size_t before;

	if (qp_get_state(qp) == QPS_ERR) {
		/* What ended it at the requester: the peer is told (11). */
		if (vr->w && vr->w->r_in.nak_due && !acks_send(tp, qp, &vr->w->r_in, now_ns))
			return true;
		qp_flush(tp, qp, now_ns);
		return false;
	}
	if (!caps_output(tp, qp, now_ns))
		return true;
	if (!vr->w && qp->sq.una == sq_head(&qp->sq))
		return false;
	if (!veroce_wake(tp, qp)) {
		starve(tp, qp, now_ns);
		return false;
	}
	vr->w->starved = false;
	if (!control_output(tp, qp, now_ns))
		return true;
	if (acks_go_first(tp) && list_empty(&qp->held) &&
	    (!acks_output(tp, qp, &vr->w->q_in, now_ns) ||
	     !acks_output(tp, qp, &vr->w->r_in, now_ns) || !control_output_cnp(tp, qp, now_ns)))
		return true;
	before = tp->tx.count;
	veroce_responder_retry(tp, qp, now_ns);
	if (qp_get_state(qp) == QPS_ERR)
		return false;
	more = !qp_is_paused(tp, qp) && responder_reads_output(tp, qp, now_ns);
	if (!more && !vr->w->fatal && !qp_is_paused(tp, qp))
		more = veroce_requester_output(tp, qp, now_ns);
	if (qp_get_state(qp) == QPS_ERR)
		return false;
	/* Last, and short: an acknowledgement can end a train. One that waits for company goes on waiting. */
	if (list_empty(&qp->held) || tp->tx.count != before || acks_nak_ready(qp) ||
	    vr->w->q_in.trims || vr->w->r_in.trims) {
		if (!acks_output(tp, qp, &vr->w->q_in, now_ns) ||
		    !acks_output(tp, qp, &vr->w->r_in, now_ns))
			more = true;
		else
			list_remove(&qp->held);
	}
	if (vr->w->starved)
		starve(tp, qp, now_ns);
	else
		vr->starved_ms = 0;
	if (qp_get_state(qp) == QPS_ERR)
		return more;
	if (!control_output_cnp(tp, qp, now_ns))
		more = true;
	veroce_rearm(tp, qp, now_ns);
	return more;
}

static bool has_answer(const struct qp *qp)
{
	const struct veroce_work *w = qp->veroce->w;

	return w && (acks_nak_ready(qp) || w->q_in.trims || w->r_in.trims ||
		     ((w->q_in.ack_due || w->r_in.ack_due) && list_empty(&qp->held)));
}

static bool output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	const struct veroce *vr = qp->veroce;
	bool more;

	tp->tx.secret = vr->caps & CAPS_SEAL ? vr->peer_nonce : 0;
	more = take_turn(tp, qp, now_ns);
	tp->tx.secret = 0;
	if (more && acks_go_first(tp) && qp->veroce && has_answer(qp))
		qp_activate_to_answer(tp, qp);
	if (qp->veroce)
		recovery_end_turn(tp, qp, more);
	return more;
}

static bool asking_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	if (qp_get_state(qp) == QPS_ERR) {
		qp_flush(tp, qp, now_ns);
		return false;
	}
	if (!caps_output(tp, qp, now_ns))
		return true;
	if (can_send(qp) && qp->sq.una != sq_head(&qp->sq))
		caps_hurry(qp, now_ns);
	veroce_rearm(tp, qp, now_ns);
	return false;
}

/* ---- time ------------------------------------------------------------------------------------------- */

/* A READ that was received, but not answered, is asked for again (7.4). */
static void watch(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint8_t tries = vr->w->watch_tries;
	uint32_t index;
	struct send_wqe *w;

	if (vr->reads == vr->w->reads_done) {
		vr->w->watch_ns = 0;
		return;
	}
	if (!vr->w->watch_ns || vr->w->watch_ns > now_ns)
		return;
	vr->w->watch_ns = now_ns + (VEROCE_WATCH_RTOS * vr->pair->rto_ns
				    << (tries < WATCH_SHIFT_MAX ? tries : WATCH_SHIFT_MAX));
	index = *veroce_read(vr, psn_add(vr->w->reads_done, 1));
	w = sq_at(&qp->sq, index);
	if (psn_diff(w->psn_first, vr->w->q.tx.una) >= 0) {
		vr->w->watch_since_ns = now_ns;
		return; /* not even received, or not sent yet: that is Q's to repair */
	}
	if (tries < UINT8_MAX)
		vr->w->watch_tries++;
	if (recovery_is_hopeless(tp, qp, vr->w->watch_tries, vr->w->watch_since_ns, now_ns)) {
		request_fail_in_turn(tp, qp, index, WC_RETRY_EXC_ERR, now_ns);
		return;
	}
	veroce_requester_ask_again(tp, qp, index);
}

static void expire(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	caps_expire(tp, qp, now_ns);
	if (qp->ops == &rc_ops)
		return;
	if (vr->starved_ms)
		qp_activate(tp, qp);
	if (qp->ops == &veroce_ops && vr->w) {
		if (vr->pair->cc_due_ns <= now_ns)
			pair_expire(vr->pair, now_ns);
		if (vr->pair->paced_ns <= now_ns) {
			vr->pair->paced_ns = CC_NO_DEADLINE;
			recovery_wake(tp, vr->pair);
		}
		if (vr->w->pace.waits && vr->w->pace.next_ns <= now_ns) {
			vr->w->pace.waits = false;
			qp_activate(tp, qp);
		}
		if (vr->w->rnr_until_ns && vr->w->rnr_until_ns <= now_ns)
			veroce_requester_end_rnr(tp, qp, now_ns);
		recovery_expire(tp, qp, &vr->w->q, now_ns);
		if (qp->ops == &rc_ops)
			return; /* it fell back */
		if (qp_get_state(qp) != QPS_ERR)
			recovery_expire(tp, qp, &vr->w->r, now_ns);
		if (qp_get_state(qp) != QPS_ERR)
			watch(tp, qp, now_ns);
		if (qp_get_state(qp) == QPS_ERR)
			return;
		control_expire(tp, qp, now_ns);
		acks_expire(tp, qp, &vr->w->q_in, now_ns);
		acks_expire(tp, qp, &vr->w->r_in, now_ns);
		if (now_ns >= vr->w->rest_ns && now_ns >= vr->w->cnp_ns && is_quiet(qp))
			rest(tp, qp);
	}
	veroce_rearm(tp, qp, now_ns);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t or_never(uint64_t ns)
{
	return ns ? ns : TIMER_NEVER;
}

/*
 * Whether the timer fires no later than what is sent or acknowledged now could demand: it is set again then,
 * so there is no need to look when exactly.
 */
static bool fires_soon(const struct transport *tp, const struct qp *qp, uint64_t now_ns)
{
	return timer_is_set(&qp->timer) && qp->timer.deadline_ns <= now_ns + tp->pto_ns_min;
}

/* Something is due by then; 0 is never. */
static bool due_before(uint64_t ns, uint64_t until_ns)
{
	return ns - 1 < until_ns - 1;
}

/*
 * Whether the timer need not be touched, which is so for most packets: it is set, fires in time for what was
 * sent, if there is any, and nothing of what happens seldom comes sooner.
 */
static bool timer_is_right(const struct transport *tp, const struct qp *qp, uint64_t now_ns)
{
	const struct veroce *vr = qp->veroce;
	const struct veroce_work *w = vr->w;
	uint64_t set_ns = qp->timer.deadline_ns;

	/* Mostly none of them is: one branch instead of six. */
	if (!timer_is_set(&qp->timer) || !list_empty(&w->waiting) ||
	    (vr->decide_ns | vr->pair->down_count | w->pace.waits | w->q_in.ce | w->r_in.ce) ||
	    (vr->reads != w->reads_done && !w->watch_ns))
		return false;
	if ((tx_outstanding(&w->q.tx) || tx_outstanding(&w->r.tx)) &&
	    (set_ns > now_ns + tp->pto_ns_min || vr->pair->cc_due_ns < set_ns))
		return false;
	/* Nor is any of these set. */
	if (!(w->q.reo_ns | w->r.reo_ns | w->q_in.hole_ns | w->r_in.hole_ns | w->watch_ns | w->rnr_until_ns) &&
	    caps_are_settled(vr))
		return true;
	return !due_before(w->q.reo_ns, set_ns) && !due_before(w->r.reo_ns, set_ns) &&
	       !due_before(w->q_in.hole_ns, set_ns) && !due_before(w->r_in.hole_ns, set_ns) &&
	       !due_before(w->watch_ns, set_ns) && !due_before(w->rnr_until_ns, set_ns) &&
	       caps_deadline(qp) >= set_ns;
}

void veroce_set_timer(struct transport *tp, struct qp *qp, uint64_t at_ns, uint64_t now_ns)
{
	/* What is due already waits for the next output only. */
	if (at_ns <= now_ns)
		at_ns = now_ns + 1;
	/* A timer that fires too early finds the later deadline and is set again. */
	if (at_ns != TIMER_NEVER && (!timer_is_set(&qp->timer) || qp->timer.deadline_ns > at_ns))
		timer_set(&tp->timers, &qp->timer, at_ns);
}

void veroce_rearm(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint64_t at;

	if (qp->ops == &veroce_ops && vr->w && timer_is_right(tp, qp, now_ns))
		return;
	at = caps_deadline(qp);

	if (qp->ops == &veroce_ops && vr->w) {
		bool soon = fires_soon(tp, qp, now_ns);

		if (vr->reads != vr->w->reads_done && !vr->w->watch_ns) {
			vr->w->watch_ns = now_ns + VEROCE_WATCH_RTOS * vr->pair->rto_ns;
			vr->w->watch_since_ns = now_ns;
		}
		at = sooner(at, soon ? or_never(vr->w->q.reo_ns) : recovery_deadline(tp, qp, &vr->w->q));
		at = sooner(at, soon ? or_never(vr->w->r.reo_ns) : recovery_deadline(tp, qp, &vr->w->r));
		at = sooner(at, control_deadline(qp));
		at = sooner(at, or_never(vr->w->rnr_until_ns));
		if (!list_empty(&vr->w->waiting))
			at = sooner(at, vr->pair->paced_ns);
		if (vr->w->pace.waits)
			at = sooner(at, vr->w->pace.next_ns);
		if (tx_outstanding(&vr->w->q.tx) || tx_outstanding(&vr->w->r.tx))
			at = sooner(at, vr->pair->cc_due_ns);
		at = sooner(at, or_never(vr->w->watch_ns));
		at = sooner(at, or_never(vr->w->q_in.hole_ns));
		at = sooner(at, or_never(vr->w->r_in.hole_ns));
	}
	/* When nothing is to happen any more, the QP may rest, after a while. */
	if (at == TIMER_NEVER && vr->w && !timer_is_set(&qp->timer) && is_quiet(qp)) {
		vr->w->rest_ns = now_ns + rest_after_ns;
		at = vr->w->rest_ns;
	}
	veroce_set_timer(tp, qp, at, now_ns);
}

static void silence(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	qp->veroce->decide_ns = 0;
	qp->veroce->caps_ask = false;
	if (!qp->veroce->w)
		return;
	veroce_responder_flush(tp, qp, now_ns);
	/* Who calls this may be in the middle of w: it stays until the QP is reset or destroyed. */
	forget_work(tp, qp);
}

const struct qp_ops veroce_ops = {
	.opens = veroce_opens,
	.secret = veroce_secret,
	.input = input,
	.output = output,
	.expire = expire,
	.silence = silence,
};

const struct qp_ops veroce_asking_ops = {
	.opens = veroce_opens,
	.secret = veroce_secret,
	.input = input,
	.output = asking_output,
	.expire = expire,
	.silence = silence,
};
