/* SPDX-License-Identifier: BSD-2-Clause */
/* Joins a RoCEv2 QP and its algorithm: counts bytes, times packets, paces; sends CNPs. */
#include "transport/rocev2/congestion.h"

#include <string.h>

#include "transport/qp.h"
#include "wire/icrc.h"
#include "wire/psn.h"

enum {
	CNP_RESERVED_BYTES = 16, /* IBTA A17.9.3: after the BTH, all 0 */
	DSCP_CNP = 48            /* adapters send CNPs with it, for the traffic class of control */
};

struct congestion *congestion_of(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct congestion *g = qp->gbn->congestion;
	struct cc_config c = {
		.line_rate_bps = tp->config.cc.line_rate_bps,
		.base_rtt_ns = cc_link_base_rtt_ns(&tp->config.cc, qp->flow.dst),
		.mtu_bytes = qp->mtu,
		.cwnd_bytes_min = qp->mtu,
		.cwnd_bytes_max = tp->config.window_bytes,
		.target_ns = tp->config.cc.target_ns,
		.target_rtt_part = tp->config.cc.target_rtt_part,
		.params = tp->config.cc.params,
	};

	if (g)
		return g;
	g = pool_get(&tp->pool, sizeof(*g));
	if (!g)
		return NULL;
	memset(g, 0, sizeof(*g));
	cc_init(&g->cc, tp->config.cc.params ? tp->config.cc.params->algorithm : CC_NONE, &c, now_ns);
	qp->gbn->congestion = g;
	return g;
}

void congestion_free(struct transport *tp, struct qp *qp)
{
	if (!qp->gbn->congestion)
		return;
	pool_put(&tp->pool, qp->gbn->congestion, sizeof(*qp->gbn->congestion));
	qp->gbn->congestion = NULL;
}

/* ---- requester ---------------------------------------------------------------------------------- */

void congestion_start(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	/* Between processes of one host there is no network: delays come from the processor's scheduling. */
	if (!tp->config.cc.params || qp->type != QPT_RC || qp->peer->local || !congestion_of(tp, qp, now_ns))
		return;
	qp->gbn->congestion->governs = true;
	congestion_set_ect(tp, qp);
}

void congestion_set_ect(struct transport *tp, struct qp *qp)
{
	if (qp->gbn && flow_has_udp(&qp->flow) && congestion_governing(qp) && cc_params_heed(tp->config.cc.params))
		qp->flow.tos = (uint8_t)((qp->flow.tos & ~3u) | 2); /* RFC 3168 */
}

uint64_t congestion_window(const struct congestion *g)
{
	return g->cc.cwnd_bytes;
}

uint64_t congestion_due_ns(const struct congestion *g, uint64_t slack_ns)
{
	return pacer_due_ns(&g->pacer, g->cc.rate_bps, slack_ns);
}

void congestion_sent(struct transport *tp, struct qp *qp, uint32_t psn, uint32_t bytes, bool again, uint64_t now_ns)
{
	struct requester *req = &qp->gbn->req;
	struct congestion *g = qp->gbn->congestion;

	pacer_sent(&g->pacer, g->cc.rate_bps, bytes + tp->config.cc.wire_overhead_bytes, tp->config.cc.pace_slack_ns,
		   now_ns);
	if (again) {
		g->timed_ns = 0; /* its ACK could acknowledge either copy */
		return;
	}
	cc_on_sent(&g->cc, now_ns, g->acked_bytes + (uint64_t)((psn - req->una) & PSN_MASK) * qp->mtu, qp->mtu);
	if (!g->timed_ns) {
		g->timed_ns = now_ns;
		g->timed_psn = psn;
	}
}

void congestion_echo(struct qp *qp, bool ce, const struct int_stack *telemetry)
{
	struct congestion *g = qp->gbn->congestion;

	if (!g)
		return;
	g->heard_ce = ce;
	g->heard_int = telemetry;
}

/*
 * The responder has no window and no pace for its responses. The requester has, so a marked response counts
 * like a CNP or a marked ACK.
 */
void congestion_response_marked(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct congestion *g = congestion_governing(qp);

	if (!g)
		return;
	if (tp->config.rocev2.ce_echo) {
		g->heard_ce = true;
		return;
	}
	if (g->marked_ns && g->marked_ns + tp->config.rocev2.cnp_interval_ns > now_ns)
		return;
	g->marked_ns = now_ns;
	cc_on_cnp(&g->cc, now_ns);
	requester_wake_by(tp, qp);
}

void congestion_acked(const struct transport *tp, struct qp *qp, uint32_t packets, uint64_t now_ns)
{
	struct requester *req = &qp->gbn->req;
	struct congestion *g = qp->gbn->congestion;
	uint64_t rtt_ns = 0;

	g->acked_bytes += (uint64_t)packets * qp->mtu;
	if (g->timed_ns && psn_diff(req->una, g->timed_psn) > 0) {
		rtt_ns = now_ns - g->timed_ns;
		g->timed_ns = 0;
	}
	cc_on_ack(&g->cc, now_ns,
		  &(struct cc_ack){
			  .acked_bytes = (uint64_t)packets * qp->mtu,
			  .acked_packets = packets,
			  .ack_seq = g->acked_bytes,
			  .snd_nxt = g->acked_bytes + (uint64_t)((req->psn - req->una) & PSN_MASK) * qp->mtu,
			  .ecn_packets = g->heard_ce && !tp->config.rocev2.ce_is_cnp ? packets : 0,
			  .rtt_ns = rtt_ns,
			  .int_stack = g->heard_int,
		  });
	if (g->heard_ce && tp->config.rocev2.ce_is_cnp)
		cc_on_cnp(&g->cc, now_ns);
	g->heard_ce = false;
	g->heard_int = NULL;
	/* Each ACK serves as the answer to a probe. */
	if (g->cc.probe_wanted && rtt_ns) {
		cc_on_probe(&g->cc, now_ns);
		cc_on_rtt(&g->cc, now_ns, rtt_ns);
	}
}

void congestion_lost(struct qp *qp, enum cc_loss loss, uint64_t now_ns)
{
	qp->gbn->congestion->timed_ns = 0;
	cc_on_loss(&qp->gbn->congestion->cc, now_ns, loss);
}

/* ---- responder ------------------------------------------------------------------------------------ */

void congestion_arrival(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	const struct int_stack *telemetry = rx->pkt->int_stack;
	bool ce = rx_is_marked(rx->pkt);
	struct congestion *g = qp->gbn->congestion;

	if (!g && (ce || telemetry))
		g = congestion_of(tp, qp, rx->now_ns); /* without memory no mark is echoed */
	if (!g)
		return;
	if (telemetry) {
		g->int_stack = *telemetry;
		g->telemetry = true;
	}
	if (!ce)
		return;
	g->ce = true;
	if (tp->config.rocev2.ce_echo)
		return;
	if (g->cnp_ns && g->cnp_ns + tp->config.rocev2.cnp_interval_ns > rx->now_ns) {
		g->cnp_later = true;
		requester_wake_by(tp, qp);
		return;
	}
	g->cnp_due = true;
	qp_activate_to_answer(tp, qp);
}

static bool send_cnp(struct transport *tp, struct qp *qp, struct congestion *g, uint64_t now_ns)
{
	struct bth bth = {
		.opcode = OP_CNP,
		.becn = true,
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
	};
	const struct flow *kept;
	struct flow flow = qp->flow;
	uint8_t *p;

	flow.tos = DSCP_CNP << 2;
	kept = tx_keep_flow(&tp->tx, &flow);
	p = kept ? tx_room(&tp->tx, BTH_LEN + CNP_RESERVED_BYTES + tp->tx.seal->overhead) : NULL;
	if (!p)
		return false;
	bth_encode(p, &bth);
	memset(p + BTH_LEN, 0, CNP_RESERVED_BYTES);
	tx_commit(&tp->tx, kept, qp->dest_qpn, BTH_LEN + CNP_RESERVED_BYTES);
	g->cnp_due = false;
	g->cnp_ns = now_ns;
	tp->counters.cnps_sent++;
	return true;
}

bool congestion_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct congestion *g = qp->gbn->congestion;

	return !g || !g->cnp_due || send_cnp(tp, qp, g, now_ns);
}

/* ---- time ------------------------------------------------------------------------------------------- */

uint64_t congestion_deadline(const struct transport *tp, const struct qp *qp)
{
	const struct congestion *g = qp->gbn->congestion;
	const struct requester *req = &qp->gbn->req;
	uint64_t at = TIMER_NEVER, due;

	if (!g)
		return at;
	/* The timers of an idle flow are made up for when it sends again. */
	if (req->una != req->psn || g->paced)
		at = g->cc.deadline_ns;
	if (g->paced) {
		due = congestion_due_ns(g, tp->config.cc.pace_slack_ns);
		at = due < at ? due : at;
	}
	if (g->cnp_later) {
		due = g->cnp_ns + tp->config.rocev2.cnp_interval_ns;
		at = due < at ? due : at;
	}
	return at;
}

void congestion_expire(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct congestion *g = qp->gbn->congestion;

	if (!g)
		return;
	if (g->cc.deadline_ns <= now_ns)
		cc_on_timer(&g->cc, now_ns);
	if (g->paced && congestion_due_ns(g, tp->config.cc.pace_slack_ns) <= now_ns) {
		g->paced = false;
		qp_activate(tp, qp);
	}
	if (g->cnp_later && g->cnp_ns + tp->config.rocev2.cnp_interval_ns <= now_ns) {
		g->cnp_later = false;
		g->cnp_due = true;
		qp_activate_to_answer(tp, qp);
	}
}

/* ---- from outside ------------------------------------------------------------------------------------ */

const struct cc *congestion_look(const struct transport *tp, const struct qp *qp, uint32_t path, struct cc *scratch,
				 const struct cc_kind **kind)
{
	const struct congestion *g = qp->gbn ? congestion_governing(qp) : NULL;

	if (path || !qp->gbn)
		return NULL;
	*kind = g && tp->config.cc.params ? cc_params_kind(tp->config.cc.params) : &cc_none_kind;
	if (g)
		return &g->cc;
	*scratch = (struct cc){.rate_bps = CC_UNPACED, .cwnd_bytes = qp->gbn->req.cc.window_bytes};
	return scratch;
}
