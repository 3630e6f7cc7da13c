/* SPDX-License-Identifier: BSD-2-Clause */
/* Send WQEs: the part that is the same in every protocol. */
#include <string.h>

#include "mem/mw.h"
#include "transport/request.h"

const uint8_t request_opcode[WR_OPCODE_COUNT][REQUEST_PLACES] = {
	[WR_SEND] = {OP_RC_SEND_FIRST, OP_RC_SEND_MIDDLE, OP_RC_SEND_LAST, OP_RC_SEND_ONLY},
	[WR_SEND_IMM] = {OP_RC_SEND_FIRST, OP_RC_SEND_MIDDLE, OP_RC_SEND_LAST_IMM, OP_RC_SEND_ONLY_IMM},
	[WR_SEND_INV] = {OP_RC_SEND_FIRST, OP_RC_SEND_MIDDLE, OP_RC_SEND_LAST_INV, OP_RC_SEND_ONLY_INV},
	[WR_WRITE] = {OP_RC_WRITE_FIRST, OP_RC_WRITE_MIDDLE, OP_RC_WRITE_LAST, OP_RC_WRITE_ONLY},
	[WR_WRITE_IMM] = {OP_RC_WRITE_FIRST, OP_RC_WRITE_MIDDLE, OP_RC_WRITE_LAST_IMM, OP_RC_WRITE_ONLY_IMM},
	[WR_READ] = {OP_RC_READ_REQUEST, OP_RC_READ_REQUEST, OP_RC_READ_REQUEST, OP_RC_READ_REQUEST},
	[WR_CMP_SWAP] = {OP_RC_CMP_SWAP, OP_RC_CMP_SWAP, OP_RC_CMP_SWAP, OP_RC_CMP_SWAP},
	[WR_FETCH_ADD] = {OP_RC_FETCH_ADD, OP_RC_FETCH_ADD, OP_RC_FETCH_ADD, OP_RC_FETCH_ADD},
	[WR_FLUSH] = {OP_RC_FLUSH, OP_RC_FLUSH, OP_RC_FLUSH, OP_RC_FLUSH},
	[WR_ATOMIC_WRITE] = {OP_RC_ATOMIC_WRITE, OP_RC_ATOMIC_WRITE, OP_RC_ATOMIC_WRITE, OP_RC_ATOMIC_WRITE},
};

static const uint64_t message_bytes_max = 1u << 31; /* IBTA 9.7.6 */

static bool sges_open(const struct transport *tp, const struct qp *qp, const struct send_wqe *w)
{
	uint32_t access = request_is_read(w) || request_is_atomic(w) ? MR_LOCAL_WRITE : 0;

	return w->flags & WR_INLINE || sge_check(&tp->mrs, qp->user.pd, send_wqe_sges(w), access);
}

enum wc_status request_judge(const struct transport *tp, const struct qp *qp, const struct send_wqe *w)
{
	if (!request_opcode[w->opcode][REQUEST_ONLY] && w->opcode != WR_SEND)
		return WC_LOC_QP_OP_ERR;
	/* IBTA A19 has the two for RC (and RD) alone. */
	if (qp->type != QPT_RC && (w->opcode == WR_FLUSH || w->opcode == WR_ATOMIC_WRITE))
		return WC_LOC_QP_OP_ERR;
	if (qp->type == QPT_UC && (request_has_response(w) || w->opcode == WR_SEND_INV))
		return WC_LOC_QP_OP_ERR;
	if (request_has_response(w) && !qp->max_rd_atomic)
		return WC_LOC_QP_OP_ERR;
	if (w->length > message_bytes_max)
		return WC_LOC_LEN_ERR;
	if ((request_is_atomic(w) || w->opcode == WR_ATOMIC_WRITE) && w->length != ATOMIC_WRITE_BYTES)
		return WC_LOC_LEN_ERR;
	return sges_open(tp, qp, w) ? WC_SUCCESS : WC_LOC_PROT_ERR;
}

/* Of a stream of messages the peer reads many by one system call. */
static bool is_short_and_alone(const struct qp *qp, const struct send_wqe *w)
{
	return w->length <= MR_ALONE_COPIED_MAX && w == sq_at(&qp->sq, qp->sq.una);
}

bool request_gather(const struct transport *tp, const struct qp *qp, struct send_wqe *w, uint32_t off, uint8_t *to,
		    uint32_t len)
{
	if (w->flags & WR_INLINE) {
		if (tp->mrs.lends)
			tp->mrs.lender->far.len = 0;
		memcpy(to, send_wqe_inline(w) + off, len);
		return true;
	}
	if (__builtin_expect(tp->mrs.lends, 0))
		mr_set_copies(&tp->mrs, is_short_and_alone(qp, w));
	return !len || sge_gather(&tp->mrs, qp->user.pd, send_wqe_sges(w), off, to, len);
}

static bool execute(struct transport *tp, struct qp *qp, const struct send_wqe *w)
{
	if (w->opcode == WR_BIND_MW)
		return mw_bind(&tp->mrs,
			       &(struct mw_binding){
				       .addr = w->bind.addr,
				       .length = w->bind.length,
				       .handle = w->bind.handle,
				       .rkey = w->rkey,
				       .lkey = w->bind.lkey,
				       .access = w->bind.access,
			       },
			       &qp->user);
	if (!mw_may_invalidate(&tp->mrs, w->imm_or_key, &qp->user))
		return false;
	mw_invalidate(&tp->mrs, w->imm_or_key, &qp->user);
	return true;
}

bool request_execute(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	uint32_t index = qp->sq.next;
	struct send_wqe *w = sq_at(&qp->sq, index);

	if (w->flags & WR_FAILS) {
		request_fail_in_turn(tp, qp, index, (enum wc_status)w->rkey, now_ns);
		return false;
	}
	/* A QP that falls back to RoCEv2 starts its WQEs anew. */
	if (!w->done && (qp->type == QPT_UD || !execute(tp, qp, w))) {
		request_fail_in_turn(tp, qp, index, WC_MW_BIND_ERR, now_ns);
		return false;
	}
	w->done = true;
	qp->sq.next++;
	qp->locals_wait = true;
	if (qp->sq.una == index)
		complete_send(tp, qp, WC_SUCCESS, now_ns);
	return qp_get_state(qp) != QPS_ERR;
}

void request_fail_in_turn(struct transport *tp, struct qp *qp, uint32_t index, enum wc_status status, uint64_t now_ns)
{
	if (qp->sq.una != index) {
		qp->failed = (uint8_t)status;
		qp->failed_wqe = index;
		return;
	}
	complete_send(tp, qp, status, now_ns);
	if (qp->type != QPT_UC && qp->type != QPT_UD)
		qp_to_error(tp, qp, now_ns);
	else
		qp_to_sqe(tp, qp, now_ns);
}
