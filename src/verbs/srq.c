/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: basic ones and those of XRC. */
#include "verbs/explain.h"
#include "verbs/objects.h"

static_assert(sizeof(struct ibv_srq) == 128 + ABI_MUTEX_MORE, "ABI");
static_assert(offsetof(struct ibv_srq, events_completed) == 120 + ABI_MUTEX_MORE, "ABI");
static_assert(sizeof(struct ibv_srq_init_attr) == 24, "ABI");
static_assert(sizeof(struct ibv_srq_init_attr_ex) == 64, "ABI");

static void srq_reap(struct object *o)
{
	struct abi_srq *srq = container_of(o, struct abi_srq, object);

	nic_srq_destroy(context_of(srq->pub.context)->nic, srq->core);
}

/* xrcd and cq are NULL, or both are given. */
struct domain {
	struct ibv_xrcd *xrcd;
	struct ibv_cq *cq;
};

static struct ibv_srq *srq_create(struct ibv_pd *pd, void *srq_context, struct ibv_srq_attr *attr, struct domain in)
{
	struct abi_context *ctx;
	struct srq_init init = {.max_wr = attr->max_wr, .max_sge = attr->max_sge};
	const struct profile *p;
	struct abi_srq *srq;
	int err;

	if (!pd)
		return fail_null(EINVAL);
	err = injected(pd->context, FAULT_CALL_create_srq);
	if (err)
		return fail_null(err);
	p = context_of(pd->context)->profile;
	if (!context_has(pd->context, PROFILE_HAS_SRQ))
		return fail_null(p->refused);
	if (attr->max_wr < 1 || attr->max_wr > p->max[PROFILE_SRQ_WR] || attr->max_sge > p->max[PROFILE_SRQ_SGE])
		return fail_null(EXPLAIN(EINVAL,
					 "ibv_create_srq: %u WRs of %u SGEs; 1 to %u of up to %u are "
					 "allowed (max_srq_wr, max_srq_sge)",
					 attr->max_wr, attr->max_sge, p->max[PROFILE_SRQ_WR], p->max[PROFILE_SRQ_SGE]));
	srq = space_get(sizeof(*srq));
	if (!srq)
		return fail_null(ENOMEM);
	ctx = context_of(pd->context);
	srq->pub.context = pd->context;
	srq->pub.srq_context = srq_context;
	srq->pub.pd = pd;
	pthread_mutex_init(&srq->pub.mutex, NULL);
	pthread_cond_init(&srq->pub.cond, NULL);
	init.owner = srq;
	if (in.xrcd) {
		init.xrcd = xrcd_core(in.xrcd);
		init.cq = cq_of(in.cq)->core;
	}
	engine_lock(ctx->engine);
	/* srq_limit means nothing at creation. */
	err = room_check(ctx, PROFILE_SRQ, nic_counters(ctx->nic)->srqs, 0);
	if (!err)
		err = -nic_srq_create(ctx->nic, pd_of(pd)->core, &init, &srq->core);
	if (!err) {
		attr->max_wr = srq->core->rq.capacity;
		attr->max_sge = srq->core->rq.max_sge;
		object_add(ctx, &srq->object, srq_reap);
		pd_hold(pd);
	}
	engine_unlock(ctx->engine);
	if (err) {
		space_put(srq, sizeof(*srq));
		return fail_null(err);
	}
	return &srq->pub;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	return srq_create(pd, init->srq_context, &init->attr, (struct domain){0});
}

struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
	const uint32_t basic = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	const uint32_t xrc = basic | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	bool is_xrc = init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && init->srq_type == IBV_SRQT_XRC;
	struct domain in = {0};

	if (init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && init->srq_type != IBV_SRQT_BASIC && !is_xrc)
		return fail_null(EXPLAIN(EOPNOTSUPP, "ibv_create_srq_ex: tag-matching SRQs are not supported"));
	if (init->comp_mask & ~(is_xrc ? xrc : basic))
		return fail_null(EOPNOTSUPP);
	if (!(init->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !init->pd || init->pd->context != context)
		return fail_null(EINVAL);
	if (is_xrc) {
		if (init->comp_mask != xrc || !init->xrcd || !init->cq || init->xrcd->context != context ||
		    init->cq->context != context)
			return fail_null(EXPLAIN(EINVAL,
						 "ibv_create_srq_ex: an XRC SRQ needs a PD, an XRC domain and a "
						 "CQ of its context"));
		in = (struct domain){init->xrcd, init->cq};
	}
	return srq_create(init->pd, init->srq_context, &init->attr, in);
}

int get_srq_num(struct ibv_srq *srq, uint32_t *num)
{
	const struct srq *core = srq_of(srq)->core;

	if (!core->xrcd)
		return fail(EOPNOTSUPP); /* only an XRC SRQ has a number */
	*num = core->number;
	return 0;
}

/* Engine locked, no poster: all of it or nothing. A negative errno. */
static int modify(struct nic *nic, struct srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	uint32_t limit = mask & IBV_SRQ_LIMIT ? attr->srq_limit : srq->limit;
	int err = mask & IBV_SRQ_MAX_WR ? nic_srq_resize(nic, srq, attr->max_wr, limit) : 0;

	return !err && mask & IBV_SRQ_LIMIT ? nic_srq_set_limit(nic, srq, limit) : err;
}

int ibv_modify_srq(struct ibv_srq *pub, struct ibv_srq_attr *attr, int mask)
{
	struct abi_srq *srq = srq_of(pub);
	struct abi_context *ctx = context_of(pub->context);
	int err;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return fail(EINVAL);
	if (mask & IBV_SRQ_MAX_WR && !context_has(pub->context, PROFILE_RESIZE_SRQ))
		return fail(ctx->profile->refused);
	if (mask & IBV_SRQ_MAX_WR && attr->max_wr > context_max(pub->context, PROFILE_SRQ_WR))
		return fail(EINVAL);
	if (mask & IBV_SRQ_MAX_WR && spin_lock(&srq->post_lock, ctx->engine))
		return fail(EIO);
	engine_lock(ctx->engine);
	err = -modify(ctx->nic, srq->core, attr, mask);
	engine_unlock(ctx->engine);
	if (mask & IBV_SRQ_MAX_WR)
		spin_unlock(&srq->post_lock);
	if (err == EBUSY)
		return fail(
			EXPLAIN(err, "ibv_modify_srq: messages are received by WRs of the size before the last one"));
	if (err)
		return fail(EXPLAIN(err,
				    "ibv_modify_srq: %u WRs; as many as are outstanding, and as the limit, "
				    "to %d (max_srq_wr) are allowed",
				    mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->core->rq.capacity, NIC_MAX_SRQ_WR));
	return 0;
}

int ibv_query_srq(struct ibv_srq *pub, struct ibv_srq_attr *attr)
{
	struct abi_srq *srq = srq_of(pub);
	struct abi_context *ctx = context_of(pub->context);

	engine_lock(ctx->engine);
	attr->max_wr = srq->core->rq.capacity;
	attr->max_sge = srq->core->rq.max_sge;
	attr->srq_limit = srq->core->limit;
	engine_unlock(ctx->engine);
	return 0;
}

static void events_await(struct abi_srq *srq)
{
	pthread_mutex_lock(&srq->pub.mutex);
	while (srq->pub.events_completed != srq->async_delivered &&
	       !engine_is_lost(context_of(srq->pub.context)->engine))
		event_wait(&srq->pub.cond, &srq->pub.mutex);
	pthread_mutex_unlock(&srq->pub.mutex);
}

int ibv_destroy_srq(struct ibv_srq *pub)
{
	struct abi_srq *srq = srq_of(pub);
	struct abi_context *ctx = context_of(pub->context);
	int err;

	engine_lock(ctx->engine);
	err = -nic_srq_destroy(ctx->nic, srq->core);
	if (!err) {
		list_remove(&srq->object.link);
		pd_let_go(pub->pd);
	}
	engine_unlock(ctx->engine);
	if (err)
		return fail(err);
	async_withdraw(ctx, srq);
	events_await(srq);
	pthread_mutex_destroy(&pub->mutex);
	pthread_cond_destroy(&pub->cond);
	space_put(srq, sizeof(*srq));
	return 0;
}
