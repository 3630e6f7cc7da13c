/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a connection (state.h): created when the QP learns its peer, started when it may send, given up for
 * RoCEv2 or for good.
 */
#include <assert.h>
#include <errno.h>

#include "transport/veroce/connection.h"

#include "base/siphash.h"
#include "transport/veroce/acks.h"
#include "transport/veroce/caps.h"
#include "transport/veroce/engine.h"
#include "transport/veroce/responder.h"
#include "transport/veroce/roam.h"
#include "transport/veroce/veroce.h"

uint64_t transport_secret(struct transport *tp)
{
	return siphash_u64(tp->secret, tp->secret_serial++);
}

/* ---- states ---------------------------------------------------------------------------------- */

#define TO(state) (1u << VEROCE_##state)

/* Facts about a connection, one bit each. */
enum fact {
	HAS_GBN = 1 << 0,      /* RoCEv2's requester and responder */
	HAS_WORK = 1 << 1,     /* w */
	HAS_CAPS = 1 << 2,     /* any flag in caps */
	HAS_SEAL = 1 << 3,     /* CAPS_SEAL in caps */
	HAS_SECRET = 1 << 4,   /* qp->secret, our nonce */
	HAS_QUESTION = 1 << 5, /* caps_ask */
	HAS_DECISION = 1 << 6, /* decide_ns */
	IS_SILENT = 1 << 7,    /* caps_silent */
	IS_STARVED = 1 << 8    /* starved_ms */
};

/* clang-format off */
static const struct {
	const struct qp_ops *ops;
	uint8_t next; /* the states that may follow */
	uint16_t must, may;
} states[VEROCE_STATES] = {
	[VEROCE_NONE]      = { NULL,               TO(ROCEV2) | TO(ASKING) | TO(ASSUMED), 0, 0 },
	[VEROCE_ROCEV2]    = { &rc_ops,            0, HAS_GBN, 0 },
	[VEROCE_ASKING]    = { &veroce_asking_ops, TO(ASSUMED) | TO(ROCEV2), 0, HAS_QUESTION | HAS_DECISION },
	[VEROCE_ASSUMED]   = { &veroce_ops,        TO(CONFIRMED) | TO(ROCEV2), 0,
			       HAS_WORK | HAS_CAPS | HAS_QUESTION | IS_SILENT | IS_STARVED },
	[VEROCE_CONFIRMED] = { &veroce_ops,        TO(AGREED), 0,
			       HAS_WORK | HAS_CAPS | HAS_QUESTION | IS_SILENT | IS_STARVED },
	[VEROCE_AGREED]    = { &veroce_ops,        TO(SEALED), 0,
			       HAS_WORK | HAS_CAPS | HAS_SEAL | HAS_QUESTION | IS_STARVED },
	[VEROCE_SEALED]    = { &veroce_ops,        0, HAS_CAPS | HAS_SEAL | HAS_SECRET,
			       HAS_WORK | HAS_QUESTION | IS_STARVED },
};
/* clang-format on */

void veroce_enter(struct qp *qp, enum veroce_state to)
{
	struct veroce *vr = qp->veroce;

	vr->state = (uint8_t)to;
	qp->ops = states[to].ops;
	qp->secret = to == VEROCE_SEALED ? vr->nonce : 0;
}

void veroce_move(struct qp *qp, enum veroce_state to)
{
	assert(states[qp->veroce->state].next >> to & 1);
	veroce_enter(qp, to);
}

static unsigned facts(const struct qp *qp)
{
	const struct veroce *vr = qp->veroce;

	return (qp->gbn ? HAS_GBN : 0u) | (vr->w ? HAS_WORK : 0u) | (vr->caps ? HAS_CAPS : 0u) |
	       (vr->caps & CAPS_SEAL ? HAS_SEAL : 0u) | (qp->secret && qp->secret == vr->nonce ? HAS_SECRET : 0u) |
	       (vr->caps_ask ? HAS_QUESTION : 0u) | (!veroce_is_answered(vr) && vr->decide_ns ? HAS_DECISION : 0u) |
	       (vr->caps_silent ? IS_SILENT : 0u) | (vr->starved_ms ? IS_STARVED : 0u);
}

const char *veroce_fault(const struct transport *tp, const struct qp *qp)
{
	const struct veroce *vr = qp->veroce;
	bool dead = qp_get_state(qp) == QPS_ERR;
	unsigned has = facts(qp), must = states[vr->state].must, may = states[vr->state].may;

	if (dead)
		has |= must & HAS_GBN; /* perhaps there was no memory for it */
	MUST(vr->state != VEROCE_NONE);
	MUST(qp->ops == states[vr->state].ops);
	MUST((has & must) == must);
	MUST(!(has & ~(must | may)));
	MUST(vr->pair->users > 0);
	MUST(veroce_roam(vr) || !(vr->roams | vr->roam_reply));
	MUST(!dead || !(vr->roams | vr->roam_reply));
	MUST(vr->state != VEROCE_ASKING || dead || veroce_is_scheduled(qp));
	return vr->w ? veroce_work_fault(tp, qp) : NULL;
}

/* ---- life -------------------------------------------------------------------------------------- */

/* rq_psn is the peer's initial PSN in Q, and our initial PSN in R (veRoCE 4.1, our choice). */
static void connect_spaces(struct qp *qp)
{
	struct veroce *vr = qp->veroce;
	uint16_t ext = acks_ext_start(vr->pair->path_count), calm = veroce_calm_at_first(qp);

	vr->quiet = (struct veroce_quiet){
		.r_psn = qp->rq_psn,
		.q_epsn = qp->rq_psn,
		.r_epsn = qp->sq_psn,
		.q_ext = ext,
		.r_ext = ext,
		.q_calm = calm,
		.r_calm = calm,
	};
	vr->psn_new = qp->sq_psn;
}

int veroce_connect(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = alloc_get(&tp->alloc, sizeof(*vr));
	enum pair_speaks speaks;

	if (!vr)
		return -ENOMEM;
	vr->pair = pair_get(&tp->pairs, qp->flow.src, qp->flow.dst, qp->peer->local, qp->mtu, now_ns);
	if (!vr->pair)
		goto free_vr;
	qp->veroce = vr;
	vr->mtu = qp->mtu;
	/* Within a host a round trip costs nothing. */
	vr->guesses = !qp->peer->local;
	vr->q_window = vr->guesses ? TX_WINDOW_MAX : VEROCE_BASE_WINDOW;
	vr->r_window = vr->q_window;
	vr->acks_rarely = qp->peer->local;
	connect_spaces(qp);
	speaks = pair_speaks(vr->pair, now_ns);
	if (tp->config.protocol == PROTOCOL_ROCEV2 || tp->config.protocol == PROTOCOL_ROCEV1 ||
	    (speaks == PAIR_ROCEV2 && tp->config.protocol == PROTOCOL_AUTO)) {
		/* struct veroce stays, to answer CAPS requests. */
		if (gbn_connect(tp, qp, now_ns))
			goto put_pair;
		veroce_move(qp, VEROCE_ROCEV2);
		return 0;
	}
	veroce_move(qp,
		    speaks == PAIR_VEROCE || tp->config.protocol == PROTOCOL_VEROCE ? VEROCE_ASSUMED : VEROCE_ASKING);
	vr->cut_open = qp->peer->local && tp->caps_flags & CAPS_LARGE;
	caps_start(tp, qp, now_ns);
	return 0;

put_pair:
	pair_put(&tp->pairs, vr->pair);
free_vr:
	qp->veroce = NULL;
	alloc_put(&tp->alloc, vr, sizeof(*vr));
	return -ENOMEM;
}

void veroce_reset(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;

	if (!vr)
		return;
	if (vr->w)
		veroce_responder_drop(tp, qp);
	veroce_drop_work(tp, qp);
	pair_put(&tp->pairs, vr->pair);
	roam_forget(tp, vr);
	alloc_put(&tp->alloc, vr, sizeof(*vr));
	qp->veroce = NULL;
	qp->secret = 0;
}

/* sq_psn is known only now (IBTA 11.2.5.2). */
void veroce_start(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	vr->psn_new = qp->sq_psn;
	vr->quiet.r_epsn = qp->sq_psn;
	if (!vr->w)
		return;
	veroce_sender_init(tp, qp, &vr->w->q, qp->sq_psn, vr->q_window, veroce_calm_at_first(qp));
	veroce_receiver_init(tp, qp, &vr->w->r_in, qp->sq_psn, 0, vr->quiet.r_ext);
	vr->w->wqe = qp->sq.next;
	vr->w->rnr_retries = qp->rnr_retry;
}

void veroce_fall_back(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	veroce_drop_work(tp, qp);
	connect_spaces(qp);
	veroce_move(qp, VEROCE_ROCEV2);
	vr->decide_ns = 0;
	vr->starved_ms = 0;
	vr->caps = 0;
	vr->caps_ask = false;
	vr->caps_silent = false;
	vr->cut_open = false;
	tp->counters.fallbacks++;
	timer_cancel(&tp->timers, &qp->timer);
	qp->sq.next = qp->sq.una;
	if (gbn_connect(tp, qp, now_ns)) {
		qp_raise(tp, qp, EVENT_QP_FATAL);
		qp_to_error(tp, qp, now_ns);
		return;
	}
	if (qp_can_send(qp))
		requester_start(tp, qp, now_ns);
	qp_activate(tp, qp);
}

void veroce_readdress(struct transport *tp, struct qp *qp)
{
	roam_readdress(qp);
	if (qp->veroce->w)
		qp->veroce->w->flow = veroce_flow_of(tp, qp, 0, false);
}

void veroce_silence(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	if (!veroce_is_answered(qp->veroce))
		qp->veroce->decide_ns = 0;
	qp->veroce->caps_ask = false;
	roam_silence(qp->veroce);
	if (!qp->veroce->w)
		return;
	veroce_responder_flush(tp, qp, now_ns);
	/* The caller may still use w, so it stays until the QP is reset or destroyed. */
	veroce_forget(tp, qp);
}
