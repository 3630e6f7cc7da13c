/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester and responder of in-order QPs: how they begin and end, and their rings of READs and atomics. */
#include <errno.h>
#include <string.h>

#include "transport/message.h"
#include "transport/rocev2/congestion.h"
#include "transport/qp.h"

/*
 * A ring with room for `least` entries: `old` itself, or a larger one in its place, in which every
 * free-running index still leads to the same entry. NULL: no memory, nothing was changed.
 */
static void *grow(const struct alloc *alloc, void *old, uint8_t *entries, uint32_t least, size_t entry_bytes)
{
	uint32_t have = *entries, want = have ? have : 1;
	uint8_t *ring;

	while (want < least)
		want *= 2;
	if (want == have)
		return old;
	ring = alloc_get(alloc, want * entry_bytes);
	if (!ring)
		return NULL;
	for (uint32_t i = 0; have && i < want; i++)
		memcpy(ring + i * entry_bytes, (uint8_t *)old + i % have * entry_bytes, entry_bytes);
	alloc_put(alloc, old, have * entry_bytes);
	*entries = (uint8_t)want;
	return ring;
}

int gbn_fit(struct transport *tp, struct qp *qp, uint32_t max_rd_atomic, uint32_t max_dest_rd_atomic)
{
	struct requester *req;
	struct responder *rsp;
	void *ring;

	if (!qp->gbn)
		return 0; /* gbn_connect() makes the rings */
	req = &qp->gbn->req;
	rsp = &qp->gbn->rsp;
	if (max_dest_rd_atomic) {
		ring = grow(&tp->alloc, rsp->res, &rsp->res_entries, max_dest_rd_atomic, sizeof(*rsp->res));
		if (!ring)
			return -ENOMEM;
		rsp->res = ring;
	}
	if (max_rd_atomic) {
		ring = grow(&tp->alloc, req->rd_end, &req->rd_entries, max_rd_atomic, sizeof(*req->rd_end));
		if (!ring)
			return -ENOMEM;
		req->rd_end = ring;
	}
	return 0;
}

static void destroy(struct transport *tp, struct qp *qp)
{
	struct gbn *g = qp->gbn;

	congestion_free(tp, qp);
	alloc_put(&tp->alloc, g->rsp.res, g->rsp.res_entries * sizeof(*g->rsp.res));
	alloc_put(&tp->alloc, g->req.rd_end, g->req.rd_entries * sizeof(*g->req.rd_end));
	alloc_put(&tp->alloc, g, sizeof(*g));
	qp->gbn = NULL;
}

int gbn_connect(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	int err;

	qp->gbn = alloc_get(&tp->alloc, sizeof(*qp->gbn));
	if (!qp->gbn)
		return -ENOMEM;
	qp->gbn->rsp.nak_psn = NAK_AT_EPSN;
	qp->gbn->rsp.epsn = qp->rq_psn;
	qp->gbn->req.wqe = qp->sq.next;
	qp->gbn->req.rto_ns = TIMER_NEVER;
	err = gbn_fit(tp, qp, qp->max_rd_atomic, qp->max_dest_rd_atomic);
	if (err)
		destroy(tp, qp);
	return err;
}

void gbn_reset(struct transport *tp, struct qp *qp)
{
	if (!qp->gbn)
		return;
	if (qp->gbn->rsp.rwqe)
		rq_release(qp->rq, qp->gbn->rsp.rwqe);
	destroy(tp, qp);
}

void gbn_silence(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct responder *rsp;

	if (!qp->gbn)
		return;
	rsp = &qp->gbn->rsp;
	qp->gbn->req.rnr_wait = false;
	rsp->ack_pending = false;
	rsp->nak_pending = false;
	rsp->res_emit = rsp->res_head;
	message_fail(tp, qp, WC_WR_FLUSH_ERR, now_ns);
}

void gbn_query(const struct qp *qp, struct qp_psns *psns)
{
	const struct gbn *g = qp->gbn;

	*psns = (struct qp_psns){
		.rq_psn = g ? g->rsp.epsn : qp->rq_psn,
		.sq_psn = g ? g->req.psn_new : qp->sq_psn,
		.una = g ? g->req.una : qp->sq_psn,
	};
}
