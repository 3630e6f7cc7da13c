/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two halves of a hold. Times that a QP without working memory must keep are in milliseconds: 128 K of them may be
 * held, and none of them needs a timer, as nothing of theirs is under way.
 */
#include "transport/veroce/hold.h"

#include "transport/veroce/control.h"
#include "transport/veroce/recovery.h"
#include "transport/veroce/timeouts.h"
#include "transport/veroce/veroce.h"

enum { COPIES = 3, MS_NS = 1000000 };

/* ---- the end that asks ------------------------------------------------------------------------------- */

bool hold_is_agreed(const struct qp *qp)
{
	return qp->veroce->caps & CAPS_HOLD && veroce_is_answered(qp->veroce);
}

bool hold_ask(struct transport *tp, struct qp *qp, uint32_t expected_ms)
{
	struct veroce *vr = qp->veroce;

	if (!hold_is_agreed(qp) || (!tp->hold_ms && !vr->holds))
		return false;
	vr->holds = tp->hold_ms != 0;
	vr->hold_awaits = true;
	vr->hold_left = COPIES;
	qp_activate(tp, qp);
	return true;
}

/* ---- packets --------------------------------------------------------------------------------------------- */

static bool send(struct transport *tp, struct qp *qp, uint8_t opcode, uint16_t ms, uint16_t number, uint32_t path)
{
	struct veroce *vr = qp->veroce;
	struct veroce_packet p = {
		.bth = {.opcode = opcode, .migreq = true, .pkey = qp->pkey, .dqpn = qp->dest_qpn},
		.hold = {.ms = ms, .number = number, .source_qpn = qp->qpn, .nonce = vr->peer_nonce},
	};
	const struct flow *flow = veroce_flow(tp, qp, path % vr->pair->path_count, false);
	uint8_t *out = flow ? tx_room(&tp->tx, TX_HEADROOM_MAX) : NULL;

	if (!out)
		return false;
	tx_commit(&tp->tx, flow, qp->dest_qpn, veroce_encode_headers(out, &p));
	return true;
}

static uint32_t ms_of(uint64_t ns)
{
	return (uint32_t)(ns / MS_NS);
}

static uint32_t elapsed_ms(const struct veroce *vr, uint64_t now_ns)
{
	return ms_of(now_ns) - vr->held_ms;
}

/* Any path may be the one that is left, so each probe tries the next one. */
static bool send_probe(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	uint32_t path = elapsed_ms(qp->veroce, now_ns) / HOLD_PROBE_MS % qp->veroce->pair->path_count;

	if (!control_send_rtt(tp, qp, OP_RTT_REQUEST, path,
			      &(struct rtteth){.context = CONTROL_CONTEXT_HOLD | path, .tx1 = (uint32_t)now_ns}))
		return false;
	qp->veroce->w->hold_probe = false;
	tp->counters.path_probes++;
	return true;
}

static bool is_over(const struct veroce *vr, uint64_t now_ns)
{
	return elapsed_ms(vr, now_ns) >= vr->held_for_ms;
}

bool hold_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (vr->held && is_over(vr, now_ns))
		hold_end(tp, qp, now_ns);
	if (vr->hold_reply && !send(tp, qp, OP_HELD, vr->held_for_ms, vr->held_number, 0))
		return false;
	vr->hold_reply = false;
	/* On a path each, as one loss may hit all that leave together. */
	for (; vr->hold_left; vr->hold_left--)
		if (!send(tp, qp, OP_HOLD, tp->hold_ms, tp->hold_number, vr->hold_left))
			return false;
	return !vr->held || !vr->w || !vr->w->hold_probe || send_probe(tp, qp, now_ns);
}

/* ---- the end that waits ------------------------------------------------------------------------------ */

static void begin(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	tp->counters.holds_received++;
	vr->held = true;
	vr->held_ms = ms_of(now_ns);
	if (!vr->w)
		return;
	vr->w->hold_ns = 0;
	hold_watch(qp, now_ns);
	/* Others may have the room that it waits for, and what its packets in flight take. */
	list_remove(&vr->w->waiting);
	vr->w->woken = false;
	recovery_idle(tp, qp, true);
	recovery_wake(tp, vr->pair);
}

void hold_end(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	vr->held = false;
	if (!vr->w)
		return;
	vr->w->hold_ns = 0;
	vr->w->hold_probe = false;
	recovery_idle(tp, qp, vr->w->rnr_until_ns != 0);
	timeouts_restart(tp, qp, now_ns);
	qp_activate(tp, qp);
}

static void answered(struct transport *tp, struct veroce *vr, const struct holdeth *h)
{
	if (!vr->hold_awaits || h->number != tp->hold_number)
		return;
	vr->hold_awaits = false;
	vr->hold_left = 0;
	if (tp->hold_awaited)
		tp->hold_awaited--;
}

void hold_input(struct transport *tp, struct qp *qp, const struct veroce_packet *p, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	const struct holdeth *h = &p->hold;
	int16_t ahead = vr->held_number ? (int16_t)(h->number - vr->held_number) : 1;

	if (!(vr->caps & CAPS_HOLD) || h->nonce != vr->nonce || h->source_qpn != qp->dest_qpn || !h->number ||
	    h->ms > HOLD_MS_MAX) {
		tp->counters.rx_dropped++;
		return;
	}
	if (p->bth.opcode == OP_HELD) {
		answered(tp, vr, h);
		return;
	}
	if (ahead < 0) {
		tp->counters.rx_dropped++; /* an older one is late */
		return;
	}
	vr->hold_reply = true;
	qp_activate(tp, qp);
	if (!ahead)
		return;
	vr->held_number = h->number;
	vr->held_for_ms = h->ms;
	if (h->ms)
		begin(tp, qp, now_ns);
	else if (vr->held)
		hold_end(tp, qp, now_ns);
}

void hold_heard(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	if (elapsed_ms(qp->veroce, now_ns) > HOLD_PROBE_MS)
		hold_end(tp, qp, now_ns);
}

/* ---- time ------------------------------------------------------------------------------------------------- */

void hold_watch(struct qp *qp, uint64_t now_ns)
{
	const struct veroce *vr = qp->veroce;
	uint32_t gone = elapsed_ms(vr, now_ns), left = vr->held_for_ms > gone ? vr->held_for_ms - gone : 0;

	if (!vr->w->hold_ns)
		vr->w->hold_ns = now_ns + (uint64_t)(left < HOLD_PROBE_MS ? left : HOLD_PROBE_MS) * MS_NS + 1;
}

uint64_t hold_deadline(const struct qp *qp)
{
	const struct veroce *vr = qp->veroce;

	return vr->held && vr->w->hold_ns ? vr->w->hold_ns : TIMER_NEVER;
}

void hold_expire(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (hold_deadline(qp) > now_ns)
		return;
	if (is_over(vr, now_ns)) {
		hold_end(tp, qp, now_ns);
		return;
	}
	vr->w->hold_ns = 0;
	hold_watch(qp, now_ns);
	vr->w->hold_probe = true;
	qp_activate(tp, qp);
}
