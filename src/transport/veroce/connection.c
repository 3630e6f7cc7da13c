/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a connection: made when the QP learns its peer, started when it may send, given up for RoCEv2 or for
 * good.
 */
#include <errno.h>

#include "base/siphash.h"
#include "transport/veroce/veroce.h"

uint64_t transport_secret(struct transport *tp)
{
	return siphash_u64(tp->secret, tp->secret_serial++);
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

int veroce_connect(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = alloc_get(&tp->alloc, sizeof(*vr));
	enum pair_speaks speaks;

	if (!vr)
		return -ENOMEM;
	vr->pair = pair_get(&tp->pairs, qp->flow.src, qp->flow.dst, qp->local, qp->mtu, now_ns);
	if (!vr->pair)
		goto free_vr;
	qp->veroce = vr;
	vr->q_window = VEROCE_BASE_WINDOW;
	vr->r_window = VEROCE_BASE_WINDOW;
	connect_spaces(qp);
	speaks = pair_speaks(vr->pair, now_ns);
	if (tp->config.protocol == PROTOCOL_ROCEV2 ||
	    (speaks == PAIR_ROCEV2 && tp->config.protocol == PROTOCOL_AUTO)) {
		/* It answers who asks, and no more. */
		if (gbn_connect(tp, qp, now_ns))
			goto put_pair;
		qp->ops = &rc_ops;
		return 0;
	}
	if (speaks == PAIR_VEROCE || tp->config.protocol == PROTOCOL_VEROCE) {
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

void veroce_reset(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;

	if (!vr)
		return;
	if (vr->w)
		veroce_responder_drop(tp, qp);
	veroce_drop_work(tp, qp);
	pair_put(&tp->pairs, vr->pair);
	alloc_put(&tp->alloc, vr, sizeof(*vr));
	qp->veroce = NULL;
	qp->secret = 0;
}

/* sq_psn is known only now (IBTA 11.2.5.2). */
void veroce_start(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	vr->psn_new = qp->sq_psn;
	vr->quiet.r_epsn = qp->sq_psn;
	if (!vr->w)
		return;
	veroce_sender_init(tp, qp, &vr->w->q, qp->sq_psn, vr->q_window);
	veroce_receiver_init(tp, qp, &vr->w->r_in, qp->sq_psn, 0, vr->quiet.r_ext);
	vr->w->wqe = qp->sq.next;
	vr->w->rnr_retries = qp->rnr_retry;
}

void veroce_fall_back(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	veroce_drop_work(tp, qp);
	connect_spaces(qp);
	vr->decide_ns = 0;
	vr->caps_ask = false;
	qp->ops = &rc_ops;
	tp->counters.fallbacks++;
	timer_cancel(&tp->timers, &qp->timer);
	qp->sq.next = qp->sq.una;
	if (gbn_connect(tp, qp, now_ns)) {
		qp_raise(tp, qp, EVENT_QP_FATAL);
		qp_to_error(tp, qp, now_ns);
		return;
	}
	if (qp_get_state(qp) == QPS_RTS || qp_get_state(qp) == QPS_SQD)
		requester_start(tp, qp, now_ns);
	qp_activate(tp, qp);
}

void veroce_readdress(struct transport *tp, struct qp *qp)
{
	if (qp->veroce->w)
		qp->veroce->w->flow = veroce_flow_of(tp, qp, 0, false);
}

void veroce_silence(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	qp->veroce->decide_ns = 0;
	qp->veroce->caps_ask = false;
	if (!qp->veroce->w)
		return;
	veroce_responder_flush(tp, qp, now_ns);
	/* Who calls this may be in the middle of w: it stays until the QP is reset or destroyed. */
	veroce_forget(tp, qp);
}
