/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reliable connection over veRoCE: joins the engine's files. A QP begins in `veroce_asking_ops`, unless
 * what its peer's host speaks is known, and ends up with `veroce_ops` or RoCEv2's.
 */
#include <errno.h>
#include <string.h>

#include "base/siphash.h"
#include "transport/request.h"
#include "transport/veroce/veroce.h"

enum { WATCH_RTOS = 4 };

uint64_t transport_secret(struct transport *tp)
{
	return siphash_u64(tp->secret, tp->secret_serial++);
}

/* ---- life --------------------------------------------------------------------------------------- */

static void sender_init(struct sender *s, uint32_t psn)
{
	*s = (struct sender){.peer_window = VEROCE_BASE_WINDOW, .rxt_psn = (psn - 1) & PSN_MASK};
	tx_space_init(&s->tx, psn);
}

static void receiver_init(struct receiver *in, uint32_t epsn, const struct pair *pair)
{
	*in = (struct receiver){.ext = acks_ext_start(pair->path_count)};
	rx_space_init(&in->rx, epsn);
}

/* rq_psn is the peer's initial Q PSN, and so that of the responses to it (veRoCE 4.1, our choice). */
static void connect_spaces(struct qp *qp)
{
	struct veroce *vr = qp->veroce;

	receiver_init(&vr->q_in, qp->rq_psn, vr->pair);
	sender_init(&vr->r, qp->rq_psn);
	vr->emit = 1;
}

int veroce_create(struct transport *tp, struct qp *qp, bool local, uint64_t now_ns)
{
	struct veroce *vr;
	enum pair_speaks speaks;

	qp->ops = &rc_ops;
	vr = alloc_get(&tp->alloc, sizeof(*vr));
	if (!vr)
		return -ENOMEM;
	vr->pair = pair_get(&tp->pairs, qp->flow.src, qp->flow.dst, local, qp->mtu, now_ns);
	if (!vr->pair) {
		alloc_put(&tp->alloc, vr, sizeof(*vr));
		return -ENOMEM;
	}
	vr->qp = qp;
	qp->veroce = vr;
	list_init(&vr->waiting);
	connect_spaces(qp);
	sender_init(&vr->q, 0);
	receiver_init(&vr->r_in, 0, vr->pair);
	if (tp->protocol == TRANSPORT_ROCEV2)
		return 0;
	speaks = pair_speaks(vr->pair, now_ns);
	if (speaks == PAIR_ROCEV2 && tp->protocol == TRANSPORT_AUTO)
		return 0;
	if (speaks == PAIR_VEROCE || tp->protocol == TRANSPORT_VEROCE) {
		qp->ops = &veroce_ops;
		vr->peer = PEER_ASSUMED;
	} else {
		qp->ops = &veroce_asking_ops;
	}
	caps_start(tp, qp, now_ns);
	return 0;
}

static void drop_state(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;
	struct sender *senders[] = {&vr->q, &vr->r};
	struct receiver *receivers[] = {&vr->q_in, &vr->r_in};

	for (int i = 0; i < 2; i++) {
		struct sender *s = senders[i];

		/* What is in flight fills no path any more. */
		for (uint32_t psn = s->tx.una; s->tx.ring && psn != s->tx.nxt; psn = psn_add(psn, 1)) {
			const struct tx_record *r = tx_record(&s->tx, psn);

			if (r->state == TX_FLYING)
				path_forget(vr->pair, r->path, r->bytes);
		}
		tx_space_drop(&s->tx, &tp->pool);
		rx_space_drop(&receivers[i]->rx, &tp->pool);
		receivers[i]->ack_due = false;
		receivers[i]->nak_due = false;
		receivers[i]->trims = 0;
		receivers[i]->hole_ns = 0;
	}
	strong_order_drop(tp, vr);
	list_remove(&vr->waiting);
	vr->watch_ns = 0;
	vr->rnr_until_ns = 0;
}

void veroce_destroy(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;

	if (!vr)
		return;
	drop_state(tp, qp);
	requested_drop(tp, qp);
	pair_put(&tp->pairs, vr->pair);
	alloc_put(&tp->alloc, vr, sizeof(*vr));
	qp->veroce = NULL;
	qp->ops = &rc_ops;
}

void veroce_start(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;
	uint32_t window;

	if (!vr)
		return;
	window = vr->q.peer_window;
	sender_init(&vr->q, qp->sq_psn);
	vr->q.peer_window = window;
	receiver_init(&vr->r_in, qp->sq_psn, vr->pair);
	vr->psn_new = qp->sq_psn;
	vr->wqe = qp->sq.next;
	vr->rnr_retries = qp->rnr_retry;
}

void veroce_fall_back(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	drop_state(tp, qp);
	connect_spaces(qp);
	vr->decide_ns = 0;
	vr->caps_ask = false;
	qp->ops = &rc_ops;
	tp->counters.fallbacks++;
	timer_cancel(&tp->timers, &qp->timer);
	qp->sq.next = qp->sq.una;
	if (qp_get_state(qp) == QPS_RTS || qp_get_state(qp) == QPS_SQD)
		requester_start(tp, qp);
	qp_activate(tp, qp);
}

void veroce_heard(struct transport *tp, struct qp *qp, bool confirmed, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (vr->peer == PEER_ASKING) {
		vr->peer = PEER_ASSUMED;
		qp->ops = &veroce_ops;
		vr->decide_ns = 0;
		qp_activate(tp, qp);
	}
	if (confirmed && vr->peer == PEER_ASSUMED) {
		vr->peer = PEER_CONFIRMED;
		pair_learn(vr->pair, PAIR_VEROCE, now_ns);
	}
}

const struct flow *veroce_flow(struct transport *tp, const struct qp *qp, uint32_t path, bool data)
{
	struct flow f = qp->flow;
	bool ipv4 = !memcmp(f.src, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);

	f.sport = (ipv4 ? tp->sport_ipv4 : tp->sport_ipv6)[path];
	f.dport = tp->veroce_port;
	/* ECT(0); acknowledgements too, to travel with data, unless only data may be trimmed. */
	f.tos = (uint8_t)((f.tos & ~3u) | 2);
	if (data && qp->veroce->caps & CAPS_TRIM)
		f.tos = VEROCE_DSCP_TRIMMABLE << 2 | 2;
	return tx_keep_flow(&tp->tx, &f);
}

void veroce_stamp(struct qp *qp, struct veroce_packet *p, uint32_t path, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	p->bth.ts = vr->caps & CAPS_TS;
	if (!p->bth.ts)
		return;
	p->ts = (struct tseth){
		.tx1 = (uint32_t)now_ns,
		.path_id = (uint8_t)path,
		.path_seq = vr->pair->path[path].stamp_seq++ & PSN_MASK,
	};
}

bool veroce_is_trimmed(const struct qp *qp, const struct pkt *pkt)
{
	return qp->veroce->caps & CAPS_TRIM && pkt->flow->tos >> 2 == VEROCE_DSCP_TRIMMED;
}

void veroce_arrival(struct qp *qp, struct receiver *in, const struct pkt *pkt,
		    const struct veroce_packet *p, uint64_t now_ns)
{
	bool ce = (pkt->flow->tos & 3) == 3; /* RFC 3168 */

	in->path = p->bth.ts ? p->ts.path_id : (uint8_t)(pkt->flow->sport % TX_PATHS_MAX);
	in->ce |= ce;
	in->asked |= p->bth.retrans && p->bth.ackreq;
	in->echo_rx1 = 0;
	if (!p->bth.ts)
		return;
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

	switch (p->bth.opcode) {
	case OP_RC_ACK:
	case OP_RC_SACK:
		if (can_send(qp))
			recovery_input(tp, qp, &vr->q, p, now_ns);
		break;
	case OP_RC_ACK_RSP:
	case OP_RC_SACK_RSP:
		recovery_input(tp, qp, &vr->r, p, now_ns);
		break;
	case OP_CNP:
	case OP_RTT_REQUEST:
	case OP_RTT_RESPONSE:
	case OP_SLOW_PACKET:
		control_input(tp, qp, pkt, p, now_ns);
		break;
	default:
		if (p->info->flags & F_RESPONSE) {
			if (can_send(qp))
				results_input(tp, qp, pkt, p, now_ns);
			break;
		}
		note_established(tp, qp);
		requested_input(tp, qp, pkt, p, now_ns);
	}
}

static void input(struct transport *tp, struct qp *qp, const struct pkt *pkt,
		  const struct veroce_packet *p, uint64_t now_ns)
{
	if (p->bth.opcode == OP_CAPS_REQUEST || p->bth.opcode == OP_CAPS_RESPONSE) {
		caps_input(tp, qp, p, now_ns);
	} else {
		veroce_heard(tp, qp, true, now_ns);
		dispatch(tp, qp, pkt, p, now_ns);
	}
	if (qp->ops == &veroce_ops)
		veroce_rearm(tp, qp, now_ns);
}

/* RoCEv2 of this peer, for this QP: it has decided, so we have (see caps.c). */
static void rocev2_input(struct transport *tp, struct qp *qp, const struct pkt *pkt,
			 const struct bth *bth, const struct opcode_info *info,
			 const uint8_t *headers, const uint8_t *payload, uint32_t payload_len,
			 uint64_t now_ns)
{
	if (qp->veroce->peer == PEER_CONFIRMED || tp->protocol == TRANSPORT_VEROCE) {
		tp->counters.rx_wrong_source++;
		return;
	}
	pair_learn(qp->veroce->pair, PAIR_UNKNOWN, now_ns);
	veroce_fall_back(tp, qp, now_ns);
	rc_ops.input(tp, qp, pkt, bth, info, headers, payload, payload_len, now_ns);
}

/* ---- output --------------------------------------------------------------------------------------- */

static bool output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	bool more;
	size_t before;

	if (qp_get_state(qp) == QPS_ERR) {
		qp_flush(tp, qp, now_ns);
		return false;
	}
	if (!caps_output(tp, qp, now_ns))
		return true;
	if (!control_output(tp, qp, now_ns))
		return true;
	before = tp->tx.count;
	requested_retry(tp, qp, now_ns);
	more = responses_output(tp, qp, now_ns);
	if (!more && !vr->fatal)
		more = requests_output(tp, qp, now_ns);
	if (qp_get_state(qp) == QPS_ERR)
		return false;
	/* Last, and short: an acknowledgement can end a train. One that waits for company goes on waiting. */
	if (list_empty(&qp->held) || tp->tx.count != before || acks_nak_ready(qp) ||
	    vr->q_in.trims || vr->r_in.trims) {
		if (!acks_output(tp, qp, &vr->q_in, now_ns) ||
		    !acks_output(tp, qp, &vr->r_in, now_ns))
			more = true;
		else
			list_remove(&qp->held);
	}
	if (qp_get_state(qp) != QPS_ERR)
		veroce_rearm(tp, qp, now_ns);
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
	uint32_t index;
	struct send_wqe *w;

	if (vr->reads == vr->reads_done) {
		vr->watch_ns = 0;
		return;
	}
	if (!vr->watch_ns || vr->watch_ns > now_ns)
		return;
	vr->watch_ns = now_ns + (WATCH_RTOS * vr->pair->rto_ns << vr->watch_tries);
	index = qp->req.rd_end[psn_add(vr->reads_done, 1) % qp->req.rd_entries];
	w = sq_at(&qp->sq, index);
	if (tx_is_outstanding(&vr->q.tx, w->psn_first))
		return; /* not even received: that is Q's to repair */
	if (vr->watch_tries++ >= qp->retry_cnt) {
		request_fail_in_turn(tp, qp, index, WC_RETRY_EXC_ERR, now_ns);
		return;
	}
	requests_ask_again(tp, qp, index);
}

static void expire(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	caps_expire(tp, qp, now_ns);
	if (qp->ops == &rc_ops)
		return;
	if (qp->ops == &veroce_ops) {
		if (vr->rnr_until_ns && vr->rnr_until_ns <= now_ns)
			requests_end_rnr(tp, qp, now_ns);
		recovery_expire(tp, qp, &vr->q, now_ns);
		if (qp_get_state(qp) != QPS_ERR)
			recovery_expire(tp, qp, &vr->r, now_ns);
		if (qp_get_state(qp) != QPS_ERR)
			watch(tp, qp, now_ns);
		if (qp_get_state(qp) == QPS_ERR)
			return;
		control_expire(tp, qp, now_ns);
		acks_expire(tp, qp, &vr->q_in, now_ns);
		acks_expire(tp, qp, &vr->r_in, now_ns);
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

void veroce_rearm(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint64_t at = caps_deadline(qp);

	if (vr->reads != vr->reads_done && !vr->watch_ns)
		vr->watch_ns = now_ns + WATCH_RTOS * vr->pair->rto_ns;
	if (qp->ops == &veroce_ops) {
		at = sooner(at, recovery_deadline(tp, qp, &vr->q));
		at = sooner(at, recovery_deadline(tp, qp, &vr->r));
		at = sooner(at, control_deadline(qp));
		at = sooner(at, or_never(vr->rnr_until_ns));
		at = sooner(at, or_never(vr->watch_ns));
		at = sooner(at, or_never(vr->q_in.hole_ns));
		at = sooner(at, or_never(vr->r_in.hole_ns));
	}
	/* What is due already waits for the next output only. */
	if (at <= now_ns)
		at = now_ns + 1;
	/* A timer that fires too early finds the later deadline and is set again. */
	if (at != TIMER_NEVER && (!timer_is_set(&qp->timer) || qp->timer.deadline_ns > at))
		timer_set(&tp->timers, &qp->timer, at);
}

static void silence(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	drop_state(tp, qp);
	qp->veroce->decide_ns = 0;
	qp->veroce->caps_ask = false;
	requested_flush(tp, qp, now_ns);
}

const struct qp_ops veroce_ops = {
	.input = rocev2_input,
	.veroce_input = input,
	.output = output,
	.expire = expire,
	.silence = silence,
};

const struct qp_ops veroce_asking_ops = {
	.input = rocev2_input,
	.veroce_input = input,
	.output = asking_output,
	.expire = expire,
	.silence = silence,
};
