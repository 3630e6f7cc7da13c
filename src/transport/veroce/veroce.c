/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reliable connection over veRoCE: joins the engine's files. A QP begins with `veroce_asking_ops`, unless the
 * protocol of its peer's host is known, and gets `veroce_ops` or RoCEv2's later.
 */
#include "transport/veroce/veroce.h"

#include "base/ipudp.h"
#include "transport/veroce/ahead.h"
#include "transport/veroce/caps.h"
#include "transport/veroce/completer.h"
#include "transport/veroce/control.h"
#include "transport/veroce/engine.h"
#include "transport/veroce/hold.h"
#include "transport/veroce/recovery.h"
#include "transport/veroce/responder.h"
#include "transport/veroce/responder_reads.h"
#include "transport/veroce/roam.h"

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
		if (qp_can_send(qp))
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
		if (qp_can_send(qp))
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

/* Whether so many hosts may send that they could be given shares: arrivals are counted. */
static inline bool may_share(const struct transport *tp)
{
	return tp->pairs.count - tp->pairs.unused >= tp->rxshare.hosts_min;
}

/* Counts a packet for its sender's share, or as one that fills the line without a share. */
static void count_arrival(struct transport *tp, struct qp *qp, const struct pkt *pkt, const struct veroce_packet *p,
			  uint64_t now_ns)
{
	rxshare_arrived(&tp->rxshare, is_data(p) ? &qp->veroce->w->arrived : NULL, qp->veroce->caps & CAPS_RXSHARE,
			pkt->len + tp->config.cc.wire_overhead_bytes, now_ns);
	if (is_data(p) && qp->veroce->caps & CAPS_TS && rxshare_watches(&tp->rxshare))
		rxshare_watch(&tp->rxshare, &qp->veroce->pair->sent, p->bth.ts ? p->ts.tx1 : 0, now_ns);
}

static void input_any(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	const struct veroce_packet *p = rx->veroce;
	uint64_t now_ns = rx->now_ns;

	if (opcode_is_caps(p->bth.opcode)) {
		caps_input(tp, qp, p, rx->ip_id, now_ns);
	} else if (p->info->headers & H_HOLDETH) {
		hold_input(tp, qp, p, now_ns);
	} else if (p->info->headers & H_ROAMETH) {
		roam_input(tp, qp, rx);
	} else {
		bool proved = veroce_is_confirmed(qp->veroce);

		if ((!proved && !caps_is_plausible(qp->veroce, p)) || !veroce_wake(tp, qp)) {
			tp->counters.rx_dropped++;
			return;
		}
		if (!proved && (!(p->info->flags & F_REQUEST) || caps_is_due(qp->veroce, p)))
			caps_packet_came(tp, qp, true, now_ns);
		if (qp->veroce->held)
			hold_heard(tp, qp, now_ns);
		if (may_share(tp))
			count_arrival(tp, qp, rx->pkt, p, now_ns);
		if (qp->veroce->w->unheard)
			responder_reads_heard(tp, qp, now_ns);
		dispatch(tp, qp, rx->pkt, p, now_ns);
	}
	/* No timer runs for a QP in ERR. */
	if (qp_get_state(qp) != QPS_ERR && veroce_is_spoken(qp->veroce) && !output_rearms(qp, p))
		veroce_rearm(tp, qp, now_ns);
}

static bool is_settled(const struct qp *qp)
{
	return qp->veroce->w && veroce_is_confirmed(qp->veroce) && !qp->veroce->held;
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
	if (flags & F_MIDDLE && is_settled(qp) &&
	    (flags & F_REQUEST ? veroce_responder_middle(tp, qp, rx->pkt, rx->veroce, rx->now_ns)
			       : qp_can_send(qp) && veroce_completer_middle(tp, qp, rx->pkt, rx->veroce, rx->now_ns))) {
		if (may_share(tp))
			count_arrival(tp, qp, rx->pkt, rx->veroce, rx->now_ns);
		return;
	}
	input_any(tp, qp, rx);
}

/* ---- ops ------------------------------------------------------------------------------------------- */

/* What a QP does whether its peer's protocol is known or not. */
/* clang-format off */
#define OPS_OF_BOTH                                                                        \
	.service = SVC_RC, .reliable = true, .multipath = true, .connect = veroce_connect, \
	.start = veroce_start, .readdress = veroce_readdress, .reset = veroce_reset,       \
	.seal = &seal_agreed, .input = input, .expire = veroce_expire,                     \
	.silence = veroce_silence, .query = veroce_query, .congestion = veroce_congestion
/* clang-format on */

const struct qp_ops veroce_ops = {OPS_OF_BOTH,      .place = veroce_place_ahead,  .output = veroce_output,
				  .hold = hold_ask, .peer_waits = hold_is_agreed, .may_roam = roam_is_agreed,
				  .roam = roam_go,  .strange = roam_strange};
const struct qp_ops veroce_asking_ops = {OPS_OF_BOTH, .output = veroce_asking_output};
