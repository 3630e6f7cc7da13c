/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The message that a responder is receiving (struct responder: message, rwqe, write_*, received).
 *
 * Invariant: rwqe is held from a SEND's first packet, or from a WRITE-with-immediate's last, to its
 * completion; a UC message that is dropped leaves it for the next one.
 */
#include "mem/mw.h"
#include "transport/message.h"
#include "wire/aeth.h"
#include "wire/ieth.h"
#include "wire/immdt.h"
#include "wire/reth.h"

const struct rx_consequence rx_consequences[RX_VERDICTS] = {
	[RX_INVALID] = {AETH_NAK | NAK_INVALID_REQUEST, WC_WR_FLUSH_ERR, EVENT_QP_REQ_ERR},
	[RX_TOO_LONG] = {AETH_NAK | NAK_INVALID_REQUEST, WC_LOC_LEN_ERR, EVENT_QP_REQ_ERR},
	[RX_ACCESS] = {AETH_NAK | NAK_REMOTE_ACCESS, WC_LOC_ACCESS_ERR, EVENT_QP_ACCESS_ERR},
	/* IBTA A14.5: an XRCETH violation is a remote access error of the QP, and an invalid request to its peer. */
	[RX_NO_SRQ] = {AETH_NAK | NAK_INVALID_REQUEST, WC_WR_FLUSH_ERR, EVENT_QP_ACCESS_ERR},
	/* Class J, without a NAK. Linux's rxe acknowledges the message too, which has arrived, and has the same status.
	 */
	[RX_KEY_STAYS] = {AETH_ACK | AETH_CREDIT_INVALID, WC_REM_INV_REQ_ERR, EVENT_QP_ACCESS_ERR},
	[RX_LOCAL_FAULT] = {AETH_NAK | NAK_REMOTE_OPERATIONAL, WC_LOC_PROT_ERR, EVENT_QP_FATAL},
};

void message_answered(struct transport *tp, uint8_t syndrome)
{
	uint8_t kind = aeth_kind(syndrome);

	tp->counters.acks_sent += kind == AETH_ACK;
	tp->counters.rnrs_sent += kind == AETH_RNR_NAK;
	tp->counters.naks_sent += kind == AETH_NAK;
}

/* IBTA 9.7.4.1.2, 9.8.3.1: FIRST and ONLY begin a message, MIDDLE and LAST continue one of their kind. */
static bool fits_sequence(const struct responder *rsp, const struct opcode_info *info)
{
	if (info->flags & F_START)
		return !rsp->message;
	return rsp->message == (info->flags & (F_SEND | F_WRITE));
}

/* IBTA 9.7.4.1.6: FIRST and MIDDLE fill the path MTU, LAST has at least a byte. */
static bool fits_mtu(const struct qp *qp, const struct rx *rx)
{
	if (rx->info->flags & F_FULL)
		return rx->payload_len == qp->mtu;
	if (rx->info->flags & F_LAST && !rx->payload_len)
		return false;
	return rx->payload_len <= qp->mtu;
}

static bool hold_recv(struct transport *tp, struct qp *qp)
{
	if (!qp->gbn->rsp.rwqe)
		qp->gbn->rsp.rwqe = qp_take_recv(tp, qp);
	return qp->gbn->rsp.rwqe;
}

static enum rx_verdict judge_send(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	uint64_t received = rx->info->flags & F_START ? 0 : qp->gbn->rsp.received;

	if (!hold_recv(tp, qp))
		return RX_NOT_READY;
	if (received + rx->payload_len > qp->gbn->rsp.rwqe->length)
		return RX_TOO_LONG;
	return RX_EXECUTE;
}

static enum rx_verdict judge_write(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	uint32_t flags = rx->info->flags;
	uint64_t len = qp->gbn->rsp.write_len, received = qp->gbn->rsp.received;

	if (flags & F_START) {
		struct reth reth;

		if (!(qp->access & MR_REMOTE_WRITE))
			return RX_INVALID;
		reth_decode(&reth, rx_header(rx, H_RETH));
		/* IBTA C9-88: the R_Key of a zero-length WRITE is not checked. */
		if (reth.len && !mr_check_remote(&tp->mrs, reth.rkey, &qp->user, reth.va, reth.len, MR_REMOTE_WRITE)) {
			/* Its completion reports the error; UC has none, and may not keep what others share. */
			if (flags & F_IMM && qp->type != QPT_UC)
				hold_recv(tp, qp);
			return RX_ACCESS;
		}
		len = reth.len;
		received = 0;
	}
	received += rx->payload_len;
	if (flags & F_END ? received != len : received > len)
		return RX_INVALID;
	if (flags & F_IMM && !hold_recv(tp, qp))
		return RX_NOT_READY;
	return RX_EXECUTE;
}

enum rx_verdict message_judge(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	if (!fits_sequence(&qp->gbn->rsp, rx->info) || !fits_mtu(qp, rx))
		return RX_INVALID;
	return rx->info->flags & F_SEND ? judge_send(tp, qp, rx) : judge_write(tp, qp, rx);
}

static enum rx_verdict place_write(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	struct responder *rsp = &qp->gbn->rsp;
	uint8_t *to;

	if (!rx->payload_len)
		return RX_EXECUTE;
	/* Checked for each packet: the region may be gone since the message began. */
	to = mr_check_remote(&tp->mrs, rsp->write_rkey, &qp->user, rsp->write_va + rsp->received, rx->payload_len,
			     MR_REMOTE_WRITE);
	return to && mr_write(&tp->mrs, to, rx->payload, rx->payload_len) ? RX_EXECUTE : RX_ACCESS;
}

static enum rx_verdict place_send(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	const struct responder *rsp = &qp->gbn->rsp;

	if (!rx->payload_len || sge_scatter(&tp->mrs, qp_source_pd(qp), recv_wqe_sges(rsp->rwqe), rsp->received,
					    rx->payload, rx->payload_len))
		return RX_EXECUTE;
	return RX_LOCAL_FAULT;
}

static enum rx_verdict finish(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	uint32_t flags = rx->info->flags;
	struct responder *rsp = &qp->gbn->rsp;
	struct recv_wqe *w = rsp->rwqe;
	struct cqe cqe = {
		.status = WC_SUCCESS,
		.opcode = flags & F_WRITE ? WC_RECV_RDMA_WITH_IMM : WC_RECV,
		.byte_len = (uint32_t)rsp->received,
		.src_qp = qp->dest_qpn,
		.sl = qp->flow.sl,
		.solicited = rx->bth->se,
	};

	rsp->message = 0;
	if (flags & F_WRITE)
		tp->counters.rx_write_requests++;
	if (flags & F_WRITE && !(flags & F_IMM))
		return RX_EXECUTE;
	if (flags & F_IMM) {
		struct immdt immdt;

		immdt_decode(&immdt, rx_header(rx, H_IMMDT));
		cqe.imm_or_key = immdt.imm;
		cqe.flags = WC_WITH_IMM;
	} else if (flags & F_INV) {
		struct ieth ieth;

		ieth_decode(&ieth, rx_header(rx, H_IETH));
		if (!mw_may_invalidate(&tp->mrs, ieth.rkey, &qp->user))
			return RX_KEY_STAYS;
		mw_invalidate(&tp->mrs, ieth.rkey, &qp->user);
		cqe.imm_or_key = ieth.rkey;
		cqe.flags = WC_WITH_INV;
	}
	rsp->rwqe = NULL;
	complete_recv(tp, qp, w, &cqe, rx->now_ns);
	return RX_EXECUTE;
}

static void begin(struct responder *rsp, const struct rx *rx)
{
	rsp->message = rx->info->flags & (F_SEND | F_WRITE);
	rsp->received = 0;
	if (rx->info->flags & F_WRITE) {
		struct reth reth;

		reth_decode(&reth, rx_header(rx, H_RETH));
		rsp->write_va = reth.va;
		rsp->write_rkey = reth.rkey;
		rsp->write_len = reth.len;
	}
}

enum rx_verdict message_execute(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	struct responder *rsp = &qp->gbn->rsp;
	enum rx_verdict v;

	if (rx->info->flags & F_START)
		begin(rsp, rx);
	v = rx->info->flags & F_WRITE ? place_write(tp, qp, rx) : place_send(tp, qp, rx);
	if (v != RX_EXECUTE)
		return v;
	rsp->received += rx->payload_len;
	return rx->info->flags & F_END ? finish(tp, qp, rx) : RX_EXECUTE;
}

void message_fail(struct transport *tp, struct qp *qp, enum wc_status status, uint64_t now_ns)
{
	struct recv_wqe *w = qp->gbn->rsp.rwqe;
	struct cqe cqe = {.status = status, .opcode = WC_RECV};

	if (!w)
		return;
	qp->gbn->rsp.rwqe = NULL;
	complete_recv(tp, qp, w, &cqe, now_ns);
}
