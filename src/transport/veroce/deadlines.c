/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a QP's one timer runs for: a row for each thing that falls due, with the time and what happens then. The timer
 * is set lazily, to the earliest of them or sooner: when it fires too early, it is set again.
 */
#include <assert.h>

#include "transport/veroce/acks.h"
#include "transport/veroce/caps.h"
#include "transport/veroce/control.h"
#include "transport/veroce/hold.h"
#include "transport/veroce/recovery.h"
#include "transport/veroce/requester.h"
#include "transport/veroce/roam.h"
#include "transport/veroce/timeouts.h"
#include "transport/veroce/veroce.h"

enum { WATCH_SHIFT_MAX = 6 };

static const uint64_t rest_after_ns = 10000000;

/* ---- what falls due -------------------------------------------------------------------------------- */

static uint64_t or_never(uint64_t ns)
{
	return ns ? ns : TIMER_NEVER;
}

static bool has_flying(const struct veroce_work *w)
{
	return tx_outstanding(&w->q.tx) || tx_outstanding(&w->r.tx);
}

static uint64_t hold_at(const struct transport *tp, const struct qp *qp)
{
	return hold_deadline(qp);
}

static uint64_t cc_at(const struct transport *tp, const struct qp *qp)
{
	return has_flying(qp->veroce->w) ? qp->veroce->pair->cc_due_ns : TIMER_NEVER;
}

static void cc_due(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	if (qp->veroce->pair->cc_due_ns <= now_ns)
		pair_expire(qp->veroce->pair, now_ns);
}

static uint64_t paced_at(const struct transport *tp, const struct qp *qp)
{
	return list_empty(&qp->veroce->w->waiting) ? TIMER_NEVER : qp->veroce->pair->paced_ns;
}

static void paced_due(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct pair *pair = qp->veroce->pair;

	if (pair->paced_ns > now_ns)
		return;
	pair->paced_ns = CC_NO_DEADLINE;
	recovery_wake(tp, pair);
}

static uint64_t share_at(const struct transport *tp, const struct qp *qp)
{
	const struct rxshare_pace *pace = &qp->veroce->w->pace;

	return pace->waits ? pace->next_ns : TIMER_NEVER;
}

static void share_due(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct rxshare_pace *pace = &qp->veroce->w->pace;

	if (!pace->waits || pace->next_ns > now_ns)
		return;
	pace->waits = false;
	qp_activate(tp, qp);
}

static uint64_t rnr_at(const struct transport *tp, const struct qp *qp)
{
	return or_never(qp->veroce->w->rnr_until_ns);
}

static void rnr_due(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	uint64_t until_ns = qp->veroce->w->rnr_until_ns;

	if (until_ns && until_ns <= now_ns)
		veroce_requester_end_rnr(tp, qp, now_ns);
}

static uint64_t q_at(const struct transport *tp, const struct qp *qp)
{
	return timeouts_deadline(tp, qp, &qp->veroce->w->q);
}

static void q_due(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	timeouts_expire(tp, qp, &qp->veroce->w->q, now_ns);
}

static uint64_t r_at(const struct transport *tp, const struct qp *qp)
{
	return timeouts_deadline(tp, qp, &qp->veroce->w->r);
}

static void r_due(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	timeouts_expire(tp, qp, &qp->veroce->w->r, now_ns);
}

static uint64_t q_reorder_at(const struct transport *tp, const struct qp *qp)
{
	return or_never(qp->veroce->w->q.reo_ns);
}

static uint64_t r_reorder_at(const struct transport *tp, const struct qp *qp)
{
	return or_never(qp->veroce->w->r.reo_ns);
}

static uint64_t watch_at(const struct transport *tp, const struct qp *qp)
{
	return or_never(qp->veroce->held ? 0 : qp->veroce->w->watch_ns);
}

/* When to ask again: ever later, but not later than the program would have it. */
static uint64_t watch_wait_ns(const struct qp *qp, uint8_t tries)
{
	uint64_t least = VEROCE_WATCH_RTOS * qp->veroce->pair->rto_ns, most = timeouts_program_ns(qp);
	uint64_t wait = least << (tries < WATCH_SHIFT_MAX ? tries : WATCH_SHIFT_MAX);

	if (!most || wait <= most)
		return wait;
	return most > least ? most : least;
}

/* Requests a READ again that was received but not answered (7.4). */
static void watch_due(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint8_t tries = vr->w->watch_tries;
	uint32_t index;
	struct send_wqe *w;

	if (vr->reads == vr->w->reads_done) {
		vr->w->watch_ns = 0;
		return;
	}
	if (!vr->w->watch_ns || vr->w->watch_ns > now_ns || vr->held)
		return;
	vr->w->watch_ns = now_ns + watch_wait_ns(qp, tries);
	index = *veroce_read(vr, psn_add(vr->w->reads_done, 1));
	w = sq_at(&qp->sq, index);
	if (psn_diff(w->psn_first, vr->w->q.tx.una) >= 0) {
		vr->w->watch_since_ns = now_ns;
		return; /* not received, or not sent yet: Q's recovery repairs that */
	}
	if (tries < UINT8_MAX)
		vr->w->watch_tries++;
	if (timeouts_is_hopeless(tp, qp, vr->w->watch_tries, vr->w->watch_since_ns, now_ns)) {
		request_fail_in_turn(tp, qp, index, WC_RETRY_EXC_ERR, now_ns);
		return;
	}
	veroce_requester_ask_again(tp, qp, index);
}

static uint64_t control_at(const struct transport *tp, const struct qp *qp)
{
	return control_deadline(qp);
}

static uint64_t q_hole_at(const struct transport *tp, const struct qp *qp)
{
	return or_never(qp->veroce->w->q_in.hole_ns);
}

static void q_hole_due(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	acks_expire(tp, qp, &qp->veroce->w->q_in, now_ns);
}

static uint64_t r_hole_at(const struct transport *tp, const struct qp *qp)
{
	return or_never(qp->veroce->w->r_in.hole_ns);
}

static void r_hole_due(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	acks_expire(tp, qp, &qp->veroce->w->r_in, now_ns);
}

/*
 * In the order in which they are handled. `soon` stands for `at` while the timer fires so soon anyway that nothing sent
 * now can be due before: then it need not be known when exactly that is.
 */
static const struct deadline {
	uint64_t (*at)(const struct transport *, const struct qp *); /* TIMER_NEVER: it does not fall due */
	uint64_t (*soon)(const struct transport *, const struct qp *);
	void (*due)(struct transport *, struct qp *, uint64_t now_ns); /* harmless before */
} deadlines[] = {
	{hold_at, hold_at, hold_expire},          /* the end of a hold, and probes before it */
	{cc_at, cc_at, cc_due},                   /* congestion control of a path */
	{paced_at, paced_at, paced_due},          /* a path's pace lets QPs send that wait for it */
	{share_at, share_at, share_due},          /* likewise a share of the receiver's port (13.2) */
	{rnr_at, rnr_at, rnr_due},                /* the end of an RNR wait */
	{q_at, q_reorder_at, q_due},              /* losses, tail probes and timeouts of requests */
	{r_at, r_reorder_at, r_due},              /* ... and of responses */
	{watch_at, watch_at, watch_due},          /* a READ that is not answered */
	{control_at, control_at, control_expire}, /* CNPs, and probes of paths that are down */
	{q_hole_at, q_hole_at, q_hole_due},       /* SACKs for old holes */
	{r_hole_at, r_hole_at, r_hole_due},
};

static const struct deadline *const deadlines_end = deadlines + sizeof(deadlines) / sizeof(*deadlines);

/* Until its peer has followed, only the question where it is falls due. */
static bool is_working(const struct veroce *vr)
{
	return veroce_is_spoken(vr) && vr->w && !vr->roams;
}

/* It may have given up veRoCE, or the connection. */
static bool is_over(const struct qp *qp)
{
	return qp->veroce->state == VEROCE_ROCEV2 || qp_get_state(qp) == QPS_ERR;
}

void veroce_expire(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	caps_expire(tp, qp, now_ns);
	if (vr->state == VEROCE_ROCEV2)
		return;
	if (vr->starved_ms)
		qp_activate(tp, qp);
	if (vr->roams)
		roam_expire(tp, qp, now_ns);
	if (is_working(vr)) {
		for (const struct deadline *d = deadlines; d < deadlines_end; d++) {
			d->due(tp, qp, now_ns);
			if (is_over(qp))
				return;
		}
		if (now_ns >= vr->w->rest_ns && now_ns >= vr->w->cnp_ns && veroce_is_quiet(qp))
			veroce_rest(tp, qp);
	}
	veroce_rearm(tp, qp, now_ns);
}

/* ---- the timer ------------------------------------------------------------------------------------- */

/* Whether the timer fires before anything sent or acknowledged now can be due. */
static bool fires_soon(const struct transport *tp, const struct qp *qp, uint64_t now_ns)
{
	return timer_is_set(&qp->timer) && qp->timer.deadline_ns <= now_ns + tp->config.veroce.pto_ns_min;
}

static uint64_t earliest(const struct transport *tp, const struct qp *qp, uint64_t now_ns)
{
	uint64_t earliest_ns = caps_deadline(qp);
	bool soon = fires_soon(tp, qp, now_ns);

	if (!is_working(qp->veroce))
		return earliest_ns < roam_deadline(qp->veroce) ? earliest_ns : roam_deadline(qp->veroce);
	for (const struct deadline *d = deadlines; d < deadlines_end; d++) {
		uint64_t at = (soon ? d->soon : d->at)(tp, qp);

		if (at < earliest_ns)
			earliest_ns = at;
	}
	return earliest_ns;
}

/* Whether ns is a time before until_ns; 0 means never. */
static bool due_before(uint64_t ns, uint64_t until_ns)
{
	return ns - 1 < until_ns - 1;
}

/*
 * Whether the timer can stay as it is, as after most packets: it is set, fires in time for the packets in flight, if
 * there are any, and no rare deadline is earlier. What the table says, without a walk through it.
 */
static bool timer_is_right(const struct transport *tp, const struct qp *qp, uint64_t now_ns)
{
	const struct veroce *vr = qp->veroce;
	const struct veroce_work *w = vr->w;
	uint64_t set_ns = qp->timer.deadline_ns;

	/* Mostly none of them is set: one branch instead of six. */
	if (!timer_is_set(&qp->timer) || !list_empty(&w->waiting) || vr->held ||
	    (vr->pair->down_count | w->pace.waits | w->q_in.ce | w->r_in.ce) ||
	    (vr->reads != w->reads_done && !w->watch_ns))
		return false;
	if (has_flying(w) && (set_ns > now_ns + tp->config.veroce.pto_ns_min || vr->pair->cc_due_ns < set_ns))
		return false;
	/* None of these is set either. */
	if (!(w->q.reo_ns | w->r.reo_ns | w->q_in.hole_ns | w->r_in.hole_ns | w->watch_ns | w->rnr_until_ns) &&
	    caps_are_settled(vr))
		return true;
	return !due_before(w->q.reo_ns, set_ns) && !due_before(w->r.reo_ns, set_ns) &&
	       !due_before(w->q_in.hole_ns, set_ns) && !due_before(w->r_in.hole_ns, set_ns) &&
	       !due_before(w->watch_ns, set_ns) && !due_before(w->rnr_until_ns, set_ns) && caps_deadline(qp) >= set_ns;
}

void veroce_set_timer(struct transport *tp, struct qp *qp, uint64_t at_ns, uint64_t now_ns)
{
	/* A deadline that has passed is handled by the next output. */
	if (at_ns <= now_ns)
		at_ns = now_ns + 1;
	/* The timer may fire early: it then finds the later deadline and is set again. */
	if (at_ns != TIMER_NEVER && (!timer_is_set(&qp->timer) || qp->timer.deadline_ns > at_ns))
		timer_set(&tp->timers, &qp->timer, at_ns);
}

void veroce_rearm(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint64_t at;

	if (is_working(vr) && timer_is_right(tp, qp, now_ns)) {
#ifdef VERBENA_DEBUG
		assert(earliest(tp, qp, now_ns) >= qp->timer.deadline_ns);
#endif
		return;
	}
	if (is_working(vr) && vr->reads != vr->w->reads_done && !vr->w->watch_ns) {
		vr->w->watch_ns = now_ns + VEROCE_WATCH_RTOS * vr->pair->rto_ns;
		vr->w->watch_since_ns = now_ns;
	}
	at = earliest(tp, qp, now_ns);
	/* A QP without deadlines rests after a while. */
	if (at == TIMER_NEVER && vr->w && !timer_is_set(&qp->timer) && veroce_is_quiet(qp)) {
		vr->w->rest_ns = now_ns + rest_after_ns;
		at = vr->w->rest_ns;
	}
	veroce_set_timer(tp, qp, at, now_ns);
}
