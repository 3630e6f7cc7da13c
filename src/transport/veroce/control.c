/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets outside the PSN spaces (veRoCE 9.1, 10): congestion notification, round-trip probes of paths
 * that are down, and the signal that a packet was slow.
 *
 * ECN echo: a CE mark makes an acknowledgement due, whose BECN bit reports it. It is reported by a CNP only if the
 * packet leads to no acknowledgement: when it was too far ahead, or dropped until its turn. A QP sends at most one CNP
 * in cnp_period_ns; a mark that arrives sooner waits for the end of that time, or for an acknowledgement.
 *
 * A probe's CC context is the index of its path, and its answer returns on the same path, as far as a
 * source port can be chosen.
 */
#include <string.h>

#include "transport/veroce/control.h"

#include "transport/veroce/timeouts.h"
#include "transport/veroce/veroce.h"

static const uint64_t cnp_period_ns = 50000;  /* 12.3 */
static const uint64_t slow_period_ns = 30000; /* three fit in the 100 us in which they are counted */

/* The peer runs. The QP that asked evaluates that at once; the others do when their timers fire. */
static void stall_answer(struct transport *tp, struct qp *qp, const struct rtteth *rtt, uint64_t now_ns)
{
	if (stall_answered(&tp->config, &qp->veroce->pair->stall, rtt->tx1, now_ns))
		veroce_set_timer(tp, qp, timeouts_deadline_of_both(tp, qp), now_ns);
	else
		tp->counters.rx_dropped++;
}

/* The source port of a CNP names the path (10); a port that is none of ours stands for all paths. */
void control_input(struct transport *tp, struct qp *qp, const struct pkt *pkt, const struct veroce_packet *p,
		   uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct pair *pair = vr->pair;
	uint32_t path = p->rtt.context & 0xff;

	switch (p->bth.opcode) {
	case OP_RTT_REQUEST:
		vr->w->rtt = p->rtt;
		vr->w->rtt.rx1 = (uint32_t)now_ns;
		vr->w->rtt_reply = true;
		qp_activate(tp, qp);
		break;
	case OP_RTT_RESPONSE:
		if (p->rtt.context & CONTROL_CONTEXT_HOLD)
			break; /* that it arrived is enough */
		/* It answers a probe that is under way, if it returns that probe's TX1. */
		if (p->rtt.context & CONTROL_CONTEXT_STALL)
			stall_answer(tp, qp, &p->rtt, now_ns);
		else if (path < pair->path_count && pair->path[path].probe_sent_ns &&
			 (uint32_t)pair->path[path].probe_sent_ns == p->rtt.tx1)
			path_probe_answered(&tp->pairs, pair, path, now_ns);
		else
			tp->counters.rx_dropped++;
		break;
	case OP_CNP:
		tp->counters.cnps_received++;
		tp->counters.cnps_ignored += !pair->own || !cc_heeds_cnps(&pair->own->cc);
		pair_cnp(pair, pkt->flow->sport % PATHS_MAX, now_ns);
		break;
	default:
		tp->counters.slow_signals++;
		if (tx_is_outstanding(&vr->w->q.tx, p->bth.psn))
			path_slow(pair, tx_record(&vr->w->q.tx, p->bth.psn)->path, now_ns);
	}
}

void control_slow(struct transport *tp, struct qp *qp, uint32_t psn, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (now_ns < vr->w->slow_ns)
		return;
	vr->w->slow_ns = now_ns + slow_period_ns;
	vr->w->slow_psn = psn;
	vr->w->slow_due = true;
	qp_activate(tp, qp);
}

/* The signal carries only the PSN of the slow packet (our reading of 9.1). */
static bool send_slow(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;
	struct veroce_packet p = {
		.bth = {.opcode = OP_SLOW_PACKET,
			.migreq = true,
			.pkey = qp->pkey,
			.dqpn = qp->dest_qpn,
			.psn = vr->w->slow_psn},
	};
	const struct flow *flow = veroce_flow(tp, qp, vr->w->q_in.path % vr->pair->path_count, false);
	uint8_t *out = flow ? tx_room(&tp->tx, TX_HEADROOM_MAX) : NULL;

	if (!out)
		return false;
	tx_commit(&tp->tx, flow, qp->dest_qpn, veroce_encode_headers(out, &p));
	vr->w->slow_due = false;
	tp->counters.slow_signals_sent++;
	return true;
}

bool control_send_rtt(struct transport *tp, struct qp *qp, uint8_t opcode, uint32_t path, const struct rtteth *rtt)
{
	struct veroce_packet p = {
		.bth = {.opcode = opcode, .migreq = true, .pkey = qp->pkey, .dqpn = qp->dest_qpn},
		.rtt = *rtt,
	};
	const struct flow *flow = veroce_flow(tp, qp, path, false);
	uint8_t *out = flow ? tx_room(&tp->tx, TX_HEADROOM_MAX) : NULL;

	if (!out)
		return false;
	tx_commit(&tp->tx, flow, qp->dest_qpn, veroce_encode_headers(out, &p));
	return true;
}

static bool send_stall_ask(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct rtteth rtt = {.context = CONTROL_CONTEXT_STALL, .tx1 = (uint32_t)now_ns};

	if (!control_send_rtt(tp, qp, OP_RTT_REQUEST, 0, &rtt))
		return false;
	qp->veroce->w->stall_ask = false;
	qp->veroce->pair->stall.asked_ns = now_ns;
	tp->counters.path_probes++;
	return true;
}

/* One probe at a time on each path that is down. */
static bool probe_due(const struct path *p, uint64_t now_ns)
{
	return p->down && p->probe_ns <= now_ns;
}

bool control_send(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct pair *pair = vr->pair;

	if (vr->w->rtt_reply) {
		vr->w->rtt.tx2 = (uint32_t)now_ns;
		if (!control_send_rtt(tp, qp, OP_RTT_RESPONSE, (vr->w->rtt.context & 0xff) % pair->path_count,
				      &vr->w->rtt))
			return false;
		vr->w->rtt_reply = false;
	}
	if (vr->w->stall_ask && !send_stall_ask(tp, qp, now_ns))
		return false;
	if (vr->w->slow_due && !send_slow(tp, qp))
		return false;
	for (uint32_t i = 0; pair->down_count && !vr->held && i < pair->path_count; i++) {
		const struct path *path = &pair->path[i];
		struct rtteth rtt = {.context = i, .tx1 = (uint32_t)now_ns};

		if (!probe_due(path, now_ns))
			continue;
		if (!control_send_rtt(tp, qp, OP_RTT_REQUEST, i, &rtt))
			return false;
		path_probe_sent(&tp->config, pair, i, now_ns);
		tp->counters.path_probes++;
	}
	return true;
}

/* The space with a mark that no acknowledgement due will report; NULL: there is none. */
static struct receiver *untold(struct veroce_work *w)
{
	struct receiver *ins[] = {&w->q_in, &w->r_in};

	for (int i = 0; i < 2; i++) {
		if (ins[i]->ce && !ins[i]->ack_due)
			return ins[i];
	}
	return NULL;
}

bool control_send_cnp(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct receiver *in = untold(vr->w);
	struct veroce_packet p = {
		.bth = {.opcode = OP_CNP, .migreq = true, .pkey = qp->pkey, .becn = true, .dqpn = qp->dest_qpn},
	};
	const struct flow *flow;
	uint8_t *out;
	uint32_t at;

	if (!in || now_ns < vr->w->cnp_ns)
		return true;
	flow = veroce_flow(tp, qp, in->ce_path % vr->pair->path_count, false);
	out = flow ? tx_room_for_answer(&tp->tx, TX_HEADROOM_MAX) : NULL;
	if (!out)
		return false;
	at = veroce_encode_headers(out, &p);
	memset(out + at, 0, CNP_RESV_LEN);
	tx_commit_answer(&tp->tx, flow, qp->dest_qpn, at + CNP_RESV_LEN);
	tp->counters.cnps_sent++;
	vr->w->cnp_ns = now_ns + cnp_period_ns;
	in->ce = false;
	return true;
}

uint64_t control_deadline(const struct qp *qp)
{
	const struct veroce *vr = qp->veroce;
	uint64_t at = untold(vr->w) ? vr->w->cnp_ns : TIMER_NEVER;

	/* Without work to send no path needs a probe. */
	if (!vr->pair->down_count || qp->sq.una == qp->sq.next || vr->held)
		return at;
	for (uint32_t i = 0; i < vr->pair->path_count; i++) {
		const struct path *path = &vr->pair->path[i];

		if (path->down && path->probe_ns < at)
			at = path->probe_ns;
	}
	return at;
}

void control_expire(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	if (control_deadline(qp) <= now_ns)
		qp_activate(tp, qp);
}
