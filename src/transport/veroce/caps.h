/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CAPS negotiation: whether the peer speaks veRoCE, and with which extensions (veRoCE 13.1). engine.h has the calls
 * that RoCEv2's engine makes.
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/timer.h"
#include "transport/veroce/connection.h"

struct veroce_packet;

enum { VEROCE_PROFILE = 3 };

#define VEROCE_CAPS_FLAGS (CAPS_MULTI_SACK | CAPS_SACK_ANY | CAPS_TS | CAPS_ALIKE | CAPS_HOLD)
/* These are proved by the peer's nonce, so an end that has agreed to one of them keeps that nonce. */
#define CAPS_BY_NONCE (CAPS_SEAL | CAPS_HOLD | CAPS_ROAM)

/* Begins to ask the peer. */
void caps_start(struct transport *, struct qp *, uint64_t now_ns);
bool caps_send(struct transport *, struct qp *, uint64_t now_ns);
/* Sends the CAPS packets that are due. False: no room. */
static inline bool caps_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	return (!qp->veroce->caps_reply && !qp->veroce->caps_ask) || caps_send(tp, qp, now_ns);
}

/* Nothing is left to ask: the peer has answered, and seals if both ends can. */
static inline bool caps_are_settled(const struct veroce *vr)
{
	return vr->state == VEROCE_SEALED || (vr->state == VEROCE_AGREED && !(vr->caps & CAPS_SEAL));
}

/*
 * How far ahead of epsn a packet is accepted: as many PSNs as the peer can have in flight. The peer knows our window
 * from our response only; without one it keeps to the base protocol's.
 */
static inline uint32_t caps_rx_window(const struct transport *tp, const struct veroce *vr)
{
	return vr->caps_told || veroce_is_answered(vr) ? tp->config.veroce.rx_window : VEROCE_BASE_WINDOW;
}

/* The question is asked again, or given up; and when that is due. */
void caps_expire(struct transport *, struct qp *, uint64_t now_ns);
uint64_t caps_deadline_asking(const struct qp *);
static inline uint64_t caps_deadline(const struct qp *qp)
{
	const struct veroce *vr = qp->veroce;

	return caps_are_settled(vr) ? TIMER_NEVER : caps_deadline_asking(qp);
}

/*
 * Whether both ends agree into what messages are cut, CAPS_LARGE_BYTES or path MTUs. Before, no message of more than a
 * path MTU is sent or placed. With a peer that has been silent for so long it holds that both offered, and path MTUs if
 * this end has not told that it does.
 */
bool caps_cut_settled(const struct transport *, struct qp *);
/*
 * The first packet of the peer other than CAPS arrived. If we had stopped asking, the peer may have started only
 * now: it is asked again, because its setting may differ from the assumed one.
 */
void caps_confirmed(struct transport *, struct qp *);
/*
 * The peer acknowledged a packet before it told its windows: it may be a base peer. Until then what is in flight is a
 * guess, since packets that arrive in order need no window, and a round trip is long (4.2).
 */
void caps_end_guess(struct veroce *);
/* The peer acknowledged a packet, or sent one that cannot be accepted yet, but has not answered CAPS. */
__attribute__((cold)) void caps_unanswered(struct transport *, struct qp *, uint64_t now_ns);
/* A veRoCE packet arrived in the peer's name; `proved`: only the peer can have sent it. */
void caps_packet_came(struct transport *, struct qp *, bool proved, uint64_t now_ns);
/*
 * The peer acknowledged nothing within the program's timeout. True: veRoCE was only assumed, because of a request
 * in the peer's name, and the QP speaks RoCEv2 from now on.
 */
bool caps_doubts(struct transport *, struct qp *, uint64_t now_ns);
/* Whether this request begins a message and has the PSN that is due. */
bool caps_is_due(const struct veroce *, const struct veroce_packet *);
/*
 * Whether to accept a packet of a peer that has proved nothing yet: the request that is due, early requests if the
 * peer has sent CAPS, and answers to our own requests. Any other packet may be that of a stranger who has guessed a
 * QPN; the caller drops it.
 */
bool caps_is_plausible(const struct veroce *, const struct veroce_packet *);
/* Work was posted before the protocol is known: sets decide_ns. */
void caps_hurry(struct qp *, uint64_t now_ns);
