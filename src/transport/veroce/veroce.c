/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reliable connection over veRoCE: joins the engine's files. A QP begins with `veroce_asking_ops`, unless the
 * protocol of its peer's host is known, and gets `veroce_ops` or RoCEv2's later.
 */
#include "transport/veroce/veroce.h"

#include "base/ipudp.h"
#include "transport/request.h"
#include "transport/veroce/acks.h"
#include "transport/veroce/ahead.h"
#include "transport/veroce/caps.h"
#include "transport/veroce/completer.h"
#include "transport/veroce/control.h"
#include "transport/veroce/engine.h"
#include "transport/veroce/recovery.h"
#include "transport/veroce/requester.h"
#include "transport/veroce/responder.h"
#include "transport/veroce/responder_reads.h"
#include "transport/veroce/timeouts.h"

enum { WATCH_SHIFT_MAX = 6 };

/* Without memory to begin: how often a QP tries again, and after how long it fails (our choice). */
enum { STARVED_NS = 1000000, STARVED_MS = 2000 };

static const uint64_t rest_after_ns = 10000000;

/* ---- flows --------------------------------------------------------------------------------------- */

struct flow veroce_flow_of(const struct transport *tp, const struct qp *qp, uint32_t path, bool trimmable)
{
	struct flow f = qp->flow;

	f.sport = (flow_is_ipv4(&f) ? tp->config.sport_ipv4 : tp->config.sport_ipv6)[path];
	f.dport = tp->config.veroce.port;
	/* ECT(0) for acknowledgements too, so that they can travel with data, unless only data may be trimmed. */
	f.tos = (uint8_t)((f.tos & ~3u) | 2);
	if (trimmable)
		f.tos = VEROCE_DSCP_TRIMMABLE << 2 | 2;
	return f;
}

const struct flow *veroce_make_flow(struct transport *tp, const struct qp *qp, uint32_t path, bool trimmable)
{
	struct flow f = veroce_flow_of(tp, qp, path, trimmable);
	const struct flow *kept;

	kept = tx_keep_flow(&tp->tx, &f);
	if (kept)
		tx_name_flow(&tp->tx, qp, path << 1 | trimmable);
	return kept;
}

void veroce_stamped(struct pair *pair, const struct veroce_packet *p, bool ce)
{
	if (p->ts.path_id < PATHS_MAX) {
		pair->arrivals[p->ts.path_id].packets++;
		pair->arrivals[p->ts.path_id].ce += ce;
	}
}

bool veroce_is_echo_kept(const struct receiver *in, const struct veroce_packet *p, uint64_t came_ns)
{
	uint32_t took_ns = (uint32_t)came_ns - p->ts.tx1, before_ns = in->echo_rx1 - in->echo_tx1;

	return in->unacked && in->echo_rx1 && in->path == p->ts.path_id && (int32_t)(took_ns - before_ns) > 0;
}

/* ---- input -------------------------------------------------------------------------------------- */

static bool can_send(const struct qp *qp)
{
	return qp_get_state(qp) == QPS_RTS || qp_get_state(qp) == QPS_SQD;
}

static void dispatch(struct transport *tp, struct qp *qp, const struct pkt *pkt, const struct veroce_packet *p,
		     uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (p->info->flags & F_REQUEST) {
		qp_note_established(tp, qp);
		veroce_responder_input(tp, qp, pkt, p, now_ns);
		return;
	}
	switch (p->bth.opcode) {
	case OP_RC_ACK:
	case OP_RC_SACK:
		if (can_send(qp))
			recovery_input(tp, qp, &vr->w->q, pkt, p, now_ns);
		break;
	case OP_RC_ACK_RSP:
	case OP_RC_SACK_RSP:
		recovery_input(tp, qp, &vr->w->r, pkt, p, now_ns);
		if (vr->w->asked_ns)
			responder_reads_answered(tp, qp, p, now_ns);
		break;
	case OP_CNP:
	case OP_RTT_REQUEST:
	case OP_RTT_RESPONSE:
	case OP_SLOW_PACKET: control_input(tp, qp, pkt, p, now_ns); break;
	default:
		if (can_send(qp))
			veroce_completer_input(tp, qp, pkt, p, now_ns);
	}
}

static bool is_data(const struct veroce_packet *p)
{
	return p->info->flags & (F_REQUEST | F_RESPONSE) && !(p->info->flags & F_ACK);
}

/*
 * Whether a turn of output will set the timer: at once, or when the acknowledgement of this data is due. Data by
 * itself makes no deadline earlier than that.
 */
static bool output_rearms(const struct qp *qp, const struct veroce_packet *p)
{
	return qp->veroce->w && (!list_empty(&qp->active) || (!list_empty(&qp->held) && is_data(p)));
}

/* Counts a packet for its sender's share, or as one that fills the line without a share. */
static void count_arrival(struct transport *tp, struct qp *qp, const struct pkt *pkt, const struct veroce_packet *p,
			  uint64_t now_ns)
{
	rxshare_arrived(&tp->rxshare, is_data(p) ? &qp->veroce->w->arrived : NULL, qp->veroce->caps & CAPS_RXSHARE,
			pkt->len + tp->config.cc.wire_overhead_bytes, now_ns);
}

static void input_any(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	const struct veroce_packet *p = rx->veroce;
	uint64_t now_ns = rx->now_ns;

	if (opcode_is_caps(p->bth.opcode)) {
		caps_input(tp, qp, p, rx->ip_id, now_ns);
	} else {
		bool proved = veroce_is_confirmed(qp->veroce);

		if ((!proved && !caps_is_plausible(qp->veroce, p)) || !veroce_wake(tp, qp)) {
			tp->counters.rx_dropped++;
			return;
		}
		if (!proved && (!(p->info->flags & F_REQUEST) || caps_is_due(qp->veroce, p)))
			caps_packet_came(tp, qp, true, now_ns);
		if (tp->rxshare.line_kbps)
			count_arrival(tp, qp, rx->pkt, p, now_ns);
		if (qp->veroce->w->unheard)
			responder_reads_heard(tp, qp, now_ns);
		dispatch(tp, qp, rx->pkt, p, now_ns);
	}
	/* No timer runs for a QP in ERR. */
	if (qp_get_state(qp) != QPS_ERR && veroce_is_spoken(qp->veroce) && !output_rearms(qp, p))
		veroce_rearm(tp, qp, now_ns);
}

static bool is_settled(const struct transport *tp, const struct qp *qp)
{
	return qp->veroce->w && veroce_is_confirmed(qp->veroce) && !tp->rxshare.line_kbps;
}

/* A RoCEv2 packet of this QP's peer: the peer has chosen RoCEv2, so this QP does too (see caps.c). */
static void rocev2_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	struct veroce *vr = qp->veroce;
	uint32_t flags = rx->info->flags;

	/* We sent nothing in RoCEv2, so only one packet can be the peer's first. */
	if (veroce_is_confirmed(vr) || flags & F_RESPONSE || !(flags & F_START) || rx->bth->psn != qp->rq_psn) {
		tp->counters.rx_wrong_source++;
		return;
	}
	if (tp->config.protocol == PROTOCOL_VEROCE) {
		tp->counters.rx_wrong_source++;
		tp->counters.rx_rocev2_refused++;
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
	/* A packet that only adds to an acknowledgement already due changes no timer. */
	if (flags & F_MIDDLE && is_settled(tp, qp) &&
	    (flags & F_REQUEST ? veroce_responder_middle(tp, qp, rx->pkt, rx->veroce, rx->now_ns)
			       : can_send(qp) && veroce_completer_middle(tp, qp, rx->pkt, rx->veroce, rx->now_ns)))
		return;
	input_any(tp, qp, rx);
}

/* ---- output --------------------------------------------------------------------------------------- */

static __attribute__((cold)) void starve(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint32_t ms = (uint32_t)(now_ns / 1000000);

	if (!vr->starved_ms)
		vr->starved_ms = ms | 1;
	if ((int32_t)(ms - vr->starved_ms) >= STARVED_MS) {
		qp_raise(tp, qp, EVENT_QP_FATAL);
		qp_to_error(tp, qp, now_ns);
		return;
	}
	if (qp->timer.deadline_ns > now_ns + STARVED_NS)
		timer_set(&tp->timers, &qp->timer, now_ns + STARVED_NS);
}

/* In ERR. */
static __attribute__((cold)) bool take_last_turn(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	/* The NAK_Rsp that ended the connection has not left yet (11). */
	if (vr->w && vr->w->r_in.nak_due && !acks_send(tp, qp, &vr->w->r_in, now_ns))
		return true;
	qp_flush(tp, qp, now_ns);
	return false;
}

static bool take_turn(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	bool more;
	size_t before;

	if (qp_get_state(qp) == QPS_ERR)
		return take_last_turn(tp, qp, now_ns);
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
	    (!acks_output(tp, qp, &vr->w->q_in, now_ns) || !acks_output(tp, qp, &vr->w->r_in, now_ns) ||
	     !control_output_cnp(tp, qp, now_ns)))
		return true;
	before = tp->tx.count;
	veroce_responder_retry(tp, qp, now_ns);
	if (qp_get_state(qp) == QPS_ERR)
		return false;
	more = !qp_is_paused(tp, qp) && responder_reads_output(tp, qp, now_ns);
	if (!more && !vr->w->fatal && !qp_is_paused(tp, qp)) {
		/* The longer packet begins a train. Between processes of one host an acknowledgement has no time
		 * stamps: it is short. */
		if (vr->w->q_in.ack_due && vr->caps & CAPS_TS && !acks_go_first(tp) &&
		    veroce_requester_next_len(qp) < ACKS_STAMPED_LEN && !acks_output(tp, qp, &vr->w->q_in, now_ns))
			return true;
		more = veroce_requester_output(tp, qp, now_ns);
	}
	if (qp_get_state(qp) == QPS_ERR)
		return false;
	/* An acknowledgement is short and comes last, so it can end a train. One that waits for a train waits on. */
	if (list_empty(&qp->held) || tp->tx.count != before || acks_nak_ready(qp) || vr->w->q_in.trims ||
	    vr->w->r_in.trims) {
		if (!acks_output(tp, qp, &vr->w->q_in, now_ns) || !acks_output(tp, qp, &vr->w->r_in, now_ns))
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

/* When to ask again: ever later, but not later than the program would have it. */
static uint64_t watch_wait_ns(const struct qp *qp, uint8_t tries)
{
	uint64_t least = VEROCE_WATCH_RTOS * qp->veroce->pair->rto_ns, most = timeouts_program_ns(qp);
	uint64_t wait = least << (tries < WATCH_SHIFT_MAX ? tries : WATCH_SHIFT_MAX);

	if (!most || wait <= most)
		return wait;
	return most > least ? most : least;
}

/* Requests a READ again that was received but not answered (7.4). */
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
	vr->w->watch_ns = now_ns + watch_wait_ns(qp, tries);
	index = *veroce_read(vr, psn_add(vr->w->reads_done, 1));
	w = sq_at(&qp->sq, index);
	if (psn_diff(w->psn_first, vr->w->q.tx.una) >= 0) {
		vr->w->watch_since_ns = now_ns;
		return; /* not received, or not sent yet: Q's recovery repairs that */
	}
	if (tries < UINT8_MAX)
		vr->w->watch_tries++;
	if (timeouts_is_hopeless(tp, qp, vr->w->watch_tries, vr->w->watch_since_ns, now_ns)) {
		request_fail_in_turn(tp, qp, index, WC_RETRY_EXC_ERR, now_ns);
		return;
	}
	veroce_requester_ask_again(tp, qp, index);
}

static void expire(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	caps_expire(tp, qp, now_ns);
	if (vr->state == VEROCE_ROCEV2)
		return;
	if (vr->starved_ms)
		qp_activate(tp, qp);
	if (veroce_is_spoken(vr) && vr->w) {
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
		timeouts_expire(tp, qp, &vr->w->q, now_ns);
		if (vr->state == VEROCE_ROCEV2)
			return; /* the QP fell back to RoCEv2 */
		if (qp_get_state(qp) != QPS_ERR)
			timeouts_expire(tp, qp, &vr->w->r, now_ns);
		if (qp_get_state(qp) != QPS_ERR)
			watch(tp, qp, now_ns);
		if (qp_get_state(qp) == QPS_ERR)
			return;
		control_expire(tp, qp, now_ns);
		acks_expire(tp, qp, &vr->w->q_in, now_ns);
		acks_expire(tp, qp, &vr->w->r_in, now_ns);
		if (now_ns >= vr->w->rest_ns && now_ns >= vr->w->cnp_ns && veroce_is_quiet(qp))
			veroce_rest(tp, qp);
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
 * Whether the timer fires before anything sent or acknowledged now can be due. It is set again when it fires,
 * so the exact deadline is not needed now.
 */
static bool fires_soon(const struct transport *tp, const struct qp *qp, uint64_t now_ns)
{
	return timer_is_set(&qp->timer) && qp->timer.deadline_ns <= now_ns + tp->config.veroce.pto_ns_min;
}

/* Whether ns is a time before until_ns; 0 means never. */
static bool due_before(uint64_t ns, uint64_t until_ns)
{
	return ns - 1 < until_ns - 1;
}

/*
 * Whether the timer can stay as it is, as after most packets: it is set, fires in time for the packets in flight, if
 * there are any, and no rare deadline is earlier.
 */
static bool timer_is_right(const struct transport *tp, const struct qp *qp, uint64_t now_ns)
{
	const struct veroce *vr = qp->veroce;
	const struct veroce_work *w = vr->w;
	uint64_t set_ns = qp->timer.deadline_ns;

	/* Mostly none of them is set: one branch instead of six. */
	if (!timer_is_set(&qp->timer) || !list_empty(&w->waiting) ||
	    (vr->decide_ns | vr->pair->down_count | w->pace.waits | w->q_in.ce | w->r_in.ce) ||
	    (vr->reads != w->reads_done && !w->watch_ns))
		return false;
	if ((tx_outstanding(&w->q.tx) || tx_outstanding(&w->r.tx)) &&
	    (set_ns > now_ns + tp->config.veroce.pto_ns_min || vr->pair->cc_due_ns < set_ns))
		return false;
	/* None of these is set either. */
	if (!(w->q.reo_ns | w->r.reo_ns | w->q_in.hole_ns | w->r_in.hole_ns | w->watch_ns | w->rnr_until_ns) &&
	    caps_are_settled(vr))
		return true;
	return !due_before(w->q.reo_ns, set_ns) && !due_before(w->r.reo_ns, set_ns) &&
	       !due_before(w->q_in.hole_ns, set_ns) && !due_before(w->r_in.hole_ns, set_ns) &&
	       !due_before(w->watch_ns, set_ns) && !due_before(w->rnr_until_ns, set_ns) && caps_deadline(qp) >= set_ns;
}

void veroce_set_timer(struct transport *tp, struct qp *qp, uint64_t at_ns, uint64_t now_ns)
{
	/* A deadline that has passed is handled by the next output. */
	if (at_ns <= now_ns)
		at_ns = now_ns + 1;
	/* The timer may fire early: it then finds the later deadline and is set again. */
	if (at_ns != TIMER_NEVER && (!timer_is_set(&qp->timer) || qp->timer.deadline_ns > at_ns))
		timer_set(&tp->timers, &qp->timer, at_ns);
}

void veroce_rearm(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint64_t at;

	if (veroce_is_spoken(vr) && vr->w && timer_is_right(tp, qp, now_ns))
		return;
	at = caps_deadline(qp);

	if (veroce_is_spoken(vr) && vr->w) {
		bool soon = fires_soon(tp, qp, now_ns);

		if (vr->reads != vr->w->reads_done && !vr->w->watch_ns) {
			vr->w->watch_ns = now_ns + VEROCE_WATCH_RTOS * vr->pair->rto_ns;
			vr->w->watch_since_ns = now_ns;
		}
		at = sooner(at, soon ? or_never(vr->w->q.reo_ns) : timeouts_deadline(tp, qp, &vr->w->q));
		at = sooner(at, soon ? or_never(vr->w->r.reo_ns) : timeouts_deadline(tp, qp, &vr->w->r));
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
	/* A QP without deadlines rests after a while. */
	if (at == TIMER_NEVER && vr->w && !timer_is_set(&qp->timer) && veroce_is_quiet(qp)) {
		vr->w->rest_ns = now_ns + rest_after_ns;
		at = vr->w->rest_ns;
	}
	veroce_set_timer(tp, qp, at, now_ns);
}

const struct qp_ops veroce_ops = {
	.service = SVC_RC,
	.reliable = true,
	.multipath = true,
	.connect = veroce_connect,
	.start = veroce_start,
	.readdress = veroce_readdress,
	.reset = veroce_reset,
	.opens = veroce_opens,
	.secret = veroce_secret,
	.place = veroce_place_ahead,
	.input = input,
	.output = output,
	.expire = expire,
	.silence = veroce_silence,
	.query = veroce_query,
	.congestion = veroce_congestion,
};

const struct qp_ops veroce_asking_ops = {
	.service = SVC_RC,
	.reliable = true,
	.multipath = true,
	.connect = veroce_connect,
	.start = veroce_start,
	.readdress = veroce_readdress,
	.reset = veroce_reset,
	.opens = veroce_opens,
	.secret = veroce_secret,
	.input = input,
	.output = asking_output,
	.expire = expire,
	.silence = veroce_silence,
	.query = veroce_query,
	.congestion = veroce_congestion,
};
