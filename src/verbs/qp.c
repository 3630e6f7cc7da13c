/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: creation, the attributes in both directions, destruction. The nic decides by its
 * state table; this file only converts structs and units.
 */
#include <string.h>

#include "verbs/explain.h"
#include "verbs/objects.h"
#include "verbs/qp_explain.h"

static_assert(sizeof(struct ibv_qp) == 160, "ABI");
static_assert(offsetof(struct ibv_qp, qp_num) == 52, "ABI");
static_assert(offsetof(struct ibv_qp, state) == 56, "ABI");
static_assert(offsetof(struct ibv_qp, qp_type) == 60, "ABI");
static_assert(offsetof(struct ibv_qp, events_completed) == 152, "ABI");
static_assert(sizeof(struct ibv_qp_ex) <= QP_EX_BYTES, "ABI");
static_assert(sizeof(struct ibv_qp_init_attr) == 64, "ABI");
static_assert(sizeof(struct ibv_qp_init_attr_ex) == 136, "ABI");
static_assert(sizeof(struct ibv_qp_attr) == 144, "ABI");
static_assert((int)IBV_QPT_RC == QPT_RC && (int)IBV_QPT_UC == QPT_UC && (int)IBV_QPT_UD == QPT_UD &&
		      (int)IBV_QPS_SQE == QPS_SQE && (int)IBV_QPS_ERR == QPS_ERR &&
		      (int)IBV_QP_DEST_QPN == QPA_DEST_QPN && (int)IBV_QP_SQ_PSN == QPA_SQ_PSN &&
		      (int)IBV_QP_AV == QPA_AV,
	      "the numbers are one");

static struct cq *core_cq(struct ibv_cq *cq)
{
	return cq_of(cq)->core;
}

/*
 * Holds off the engine and the pollers of both CQs and, to empty the queues, the posters. No thread
 * waits for a program's lock with the engine locked: a program may hold one and need the engine. 0,
 * or EIO in a child of fork() where a thread of the parent's had one of the locks.
 */
static int quiesce(struct abi_qp *qp, bool posters)
{
	struct spin *lock[4];
	int count = 0, got;

	if (posters) {
		lock[count++] = &qp->sq_lock;
		lock[count++] = &qp->rq_lock;
	}
	lock[count++] = &cq_of(qp->pub.send_cq)->poll_lock;
	if (qp->pub.recv_cq != qp->pub.send_cq)
		lock[count++] = &cq_of(qp->pub.recv_cq)->poll_lock;
	for (;;) {
		engine_lock(qp->engine);
		for (got = 0; got < count && spin_trylock(lock[got]); got++)
			;
		if (got == count)
			return 0;
		while (got > 0)
			spin_unlock(lock[--got]);
		engine_unlock(qp->engine);
		if (engine_is_lost(qp->engine))
			return EIO;
		sched_yield();
	}
}

static void resume(struct abi_qp *qp, bool posters)
{
	if (qp->pub.recv_cq != qp->pub.send_cq)
		spin_unlock(&cq_of(qp->pub.recv_cq)->poll_lock);
	spin_unlock(&cq_of(qp->pub.send_cq)->poll_lock);
	if (posters) {
		spin_unlock(&qp->rq_lock);
		spin_unlock(&qp->sq_lock);
	}
	engine_unlock(qp->engine);
}

/*
 * Before the QP stops answering, the peer must get the ACKs of everything that a completion reported
 * here; one may still wait for a packet to travel with. Unlocking does a turn of output, in which no
 * queued WR may leave any more, because its memory may be gone.
 */
static void acks_flush(struct abi_qp *qp)
{
	struct nic *nic = context_of(qp->pub.context)->nic;

	engine_lock_quietly(qp->engine);
	nic_qp_mute(nic, qp->core, true);
	nic_hold_acks(nic, false);
	engine_unlock(qp->engine);
}

static void qp_reap(struct object *o)
{
	struct abi_qp *qp = container_of(o, struct abi_qp, object);

	nic_qp_destroy(context_of(qp->pub.context)->nic, qp->core);
	engine_leave_unused(qp->engine);
}

static void cap_to_verbs(struct ibv_qp_cap *to, const struct qp_cap *from)
{
	to->max_send_wr = from->max_send_wr;
	to->max_recv_wr = from->max_recv_wr;
	to->max_send_sge = from->max_send_sge;
	to->max_recv_sge = from->max_recv_sge;
	to->max_inline_data = from->max_inline;
}

static int init_check(const struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	switch ((int)attr->qp_type) {
	case IBV_QPT_RC:
		break;
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		if (pd && pd->context->device->transport_type == IBV_TRANSPORT_IWARP)
			return EOPNOTSUPP;
		break;
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
	case IBV_QPT_DRIVER:
		return EOPNOTSUPP;
	default:
		return EINVAL;
	}
	if (!pd || !attr->send_cq || !attr->recv_cq)
		return EINVAL;
	if (attr->send_cq->context != pd->context || attr->recv_cq->context != pd->context ||
	    (attr->srq && attr->srq->context != pd->context))
		return EINVAL;
	return 0;
}

static struct qp_init init_from_verbs(struct ibv_pd *pd, const struct ibv_qp_init_attr *attr,
				      struct abi_qp *qp)
{
	return (struct qp_init){
		.type = (enum qp_type)attr->qp_type,
		.pd = pd_of(pd)->core,
		.send_cq = core_cq(attr->send_cq),
		.recv_cq = core_cq(attr->recv_cq),
		.srq = attr->srq ? srq_of(attr->srq)->core : NULL,
		.cap = {
			.max_send_wr = attr->cap.max_send_wr,
			.max_recv_wr = attr->srq ? 0 : attr->cap.max_recv_wr,
			.max_send_sge = attr->cap.max_send_sge,
			.max_recv_sge = attr->srq ? 0 : attr->cap.max_recv_sge,
			.max_inline = attr->cap.max_inline_data,
		},
		.sq_sig_all = attr->sq_sig_all,
		.owner = qp,
	};
}

static struct ibv_qp *qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, bool builds,
				uint64_t send_ops_flags)
{
	struct abi_context *ctx;
	struct qp_init init;
	struct abi_qp *qp;
	int err = init_check(pd, attr);

	if (err)
		return fail_null(explain_create(attr, err));
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return fail_null(ENOMEM);
	ctx = context_of(pd->context);
	qp->pub.context = pd->context;
	qp->pub.qp_context = attr->qp_context;
	qp->pub.pd = pd;
	qp->pub.send_cq = attr->send_cq;
	qp->pub.recv_cq = attr->recv_cq;
	qp->pub.srq = attr->srq;
	qp->pub.state = IBV_QPS_RESET;
	qp->pub.qp_type = attr->qp_type;
	qp->engine = ctx->engine;
	qp->sig_all = attr->sq_sig_all;
	qp->builds = builds;
	err = EOPNOTSUPP;
	if (builds && !post_ex_init(qp, send_ops_flags)) {
		EXPLAIN(err, "ibv_create_qp_ex: send_ops_flags 0x%llx has operations that a QP of its type lacks",
			(unsigned long long)send_ops_flags);
		goto out_free;
	}
	init = init_from_verbs(pd, attr, qp);
	engine_lock(ctx->engine);
	err = -nic_qp_create(ctx->nic, &init, &qp->core);
	if (!err)
		object_add(ctx, &qp->object, qp_reap);
	engine_unlock(ctx->engine);
	if (err)
		goto out_free;
	pthread_mutex_init(&qp->pub.mutex, NULL);
	pthread_cond_init(&qp->pub.cond, NULL);
	qp->sq = qp_sq(qp->core);
	qp->rq = qp_rq(qp->core);
	qp->pub.qp_num = qp_number(qp->core);
	qp->pub.handle = qp->pub.qp_num;
	cap_to_verbs(&attr->cap, &init.cap);
	return &qp->pub;

out_free:
	free(qp);
	return fail_null(explain_create(attr, err));
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return qp_create(pd, attr, false, 0);
}

struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	if (attr->comp_mask & ~known)
		return fail_null(explain_create((struct ibv_qp_init_attr *)attr, EOPNOTSUPP));
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags)
		return fail_null(EXPLAIN(EOPNOTSUPP, "ibv_create_qp_ex: create_flags 0x%x are not supported",
					 attr->create_flags));
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context)
		return fail_null(EINVAL);
	/* The struct begins with the whole smaller one. */
	return qp_create(attr->pd, (struct ibv_qp_init_attr *)attr,
			 attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, attr->send_ops_flags);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return qp_of(qp)->builds ? &qp_of(qp)->ex : NULL;
}

static int attr_check(const struct ibv_qp_attr *attr, int mask)
{
	if (mask & ~QPA_KNOWN || mask & IBV_QP_CAP)
		return EINVAL;
	if (mask & IBV_QP_STATE && (unsigned int)attr->qp_state > IBV_QPS_ERR)
		return EINVAL;
	if (mask & IBV_QP_CUR_STATE && (unsigned int)attr->cur_qp_state > IBV_QPS_ERR)
		return EINVAL;
	if (mask & IBV_QP_PATH_MTU && !mtu_to_bytes(attr->path_mtu))
		return EINVAL;
	return 0;
}

/* Access bits of operations that the nic lacks permit nothing; they are dropped, as drivers do. */
static void attr_from_verbs(struct qp_attr *to, const struct ibv_qp_attr *from)
{
	*to = (struct qp_attr){
		.state = (enum qp_state)from->qp_state,
		.cur_state = (enum qp_state)from->cur_qp_state,
		.path_mtu_bytes = mtu_to_bytes(from->path_mtu),
		.qkey = from->qkey,
		.rq_psn = from->rq_psn,
		.sq_psn = from->sq_psn,
		.dest_qpn = from->dest_qp_num,
		.access = from->qp_access_flags & MR_ACCESS_KNOWN,
		.pkey_index = from->pkey_index,
		.sq_draining = from->sq_draining,
		.en_sqd_async_notify = from->en_sqd_async_notify,
		.max_rd_atomic = from->max_rd_atomic,
		.max_dest_rd_atomic = from->max_dest_rd_atomic,
		.min_rnr_timer = from->min_rnr_timer,
		.port = from->port_num,
		.timeout = from->timeout,
		.retry_cnt = from->retry_cnt,
		.rnr_retry = from->rnr_retry,
		.path_mig_state = (uint8_t)from->path_mig_state,
	};
	ah_attr_from_verbs(&to->av, &from->ah_attr);
}

static void attr_to_verbs(struct ibv_qp_attr *to, const struct qp_attr *from)
{
	memset(to, 0, sizeof(*to));
	to->qp_state = (enum ibv_qp_state)from->state;
	to->cur_qp_state = (enum ibv_qp_state)from->cur_state;
	to->path_mtu = mtu_from_bytes(from->path_mtu_bytes);
	to->path_mig_state = (enum ibv_mig_state)from->path_mig_state;
	to->qkey = from->qkey;
	to->rq_psn = from->rq_psn;
	to->sq_psn = from->sq_psn;
	to->dest_qp_num = from->dest_qpn;
	to->qp_access_flags = from->access;
	to->pkey_index = from->pkey_index;
	to->en_sqd_async_notify = from->en_sqd_async_notify;
	to->sq_draining = from->sq_draining;
	to->max_rd_atomic = from->max_rd_atomic;
	to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	to->min_rnr_timer = from->min_rnr_timer;
	to->port_num = from->port;
	to->timeout = from->timeout;
	to->retry_cnt = from->retry_cnt;
	to->rnr_retry = from->rnr_retry;
	ah_attr_to_verbs(&to->ah_attr, &from->av);
}

int ibv_modify_qp(struct ibv_qp *pub, struct ibv_qp_attr *attr, int mask)
{
	struct abi_qp *qp = qp_of(pub);
	bool resets = mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET;
	bool ends = resets || (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR);
	struct qp_attr core;
	int err = attr_check(attr, mask);

	if (err)
		return fail(explain_modify(qp, attr, mask, err));
	attr_from_verbs(&core, attr);
	if (ends)
		acks_flush(qp);
	if (!resets)
		engine_lock(qp->engine);
	else if (quiesce(qp, true))
		return fail(EIO);
	if (nic_qp_needs_paths(context_of(pub->context)->nic, qp->core, &core, (uint32_t)mask))
		engine_add_paths(qp->engine);
	err = -nic_qp_modify(context_of(pub->context)->nic, qp->core, &core, (uint32_t)mask,
			     engine_now_ns());
	if (!err && mask & IBV_QP_STATE)
		pub->state = attr->qp_state;
	if (ends)
		nic_qp_mute(context_of(pub->context)->nic, qp->core, false);
	if (resets)
		resume(qp, true);
	else
		engine_unlock(qp->engine);
	return err ? fail(explain_modify(qp, attr, mask, err)) : 0;
}

int ibv_query_qp(struct ibv_qp *pub, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init_attr)
{
	struct abi_qp *qp = qp_of(pub);
	struct qp_attr core;
	struct qp_init init;

	engine_lock(qp->engine);
	nic_qp_query(context_of(pub->context)->nic, qp->core, &core, &init);
	if (mask & IBV_QP_STATE)
		pub->state = (enum ibv_qp_state)core.state;
	engine_unlock(qp->engine);
	attr_to_verbs(attr, &core);
	cap_to_verbs(&attr->cap, &init.cap);
	*init_attr = (struct ibv_qp_init_attr){
		.qp_context = pub->qp_context,
		.send_cq = pub->send_cq,
		.recv_cq = pub->recv_cq,
		.srq = pub->srq,
		.cap = attr->cap,
		.qp_type = pub->qp_type,
		.sq_sig_all = qp->sig_all,
	};
	return 0;
}

static void events_await(struct abi_qp *qp)
{
	pthread_mutex_lock(&qp->pub.mutex);
	while (qp->pub.events_completed != qp->async_delivered && !engine_is_lost(qp->engine))
		pthread_cond_wait(&qp->pub.cond, &qp->pub.mutex);
	pthread_mutex_unlock(&qp->pub.mutex);
}

static bool is_attached(struct abi_qp *qp)
{
	bool attached;

	engine_lock(qp->engine);
	attached = nic_qp_groups(qp->core);
	engine_unlock(qp->engine);
	return attached;
}

/*
 * qperf destroys its queue pair twice: librdmacm has forgotten the pointer by then and passes NULL. A kernel cleans up
 * after the program that dies of it, we cannot: the peer would wait for an answer to its DREQ.
 */
int ibv_destroy_qp(struct ibv_qp *pub)
{
	struct abi_qp *qp = qp_of(pub);
	struct abi_context *ctx;
	int err;

	if (!pub)
		return fail(EINVAL);
	ctx = context_of(pub->context);
	if (is_attached(qp))
		return fail(EXPLAIN(EBUSY, "ibv_destroy_qp: the queue pair is attached to a multicast group"));
	acks_flush(qp);
	err = quiesce(qp, false);
	if (err)
		return fail(err);
	nic_qp_destroy(ctx->nic, qp->core);
	list_remove(&qp->object.link);
	resume(qp, false);
	async_withdraw(ctx, qp);
	events_await(qp);
	pthread_mutex_destroy(&pub->mutex);
	pthread_cond_destroy(&pub->cond);
	free(qp);
	return 0;
}

/* Packets that arrive out of order may be placed out of order. */
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}

/*
 * No vendor's enhancement is negotiated. rdma-core's software devices say so in the same way, and programs take it well;
 * they do not take an ECE without a vendor well, which rdma_set_local_ece() refuses.
 */
int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return fail(EOPNOTSUPP);
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return fail(EOPNOTSUPP);
}
