/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A turn of a veRoCE QP: what it lays out, in which order. take_steps() is the list.
 *
 * An acknowledgement goes where it costs least. It is shorter than data, so behind data it ends their train. Where
 * there are no trains it goes first, as the peer may wait for it. Data that find no room leave it some (TX_ANSWERS).
 */
#include "transport/turn.h"
#include "transport/veroce/acks.h"
#include "transport/veroce/caps.h"
#include "transport/veroce/control.h"
#include "transport/veroce/hold.h"
#include "transport/veroce/recovery.h"
#include "transport/veroce/requester.h"
#include "transport/veroce/responder.h"
#include "transport/veroce/responder_reads.h"
#include "transport/veroce/roam.h"
#include "transport/veroce/veroce.h"

/* Without memory to begin: how often a QP tries again, and after how long it fails (our choice). */
enum { STARVED_NS = 1000000, STARVED_MS = 2000 };

struct turn {
	struct transport *tp;
	struct qp *qp;
	struct veroce *vr;
	uint64_t now_ns;
	size_t before; /* packets laid out before this QP's data */
	bool more;     /* something waits for room or budget that did not end the turn */
};

static bool is_dead(const struct turn *t)
{
	return qp_get_state(t->qp) == QPS_ERR;
}

static __attribute__((cold)) void starve(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint32_t ms = (uint32_t)(now_ns / 1000000);

	if (!vr->starved_ms)
		vr->starved_ms = ms | 1;
	if ((int32_t)(ms - vr->starved_ms) >= STARVED_MS) {
		qp_raise(tp, qp, EVENT_QP_FATAL);
		qp_to_error(tp, qp, now_ns);
		return;
	}
	if (qp->timer.deadline_ns > now_ns + STARVED_NS)
		timer_set(&tp->timers, &qp->timer, now_ns + STARVED_NS);
}

/* ---- steps --------------------------------------------------------------------------------------- */

static inline enum step caps(struct turn *t)
{
	return caps_output(t->tp, t->qp, t->now_ns) ? STEP_DONE : STEP_MORE;
}

/*
 * An end that has asked its peer to wait sends nothing else: any packet may end that. Nor does one that its peer does not
 * know by its address.
 */
static inline enum step hold(struct turn *t)
{
	if (!hold_matters(t->vr))
		return STEP_DONE;
	if (!roam_output(t->tp, t->qp, t->now_ns))
		return STEP_MORE;
	if (t->vr->roams) {
		veroce_rearm(t->tp, t->qp, t->now_ns);
		return STEP_STOP;
	}
	if (!hold_output(t->tp, t->qp, t->now_ns))
		return STEP_MORE;
	if (!t->vr->holds)
		return STEP_DONE;
	veroce_rearm(t->tp, t->qp, t->now_ns);
	return STEP_STOP;
}

/* Takes working memory, if there is work. */
static inline enum step wake(struct turn *t)
{
	if (!t->vr->w && t->qp->sq.una == sq_head(&t->qp->sq))
		return STEP_STOP;
	if (!veroce_wake(t->tp, t->qp)) {
		starve(t->tp, t->qp, t->now_ns);
		return STEP_STOP;
	}
	t->vr->w->starved = false;
	if (t->vr->held)
		hold_watch(t->qp, t->now_ns);
	return STEP_DONE;
}

static inline enum step control(struct turn *t)
{
	return control_output(t->tp, t->qp, t->now_ns) ? STEP_DONE : STEP_MORE;
}

static inline bool acks_of_both(struct turn *t)
{
	return acks_output(t->tp, t->qp, &t->vr->w->q_in, t->now_ns) &&
	       acks_output(t->tp, t->qp, &t->vr->w->r_in, t->now_ns);
}

static inline enum step first_acks(struct turn *t)
{
	if (!acks_go_first(t->tp) || !list_empty(&t->qp->held))
		return STEP_DONE;
	return acks_of_both(t) && control_output_cnp(t->tp, t->qp, t->now_ns) ? STEP_DONE : STEP_MORE;
}

/* Whether a message that stalled for lack of a receive WQE has one now. */
static inline enum step retry(struct turn *t)
{
	t->before = t->tp->tx.count;
	veroce_responder_retry(t->tp, t->qp, t->now_ns);
	return is_dead(t) ? STEP_STOP : STEP_DONE;
}

/* Only answers are sent. */
static inline bool is_held_up(const struct turn *t)
{
	return t->vr->held || qp_is_paused(t->tp, t->qp);
}

static inline enum step reads(struct turn *t)
{
	t->more = !is_held_up(t) && responder_reads_output(t->tp, t->qp, t->now_ns);
	return STEP_DONE;
}

/*
 * Whether the next request is shorter than the acknowledgement that is due: the longer packet begins a train. Between
 * processes of one host an acknowledgement has no time stamps: it is short.
 */
static inline bool is_short_beside_ack(const struct turn *t)
{
	return t->vr->w->q_in.ack_due && t->vr->caps & CAPS_TS && !acks_go_first(t->tp) &&
	       veroce_requester_next_len(t->qp) < ACKS_STAMPED_LEN;
}

/* Behind responses, which the peer has asked for. */
static inline enum step requests(struct turn *t)
{
	if (!t->more && !t->vr->w->fatal && !is_held_up(t)) {
		if (is_short_beside_ack(t) && !acks_output(t->tp, t->qp, &t->vr->w->q_in, t->now_ns))
			return STEP_MORE;
		t->more = veroce_requester_output(t->tp, t->qp, t->now_ns);
	}
	return is_dead(t) ? STEP_STOP : STEP_DONE;
}

/* An ACK that is held back for a train stays held back, if this turn has laid out nothing that it could end. */
static inline enum step last_acks(struct turn *t)
{
	struct qp *qp = t->qp;

	if (!list_empty(&qp->held) && t->tp->tx.count == t->before && !acks_nak_ready(qp) && !t->vr->w->q_in.trims &&
	    !t->vr->w->r_in.trims)
		return STEP_DONE;
	if (acks_of_both(t))
		list_remove(&qp->held);
	else
		t->more = true;
	return STEP_DONE;
}

/* Memory was missing, or was not. */
static inline enum step starvation(struct turn *t)
{
	if (t->vr->w->starved)
		starve(t->tp, t->qp, t->now_ns);
	else
		t->vr->starved_ms = 0;
	if (is_dead(t))
		return t->more ? STEP_MORE : STEP_STOP;
	return STEP_DONE;
}

static inline enum step cnp(struct turn *t)
{
	if (!control_output_cnp(t->tp, t->qp, t->now_ns))
		t->more = true;
	return STEP_DONE;
}

static inline enum step timer(struct turn *t)
{
	veroce_rearm(t->tp, t->qp, t->now_ns);
	return t->more ? STEP_MORE : STEP_STOP;
}

/* ---- the list ------------------------------------------------------------------------------------- */

static inline enum step take_steps(struct turn *t)
{
	enum step s = caps(t);

	if (s == STEP_DONE)
		s = hold(t);
	if (s == STEP_DONE)
		s = wake(t);
	if (s == STEP_DONE)
		s = control(t);
	if (s == STEP_DONE)
		s = first_acks(t);
	if (s == STEP_DONE)
		s = retry(t);
	if (s == STEP_DONE)
		s = reads(t);
	if (s == STEP_DONE)
		s = requests(t);
	if (s == STEP_DONE)
		s = last_acks(t);
	if (s == STEP_DONE)
		s = starvation(t);
	if (s == STEP_DONE)
		s = cnp(t);
	if (s == STEP_DONE)
		s = timer(t);
	return s;
}

/* In ERR. */
static __attribute__((cold)) bool take_last_turn(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	/* The NAK_Rsp that ended the connection has not left yet (11). */
	if (vr->w && vr->w->r_in.nak_due && !acks_send(tp, qp, &vr->w->r_in, now_ns))
		return true;
	qp_flush(tp, qp, now_ns);
	return false;
}

static bool has_answer(const struct qp *qp)
{
	const struct veroce_work *w = qp->veroce->w;

	return w && (acks_nak_ready(qp) || w->q_in.trims || w->r_in.trims ||
		     ((w->q_in.ack_due || w->r_in.ack_due) && list_empty(&qp->held)));
}

bool veroce_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct turn t = {.tp = tp, .qp = qp, .vr = qp->veroce, .now_ns = now_ns};
	bool more;

	tp->tx.secret = t.vr->caps & CAPS_SEAL ? t.vr->peer_nonce : 0;
	if (qp_get_state(qp) == QPS_ERR)
		more = take_last_turn(tp, qp, now_ns);
	else
		more = take_steps(&t) == STEP_MORE;
	tp->tx.secret = 0;
	if (more && acks_go_first(tp) && qp->veroce && has_answer(qp))
		qp_activate_to_answer(tp, qp);
	if (qp->veroce)
		recovery_end_turn(tp, qp, more);
	return more;
}

bool veroce_asking_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	if (qp_get_state(qp) == QPS_ERR) {
		qp_flush(tp, qp, now_ns);
		return false;
	}
	if (!caps_output(tp, qp, now_ns))
		return true;
	if (qp_can_send(qp) && qp->sq.una != sq_head(&qp->sq))
		caps_hurry(qp, now_ns);
	veroce_rearm(tp, qp, now_ns);
	return false;
}
