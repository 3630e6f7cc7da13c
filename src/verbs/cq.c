/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues. A poll takes completions from the ring; only if that is empty it does a turn
 * of the engine's loop, which may bring more.
 */
#include <endian.h>

#include "verbs/explain.h"
#include "verbs/objects.h"

static_assert(sizeof(struct ibv_cq) == 128 + ABI_MUTEX_MORE, "ABI");
static_assert(offsetof(struct ibv_cq, cqe) == 28, "ABI");
static_assert(offsetof(struct ibv_cq, mutex) == 32, "ABI");
static_assert(offsetof(struct ibv_cq, cond) == 72 + ABI_MUTEX_MORE, "ABI");
static_assert(offsetof(struct ibv_cq, comp_events_completed) == 120 + ABI_MUTEX_MORE, "ABI");
static_assert(sizeof(struct ibv_cq_ex) == 288 + ABI_MUTEX_MORE, "ABI");
static_assert(sizeof(struct ibv_wc) == 48, "ABI");
static_assert((int)IBV_WC_GENERAL_ERR == WC_GENERAL_ERR && (int)IBV_WC_RNR_RETRY_EXC_ERR == WC_RNR_RETRY_EXC_ERR &&
		      (int)IBV_WC_RECV_RDMA_WITH_IMM == WC_RECV_RDMA_WITH_IMM &&
		      (int)IBV_WC_FETCH_ADD == WC_FETCH_ADD && (int)IBV_WC_LOCAL_INV == WC_LOCAL_INV &&
		      (int)IBV_WC_ATOMIC_WRITE == WC_ATOMIC_WRITE && (int)IBV_WC_GRH == WC_GRH &&
		      (int)IBV_WC_WITH_IMM == WC_WITH_IMM && (int)IBV_WC_WITH_INV == WC_WITH_INV,
	      "the numbers are one");

static void cq_reap(struct object *o)
{
	struct abi_cq *cq = container_of(o, struct abi_cq, object);

	if (nic_cq_destroy(context_of(cq->pub.context)->nic, cq->core) == 0)
		channel_detach(cq);
}

struct abi_cq *cq_create(struct ibv_context *context, uint32_t cqe, void *cq_context, struct ibv_comp_channel *channel,
			 uint32_t comp_vector)
{
	struct abi_context *ctx = context_of(context);
	struct abi_cq *cq;
	int err;

	err = injected(context, FAULT_CALL_create_cq);
	if (err)
		return fail_null(err);
	if (cqe < 1 || cqe > context_max(context, PROFILE_CQE))
		return fail_null(EXPLAIN(EINVAL, "ibv_create_cq: %u entries; 1 to %u are allowed (max_cqe)", cqe,
					 context_max(context, PROFILE_CQE)));
	if (comp_vector >= COMP_VECTORS)
		return fail_null(EXPLAIN(EINVAL, "ibv_create_cq: comp_vector %u; there are %d (num_comp_vectors)",
					 comp_vector, COMP_VECTORS));
	if (channel && channel->context != context)
		return fail_null(EINVAL);
	cq = space_get(sizeof(*cq));
	if (!cq)
		return fail_null(ENOMEM);
	cq->engine = ctx->engine;
	cq->pub.context = context;
	cq->pub.cq_context = cq_context;
	pthread_mutex_init(&cq->pub.mutex, NULL);
	pthread_cond_init(&cq->pub.cond, NULL);
	engine_lock(ctx->engine);
	err = room_check(ctx, PROFILE_CQ, nic_counters(ctx->nic)->cqs, 0);
	if (!err)
		err = -nic_cq_create(ctx->nic, cqe, cq, &cq->core);
	if (!err) {
		channel_attach(cq, channel);
		cq->pub.cqe = (int)cq->core->capacity;
		object_add(ctx, &cq->object, cq_reap);
	}
	engine_unlock(ctx->engine);
	if (err) {
		space_put(cq, sizeof(*cq));
		return fail_null(err);
	}
	return cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
			     int comp_vector)
{
	struct abi_cq *cq;

	if (cqe < 1 || comp_vector < 0)
		return fail_null(EINVAL);
	cq = cq_create(context, (uint32_t)cqe, cq_context, channel, (uint32_t)comp_vector);
	return cq ? &cq->pub : NULL;
}

/*
 * Holds off the engine and the pollers of one CQ. 0, or EIO in a child of fork() where a thread of the
 * parent's polled.
 */
static int cq_quiesce(struct abi_cq *cq)
{
	for (;;) {
		engine_lock(cq->engine);
		if (cq_is_in_batch(cq) || spin_trylock(&cq->poll_lock))
			return 0;
		engine_unlock(cq->engine);
		if (engine_is_lost(cq->engine))
			return EIO;
		sched_yield();
	}
}

static void cq_resume(struct abi_cq *cq)
{
	if (!cq_is_in_batch(cq))
		spin_unlock(&cq->poll_lock);
	engine_unlock(cq->engine);
}

int ibv_resize_cq(struct ibv_cq *pub, int cqe)
{
	struct abi_cq *cq = cq_of(pub);
	int err;

	if (!context_has(pub->context, PROFILE_RESIZE_CQ))
		return fail(context_of(pub->context)->profile->refused);
	if (cqe < 1 || (uint32_t)cqe > context_max(pub->context, PROFILE_CQE))
		return fail(EINVAL);
	err = cq_quiesce(cq);
	if (err)
		return fail(err);
	err = -nic_cq_resize(context_of(pub->context)->nic, cq->core, (uint32_t)cqe);
	if (!err)
		pub->cqe = (int)cq->core->capacity;
	cq_resume(cq);
	return err ? fail(err) : 0;
}

static void events_await(struct abi_cq *cq)
{
	pthread_mutex_lock(&cq->pub.mutex);
	while (!engine_is_lost(cq->engine) && (cq->pub.comp_events_completed != cq->comp_delivered ||
					       cq->pub.async_events_completed != cq->async_delivered))
		event_wait(&cq->pub.cond, &cq->pub.mutex);
	pthread_mutex_unlock(&cq->pub.mutex);
}

int ibv_destroy_cq(struct ibv_cq *pub)
{
	struct abi_cq *cq = cq_of(pub);
	struct abi_context *ctx = context_of(pub->context);
	int err;

	err = cq_quiesce(cq);
	if (err)
		return fail(err);
	err = -nic_cq_destroy(ctx->nic, cq->core);
	if (!err)
		list_remove(&cq->object.link);
	cq_resume(cq);
	if (err)
		return fail(err);
	channel_detach(cq);
	async_withdraw(ctx, cq);
	events_await(cq);
	pthread_mutex_destroy(&pub->mutex);
	pthread_cond_destroy(&pub->cond);
	space_put(cq, sizeof(*cq));
	return 0;
}

static void wc_fill(struct ibv_wc *wc, const struct cqe *e)
{
	wc->wr_id = e->wr_id;
	wc->status = (enum ibv_wc_status)e->status;
	wc->opcode = (enum ibv_wc_opcode)e->opcode;
	wc->vendor_err = e->vendor_err;
	wc->byte_len = e->byte_len;
	if (e->flags & WC_WITH_INV)
		wc->invalidated_rkey = e->imm_or_key;
	else
		wc->imm_data = htobe32(e->imm_or_key);
	wc->qp_num = e->qpn;
	wc->src_qp = e->src_qp;
	wc->wc_flags = e->flags;
	wc->pkey_index = e->pkey_index;
	wc->slid = 0;
	wc->sl = e->sl;
	wc->dlid_path_bits = 0;
}

/* How many there are, at most `count`, or the negative value that ibv_poll_cq() returns. */
static int take(struct abi_cq *cq, int count, struct ibv_wc *wc)
{
	struct cq *core = cq->core;
	uint32_t n = 0;

	/* An empty CQ needs no lock. In a child of fork() the lock may be held for ever, and then the call has to fail.
	 */
	if (!cq_depth(core) && !engine_is_lost(cq->engine))
		return 0;
	if (spin_lock(&cq->poll_lock, cq->engine))
		return -fail(EIO);
	for (const struct cqe *e; n < (uint32_t)count && (e = cq_peek(core, n)); n++)
		wc_fill(&wc[n], e);
	if (n)
		cq_consume(core, n);
	spin_unlock(&cq->poll_lock);
	return (int)n;
}

int poll_cq(struct ibv_cq *pub, int count, struct ibv_wc *wc)
{
	struct abi_cq *cq = cq_of(pub);
	int n;

	if (count <= 0)
		return count < 0 ? -fail(EINVAL) : 0;
	n = take(cq, count, wc);
	if (n)
		return n;
	engine_poll(cq->engine);
	n = take(cq, count, wc);
	/* Completions were lost, so the rest of the CQ would mislead the program (IBTA C11-39). */
	return !n && cq->core->overrun ? -EOVERFLOW : n;
}

int req_notify_cq(struct ibv_cq *pub, int solicited_only)
{
	struct abi_cq *cq = cq_of(pub);
	int err = injected(pub->context, FAULT_CALL_req_notify_cq);

	if (err)
		return fail(err);
	if (cq_arm(cq->core, solicited_only != 0))
		channel_cq_event(cq);
	return 0;
}
