/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completions, and the states in which a QP only flushes. Every engine uses them.
 *
 * Invariants: a queue's WQEs complete in the order they were posted; a WQE completes once; after the
 * first completion in error everything that follows in its queue is flushed (IBTA 10.3.1).
 */
#include <assert.h>

#include "transport/qp.h"
#include "transport/request.h"

static const uint8_t wc_opcode_of[WR_OPCODE_COUNT] = {
	[WR_WRITE] = WC_WRITE,         [WR_WRITE_IMM] = WC_WRITE,     [WR_SEND] = WC_SEND,
	[WR_SEND_IMM] = WC_SEND,       [WR_READ] = WC_READ,           [WR_CMP_SWAP] = WC_CMP_SWAP,
	[WR_FETCH_ADD] = WC_FETCH_ADD, [WR_LOCAL_INV] = WC_LOCAL_INV, [WR_SEND_INV] = WC_SEND,
	[WR_BIND_MW] = WC_BIND_MW,     [WR_FLUSH] = WC_FLUSH,         [WR_ATOMIC_WRITE] = WC_ATOMIC_WRITE,
};

void qp_activate(struct transport *tp, struct qp *qp)
{
	if ((tp->paused_sls || qp->peer->full) && !qp->answering)
		list_remove(&qp->active); /* of the QPs that wait for the pause to end, or for room */
	if (list_empty(&qp->active)) {
		list_append(&tp->active[qp->flow.sl], &qp->active);
		tp->active_sls |= (uint16_t)(1u << qp->flow.sl);
	}
}

void qps_resume(struct transport *tp, struct list *waiting)
{
	while (!list_empty(waiting)) {
		struct qp *qp = container_of(waiting->next, struct qp, active);

		list_remove(&qp->active);
		qp_activate(tp, qp);
	}
}

void qp_deactivate(struct transport *tp, struct qp *qp)
{
	list_remove(&qp->active);
	if (list_empty(&tp->active[qp->flow.sl]))
		tp->active_sls &= (uint16_t) ~(1u << qp->flow.sl);
}

void qp_activate_to_answer(struct transport *tp, struct qp *qp)
{
	if (!acks_go_first(tp)) {
		qp_activate(tp, qp);
		return;
	}
	if (qp->answering)
		return;
	qp_deactivate(tp, qp);
	list_append(&tp->answering, &qp->active);
	qp->answering = true;
}

void ack_schedule(struct transport *tp, struct qp *qp, enum ack_wait wait, uint64_t now_ns)
{
	bool waits = !list_empty(&qp->held);

	if (wait == ACK_HELD && !tp->hold_acks)
		wait = ACK_NOW;
	if (wait == ACK_NOW) {
		list_remove(&qp->held);
		qp_activate_to_answer(tp, qp);
	} else if (!waits || wait < qp->ack_wait) {
		list_remove(&qp->held);
		qp->ack_since_ns = now_ns;
		qp->ack_wait = (uint8_t)wait;
		list_append(&tp->acks[wait].qps, &qp->held);
	}
}

void qp_raise(struct transport *tp, struct qp *qp, enum event_type type)
{
	event_raise(&tp->events, &qp->event, type);
}

void qp_take_back(struct transport *tp, struct qp *qp)
{
	if (!qp->lot)
		return;
	borrower_take_back(&qp->peer->borrower, qp->lot);
	qp->lot = 0;
}

/* A program that learns of an error may do what it likes with the memory of what failed. */
static void note_error(struct transport *tp, struct qp *qp, const struct cqe *cqe)
{
	struct nic_counters *n = &tp->counters;

	n->completion_errors++;
	(cqe->sq ? n->send_errors : n->recv_errors)[wc_error_index(cqe->status)]++;
	qp_take_back(tp, qp);
}

/* A lost completion puts the CQ in error and, with it, every QP that loses one (IBTA C11-39). */
static void push(struct transport *tp, struct qp *qp, struct cq *cq, const struct cqe *cqe, uint64_t now_ns)
{
	bool fire = false, first = !cq->overrun;

	tp->counters.completions++;
	if (cqe->status != WC_SUCCESS)
		note_error(tp, qp, cqe);
	if (cq->overrun || !cq_push(cq, cqe, &fire)) {
		tp->counters.cq_overruns++;
		if (first)
			event_raise(&tp->events, &cq->event, EVENT_CQ_ERR);
		if (qp_get_state(qp) != QPS_ERR) {
			qp_raise(tp, qp, EVENT_QP_FATAL);
			qp_to_error(tp, qp, now_ns);
		}
		return;
	}
	if (fire && list_empty(&cq->fired))
		list_append(&tp->fired_cqs, &cq->fired);
}

/* The oldest. */
static inline __attribute__((always_inline)) void complete_one(struct transport *tp, struct qp *qp,
							       enum wc_status status, uint64_t now_ns)
{
	struct sq *sq = &qp->sq;
	const struct send_wqe *w = sq_at(sq, sq->una);
	bool report = w->flags & WR_SIGNALED || status != WC_SUCCESS;
	struct cqe cqe;

	assert(sq->una != sq_head(sq));
	sq->una++;
	if (sq->next + 1 == sq->una)
		sq->next = sq->una;
	if (qp->gbn && qp->gbn->req.wqe + 1 == sq->una)
		qp->gbn->req.wqe = sq->una;
	if (!report)
		return;
	cqe = (struct cqe){
		.wr_id = w->wr_id,
		.qp_owner = qp->event.owner,
		.sq = sq,
		.sq_end = sq->una,
		.status = status,
		.opcode = wc_opcode_of[w->opcode],
		.byte_len = w->length,
		.qpn = qp->qpn,
		.src_qp = qp->dest_qpn,
		.timestamp_ns = now_ns,
	};
	push(tp, qp, qp->send_cq, &cqe, now_ns);
}

/* And what had no packet to wait for, behind what is complete then. */
static __attribute__((noinline)) void complete_with_locals(struct transport *tp, struct qp *qp, enum wc_status status,
							   uint64_t now_ns)
{
	complete_one(tp, qp, status, now_ns);
	while (status == WC_SUCCESS && qp->sq.una != qp->sq.next && qp_get_state(qp) != QPS_ERR &&
	       request_is_local(sq_at(&qp->sq, qp->sq.una)))
		complete_one(tp, qp, WC_SUCCESS, now_ns);
	qp->locals_wait = qp->sq.una != qp->sq.next;
}

void complete_send(struct transport *tp, struct qp *qp, enum wc_status status, uint64_t now_ns)
{
	if (qp->locals_wait)
		complete_with_locals(tp, qp, status, now_ns);
	else
		complete_one(tp, qp, status, now_ns);
}

void complete_recv(struct transport *tp, struct qp *qp, struct recv_wqe *w, struct cqe *cqe, uint64_t now_ns)
{
	cqe->wr_id = w->wr_id;
	cqe->qp_owner = qp->event.owner;
	cqe->qpn = qp->qpn;
	cqe->pkey_index = 0; /* it means something for QPN 1 alone */
	cqe->timestamp_ns = now_ns;
	rq_release(qp->rq, w);
	push(tp, qp, qp->recv_cq, cqe, now_ns);
}

struct recv_wqe *qp_take_recv(struct transport *tp, struct qp *qp)
{
	struct recv_wqe *w = rq_take(qp->rq);
	struct srq *srq = qp->srq;

	if (w && srq && srq->limit && rq_posted(&srq->rq) < srq->limit) {
		srq->limit = 0; /* armed once (IBTA 10.2.9.3) */
		event_raise(&tp->events, &srq->event, EVENT_SRQ_LIMIT_REACHED);
	}
	return w;
}

static void flush_recv(struct transport *tp, struct qp *qp, struct recv_wqe *w, uint64_t now_ns)
{
	struct cqe cqe = {.status = WC_WR_FLUSH_ERR, .opcode = WC_RECV};

	complete_recv(tp, qp, w, &cqe, now_ns);
}

static void flush_sends(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	while (qp->sq.una != sq_head(&qp->sq))
		complete_send(tp, qp, WC_WR_FLUSH_ERR, now_ns);
}

void qp_flush(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct recv_wqe *w;

	flush_sends(tp, qp, now_ns);
	if (qp_get_state(qp) != QPS_ERR || qp->srq)
		return;
	while ((w = rq_take(qp->rq)))
		flush_recv(tp, qp, w, now_ns);
}

void qp_halt(struct transport *tp, struct qp *qp)
{
	timer_cancel(&tp->timers, &qp->timer);
	list_remove(&qp->held);
	qp->failed = WC_SUCCESS;
	atomic_store_explicit(&qp->in_flight, false, memory_order_relaxed);
}

void qp_check_drained(struct transport *tp, struct qp *qp)
{
	if (qp_get_state(qp) != QPS_SQD || !qp->sq_draining || qp->sq.una != qp->sq.next)
		return;
	qp->sq_draining = false;
	if (qp->sqd_notify)
		qp_raise(tp, qp, EVENT_SQ_DRAINED);
}

void qp_to_error(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	if (qp_get_state(qp) == QPS_ERR)
		return;
	/* Before the flush: a poster that sees the old state posted early enough to be flushed below. */
	qp_move(qp, QPS_ERR);
	tp->qp_changes++;
	qp_halt(tp, qp);
	if (qp->ops->silence)
		qp->ops->silence(tp, qp, now_ns);
	qp_flush(tp, qp, now_ns);
	if (qp->srq && qp->type != QPT_XRC_RECV)
		qp_raise(tp, qp, EVENT_QP_LAST_WQE_REACHED);
}

void qp_to_sqe(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	qp_move(qp, QPS_SQE);
	tp->qp_changes++;
	qp_halt(tp, qp);
	flush_sends(tp, qp, now_ns);
}
