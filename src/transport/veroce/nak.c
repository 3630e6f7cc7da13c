/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The effect of a NAK on a sender (veRoCE 5.2, 7.2, 8, 11): it waits and sends again, or a WQE and the connection
 * fail.
 */
#include "transport/veroce/nak.h"

#include "transport/request.h"
#include "transport/veroce/recovery.h"
#include "transport/veroce/work.h"
#include "wire/aeth.h"

enum { RNR_SHIFT_MAX = 10 };

static const uint64_t rnr_ns_max = 1000000; /* the longest wait that doubling leads to */

/* The index of the incomplete WQE that the PSN belongs to; -1: there is none. */
static int64_t wqe_of(const struct qp *qp, uint32_t psn)
{
	for (uint32_t i = qp->sq.una; i != qp->sq.next; i++) {
		const struct send_wqe *w = sq_at(&qp->sq, i);

		if (((psn - w->psn_first) & PSN_MASK) < w->packets)
			return i;
	}
	return -1;
}

void veroce_fail_qp(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	qp_raise(tp, qp, EVENT_QP_FATAL);
	qp_to_error(tp, qp, now_ns);
}

void veroce_fail_wqe(struct transport *tp, struct qp *qp, uint32_t psn, enum wc_status status, uint64_t now_ns)
{
	int64_t index = wqe_of(qp, psn);

	if (index < 0) {
		veroce_fail_qp(tp, qp, now_ns);
		return;
	}
	while (qp->sq.una != (uint32_t)index && qp_get_state(qp) != QPS_ERR) {
		const struct send_wqe *w = sq_at(&qp->sq, qp->sq.una);

		/* It gets no answer any more, so it is the first one that fails (IBTA 10.3.1). */
		if (request_has_response(w) && !w->done) {
			status = WC_RETRY_EXC_ERR;
			break;
		}
		complete_send(tp, qp, WC_SUCCESS, now_ns);
	}
	if (qp_get_state(qp) == QPS_ERR)
		return;
	complete_send(tp, qp, status, now_ns);
	qp_to_error(tp, qp, now_ns);
}

/*
 * At least as long as the RNR NAK demands (IBTA 9.7.5.2.8). That may be microseconds, while a program that gets no
 * processor posts nothing for milliseconds. So when the same packet is refused again, the wait doubles, within limits
 * (our choice).
 */
static uint64_t rnr_wait_ns(struct veroce_work *w, uint64_t asked_ns)
{
	uint64_t wait_ns = asked_ns << w->rnr_again;

	if (w->rnr_again < RNR_SHIFT_MAX)
		w->rnr_again++;
	if (wait_ns > rnr_ns_max)
		wait_ns = rnr_ns_max;
	return wait_ns > asked_ns ? wait_ns : asked_ns;
}

void nak_rnr(struct transport *tp, struct qp *qp, struct sender *s, uint32_t psn, uint8_t code, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	tp->counters.rnrs_received++;
	if (vr->w->rnr_until_ns || !tx_is_outstanding(&s->tx, psn))
		return;
	if (!vr->w->rnr_retries) {
		veroce_fail_wqe(tp, qp, psn, WC_RNR_RETRY_EXC_ERR, now_ns);
		return;
	}
	if (qp->rnr_retry != 7)
		vr->w->rnr_retries--;
	/* The receiver has the packet, but finishes its message only when it arrives again (7.2). */
	if (tx_record(&s->tx, psn)->state == TX_ACKED)
		recovery_lose(tp, qp, s, psn, now_ns);
	vr->w->rnr_until_ns = now_ns + rnr_wait_ns(vr->w, aeth_rnr_ns(code));
}

void nak_error(struct transport *tp, struct qp *qp, struct sender *s, uint32_t psn, uint8_t code, uint64_t now_ns)
{
	static const enum wc_status status[] = {
		[NAK_INVALID_REQUEST] = WC_REM_INV_REQ_ERR,
		[NAK_REMOTE_ACCESS] = WC_REM_ACCESS_ERR,
		[NAK_REMOTE_OPERATIONAL] = WC_REM_OP_ERR,
	};

	tp->counters.naks_received++;
	if (!veroce_is_q(qp, s)) {
		/* The peer cannot use our responses: the connection ends (veRoCE 11). */
		veroce_fail_qp(tp, qp, now_ns);
		return;
	}
	veroce_fail_wqe(tp, qp, psn,
			code < sizeof(status) / sizeof(status[0]) && status[code] ? status[code] : WC_BAD_RESP_ERR,
			now_ns);
}

/*
 * Whether a Packet Drop NAK reports the last copy of its packet, and not the copy before, whose loss a SACK reported
 * earlier. A time stamp identifies the copy. Without one, a NAK that arrives sooner than a round trip reports the
 * copy before. A trimmed packet waited in no queue, so its round trip may be half of the shortest one measured.
 */
static bool is_of_last_copy(const struct pair *pair, const struct veroce_packet *p, const struct tx_record *r,
			    uint64_t now_ns)
{
	uint64_t min_rtt_ns = pair->min_rtt_ns[r->path];

	if (p->bth.ts)
		return p->tse.tx1 == (uint32_t)r->tx_ns;
	return r->copies == 1 || min_rtt_ns == UINT64_MAX || now_ns - r->tx_ns >= min_rtt_ns / 2;
}

void nak_drop(struct transport *tp, struct qp *qp, struct sender *s, const struct veroce_packet *p, uint64_t now_ns)
{
	struct pair *pair = qp->veroce->pair;
	const struct tx_record *r;

	tp->counters.naks_received++;
	if (!tx_is_outstanding(&s->tx, p->bth.psn))
		return;
	r = tx_record(&s->tx, p->bth.psn);
	if (r->state != TX_FLYING || !is_of_last_copy(pair, p, r, now_ns))
		return;
	path_trimmed(pair, r->path, r->bytes, now_ns);
	recovery_lose(tp, qp, s, p->bth.psn, now_ns);
}
