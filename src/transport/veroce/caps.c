/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Negotiation (veRoCE 13.1): verbs programs tell each other QPNs and PSNs and nothing of protocols, so the
 * two ends ask on the wire. docs/veroce.md tells the protocol and why both ends always decide alike:
 *
 *     A QP that does not know its peer asks until it hears veRoCE of the peer's QP, or RoCEv2. With work
 *     to do it waits for DECIDE_NS at most and then speaks RoCEv2, for good: it answers profile 0 from
 *     then on. Whoever began with veRoCE because the peer's host does, or because it was asked, and has
 *     heard nothing else of the peer yet, falls back when told profile 0; nothing was executed then.
 */
#include "transport/veroce/veroce.h"
#include "wire/icrc.h"

enum { TRIES_MAX = 8, TRIES_SILENT, HURRIES_MAX = 6 };

static const uint64_t ask_ns_min = 1000000, ask_ns_max = 200000000;
static const uint64_t decide_ns = 100000000; /* a first message waits for so long at most */

static uint8_t mtu_code(uint32_t bytes)
{
	return (uint8_t)(__builtin_ctz(bytes) - 7);
}

/*
 * Between processes of one host there is no port to share, and no network whose delay and marks a time stamp
 * could tell; and without it an acknowledgement is shorter than any message and so ends the message's train
 * (our choice).
 */
static uint16_t offered(const struct transport *tp, const struct qp *qp)
{
	return (uint16_t)(tp->caps_flags & (qp->local ? ~(CAPS_TS | CAPS_RXSHARE) : UINT16_MAX));
}

static struct capseth ours(const struct transport *tp, const struct qp *qp)
{
	return (struct capseth){
		.magic = CAPS_MAGIC,
		.version = CAPS_VERSION,
		.profile = qp->ops == &rc_ops ? 0 : VEROCE_PROFILE,
		.flags = offered(tp, qp),
		.mtu_code = mtu_code(qp->mtu),
		.rx_window_q = tp->rx_window,
		.rx_window_r = tp->rx_window,
		.paths = (uint8_t)tp->pairs.config.paths,
		.source_qpn = qp->qpn,
		.ack_timer_us = (uint16_t)(tp->lazy_ack_ns / 1000),
	};
}

void caps_start(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	vr->nonce = (uint32_t)transport_secret(tp);
	vr->caps_ask = true;
	vr->ask_ns = now_ns;
	qp_activate(tp, qp);
}

static bool send_caps(struct transport *tp, struct qp *qp, uint8_t opcode, uint32_t nonce)
{
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
	p.caps.nonce = nonce;
	tx_commit(&tp->tx, flow, qp->dest_qpn, veroce_encode_headers(out, &p) + ICRC_LEN);
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
		if (!send_caps(tp, qp, OP_CAPS_RESPONSE, vr->reply_nonce))
			return false;
		vr->caps_reply = false;
	}
	if (vr->caps_ask) {
		if (!send_caps(tp, qp, OP_CAPS_REQUEST, vr->nonce))
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
	return !vr->caps_known && (vr->peer == PEER_ASKING || vr->caps_tries < TRIES_MAX);
}

/* The last question may still be answered. */
static bool awaits_last(const struct veroce *vr)
{
	return !vr->caps_known && vr->peer != PEER_ASKING && vr->caps_tries == TRIES_MAX;
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
		vr->caps_tries = TRIES_SILENT;
		qp_activate(tp, qp);
	}
}

/*
 * What is acknowledged went after the question and was heard, so that one was lost, or its answer. Without it
 * no more than the base window may be in flight: it is asked again after one and a half round trips, three, six
 * ...; these are not of those after which a peer is taken for base.
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

void caps_heard(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;

	if (!(tp->caps_flags & CAPS_RETH_MESSAGE) || vr->caps_known || vr->caps_tries < TRIES_MAX)
		return;
	vr->caps_tries = 0;
	vr->caps_ask = true;
	qp_activate(tp, qp);
}

bool caps_reth_settled(struct qp *qp)
{
	struct veroce *vr = qp->veroce;

	if (!vr->caps_known && vr->caps_tries == TRIES_SILENT)
		vr->caps |= CAPS_RETH_MESSAGE;
	return vr->caps_known || vr->caps & CAPS_RETH_MESSAGE;
}

/* Work came while we do not know how to send it. */
void caps_hurry(struct qp *qp, uint64_t now_ns)
{
	if (!qp->veroce->decide_ns)
		qp->veroce->decide_ns = now_ns + decide_ns;
}

static void agree(struct transport *tp, struct qp *qp, const struct capseth *c, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint32_t q = c->rx_window_q, r = c->rx_window_r;

	vr->caps = (uint16_t)(c->flags & offered(tp, qp));
	vr->caps_known = true;
	vr->caps_ask = false;
	/* Below the base window no peer can be; above ours no record is kept. */
	vr->q_window = q < VEROCE_BASE_WINDOW ? VEROCE_BASE_WINDOW
		       : q > TX_WINDOW_MAX    ? TX_WINDOW_MAX : q;
	vr->r_window = r < VEROCE_BASE_WINDOW ? VEROCE_BASE_WINDOW
		       : r > TX_WINDOW_MAX    ? TX_WINDOW_MAX : r;
	if (vr->w) {
		vr->w->q.peer_window = vr->q_window;
		vr->w->r.peer_window = vr->r_window;
	}
	qp_activate(tp, qp);
}

/* What was settled before is not what its flags come to. */
static bool contradicts(const struct transport *tp, const struct qp *qp, const struct capseth *c)
{
	const struct veroce *vr = qp->veroce;
	bool settled = vr->caps_known || vr->caps & CAPS_RETH_MESSAGE;

	return settled && (vr->caps ^ (c->flags & offered(tp, qp))) & CAPS_RETH_MESSAGE;
}

/*
 * A peer that was silent for too long, and does not mean by a WRITE's address what was taken for granted: some
 * of its bytes or of ours may lie where they do not belong.
 */
static void fail(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	qp_raise(tp, qp, EVENT_QP_FATAL);
	qp_to_error(tp, qp, now_ns);
}

/*
 * The PSN that it expects of us first. (13.1 has the sender's own first PSN there, which a verbs program
 * tells its device only after RTR: our choice.)
 */
static bool is_of_another_life(const struct qp *qp, uint32_t psn)
{
	enum qp_state state = qp_get_state(qp);

	return (state == QPS_RTS || state == QPS_SQD) && psn != qp->sq_psn;
}

void caps_input(struct transport *tp, struct qp *qp, const struct veroce_packet *p, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	const struct capseth *c = &p->caps;
	bool request = p->bth.opcode == OP_CAPS_REQUEST;

	if (c->magic != CAPS_MAGIC || c->version != CAPS_VERSION || c->source_qpn != qp->dest_qpn ||
	    (!request && c->nonce != vr->nonce) || is_of_another_life(qp, p->bth.psn)) {
		tp->counters.rx_dropped++;
		return;
	}
	if (request) {
		vr->caps_reply = true;
		vr->reply_nonce = c->nonce;
		qp_activate(tp, qp);
	}
	if (qp->ops == &rc_ops) { /* decided: it is told so; the next QP may do better */
		if (c->profile && tp->protocol == TRANSPORT_AUTO)
			pair_learn(vr->pair, PAIR_VEROCE, now_ns);
		return;
	}
	if (!c->profile) {
		if (vr->peer != PEER_CONFIRMED && tp->protocol == TRANSPORT_AUTO) {
			pair_learn(vr->pair, PAIR_UNKNOWN, now_ns);
			veroce_fall_back(tp, qp, now_ns);
		}
		return;
	}
	pair_learn(vr->pair, PAIR_VEROCE, now_ns);
	veroce_heard(tp, qp, !request, now_ns);
	if (!contradicts(tp, qp, c))
		agree(tp, qp, c, now_ns);
	else if (!vr->caps_known)
		fail(tp, qp, now_ns);
	else
		tp->counters.rx_dropped++; /* a peer does not change its mind */
}
