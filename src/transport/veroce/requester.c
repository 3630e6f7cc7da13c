/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester: send WQEs cut into packets of space Q (veRoCE 7). Every packet can be placed by itself:
 * a WRITE has its address in each, a SEND the number of its receive WQE and its place in the message.
 * Lost packets leave before new ones, with the same bytes except for the path and the Retrans bit.
 */
#include <assert.h>
#include <string.h>

#include "transport/veroce/requester.h"

#include "transport/request.h"
#include "transport/veroce/ackreq.h"
#include "transport/veroce/caps.h"
#include "transport/veroce/fence_indicator.h"
#include "transport/veroce/recovery.h"
#include "transport/veroce/veroce.h"

enum { REQUEST_HEADROOM = TX_HEADROOM_MAX };

/* RQMSN counts SENDs and WRITEs with immediate (4.4). */
static bool takes_recv(const struct send_wqe *w)
{
	return w->opcode == WR_SEND || w->opcode == WR_SEND_IMM || w->opcode == WR_SEND_INV ||
	       w->opcode == WR_WRITE_IMM;
}

/* Its packets can be placed only in a receive WQE. */
static bool is_send(const struct send_wqe *w)
{
	return takes_recv(w) && w->opcode != WR_WRITE_IMM;
}

static void start_wqe(struct qp *qp, struct send_wqe *w)
{
	struct veroce *vr = qp->veroce;

	/* A READ takes one PSN, however long its response (4.1). */
	w->packets = request_has_response(w) ? 1 : request_packets(w->length, qp->veroce->mtu);
	w->psn_first = vr->psn_new;
	w->psn_last = psn_add(w->psn_first, w->packets - 1);
	w->done = false;
	vr->msn = psn_add(vr->msn, 1);
	w->msn = vr->msn;
	if (request_has_response(w)) {
		vr->reads = psn_add(vr->reads, 1);
		w->number = vr->reads;
		*veroce_read(vr, vr->reads) = qp->sq.next;
	} else if (takes_recv(w)) {
		w->number = vr->rqmsn;
		vr->rqmsn = psn_add(vr->rqmsn, 1);
	}
	vr->psn_new = psn_add(w->psn_last, 1);
	qp->sq.next++;
}

/* Makes room for as many READs and atomics as may be outstanding. */
static bool fit_reads(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;
	uint32_t size = 1, *ring;

	while (size < qp->max_rd_atomic)
		size *= 2;
	if (size <= vr->w->reads_size)
		return true;
	ring = pool_get(&tp->pool, size * sizeof(*ring));
	if (!ring)
		return false;
	for (uint32_t r = vr->w->reads_done; r != vr->reads; r = psn_add(r, 1))
		ring[psn_add(r, 1) & (size - 1)] = *veroce_read(vr, psn_add(r, 1));
	pool_put(&tp->pool, vr->w->reads, vr->w->reads_size * sizeof(*ring));
	vr->w->reads = ring;
	vr->w->reads_size = size;
	return true;
}

/*
 * Whether the next WQE overlaps an incomplete one. Remembers the newest of those: when it completes, all before it
 * have. All incomplete WQEs are compared on the next WQE's first turn, and again when the remembered one is complete.
 */
static __attribute__((noinline)) bool overlaps_older(struct transport *tp, struct qp *qp, const struct send_wqe *w)
{
	struct veroce_work *work = qp->veroce->w;

	if (work->overlaps && (int32_t)(work->overlapped - qp->sq.una) >= 0)
		return true;
	work->overlaps = false;
	for (uint32_t i = qp->sq.next; i != qp->sq.una; i--) {
		if (!fence_indicated(sq_at(&qp->sq, i - 1), w))
			continue;
		work->overlaps = true;
		work->overlapped = i - 1;
		tp->counters.overlaps_fenced++;
		return true;
	}
	return false;
}

static bool execute_next(struct transport *tp, struct qp *qp, struct send_wqe *w, uint64_t now_ns)
{
	w->packets = 0;
	w->psn_first = qp->veroce->psn_new;
	w->psn_last = (w->psn_first - 1) & PSN_MASK;
	return request_execute(tp, qp, now_ns);
}

/* Whether the WQE at sq.next, which is not plain, may start now. */
static __attribute__((noinline)) bool may_start(struct transport *tp, struct qp *qp, const struct send_wqe *w,
						uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	enum wc_status status = request_judge(tp, qp, w);

	if (status != WC_SUCCESS) {
		request_fail_in_turn(tp, qp, qp->sq.next, status, now_ns);
		return false;
	}
	if (qp->veroce->cut_open && w->length > qp->mtu && !caps_cut_settled(tp, qp))
		return false; /* the answer to CAPS activates the QP */
	if (request_has_response(w) && ((vr->reads - vr->w->reads_done) & PSN_MASK) >= qp->max_rd_atomic)
		return false;
	if (request_has_response(w) && !fit_reads(tp, qp)) {
		vr->w->starved = true;
		return false;
	}
	return true;
}

/* Starts the WQE at sq.next. False: it may not start now. */
static bool start(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct send_wqe *w;

	if (qp_get_state(qp) != QPS_RTS || qp->failed)
		return false;
	w = sq_at(&qp->sq, qp->sq.next);
	/* Stronger than IBTA 10.8.3.3, as data in flight has no order here: waits for all WQEs before. */
	if (w->flags & WR_FENCE && qp->sq.una != qp->sq.next)
		return false;
	if (tp->config.veroce.fence_indicator && overlaps_older(tp, qp, w))
		return false;
	if (request_is_local(w))
		return execute_next(tp, qp, w, now_ns);
	if (!request_is_plain(w, qp->mtu) && !may_start(tp, qp, w, now_ns))
		return false;
	start_wqe(qp, w);
	return true;
}

/* Starts the next WQE. False: there is none that may start now. */
static inline bool start_next(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	return qp->sq.next != sq_head(&qp->sq) && start(tp, qp, now_ns);
}

static void fill_headers(struct veroce_packet *p, const struct qp *qp, const struct send_wqe *w, uint32_t po,
			 uint32_t payload)
{
	bool first = po == 0, last = po + 1 == w->packets;
	bool cas = w->opcode == WR_CMP_SWAP;

	p->bth = (struct bth){
		.opcode = request_opcode[w->opcode][veroce_place(qp, first, last)],
		.se = last && w->flags & WR_SOLICITED && w->opcode != WR_WRITE,
		.migreq = true,
		.pad = (uint8_t)(-payload & 3),
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
		.psn = psn_add(w->psn_first, po),
	};
	p->msn = w->msn;
	p->rqmsn = w->number;
	p->po = po;
	p->imm_or_key = w->imm_or_key;
	if (request_is_atomic(w)) {
		p->atomic = (struct atomiceth){
			.va = w->remote_va,
			.rkey = w->rkey,
			.swap_add = cas ? w->atomic.swap : w->atomic.compare_add,
			.compare = cas ? w->atomic.compare_add : 0,
		};
	} else {
		p->reth = (struct reth){
			.va = w->remote_va + (uint64_t)po * qp->veroce->mtu,
			.rkey = w->rkey,
			.len = request_is_read(w) ? w->length : payload,
		};
		if (w->opcode == WR_FLUSH) {
			p->feth.placement = w->flush.placement;
			p->feth.selectivity = w->flush.selectivity;
			p->reth.len = w->flush.bytes;
		}
	}
}

static uint32_t payload_of(const struct qp *qp, const struct send_wqe *w, uint32_t po)
{
	if (request_has_response(w))
		return request_payload(w);
	return po + 1 == w->packets ? w->length - po * qp->veroce->mtu : qp->veroce->mtu;
}

/* A packet to be laid out: its WQE, its place in it, its path and its flags. */
struct request {
	struct send_wqe *w;
	uint32_t po;
	int path;
	bool again;   /* a copy */
	bool probe;   /* ... that is a probe */
	bool twin;    /* ... right behind another one */
	bool covered; /* it ends its WQE, and a packet behind it asks for an acknowledgement soon enough */
};

static enum ackreq_packet kind_of(const struct request *r)
{
	if (r->probe || (r->po + 1 == r->w->packets && !r->covered))
		return ACKREQ_AWAITED;
	return r->twin ? ACKREQ_TWIN : ACKREQ_ANY;
}

/* Returns its length; 0: no room in this turn; -1: the WQE's memory is gone. */
static int32_t lay_out(struct transport *tp, struct qp *qp, const struct request *r, uint64_t now_ns)
{
	const struct flow *flow = veroce_flow(tp, qp, (uint32_t)r->path, true);
	struct send_wqe *w = r->w;
	uint32_t po = r->po;
	uint32_t payload = payload_of(qp, w, po), at;
	struct veroce_packet p;
	uint8_t *out = flow ? tx_room(&tp->tx, payload + REQUEST_HEADROOM) : NULL;

	if (!out)
		return 0;
	fill_headers(&p, qp, w, po, payload);
	p.bth.retrans = r->again;
	p.bth.ackreq = ackreq_is_set(qp, &qp->veroce->w->q, p.bth.psn, kind_of(r));
	veroce_stamp(qp, &p, (uint32_t)r->path, now_ns);
	at = veroce_encode_headers(out, &p);
	if (!request_gather(tp, qp, w, po * qp->veroce->mtu, out + at, payload))
		return -1;
	if (p.bth.pad)
		memset(out + at + payload, 0, p.bth.pad);
	tx_commit(&tp->tx, flow, qp->dest_qpn, at + payload + p.bth.pad);
	return (int32_t)tx_last_len(&tp->tx);
}

enum sent { SENT, SENT_NO_ROOM, SENT_BLOCKED, SENT_FAILED };

static __attribute__((noinline)) enum sent send_again(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct sender *s = &qp->veroce->w->q;
	uint32_t psn = s->tx.again_head;
	const struct tx_record *r = tx_record(&s->tx, psn);
	struct send_wqe *w = sq_at(&qp->sq, r->item);
	int path = recovery_pick(tp, qp, s, r->bytes, r, now_ns);
	uint32_t item = r->item;
	bool twice = recovery_doubles(s, psn);
	struct request copy;
	int32_t len;

	if (path == PAIR_NO_PATH)
		return SENT_BLOCKED;
	copy = (struct request){
		.w = w,
		.po = (psn - w->psn_first) & PSN_MASK,
		.path = path,
		.again = true,
		.probe = r->probe,
	};
	len = lay_out(tp, qp, &copy, now_ns);
	if (len > 0) {
		recovery_resent(tp, qp, s, psn, path, now_ns);
		copy.probe = false;
		copy.twin = true;
		if (twice && lay_out(tp, qp, &copy, now_ns) > 0)
			tp->counters.retransmits++;
	}
	if (len < 0)
		request_fail_in_turn(tp, qp, item, WC_LOC_PROT_ERR, now_ns);
	return len > 0 ? SENT : len ? SENT_FAILED : SENT_NO_ROOM;
}

/* Lays out Middle packet `po` behind the one before it. False: no room, or its memory is gone. */
static bool follow(struct transport *tp, struct qp *qp, struct send_wqe *w, uint32_t po, int path, uint32_t psn)
{
	const struct sender *s = &qp->veroce->w->q;
	uint32_t at;
	uint8_t *out = veroce_next(tp, qp, (uint32_t)path, ackreq_is_set(qp, s, psn, ACKREQ_ANY), &at);

	if (!out || !request_gather(tp, qp, w, po * qp->veroce->mtu, out + at, qp->veroce->mtu))
		return false;
	veroce_commit_next(tp, qp, at);
	return true;
}

/* Lays out Middle packets behind the one of that PO, `max` with it at most. Returns their number with it. */
static uint32_t send_middles(struct transport *tp, struct qp *qp, struct send_wqe *w, uint32_t po, int path,
			     uint32_t max)
{
	uint32_t psn = qp->veroce->w->q.tx.nxt, count = 1;

	while (count < max && follow(tp, qp, w, po + count, path, psn_add(psn, count)))
		count++;
	return count;
}

/* Whether `next` and w, a message of one packet, make packets that differ only in numbers. */
static bool is_alike(const struct send_wqe *w, const struct send_wqe *next)
{
	return next->opcode == w->opcode && next->length == w->length && !request_has_response(w);
}

/* Whether the headers of such a packet follow from those of `before`, the one laid out last. */
static bool is_repeat(const struct send_wqe *before, const struct send_wqe *next)
{
	return (next->opcode == WR_WRITE || next->opcode == WR_SEND) && !((before->flags ^ next->flags) & WR_SOLICITED);
}

/* Lays out w, a message of one packet, behind the one it repeats. False: no room, or its memory is gone. */
static bool repeat(struct transport *tp, struct qp *qp, struct send_wqe *w, int path)
{
	struct path *own = qp->veroce->caps & CAPS_TS ? &qp->veroce->pair->own[path] : NULL;
	uint8_t *out = tx_room(&tp->tx, w->length + REQUEST_HEADROOM);
	uint32_t pad = -w->length & 3, at;
	struct veroce_packet p;

	if (!out)
		return false;
	p.bth.psn = w->psn_first;
	p.ts.path_seq = own ? own->stamp_seq : 0;
	p.msn = w->msn;
	p.rqmsn = w->number;
	p.reth.va = w->remote_va;
	p.reth.rkey = w->rkey;
	at = veroce_encode_alike(out, tx_last(&tp->tx), &p);
	if (!request_gather(tp, qp, w, 0, out + at, w->length))
		return false;
	if (pad)
		memset(out + at + w->length, 0, pad);
	if (own)
		own->stamp_seq++;
	tx_commit(&tp->tx, tp->tx.flow, qp->dest_qpn, at + w->length + pad);
	return true;
}

/* Lays out `next`, which is alike, behind the packet of `before`. */
static bool send_alike(struct transport *tp, struct qp *qp, const struct send_wqe *before, struct send_wqe *next,
		       int path, uint64_t now_ns)
{
	if (is_repeat(before, next))
		return repeat(tp, qp, next, path);
	return lay_out(tp, qp, &(struct request){.w = next, .path = path}, now_ns) > 0;
}

/*
 * Lays out the WQEs behind the one of that SQ index, as long as each makes a packet that differs from its packet only
 * in numbers; `max` with it at most. Returns their number with it.
 */
static uint32_t send_alikes(struct transport *tp, struct qp *qp, uint32_t index, int path, uint32_t max,
			    uint64_t now_ns)
{
	const struct send_wqe *before = sq_at(&qp->sq, index);
	uint32_t count = 1;

	for (; count < max; count++) {
		struct send_wqe *next = sq_at(&qp->sq, index + count);

		if (index + count == qp->sq.next && !start_next(tp, qp, now_ns))
			break;
		if (!is_alike(before, next) || !send_alike(tp, qp, before, next, path, now_ns))
			break;
		before = next;
	}
	return count;
}

/*
 * Sends one packet, and behind it those that take the same path and differ only in numbers: at most *budget, which it
 * reduces.
 */
static enum sent send_new(struct transport *tp, struct qp *qp, uint32_t *budget, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct sender *s = &vr->w->q;
	uint32_t index = vr->w->wqe, psn = s->tx.nxt, count = 1;
	struct send_wqe *w = sq_at(&qp->sq, index);
	uint32_t po = (psn - w->psn_first) & PSN_MASK, left = w->packets - po;
	uint32_t bytes = payload_of(qp, w, po) + REQUEST_HEADROOM, max;
	bool only = w->packets == 1;
	int path;
	int32_t len;

	if (tx_outstanding(&s->tx) >= s->peer_window)
		return SENT_BLOCKED; /* its acknowledgement will activate the QP */
	if (!veroce_reserve(tp, vr->w, s))
		return SENT_BLOCKED;
	path = recovery_pick(tp, qp, s, bytes, NULL, now_ns);
	if (path == PAIR_NO_PATH)
		return SENT_BLOCKED;
	len = lay_out(tp, qp,
		      &(struct request){.w = w,
					.po = po,
					.path = path,
					.covered = left == 1 && !only && ackreq_is_covered(tp, qp, index)},
		      now_ns);
	if (len < 0)
		request_fail_in_turn(tp, qp, index, WC_LOC_PROT_ERR, now_ns);
	if (len <= 0)
		return len ? SENT_FAILED : SENT_NO_ROOM;
	if (left > 2 && (po || veroce_starts_alike(qp))) {
		max = recovery_run(qp, s, path, bytes, (uint32_t)len, left - 1 < *budget ? left - 1 : *budget);
		count = send_middles(tp, qp, w, po, path, max);
	} else if (only && index + 1 != sq_head(&qp->sq)) {
		max = recovery_run(qp, s, path, bytes, (uint32_t)len, *budget);
		count = send_alikes(tp, qp, index, path, max, now_ns);
	}
	recovery_sent(
		tp, qp, s,
		&(struct tx_run){
			.item = index, .step = only, .count = count, .bytes = (uint16_t)len, .path = (uint8_t)path},
		now_ns);
	atomic_store_explicit(&qp->in_flight, true, memory_order_relaxed);
	if (only || count == left)
		vr->w->wqe += only ? count : 1;
	*budget -= count;
	return SENT;
}

/*
 * For lack of a receive WQE the peer refused SENDs with an RNR NAK: the packet that the NAK named, and those behind it
 * that arrived early. It dropped them and accepted all others. How many of them find a receive WQE now is unknown, and
 * each that arrives too soon is refused again. So the named packet leaves alone. Once it is acknowledged the rest of
 * its message follows, and then twice as many messages in each round.
 */
void veroce_requester_end_rnr(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce_work *w = qp->veroce->w;
	struct sender *s = &w->q;

	recovery_idle(tp, qp, false);
	w->rnr_until_ns = 0;
	s->from_ns = now_ns;
	s->progress_ns = now_ns;
	s->active_ns = now_ns;
	qp_activate(tp, qp);
	if (!tx_outstanding(&s->tx))
		return;
	w->refused = true;
	w->let_psn = s->tx.una;
	w->let_wqes = 0;
	/* From last to first, each to the front of the queue: so the oldest leaves first. */
	for (uint32_t psn = s->tx.nxt; psn != s->tx.una;) {
		const struct tx_record *r;

		psn = (psn - 1) & PSN_MASK;
		r = tx_record(&s->tx, psn);
		if (psn == s->tx.una || (r->state == TX_FLYING && is_send(sq_at(&qp->sq, r->item))))
			recovery_lose(tp, qp, s, psn, now_ns);
		if (r->state == TX_LOST)
			tx_space_hurry(&s->tx, psn);
	}
	/* It has AckReq, as the packets behind it wait for its acknowledgement. */
	tx_record(&s->tx, s->tx.una)->probe = true;
}

void veroce_requester_let_more(struct transport *tp, struct qp *qp)
{
	struct veroce_work *w = qp->veroce->w;
	const struct tx_space *tx = &w->q.tx;
	uint32_t first, last;

	if (!tx_outstanding(tx)) {
		w->refused = false;
	} else if (psn_diff(tx->una, w->let_psn) > 0) {
		w->let_wqes = w->let_wqes ? 2 * w->let_wqes : 1;
		first = tx_record(tx, tx->una)->item;
		last = tx_record(tx, (tx->nxt - 1) & PSN_MASK)->item;
		if (last - first < w->let_wqes)
			w->refused = false;
		else
			w->let_psn = sq_at(&qp->sq, first + w->let_wqes - 1)->psn_last;
	} else {
		return;
	}
	qp_activate(tp, qp);
}

void veroce_requester_ask_again(struct transport *tp, struct qp *qp, uint32_t index)
{
	qp->veroce->w->ask_again = true;
	qp->veroce->w->ask_again_wqe = index;
	qp_activate(tp, qp);
}

/* The copy has no record: the original was acknowledged, and only the response is missing. */
static bool send_question(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	const struct request question = {
		.w = sq_at(&qp->sq, vr->w->ask_again_wqe),
		.path = pair_pick_any(vr->pair, PATHS_MAX),
		.again = true,
	};

	if ((int32_t)(vr->w->ask_again_wqe - qp->sq.una) >= 0 && !lay_out(tp, qp, &question, now_ns))
		return false;
	vr->w->ask_again = false;
	tp->counters.retransmits++;
	return true;
}

uint32_t veroce_requester_next_len(const struct qp *qp)
{
	const struct send_wqe *w = sq_at(&qp->sq, qp->sq.next);
	uint32_t stamp = qp->veroce->caps & CAPS_TS ? TSETH_LEN : 0;

	if (qp->veroce->w->wqe != qp->sq.next || qp->sq.next == sq_head(&qp->sq) || w->length > qp->veroce->mtu ||
	    request_has_response(w))
		return UINT32_MAX;
	return veroce_header_len(request_opcode[w->opcode][REQUEST_ONLY]) + stamp + (w->length + 3) / 4 * 4;
}

bool veroce_requester_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct sender *s = &vr->w->q;
	enum sent sent = SENT;
	uint32_t budget = QP_OUTPUT_QUANTUM;

	if (qp->muted)
		return false;
	if (vr->w->ask_again && !send_question(tp, qp, now_ns))
		return true;
	while (sent == SENT) {
		enum qp_state state = qp_get_state(qp);

		if ((state != QPS_RTS && state != QPS_SQD) || vr->w->rnr_until_ns)
			return false;
		if (!budget)
			return true;
		if (vr->w->refused && (!s->tx.lost || psn_diff(s->tx.again_head, vr->w->let_psn) > 0))
			return false; /* the next acknowledgement makes room */
		if (s->tx.lost) {
			sent = send_again(tp, qp, now_ns);
			budget--;
			continue;
		}
		if (qp->failed && vr->w->wqe == qp->failed_wqe)
			return false;
		while (vr->w->wqe != qp->sq.next && request_is_local(sq_at(&qp->sq, vr->w->wqe)))
			vr->w->wqe++;
		if (vr->w->wqe == qp->sq.next) {
			if (!start_next(tp, qp, now_ns))
				return false;
			continue;
		}
		sent = send_new(tp, qp, &budget, now_ns);
	}
	return sent == SENT_NO_ROOM;
}
