/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: create, modify, query, destroy (IBTA 10.2.4, 11.2.5). A modify is checked completely
 * before any of it is applied, so one that fails changes nothing.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/ipudp.h"
#include "iwarp/iwarp.h"
#include "nic/state.h"
#include "transport/request.h"
#include "wire/psn.h"

enum { SEND_WR_MIN = 4 };

/* ---- create ---------------------------------------------------------------------------------- */

static bool cap_is_legal(const struct qp_init *init)
{
	const struct qp_cap *c = &init->cap;

	return c->max_send_wr <= NIC_MAX_QP_WR && c->max_send_sge <= NIC_MAX_SGE && c->max_inline <= NIC_MAX_INLINE &&
	       (init->srq || (c->max_recv_wr <= NIC_MAX_QP_WR && c->max_recv_sge <= NIC_MAX_SGE));
}

static void grant(struct qp_init *init)
{
	struct qp_cap *c = &init->cap;

	if (c->max_send_wr && !c->max_send_sge)
		c->max_send_sge = 1;
	/*
	 * Some programs request a queue of one WQE, and post the next one when the answer to the last
	 * request has arrived, before they poll its completion (perftest's ib_send_lat -e). No adapter grants
	 * only one.
	 */
	if (c->max_send_wr && c->max_send_wr < SEND_WR_MIN)
		c->max_send_wr = SEND_WR_MIN;
	if (init->srq) {
		c->max_recv_wr = 0;
		c->max_recv_sge = 0;
	} else if (c->max_recv_wr && !c->max_recv_sge) {
		c->max_recv_sge = 1;
	}
	/* SGEs and inline bytes share a slot's space. */
	if (c->max_inline < c->max_send_sge * sizeof(struct wqe_sge))
		c->max_inline = c->max_send_sge * (uint32_t)sizeof(struct wqe_sge);
}

const struct qp_ops *nic_engine_of(const struct nic *nic, enum qp_type type)
{
	return nic->tp.config.protocol == PROTOCOL_IWARP ? iwarp_engine(type) : qp_engine(type);
}

/* XRC's two halves: one has nothing to receive with, the other has that of SRQs, and nothing to send with. */
static bool has_parts(const struct qp_ops *ops, const struct qp_init *init)
{
	if (ops->borrows)
		return init->xrcd && !init->srq && !init->cap.max_send_wr && !init->cap.max_recv_wr;
	if (ops->sends_only)
		return init->pd && init->send_cq && !init->srq && !init->cap.max_recv_wr;
	return init->pd && init->send_cq && init->recv_cq;
}

/* What the QP uses counts it, or does not any more. */
static void count_users(struct qp *qp, uint32_t by)
{
	if (qp->ops->borrows) {
		qp->xrcd->users += by; /* which counts its SRQs, too */
		return;
	}
	qp->user.pd->users += by;
	qp->send_cq->users += by;
	if (qp->recv_cq)
		qp->recv_cq->users += by;
	if (qp->srq)
		qp->srq->users += by;
}

/* One that is not an SRQ's, nor the empty one of those that borrow. */
static bool owns_rq(const struct qp *qp)
{
	return !qp->srq && !qp->ops->borrows;
}

int qp_make(struct nic *nic, const struct qp_init *init, uint32_t qpn, struct qp **out)
{
	const struct alloc *alloc = &nic->tp.alloc;
	const struct qp_ops *ops = nic_engine_of(nic, init->type);
	struct qp *qp = alloc_get(alloc, sizeof(*qp));
	int err;

	if (!qp)
		return -ENOMEM;
	err = sq_init(&qp->sq, alloc, init->cap.max_send_wr, init->cap.max_send_sge, init->cap.max_inline);
	if (err)
		goto free_qp;
	err = -ENOMEM;
	if (ops->borrows)
		qp->rq = &nic->tp.no_rq;
	else
		qp->rq = init->srq ? &init->srq->rq : rq_create(alloc, init->cap.max_recv_wr, init->cap.max_recv_sge);
	if (!qp->rq)
		goto free_sq;
	err = qp_table_add(nic, qp, qpn);
	if (err)
		goto free_rq;
	qp->ops = ops;
	qp->type = (uint8_t)init->type;
	qp->user.pd = init->pd;
	if (ops->borrows)
		qp->xrcd = init->xrcd;
	else
		qp->send_cq = init->send_cq;
	qp->recv_cq = init->recv_cq;
	qp->srq = init->srq;
	qp->sq_sig_all = init->sq_sig_all;
	qp->mtu = qp->ops->datagram ? nic_active_mtu(nic) : NIC_MTU_BYTES_MAX;
	qp->peer = &nic->tp.elsewhere;
	list_init(&qp->active);
	list_init(&qp->held);
	timer_init(&qp->timer);
	list_init(&qp->event.link);
	qp->event.owner = init->owner;
	count_users(qp, 1);
	nic->tp.counters.qps++;
	*out = qp;
	return 0;

free_rq:
	if (!init->srq && !ops->borrows)
		rq_destroy(qp->rq, alloc);
free_sq:
	sq_fini(&qp->sq, alloc);
free_qp:
	alloc_put(alloc, qp, sizeof(*qp));
	return err;
}

bool qp_may_make(const struct nic *nic, const struct qp_init *init)
{
	const struct qp_ops *ops = nic_engine_of(nic, init->type);

	return ops && has_parts(ops, init) && cap_is_legal(init);
}

int nic_qp_create(struct nic *nic, struct qp_init *init, struct qp **out)
{
	struct qp_init granted = *init;
	int err;

	if (!qp_may_make(nic, init))
		return -EINVAL;
	grant(&granted);
	err = qp_make(nic, &granted, 0, out);
	if (!err)
		init->cap = granted.cap;
	return err;
}

/* Detaches the QP from its peer and from every list, and drops its completions. */
static void detach(struct nic *nic, struct qp *qp)
{
	nic_hear_doorbells(nic);
	qp_take_back(&nic->tp, qp); /* what it has posted is dropped */
	qp->ops->reset(&nic->tp, qp);
	qp->ops = nic_engine_of(nic, (enum qp_type)qp->type);
	qp_halt(&nic->tp, qp);
	qp_deactivate(&nic->tp, qp);
	if (qp->ops->borrows)
		return; /* the completions are those of SRQs */
	cq_purge(qp->send_cq, qp->event.owner);
	if (qp->recv_cq && qp->recv_cq != qp->send_cq)
		cq_purge(qp->recv_cq, qp->event.owner);
}

void nic_qp_destroy(struct nic *nic, struct qp *qp)
{
	const struct alloc *alloc = &nic->tp.alloc;

	detach(nic, qp);
	mw_forget_user(&nic->tp.mrs, &qp->user);
	mcast_detach_all(nic, qp);
	list_remove(&qp->event.link);
	qp_table_remove(nic, qp);
	if (owns_rq(qp))
		rq_destroy(qp->rq, alloc);
	sq_fini(&qp->sq, alloc);
	count_users(qp, (uint32_t)-1);
	nic->tp.counters.qps--;
	alloc_put(alloc, qp, sizeof(*qp));
}

/* ---- modify ---------------------------------------------------------------------------------- */

static bool is_mtu(const struct nic *nic, uint32_t bytes)
{
	/*
	 * Without payload the sizes of buffers do not limit the path MTU; studies use packets of 1000
	 * bytes.
	 */
	if (nic->tp.mrs.no_payload)
		return bytes >= 64 && bytes <= NIC_MTU_BYTES_MAX && bytes % 4 == 0;
	return bytes == 256 || bytes == 512 || bytes == 1024 || bytes == 2048 || bytes == 4096;
}

int qp_judge_values(const struct nic *nic, const struct qp_attr *a, uint32_t mask)
{
	if ((mask & QPA_PKEY_INDEX && a->pkey_index >= nic->pkey_count) || (mask & QPA_PORT && a->port != 1) ||
	    (mask & QPA_PATH_MTU && !is_mtu(nic, a->path_mtu_bytes)) || (mask & QPA_TIMEOUT && a->timeout > 31) ||
	    (mask & QPA_RETRY_CNT && a->retry_cnt > 7) || (mask & QPA_RNR_RETRY && a->rnr_retry > 7) ||
	    (mask & QPA_MIN_RNR_TIMER && a->min_rnr_timer > 31) ||
	    (mask & QPA_MAX_RD_ATOMIC && a->max_rd_atomic > NIC_MAX_RD_ATOM) ||
	    (mask & QPA_MAX_DEST_RD_ATOMIC && a->max_dest_rd_atomic > NIC_MAX_RD_ATOM) ||
	    (mask & QPA_DEST_QPN && a->dest_qpn > PSN_MASK) || (mask & QPA_PATH_MIG_STATE && a->path_mig_state) ||
	    mask & QPA_CAP)
		return -EINVAL;
	/* There is one port, and so no other path to migrate to. */
	return mask & QPA_ALT_PATH ? -EOPNOTSUPP : 0;
}

/* The flow of an address vector, if the path carries that MTU. */
static int judge_path(const struct nic *nic, const struct qp_attr *a, uint32_t mtu, struct flow *flow)
{
	uint32_t ip_mtu;
	int err = nic_resolve(nic, &a->av, flow, &ip_mtu);

	if (err)
		return err;
	if (gid_is_multicast(flow->dst))
		return -EINVAL; /* a connection has one peer */
	return mtu <= nic_path_mtu(ip_mtu) ? 0 : -EINVAL;
}

/* Where the table has its P_Key; 0 for one that has none yet. */
static uint16_t pkey_index(const struct nic *nic, const struct qp *qp)
{
	uint16_t i = 0;

	while (i + 1u < nic->pkey_count && nic->pkeys[i] != qp->pkey)
		i++;
	return nic->pkeys[i] == qp->pkey ? i : 0;
}

static void apply(struct nic *nic, struct qp *qp, const struct qp_attr *a, uint32_t mask, const struct flow *flow)
{
	if (mask & QPA_ACCESS_FLAGS)
		qp->access = (uint16_t)a->access; /* all of enum mr_access are below */
	if (mask & QPA_PKEY_INDEX)
		qp->pkey = nic->pkeys[a->pkey_index];
	if (mask & QPA_PORT)
		qp->port = a->port;
	if (mask & QPA_QKEY)
		qp->qkey = a->qkey;
	if (mask & QPA_PATH_MTU)
		qp->mtu = a->path_mtu_bytes;
	if (mask & QPA_AV) {
		qp->av = (struct qp_av){
			.dlid = a->av.dlid,
			.sgid_index = a->av.sgid_index,
			.hop_limit = a->av.hop_limit,
			.port = a->av.port,
			.is_global = a->av.is_global,
			.static_rate = a->av.static_rate,
			.src_path_bits = a->av.src_path_bits,
			.traffic_class = a->av.traffic_class,
		};
		qp->flow = *flow;
	}
	if (mask & QPA_DEST_QPN)
		qp->dest_qpn = a->dest_qpn;
	if (mask & (QPA_AV | QPA_DEST_QPN))
		qp_find_peer(nic, qp);
	if (mask & QPA_RQ_PSN)
		qp->rq_psn = a->rq_psn & PSN_MASK;
	if (mask & QPA_SQ_PSN)
		qp->sq_psn = a->sq_psn & PSN_MASK;
	if (mask & QPA_TIMEOUT)
		qp->timeout = a->timeout;
	if (mask & QPA_RETRY_CNT)
		qp->retry_cnt = a->retry_cnt;
	if (mask & QPA_RNR_RETRY)
		qp->rnr_retry = a->rnr_retry;
	if (mask & QPA_MIN_RNR_TIMER)
		qp->min_rnr_timer = a->min_rnr_timer;
	if (mask & QPA_MAX_RD_ATOMIC)
		qp->max_rd_atomic = a->max_rd_atomic;
	if (mask & QPA_MAX_DEST_RD_ATOMIC)
		qp->max_dest_rd_atomic = a->max_dest_rd_atomic;
}

/* Resets it to the state after its creation; the CQs' pollers are held off. */
static void reset(struct nic *nic, struct qp *qp)
{
	detach(nic, qp);
	sq_reset(&qp->sq);
	if (owns_rq(qp))
		rq_reset(qp->rq);
	qp->comm_est = false;
	qp->sq_draining = false;
	qp_move(qp, QPS_RESET);
}

void qp_enter(struct nic *nic, struct qp *qp, enum qp_state from, enum qp_state to, uint64_t now_ns)
{
	if (to == QPS_ERR) {
		qp_to_error(&nic->tp, qp, now_ns);
		return;
	}
	if (to == QPS_RESET) {
		reset(nic, qp);
		return;
	}
	if (from == QPS_RTR && to == QPS_RTS)
		qp->ops->start(&nic->tp, qp, now_ns);
	else if (to == QPS_SQD && from == QPS_RTS)
		qp->sq_draining = true;
	else if (to == QPS_RTS)
		qp->sq_draining = false;
	qp_move(qp, to);
	if (to == QPS_RTS)
		qp_activate(&nic->tp, qp);
	qp_check_drained(&nic->tp, qp);
}

void nic_qp_mute(struct nic *nic, struct qp *qp, bool mute)
{
	enum qp_state state = qp_get_state(qp);

	qp->muted = mute;
	qp->last_turn = mute;
	if (mute && qp->peer->full && !list_empty(&qp->active))
		qp_activate(&nic->tp, qp);
	if (!mute && (state == QPS_RTS || state == QPS_SQD))
		qp_activate(&nic->tp, qp);
}

bool nic_qp_needs_paths(const struct nic *nic, const struct qp *qp, const struct qp_attr *a, uint32_t mask)
{
	const uint8_t *to = nic_underlay(nic, a->av.dgid);

	return qp->ops->multipath && mask & QPA_AV && a->av.is_global && to && !nic_is_local(nic, to);
}

/* The QP knows its peer and can find out its protocol, unless there is no memory for a connection. */
static int connect(struct nic *nic, struct qp *qp, const struct qp_attr *a, uint32_t mask, const struct flow *flow,
		   uint64_t now_ns)
{
	struct flow flow_before = qp->flow;
	struct qp_attr before;
	struct qp_init init;
	int err;

	nic_qp_query(nic, qp, &before, &init);
	apply(nic, qp, a, mask, flow);
	err = qp->ops->connect(&nic->tp, qp, now_ns);
	if (err)
		apply(nic, qp, &before, mask, &flow_before);
	return err;
}

int nic_qp_modify(struct nic *nic, struct qp *qp, const struct qp_attr *a, uint32_t mask, uint64_t now_ns)
{
	enum qp_state from = qp_get_state(qp), to = mask & QPA_STATE ? a->state : from;
	uint32_t mtu = mask & QPA_PATH_MTU ? a->path_mtu_bytes : qp->mtu;
	struct flow flow = qp->flow;
	int err;

	if (mask & ~(uint32_t)QPA_KNOWN || (unsigned)to >= QPS_COUNT)
		return -EINVAL;
	nic->tp.qp_changes++;
	if (qp->ops->stream)
		return stream_modify(nic, qp, a, mask, now_ns);
	/* The program may name the current state, but it must be right. */
	if (mask & QPA_CUR_STATE && a->cur_state != from)
		return -EINVAL;
	if (!qp_transition_is_legal(qp->type, from, to, mask))
		return -EINVAL;
	err = qp_judge_values(nic, a, mask);
	if (err)
		return err;
	if (mask & QPA_AV) {
		err = judge_path(nic, a, mtu, &flow);
		if (err)
			return err;
	}
	if (qp->ops->fit) {
		err = qp->ops->fit(&nic->tp, qp, mask & QPA_MAX_RD_ATOMIC ? a->max_rd_atomic : qp->max_rd_atomic,
				   mask & QPA_MAX_DEST_RD_ATOMIC ? a->max_dest_rd_atomic : qp->max_dest_rd_atomic);
		if (err)
			return err;
	}
	if (from == QPS_INIT && to == QPS_RTR) {
		err = connect(nic, qp, a, mask, &flow, now_ns);
		if (err)
			return err;
	} else {
		apply(nic, qp, a, mask, &flow);
	}
	if (mask & QPA_EN_SQD_ASYNC_NOTIFY)
		qp->sqd_notify = a->en_sqd_async_notify;
	else if (to == QPS_SQD && from == QPS_RTS)
		qp->sqd_notify = false;
	if (mask & QPA_AV && qp->ops->readdress)
		qp->ops->readdress(&nic->tp, qp);
	if (mask & QPA_STATE)
		qp_enter(nic, qp, from, to, now_ns);
	qp_checked(&nic->tp, qp);
	return 0;
}

/*
 * Its peer as the program knows it. Of one that has moved the map may know the address where it is, or still the one that
 * it had when the QP connected.
 */
static void name_peer(const struct nic *nic, const struct qp *qp, const uint8_t *peer_gid, uint8_t gid[16])
{
	const uint8_t *had = peer_gid ? peer_gid : qp->flow.dst, *name = had;

	if (nic->tp.gid_map && qp->av.is_global) {
		name = gid_map_vgid(nic->tp.gid_map, qp->flow.dst);
		if (!name)
			name = gid_map_last_vgid(nic->tp.gid_map, had);
	}
	if (name)
		memcpy(gid, name, sizeof(qp->flow.dst));
}

/* The other members are taken from the flow (nic_resolve). */
static struct ah_attr address_vector(const struct nic *nic, const struct qp *qp, const uint8_t *peer_gid)
{
	struct ah_attr av = {
		.flow_label = qp->flow.flow_label,
		.traffic_class = qp->av.traffic_class,
		.dlid = qp->av.dlid,
		.sgid_index = qp->av.sgid_index,
		.hop_limit = qp->av.hop_limit,
		.sl = qp->flow.sl,
		.port = qp->av.port,
		.is_global = qp->av.is_global,
		.static_rate = qp->av.static_rate,
		.src_path_bits = qp->av.src_path_bits,
	};

	name_peer(nic, qp, peer_gid, av.dgid);
	return av;
}

void nic_qp_query(const struct nic *nic, const struct qp *qp, struct qp_attr *a, struct qp_init *init)
{
	struct qp_psns psns;

	qp->ops->query(qp, &psns);
	*a = (struct qp_attr){
		.state = qp_get_state(qp),
		.cur_state = qp_get_state(qp),
		.path_mtu_bytes = qp->mtu,
		.qkey = qp->qkey,
		.rq_psn = psns.rq_psn,
		.sq_psn = psns.sq_psn,
		.dest_qpn = qp->dest_qpn,
		.access = qp->access,
		.av = address_vector(nic, qp, psns.peer_gid),
		.sq_draining = qp->sq_draining,
		.max_rd_atomic = qp->max_rd_atomic,
		.max_dest_rd_atomic = qp->max_dest_rd_atomic,
		.min_rnr_timer = qp->min_rnr_timer,
		.port = qp->port,
		.pkey_index = pkey_index(nic, qp),
		.timeout = qp->timeout,
		.retry_cnt = qp->retry_cnt,
		.rnr_retry = qp->rnr_retry,
	};
	*init = (struct qp_init){
		.type = (enum qp_type)qp->type,
		.pd = qp->user.pd,
		.send_cq = qp->ops->borrows ? NULL : qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.cap = {.max_send_wr = qp->sq.capacity,
			.max_recv_wr = qp->srq ? 0 : qp->rq->capacity,
			.max_send_sge = qp->sq.max_sge,
			.max_recv_sge = qp->srq ? 0 : qp->rq->max_sge,
			.max_inline = qp->sq.max_inline},
		.sq_sig_all = qp->sq_sig_all,
		.owner = qp->event.owner,
	};
}

void *nic_xrc_qp_owner(const struct nic *nic, const struct xrcd *xrcd, uint32_t qpn)
{
	const struct qp *qp = qp_table_find(nic, qpn);

	return qp && qp->ops->borrows && qp->xrcd == xrcd ? qp->event.owner : NULL;
}

void nic_qp_set_owner(struct qp *qp, void *owner)
{
	qp->event.owner = owner;
}

/* ---- for posters ----------------------------------------------------------------------------- */

struct sq *qp_sq(struct qp *qp)
{
	return &qp->sq;
}

struct rq *qp_rq(struct qp *qp)
{
	return owns_rq(qp) ? qp->rq : NULL;
}

uint32_t nic_qp_groups(const struct qp *qp)
{
	return qp->groups;
}

uint32_t qp_number(const struct qp *qp)
{
	return qp->qpn;
}

enum qp_state qp_state(const struct qp *qp)
{
	return (enum qp_state)atomic_load_explicit(&qp->state, memory_order_acquire);
}

bool qp_in_flight(const struct qp *qp)
{
	return atomic_load_explicit(&qp->in_flight, memory_order_relaxed);
}

bool qp_goes_near(const struct qp *qp)
{
	const struct peer *peer = __atomic_load_n(&qp->peer, __ATOMIC_RELAXED);

	return peer_is_near(peer);
}

uint64_t nic_qp_progress(const struct qp *qp)
{
	const struct send_wqe *w;
	struct qp_psns psns;
	int32_t packets;

	if (!qp->ops->reliable || qp->sq.una == qp->sq.next)
		return 0;
	w = sq_at(&qp->sq, qp->sq.una);
	if (request_has_response(w))
		return 0;
	qp->ops->query(qp, &psns);
	/* All of the request is acknowledged, but it is not yet complete. */
	if (psn_diff(psns.una, w->psn_last) > 0)
		return w->length;
	packets = psn_diff(psns.una, w->psn_first);
	return packets > 0 ? (uint64_t)packets * qp->mtu : 0;
}

struct nic_received nic_qp_received(const struct qp *qp)
{
	struct qp_psns psns;

	qp->ops->query(qp, &psns);
	return (struct nic_received){.next = psns.rq_psn, .early = psns.rq_early};
}
