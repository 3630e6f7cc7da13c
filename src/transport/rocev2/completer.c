/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC completer: what responses do to the send queue (IBTA 9.7.5, 9.7.6).
 *
 * Acknowledgement is cumulative. A response with PSN p acknowledges every request before p; if a
 * READ or atomic before p has no result yet, its response was lost and is requested again.
 */
#include <string.h>

#include "transport/rocev2/congestion.h"
#include "transport/qp.h"
#include "transport/request.h"
#include "wire/aeth.h"
#include "wire/atomicacketh.h"
#include "wire/psn.h"

static uint32_t offset(const struct requester *req, uint32_t psn)
{
	return (psn - req->una) & PSN_MASK;
}

/* The oldest WQE fails by a NAK, or for lack of an answer; the QP with it. */
static void fail_oldest(struct transport *tp, struct qp *qp, enum wc_status status, uint64_t now_ns)
{
	complete_send(tp, qp, status, now_ns);
	qp_to_error(tp, qp, now_ns);
}

/* Una moved, perhaps past the cursor. */
static void progress(struct transport *tp, struct qp *qp, uint32_t old_una, uint64_t now_ns)
{
	struct requester *req = &qp->gbn->req;
	uint32_t acked = (req->una - old_una) & PSN_MASK;

	if (qp_get_state(qp) == QPS_ERR)
		return; /* a CQ overran under the completion */
	if (((req->psn - old_una) & PSN_MASK) < acked) {
		req->psn = req->una;
		req->wqe = qp->sq.una;
	}
	while (req->rd_tail != req->rd_head &&
	       ((req->rd_end[req->rd_tail % req->rd_entries] - old_una) & PSN_MASK) < acked)
		req->rd_tail++;
	req->stalled_ns = 0;
	req->graced = false;
	req->retries = qp->retry_cnt; /* IBTA 9.7.6.1.3: any progress restores the counter */
	req->rnr_retries = qp->rnr_retry;
	req->lost_seen = false; /* una is no more at lost_psn, but will be again when the PSNs have come round */
	if (congestion_governing(qp))
		congestion_acked(tp, qp, acked, now_ns);
	else
		aimd_acked(&req->cc, acked * qp->mtu);
	atomic_store_explicit(&qp->in_flight, req->una != req->psn, memory_order_relaxed);
	requester_rearm(tp, qp, now_ns);
	if (qp->failed && qp->sq.una == qp->failed_wqe) {
		enum wc_status status = (enum wc_status)qp->failed;

		fail_oldest(tp, qp, status, now_ns);
		return;
	}
	qp_check_drained(tp, qp);
	if (req->wqe != sq_head(&qp->sq))
		qp_activate(tp, qp);
}

/* The peer acknowledged `count` PSNs from una on. False: stopped before a READ or atomic. */
static bool acknowledge(struct transport *tp, struct qp *qp, uint32_t count, uint64_t now_ns)
{
	struct requester *req = &qp->gbn->req;
	uint32_t old_una = req->una;
	bool whole = true;

	while (count) {
		const struct send_wqe *w = sq_at(&qp->sq, qp->sq.una);
		uint32_t left = offset(req, w->psn_last) + 1;

		if (request_has_response(w)) {
			whole = false;
			break;
		}
		if (left > count) {
			req->una = psn_add(req->una, count);
			break;
		}
		req->una = psn_add(req->una, left);
		count -= left;
		complete_send(tp, qp, WC_SUCCESS, now_ns);
		if (qp_get_state(qp) == QPS_ERR)
			return true; /* a CQ overran */
	}
	if (req->una != old_una)
		progress(tp, qp, old_una, now_ns);
	return whole;
}

/*
 * A packet was lost: goes back to una, unless no retries are left. Timeouts may have used them up while the peer's
 * process did not run; what it then says about packets that came late is no reason to give up, either. Nor is it where
 * the program allowed no retries: memory loses nothing but what this process takes back (mr_revoke()).
 */
static void retry(struct transport *tp, struct qp *qp, enum cc_loss loss, uint64_t now_ns)
{
	struct requester *req = &qp->gbn->req;

	if (req->rnr_wait)
		return; /* a late packet: the wait ends by going back to una anyway */
	if (!req->stalled_ns)
		req->stalled_ns = now_ns;
	if (req->retries) {
		req->retries--;
	} else if (!patience_keeps(tp, qp, req->stalled_ns, now_ns)) {
		fail_oldest(tp, qp, WC_RETRY_EXC_ERR, now_ns);
		return;
	}
	if (congestion_governing(qp))
		congestion_lost(qp, loss, now_ns);
	else
		aimd_lost(&req->cc);
	req->rto_ns = TIMER_NEVER;
	requester_wake_by(tp, qp);
	requester_go_back(qp);
	qp_activate(tp, qp);
}

/* Once for each una: all packets behind the loss report the same loss. */
static void responses_lost(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct requester *req = &qp->gbn->req;

	if (req->lost_seen && req->lost_psn == req->una)
		return;
	req->lost_seen = true;
	req->lost_psn = req->una;
	tp->counters.responses_missed++;
	retry(tp, qp, CC_LOSS_NAK, now_ns);
}

static void rnr(struct transport *tp, struct qp *qp, uint8_t code, uint64_t now_ns)
{
	struct requester *req = &qp->gbn->req;

	tp->counters.rnrs_received++;
	if (req->rnr_wait)
		return;
	if (!req->rnr_retries) {
		fail_oldest(tp, qp, WC_RNR_RETRY_EXC_ERR, now_ns);
		return;
	}
	if (qp->rnr_retry != 7)
		req->rnr_retries--;
	requester_go_back(qp);
	req->rnr_wait = true;
	req->rto_ns = now_ns + aeth_rnr_ns(code);
	requester_wake_by(tp, qp);
}

static void nak(struct transport *tp, struct qp *qp, uint8_t code, uint64_t now_ns)
{
	tp->counters.naks_received++;
	tp->counters.sequence_naks_received += code == NAK_PSN_SEQUENCE;
	switch (code) {
	case NAK_PSN_SEQUENCE: retry(tp, qp, CC_LOSS_NAK, now_ns); break;
	case NAK_INVALID_REQUEST: fail_oldest(tp, qp, WC_REM_INV_REQ_ERR, now_ns); break;
	case NAK_REMOTE_ACCESS: fail_oldest(tp, qp, WC_REM_ACCESS_ERR, now_ns); break;
	case NAK_REMOTE_OPERATIONAL: fail_oldest(tp, qp, WC_REM_OP_ERR, now_ns); break;
	default: /* reserved codes, and Invalid RD Request, which RC never gets */
		fail_oldest(tp, qp, WC_BAD_RESP_ERR, now_ns);
		break;
	}
}

/*
 * Whether a NAK is the last packet of a queue pair that goes to ERR (IBTA 9.9.3). A READ before it that has no answer
 * yet gets none any more. So it fails with what the peer says of its end, and not when its retries are used up (our
 * choice).
 */
static bool ends_peer(uint8_t syndrome)
{
	return aeth_kind(syndrome) == AETH_NAK && aeth_value(syndrome) != NAK_PSN_SEQUENCE;
}

static void acknowledge_input(struct transport *tp, struct qp *qp, uint32_t psn, uint8_t syndrome, uint64_t now_ns)
{
	uint32_t before = offset(&qp->gbn->req, psn);
	bool ack = aeth_kind(syndrome) == AETH_ACK;

	if (!acknowledge(tp, qp, ack ? before + 1 : before, now_ns) && !ends_peer(syndrome)) {
		responses_lost(tp, qp, now_ns);
		return;
	}
	if (ack) {
		tp->counters.acks_received++;
		return;
	}
	if (qp_get_state(qp) == QPS_ERR)
		return;
	if (aeth_kind(syndrome) == AETH_RNR_NAK)
		rnr(tp, qp, aeth_value(syndrome), now_ns);
	else if (aeth_kind(syndrome) == AETH_NAK)
		nak(tp, qp, aeth_value(syndrome), now_ns);
}

/* The result for PSN una of the oldest WQE; false: it does not fit the request. */
static bool place_response(struct transport *tp, struct qp *qp, const struct rx *rx, enum wc_status *status)
{
	struct send_wqe *w = sq_at(&qp->sq, qp->sq.una);
	uint32_t k = (qp->gbn->req.una - w->psn_first) & PSN_MASK;
	uint32_t done = k * qp->mtu;
	uint32_t expected = k + 1 == w->packets ? request_result_bytes(w) - done : qp->mtu;
	const uint8_t *payload = rx->payload;
	uint32_t payload_len = rx->payload_len;
	uint64_t orig;

	if (rx->info->flags & F_ATOMIC) {
		struct atomicacketh h;

		if (!request_is_atomic(w))
			return false;
		atomicacketh_decode(&h, rx_header(rx, H_ATOMICACKETH));
		orig = h.orig;
		payload = (const uint8_t *)&orig;
		payload_len = sizeof(orig);
		expected = sizeof(orig);
	} else if (!request_has_response(w) || request_is_atomic(w)) {
		return false;
	}
	if (payload_len != expected) {
		*status = WC_BAD_RESP_ERR;
		return true;
	}
	if (payload_len && !sge_scatter(&tp->mrs, qp->user.pd, send_wqe_sges(w), done, payload, payload_len))
		*status = WC_LOC_PROT_ERR;
	return true;
}

static void response_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	struct requester *req = &qp->gbn->req;
	enum wc_status status = WC_SUCCESS;
	uint32_t psn = rx->bth->psn, before = offset(req, psn), old_una;
	uint64_t now_ns = rx->now_ns;

	if (before && !acknowledge(tp, qp, before, now_ns)) {
		responses_lost(tp, qp, now_ns);
		return;
	}
	if (qp_get_state(qp) == QPS_ERR)
		return;
	if (!place_response(tp, qp, rx, &status)) {
		tp->counters.rx_dropped++;
		return;
	}
	if (status != WC_SUCCESS) {
		fail_oldest(tp, qp, status, now_ns);
		return;
	}
	old_una = req->una;
	req->una = psn_add(psn, 1);
	if (psn == sq_at(&qp->sq, qp->sq.una)->psn_last)
		complete_send(tp, qp, WC_SUCCESS, now_ns);
	progress(tp, qp, old_una, now_ns);
}

void completer_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	struct requester *req = &qp->gbn->req;
	struct aeth aeth;

	if (!qp_can_send(qp)) {
		tp->counters.rx_no_qp++;
		return;
	}
	if (offset(req, rx->bth->psn) >= offset(req, req->high)) {
		/* A duplicate, or a ghost: the answer to a request that was never sent (IBTA 9.7.5.1.4). */
		tp->counters.rx_duplicates++;
		return;
	}
	congestion_echo(qp, rx->bth->becn, rx->pkt->int_stack);
	if (rx->info->flags & F_ACK) {
		aeth_decode(&aeth, rx_header(rx, H_AETH));
		acknowledge_input(tp, qp, rx->bth->psn, aeth.syndrome, rx->now_ns);
	} else {
		if (rx_is_marked(rx->pkt))
			congestion_response_marked(tp, qp, rx->now_ns);
		response_input(tp, qp, rx);
	}
	congestion_echo(qp, false, NULL);
}

void completer_cnp(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct congestion *g = qp->gbn ? congestion_governing(qp) : NULL;

	tp->counters.cnps_received++;
	tp->counters.cnps_ignored += !g || !cc_heeds_cnps(&g->cc);
	if (!g)
		return; /* the window of such a QP does not react to congestion notification */
	cc_on_cnp(&g->cc, now_ns);
	requester_wake_by(tp, qp);
}

void completer_expire(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct requester *req = &qp->gbn->req;
	uint64_t late_ns;

	congestion_expire(tp, qp, now_ns);
	if (req->rto_ns > now_ns) {
		requester_wake_by(tp, qp);
		return;
	}
	late_ns = patience_late_ns(tp, req->rto_ns, now_ns);
	req->rto_ns = TIMER_NEVER;
	req->graced = late_ns && !req->graced && !req->rnr_wait && req->una != req->psn;
	if (req->graced) {
		uint64_t most_ns = requester_timer_ns(qp);

		req->rto_ns = now_ns + (late_ns < most_ns ? late_ns : most_ns);
	} else if (req->rnr_wait) {
		req->rnr_wait = false;
		qp_activate(tp, qp);
	} else if (req->una != req->psn) {
		tp->counters.timeouts++;
		req->lost_seen = false;
		if (!req->retries || req->retries == 1)
			patience_doubt(tp, qp);
		retry(tp, qp, CC_LOSS_RTO, now_ns);
		return;
	}
	requester_wake_by(tp, qp);
}
