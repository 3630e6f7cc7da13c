/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end that has moved asks until its peer has followed, or for as long as a HOLD may last. Its peer keeps nothing for a
 * question: the challenge is a function of the question and of a secret, so a copy of an old question costs one answer.
 *
 * What is in flight when an address changes has left over paths that are not used any more. It is sent again over the new
 * ones, whose windows begin anew.
 */
#include "transport/veroce/roam.h"

#include <errno.h>
#include <string.h>

#include "base/siphash.h"
#include "transport/archive.h"
#include "transport/veroce/control.h"
#include "transport/veroce/hold.h"
#include "transport/veroce/recovery.h"
#include "transport/veroce/timeouts.h"
#include "transport/veroce/veroce.h"

enum { TRIES_QUICK = 4, TRIES_SHIFT_MAX = 7, MAC_WORDS = 7 };

static const uint64_t ask_ns_min = 1000000;
static const uint64_t ask_for_ns = HOLD_MS_MAX * UINT64_C(1000000);

static bool is_same(const uint8_t a[16], const uint8_t b[16])
{
	return !memcmp(a, b, 16);
}

bool roam_is_agreed(const struct qp *qp)
{
	return qp->veroce->caps & CAPS_ROAM && veroce_is_answered(qp->veroce) && !qp->peer->local;
}

static struct roam *take_roam(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;

	if (vr->roam)
		return vr->roam;
	vr->roam = alloc_get(&tp->alloc, sizeof(*vr->roam));
	if (!vr->roam)
		return NULL;
	memcpy(vr->roam->peer_gid, qp->flow.dst, sizeof(vr->roam->peer_gid));
	memcpy(vr->roam->peer_now, qp->flow.dst, sizeof(vr->roam->peer_now));
	return vr->roam;
}

/* ---- proofs ---------------------------------------------------------------------------------------------- */

/* The addresses are the packet's: a proof holds for the place that it was made for. */
static uint64_t mac_of(uint32_t to_nonce, uint32_t from_nonce, const struct roameth *h, uint32_t dqpn,
		       const uint8_t src[16], const uint8_t dst[16])
{
	uint8_t key[16] = {[8] = 'V', 'R', 'X', '1', 'R', 'O', 'A', 'M'};
	const uint64_t words[MAC_WORDS] = {(uint64_t)h->step << 48 | (uint64_t)h->source_qpn << 24 | dqpn,
					   h->number,
					   h->challenge,
					   get_be64(src),
					   get_be64(src + 8),
					   get_be64(dst),
					   get_be64(dst + 8)};

	put_be32(key, to_nonce);
	put_be32(key + 4, from_nonce);
	return siphash_words(key, words, MAC_WORDS);
}

/* One comparison of two words: how long it takes says nothing about where they differ. */
static bool is_proved(const struct qp *qp, const struct roameth *h, const struct flow *flow)
{
	const struct veroce *vr = qp->veroce;

	return h->mac == mac_of(vr->nonce, vr->peer_nonce, h, qp->qpn, flow->src, flow->dst);
}

/* What the peer must send back from that address. */
static uint64_t challenge_of(const struct transport *tp, const struct qp *qp, uint32_t number, const uint8_t at[16])
{
	const uint64_t words[] = {(uint64_t)number << 32 | qp->qpn, qp->veroce->nonce, get_be64(at), get_be64(at + 8)};

	return siphash_words(tp->secret, words, sizeof(words) / sizeof(words[0])) | 1;
}

/* ---- packets --------------------------------------------------------------------------------------------- */

static bool send(struct transport *tp, struct qp *qp, struct roameth h, const uint8_t to[16])
{
	struct veroce *vr = qp->veroce;
	struct flow f = veroce_flow_of(tp, qp, 0, false);
	struct veroce_packet p = {
		.bth = {.opcode = OP_ROAM, .migreq = true, .pkey = qp->pkey, .dqpn = qp->dest_qpn},
	};
	const struct flow *kept;
	uint8_t *out;

	memcpy(f.dst, to, sizeof(f.dst));
	kept = tx_keep_flow(&tp->tx, &f);
	out = kept ? tx_room(&tp->tx, TX_HEADROOM_MAX) : NULL;
	if (!out)
		return false;
	h.source_qpn = qp->qpn;
	h.mac = mac_of(vr->peer_nonce, vr->nonce, &h, qp->dest_qpn, f.src, f.dst);
	p.roam = h;
	tx_commit(&tp->tx, kept, qp->dest_qpn, veroce_encode_headers(out, &p));
	return true;
}

static bool send_question(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct roam *r = qp->veroce->roam;
	/* The peer's retries last for as little as it likes, so a few questions follow each other at once. */
	uint8_t late = r->tries > TRIES_QUICK ? r->tries - TRIES_QUICK : 0;
	uint8_t shift = late < TRIES_SHIFT_MAX ? late : TRIES_SHIFT_MAX;

	if (!send(tp, qp,
		  (struct roameth){.step = r->challenge ? ROAM_ECHO : ROAM_MOVED,
				   .number = r->number,
				   .challenge = r->challenge},
		  qp->flow.dst))
		return false;
	r->due = false;
	r->ask_ns = now_ns + (ask_ns_min << shift);
	if (r->tries < UINT8_MAX)
		r->tries++;
	return true;
}

bool roam_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct roam *r = vr->roam;

	if (vr->roam_reply &&
	    !send(tp, qp,
		  (struct roameth){.step = r->reply, .number = r->reply_number, .challenge = r->reply_challenge},
		  r->reply_to))
		return false;
	vr->roam_reply = false;
	return !vr->roams || !r->due || send_question(tp, qp, now_ns);
}

/* ---- another address --------------------------------------------------------------------------------------- */

static void leave_paths(struct transport *tp, struct qp *qp, struct sender *s, uint32_t path_count)
{
	struct veroce *vr = qp->veroce;
	bool refused = veroce_is_q(qp, s) && vr->w->refused;

	s->calm = 0;
	s->reo_ns = 0;
	s->flowlet.path = (uint8_t)(s->flowlet.path % path_count);
	s->flowlet.left = s->flowlet.open = 0;
	for (uint32_t psn = s->tx.una; psn != s->tx.nxt; psn = psn_add(psn, 1)) {
		struct tx_record *r = tx_record(&s->tx, psn);

		if (r->state == TX_FLYING) {
			path_forget(vr->pair, r->path, r->bytes);
			recovery_near_left(vr, r->bytes);
			tx_space_lose(&s->tx, psn);
			r->timed_out = true;
		}
		/* As recovery_lose(): packets that may not leave yet would hold it back. */
		if (refused && r->state == TX_LOST && psn_diff(psn, vr->w->let_psn) <= 0)
			tx_space_hurry(&s->tx, psn);
		r->path = (uint8_t)(r->path % path_count);
	}
}

/* *Takes* the pair's user. */
static void change_pair(struct transport *tp, struct qp *qp, struct pair *pair)
{
	struct veroce *vr = qp->veroce;
	struct pair *before = vr->pair;

	if (vr->w) {
		recovery_idle(tp, qp, false);
		list_remove(&vr->w->waiting);
		vr->w->woken = false;
		leave_paths(tp, qp, &vr->w->q, pair->path_count);
		leave_paths(tp, qp, &vr->w->r, pair->path_count);
		vr->w->q_in.echo_rx1 = 0;
		vr->w->r_in.echo_rx1 = 0;
		recovery_wake(tp, before);
	}
	vr->pair = pair;
	pair_put(&tp->pairs, before);
}

/* 0, with the flow between these two from now on; or -ENOMEM. There is a roam. */
static int go_between(struct transport *tp, struct qp *qp, const uint8_t src[16], const uint8_t dst[16],
		      uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct pair *pair = pair_get(&tp->pairs, src, dst, vr->pair->local, qp->mtu, now_ns);

	if (!pair)
		return -ENOMEM;
	if (vr->w && !pair_begin(&tp->pairs, pair)) {
		pair_put(&tp->pairs, pair);
		return -ENOMEM;
	}
	pair_learn(pair, PAIR_VEROCE, now_ns);
	change_pair(tp, qp, pair);
	memcpy(vr->roam->peer_now, dst, sizeof(vr->roam->peer_now));
	memcpy(qp->flow.src, src, sizeof(qp->flow.src));
	memcpy(qp->flow.dst, dst, sizeof(qp->flow.dst));
	veroce_readdress(tp, qp);
	tp->qp_changes++;
	return 0;
}

/* ---- the end that has moved ---------------------------------------------------------------------------------- */

int roam_go(struct transport *tp, struct qp *qp, const uint8_t to[16], uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct roam *r = take_roam(tp, qp);
	uint8_t peer[16];

	memcpy(peer, qp->flow.dst, sizeof(peer));
	if (!r || go_between(tp, qp, to, peer, now_ns))
		return -ENOMEM;
	r->number = tp->roam_number;
	r->challenge = 0;
	r->tries = 0;
	r->since_ns = now_ns;
	r->due = true;
	vr->roams = true;
	qp_activate(tp, qp);
	return 0;
}

static void go_on(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	vr->roams = false;
	vr->roam->due = false;
	if (vr->w)
		timeouts_restart(tp, qp, now_ns);
	qp_activate(tp, qp);
}

uint64_t roam_deadline(const struct veroce *vr)
{
	return vr->roams && !vr->roam->due ? vr->roam->ask_ns : TIMER_NEVER;
}

/* A peer that has not followed in time is gone, or was moved itself: the QP fails by the usual rules. */
void roam_expire(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct roam *r = qp->veroce->roam;

	if (roam_deadline(qp->veroce) > now_ns)
		return;
	if (now_ns - r->since_ns >= ask_for_ns) {
		go_on(tp, qp, now_ns);
		return;
	}
	r->due = true;
	qp_activate(tp, qp);
}

/* Whether it was an answer to this end's question. */
static bool answered(struct transport *tp, struct qp *qp, const struct roameth *h, uint64_t now_ns)
{
	struct roam *r = veroce_roam(qp->veroce);

	if (!qp->veroce->roams || h->number != r->number)
		return false;
	if (h->step == ROAM_CHALLENGE) {
		r->due = r->challenge != h->challenge;
		r->challenge = h->challenge;
		qp_activate(tp, qp);
		return true;
	}
	if (h->challenge != r->challenge)
		return false;
	go_on(tp, qp, now_ns);
	return true;
}

/* ---- its peer -------------------------------------------------------------------------------------------------- */

static bool is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

static bool reply(struct transport *tp, struct qp *qp, uint8_t step, const struct roameth *h, uint64_t challenge,
		  const uint8_t to[16])
{
	struct roam *r = take_roam(tp, qp);

	if (!r)
		return false;
	r->reply = step;
	r->reply_number = h->number;
	r->reply_challenge = challenge;
	memcpy(r->reply_to, to, sizeof(r->reply_to));
	qp->veroce->roam_reply = true;
	qp_activate(tp, qp);
	return true;
}

/* The peer is at the other end of that flow from now on. */
static bool follow(struct transport *tp, struct qp *qp, const struct roameth *h, const struct flow *flow,
		   uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (!reply(tp, qp, ROAM_DONE, h, h->challenge, flow->src) ||
	    go_between(tp, qp, qp->flow.src, flow->src, now_ns)) {
		vr->roam_reply = false;
		return false;
	}
	vr->roam->taken = h->number;
	tp->counters.peers_moved++;
	if (vr->held)
		hold_end(tp, qp, now_ns);
	else if (vr->w)
		timeouts_restart(tp, qp, now_ns);
	return true;
}

/* Whether the packet is one of a peer that has moved. */
static bool asked(struct transport *tp, struct qp *qp, const struct roameth *h, const struct flow *flow,
		  uint64_t now_ns)
{
	const struct roam *r = veroce_roam(qp->veroce);
	uint32_t taken = r ? r->taken : 0;
	uint64_t challenge = challenge_of(tp, qp, h->number, flow->src);

	/* The DONE was lost, or a copy came late. */
	if (h->number == taken && is_same(flow->src, qp->flow.dst))
		return reply(tp, qp, ROAM_DONE, h, h->challenge, flow->src);
	if (h->number <= taken || is_link_local(flow->src))
		return false;
	if (h->step == ROAM_MOVED)
		return reply(tp, qp, ROAM_CHALLENGE, h, challenge, flow->src);
	return h->challenge == challenge && follow(tp, qp, h, flow, now_ns);
}

static bool judge(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	const struct roameth *h = &rx->veroce->roam;
	const struct flow *flow = rx->pkt->flow;

	if (!roam_is_agreed(qp) || h->source_qpn != qp->dest_qpn || !h->number || !is_same(flow->dst, qp->flow.src) ||
	    !is_proved(qp, h, flow))
		return false;
	if (h->step == ROAM_MOVED || h->step == ROAM_ECHO)
		return asked(tp, qp, h, flow, rx->now_ns);
	return (h->step == ROAM_CHALLENGE || h->step == ROAM_DONE) && is_same(flow->src, qp->flow.dst) &&
	       answered(tp, qp, h, rx->now_ns);
}

void roam_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	if (!judge(tp, qp, rx))
		tp->counters.rx_dropped++;
}

bool roam_strange(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	if (!rx->veroce || !(rx->info->headers & H_ROAMETH))
		return false;
	roam_input(tp, qp, rx);
	return true;
}

/* ---- its life --------------------------------------------------------------------------------------------------- */

void roam_readdress(struct qp *qp)
{
	const struct roam *r = veroce_roam(qp->veroce);

	if (r && is_same(qp->flow.dst, r->peer_gid))
		memcpy(qp->flow.dst, r->peer_now, sizeof(qp->flow.dst));
}

void roam_silence(struct veroce *vr)
{
	vr->roams = false;
	vr->roam_reply = false;
}

void roam_forget(struct transport *tp, struct veroce *vr)
{
	struct roam *r = veroce_roam(vr);

	roam_silence(vr);
	if (!r)
		return;
	alloc_put(&tp->alloc, r, sizeof(*r));
	vr->roam = NULL;
}

void roam_archive(struct archive *a, struct transport *tp, struct veroce *vr)
{
	struct roam *r = veroce_roam(vr);
	bool has = r;

	archive_flag(a, &has, sizeof(has));
	archive_judge(a, has ? veroce_is_answered(vr) : !vr->roams && !vr->roam_reply);
	if (!has || a->err)
		return;
	if (a->loads) {
		r = alloc_get(&tp->alloc, sizeof(*r));
		if (!r) {
			archive_fail(a, -ENOMEM);
			return;
		}
		vr->roam = r;
	}
	ARCHIVE_ARRAYS(a, r, peer_gid, peer_now, reply_to);
	ARCHIVE(a, r, challenge, number, tries, due, reply, reply_number, reply_challenge, taken);
	ARCHIVE_TIMES(a, r, ask_ns, since_ns);
}
