/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unreliable connection: RC's requests without answers. A message with a hole, or one that is longer
 * than its receive WQE, is dropped as a whole, silently, and its receive WQE serves the next one (IBTA
 * 9.8.2.2.5, 9.8.3, and 9.9.3, class D).
 */
#include "transport/archive.h"
#include "transport/message.h"
#include "wire/psn.h"

static void drop_message(struct transport *tp, struct qp *qp, enum rx_verdict why)
{
	if (why == RX_TOO_LONG)
		tp->counters.rx_too_long++;
	else
		tp->counters.rx_dropped++;
	tp->counters.rx_access_refused += why == RX_ACCESS;
	qp->gbn->rsp.message = 0;
}

static void uc_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	struct responder *rsp = &qp->gbn->rsp;
	enum rx_verdict v;

	if (rx->bth->psn != rsp->epsn) {
		tp->counters.rx_out_of_sequence++;
		rsp->message = 0;
	}
	/* The next packet is expected behind this one, even after a gap (IBTA 9.8.2.2.2). */
	rsp->epsn = psn_add(rx->bth->psn, 1);
	if (rx->info->flags & F_START)
		rsp->message = 0; /* the end of the message before it was lost */
	v = message_judge(tp, qp, rx);
	if (v == RX_EXECUTE)
		v = message_execute(tp, qp, rx);
	if (v == RX_EXECUTE)
		return;
	drop_message(tp, qp, v);
	if (v == RX_LOCAL_FAULT) {
		/* Our own fault, not the peer's: IBTA 9.9.3, class A. */
		message_fail(tp, qp, WC_LOC_PROT_ERR, rx->now_ns);
		qp_to_error(tp, qp, rx->now_ns);
	}
}

static bool uc_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	enum qp_state state = qp_get_state(qp);

	if (state == QPS_ERR || state == QPS_SQE) {
		qp_flush(tp, qp, now_ns);
		return false;
	}
	return qp->gbn && requester_output(tp, qp, now_ns);
}

static void uc_expire(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
}

const struct qp_ops uc_ops = {
	.service = SVC_UC,
	.connect = gbn_connect,
	.start = requester_start,
	.reset = gbn_reset,
	.seal = &seal_icrc,
	.input = uc_input,
	.output = uc_output,
	.expire = uc_expire,
	.silence = gbn_silence,
	.query = gbn_query,
	.archive = gbn_archive,
};
