/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Takes each segment by its opcode: a list of checks from top to bottom, each with the cause of the Terminate that
 * answers its failure (RFC 5040 7, RFC 5041 7), then the placement. Nothing of a refused segment is placed.
 *
 * The exception is direct placement: of a tagged segment without CRC, parts are placed as they come, each judged as if
 * the segment were whole.
 */
#include <assert.h>

#include "iwarp/state.h"
#include "mem/mw.h"
#include "transport/request.h"

/* ---- regions ------------------------------------------------------------------------------------- */

/* Why a region does not open: the same reasons have codes of their own at DDP and at RDMAP. */
enum refusal { REFUSE_STAG, REFUSE_BOUNDS, REFUSE_STREAM, REFUSE_WRAP, REFUSE_ACCESS };

static const enum term_cause tagged_causes[] = {
	[REFUSE_STAG] = TERM_TAGGED_STAG, [REFUSE_BOUNDS] = TERM_TAGGED_BOUNDS, [REFUSE_STREAM] = TERM_TAGGED_STREAM,
	[REFUSE_WRAP] = TERM_TAGGED_WRAP, [REFUSE_ACCESS] = TERM_TAGGED_STAG, /* DDP has no code for it */
};

static const enum term_cause protection_causes[] = {
	[REFUSE_STAG] = TERM_PROTECTION_STAG,     [REFUSE_BOUNDS] = TERM_PROTECTION_BOUNDS,
	[REFUSE_STREAM] = TERM_PROTECTION_STREAM, [REFUSE_WRAP] = TERM_PROTECTION_WRAP,
	[REFUSE_ACCESS] = TERM_PROTECTION_ACCESS,
};

/* Of an access that mr_check() refused. */
static enum refusal refusal_of(const struct transport *tp, const struct qp *qp, uint32_t stag, uint64_t to,
			       uint64_t len)
{
	const struct mr *mr = mr_find(&tp->mrs, stag);

	if (!mr)
		return REFUSE_STAG;
	if (mr->pd != qp->user.pd)
		return REFUSE_STREAM;
	if (to + len < to)
		return REFUSE_WRAP;
	return mr_check(&tp->mrs, stag, qp->user.pd, to, len, 0) ? REFUSE_ACCESS : REFUSE_BOUNDS;
}

/*
 * Writes the payload of a tagged segment to its place. Bytes in the reader's gap were put there before (iwarp_place());
 * if the STag has come to open another place since then, a window's, the segment is refused as one whose STag was
 * closed.
 */
static bool write_payload(const struct transport *tp, const struct iwarp *iw, const struct rdmap_segment *s,
			  uint8_t *to)
{
	uint32_t before = (uint32_t)iw->in.gap_at - DDP_TAGGED_LEN, behind = before + iw->in.gap_len;

	if (!iw->in.gap_len)
		return mr_write(&tp->mrs, to, s->payload, s->payload_len);
	if (iw->gap_to != to + before)
		return false;
	return (!before || mr_write(&tp->mrs, to, s->payload, before)) &&
	       mr_write(&tp->mrs, to + behind, s->payload + behind, s->payload_len - behind);
}

/* ---- RDMA Write ---------------------------------------------------------------------------------- */

/* STag and TO of a message without bytes are not looked at (RFC 5040 5.4). */
static enum term_cause take_write(struct transport *tp, struct qp *qp, const struct rdmap_segment *s)
{
	struct iwarp *iw = qp->iwarp;
	uint8_t *to;

	iw->written = (iw->write_ended ? 0 : iw->written) + s->payload_len;
	iw->write_ended = s->ddp.last;
	tp->counters.rx_write_requests += s->ddp.last;
	if (!s->payload_len)
		return TERM_NONE;
	if (!(qp->access & MR_REMOTE_WRITE))
		return TERM_TAGGED_STAG;
	to = mr_check_remote(&tp->mrs, s->ddp.stag, &qp->user, s->ddp.to, s->payload_len, MR_REMOTE_WRITE);
	if (!to)
		return tagged_causes[refusal_of(tp, qp, s->ddp.stag, s->ddp.to, s->payload_len)];
	return write_payload(tp, iw, s, to) ? TERM_NONE : TERM_TAGGED_STAG;
}

/* ---- Sends --------------------------------------------------------------------------------------- */

static enum term_cause judge_send(struct transport *tp, struct qp *qp, const struct rdmap_segment *s)
{
	struct iwarp *iw = qp->iwarp;
	bool begins = !iw->rwqe;

	if (s->ddp.msn != iw->send_msn_in)
		return TERM_UNTAGGED_MSN;
	if (begins) {
		iw->rwqe = qp_take_recv(tp, qp);
		iw->received = 0;
		iw->opcode = s->ddp.opcode;
	}
	if (!iw->rwqe)
		return TERM_UNTAGGED_NO_BUFFER; /* there is no RNR: RFC 5041 7.2 */
	if (s->ddp.mo != iw->received)
		return TERM_UNTAGGED_MO;
	if (s->ddp.opcode != iw->opcode)
		return TERM_OPERATION_OPCODE;
	return (uint64_t)iw->received + s->payload_len > iw->rwqe->length ? TERM_UNTAGGED_TOO_LONG : TERM_NONE;
}

static enum term_cause invalidate(struct transport *tp, const struct qp *qp, uint32_t stag)
{
	if (!mw_may_invalidate(&tp->mrs, stag, &qp->user))
		return TERM_PROTECTION_NO_INVALIDATE;
	mw_invalidate(&tp->mrs, stag, &qp->user);
	return TERM_NONE;
}

static void complete(struct transport *tp, struct qp *qp, const struct rdmap_segment *s, uint64_t now_ns)
{
	bool inv = s->info->flags & RDMAP_F_INV;
	struct iwarp *iw = qp->iwarp;
	struct recv_wqe *w = iw->rwqe;
	struct cqe cqe = {.status = WC_SUCCESS,
			  .opcode = WC_RECV,
			  .byte_len = iw->received,
			  .imm_or_key = inv ? s->ddp.stag : 0,
			  .flags = inv ? WC_WITH_INV : 0,
			  .solicited = (s->info->flags & RDMAP_F_SE) != 0};

	iw->rwqe = NULL;
	iw->send_msn_in++;
	complete_recv(tp, qp, w, &cqe, now_ns);
}

static enum term_cause take_send(struct transport *tp, struct qp *qp, const struct rdmap_segment *s, uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;
	enum term_cause cause = judge_send(tp, qp, s);

	if (cause != TERM_NONE)
		return cause;
	if (s->payload_len &&
	    !sge_scatter(&tp->mrs, qp_source_pd(qp), recv_wqe_sges(iw->rwqe), iw->received, s->payload, s->payload_len))
		return TERM_DDP_CATASTROPHIC;
	iw->received += s->payload_len;
	if (!s->ddp.last)
		return TERM_NONE;
	if (s->info->flags & RDMAP_F_INV)
		cause = invalidate(tp, qp, s->ddp.stag);
	if (cause == TERM_NONE)
		complete(tp, qp, s, now_ns);
	return cause;
}

/*
 * Immediate data (RFC 7306 6) take a receive WQE, as a Send does. They belong to the Write before them, as verbs have
 * it: its length is that of the completion.
 */
static enum term_cause take_immediate(struct transport *tp, struct qp *qp, const struct rdmap_segment *s,
				      uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;
	struct cqe cqe = {.status = WC_SUCCESS,
			  .opcode = WC_RECV_RDMA_WITH_IMM,
			  .byte_len = iw->written,
			  .imm_or_key = get_be32(s->header),
			  .flags = WC_WITH_IMM,
			  .solicited = (s->info->flags & RDMAP_F_SE) != 0};
	struct recv_wqe *w;

	if (s->ddp.msn != iw->send_msn_in)
		return TERM_UNTAGGED_MSN;
	if (iw->rwqe)
		return TERM_OPERATION_OPCODE; /* inside a Send */
	w = qp_take_recv(tp, qp);
	if (!w)
		return TERM_UNTAGGED_NO_BUFFER;
	iw->written = 0;
	iw->send_msn_in++;
	complete_recv(tp, qp, w, &cqe, now_ns);
	return TERM_NONE;
}

/* ---- READs and atomics that the peer asks for ---------------------------------------------------- */

/* A READ or atomic request (QN 1). It is queued, and answered when those before it are. */
static enum term_cause expect_answer(struct transport *tp, struct qp *qp, const struct iwarp_read *r)
{
	struct iwarp *iw = qp->iwarp;

	if (!iw->reads)
		iw->reads = pool_get(&tp->pool, sizeof(*iw->reads) * iwarp_read_entries(qp));
	if (!iw->reads)
		return TERM_LOCAL_CATASTROPHIC;
	iw->read_msn_in++;
	*iwarp_read_at(qp, iw->read_head++) = *r;
	qp_activate(tp, qp);
	return TERM_NONE;
}

static enum term_cause judge_turn(const struct qp *qp, const struct rdmap_segment *s)
{
	const struct iwarp *iw = qp->iwarp;

	if (s->ddp.msn != iw->read_msn_in)
		return TERM_UNTAGGED_MSN;
	/* More than were agreed on: RFC 6581 4.4. */
	return (uint8_t)(iw->read_head - iw->read_tail) >= qp->max_dest_rd_atomic ? TERM_OPERATION_STREAM : TERM_NONE;
}

static enum term_cause take_read_request(struct transport *tp, struct qp *qp, const struct rdmap_segment *s)
{
	enum term_cause cause = judge_turn(qp, s);
	struct read_request r;

	if (cause != TERM_NONE)
		return cause;
	read_request_decode(&r, s->header);
	if (r.size && !(qp->access & MR_REMOTE_READ))
		return TERM_PROTECTION_ACCESS;
	if (r.size && !mr_check_remote(&tp->mrs, r.source_stag, &qp->user, r.source_to, r.size, MR_REMOTE_READ))
		return protection_causes[refusal_of(tp, qp, r.source_stag, r.source_to, r.size)];
	tp->counters.rx_read_requests++;
	return expect_answer(tp, qp, &(struct iwarp_read){.request = r});
}

/* Verbs' two operations; others, and masks that verbs do not have, are not offered. */
static bool is_offered(const struct atomic_request *r)
{
	return r->operation == ATOMIC_CMP_SWAP ? !~r->add_swap_mask && !~r->compare_mask
					       : r->operation == ATOMIC_FETCH_ADD && !r->add_swap_mask;
}

/* It is executed at once, in the order of the stream. */
static enum term_cause take_atomic(struct transport *tp, struct qp *qp, const struct rdmap_segment *s)
{
	struct iwarp_read answer = {.is_atomic = true};
	enum term_cause cause = judge_turn(qp, s);
	struct atomic_request r;
	uint64_t *word;

	if (cause != TERM_NONE)
		return cause;
	atomic_request_decode(&r, s->header);
	if (!is_offered(&r))
		return TERM_OPERATION_OPCODE;
	if (r.to & 7)
		return TERM_OPERATION_STREAM; /* RFC 7306 8.1 */
	if (!(qp->access & MR_REMOTE_ATOMIC))
		return TERM_PROTECTION_ACCESS;
	word = (uint64_t *)mr_check_remote(&tp->mrs, r.stag, &qp->user, r.to, sizeof(*word), MR_REMOTE_ATOMIC);
	if (!word)
		return protection_causes[refusal_of(tp, qp, r.stag, r.to, sizeof(*word))];
	/* A TO may be aligned although the memory behind it is not. */
	if ((uintptr_t)word & 7)
		return TERM_PROTECTION_ACCESS;
	answer.found.id = r.id;
	if (!mr_atomic(&tp->mrs, word, r.operation == ATOMIC_CMP_SWAP, r.add_swap, r.compare, &answer.found.found))
		return TERM_PROTECTION_STAG;
	tp->counters.rx_atomic_requests++;
	return expect_answer(tp, qp, &answer);
}

void iwarp_read_answered(struct transport *tp, struct qp *qp)
{
	struct iwarp *iw = qp->iwarp;

	iw->read_tail++;
	if (!iwarp_has_reads(iw))
		iwarp_drop_reads(tp, qp);
}

void iwarp_drop_reads(struct transport *tp, struct qp *qp)
{
	struct iwarp *iw = qp->iwarp;

	pool_put(&tp->pool, iw->reads, sizeof(*iw->reads) * iwarp_read_entries(qp));
	iw->reads = NULL;
	iw->read_tail = iw->read_head;
}

/* ---- responses to ours --------------------------------------------------------------------------- */

/* A response fits the oldest READ to the byte, or is not placed (RFC 5040 5.1, 8.1). */
static enum term_cause judge_response(const struct iwarp *iw, const struct send_wqe *w, const struct rdmap_segment *s)
{
	const struct wqe_sge *sink = w->sge;

	if (s->payload_len > w->length - iw->read_done)
		return TERM_TAGGED_BOUNDS;
	if (s->ddp.last != (iw->read_done + s->payload_len == w->length))
		return TERM_TAGGED_BOUNDS;
	if (!s->payload_len)
		return TERM_NONE;
	while (!sink->len)
		sink++;
	if (s->ddp.stag != sink->lkey)
		return TERM_TAGGED_STAG;
	return s->ddp.to == sink->addr + iw->read_done ? TERM_NONE : TERM_TAGGED_BOUNDS;
}

static void read_done(struct transport *tp, struct qp *qp, struct send_wqe *w, uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;

	w->done = 1;
	iw->read_done = 0;
	if (!--iw->reads_out)
		atomic_store_explicit(&qp->in_flight, false, memory_order_relaxed);
	do
		iw->read_wqe++;
	while (iw->reads_out && !request_has_response(sq_at(&qp->sq, iw->read_wqe)));
	iwarp_advance(tp, qp, now_ns);
	if (qp_get_state(qp) != QPS_ERR)
		qp_activate(tp, qp); /* a fence, or a READ that waited for its turn */
}

/* The payload is not empty, and judged. */
static bool place_response(struct transport *tp, const struct qp *qp, const struct send_wqe *w,
			   const struct rdmap_segment *s)
{
	const struct iwarp *iw = qp->iwarp;
	uint8_t *to;

	if (!iw->in.gap_len)
		return sge_scatter(&tp->mrs, qp->user.pd, send_wqe_sges(w), iw->read_done, s->payload, s->payload_len);
	to = sge_place(&tp->mrs, qp->user.pd, send_wqe_sges(w), iw->read_done, s->payload_len, MR_LOCAL_WRITE);
	return to && write_payload(tp, iw, s, to);
}

static enum term_cause take_response(struct transport *tp, struct qp *qp, const struct rdmap_segment *s,
				     uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;
	struct send_wqe *w;
	enum term_cause cause;

	if (!iw->reads_out)
		return TERM_OPERATION_OPCODE; /* nobody asked */
	w = sq_at(&qp->sq, iw->read_wqe);
	if (w->opcode != WR_READ)
		return TERM_OPERATION_OPCODE;
	cause = judge_response(iw, w, s);
	if (cause != TERM_NONE)
		return cause;
	if (s->payload_len && !place_response(tp, qp, w, s)) {
		request_fail_in_turn(tp, qp, iw->read_wqe, WC_LOC_PROT_ERR, now_ns);
		return TERM_DDP_CATASTROPHIC;
	}
	iw->read_done += s->payload_len;
	if (s->ddp.last)
		read_done(tp, qp, w, now_ns);
	return TERM_NONE;
}

static enum term_cause take_atomic_response(struct transport *tp, struct qp *qp, const struct rdmap_segment *s,
					    uint64_t now_ns)
{
	struct iwarp *iw = qp->iwarp;
	struct atomic_response r;
	struct send_wqe *w;

	if (s->ddp.msn != iw->atomic_msn_in)
		return TERM_UNTAGGED_MSN;
	if (!iw->reads_out)
		return TERM_OPERATION_OPCODE; /* nobody asked */
	w = sq_at(&qp->sq, iw->read_wqe);
	atomic_response_decode(&r, s->header);
	if (w->opcode == WR_READ || r.id != iw->read_msn - iw->reads_out)
		return TERM_OPERATION_OPCODE;
	if (!sge_scatter(&tp->mrs, qp->user.pd, send_wqe_sges(w), 0, (const uint8_t *)&r.found, sizeof(r.found))) {
		request_fail_in_turn(tp, qp, iw->read_wqe, WC_LOC_PROT_ERR, now_ns);
		return TERM_DDP_CATASTROPHIC;
	}
	iw->atomic_msn_in++;
	read_done(tp, qp, w, now_ns);
	return TERM_NONE;
}

/* ---- all ------------------------------------------------------------------------------------------ */

static enum term_cause take(struct transport *tp, struct qp *qp, const struct rdmap_segment *s, uint64_t now_ns)
{
	if (s->info->flags & RDMAP_F_RFC7306 && !tp->config.iwarp_rfc7306)
		return TERM_OPERATION_OPCODE;
	switch (s->ddp.opcode) {
	case RDMAP_WRITE: return take_write(tp, qp, s);
	case RDMAP_READ_REQUEST: return take_read_request(tp, qp, s);
	case RDMAP_READ_RESPONSE: return take_response(tp, qp, s, now_ns);
	case RDMAP_SEND:
	case RDMAP_SEND_INV:
	case RDMAP_SEND_SE:
	case RDMAP_SEND_SE_INV: return take_send(tp, qp, s, now_ns);
	case RDMAP_TERMINATE: iwarp_terminated(tp, qp, s, now_ns); return TERM_NONE;
	case RDMAP_IMM:
	case RDMAP_IMM_SE: return take_immediate(tp, qp, s, now_ns);
	case RDMAP_ATOMIC_REQUEST: return take_atomic(tp, qp, s);
	case RDMAP_ATOMIC_RESPONSE: return take_atomic_response(tp, qp, s, now_ns);
	default: return TERM_OPERATION_OPCODE;
	}
}

void iwarp_receive(struct transport *tp, struct qp *qp, const uint8_t *ulpdu, uint32_t len, uint64_t now_ns)
{
	struct rdmap_segment s;
	enum term_cause cause = rdmap_judge(&s, ulpdu, len);

	if (cause == TERM_NONE)
		cause = take(tp, qp, &s, now_ns);
	/* RFC 5040's Remote Protection Errors, and RFC 5041's of tagged buffers. */
	tp->counters.rx_access_refused += cause >> 8 == 0x01 || cause >> 8 == 0x11;
	if (cause != TERM_NONE)
		iwarp_fail(tp, qp, cause, &s, now_ns);
}

/* ---- direct placement ---------------------------------------------------------------------------- */

/* Where the payload of a tagged segment belongs if it came whole now; NULL: it would be refused, or is no such thing.
 */
static uint8_t *destination(const struct transport *tp, const struct qp *qp, const struct rdmap_segment *s)
{
	const struct iwarp *iw = qp->iwarp;
	const struct send_wqe *w;

	if (s->ddp.opcode == RDMAP_WRITE)
		return qp->access & MR_REMOTE_WRITE ? mr_check_remote(&tp->mrs, s->ddp.stag, &qp->user, s->ddp.to,
								      s->payload_len, MR_REMOTE_WRITE)
						    : NULL;
	if (s->ddp.opcode != RDMAP_READ_RESPONSE || !iw->reads_out)
		return NULL;
	w = sq_at(&qp->sq, iw->read_wqe);
	if (w->opcode != WR_READ || judge_response(iw, w, s) != TERM_NONE)
		return NULL;
	return sge_place(&tp->mrs, qp->user.pd, send_wqe_sges(w), iw->read_done, s->payload_len, MR_LOCAL_WRITE);
}

size_t iwarp_place(struct transport *tp, struct qp *qp, uint8_t **to)
{
	struct iwarp *iw = qp->iwarp;
	struct rdmap_segment s;
	uint32_t len, have;
	const uint8_t *ulpdu = iw && !iw->deaf && !tp->mrs.no_payload ? fpdu_begun(&iw->in, &len, &have) : NULL;
	uint8_t *first;

	if (!ulpdu || have < DDP_TAGGED_LEN || !ddp_is_tagged(ulpdu) || len < have + IWARP_PLACE_MIN + IWARP_PLACE_NOT)
		return 0;
	/* There is one gap: behind bytes that came otherwise no second one begins. */
	if (iw->in.gap_len && (uint32_t)iw->in.gap_at + iw->in.gap_len != have)
		return 0;
	first = rdmap_judge(&s, ulpdu, len) == TERM_NONE ? destination(tp, qp, &s) : NULL;
	if (!first)
		return 0;
	if (!iw->in.gap_len)
		iw->gap_to = first + (have - DDP_TAGGED_LEN);
	else if (iw->gap_to != first + (iw->in.gap_at - DDP_TAGGED_LEN))
		return 0;
	*to = first + (have - DDP_TAGGED_LEN);
	return len - have - IWARP_PLACE_NOT;
}
