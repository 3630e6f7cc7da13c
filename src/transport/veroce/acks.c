/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgement (veRoCE 5): when a receiver acknowledges, and how. One ACK or SACK a space and turn
 * covers all packets that arrived since the last one.
 *
 * To a peer with CAPS_SACK_ANY, which takes a SACK for information, every hole is reported at once. A base peer
 * takes a SACK for a loss, so it gets one when a packet is further ahead of the oldest hole than the paths
 * reorder (T), or when a hole has been there for a while and nothing arrives (5.3, 3 and 4).
 */
#include <assert.h>
#include <string.h>

#include "transport/message.h"
#include "transport/veroce/acks.h"
#include "transport/veroce/caps.h"
#include "transport/veroce/control.h"
#include "transport/veroce/responder_reads.h"
#include "transport/veroce/veroce.h"
#include "wire/aeth.h"

enum {
	T_MIN = 3,
	T_START_A_PATH = 4,
	EXT_ROUNDS = 16,      /* round trips after which the greatest reordering measured shrinks by an eighth */
	BASE_SACKS_MAX = 4,   /* packets of one block each, where a packet may not hold several */
	FULL_PACKETS = 4,     /* SACK packets that answer a probe */
	SLOW_LAG_A_PATH = 16, /* a packet that is further behind is slow (9.1) */
	HOLE_TRIES_MAX = 8,   /* SACKs for a hole that stays, each after twice the time */
	TRIMS_MIN = 16
};

static const uint64_t hole_ns_min = 25000;

static bool is_rsp(const struct qp *qp, const struct receiver *in)
{
	return in == &qp->veroce->w->r_in;
}

/* T = 1.25 * ext + 1 (5.4), so that T starts at 4 a path. */
uint16_t acks_ext_start(uint32_t paths)
{
	return (uint16_t)((T_START_A_PATH * paths - 1) * 4 / 5);
}

bool acks_nak_ready(const struct qp *qp)
{
	const struct veroce *vr = qp->veroce;

	if (vr->w->fatal && !vr->w->cut_short && responder_reads_pending(qp))
		return false;
	return vr->w->q_in.nak_due || vr->w->r_in.nak_due;
}

static uint32_t threshold(const struct transport *tp, const struct receiver *in)
{
	uint32_t t = in->ext + (in->ext + 3u) / 4u + 1u;

	if (t < T_MIN)
		t = T_MIN;
	return t < tp->config.veroce.rx_window / 2 ? t : tp->config.veroce.rx_window / 2;
}

static bool has_holes(const struct receiver *in)
{
	return rx_distance(&in->rx) && !in->stalled;
}

static uint64_t hole_round_ns(const struct qp *qp)
{
	uint64_t srtt = qp->veroce->pair->srtt_ns;

	return srtt > hole_ns_min ? srtt : hole_ns_min;
}

/* Packets of a QP with a share arrive so far apart that an ACK that waits would cover one more at most. */
static bool come_apart(const struct transport *tp, const struct qp *qp)
{
	return qp->veroce->caps & CAPS_RXSHARE && 2 * tp->rxshare.packet_ns >= tp->acks[ACK_LAZY].delay_ns;
}

void acks_note(struct transport *tp, struct qp *qp, struct receiver *in, bool now, uint64_t now_ns)
{
	bool holes = has_holes(in), news = holes && in->rx.hpsn != in->sack_hpsn;
	uint32_t packets = holes && in->ack_packets > VEROCE_ACK_PACKETS ? VEROCE_ACK_PACKETS : in->ack_packets;

	in->ack_due = true;
	in->hole_tries = 0;
	if (holes && !(qp->veroce->caps & CAPS_SACK_ANY))
		in->hole_ns = now_ns + (qp->veroce->pair->srtt_ns / 4 > hole_ns_min ? qp->veroce->pair->srtt_ns / 4
										    : hole_ns_min);
	else
		in->hole_ns = 0;
	if (in->ce || in->unacked >= packets || (now && (holes || !tp->hold_acks)) || come_apart(tp, qp))
		ack_schedule(tp, qp, ACK_NOW, now_ns);
	else if (now)
		ack_schedule(tp, qp, ACK_HELD, now_ns);
	else
		ack_schedule(tp, qp, qp->veroce->acks_rarely && !holes ? ACK_RARE : ACK_LAZY, now_ns);
	if (news && in->hole_ns)
		veroce_rearm(tp, qp, now_ns);
}

void acks_nak(struct transport *tp, struct qp *qp, struct receiver *in, uint32_t psn, uint8_t syndrome)
{
	in->nak_due = true;
	in->nak_psn = psn;
	in->nak_syndrome = syndrome;
	qp_activate_to_answer(tp, qp);
}

/* Up to as many as PSNs may be under way, whatever a peer or switch makes up. */
static bool grow_trims(struct transport *tp, struct receiver *in)
{
	uint32_t size = in->trims_size ? in->trims_size * 2 : TRIMS_MIN;
	struct trimmed *trims;

	trims = size <= tp->config.veroce.rx_window ? pool_get(&tp->pool, size * sizeof(*trims)) : NULL;
	if (!trims)
		return false;
	if (in->trims_count)
		memcpy(trims, in->trims, in->trims_count * sizeof(*trims));
	pool_put(&tp->pool, in->trims, in->trims_size * sizeof(*trims));
	in->trims = trims;
	in->trims_size = size;
	return true;
}

void acks_trimmed(struct transport *tp, struct qp *qp, struct receiver *in, uint32_t psn)
{
	tp->counters.rx_trimmed++;
	/* Without memory the packet counts as lost, which the sender detects by itself. */
	if (in->trims_count == in->trims_size && !grow_trims(tp, in))
		return;
	in->trims[in->trims_count++] =
		(struct trimmed){.psn = psn, .tx1 = in->echo_tx1, .rx1 = in->echo_rx1, .path = in->path};
	ack_schedule(tp, qp, ACK_NOW, 0);
}

void acks_drop(struct transport *tp, struct receiver *in)
{
	pool_put(&tp->pool, in->trims, in->trims_size * sizeof(*in->trims));
	in->trims = NULL;
	in->trims_size = in->trims_count = in->trims_sent = 0;
}

/* A packet arrived after one that was sent `lag` PSNs later: updates T (5.4). */
static void reordered(struct transport *tp, struct qp *qp, struct receiver *in, const struct veroce_packet *p,
		      uint32_t lag, uint64_t now_ns)
{
	uint64_t fade_ns = EXT_ROUNDS * hole_round_ns(qp);

	if (now_ns > in->ext_ns) {
		if (in->ext_ns)
			in->ext -= in->ext / 8;
		in->ext_ns = now_ns + fade_ns;
	}
	if (p->bth.retrans)
		return;
	if (!is_rsp(qp, in) && lag > SLOW_LAG_A_PATH * qp->veroce->pair->path_count)
		control_slow(tp, qp, p->bth.psn, now_ns);
	if (lag <= in->ext)
		return;
	in->ext = (uint16_t)(lag < UINT16_MAX ? lag : UINT16_MAX);
}

void acks_arrived_news(struct transport *tp, struct qp *qp, struct receiver *in, const struct veroce_packet *p,
		       struct acks_before before, uint64_t now_ns)
{
	bool order = !before.had_holes && !rx_has_holes(&in->rx) && !p->bth.retrans;

	/* The next turn acknowledges it in any case, with or without AckReq. */
	if (order && in->ack_due && acks_go_next(tp, qp)) {
		if (in->unacked < UINT16_MAX)
			in->unacked++;
		return;
	}
	if (psn_diff(p->bth.psn, before.hpsn) < 0)
		reordered(tp, qp, in, p, (uint32_t)psn_diff(before.hpsn, p->bth.psn), now_ns);
	if (in->unacked < UINT16_MAX)
		in->unacked++;
	acks_note(tp, qp, in, p->bth.ackreq || p->bth.retrans || (before.had_holes && !rx_has_holes(&in->rx)), now_ns);
}

void acks_check_counted(const struct transport *tp, const struct qp *qp, const struct receiver *before,
			const struct receiver *in, const struct veroce_packet *p)
{
	/* The general rule would have accepted it, as the next one in order. */
	assert(rx_judge(&before->rx, p->bth.psn, caps_rx_window(tp, qp->veroce)) == RX_NEW);
	assert(p->bth.psn == before->rx.epsn && p->po == before->po);
	assert(p->msn == psn_add(before->amsn, 1));
	assert(p->info->flags & F_MIDDLE);
	assert(!before->stalled && !before->early_bytes);
	/* epsn has moved over it, inside its message ... */
	assert(in->rx.epsn == psn_add(before->rx.epsn, 1) && in->rx.hpsn == before->rx.epsn && !in->rx.window);
	assert(in->po == psn_add(before->po, 1));
	assert((in->message == before->message || !before->po) && in->amsn == before->amsn);
	/* ... and acks_arrived() would have counted it. */
	assert(in->ack_due && before->ack_due);
	assert(in->unacked == before->unacked + 1);
	assert((in->unacked < in->ack_packets && !p->bth.ackreq) || acks_go_next(tp, qp));
	assert(in->nak_due == before->nak_due && in->hole_ns == before->hole_ns && in->dups == before->dups);
	assert(!in->ce);
}

/* ---- packets ------------------------------------------------------------------------------------ */

/*
 * 5.3, 5: the path of the packet that is answered. Its source port is the peer's; our port of the same index
 * is the nearest equivalent that a socket can have. An answer with time stamps names the packet's path (13.2), so it
 * goes along with what leaves in this turn: of the acknowledgements of several QPs, or behind data, none costs a call
 * of its own.
 */
static uint32_t answer_path(const struct transport *tp, const struct qp *qp, uint32_t arrival_path, bool stamped)
{
	struct pair *pair = qp->veroce->pair;
	int along = stamped ? veroce_path_of_turn(tp, pair) : PAIR_NO_PATH;
	uint32_t path = along == PAIR_NO_PATH ? arrival_path % pair->path_count : (uint32_t)along;

	return pair->path[path].down ? (uint32_t)pair_pick_any(pair, PATHS_MAX) : path;
}

/* An acknowledgement of any kind, without the fields that all kinds take from the receiver. */
struct answer {
	uint8_t opcode;
	uint8_t syndrome;
	bool becn;
	uint32_t psn;
	uint32_t po;
	const uint8_t *sacks; /* sack_count SACKETHs back to back */
	uint32_t sack_count;
	const struct trimmed *trimmed; /* the packet that it answers; NULL: the one that arrived last */
};

/* With room for a share. */
static uint32_t len_max(const struct tx *tx, const struct answer *a)
{
	return ACKS_STAMPED_LEN + TSEETH_SHARE_LEN + a->sack_count * SACKETH_LEN + tx->seal->overhead;
}

/* Lays one out. False: no room. */
static bool lay_out(struct transport *tp, struct qp *qp, const struct receiver *in, const struct answer *a,
		    uint64_t now_ns)
{
	const struct trimmed *t = a->trimmed;
	struct veroce_packet p;
	uint32_t tx1 = t ? t->tx1 : in->echo_tx1, rx1 = t ? t->rx1 : in->echo_rx1;
	uint8_t path = t ? t->path : in->path;
	bool stamped = rx1 && qp->veroce->caps & CAPS_TS && path < PATHS_MAX;
	bool shares = qp->veroce->caps & CAPS_RXSHARE && rxshare_is_told(&tp->rxshare, now_ns);
	uint32_t leaves_on = answer_path(tp, qp, path, stamped);
	const struct flow *flow = veroce_flow(tp, qp, leaves_on, false);
	struct pair *pair = qp->veroce->pair;
	uint8_t *out = flow ? tx_room_for_answer(&tp->tx, len_max(&tp->tx, a)) : NULL;

	if (!out)
		return false;
	/* Members of headers that an acknowledgement lacks are not set. */
	p.bth = (struct bth){.opcode = a->opcode,
			     .migreq = true,
			     .pkey = qp->pkey,
			     .becn = a->becn,
			     .dqpn = qp->dest_qpn,
			     .psn = a->psn};
	p.aeth = (struct aeth){.syndrome = a->syndrome, .msn = in->amsn};
	p.po = a->po;
	p.sacks = a->sacks;
	p.sack_count = a->sack_count;
	if (stamped) {
		p.bth.ts = true;
		p.tse = (struct tseeth){
			.tx1 = tx1,
			.rx1 = rx1,
			.tx2 = (uint32_t)now_ns | 1,
			.path_id = path,
			.path_rcv = pair->arrivals[path].packets & PSN_MASK,
			.dups = in->dups,
			.path_ce = pair->arrivals[path].ce & PSN_MASK,
			.has_share = shares,
			.share_kbps = tp->rxshare.share_kbps,
		};
	} else if (shares) {
		p.bth.ts = true;
		p.tse = (struct tseeth){.path_id = UINT8_MAX, .has_share = true, .share_kbps = tp->rxshare.share_kbps};
	}
	tx_commit_answer(&tp->tx, flow, qp->dest_qpn, veroce_encode_headers(out, &p));
	pair_left(pair, tp->tx.turn, leaves_on);
	return true;
}

static uint32_t highest_bit(const uint64_t bits[2])
{
	if (bits[1])
		return 128 - (uint32_t)__builtin_clzll(bits[1]);
	return bits[0] ? 64 - (uint32_t)__builtin_clzll(bits[0]) : 0;
}

/* One block from `from` on. False: nothing in its range has arrived. */
static bool block_at(const struct receiver *in, uint32_t from, struct sacketh *h)
{
	rx_arrived128(&in->rx, from, h->bits);
	h->start_psn = from;
	h->valid_len = (uint8_t)highest_bit(h->bits);
	/* PSNs below hPSN whose bit is 0 are missing; those above it are unknown. */
	if (psn_diff(in->rx.hpsn, psn_add(from, SACKETH_BITS - 1)) >= 0)
		h->valid_len = SACKETH_BITS;
	if (h->valid_len)
		return true;
	h->valid_len = 1;
	return false;
}

static bool has_block(const struct sacketh *h, uint32_t count, uint32_t psn)
{
	for (uint32_t i = 0; i < count; i++) {
		if (h[i].start_psn == psn)
			return true;
	}
	return false;
}

/*
 * The blocks of one answer: from aPSN + 1 on (5.5), then every group of 128 with arrivals that no SACK has reported
 * yet, then the other groups by turns, as earlier answers may have been lost.
 */
static uint32_t blocks(struct receiver *in, struct sacketh *h, uint32_t max)
{
	uint32_t first = in->rx.epsn / RX_GROUP + 1, count = 1, psn = first * RX_GROUP & PSN_MASK;
	uint32_t groups = psn_diff(in->rx.hpsn, psn) < 0 ? 0 : ((in->rx.hpsn - psn) & PSN_MASK) / RX_GROUP + 1;

	block_at(in, in->rx.epsn, &h[0]);
	while (count < max && groups && rx_take_fresh(&in->rx, psn, &psn)) {
		count += block_at(in, psn, &h[count]);
		psn = psn_add(psn, RX_GROUP);
	}
	for (uint32_t i = 0; i < groups && count < max; i++) {
		uint32_t g = first + in->sack_turn++ % groups;

		if (!has_block(h, count, g * RX_GROUP & PSN_MASK))
			count += block_at(in, g * RX_GROUP & PSN_MASK, &h[count]);
	}
	return count;
}

/*
 * Reports the packets that have arrived beyond aPSN. Sends several SACKs where each may hold one block only, or
 * in answer to a probe, whose sender knows nothing else.
 */
static bool send_sack(struct transport *tp, struct qp *qp, struct receiver *in, uint64_t now_ns)
{
	bool several = qp->veroce->caps & CAPS_MULTI_SACK;
	uint32_t packets = !several ? BASE_SACKS_MAX : in->asked ? FULL_PACKETS : 1;
	uint32_t room = several ? VEROCE_SACKS_MAX : 1;
	struct sacketh h[FULL_PACKETS * VEROCE_SACKS_MAX];
	uint8_t bytes[sizeof(h) / sizeof(*h) * SACKETH_LEN];
	uint32_t count = blocks(in, h, packets * room), sent = 0;
	struct answer a = {
		.opcode = is_rsp(qp, in) ? OP_RC_SACK_RSP : OP_RC_SACK,
		.syndrome = AETH_ACK | AETH_CREDIT_INVALID,
		.becn = in->ce,
		.psn = (in->rx.epsn - 1) & PSN_MASK,
		.po = in->po,
	};

	for (uint32_t i = 0; i < count; i++)
		sacketh_encode(bytes + i * SACKETH_LEN, &h[i]);
	while (sent < count) {
		a.sacks = bytes + sent * SACKETH_LEN;
		a.sack_count = count - sent < room ? count - sent : room;
		if (!lay_out(tp, qp, in, &a, now_ns))
			break;
		sent += a.sack_count;
		a.becn = false;
	}
	if (!sent)
		return false;
	tp->counters.sacks_sent++;
	in->sack_hpsn = in->rx.hpsn;
	return true;
}

static uint8_t ack_opcode(const struct qp *qp, const struct receiver *in)
{
	return is_rsp(qp, in) ? OP_RC_ACK_RSP : OP_RC_ACK;
}

/* Sends the Packet Drop NAKs that are due. They acknowledge nothing (5.2). */
static bool send_trims(struct transport *tp, struct qp *qp, struct receiver *in, uint64_t now_ns)
{
	for (; in->trims_sent < in->trims_count; in->trims_sent++) {
		const struct trimmed *t = &in->trims[in->trims_sent];
		const struct answer a = {
			.opcode = ack_opcode(qp, in),
			.syndrome = AETH_NAK | NAK_PSN_SEQUENCE,
			.psn = t->psn,
			.po = POETH_NO_INFO,
			.trimmed = t,
		};

		if (!lay_out(tp, qp, in, &a, now_ns))
			return false;
		tp->counters.naks_sent++;
	}
	acks_drop(tp, in);
	return true;
}

static bool send_nak(struct transport *tp, struct qp *qp, struct receiver *in, uint64_t now_ns)
{
	const struct answer a = {
		.opcode = ack_opcode(qp, in),
		.syndrome = in->nak_syndrome,
		.psn = in->nak_psn,
		.po = POETH_NO_INFO,
	};

	if (!lay_out(tp, qp, in, &a, now_ns))
		return false;
	in->nak_due = false;
	message_answered(tp, in->nak_syndrome);
	if (qp->veroce->w->fatal) {
		qp_raise(tp, qp, rx_consequences[qp->veroce->w->fatal].event);
		qp_to_error(tp, qp, now_ns);
	}
	return true;
}

static bool send_ack(struct transport *tp, struct qp *qp, const struct receiver *in, uint64_t now_ns)
{
	const struct answer a = {
		.opcode = ack_opcode(qp, in),
		.syndrome = AETH_ACK | AETH_CREDIT_INVALID,
		.becn = in->ce,
		.psn = (in->rx.epsn - 1) & PSN_MASK,
		.po = in->po,
	};

	if (!lay_out(tp, qp, in, &a, now_ns))
		return false;
	tp->counters.acks_sent++;
	return true;
}

bool acks_send(struct transport *tp, struct qp *qp, struct receiver *in, uint64_t now_ns)
{
	bool holes = has_holes(in), sack;

	if (in->trims && !send_trims(tp, qp, in, now_ns))
		return false;
	if (in->nak_due && acks_nak_ready(qp) && !send_nak(tp, qp, in, now_ns))
		return false;
	if (!in->ack_due || qp_get_state(qp) == QPS_ERR)
		return true;
	sack = holes && (qp->veroce->caps & CAPS_SACK_ANY || rx_distance(&in->rx) > threshold(tp, in) || in->hole_due);
	if (sack) {
		if (!send_sack(tp, qp, in, now_ns))
			return false;
		if (in->hole_due && in->hole_tries < HOLE_TRIES_MAX)
			in->hole_ns = now_ns + (hole_round_ns(qp) << in->hole_tries++);
		in->hole_due = false;
	} else if (!send_ack(tp, qp, in, now_ns)) {
		return false;
	}
	in->ack_due = false;
	in->asked = false;
	in->ce = false;
	in->unacked = 0;
	return true;
}

void acks_expire(struct transport *tp, struct qp *qp, struct receiver *in, uint64_t now_ns)
{
	if (!in->hole_ns || in->hole_ns > now_ns)
		return;
	in->hole_ns = 0;
	if (!has_holes(in))
		return;
	in->hole_due = true;
	in->ack_due = true;
	ack_schedule(tp, qp, ACK_NOW, now_ns);
}
