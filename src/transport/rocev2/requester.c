/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC and UC requester: cuts send WQEs into request packets (IBTA 9.7.2, 9.7.3, 9.8.2). Go-back-N:
 * after a loss it sends again from the oldest unacknowledged PSN on, by moving one cursor.
 *
 * A long READ is split into chunks, each a READ request of its own: responses carry no AckReq and
 * are subject to no window, so only this keeps a responder from flooding us. Each chunk counts against
 * max_rd_atomic. A short one may be split into pairs of packets. When a READ is requested again, the chunks end where
 * they ended the first time, as a duplicate may not request more than the original did (IBTA 9.7.4.5.2).
 */
#include <assert.h>
#include <string.h>

#include "transport/rocev2/congestion.h"
#include "transport/qp.h"
#include "transport/request.h"
#include "transport/xrc.h"
#include "wire/atomiceth.h"
#include "wire/feth.h"
#include "wire/icrc.h"
#include "wire/ieth.h"
#include "wire/immdt.h"
#include "wire/psn.h"
#include "wire/reth.h"
#include "wire/xrceth.h"

void requester_start(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct requester *req = &qp->gbn->req;

	req->una = qp->sq_psn;
	req->psn = qp->sq_psn;
	req->high = qp->sq_psn;
	req->asked = (qp->sq_psn - 1) & PSN_MASK;
	req->psn_new = qp->sq_psn;
	req->wqe = qp->sq.next;
	req->retries = qp->retry_cnt;
	req->rnr_retries = qp->rnr_retry;
	aimd_init(&req->cc, tp->config.window_bytes, 2 * QP_ACKREQ_PACKETS * qp->mtu);
	congestion_start(tp, qp, now_ns);
}

/* Payload bytes that may be unacknowledged, and the most they ever may be. */
static uint64_t window_bytes(const struct qp *qp)
{
	const struct congestion *g = congestion_governing(qp);

	return g ? congestion_window(g) : qp->gbn->req.cc.window_bytes;
}

/* Distance from the oldest unacknowledged PSN: comparable over the whole 24 bits. */
static uint32_t offset(const struct requester *req, uint32_t psn)
{
	return (psn - req->una) & PSN_MASK;
}

void requester_go_back(struct qp *qp)
{
	qp->gbn->req.psn = qp->gbn->req.una;
	qp->gbn->req.asked = (qp->gbn->req.una - 1) & PSN_MASK;
	qp->gbn->req.wqe = qp->sq.una;
}

/*
 * How long the local ACK timer runs: IBTA 9.7.6.1.3 allows T to 4 T. A peer that is a process may wait
 * milliseconds for a processor without being dead, so short timers run for 4 T.
 */
uint64_t requester_timer_ns(const struct qp *qp)
{
	const uint64_t hiccup_ns = 16000000;
	uint64_t t = 4096ull << qp->timeout;

	if (t >= hiccup_ns)
		return t;
	return 4 * t < hiccup_ns ? 4 * t : hiccup_ns;
}

void requester_rearm(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct requester *req = &qp->gbn->req;

	if (req->rnr_wait)
		return;
	if (req->una == req->psn || !qp->timeout)
		req->rto_ns = TIMER_NEVER;
	else
		req->rto_ns = now_ns + requester_timer_ns(qp);
	requester_wake_by(tp, qp);
}

/* The timer may fire early: it then finds the later deadline and is set again. */
void requester_wake_by(struct transport *tp, struct qp *qp)
{
	uint64_t at = qp->gbn->req.rto_ns, other = congestion_deadline(tp, qp);

	if (other < at)
		at = other;
	if (at == TIMER_NEVER)
		timer_cancel(&tp->timers, &qp->timer);
	else if (!timer_is_set(&qp->timer) || qp->timer.deadline_ns > at)
		timer_set(&tp->timers, &qp->timer, at);
}

static void start_wqe(struct qp *qp, struct send_wqe *w)
{
	struct requester *req = &qp->gbn->req;

	w->packets = request_packets(w->length, qp->mtu);
	w->psn_first = req->psn_new;
	w->psn_last = psn_add(w->psn_first, w->packets - 1);
	req->psn_new = psn_add(w->psn_last, 1);
	qp->sq.next++;
}

/*
 * Whether a READ is requested in pairs of packets. Of the responses to one request the First and the Last have an AETH,
 * and the others have none, so they part into two trains for each READ. A First is as long as the Last behind it, and
 * those of many requests travel as one train. Two packets are a pair anyway; of many the Middles fill half a train; and
 * where max_rd_atomic pairs are less than a train, more is under way if READs are requested whole.
 */
static bool pairs_suit(const struct transport *tp, const struct qp *qp, const struct send_wqe *w)
{
	return w->packets > 2 && w->packets <= PKT_TRAIN_MAX / 2 && w->length <= tp->config.rocev2.only_bytes &&
	       2u * qp->max_rd_atomic * qp->mtu >= PKT_TRAIN_BYTES_MAX;
}

/* How many response packets the READ request for `psn` requests, and whether it may be sent. */
static uint32_t read_chunk(const struct transport *tp, const struct qp *qp, const struct send_wqe *w)
{
	const struct requester *req = &qp->gbn->req;
	uint32_t left = ((w->psn_last - req->psn) & PSN_MASK) + 1;
	uint32_t window = (uint32_t)(window_bytes(qp) / qp->mtu), chunk;

	if (offset(req, req->psn) < offset(req, req->high)) {
		for (uint8_t i = req->rd_tail; i != req->rd_head; i++) {
			uint32_t end = req->rd_end[i % req->rd_entries];

			if (offset(req, end) >= offset(req, req->psn))
				return offset(req, end) - offset(req, req->psn) + 1;
		}
	}
	if (pairs_suit(tp, qp, w))
		return left < 2 ? left : 2;
	/* Two chunks under way keep the responder busy; more would be shorter, and end more trains early. */
	chunk = req->cc.window_bytes_max / (qp->max_rd_atomic > 1 ? 2 : 1) / qp->mtu;
	if (chunk > window)
		chunk = window ? window : 1;
	return left < chunk ? left : chunk;
}

/*
 * Whether each packet of the message is a WRITE Only. Not with an immediate, whose completion at the peer tells the
 * length of the whole message, and not over UC, where a message arrives whole or not at all.
 */
static bool is_onlys(const struct transport *tp, const struct qp *qp, const struct send_wqe *w)
{
	return w->opcode == WR_WRITE && w->length <= tp->config.rocev2.only_bytes && qp->type != QPT_UC;
}

/* The BTH of the packet at the cursor. */
static struct bth request_bth(const struct qp *qp, const struct send_wqe *w, enum request_place place, bool ackreq,
			      uint32_t pad)
{
	static const uint8_t service[QPT_COUNT] = {[QPT_UC] = UC_OPCODES, [QPT_XRC_SEND] = XRC_OPCODES};
	bool end = place == REQUEST_LAST || place == REQUEST_ONLY;

	return (struct bth){
		.opcode = (uint8_t)(request_opcode[w->opcode][place] + service[qp->type]),
		.se = end && w->flags & WR_SOLICITED && w->opcode != WR_WRITE,
		.migreq = true, /* Migrated, the only state of a QP without an alternate path */
		.pad = (uint8_t)pad,
		.pkey = qp->pkey,
		.ackreq = ackreq,
		.dqpn = qp->dest_qpn,
		.psn = qp->gbn->req.psn,
	};
}

/* The headers of a FLUSH, behind the BTH. Returns the length of all. */
static __attribute__((noinline)) uint32_t encode_flush(uint8_t *p, const struct send_wqe *w)
{
	feth_encode(p + BTH_LEN, &(struct feth){.placement = w->flush.placement, .selectivity = w->flush.selectivity});
	reth_encode(p + BTH_LEN + FETH_LEN, &(struct reth){.va = w->remote_va, .rkey = w->rkey, .len = w->flush.bytes});
	return BTH_LEN + FETH_LEN + RETH_LEN;
}

/*
 * Writes the headers from the BTH to the payload, of a packet for `bytes` of the message from done_bytes on. Returns
 * their length. A First tells the length of the whole message (IBTA 9.3.3.1).
 */
static uint32_t encode_headers(uint8_t *p, const struct bth *bth, const struct send_wqe *w, uint32_t bytes,
			       uint32_t done_bytes)
{
	const struct opcode_info *info = &opcode_table[bth->opcode];
	uint32_t headers = info->headers;
	uint32_t at = BTH_LEN;

	bth_encode(p, bth);
	if (headers == H_BTH)
		return at;
	if (headers & H_FETH)
		return encode_flush(p, w);
	if (headers & H_XRCETH) {
		xrceth_encode(p + at, &(struct xrceth){.srqn = w->srqn});
		at += XRCETH_LEN;
	}
	if (headers & H_RETH) {
		reth_encode(p + at, &(struct reth){.va = w->remote_va + done_bytes,
						   .rkey = w->rkey,
						   .len = info->flags & F_FIRST ? w->length : bytes});
		at += RETH_LEN;
	}
	if (headers & H_ATOMICETH) {
		bool cas = w->opcode == WR_CMP_SWAP;

		atomiceth_encode(p + at, &(struct atomiceth){.va = w->remote_va,
							     .rkey = w->rkey,
							     .swap_add = cas ? w->atomic.swap : w->atomic.compare_add,
							     .compare = cas ? w->atomic.compare_add : 0});
		at += ATOMICETH_LEN;
	}
	if (headers & H_IMMDT) {
		immdt_encode(p + at, &(struct immdt){.imm = w->imm_or_key});
		at += IMMDT_LEN;
	}
	if (headers & H_IETH) {
		ieth_encode(p + at, &(struct ieth){.rkey = w->imm_or_key});
		at += IETH_LEN;
	}
	return at;
}

/* Whether something in flight will be answered, if it is not lost. */
static bool is_answered(const struct requester *req)
{
	return psn_diff(req->asked, req->una) >= 0;
}

/* The cursor passes requests that were done without packets. */
static void skip_local(struct qp *qp)
{
	struct requester *req = &qp->gbn->req;

	while (req->wqe != qp->sq.next && request_is_local(sq_at(&qp->sq, req->wqe)))
		req->wqe++;
}

/* Sends the packet at the cursor and moves the cursor past it. False: the WQE failed, nothing was sent. */
static bool send_packet(struct transport *tp, struct qp *qp, struct send_wqe *w, uint32_t span, bool ackreq,
			uint64_t now_ns)
{
	struct requester *req = &qp->gbn->req;
	uint8_t *p = tx_room(&tp->tx, qp->mtu + TX_HEADROOM_MAX);
	uint32_t k = (req->psn - w->psn_first) & PSN_MASK;
	uint32_t done = k * qp->mtu;
	bool first = k == 0, last = k + span == w->packets;
	enum request_place place = is_onlys(tp, qp, w) ? REQUEST_ONLY : request_place(first, last);
	uint32_t bytes = last ? w->length - done : span * qp->mtu;
	bool responds = request_has_response(w);
	uint32_t payload = responds ? request_payload(w) : bytes;
	uint32_t pad = -payload & 3;
	struct bth bth = request_bth(qp, w, place, ackreq || last, pad);
	uint32_t at = encode_headers(p, &bth, w, bytes, done);
	bool again = offset(req, req->psn) < offset(req, req->high);

	if (!request_gather(tp, qp, w, done, p + at, payload)) {
		/* A UC QP goes on behind SQE, with the PSN after the last one that was sent. */
		if (qp->type == QPT_UC)
			req->psn_new = req->psn;
		request_fail_in_turn(tp, qp, req->wqe, WC_LOC_PROT_ERR, now_ns);
		return false;
	}
	if (pad)
		memset(p + at + payload, 0, pad);
	tx_commit(&tp->tx, &qp->flow, qp->dest_qpn, at + payload + pad);
	if (congestion_governing(qp))
		congestion_sent(tp, qp, req->psn, tx_last_len(&tp->tx) + (request_is_read(w) ? bytes : 0), again,
				now_ns);
	if (again) {
		tp->counters.retransmits++;
	} else {
		if (responds)
			req->rd_end[req->rd_head++ % req->rd_entries] = psn_add(req->psn, span - 1);
		req->high = psn_add(req->psn, span);
	}
	req->psn = psn_add(req->psn, span);
	if (ackreq || last || responds)
		req->asked = (req->psn - 1) & PSN_MASK;
	if (last) {
		req->wqe++;
		if (qp->locals_wait)
			skip_local(qp);
	}
	return true;
}

/* The next WQE needs no packet. */
static bool execute_next(struct transport *tp, struct qp *qp, struct send_wqe *w, uint64_t now_ns)
{
	w->packets = 0;
	w->psn_first = qp->gbn->req.psn_new;
	w->psn_last = (w->psn_first - 1) & PSN_MASK;
	if (!request_execute(tp, qp, now_ns))
		return false;
	skip_local(qp);
	return true;
}

/* Starts the next WQE. False: there is none that may start now. */
static bool start_next(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct send_wqe *w;
	enum wc_status status;

	if (qp_get_state(qp) != QPS_RTS || qp->sq.next == sq_head(&qp->sq))
		return false;
	w = sq_at(&qp->sq, qp->sq.next);
	if (w->flags & WR_FENCE && qp->gbn->req.rd_head != qp->gbn->req.rd_tail)
		return false; /* IBTA 10.8.3.3: after all earlier READs and atomics */
	if (request_is_local(w))
		return execute_next(tp, qp, w, now_ns);
	status = request_is_plain(w, qp->mtu) ? WC_SUCCESS : request_judge(tp, qp, w);
	if (status != WC_SUCCESS) {
		request_fail_in_turn(tp, qp, qp->gbn->req.wqe, status, now_ns);
		return false;
	}
	start_wqe(qp, w);
	return true;
}

/* UC has no acknowledgements: a message is complete when its last packet has left (IBTA 9.8.2). */
static void complete_unacknowledged(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	qp->gbn->req.una = qp->gbn->req.psn;
	while (qp->sq.una != qp->gbn->req.wqe && qp_get_state(qp) != QPS_ERR)
		complete_send(tp, qp, WC_SUCCESS, now_ns);
	qp_check_drained(tp, qp);
}

/* Whether requests leave, new ones or those of before. */
static bool may_send(const struct qp *qp)
{
	const struct requester *req = &qp->gbn->req;
	enum qp_state state = qp_get_state(qp);

	return (state == QPS_RTS || state == QPS_SQD) && !req->rnr_wait && !(qp->failed && req->wqe == qp->failed_wqe);
}

/*
 * AckReq placement, but for the last packet of a message, which has it: one of ackreq_packets, the last one that the
 * window allows, and one to time.
 */
static bool sets_ackreq(const struct transport *tp, const struct congestion *g, uint32_t flying, uint32_t span,
			uint32_t window)
{
	uint32_t apart = tp->config.rocev2.ackreq_packets;

	return flying % apart == apart - 1 || flying + span >= window || (g && !g->timed_ns);
}

bool requester_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct requester *req = &qp->gbn->req;
	struct congestion *g = congestion_governing(qp);
	bool sent = false, more = false;

	if (qp_is_paused(tp, qp) || qp->muted)
		return false;
	if (g && g->cc.deadline_ns <= now_ns)
		cc_on_timer(&g->cc, now_ns);
	for (uint32_t budget = QP_OUTPUT_QUANTUM; may_send(qp);) {
		uint32_t flying, window, span = 1;
		struct send_wqe *w;

		if (req->wqe == qp->sq.next) {
			if (!start_next(tp, qp, now_ns))
				break;
			continue;
		}
		flying = offset(req, req->psn);
		window = (uint32_t)(window_bytes(qp) / qp->mtu);
		w = sq_at(&qp->sq, req->wqe);
		if (request_has_response(w)) {
			bool again = flying < offset(req, req->high);

			if (!again && (uint8_t)(req->rd_head - req->rd_tail) >= qp->max_rd_atomic)
				break;
			if (request_is_read(w))
				span = read_chunk(tp, qp, w);
		}
		/*
		 * A window that shrank may be full of packets without AckReq. Then one more packet leaves with
		 * AckReq; otherwise only a timeout would open the window.
		 */
		if (qp->type != QPT_UC && flying && flying + span > window && is_answered(req))
			break;
		if (g && congestion_due_ns(g, tp->config.cc.pace_slack_ns) > now_ns) {
			g->paced = true;
			requester_rearm(tp, qp, now_ns);
			break;
		}
		if (!budget-- || !tx_room(&tp->tx, qp->mtu + TX_HEADROOM_MAX)) {
			more = true;
			break;
		}
		if (!send_packet(tp, qp, w, span, sets_ackreq(tp, g, flying, span, window), now_ns))
			break;
		sent = true;
		if (qp->type == QPT_UC)
			complete_unacknowledged(tp, qp, now_ns);
	}
	if (qp->type != QPT_UC && sent) {
		atomic_store_explicit(&qp->in_flight, true, memory_order_relaxed);
		requester_rearm(tp, qp, now_ns);
	}
	return more;
}
