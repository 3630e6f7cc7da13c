/* SPDX-License-Identifier: BSD-2-Clause */
/* Reliable connection over RoCEv2: joins requester, completer and responder. */
#include "transport/rocev2/congestion.h"
#include "transport/qp.h"
#include "transport/veroce/engine.h"

/* This QP has chosen RoCEv2: it answers CAPS requests with profile 0, and drops all other veRoCE packets. */
static void veroce_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	if (qp->veroce && rx->bth->opcode == OP_CAPS_REQUEST)
		caps_input(tp, qp, rx->veroce, rx->ip_id, rx->now_ns);
	else
		tp->counters.rx_wrong_source++;
}

static void rc_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	uint32_t flags = rx->info->flags;

	if (rx->veroce) {
		veroce_input(tp, qp, rx);
	} else if (flags & F_REQUEST) {
		qp_note_established(tp, qp);
		responder_input(tp, qp, rx);
	} else if (flags & F_RESPONSE) {
		completer_input(tp, qp, rx);
	} else {
		completer_cnp(tp, qp, rx->now_ns);
	}
}

static bool take_turn(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	size_t before;
	bool more;

	if (qp_get_state(qp) == QPS_ERR) {
		qp_flush(tp, qp, now_ns);
		return false;
	}
	if (qp->veroce && !caps_answer(tp, qp, now_ns))
		return true;
	if (!congestion_output(tp, qp, now_ns) || responder_output(tp, qp, now_ns) ||
	    (acks_go_first(tp) && list_empty(&qp->held) && responder_output_ack(tp, qp)))
		return true;
	before = tp->tx.count;
	more = requester_output(tp, qp, now_ns);
	/*
	 * An ACK is the shortest packet and comes last, so that it can end the train of the requests before
	 * it. One that waits for such a train goes on waiting if there was none.
	 */
	if (!list_empty(&qp->held) && tp->tx.count == before)
		return more;
	return responder_output_ack(tp, qp) || more;
}

static bool rc_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	bool more = take_turn(tp, qp, now_ns);

	if (more && acks_go_first(tp) && qp->gbn &&
	    ((qp->gbn->congestion && qp->gbn->congestion->cnp_due) || responder_has_answer(qp)))
		qp_activate_to_answer(tp, qp);
	return more;
}

/* The peer may have been asked whether it speaks veRoCE. */
static void rc_reset(struct transport *tp, struct qp *qp)
{
	veroce_reset(tp, qp);
	gbn_reset(tp, qp);
}

const struct qp_ops rc_ops = {
	.service = SVC_RC,
	.reliable = true,
	.connect = gbn_connect,
	.start = requester_start,
	.readdress = congestion_set_ect,
	.fit = gbn_fit,
	.reset = rc_reset,
	.input = rc_input,
	.opens = veroce_opens,
	.secret = veroce_secret,
	.output = rc_output,
	.expire = completer_expire,
	.silence = gbn_silence,
	.query = gbn_query,
	.congestion = congestion_look,
};
