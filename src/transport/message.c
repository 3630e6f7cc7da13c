/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The message a responder is in the middle of (struct responder: message, rwqe, write_*, received).
 *
 * Invariant: rwqe is held from a SEND's first packet, or from a WRITE-with-immediate's last, to its
 * completion; a UC message that is dropped leaves it for the next one.
 */
#include "transport/message.h"
#include "wire/aeth.h"
#include "wire/ieth.h"
#include "wire/immdt.h"
#include "wire/reth.h"

const struct rx_consequence rx_consequences[RX_VERDICTS] = {
	[RX_INVALID] = {AETH_NAK | NAK_INVALID_REQUEST, WC_WR_FLUSH_ERR, EVENT_QP_REQ_ERR},
	[RX_TOO_LONG] = {AETH_NAK | NAK_INVALID_REQUEST, WC_LOC_LEN_ERR, EVENT_QP_REQ_ERR},
	[RX_ACCESS] = {AETH_NAK | NAK_REMOTE_ACCESS, WC_LOC_ACCESS_ERR, EVENT_QP_ACCESS_ERR},
	[RX_LOCAL_FAULT] = {AETH_NAK | NAK_REMOTE_OPERATIONAL, WC_LOC_PROT_ERR, EVENT_QP_FATAL},
};

/* IBTA 9.7.4.1.2, 9.8.3.1: FIRST and ONLY begin a message, MIDDLE and LAST go on with one of their kind. */
static bool fits_sequence(const struct responder *rsp, const struct opcode_info *info)
{
	if (info->flags & F_START)
		return !rsp->message;
	return rsp->message == (info->flags & (F_SEND | F_WRITE));
}

/* IBTA 9.7.4.1.6: FIRST and MIDDLE fill the path MTU, LAST has at least a byte. */
static bool fits_mtu(const struct qp *qp, const struct opcode_info *info, uint32_t payload_len)
{
	if (info->flags & F_FULL)
		return payload_len == qp->mtu;
	if (info->flags & F_LAST && !payload_len)
		return false;
	return payload_len <= qp->mtu;
}

static bool hold_recv(struct transport *tp, struct qp *qp)
{
	if (!qp->gbn->rsp.rwqe)
		qp->gbn->rsp.rwqe = qp_take_recv(tp, qp);
	return qp->gbn->rsp.rwqe;
}

static enum rx_verdict judge_send(struct transport *tp, struct qp *qp,
				  const struct opcode_info *info, const uint8_t *headers,
				  uint32_t payload_len)
{
	uint64_t received = info->flags & F_START ? 0 : qp->gbn->rsp.received;

	if (!hold_recv(tp, qp))
		return RX_NOT_READY;
	if (received + payload_len > qp->gbn->rsp.rwqe->length)
		return RX_TOO_LONG;
	if (info->flags & F_INV) {
		struct ieth ieth;
		const struct mr *mr;

		ieth_decode(&ieth, headers + opcode_header_offset(info, H_IETH));
		mr = mr_find(&tp->mrs, ieth.rkey);
		if (!mr || mr->pd != qp->pd)
			return RX_ACCESS;
	}
	return RX_EXECUTE;
}

static enum rx_verdict judge_write(struct transport *tp, struct qp *qp,
				   const struct opcode_info *info, const uint8_t *headers,
				   uint32_t payload_len)
{
	uint64_t len = qp->gbn->rsp.write_len, received = qp->gbn->rsp.received;

	if (info->flags & F_START) {
		struct reth reth;

		if (!(qp->access & MR_REMOTE_WRITE))
			return RX_INVALID;
		reth_decode(&reth, headers + opcode_header_offset(info, H_RETH));
		/* IBTA C9-88: the R_Key of a zero-length WRITE is not looked at. */
		if (reth.len && !mr_check(&tp->mrs, reth.rkey, qp->pd, reth.va, reth.len,
					  MR_REMOTE_WRITE)) {
			if (info->flags & F_IMM)
				hold_recv(tp, qp); /* the program learns of it there */
			return RX_ACCESS;
		}
		len = reth.len;
		received = 0;
	}
	if (info->flags & F_END ? received + payload_len != len : received + payload_len > len)
		return RX_INVALID;
	if (info->flags & F_IMM && !hold_recv(tp, qp))
		return RX_NOT_READY;
	return RX_EXECUTE;
}

enum rx_verdict message_judge(struct transport *tp, struct qp *qp, const struct opcode_info *info,
			      const uint8_t *headers, uint32_t payload_len)
{
	if (!fits_sequence(&qp->gbn->rsp, info) || !fits_mtu(qp, info, payload_len))
		return RX_INVALID;
	if (info->flags & F_SEND)
		return judge_send(tp, qp, info, headers, payload_len);
	return judge_write(tp, qp, info, headers, payload_len);
}

static enum rx_verdict place_write(struct transport *tp, struct qp *qp, const uint8_t *payload,
				   uint32_t payload_len)
{
	struct responder *rsp = &qp->gbn->rsp;
	uint8_t *to;

	if (!payload_len)
		return RX_EXECUTE;
	/* Again for each packet: the region may be gone since the message began. */
	to = mr_check(&tp->mrs, rsp->write_rkey, qp->pd, rsp->write_va + rsp->received, payload_len,
		      MR_REMOTE_WRITE);
	return to && mr_write(&tp->mrs, to, payload, payload_len) ? RX_EXECUTE : RX_ACCESS;
}

/* The region loses its remote access; its L_Key goes on working (IBTA 10.6.7.2, C10-70). */
void message_invalidate(struct transport *tp, uint32_t rkey)
{
	struct mr *mr = mr_find(&tp->mrs, rkey);

	if (mr)
		mr->access &= ~(MR_REMOTE_READ | MR_REMOTE_WRITE | MR_REMOTE_ATOMIC);
}

static void finish(struct transport *tp, struct qp *qp, const struct bth *bth,
		   const struct opcode_info *info, const uint8_t *headers, uint64_t now_ns)
{
	struct responder *rsp = &qp->gbn->rsp;
	struct recv_wqe *w = rsp->rwqe;
	struct cqe cqe = {
		.status = WC_SUCCESS,
		.opcode = info->flags & F_WRITE ? WC_RECV_RDMA_WITH_IMM : WC_RECV,
		.byte_len = (uint32_t)rsp->received,
		.src_qp = qp->dest_qpn,
		.sl = qp->flow.sl,
		.solicited = bth->se,
	};

	rsp->message = 0;
	if (info->flags & F_WRITE && !(info->flags & F_IMM))
		return;
	if (info->flags & F_IMM) {
		struct immdt immdt;

		immdt_decode(&immdt, headers + opcode_header_offset(info, H_IMMDT));
		cqe.imm_or_key = immdt.imm;
		cqe.flags = WC_WITH_IMM;
	} else if (info->flags & F_INV) {
		struct ieth ieth;

		ieth_decode(&ieth, headers + opcode_header_offset(info, H_IETH));
		message_invalidate(tp, ieth.rkey);
		cqe.imm_or_key = ieth.rkey;
		cqe.flags = WC_WITH_INV;
	}
	rsp->rwqe = NULL;
	complete_recv(tp, qp, w, &cqe, now_ns);
}

enum rx_verdict message_execute(struct transport *tp, struct qp *qp, const struct bth *bth,
				const struct opcode_info *info, const uint8_t *headers,
				const uint8_t *payload, uint32_t payload_len, uint64_t now_ns)
{
	struct responder *rsp = &qp->gbn->rsp;

	if (info->flags & F_START) {
		rsp->message = info->flags & (F_SEND | F_WRITE);
		rsp->received = 0;
		if (info->flags & F_WRITE) {
			struct reth reth;

			reth_decode(&reth, headers + opcode_header_offset(info, H_RETH));
			rsp->write_va = reth.va;
			rsp->write_rkey = reth.rkey;
			rsp->write_len = reth.len;
		}
	}
	if (info->flags & F_WRITE) {
		enum rx_verdict v = place_write(tp, qp, payload, payload_len);

		if (v != RX_EXECUTE)
			return v;
	} else if (payload_len && !sge_scatter(&tp->mrs, qp_source_pd(qp),
					       (struct sge *)rsp->rwqe->sge, rsp->rwqe->num_sge,
					       rsp->received, payload, payload_len)) {
		return RX_LOCAL_FAULT;
	}
	rsp->received += payload_len;
	if (info->flags & F_END)
		finish(tp, qp, bth, info, headers, now_ns);
	return RX_EXECUTE;
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
