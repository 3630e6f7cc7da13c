/* SPDX-License-Identifier: BSD-2-Clause */
/* Unreliable datagram: one packet a message, to the destination in its work request (IBTA 9.8.3). */
#include <string.h>

#include "base/gid_map.h"
#include "base/ipudp.h"
#include "transport/archive.h"
#include "transport/qp.h"
#include "transport/request.h"
#include "wire/deth.h"
#include "wire/grh.h"
#include "wire/icrc.h"
#include "wire/immdt.h"
#include "wire/psn.h"

/*
 * IBTA A17.4.5.1 requires a UD completion to report the kind of IP header, and verbs has no field for it.
 * ConnectX reports it in the service level, which RoCEv2 does not use, and UCX reads it there.
 */
enum { UD_SL_IPV6 = 1, UD_SL_IPV4 = 2, UD_SL_UDP = 8 };

/* RoCEv1's service level is its own. */
static uint8_t service_level(const struct flow *f)
{
	if (!flow_has_udp(f))
		return f->sl;
	return flow_is_ipv4(f) ? UD_SL_UDP | UD_SL_IPV4 : UD_SL_UDP | UD_SL_IPV6;
}

/* Places the 40 bytes ahead of the payload, and the payload, in the receive WQE. */
static bool place(struct transport *tp, struct qp *qp, struct recv_wqe *w, const struct rx *rx)
{
	struct sge_list list = recv_wqe_sges(w);
	const struct pd *pd = qp_source_pd(qp);
	const struct flow *flow = rx->pkt->flow;
	struct flow shown;
	uint8_t grh[GRH_LEN];

	if (tp->gid_map) {
		shown = *flow;
		gid_map_show(tp->gid_map, &shown);
		flow = &shown;
	}
	grh_from_flow(grh, flow, rx->pkt->len);
	return sge_scatter(&tp->mrs, pd, list, 0, grh, GRH_LEN) &&
	       (!rx->payload_len || sge_scatter(&tp->mrs, pd, list, GRH_LEN, rx->payload, rx->payload_len));
}

/*
 * The receive WQE for a datagram, or NULL: it is dropped, and takes none. Anyone who knows the Q_Key
 * may send any length, so one that does not fit is not the receiver's error (IBTA 9.9.3, class D).
 */
static struct recv_wqe *take_recv(struct transport *tp, struct qp *qp, uint32_t payload_len)
{
	const struct recv_wqe *next = rq_peek(qp->rq);

	if (!next || payload_len > qp->mtu) {
		tp->counters.rx_dropped++;
		return NULL;
	}
	if (GRH_LEN + payload_len > next->length) {
		tp->counters.rx_too_long++;
		return NULL;
	}
	return qp_take_recv(tp, qp);
}

/* What the map lacks is no sender's address that a program could answer to. */
static bool has_names(const struct transport *tp, const struct flow *flow)
{
	struct flow shown;

	if (!tp->gid_map)
		return true;
	shown = *flow;
	return gid_map_show(tp->gid_map, &shown);
}

static void ud_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	struct cqe cqe = {.status = WC_SUCCESS, .opcode = WC_RECV};
	struct recv_wqe *w;
	struct deth deth;

	deth_decode(&deth, rx_header(rx, H_DETH));
	if (deth.qkey != qp->qkey || !has_names(tp, rx->pkt->flow)) {
		tp->counters.rx_wrong_source++;
		return;
	}
	w = take_recv(tp, qp, rx->payload_len);
	if (!w)
		return;
	if (!place(tp, qp, w, rx))
		cqe.status = WC_LOC_PROT_ERR;
	cqe.byte_len = GRH_LEN + rx->payload_len;
	cqe.src_qp = deth.sqpn;
	cqe.solicited = rx->bth->se;
	cqe.flags = WC_GRH;
	cqe.sl = service_level(rx->pkt->flow);
	if (rx->info->flags & F_IMM) {
		struct immdt immdt;

		immdt_decode(&immdt, rx_header(rx, H_IMMDT));
		cqe.imm_or_key = immdt.imm;
		cqe.flags |= WC_WITH_IMM;
	}
	complete_recv(tp, qp, w, &cqe, rx->now_ns);
	if (cqe.status != WC_SUCCESS)
		qp_to_error(tp, qp, rx->now_ns);
}

static enum wc_status judge_wqe(const struct transport *tp, const struct qp *qp, const struct send_wqe *w)
{
	if (w->opcode != WR_SEND && w->opcode != WR_SEND_IMM)
		return w->flags & WR_FAILS ? (enum wc_status)w->rkey : WC_LOC_QP_OP_ERR;
	if (w->length > qp->mtu)
		return WC_LOC_LEN_ERR;
	if (!(w->flags & WR_INLINE) && !sge_check(&tp->mrs, qp->user.pd, send_wqe_sges(w), 0))
		return WC_LOC_PROT_ERR;
	return WC_SUCCESS;
}

enum sent { SENT, SENT_NO_ROOM, SENT_FAILED /* its memory is gone */ };

static enum sent send_datagram(struct transport *tp, struct qp *qp, struct send_wqe *w)
{
	bool imm = w->opcode == WR_SEND_IMM;
	uint32_t pad = -w->length & 3, at = BTH_LEN;
	const struct flow *flow = tx_keep_flow(&tp->tx, &w->ud.flow);
	uint8_t *p = flow ? tx_room(&tp->tx, qp->mtu + TX_HEADROOM_MAX) : NULL;

	if (!p)
		return SENT_NO_ROOM;
	bth_encode(p, &(struct bth){.opcode = imm ? OP_UD_SEND_ONLY_IMM : OP_UD_SEND_ONLY,
				    .se = w->flags & WR_SOLICITED,
				    .migreq = true,
				    .pad = (uint8_t)pad,
				    .pkey = qp->pkey,
				    .dqpn = w->ud.dqpn,
				    .psn = qp->gbn->req.psn});
	deth_encode(p + at, &(struct deth){.qkey = w->ud.qkey >> 31 ? qp->qkey : w->ud.qkey, .sqpn = qp->qpn});
	at += DETH_LEN;
	if (imm) {
		immdt_encode(p + at, &(struct immdt){.imm = w->imm_or_key});
		at += IMMDT_LEN;
	}
	if (!request_gather(tp, qp, w, 0, p + at, w->length))
		return SENT_FAILED;
	if (pad)
		memset(p + at + w->length, 0, pad);
	tx_commit(&tp->tx, flow, w->ud.dqpn, at + w->length + pad);
	tp->counters.tx_multicast += w->ud.dqpn == 0xffffff;
	qp->gbn->req.psn = psn_add(qp->gbn->req.psn, 1);
	return SENT;
}

static bool ud_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	enum qp_state state = qp_get_state(qp);

	if (state == QPS_ERR || state == QPS_SQE) {
		qp_flush(tp, qp, now_ns);
		return false;
	}
	/* Each datagram has a service level of its own: a pause of any level stops them all. */
	if (state != QPS_RTS || tp->paused_sls || qp->muted)
		return false;
	for (uint32_t budget = QP_OUTPUT_QUANTUM; qp->sq.next != sq_head(&qp->sq);) {
		struct send_wqe *w = sq_at(&qp->sq, qp->sq.next);
		enum wc_status status = judge_wqe(tp, qp, w);
		enum sent sent = SENT_FAILED;

		if (status == WC_SUCCESS) {
			sent = budget-- ? send_datagram(tp, qp, w) : SENT_NO_ROOM;
			if (sent == SENT_FAILED)
				status = WC_LOC_PROT_ERR;
		}
		if (sent == SENT_NO_ROOM)
			return true;
		complete_send(tp, qp, status, now_ns);
		if (sent == SENT_FAILED) {
			qp_to_sqe(tp, qp, now_ns);
			return false;
		}
		if (qp_get_state(qp) != QPS_RTS)
			return false;
	}
	return false;
}

static void ud_expire(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
}

/* A receiver of datagrams does not check PSNs. */
static void ud_query(const struct qp *qp, struct qp_psns *psns)
{
	uint32_t next = qp->gbn ? qp->gbn->req.psn : qp->sq_psn;

	*psns = (struct qp_psns){.sq_psn = next, .una = next};
}

const struct qp_ops ud_ops = {
	.service = SVC_UD,
	.datagram = true,
	.connect = gbn_connect,
	.start = requester_start,
	.reset = gbn_reset,
	.seal = &seal_icrc,
	.input = ud_input,
	.output = ud_output,
	.expire = ud_expire,
	.silence = gbn_silence,
	.query = ud_query,
	.archive = gbn_archive,
};
