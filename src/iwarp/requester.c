/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends in turns: send WQEs, and the responses to the peer's READs, as FPDUs.
 *
 * FPDUs are as large as a TCP segment carries (RFC 5044 5.1), or as the arena's rest: the receiver takes any.
 */
#include <string.h>

#include "iwarp/state.h"
#include "transport/request.h"

/* An FPDU begins only where there is room for this much of it, so that none is cut very short. */
enum { FPDU_ROOM_MIN = 4096, AROUND_ULPDU = FPDU_LENGTH_LEN + 3 + FPDU_CRC_LEN };

static const uint8_t opcode_of[WR_OPCODE_COUNT][2] = {
	[WR_WRITE] = {RDMAP_WRITE, RDMAP_WRITE},
	[WR_READ] = {RDMAP_READ_REQUEST, RDMAP_READ_REQUEST},
	[WR_SEND] = {RDMAP_SEND, RDMAP_SEND_SE},
	[WR_SEND_INV] = {RDMAP_SEND_INV, RDMAP_SEND_SE_INV},
	/* RFC 7306. The immediate data of a Write are a message of their own, behind it. */
	[WR_WRITE_IMM] = {RDMAP_WRITE, RDMAP_WRITE},
	[WR_CMP_SWAP] = {RDMAP_ATOMIC_REQUEST, RDMAP_ATOMIC_REQUEST},
	[WR_FETCH_ADD] = {RDMAP_ATOMIC_REQUEST, RDMAP_ATOMIC_REQUEST},
};

static bool is_rfc7306(const struct send_wqe *w)
{
	return w->opcode == WR_WRITE_IMM || w->opcode == WR_CMP_SWAP || w->opcode == WR_FETCH_ADD;
}

void iwarp_commit(struct transport *tp, struct qp *qp, uint32_t ulpdu_len)
{
	struct iwarp *iw = qp->iwarp;
	uint32_t len = fpdu_seal(&iw->out, tp->tx.arena + tp->tx.used, ulpdu_len);

	tx_commit_bytes(&tp->tx, &qp->flow, len);
	iw->room = iw->room > len ? iw->room - len : 0;
	tp->counters.tx_packets++;
}

/* How much of `left` bytes of payload the next FPDU carries behind `headers`. */
static uint32_t chunk(const struct transport *tp, const struct iwarp *iw, uint32_t headers, uint32_t left)
{
	uint32_t most = iw->mulpdu - headers;
	size_t around = headers + AROUND_ULPDU + (iw->out.markers ? (size_t)tx_left(&tp->tx) / 64 : 0);

	if (tx_left(&tp->tx) - around < most)
		most = (uint32_t)(tx_left(&tp->tx) - around);
	return left < most ? left : most;
}

static struct ddp ddp_of(uint8_t opcode, bool last)
{
	return (struct ddp){.tagged = rdmap_table[opcode].tagged,
			    .last = last,
			    .ddp_version = DDP_VERSION,
			    .rdmap_version = RDMAP_VERSION,
			    .opcode = opcode,
			    .qn = rdmap_table[opcode].qn};
}

/* ---- completions --------------------------------------------------------------------------------- */

void iwarp_advance(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;

	while (qp->sq.una != iw->wqe && sq_at(&qp->sq, qp->sq.una)->done && qp_get_state(qp) != QPS_ERR)
		complete_send(tp, qp, WC_SUCCESS, now_ns);
	if (qp_get_state(qp) == QPS_ERR)
		return;
	if (qp->failed && qp->sq.una == qp->failed_wqe) {
		complete_send(tp, qp, (enum wc_status)qp->failed, now_ns);
		qp_to_error(tp, qp, now_ns);
		return;
	}
	qp_check_drained(tp, qp);
}

/* ---- WQEs ---------------------------------------------------------------------------------------- */

/* The one element of a READ that has bytes; NULL: none has. */
static const struct wqe_sge *sink_of(const struct send_wqe *w)
{
	for (uint32_t i = 0; i < w->num_sge; i++) {
		if (w->sge[i].len)
			return &w->sge[i];
	}
	return NULL;
}

/* A Read Request names one sink (RFC 5040 4.4). */
static bool has_one_sink(const struct send_wqe *w)
{
	const struct wqe_sge *sink = sink_of(w);

	return !sink || sink->len == w->length;
}

static enum wc_status judge(const struct transport *tp, const struct qp *qp, const struct send_wqe *w)
{
	bool known = w->opcode == WR_WRITE || w->opcode == WR_WRITE_IMM || opcode_of[w->opcode][0];

	if (!known || (is_rfc7306(w) && !tp->config.iwarp_rfc7306) || (w->opcode == WR_READ && !has_one_sink(w)))
		return WC_LOC_QP_OP_ERR;
	return request_judge(tp, qp, w);
}

/* A local request (request_is_local()), whose turn it is. False: it may not begin now, or it failed. */
static bool execute(struct transport *tp, struct qp *qp, struct send_wqe *w, uint64_t now_ns)
{
	if (w->flags & WR_FENCE && qp->iwarp->reads_out)
		return false;
	w->done = 0;
	if (!request_execute(tp, qp, now_ns))
		return false;
	qp->iwarp->wqe++;
	qp_check_drained(tp, qp);
	return true;
}

/* Begins the next WQE, or executes it. False: there is none that may begin now. */
static bool start_wqe(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;
	uint32_t end = iw->finishing ? iw->finish_at : sq_head(&qp->sq);
	enum wc_status status;
	struct send_wqe *w;

	if (qp->failed || qp->muted || qp->sq.next == end || (qp_get_state(qp) != QPS_RTS && !iw->finishing))
		return false;
	w = sq_at(&qp->sq, qp->sq.next);
	if (request_is_local(w))
		return execute(tp, qp, w, now_ns);
	/* RFC 5040 5.5, IBTA 10.8.3.3: behind a fence nothing leaves before earlier READs are answered. */
	if ((w->flags & WR_FENCE && iw->reads_out) ||
	    (request_has_response(w) && iw->reads_out >= qp->max_rd_atomic && qp->max_rd_atomic))
		return false;
	status = judge(tp, qp, w);
	if (status != WC_SUCCESS) {
		request_fail_in_turn(tp, qp, qp->sq.next, status, now_ns);
		return false;
	}
	w->done = 0;
	iw->done = 0;
	qp->sq.next++;
	iw->sending = SENDING_REQUEST;
	return true;
}

/* Of the WQE that is laid out. */
static void await_response(struct qp *qp)
{
	struct iwarp *iw = qp->iwarp;

	if (!iw->reads_out++) {
		iw->read_wqe = iw->wqe;
		iw->read_done = 0;
	}
	atomic_store_explicit(&qp->in_flight, true, memory_order_relaxed);
}

static void lay_read_request(struct transport *tp, struct qp *qp, const struct send_wqe *w)
{
	struct ddp ddp = ddp_of(RDMAP_READ_REQUEST, true);
	const struct wqe_sge *sink = sink_of(w);
	struct iwarp *iw = qp->iwarp;

	ddp.msn = iw->read_msn++;
	ddp_encode(iwarp_ulpdu(tp), &ddp);
	read_request_encode(iwarp_ulpdu(tp) + DDP_UNTAGGED_LEN,
			    &(struct read_request){.sink_stag = sink ? sink->lkey : 0,
						   .sink_to = sink ? sink->addr : 0,
						   .size = w->length,
						   .source_stag = w->rkey,
						   .source_to = w->remote_va});
	iwarp_commit(tp, qp, DDP_UNTAGGED_LEN + READ_REQUEST_LEN);
	await_response(qp);
}

/* RFC 7306 5.2: its request id is its MSN. Verbs' operations have no masks, or whole ones. */
static void lay_atomic_request(struct transport *tp, struct qp *qp, const struct send_wqe *w)
{
	bool swaps = w->opcode == WR_CMP_SWAP;
	struct ddp ddp = ddp_of(RDMAP_ATOMIC_REQUEST, true);
	const struct atomic_request r = {.operation = swaps ? ATOMIC_CMP_SWAP : ATOMIC_FETCH_ADD,
					 .id = qp->iwarp->read_msn,
					 .stag = w->rkey,
					 .to = w->remote_va,
					 .add_swap = swaps ? w->atomic.swap : w->atomic.compare_add,
					 .add_swap_mask = swaps ? UINT64_MAX : 0,
					 .compare = swaps ? w->atomic.compare_add : 0,
					 .compare_mask = UINT64_MAX};

	ddp.msn = qp->iwarp->read_msn++;
	ddp_encode(iwarp_ulpdu(tp), &ddp);
	atomic_request_encode(iwarp_ulpdu(tp) + DDP_UNTAGGED_LEN, &r);
	iwarp_commit(tp, qp, DDP_UNTAGGED_LEN + ATOMIC_REQUEST_LEN);
	await_response(qp);
}

/* RFC 7306 6: four bytes are the program's, four are zero, which is chosen here. */
static void lay_immediate(struct transport *tp, struct qp *qp, struct send_wqe *w)
{
	struct ddp ddp = ddp_of(w->flags & WR_SOLICITED ? RDMAP_IMM_SE : RDMAP_IMM, true);
	uint8_t *data = iwarp_ulpdu(tp) + DDP_UNTAGGED_LEN;

	ddp.msn = qp->iwarp->send_msn++;
	ddp_encode(iwarp_ulpdu(tp), &ddp);
	put_be32(data, w->imm_or_key);
	put_be32(data + 4, 0);
	iwarp_commit(tp, qp, DDP_UNTAGGED_LEN + IMM_LEN);
	qp->iwarp->imm_due = false;
	w->done = 1;
}

/* One FPDU of a Send or Write. False: its memory is not there. */
static bool lay_payload(struct transport *tp, struct qp *qp, struct send_wqe *w)
{
	struct iwarp *iw = qp->iwarp;
	uint8_t opcode = opcode_of[w->opcode][w->flags & WR_SOLICITED ? 1 : 0];
	uint32_t headers = ddp_len(rdmap_table[opcode].tagged), n = chunk(tp, iw, headers, w->length - iw->done);
	struct ddp ddp = ddp_of(opcode, iw->done + n == w->length);

	if (ddp.tagged) {
		ddp.stag = w->rkey;
		ddp.to = w->remote_va + iw->done;
	} else {
		ddp.stag = w->opcode == WR_SEND_INV ? w->imm_or_key : 0;
		ddp.msn = iw->send_msn;
		ddp.mo = iw->done;
	}
	if (!request_gather(tp, qp, w, iw->done, iwarp_ulpdu(tp) + headers, n))
		return false;
	ddp_encode(iwarp_ulpdu(tp), &ddp);
	iwarp_commit(tp, qp, headers + n);
	iw->done += n;
	if (!ddp.last)
		return true;
	iw->send_msn += !ddp.tagged;
	iw->imm_due = w->opcode == WR_WRITE_IMM;
	w->done = !iw->imm_due;
	return true;
}

static void lay_request(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;
	struct send_wqe *w = sq_at(&qp->sq, iw->wqe);

	if (w->opcode == WR_READ) {
		lay_read_request(tp, qp, w);
	} else if (request_has_response(w)) {
		lay_atomic_request(tp, qp, w);
	} else if (iw->imm_due) {
		lay_immediate(tp, qp, w);
	} else if (!lay_payload(tp, qp, w)) {
		/* Part of the message may be on its way; the end of the stream, which is near, tells the peer. */
		iw->sending = SENDING_NOTHING;
		request_fail_in_turn(tp, qp, iw->wqe, WC_LOC_PROT_ERR, now_ns);
		return;
	} else if (!w->done) {
		return;
	}
	iw->sending = SENDING_NOTHING;
	iw->in_row = 0;
	iw->wqe++;
	iwarp_advance(tp, qp, now_ns);
}

/* ---- responses ----------------------------------------------------------------------------------- */

/* The key and range of a READ were judged when it came; since then the region may have gone. */
static const uint8_t *source_bytes(const struct transport *tp, const struct qp *qp, const struct iwarp_read *r,
				   uint32_t n)
{
	return mr_check_remote(&tp->mrs, r->request.source_stag, &qp->user, r->request.source_to + r->done, n,
			       MR_REMOTE_READ);
}

static void answered(struct transport *tp, struct qp *qp)
{
	qp->iwarp->sending = SENDING_NOTHING;
	qp->iwarp->in_row++;
	iwarp_read_answered(tp, qp);
}

static void lay_atomic_response(struct transport *tp, struct qp *qp, const struct iwarp_read *r)
{
	struct ddp ddp = ddp_of(RDMAP_ATOMIC_RESPONSE, true);

	ddp.msn = qp->iwarp->atomic_msn++;
	ddp_encode(iwarp_ulpdu(tp), &ddp);
	atomic_response_encode(iwarp_ulpdu(tp) + DDP_UNTAGGED_LEN, &r->found);
	iwarp_commit(tp, qp, DDP_UNTAGGED_LEN + ATOMIC_RESPONSE_LEN);
	answered(tp, qp);
}

static void lay_response(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;
	struct iwarp_read *r = iwarp_read_at(qp, iw->read_tail);
	uint32_t n = chunk(tp, iw, DDP_TAGGED_LEN, r->request.size - r->done);
	struct ddp ddp = ddp_of(RDMAP_READ_RESPONSE, r->done + n == r->request.size);
	const uint8_t *from = n ? source_bytes(tp, qp, r, n) : NULL;

	if (r->is_atomic) {
		lay_atomic_response(tp, qp, r);
		return;
	}
	if (n && (!from || !mr_read(&tp->mrs, iwarp_ulpdu(tp) + DDP_TAGGED_LEN, from, n))) {
		iwarp_fail(tp, qp, TERM_PROTECTION_STAG, NULL, now_ns);
		return;
	}
	ddp.stag = r->request.sink_stag;
	ddp.to = r->request.sink_to + r->done;
	ddp_encode(iwarp_ulpdu(tp), &ddp);
	iwarp_commit(tp, qp, DDP_TAGGED_LEN + n);
	r->done += n;
	iw->sending = SENDING_RESPONSE;
	if (!ddp.last)
		return;
	answered(tp, qp);
}

/* ---- turns --------------------------------------------------------------------------------------- */

/* So that the responder may speak (RFC 5044 7.1.2, RFC 6581 9). It means nothing, at any time. */
static void lay_first(struct transport *tp, struct qp *qp)
{
	struct ddp ddp = ddp_of(RDMAP_WRITE, true);

	ddp.stag = 1;
	ddp_encode(iwarp_ulpdu(tp), &ddp);
	iwarp_commit(tp, qp, DDP_TAGGED_LEN);
	qp->iwarp->sends_first = false;
}

/*
 * Decides what the next FPDU belongs to, unless one is being sent. With SENDING_NOTHING a local request took the turn.
 * False: there is nothing to do now.
 */
static bool choose(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;
	bool reads = iwarp_has_reads(iw);

	if (iw->sending != SENDING_NOTHING)
		return true;
	if (reads && iw->in_row < IWARP_READS_IN_ROW) {
		iw->sending = SENDING_RESPONSE;
		return true;
	}
	if (start_wqe(tp, qp, now_ns))
		return true;
	if (reads && qp_get_state(qp) != QPS_ERR)
		iw->sending = SENDING_RESPONSE;
	return iw->sending != SENDING_NOTHING;
}

static bool has_ended(const struct qp *qp)
{
	const struct iwarp *iw = qp->iwarp;

	return iw->finishing && iw->sending == SENDING_NOTHING && !iw->reads_out && !iwarp_has_reads(iw) &&
	       (qp->sq.next == iw->finish_at || qp->failed);
}

bool iwarp_send(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;

	if (iw->hears_first && !iw->heard) {
		iw->fin_due |= iw->finishing;
		return false;
	}
	for (uint32_t budget = QP_OUTPUT_QUANTUM; qp_get_state(qp) != QPS_ERR && !iw->fin_sent;) {
		if (iw->room < (uint32_t)iw->mulpdu + AROUND_ULPDU + iw->mulpdu / 64)
			return false; /* the back end says when there is more */
		if (!budget-- || tx_left(&tp->tx) < FPDU_ROOM_MIN)
			return true;
		if (iw->sends_first && iw->sending == SENDING_NOTHING) {
			lay_first(tp, qp);
			continue; /* room and arena are looked at again */
		}
		if (!choose(tp, qp, now_ns))
			break;
		if (iw->sending == SENDING_REQUEST)
			lay_request(tp, qp, now_ns);
		else if (iw->sending == SENDING_RESPONSE)
			lay_response(tp, qp, now_ns);
	}
	if (qp_get_state(qp) != QPS_ERR && has_ended(qp))
		iw->fin_due = true;
	return false;
}
