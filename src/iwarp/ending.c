/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a stream ends early: Terminate from either side, and the QP's way into ERR. The first error wins; there is one
 * Terminate a stream, and none in answer to one (RFC 5040 4.8, 5.2).
 */
#include <string.h>

#include "base/stream_event.h"
#include "iwarp/state.h"
#include "transport/request.h"

/* The peer broke a rule of access, or another one (IBTA 11.6.3.1, as RoCE's programs know it). */
static enum event_type event_of(enum term_cause cause)
{
	switch (cause >> 8) {
	case 0x01:
	case 0x11: return EVENT_QP_ACCESS_ERR;
	default: return EVENT_QP_FATAL;
	}
}

static uint32_t lay_terminate(uint8_t *p, enum term_cause cause, const struct rdmap_segment *s)
{
	struct terminate t = {.cause = cause};

	if (s && s->ulpdu_len >= ddp_len(s->ddp.tagged)) {
		t.segment_len = (uint16_t)s->ulpdu_len;
		t.ddp = s->ulpdu;
		if (s->header && s->ddp.opcode == RDMAP_READ_REQUEST)
			t.request = s->header;
	}
	return terminate_encode(p, &t);
}

void iwarp_fail(struct transport *tp, struct qp *qp, enum term_cause cause, const struct rdmap_segment *s,
		uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;
	struct recv_wqe *w = iw->rwqe;

	iw->deaf = true;
	if (!iw->last_len && !iw->fin_sent) {
		iw->last = pool_get(&tp->pool, TERM_MAX);
		/* Without memory the stream ends without a reason. */
		if (iw->last)
			iw->last_len = (uint8_t)lay_terminate(iw->last, cause, s);
	}
	if (qp_get_state(qp) == QPS_ERR) {
		qp_activate(tp, qp);
		return;
	}
	qp_raise(tp, qp, event_of(cause));
	/* The receive WQE to which the error can be related says so (IBTA 9.9.3, class C). */
	if (w && (cause == TERM_UNTAGGED_TOO_LONG || cause == TERM_DDP_CATASTROPHIC)) {
		struct cqe cqe = {.status = cause == TERM_UNTAGGED_TOO_LONG ? WC_LOC_LEN_ERR : WC_LOC_PROT_ERR,
				  .opcode = WC_RECV};

		iw->rwqe = NULL;
		complete_recv(tp, qp, w, &cqe, now_ns);
	}
	qp_to_error(tp, qp, now_ns);
}

/* The status of a READ that the peer refused. */
static enum wc_status status_of(enum term_cause cause)
{
	return cause >> 8 == 0x01                         ? WC_REM_ACCESS_ERR
	       : cause >> 8 == 0x02 || cause >> 8 == 0x12 ? WC_REM_INV_REQ_ERR
							  : WC_REM_OP_ERR;
}

/* The READ that a Terminate names, as its place among those outstanding; -1: none. */
static int named_read(const struct iwarp *iw, const struct terminate *t)
{
	struct ddp ddp;
	uint32_t place;

	if (!t->ddp || ddp_is_tagged(t->ddp))
		return -1;
	ddp_decode(&ddp, t->ddp);
	place = ddp.msn - (iw->read_msn - iw->reads_out);
	return ddp.qn == QN_READ && place < iw->reads_out ? (int)place : -1;
}

/* Completes in error the WQEs up to the n-th outstanding READ, which has that status; those before it are flushed. */
static void fail_read(struct transport *tp, struct qp *qp, int n, enum wc_status status, uint64_t now_ns)
{
	while (qp->sq.una != qp->iwarp->wqe && qp_get_state(qp) != QPS_ERR) {
		const struct send_wqe *w = sq_at(&qp->sq, qp->sq.una);
		bool named = request_has_response(w) && !w->done && n-- == 0;

		complete_send(tp, qp, named ? status : WC_WR_FLUSH_ERR, now_ns);
		if (named)
			return;
	}
}

void iwarp_terminated(struct transport *tp, struct qp *qp, const struct rdmap_segment *s, uint64_t now_ns)
{
	struct terminate t;
	int n;

	tp->counters.terminates_received++;
	qp->iwarp->deaf = true;
	if (terminate_decode(&t, s->payload, s->payload_len)) {
		n = named_read(qp->iwarp, &t);
		if (n >= 0)
			fail_read(tp, qp, n, status_of(t.cause), now_ns);
	}
	qp_to_error(tp, qp, now_ns);
}

void iwarp_silence(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;
	struct recv_wqe *w;

	if (!iw)
		return;
	w = iw->rwqe;
	iw->rwqe = NULL;
	if (w) {
		struct cqe cqe = {.status = WC_WR_FLUSH_ERR, .opcode = WC_RECV};

		complete_recv(tp, qp, w, &cqe, now_ns);
	}
	iwarp_drop_reads(tp, qp);
	iw->reads_out = 0;
	iw->sending = SENDING_NOTHING;
	iw->deaf = true;
	iw->fin_due = true;
	tp->streams_ended++;
	qp_activate(tp, qp);
}

static void send_terminate(struct transport *tp, struct qp *qp)
{
	struct iwarp *iw = qp->iwarp;
	struct ddp ddp = {.last = true,
			  .ddp_version = DDP_VERSION,
			  .rdmap_version = RDMAP_VERSION,
			  .opcode = RDMAP_TERMINATE,
			  .qn = QN_TERMINATE,
			  .msn = 1};

	ddp_encode(iwarp_ulpdu(tp), &ddp);
	memcpy(iwarp_ulpdu(tp) + DDP_UNTAGGED_LEN, iw->last, iw->last_len);
	iwarp_commit(tp, qp, DDP_UNTAGGED_LEN + (uint32_t)iw->last_len);
	tp->counters.terminates_sent++;
	pool_put(&tp->pool, iw->last, TERM_MAX);
	iw->last_len = 0;
}

/* A Terminate is short: it may exceed the room that is left, as nothing comes behind it. */
bool iwarp_end(struct transport *tp, struct qp *qp)
{
	static const struct stream_event fin = {.kind = STREAM_FIN};
	enum { BYTES = 256 };
	struct iwarp *iw = qp->iwarp;

	if (iw->fin_sent || !iw->fin_due)
		return false;
	if (tx_left(&tp->tx) < BYTES)
		return true;
	/* RFC 5044 7.1.2: a responder that has heard nothing sends no FPDU. */
	if (iw->last_len && (!iw->hears_first || iw->heard))
		send_terminate(tp, qp);
	if (!tx_left(&tp->tx))
		return true;
	tx_commit_event(&tp->tx, &qp->flow, &fin);
	iw->fin_sent = true;
	return false;
}
