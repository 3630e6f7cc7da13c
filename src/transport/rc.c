/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reliable connection over RoCEv2: joins requester, completer and responder, and the answer to a peer that asks for
 * veRoCE.
 */
#include "transport/rocev2/congestion.h"
#include "transport/qp.h"
#include "transport/turn.h"
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

/* ---- a turn ------------------------------------------------------------------------------------- */

struct turn {
	struct transport *tp;
	struct qp *qp;
	uint64_t now_ns;
	size_t before; /* packets laid out before this QP's requests */
	bool more;     /* requests are left */
};

static inline enum step caps(struct turn *t)
{
	return !t->qp->veroce || caps_answer(t->tp, t->qp, t->now_ns) ? STEP_DONE : STEP_MORE;
}

static inline enum step cnp(struct turn *t)
{
	return congestion_output(t->tp, t->qp, t->now_ns) ? STEP_DONE : STEP_MORE;
}

static inline enum step responses(struct turn *t)
{
	return responder_output(t->tp, t->qp, t->now_ns) ? STEP_MORE : STEP_DONE;
}

static inline enum step first_ack(struct turn *t)
{
	bool goes = acks_go_first(t->tp) && list_empty(&t->qp->held);

	return goes && responder_output_ack(t->tp, t->qp) ? STEP_MORE : STEP_DONE;
}

static inline enum step requests(struct turn *t)
{
	t->before = t->tp->tx.count;
	t->more = requester_output(t->tp, t->qp, t->now_ns);
	return STEP_DONE;
}

/*
 * An ACK is the shortest packet and comes last, so that it can end the train of the requests before
 * it. One that is held back for such a train stays held back if there was none.
 */
static inline enum step last_ack(struct turn *t)
{
	bool goes = list_empty(&t->qp->held) || t->tp->tx.count != t->before;

	if (goes && responder_output_ack(t->tp, t->qp))
		t->more = true;
	return t->more ? STEP_MORE : STEP_STOP;
}

static inline enum step take_steps(struct turn *t)
{
	enum step s = caps(t);

	if (s == STEP_DONE)
		s = cnp(t);
	if (s == STEP_DONE)
		s = responses(t);
	if (s == STEP_DONE)
		s = first_ack(t);
	if (s == STEP_DONE)
		s = requests(t);
	if (s == STEP_DONE)
		s = last_ack(t);
	return s;
}

static bool rc_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct turn t = {.tp = tp, .qp = qp, .now_ns = now_ns};
	bool more;

	if (qp_get_state(qp) == QPS_ERR) {
		qp_flush(tp, qp, now_ns);
		return false;
	}
	more = take_steps(&t) == STEP_MORE;
	if (more && acks_go_first(tp) && qp->gbn &&
	    ((qp->gbn->congestion && qp->gbn->congestion->cnp_due) || responder_has_answer(qp)))
		qp_activate_to_answer(tp, qp);
	return more;
}

/* ---- ops ----------------------------------------------------------------------------------------- */

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
	.seal = &seal_agreed,
	.output = rc_output,
	.expire = completer_expire,
	.silence = gbn_silence,
	.query = gbn_query,
	.congestion = congestion_look,
	.hold = responder_hold,
};
