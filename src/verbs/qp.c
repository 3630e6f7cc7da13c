/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: creation, the attributes in both directions, destruction. The nic decides by its
 * state table; this file only converts structs and units.
 */
#include <string.h>

#include "verbs/explain.h"
#include "verbs/objects.h"
#include "verbs/post.h"
#include "verbs/qp_explain.h"

static_assert(sizeof(struct ibv_qp) == 160 + ABI_MUTEX_MORE, "ABI");
static_assert(offsetof(struct ibv_qp, qp_num) == 52, "ABI");
static_assert(offsetof(struct ibv_qp, state) == 56, "ABI");
static_assert(offsetof(struct ibv_qp, qp_type) == 60, "ABI");
static_assert(offsetof(struct ibv_qp, events_completed) == 152 + ABI_MUTEX_MORE, "ABI");
static_assert(sizeof(struct ibv_qp_ex) <= QP_EX_BYTES, "ABI");
static_assert(sizeof(struct ibv_qp_init_attr) == 64, "ABI");
static_assert(sizeof(struct ibv_qp_init_attr_ex) == 136, "ABI");
static_assert(sizeof(struct ibv_qp_attr) == 144, "ABI");
static_assert((int)IBV_QPT_RC == QPT_RC && (int)IBV_QPT_UC == QPT_UC && (int)IBV_QPT_UD == QPT_UD &&
		      (int)IBV_QPT_XRC_SEND == QPT_XRC_SEND && (int)IBV_QPT_XRC_RECV == QPT_XRC_RECV &&
		      (int)IBV_QPS_SQE == QPS_SQE && (int)IBV_QPS_ERR == QPS_ERR &&
		      (int)IBV_QP_DEST_QPN == QPA_DEST_QPN && (int)IBV_QP_SQ_PSN == QPA_SQ_PSN &&
		      (int)IBV_QP_AV == QPA_AV,
	      "the numbers are one");

static struct cq *core_cq(struct ibv_cq *cq)
{
	return cq_of(cq)->core;
}

/* Which locks hold off the pollers of both CQs and, if wanted, the posters: of at most 4, that many. */
static int locks_of(struct abi_qp *qp, bool posters, struct spin *lock[4])
{
	struct abi_cq *cqs[2] = {qp->pub.send_cq ? cq_of(qp->pub.send_cq) : NULL,
				 qp->pub.recv_cq ? cq_of(qp->pub.recv_cq) : NULL};
	int count = 0;

	if (posters) {
		lock[count++] = &qp->sq_lock;
		lock[count++] = &qp->rq_lock;
	}
	for (int i = 0; i < 2; i++) {
		if (cqs[i] && !(i && cqs[1] == cqs[0]) && !cq_is_in_batch(cqs[i]))
			lock[count++] = &cqs[i]->poll_lock;
	}
	return count;
}

/*
 * Holds off the engine and the pollers of both CQs and, to empty the queues, the posters. No thread
 * waits for a program's lock with the engine locked: a program may hold one and need the engine. 0,
 * or EIO in a child of fork() where a thread of the parent's had one of the locks.
 */
static int quiesce(struct abi_qp *qp, bool posters)
{
	struct spin *lock[4];
	int count = locks_of(qp, posters, lock), got;

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
	struct spin *lock[4];
	int count = locks_of(qp, posters, lock);

	while (count > 0)
		spin_unlock(lock[--count]);
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

/* The queue pair goes with its last handle; the events are another's until then. */
static void qp_release(struct abi_qp *qp)
{
	pd_let_go(qp->pub.pd);
	if (list_empty(&qp->shared)) {
		if (engine_has_faults())
			engine_fault_qp_gone(qp->engine, qp->core);
		nic_qp_destroy(context_of(qp->pub.context)->nic, qp->core);
		return;
	}
	nic_qp_set_owner(qp->core, container_of(qp->shared.next, struct abi_qp, shared));
	list_remove(&qp->shared);
}

static void qp_reap(struct object *o)
{
	struct abi_qp *qp = container_of(o, struct abi_qp, object);

	qp_release(qp);
	engine_leave_unused(qp->engine);
}

struct abi_qp *qp_of_object(struct object *o)
{
	return o->reap == qp_reap ? container_of(o, struct abi_qp, object) : NULL;
}

static void cap_to_verbs(struct ibv_qp_cap *to, const struct qp_cap *from)
{
	to->max_send_wr = from->max_send_wr;
	to->max_recv_wr = from->max_recv_wr;
	to->max_send_sge = from->max_send_sge;
	to->max_recv_sge = from->max_recv_sge;
	to->max_inline_data = from->max_inline;
}

/* What ibv_create_qp_ex() is given beside the attributes of ibv_create_qp(). */
struct extras {
	struct ibv_context *context;
	struct ibv_pd *pd;     /* of XRC_RECV what the program gave, unused; or NULL */
	struct ibv_xrcd *xrcd; /* of XRC_RECV, else NULL */
	bool builds;           /* with send_ops_flags */
	bool off_host;         /* with IBV_QP_CREATE_BLOCK_SELF_MCAST_LB */
	uint64_t send_ops_flags;
};

static bool is_of(const struct ibv_context *context, const struct ibv_cq *cq)
{
	return cq && cq->context == context;
}

/* Whether the device that ours is like has such a queue pair. */
static int profile_check(const struct extras *x, const struct ibv_qp_init_attr *attr)
{
	static const uint8_t type_bits[] = {[IBV_QPT_RC] = PROFILE_RC,
					    [IBV_QPT_UC] = PROFILE_UC,
					    [IBV_QPT_UD] = PROFILE_UD,
					    [IBV_QPT_XRC_SEND] = PROFILE_XRC,
					    [IBV_QPT_XRC_RECV] = PROFILE_XRC};
	const struct profile *p = context_of(x->context)->profile;
	const struct ibv_qp_cap *cap = &attr->cap;
	uint32_t sge = cap->max_send_sge, wr = cap->max_send_wr;

	if ((size_t)attr->qp_type < sizeof(type_bits) && attr->qp_type >= IBV_QPT_RC &&
	    !profile_has(p, PROFILE_QP_TYPES, type_bits[attr->qp_type]))
		return EXPLAIN(p->refused, "ibv_create_qp: the profile has no queue pairs of that type");
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return 0;
	if (!attr->srq && attr->qp_type != IBV_QPT_XRC_SEND) {
		sge = cap->max_recv_sge > sge ? cap->max_recv_sge : sge;
		wr = cap->max_recv_wr > wr ? cap->max_recv_wr : wr;
	}
	return wr > p->max[PROFILE_QP_WR] || sge > p->max[PROFILE_SGE] || cap->max_inline_data > p->max[PROFILE_INLINE]
		       ? EINVAL
		       : 0;
}

/* What the two halves of XRC do not have is not looked at, as by Linux. */
static int init_check(const struct extras *x, const struct ibv_qp_init_attr *attr)
{
	bool iwarp = x->context->device->transport_type == IBV_TRANSPORT_IWARP;
	int err = profile_check(x, attr);

	if (err)
		return err;
	switch ((int)attr->qp_type) {
	case IBV_QPT_RC: break;
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		if (iwarp)
			return EOPNOTSUPP;
		break;
	case IBV_QPT_XRC_SEND:
		if (iwarp)
			return EOPNOTSUPP;
		return x->pd && is_of(x->context, attr->send_cq) ? 0 : EINVAL;
	case IBV_QPT_XRC_RECV:
		if (iwarp)
			return EOPNOTSUPP;
		return x->xrcd && x->xrcd->context == x->context ? 0 : EINVAL;
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_DRIVER: return EOPNOTSUPP;
	default: return EINVAL;
	}
	if (!x->pd || !is_of(x->context, attr->send_cq) || !is_of(x->context, attr->recv_cq) ||
	    (attr->srq && attr->srq->context != x->context))
		return EINVAL;
	return attr->srq && srq_of(attr->srq)->core->xrcd ? EINVAL : 0;
}

static struct qp_init init_from_verbs(const struct extras *x, const struct ibv_qp_init_attr *attr, struct abi_qp *qp)
{
	struct qp_init init = {.type = (enum qp_type)attr->qp_type, .sq_sig_all = attr->sq_sig_all, .owner = qp};

	if (x->xrcd) {
		init.xrcd = xrcd_core(x->xrcd);
		return init;
	}
	init.pd = pd_of(x->pd)->core;
	init.send_cq = core_cq(attr->send_cq);
	init.cap.max_send_wr = attr->cap.max_send_wr;
	init.cap.max_send_sge = attr->cap.max_send_sge;
	init.cap.max_inline = attr->cap.max_inline_data;
	if (attr->qp_type == IBV_QPT_XRC_SEND)
		return init;
	init.recv_cq = core_cq(attr->recv_cq);
	if (attr->srq) {
		init.srq = srq_of(attr->srq)->core;
	} else {
		init.cap.max_recv_wr = attr->cap.max_recv_wr;
		init.cap.max_recv_sge = attr->cap.max_recv_sge;
	}
	return init;
}

/* A handle without a queue pair. */
static struct abi_qp *handle_make(const struct extras *x, const struct ibv_qp_init_attr *attr)
{
	struct abi_qp *qp = space_get(sizeof(*qp));
	bool xrc = attr->qp_type == IBV_QPT_XRC_SEND || attr->qp_type == IBV_QPT_XRC_RECV;

	if (!qp)
		return NULL;
	qp->pub.context = x->context;
	qp->pub.qp_context = attr->qp_context;
	qp->pub.pd = x->pd;
	qp->pub.send_cq = x->xrcd ? NULL : attr->send_cq;
	qp->pub.recv_cq = xrc ? NULL : attr->recv_cq;
	qp->pub.srq = xrc ? NULL : attr->srq;
	qp->pub.state = IBV_QPS_RESET;
	qp->pub.qp_type = attr->qp_type;
	qp->engine = context_of(x->context)->engine;
	qp->ops = post_ops(x->context, attr->qp_type);
	qp->sig_all = attr->sq_sig_all;
	qp->builds = x->builds;
	qp->off_host = x->off_host;
	list_init(&qp->shared);
	return qp;
}

/* It has its queue pair. */
static struct ibv_qp *handle_finish(struct abi_qp *qp)
{
	pthread_mutex_init(&qp->pub.mutex, NULL);
	pthread_cond_init(&qp->pub.cond, NULL);
	qp->sq = qp_sq(qp->core);
	qp->rq = qp_rq(qp->core);
	qp->pub.qp_num = qp_number(qp->core);
	qp->pub.handle = qp->pub.qp_num;
	return &qp->pub;
}

static struct ibv_qp *qp_create(const struct extras *x, struct ibv_qp_init_attr *attr)
{
	struct abi_context *ctx = context_of(x->context);
	struct qp_init init;
	struct abi_qp *qp;
	int err = init_check(x, attr);

	if (err)
		return fail_null(explain_create(context_of(x->context)->profile, attr, err));
	err = injected(x->context, FAULT_CALL_create_qp);
	if (err)
		return fail_null(err);
	qp = handle_make(x, attr);
	if (!qp)
		return fail_null(ENOMEM);
	err = EOPNOTSUPP;
	if (x->builds && !post_ex_init(qp, x->send_ops_flags)) {
		EXPLAIN(err, "ibv_create_qp_ex: send_ops_flags 0x%llx has operations that a QP of its type lacks",
			(unsigned long long)x->send_ops_flags);
		goto out_free;
	}
	init = init_from_verbs(x, attr, qp);
	engine_lock(ctx->engine);
	err = room_check(ctx, PROFILE_QP, nic_counters(ctx->nic)->qps, 0);
	if (!err)
		err = -nic_qp_create(ctx->nic, &init, &qp->core);
	if (!err) {
		object_add(ctx, &qp->object, qp_reap);
		qp->number = engine_number_qp(ctx->engine);
		if (engine_has_faults())
			engine_fault_qp_made(ctx->engine, qp->core, qp->number);
		pd_hold(qp->pub.pd);
	}
	engine_unlock(ctx->engine);
	if (err)
		goto out_free;
	cap_to_verbs(&attr->cap, &init.cap);
	return handle_finish(qp);

out_free:
	space_put(qp, sizeof(*qp));
	return fail_null(explain_create(context_of(x->context)->profile, attr, err));
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (!pd)
		return fail_null(EINVAL);
	return qp_create(&(struct extras){.context = pd->context, .pd = pd}, attr);
}

/* Frames of RoCEv1 cannot be kept from the other processes of the host. */
static bool take_flags(struct extras *x, uint32_t flags)
{
	const uint32_t known = engine_is_rocev1(context_of(x->context)->engine) ? 0 : IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;

	if (flags & ~known) {
		fail_null(EXPLAIN(EOPNOTSUPP, "ibv_create_qp_ex: create_flags 0x%x are not supported", flags & ~known));
		return false;
	}
	x->off_host = flags;
	return true;
}

struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	bool xrc_recv = attr->qp_type == IBV_QPT_XRC_RECV;
	struct extras x = {.context = context};

	if (attr->comp_mask & ~(known | (xrc_recv ? IBV_QP_INIT_ATTR_XRCD : 0u)))
		return fail_null(
			explain_create(context_of(context)->profile, (struct ibv_qp_init_attr *)attr, EOPNOTSUPP));
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && !take_flags(&x, attr->create_flags))
		return NULL;
	if (xrc_recv) {
		x.xrcd = attr->comp_mask & IBV_QP_INIT_ATTR_XRCD ? attr->xrcd : NULL;
		/* librdmacm gives one and takes it from the queue pair for the SRQ to come. */
		x.pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL;
	} else {
		if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context)
			return fail_null(EINVAL);
		x.pd = attr->pd;
		x.builds = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		x.send_ops_flags = attr->send_ops_flags;
	}
	/* The struct begins with the whole smaller one. */
	return qp_create(&x, (struct ibv_qp_init_attr *)attr);
}

/* Another handle of an XRC_RECV queue pair. Its asynchronous events go to one of the handles. */
struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct abi_context *ctx = context_of(context);
	struct ibv_qp_init_attr like = {.qp_type = IBV_QPT_XRC_RECV};
	struct abi_qp *qp, *first;

	if ((attr->comp_mask & needed) != needed || attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED ||
	    attr->qp_type != IBV_QPT_XRC_RECV || !attr->xrcd || attr->xrcd->context != context)
		return fail_null(EINVAL);
	if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
		like.qp_context = attr->qp_context;
	qp = handle_make(&(struct extras){.context = context, .xrcd = attr->xrcd}, &like);
	if (!qp)
		return fail_null(ENOMEM);
	engine_lock(ctx->engine);
	first = nic_xrc_qp_owner(ctx->nic, xrcd_core(attr->xrcd), attr->qp_num);
	if (first) {
		qp->core = first->core;
		qp->pub.state = (enum ibv_qp_state)qp_state(qp->core);
		list_append(&first->shared, &qp->shared);
		object_add(ctx, &qp->object, qp_reap);
	}
	engine_unlock(ctx->engine);
	if (first)
		return handle_finish(qp);
	space_put(qp, sizeof(*qp));
	return fail_null(EXPLAIN(EINVAL,
				 "ibv_open_qp: no XRC_RECV queue pair of the domain has number 0x%06x in this process; "
				 "other processes' cannot be opened",
				 attr->qp_num));
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return qp_of(qp)->builds ? &qp_of(qp)->ex : NULL;
}

static int attr_check(uint32_t rd_atom_max, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & ~QPA_KNOWN || mask & IBV_QP_CAP)
		return EINVAL;
	if (mask & IBV_QP_STATE && (unsigned int)attr->qp_state > IBV_QPS_ERR)
		return EINVAL;
	if (mask & IBV_QP_CUR_STATE && (unsigned int)attr->cur_qp_state > IBV_QPS_ERR)
		return EINVAL;
	if (mask & IBV_QP_PATH_MTU && !mtu_to_bytes(attr->path_mtu))
		return EINVAL;
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > rd_atom_max) ||
	    (mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > rd_atom_max))
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
		.access = from->qp_access_flags & (MR_ACCESS_KNOWN | MR_FLUSH_PERSISTENT),
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

/* A program may give both halves of XRC what one of them has (Linux's modify_qp_mask()). */
static int mask_for(const struct ibv_qp *qp, int mask)
{
	if (qp->qp_type == IBV_QPT_XRC_SEND)
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (qp->qp_type == IBV_QPT_XRC_RECV)
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	return mask;
}

/*
 * Engine locked: whether the device holds resources for so many READs and atomics besides those of other queue pairs. They
 * are counted only where all might need more than there are, which takes a profile.
 */
static int resources_check(const struct abi_context *ctx, const struct qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	const uint32_t *max = ctx->profile->max;

	if (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC) ||
	    nic_counters(ctx->nic)->qps * max[PROFILE_RD_ATOM] <= max[PROFILE_RES_RD_ATOM] ||
	    nic_rd_atomic_of_others(ctx->nic, qp) + attr->max_dest_rd_atomic <= max[PROFILE_RES_RD_ATOM])
		return 0;
	return EXPLAIN(ctx->profile->full,
		       "ibv_modify_qp: max_dest_rd_atomic %u: all queue pairs together may have %u (max_res_rd_atom)",
		       attr->max_dest_rd_atomic, max[PROFILE_RES_RD_ATOM]);
}

int ibv_modify_qp(struct ibv_qp *pub, struct ibv_qp_attr *attr, int given)
{
	struct abi_qp *qp = qp_of(pub);
	int mask = mask_for(pub, given);
	bool resets = mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET;
	bool ends = resets || (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR);
	struct qp_attr core;
	int err = attr_check(context_max(pub->context, PROFILE_RD_ATOM), attr, mask);

	if (err)
		return fail(explain_modify(qp, attr, mask, err));
	err = injected(pub->context, FAULT_CALL_modify_qp);
	if (err)
		return fail(err);
	attr_from_verbs(&core, attr);
	if (ends)
		acks_flush(qp);
	if (!resets)
		engine_lock(qp->engine);
	else if (quiesce(qp, true))
		return fail(EIO);
	if (mask & IBV_QP_AV)
		engine_follow_map(qp->engine);
	if (nic_qp_needs_paths(context_of(pub->context)->nic, qp->core, &core, (uint32_t)mask))
		engine_add_paths(qp->engine);
	err = resources_check(context_of(pub->context), qp->core, attr, mask);
	if (!err)
		err = -nic_qp_modify(context_of(pub->context)->nic, qp->core, &core, (uint32_t)mask,
				     engine_now_ns(qp->engine));
	if (!err && mask & IBV_QP_STATE)
		pub->state = attr->qp_state;
	if (!err && mask & (IBV_QP_AV | IBV_QP_DEST_QPN) && engine_has_faults())
		engine_fault_qp_peer(qp->engine, qp->core);
	if (ends)
		nic_qp_mute(context_of(pub->context)->nic, qp->core, false);
	if (resets)
		resume(qp, true);
	else
		engine_unlock(qp->engine);
	if (!err && mask & IBV_QP_AV)
		explain_peer(context_of(pub->context), &attr->ah_attr);
	return err ? fail(explain_modify(qp, attr, mask, err)) : 0;
}

int ibv_query_qp(struct ibv_qp *pub, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init_attr)
{
	struct abi_qp *qp = qp_of(pub);
	int err = injected(pub->context, FAULT_CALL_query_qp);
	struct qp_attr core;
	struct qp_init init;

	if (err)
		return fail(err);
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
		event_wait(&qp->pub.cond, &qp->pub.mutex);
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
	if (list_empty(&qp->shared))
		acks_flush(qp);
	err = quiesce(qp, false);
	if (err)
		return fail(err);
	qp_release(qp);
	list_remove(&qp->object.link);
	resume(qp, false);
	async_withdraw(ctx, qp);
	events_await(qp);
	pthread_mutex_destroy(&pub->mutex);
	pthread_cond_destroy(&pub->cond);
	space_put(qp, sizeof(*qp));
	return 0;
}

/* Packets that arrive out of order may be placed out of order. */
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}

/*
 * No vendor's enhancement is negotiated. rdma-core's software devices say so in the same way, and programs take it
 * well; they do not take an ECE without a vendor well, which rdma_set_local_ece() refuses.
 */
int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return fail(EOPNOTSUPP);
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return fail(EOPNOTSUPP);
}
