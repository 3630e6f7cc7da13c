/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CAPS negotiation (veRoCE 13.1): verbs programs exchange QPNs and PSNs but no protocols, so the two ends ask on the wire.
 * docs/veroce.md has the protocol and why both ends always decide alike:
 *
 *     A QP that does not know its peer's protocol sends CAPS requests until a veRoCE or RoCEv2 packet of the peer's QP
 *     arrives. With work to do it waits for decide_ns at most and then speaks RoCEv2, for good: it answers profile 0
 *     from then on. An end that began with veRoCE, because the peer's host speaks it or because a CAPS request arrived,
 *     falls back when it is answered profile 0 and nothing else of the peer has arrived; nothing was executed then.
 *
 * A stranger who knows the peer's address can guess QPNs. So only packets that a stranger cannot send make a choice
 * final: an answer with our nonce, or the packet that is due by its PSN. A CAPS request proves nothing. It is answered,
 * and an end that has made no choice begins with veRoCE; it falls back if the peer then never acknowledges anything.
 */
#include "transport/veroce/caps.h"

#include "transport/paths/path_rtt.h"
#include "transport/veroce/engine.h"
#include "transport/veroce/nak.h"
#include "transport/veroce/veroce.h"

enum {
	TRIES_MAX = 8,
	HURRIES_MAX = 6,
	IP_ID_LONE_MAX = 1 /* of a CAPS packet, the first or second of its train: a response, then a request */
};

static const uint64_t ask_ns_min = 1000000, ask_ns_max = 200000000;
static const uint64_t decide_ns = 100000000; /* the longest that a first message waits */

static uint8_t mtu_code(uint32_t bytes)
{
	return (uint8_t)(__builtin_ctz(bytes) - 7);
}

/*
 * Between processes of one host there is no port to share, and no network whose delay and marks a time stamp could
 * show. Without a time stamp an acknowledgement is shorter than any message, so it can end the message's train (our
 * choice).
 */
static uint16_t offered(const struct transport *tp, const struct qp *qp)
{
	uint16_t flags = tp->caps_flags;

	if (qp->peer->local)
		flags &= (uint16_t) ~(CAPS_TS | CAPS_RXSHARE);
	if (!qp->veroce->cut_open && !(qp->veroce->caps & CAPS_LARGE))
		flags &= (uint16_t)~CAPS_LARGE;
	/* Four bytes a message would buy nothing. */
	if (tp->config.train_max == 1)
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
		.ack_timer_us = (uint16_t)(tp->acks[ACK_LAZY].delay_ns / 1000),
	};
}

void caps_start(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	do
		vr->nonce = (uint32_t)transport_secret(tp);
	while (!vr->nonce); /* 0 means none */
	vr->caps_ask = true;
	vr->ask_ns = now_ns;
	qp_activate(tp, qp);
}

/* CAPS packets are never XORed: a peer that begins anew does not know the secret. */
static bool send_caps(struct transport *tp, struct qp *qp, uint8_t opcode)
{
	struct veroce *vr = qp->veroce;
	uint32_t secret = tp->tx.secret;
	bool response = opcode == OP_CAPS_RESPONSE;
	struct veroce_packet p = {
		.bth = {.opcode = opcode, .migreq = true, .pkey = qp->pkey, .dqpn = qp->dest_qpn, .psn = qp->rq_psn},
		.caps = ours(tp, qp),
	};
	const struct flow *flow = veroce_flow(tp, qp, 0, false);
	uint8_t *out = flow ? tx_room(&tp->tx, TX_HEADROOM_MAX) : NULL;

	if (!out)
		return false;
	p.caps.nonce = response ? vr->peer_nonce : vr->nonce;
	p.caps.own_nonce = response ? vr->nonce : 0;
	tp->tx.secret = 0;
	tx_commit(&tp->tx, flow, qp->dest_qpn, veroce_encode_headers(out, &p));
	tp->tx.secret = secret;
	if (response) {
		vr->caps_told = true;
		vr->caps_seals = p.caps.state & CAPS_SEALS;
	}
	return true;
}

/* The time from the `tries`-th request to the next one. */
static uint64_t ask_wait_ns(uint32_t tries)
{
	uint64_t wait = ask_ns_min << (tries - 1);

	return wait < ask_ns_max ? wait : ask_ns_max;
}

/* Not inlined, as caps_output() is: that is called on each turn, and mostly has nothing to send. */
__attribute__((noinline)) bool caps_send(struct transport *tp, struct qp *qp, uint64_t now_ns)
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

/* A peer that has left TRIES_MAX requests unanswered counts as base; in ASKING the requests go on. */
static bool asks_on(const struct veroce *vr)
{
	return !caps_are_settled(vr) && (vr->state == VEROCE_ASKING || vr->caps_tries < TRIES_MAX);
}

/* The last request may still be answered. */
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

	return veroce_decide_ns(vr) && veroce_decide_ns(vr) < ask ? vr->decide_ns : ask;
}

void caps_expire(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (veroce_decide_ns(vr) && veroce_decide_ns(vr) <= now_ns) {
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
 * The peer acknowledges packets that were sent after the request, so the request or its answer was lost. Without an
 * answer only the base window may be in flight, so the request is sent again after one and a half round trips, three,
 * six and so on. These requests do not count among those after which a peer counts as base.
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

	if (!vr->cut_open || veroce_is_answered(vr) || vr->caps_tries < TRIES_MAX)
		return;
	vr->caps_tries = 0;
	vr->caps_silent = false;
	vr->caps_ask = true;
	qp_activate(tp, qp);
}

/* From now on messages are cut into packets of that size. None was cut before. */
static void cut(const struct transport *tp, struct qp *qp, bool large)
{
	struct veroce *vr = qp->veroce;

	vr->cut_open = false;
	if (!large)
		return;
	vr->caps |= CAPS_LARGE;
	vr->mtu = CAPS_LARGE_BYTES;
	if (vr->w)
		veroce_fit_acks(tp, qp);
}

bool caps_cut_settled(const struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;

	if (vr->cut_open && vr->caps_silent)
		cut(tp, qp, vr->caps_told && vr->cut_asked);
	return !vr->cut_open;
}

void caps_hurry(struct qp *qp, uint64_t now_ns)
{
	if (!veroce_decide_ns(qp->veroce))
		qp->veroce->decide_ns = now_ns + decide_ns;
}

/*
 * CAPS carry the PSN that their sender expects first. (13.1: not the sender's own, which a verbs program gives its
 * device only after RTR.) It is checked only once our own initial PSN is known.
 */
static bool is_of_another_life(const struct qp *qp, uint32_t psn)
{
	return qp_can_send(qp) && psn != qp->sq_psn;
}

/* No peer records less than the base window, and we keep no more than TX_WINDOW_MAX records. */
static uint32_t bounded(uint32_t window)
{
	return window < VEROCE_BASE_WINDOW ? VEROCE_BASE_WINDOW : window > TX_WINDOW_MAX ? TX_WINDOW_MAX : window;
}

static void set_windows(struct veroce *vr, uint32_t q_window, uint32_t r_window)
{
	vr->guesses = false;
	vr->q_window = q_window;
	vr->r_window = r_window;
	if (vr->w) {
		vr->w->q.peer_window = q_window;
		vr->w->r.peer_window = r_window;
	}
}

static void take_windows(struct veroce *vr, const struct capseth *c)
{
	set_windows(vr, bounded(c->rx_window_q), bounded(c->rx_window_r));
}

void caps_end_guess(struct veroce *vr)
{
	if (vr->guesses)
		set_windows(vr, VEROCE_BASE_WINDOW, VEROCE_BASE_WINDOW);
}

/*
 * A CAPS request arrived from the peer, or in its name. If it is the peer's, our packets reach it by now, and our next
 * request is sent at once. If the sender knows our initial PSN, the flags that it offers are used until the answer. But
 * that PSN can be guessed where programs choose it badly, so no flag is used that would be final.
 */
static void asked(const struct transport *tp, struct qp *qp, const struct capseth *c, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (!veroce_is_answered(vr) && c->profile && qp_can_send(qp)) {
		vr->caps &= CAPS_LARGE;
		vr->caps |= c->flags & offered(tp, qp) & (uint16_t) ~(CAPS_LARGE | CAPS_BY_NONCE);
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

	return c->own_nonce ? flags : (uint16_t)(flags & ~CAPS_BY_NONCE);
}

/*
 * From now on our packets are sealed, and a response announces that to the peer. Once the peer has announced the same,
 * its packets must be sealed. Over IPv4 a lone datagram has identification 0, and a sealed packet its place in its
 * train. If another identification arrives, a device on the way changes them, and they prove nothing.
 */
static void seal(struct qp *qp, const struct capseth *c, uint16_t ip_id)
{
	struct veroce *vr = qp->veroce;

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
	if (vr->caps & CAPS_BY_NONCE)
		vr->peer_nonce = c->own_nonce;
	if (vr->cut_open)
		cut(tp, qp, vr->caps & CAPS_LARGE);
	if (vr->state == VEROCE_CONFIRMED)
		veroce_move(qp, VEROCE_AGREED);
	vr->caps_ask = false;
	vr->caps_silent = false;
	/* Such a peer asks before its windows are full. Where packets do not leave in trains there is nothing to save.
	 */
	if (tp->config.train_max > 1 && !vr->acks_rarely) {
		vr->acks_rarely = true;
		if (vr->w)
			veroce_fit_acks(tp, qp);
	}
	take_windows(vr, c);
	qp_activate(tp, qp);
}

/* Whether its flags differ from those that were settled before. */
static bool contradicts(const struct transport *tp, const struct qp *qp, const struct capseth *c)
{
	const struct veroce *vr = qp->veroce;
	uint16_t settled = CAPS_LARGE;

	settled = veroce_is_answered(vr) ? settled | CAPS_BY_NONCE : vr->caps & settled;
	return (vr->caps ^ agreed(tp, qp, c)) & settled;
}

/* This QP has chosen RoCEv2, and its answer reports that. But the next QP to that host asks before it chooses. */
static void too_late(struct transport *tp, struct qp *qp, const struct capseth *c, uint64_t now_ns)
{
	if (c->profile && tp->config.protocol == PROTOCOL_AUTO)
		pair_learn(qp->veroce->pair, PAIR_UNKNOWN, now_ns);
}

/* The peer's nonce does not change during a connection, once it is proved. */
static uint32_t known_nonce(const struct veroce *vr, const struct capseth *c)
{
	return vr->caps & CAPS_BY_NONCE ? vr->peer_nonce : c->nonce;
}

/* A response arrived that echoes our nonce, so the peer sent it. */
static void answered(struct transport *tp, struct qp *qp, const struct capseth *c, uint16_t ip_id, uint64_t now_ns)
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
	/* It is that of the last request: no other was sent, or the others have been silent for a quarter of a second.
	 */
	if (!veroce_is_answered(vr) && vr->caps_tries == 1 && !vr->caps_hurries)
		path_rtt_expect(&tp->config, vr->pair, now_ns - (vr->ask_ns - ask_wait_ns(1)));
	caps_packet_came(tp, qp, true, now_ns);
	if (!contradicts(tp, qp, c)) {
		agree(tp, qp, c);
		if (vr->caps & CAPS_SEAL)
			seal(qp, c, ip_id);
	} else if (!veroce_is_answered(vr)) {
		/* It cuts messages otherwise than was assumed while it was silent. */
		veroce_fail_qp(tp, qp, now_ns);
	} else {
		tp->counters.rx_dropped++; /* a peer does not change its flags */
	}
}

void caps_input(struct transport *tp, struct qp *qp, const struct veroce_packet *p, uint16_t ip_id, uint64_t now_ns)
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
		vr->cut_asked = c->flags & CAPS_LARGE;
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

/* ---- proof by other packets of the peer ---------------------------------------------------------- */

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
	return veroce_starts_message(p) && p->bth.psn == (vr->w ? vr->w->q_in.rx.epsn : vr->quiet.q_epsn);
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
	if (p->bth.opcode == OP_RC_SACK) /* the first packet may be missing */
		return tx_is_outstanding(&vr->w->q.tx, psn_add(p->bth.psn, 1));
	return flags & F_RESPONSE && !(flags & F_ACK) && p->bth.psn == vr->w->r_in.rx.epsn &&
	       vr->w->reads_done != vr->reads;
}

bool caps_answer(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	return caps_output(tp, qp, now_ns);
}
