/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine of XRC: RC's over RoCEv2, with its sender and its receiver in two QPs. The table of SRQs.
 *
 * Invariant: an XRC_RECV QP has `srq`, `rq`, `recv_cq` and the PD of one SRQ of its domain, or none of them. It changes
 * from one to another between messages alone, so a receive WQE that it holds is of the SRQ that it has.
 */
#include "transport/archive.h"
#include "transport/xrc.h"

#include "wire/xrceth.h"

/* ---- SRQs by number -------------------------------------------------------------------------------- */

static struct srq **bucket(struct transport *tp, uint32_t number)
{
	return &tp->xrc_srqs[number % XRC_SRQ_BUCKETS];
}

void xrc_srq_add(struct transport *tp, struct srq *srq)
{
	struct srq **b = bucket(tp, srq->number);

	srq->same_bucket = *b;
	*b = srq;
}

void xrc_srq_remove(struct transport *tp, struct srq *srq)
{
	struct srq **at = bucket(tp, srq->number);

	while (*at != srq)
		at = &(*at)->same_bucket;
	*at = srq->same_bucket;
}

struct srq *xrc_srq_find(const struct transport *tp, uint32_t number)
{
	struct srq *srq = tp->xrc_srqs[number % XRC_SRQ_BUCKETS];

	while (srq && srq->number != number)
		srq = srq->same_bucket;
	return srq;
}

/* ---- an SRQ for the time of a message ---------------------------------------------------------------- */

void xrc_assign(struct transport *tp, struct qp *qp, struct srq *srq)
{
	qp->srq = srq;
	qp->rq = srq ? &srq->rq : &tp->no_rq;
	qp->recv_cq = srq ? srq->cq : NULL;
	qp->user.pd = srq ? srq->pd : NULL;
}

bool xrc_take_on(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	struct xrceth h;
	struct srq *srq;

	xrceth_decode(&h, rx_header(rx, H_XRCETH));
	if (qp->srq && qp->srq->number == h.srqn)
		return true;
	if (qp->gbn->rsp.message)
		return false;
	srq = xrc_srq_find(tp, h.srqn);
	if (!srq || srq->xrcd != qp->xrcd)
		return false;
	xrc_assign(tp, qp, srq);
	return true;
}

const struct mr_user *xrc_user(const struct transport *tp, uint32_t srqn, struct mr_user *scratch)
{
	const struct srq *srq = xrc_srq_find(tp, srqn);

	if (!srq)
		return NULL;
	*scratch = (struct mr_user){.pd = srq->pd};
	return scratch;
}

void xrc_let_go(struct transport *tp, struct qp *qp, const struct srq *srq)
{
	if (qp->type != QPT_XRC_RECV || qp->srq != srq)
		return;
	if (qp->gbn)
		qp->gbn->rsp.rwqe = NULL;
	xrc_assign(tp, qp, NULL);
}

/* ---- the engine ------------------------------------------------------------------------------------- */

static void xrc_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	bool request = rx->info->flags & F_REQUEST;

	if (request != (qp->type == QPT_XRC_RECV))
		tp->counters.rx_wrong_source++;
	else
		rc_ops.input(tp, qp, rx);
}

static bool xrc_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	if (qp->gbn)
		return rc_ops.output(tp, qp, now_ns);
	if (qp_get_state(qp) == QPS_ERR)
		qp_flush(tp, qp, now_ns);
	return false;
}

static void xrc_reset(struct transport *tp, struct qp *qp)
{
	gbn_reset(tp, qp);
	if (qp->type == QPT_XRC_RECV)
		xrc_assign(tp, qp, NULL);
}

#define XRC_OPS                                                                                                       \
	.service = SVC_XRC, .reliable = true, .connect = gbn_connect, .start = requester_start, .fit = gbn_fit,       \
	.reset = xrc_reset, .seal = &seal_icrc, .input = xrc_input, .output = xrc_output, .expire = completer_expire, \
	.silence = gbn_silence, .query = gbn_query, .archive = gbn_archive

const struct qp_ops xrc_send_ops = {XRC_OPS, .sends_only = true};
const struct qp_ops xrc_recv_ops = {XRC_OPS, .borrows = true};
