/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Negotiation (veRoCE 13.1): verbs programs exchange QPNs and PSNs but no protocols, so the two ends ask on the wire.
 * docs/veroce.md has the protocol and why both ends always decide alike:
 *
 *     A QP that does not know its peer asks until veRoCE of the peer's QP arrives, or RoCEv2. With work to do it waits
 *     for DECIDE_NS at most and then speaks RoCEv2, for good: it answers profile 0 from then on. An end that began
 *     with veRoCE because the peer's host speaks it, or because it was asked, falls back when it is answered profile 0
 *     and nothing else of the peer has arrived; nothing was executed then.
 *
 * A stranger who knows the peer's address can guess QPNs. So a choice is final only by what a stranger cannot send: an
 * answer with our nonce, or the packet that is due by its PSN. A question proves nothing. It is answered, and an end
 * that has made no choice begins with veRoCE; it falls back if the peer never acknowledges anything then.
 */
#include "transport/veroce/caps.h"

#include "transport/veroce/engine.h"
#include "transport/veroce/nak.h"
#include "transport/veroce/veroce.h"

enum {
	TRIES_MAX = 8,
	HURRIES_MAX = 6,
	IP_ID_LONE_MAX = 1 /* of CAPS, which begin a train: a response, then a request */
};

static const uint64_t ask_ns_min = 1000000, ask_ns_max = 200000000;
static const uint64_t decide_ns = 100000000; /* a first message waits for so long at most */

static uint8_t mtu_code(uint32_t bytes)
{
	return (uint8_t)(__builtin_ctz(bytes) - 7);
}

/*
 * Between processes of one host there is no port to share, and no network whose delay and marks a time stamp could
 * show. Without a time stamp an acknowledgement is shorter than any message and so ends the message's train (our
 * choice).
 */
static uint16_t offered(const struct transport *tp, const struct qp *qp)
{
	uint16_t flags = tp->caps_flags;

	if (qp->local)
		flags &= (uint16_t)~(CAPS_TS | CAPS_RXSHARE);
	/* Four bytes a message would buy nothing. */
	if (tp->tx.train_max == 1)
		flags &= (uint16_t)~CAPS_ALIKE;
	return flags;
}

static struct capseth ours(const struct transport *tp, const struct qp *qp)
{
	const struct veroce *vr = qp->veroce;

	return (struct capseth){
		.magic = CAPS_MAGIC,
		.version = CAPS_VERSION,
		.profile = vr->state == VEROCE_ROCEV2 ? 0 : VEROCE_PROFILE,
		.flags = offered(tp, qp),
		.mtu_code = mtu_code(qp->mtu),
		.rx_window_q = tp->config.veroce.rx_window,
		.rx_window_r = tp->config.veroce.rx_window,
		.paths = (uint8_t)tp->config.paths,
		.state = vr->caps & CAPS_SEAL ? CAPS_SEALS : 0,
		.source_qpn = qp->qpn,
		.ack_timer_us = (uint16_t)(tp->lazy_ack_ns / 1000),
	};
}

void caps_start(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	do
		vr->nonce = (uint32_t)transport_secret(tp);
	while (!vr->nonce); /* 0 is none */
	vr->caps_ask = true;
	vr->ask_ns = now_ns;
	qp_activate(tp, qp);
}

/* Never sealed: who begins anew does not know the secret. */
static bool send_caps(struct transport *tp, struct qp *qp, uint8_t opcode)
{
	struct veroce *vr = qp->veroce;
	uint32_t secret = tp->tx.secret;
	bool response = opcode == OP_CAPS_RESPONSE;
	struct veroce_packet p = {
		.bth = {.opcode = opcode,
			.migreq = true,
			.pkey = qp->pkey,
			.dqpn = qp->dest_qpn,
			.psn = qp->rq_psn},
		.caps = ours(tp, qp),
	};
	const struct flow *flow = veroce_flow(tp, qp, 0, false);
	uint8_t *out = flow ? tx_room(&tp->tx, TX_HEADROOM_MAX) : NULL;

	if (!out)
		return false;
	p.caps.nonce = response ? vr->peer_nonce : vr->nonce;
	p.caps.own_nonce = response ? vr->nonce : 0;
	tp->tx.secret = 0;
	tx_commit(&tp->tx, flow, qp->dest_qpn, veroce_encode_headers(out, &p) + ICRC_LEN);
	tp->tx.secret = secret;
	if (response) {
		vr->caps_told = true;
		vr->caps_seals = p.caps.state & CAPS_SEALS;
	}
	return true;
}

/* How long after so many questions the next one is due. */
static uint64_t ask_wait_ns(uint32_t tries)
{
	uint64_t wait = ask_ns_min << (tries - 1);

	return wait < ask_ns_max ? wait : ask_ns_max;
}

bool caps_send(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (vr->caps_reply) {
		if (!send_caps(tp, qp, OP_CAPS_RESPONSE))
			return false;
		vr->caps_reply = false;
	}
	if (vr->caps_ask) {
		if (!send_caps(tp, qp, OP_CAPS_REQUEST))
			return false;
		vr->caps_ask = false;
		vr->ask_ns = now_ns + ask_wait_ns(vr->caps_tries + 1u);
		if (vr->caps_tries < TRIES_MAX)
			vr->caps_tries++;
	}
	return true;
}

/* A peer we have asked often enough without an answer is base; one of which we know nothing is asked on. */
static bool asks_on(const struct veroce *vr)
{
	return !caps_are_settled(vr) && (vr->state == VEROCE_ASKING || vr->caps_tries < TRIES_MAX);
}

/* The last question may still be answered. */
static bool awaits_last(const struct veroce *vr)
{
	return (vr->state == VEROCE_ASSUMED || vr->state == VEROCE_CONFIRMED) && vr->caps_tries == TRIES_MAX &&
	       !vr->caps_silent;
}

uint64_t caps_deadline_asking(const struct qp *qp)
{
	const struct veroce *vr = qp->veroce;
	bool waits = (asks_on(vr) || awaits_last(vr)) && !vr->caps_ask;
	uint64_t ask = waits ? vr->ask_ns : TIMER_NEVER;

	return vr->decide_ns && vr->decide_ns < ask ? vr->decide_ns : ask;
}

void caps_expire(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (vr->decide_ns && vr->decide_ns <= now_ns) {
		pair_learn(vr->pair, PAIR_ROCEV2, now_ns);
		veroce_fall_back(tp, qp, now_ns);
		return;
	}
	if (vr->ask_ns > now_ns)
		return;
	if (asks_on(vr)) {
		vr->caps_ask = true;
		qp_activate(tp, qp);
	} else if (awaits_last(vr)) {
		vr->caps_silent = true;
		qp_activate(tp, qp);
	}
}

/*
 * The peer acknowledges what was sent after the question, so the question was lost, or its answer. Without an answer no
 * more than the base window may be in flight: the question is sent again after one and a half round trips, three, six
 * ..; these questions do not count among those after which a peer is taken for a base one.
 */
void caps_unanswered(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint64_t wait = (vr->pair->srtt_ns + vr->pair->srtt_ns / 2) << vr->caps_hurries;

	if (vr->caps_ask || !asks_on(vr) || !vr->caps_tries || vr->caps_hurries >= HURRIES_MAX ||
	    vr->ask_ns - ask_wait_ns(vr->caps_tries) + wait > now_ns)
		return;
	vr->caps_hurries++;
	vr->caps_tries--;
	vr->caps_ask = true;
	qp_activate(tp, qp);
}

void caps_confirmed(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;

	if (!(tp->caps_flags & CAPS_RETH_MESSAGE) || veroce_is_answered(vr) || vr->caps_tries < TRIES_MAX)
		return;
	vr->caps_tries = 0;
	vr->caps_silent = false;
	vr->caps_ask = true;
	qp_activate(tp, qp);
}

bool caps_reth_settled(struct qp *qp)
{
	struct veroce *vr = qp->veroce;

	if (vr->caps_silent)
		vr->caps |= CAPS_RETH_MESSAGE;
	return veroce_is_answered(vr) || vr->caps & CAPS_RETH_MESSAGE;
}

/* Work came while we do not know how to send it. */
void caps_hurry(struct qp *qp, uint64_t now_ns)
{
	if (!qp->veroce->decide_ns)
		qp->veroce->decide_ns = now_ns + decide_ns;
}

/*
 * CAPS carry the PSN that their sender expects first. (13.1: not the sender's own, which a verbs program gives its
 * device only after RTR.) The PSN is not judged before ours is known.
 */
static bool has_begun(const struct qp *qp)
{
	enum qp_state state = qp_get_state(qp);

	return state == QPS_RTS || state == QPS_SQD;
}

static bool is_of_another_life(const struct qp *qp, uint32_t psn)
{
	return has_begun(qp) && psn != qp->sq_psn;
}

/* Below the base window no peer can be; above ours no record is kept. */
static uint32_t bounded(uint32_t window)
{
	return window < VEROCE_BASE_WINDOW ? VEROCE_BASE_WINDOW : window > TX_WINDOW_MAX ? TX_WINDOW_MAX : window;
}

static void take_windows(struct veroce *vr, const struct capseth *c)
{
	vr->q_window = bounded(c->rx_window_q);
	vr->r_window = bounded(c->rx_window_r);
	if (vr->w) {
		vr->w->q.peer_window = vr->q_window;
		vr->w->r.peer_window = vr->r_window;
	}
}

/*
 * The peer asks, or somebody does in its name. If it is the peer, our packets reach it by now, and the next question is
 * sent at once. What it offers is used until it answers, if it knows the PSN that we begin with; but that PSN can be
 * guessed where programs choose it badly, so nothing is used that would be final.
 */
static void asked(const struct transport *tp, struct qp *qp, const struct capseth *c, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (!veroce_is_answered(vr) && c->profile && has_begun(qp)) {
		vr->caps &= CAPS_RETH_MESSAGE;
		vr->caps |= c->flags & offered(tp, qp) & (uint16_t)~(CAPS_RETH_MESSAGE | CAPS_SEAL);
		take_windows(vr, c);
	}
	if (veroce_is_answered(vr) || vr->caps_ask || !vr->caps_tries ||
	    vr->ask_ns - ask_wait_ns(vr->caps_tries) + ask_ns_min > now_ns)
		return;
	if (vr->caps_tries >= TRIES_MAX)
		vr->caps_tries = TRIES_MAX - 1;
	vr->caps_silent = false;
	vr->caps_ask = true;
}

static uint16_t agreed(const struct transport *tp, const struct qp *qp, const struct capseth *c)
{
	uint16_t flags = (uint16_t)(c->flags & offered(tp, qp));

	return c->own_nonce ? flags : (uint16_t)(flags & ~CAPS_SEAL);
}

/*
 * From now on what leaves is sealed, and a response says so to the peer. Once the peer has said the same, what arrives
 * must be sealed. A lone datagram has identification 0, and a sealed packet has the place in its train; where another
 * identification arrives, somebody on the way changes them, and they prove nothing (IPv4).
 */
static void seal(struct qp *qp, const struct capseth *c, uint16_t ip_id)
{
	struct veroce *vr = qp->veroce;

	vr->peer_nonce = c->own_nonce;
	if (!vr->caps_seals)
		vr->caps_reply = true;
	if (vr->state != VEROCE_SEALED)
		vr->ids_kept = ip_id <= IP_ID_LONE_MAX;
	if (vr->state == VEROCE_AGREED && c->state & CAPS_SEALS)
		veroce_move(qp, VEROCE_SEALED);
}

static void agree(struct transport *tp, struct qp *qp, const struct capseth *c)
{
	struct veroce *vr = qp->veroce;

	vr->caps = agreed(tp, qp, c);
	if (vr->state == VEROCE_CONFIRMED)
		veroce_move(qp, VEROCE_AGREED);
	vr->caps_ask = false;
	vr->caps_silent = false;
	take_windows(vr, c);
	qp_activate(tp, qp);
}

/* What was settled before is not what its flags come to. */
static bool contradicts(const struct transport *tp, const struct qp *qp, const struct capseth *c)
{
	const struct veroce *vr = qp->veroce;
	uint16_t settled = veroce_is_answered(vr) ? CAPS_RETH_MESSAGE | CAPS_SEAL : vr->caps & CAPS_RETH_MESSAGE;

	return (vr->caps ^ agreed(tp, qp, c)) & settled;
}

/* The choice is made for RoCEv2, and the answer says so. But the next QP of that host asks before it chooses. */
static void too_late(struct transport *tp, struct qp *qp, const struct capseth *c, uint64_t now_ns)
{
	if (c->profile && tp->config.protocol == PROTOCOL_AUTO)
		pair_learn(qp->veroce->pair, PAIR_UNKNOWN, now_ns);
}

/* The peer's nonce does not change in the life of a connection, once it is known beyond doubt. */
static uint32_t known_nonce(const struct veroce *vr, const struct capseth *c)
{
	return vr->caps & CAPS_SEAL ? vr->peer_nonce : c->nonce;
}

/* It echoes our nonce: all that it says is the peer's word. */
static void answered(struct transport *tp, struct qp *qp, const struct capseth *c, uint16_t ip_id,
		     uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (!c->profile) {
		if (!veroce_is_confirmed(vr) && tp->config.protocol == PROTOCOL_AUTO) {
			pair_learn(vr->pair, PAIR_UNKNOWN, now_ns);
			veroce_fall_back(tp, qp, now_ns);
		}
		return;
	}
	pair_learn(vr->pair, PAIR_VEROCE, now_ns);
	caps_packet_came(tp, qp, true, now_ns);
	if (!contradicts(tp, qp, c)) {
		agree(tp, qp, c);
		if (vr->caps & CAPS_SEAL)
			seal(qp, c, ip_id);
	} else if (!veroce_is_answered(vr)) {
		/* It means by a WRITE's address something else than was taken for granted while it was silent. */
		veroce_fail_qp(tp, qp, now_ns);
	} else {
		tp->counters.rx_dropped++; /* a peer does not change its mind */
	}
}

void caps_input(struct transport *tp, struct qp *qp, const struct veroce_packet *p, uint16_t ip_id,
		uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	const struct capseth *c = &p->caps;
	bool request = p->bth.opcode == OP_CAPS_REQUEST;

	if (c->magic != CAPS_MAGIC || c->version != CAPS_VERSION || c->source_qpn != qp->dest_qpn ||
	    c->nonce != (request ? known_nonce(vr, c) : vr->nonce) || is_of_another_life(qp, p->bth.psn)) {
		tp->counters.rx_dropped++;
		return;
	}
	if (request) {
		vr->caps_reply = true;
		vr->peer_nonce = c->nonce;
		qp_activate(tp, qp);
	}
	if (vr->state == VEROCE_ROCEV2) {
		too_late(tp, qp, c, now_ns);
	} else if (!request) {
		answered(tp, qp, c, ip_id, now_ns);
	} else {
		if (c->profile)
			caps_packet_came(tp, qp, false, now_ns);
		asked(tp, qp, c, now_ns);
	}
}

/* ---- what other packets show of the peer ---------------------------------------------------------- */

void caps_packet_came(struct transport *tp, struct qp *qp, bool proved, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (vr->state == VEROCE_ASKING) {
		veroce_move(qp, VEROCE_ASSUMED);
		vr->decide_ns = 0;
		qp_activate(tp, qp);
	}
	if (proved && vr->state == VEROCE_ASSUMED) {
		veroce_move(qp, VEROCE_CONFIRMED);
		pair_learn(vr->pair, PAIR_VEROCE, now_ns);
		caps_confirmed(tp, qp);
	}
}

bool caps_doubts(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (veroce_is_confirmed(vr) || tp->config.protocol != PROTOCOL_AUTO ||
	    pair_speaks(vr->pair, now_ns) == PAIR_VEROCE)
		return false;
	veroce_fall_back(tp, qp, now_ns);
	return true;
}

bool caps_is_due(const struct veroce *vr, const struct veroce_packet *p)
{
	return veroce_starts_message(p) &&
	       p->bth.psn == (vr->w ? vr->w->q_in.rx.epsn : vr->quiet.q_epsn);
}

bool caps_is_plausible(const struct veroce *vr, const struct veroce_packet *p)
{
	uint32_t flags = p->info->flags;

	if (flags & F_REQUEST)
		return caps_is_due(vr, p) || (vr->state == VEROCE_ASSUMED && (vr->caps_reply || vr->caps_told));
	if (vr->state == VEROCE_ASKING || !vr->w)
		return false; /* nothing was sent */
	if (p->bth.opcode == OP_RC_ACK)
		return tx_is_outstanding(&vr->w->q.tx, p->bth.psn);
	if (p->bth.opcode == OP_RC_SACK) /* perhaps the first one is missing */
		return tx_is_outstanding(&vr->w->q.tx, psn_add(p->bth.psn, 1));
	return flags & F_RESPONSE && !(flags & F_ACK) && p->bth.psn == vr->w->r_in.rx.epsn && vr->w->reads_done != vr->reads;
}

bool caps_answer(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	return caps_output(tp, qp, now_ns);
}
