/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester and responder of in-order QPs, and the congestion control of one, as bytes (transport/archive.h). */
#include "transport/archive.h"

#include <errno.h>

#include "transport/message.h"
#include "transport/request.h"
#include "transport/rocev2/congestion.h"

/* A ring's length, which is a power of two or 0. */
static uint8_t ring_archive(struct archive *a, uint8_t entries)
{
	ARCHIVE_CALL(entries)(a, &entries, sizeof(entries));
	return archive_judge(a, !(entries & (entries - 1))) ? entries : 0;
}

/* PSNs and the cursor are in their order. A datagram needs no place in a message. */
static bool requester_is_possible(const struct qp *qp, const struct requester *req)
{
	uint32_t sent = (req->psn - req->una) & PSN_MASK, high = (req->high - req->una) & PSN_MASK;
	uint32_t started = (req->psn_new - req->una) & PSN_MASK;

	if ((req->una | req->psn | req->high | req->psn_new) > PSN_MASK ||
	    (uint8_t)(req->rd_head - req->rd_tail) > req->rd_entries)
		return false;
	if (qp->ops->datagram || qp_get_state(qp) == QPS_ERR)
		return true;
	/* The oldest PSN that is not acknowledged lies in the oldest WQE. */
	return sent <= high && high <= started && qp_has_begun(qp, req->psn_new, qp->mtu, false) &&
	       qp_is_cursor(qp, qp->sq.una, req->una, req->psn_new) &&
	       qp_is_cursor(qp, req->wqe, req->psn, req->psn_new);
}

static void requester_archive(struct archive *a, const struct qp *qp, struct requester *req)
{
	ARCHIVE(a, req, una, psn, high, psn_new, asked, wqe, lost_psn, rd_head, rd_tail, retries, rnr_retries,
		lost_seen, rnr_wait, graced);
	ARCHIVE_TIMES(a, req, rto_ns, stalled_ns);
	ARCHIVE(a, &req->cc, window_bytes, window_bytes_max, window_bytes_min, acked_bytes, doubling);
	for (uint32_t i = 0; i < req->rd_entries; i++)
		archive_bytes(a, &req->rd_end[i], sizeof(req->rd_end[i]));
	archive_judge(a, requester_is_possible(qp, req));
	for (uint8_t i = req->rd_tail; a->loads && !a->err && qp_get_state(qp) != QPS_ERR && i != req->rd_head; i++)
		archive_judge(a, ((req->rd_end[i % req->rd_entries] - req->una) & PSN_MASK) <
					 ((req->high - req->una) & PSN_MASK));
}

void rd_resource_archive(struct archive *a, struct rd_resource *r)
{
	ARCHIVE(a, r, va, orig, rkey, len, psn_first, psn_last, psn_next, psn_end, psn_start, msn, kind, again, srqn);
}

bool rd_resource_is_possible(const struct rd_resource *r, uint32_t mtu)
{
	uint32_t packets = r->kind == F_ATOMIC ? 1 : request_packets(r->len, mtu);
	uint32_t next = (r->psn_next - r->psn_first) & PSN_MASK, end = (r->psn_end - r->psn_first) & PSN_MASK;

	return (r->kind == F_READ || r->kind == F_ATOMIC || r->kind == F_MPE) && r->len <= NIC_READ_BYTES_MAX &&
	       ((r->psn_last - r->psn_first) & PSN_MASK) == packets - 1 && end < packets && next <= end + 1 &&
	       ((r->psn_start - r->psn_first) & PSN_MASK) <= end;
}

static void responder_archive(struct archive *a, struct qp *qp, struct responder *rsp)
{
	ARCHIVE(a, rsp, epsn, msn, message, unacked, refuses, refusal_due, nak_sent, ack_pending, nak_pending,
		nak_syndrome, nak_psn, fatal, res_head, res_emit, res_count, write_rkey, write_va, write_len, received);
	rsp->rwqe = rq_archive_held(a, qp->rq, rsp->rwqe);
	for (uint32_t i = 0; i < rsp->res_entries; i++)
		rd_resource_archive(a, &rsp->res[i]);
	archive_judge(a, rsp->epsn <= PSN_MASK && rsp->fatal < RX_VERDICTS && rsp->res_count <= rsp->res_entries &&
				 (uint8_t)(rsp->res_head - rsp->res_emit) <= rsp->res_entries);
	archive_judge(a, !rsp->message || rsp->message == F_WRITE ||
				 (rsp->message == F_SEND && (rsp->rwqe || qp_get_state(qp) == QPS_ERR)));
	for (uint8_t i = 1; a->loads && !a->err && i <= rsp->res_count; i++)
		archive_judge(a, rd_resource_is_possible(&rsp->res[(uint8_t)(rsp->res_head - i) % rsp->res_entries],
							 qp->mtu));
}

static void congestion_archive(struct archive *a, const struct transport *tp, struct congestion *g)
{
	const struct cc_params *params = tp->config.cc.params;

	cc_archive(a, &g->cc, params ? params->algorithm : CC_NONE, params);
	ARCHIVE_TIMES(a, &g->pacer, last_ns);
	ARCHIVE(a, &g->pacer, last_frac, last_bytes, spent);
	ARCHIVE(a, g, acked_bytes, timed_psn, heard_ce, governs, paced, ce, telemetry, cnp_due, cnp_later);
	ARCHIVE_TIMES(a, g, timed_ns, marked_ns, cnp_ns);
	ARCHIVE_ARRAYS(a, &g->int_stack, hop);
	ARCHIVE(a, &g->int_stack, path_id, hops);
	archive_judge(a, g->int_stack.hops <= INT_HOPS_MAX);
	g->heard_int = NULL;
}

static bool make(struct archive *a, struct transport *tp, struct qp *qp, bool has_congestion)
{
	qp->gbn = alloc_get(&tp->alloc, sizeof(*qp->gbn));
	if (qp->gbn && (!has_congestion || congestion_of(tp, qp, a->now_ns)))
		return true;
	archive_fail(a, -ENOMEM);
	return false;
}

void gbn_archive(struct archive *a, struct transport *tp, struct qp *qp)
{
	bool has_gbn = qp->gbn, has_congestion = has_gbn && qp->gbn->congestion;
	uint8_t rd_entries = ring_archive(a, has_gbn ? qp->gbn->req.rd_entries : 0);
	uint8_t res_entries = ring_archive(a, has_gbn ? qp->gbn->rsp.res_entries : 0);

	archive_flag(a, &has_gbn, sizeof(has_gbn));
	archive_flag(a, &has_congestion, sizeof(has_congestion));
	if (!has_gbn || a->err)
		return;
	if (a->loads && !make(a, tp, qp, has_congestion))
		return;
	if (a->loads && gbn_fit(tp, qp, rd_entries, res_entries)) {
		archive_fail(a, -ENOMEM);
		return;
	}
	requester_archive(a, qp, &qp->gbn->req);
	responder_archive(a, qp, &qp->gbn->rsp);
	if (has_congestion)
		congestion_archive(a, tp, qp->gbn->congestion);
	/* Whatever it was, a QP that is let go has this. */
	if (a->err)
		qp->gbn->rsp.res_emit = qp->gbn->rsp.res_head;
}
