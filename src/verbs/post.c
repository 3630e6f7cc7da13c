/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting: a chain of work requests becomes WQEs, the nic sees them all at once, and the engine is
 * called once. Errors in the request's form are returned here as an errno value; the nic checks
 * keys and addresses when it executes the request.
 */
#include <endian.h>
#include <stdatomic.h>
#include <string.h>

#include "base/ipudp.h"
#include "verbs/explain.h"
#include "verbs/objects.h"
#include "verbs/post.h"

static_assert(sizeof(struct ibv_send_wr) == 128, "ABI");
static_assert(offsetof(struct ibv_send_wr, opcode) == 28, "ABI");
static_assert(offsetof(struct ibv_send_wr, wr) == 40, "ABI");
static_assert(sizeof(struct ibv_recv_wr) == 32, "ABI");
static_assert(sizeof(struct ibv_sge) == sizeof(struct wqe_sge) &&
		      offsetof(struct ibv_sge, addr) == offsetof(struct wqe_sge, addr) &&
		      offsetof(struct ibv_sge, length) == offsetof(struct wqe_sge, len) &&
		      offsetof(struct ibv_sge, lkey) == offsetof(struct wqe_sge, lkey),
	      "SGEs are copied as they are");
static_assert((int)IBV_WR_RDMA_WRITE == WR_WRITE && (int)IBV_WR_RDMA_READ == WR_READ &&
		      (int)IBV_WR_SEND_WITH_INV == WR_SEND_INV && (int)IBV_WR_ATOMIC_FETCH_AND_ADD == WR_FETCH_ADD &&
		      (int)IBV_WR_ATOMIC_WRITE == WR_ATOMIC_WRITE && (int)IBV_SEND_INLINE == WR_INLINE &&
		      (int)IBV_SEND_FENCE == WR_FENCE && (int)IBV_SEND_SOLICITED == WR_SOLICITED,
	      "the numbers are one");

#define OPS_UD    ((1u << WR_SEND) | (1u << WR_SEND_IMM))
#define OPS_LOCAL ((1u << WR_BIND_MW) | (1u << WR_LOCAL_INV))
#define OPS_UC    (OPS_UD | (1u << WR_WRITE) | (1u << WR_WRITE_IMM) | OPS_LOCAL)
#define OPS_XRC   (OPS_UC | (1u << WR_READ) | (1u << WR_CMP_SWAP) | (1u << WR_FETCH_ADD) | (1u << WR_SEND_INV))
/* A FLUSH has its range and kind in no ibv_send_wr: the builder (post_ex.c) alone makes one. */
#define OPS_RC (OPS_XRC | (1u << WR_ATOMIC_WRITE))

#define OPS_FETCH ((1u << WR_READ) | (1u << WR_CMP_SWAP) | (1u << WR_FETCH_ADD))

/* What may be posted to a send queue, by QP type (IBTA table 'Work Request Modifiers'). */
static const uint32_t ops_by_type[] = {
	[QPT_RC] = OPS_RC, [QPT_UC] = OPS_UC, [QPT_UD] = OPS_UD, [QPT_XRC_SEND] = OPS_XRC, [QPT_XRC_RECV] = 0};

/* Of iWARP: RFC 5040 has no immediates and no atomics, RFC 7306 both but for SENDs with immediate data. */
#define OPS_IWARP   ((1u << WR_SEND) | (1u << WR_WRITE) | (1u << WR_READ) | (1u << WR_SEND_INV) | OPS_LOCAL)
#define OPS_RFC7306 ((1u << WR_WRITE_IMM) | (1u << WR_CMP_SWAP) | (1u << WR_FETCH_ADD))

/* The requests of each enum profile_operation. */
static const uint32_t profile_ops[] = {
	[PROFILE_SEND] = 1u << WR_SEND,
	[PROFILE_SEND_IMM] = 1u << WR_SEND_IMM,
	[PROFILE_SEND_INV] = 1u << WR_SEND_INV,
	[PROFILE_WRITE] = 1u << WR_WRITE,
	[PROFILE_WRITE_IMM] = 1u << WR_WRITE_IMM,
	[PROFILE_READ] = 1u << WR_READ,
	[PROFILE_ATOMIC] = 1u << WR_FETCH_ADD | 1u << WR_CMP_SWAP,
	[PROFILE_PLACEMENT] = 1u << WR_ATOMIC_WRITE, /* by which FLUSH goes as well */
};

uint32_t post_ops(struct ibv_context *context, enum ibv_qp_type type)
{
	const struct abi_context *ctx = context_of(context);
	uint32_t all = context->device->transport_type != IBV_TRANSPORT_IWARP
			       ? ops_by_type[type]
			       : OPS_IWARP | (engine_has_rfc7306(ctx->engine) ? OPS_RFC7306 : 0);

	for (unsigned i = 0; i < sizeof(profile_ops) / sizeof(profile_ops[0]); i++) {
		if (!profile_has(ctx->profile, PROFILE_OPERATIONS, i))
			all &= ~profile_ops[i];
	}
	if (!profile_has(ctx->profile, PROFILE_VERBS, PROFILE_WINDOWS))
		all &= ~(1u << WR_BIND_MW | 1u << WR_LOCAL_INV);
	return all;
}

bool qp_may_send(const struct abi_qp *qp)
{
	return qp_state(qp->core) >= QPS_RTS; /* IBTA C10-29: an immediate error before */
}

int send_wqe_address(struct send_wqe *w, const struct abi_qp *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	if (!ah || !pd_is_same(ah->pd, qp->pub.pd))
		return EINVAL;
	w->ud.flow = ah_of(ah)->flow;
	if (qp->off_host && gid_is_multicast(w->ud.flow.dst))
		w->ud.flow.neighbour = FLOW_OFF_HOST;
	w->ud.dqpn = qpn;
	w->ud.qkey = qkey;
	return 0;
}

int send_wqe_sges(struct send_wqe *w, const struct sq *sq, const struct ibv_sge *sge, size_t count)
{
	uint64_t total = 0;

	if (count > sq->max_sge)
		return EINVAL;
	for (size_t i = 0; i < count; i++) {
		w->sge[i] = (struct wqe_sge){sge[i].addr, sge[i].length, sge[i].lkey};
		total += sge[i].length;
	}
	w->num_sge = (uint16_t)count;
	/* Longer than any message may be; the nic reports it in a completion. */
	w->length = total > UINT32_MAX ? UINT32_MAX : (uint32_t)total;
	return 0;
}

static int inline_fill(struct send_wqe *w, const struct sq *sq, const struct ibv_sge *sge, size_t count)
{
	uint8_t *to = send_wqe_inline(w);
	size_t left = sq->max_inline;

	if (1u << w->opcode & OPS_FETCH)
		return EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (sge[i].length > left)
			return EINVAL;
		if (!mem_copy(to, (const void *)(uintptr_t)sge[i].addr, sge[i].length))
			return EFAULT;
		to += sge[i].length;
		left -= sge[i].length;
	}
	w->num_sge = 0;
	w->length = (uint32_t)(to - send_wqe_inline(w));
	return 0;
}

static int operation_fill(struct send_wqe *w, const struct abi_qp *qp, const struct ibv_send_wr *wr)
{
	w->imm_or_key = 0;
	w->srqn = wr->qp_type.xrc.remote_srqn;
	switch (w->opcode) {
	case WR_SEND_IMM:
	case WR_WRITE_IMM: w->imm_or_key = be32toh(wr->imm_data); break;
	case WR_SEND_INV: w->imm_or_key = wr->invalidate_rkey; break;
	case WR_CMP_SWAP:
	case WR_FETCH_ADD:
		w->remote_va = wr->wr.atomic.remote_addr;
		w->rkey = wr->wr.atomic.rkey;
		w->atomic.compare_add = wr->wr.atomic.compare_add;
		w->atomic.swap = wr->wr.atomic.swap;
		return 0;
	}
	if (qp->pub.qp_type == IBV_QPT_UD)
		return send_wqe_address(w, qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	w->remote_va = wr->wr.rdma.remote_addr;
	w->rkey = wr->wr.rdma.rkey;
	return 0;
}

/* What needs no packet has no data: neither SGEs nor IBV_SEND_INLINE are looked at. */
static __attribute__((noinline)) int local_fill(struct send_wqe *w, const struct abi_qp *qp,
						const struct ibv_send_wr *wr, enum ibv_mw_type type)
{
	w->num_sge = 0;
	w->length = 0;
	w->imm_or_key = wr->invalidate_rkey;
	if (wr->opcode == IBV_WR_LOCAL_INV)
		return 0;
	return send_wqe_bind(w, qp, &(struct bind){type, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info});
}

static inline int send_wqe_begin(struct send_wqe *w, const struct abi_qp *qp, const struct ibv_send_wr *wr)
{
	if ((unsigned int)wr->opcode >= WR_OPCODE_COUNT || !(1u << wr->opcode & qp->ops) ||
	    wr->send_flags & ~(unsigned int)SEND_FLAGS_KNOWN || wr->num_sge < 0)
		return EINVAL;
	w->wr_id = wr->wr_id;
	w->opcode = (uint8_t)wr->opcode;
	w->flags = (uint8_t)(wr->send_flags | (qp->sig_all ? WR_SIGNALED : 0));
	w->packets = 0;
	w->done = 0;
	return 0;
}

static int send_wqe_fill(struct send_wqe *w, const struct abi_qp *qp, const struct ibv_send_wr *wr)
{
	int err = send_wqe_begin(w, qp, wr);

	if (err)
		return err;
	if (1u << w->opcode & OPS_LOCAL)
		return local_fill(w, qp, wr, IBV_MW_TYPE_2);
	err = operation_fill(w, qp, wr);
	if (err)
		return err;
	if (wr->send_flags & IBV_SEND_INLINE)
		return inline_fill(w, qp->sq, wr->sg_list, (size_t)wr->num_sge);
	return send_wqe_sges(w, qp->sq, wr->sg_list, (size_t)wr->num_sge);
}

/* The errno value for a request that may not be posted to this QP. */
static __attribute__((cold)) int explain_wr(const struct abi_qp *qp, const struct ibv_send_wr *wr)
{
	if ((unsigned int)wr->opcode >= WR_OPCODE_COUNT || !(1u << wr->opcode & qp->ops))
		return EXPLAIN(EINVAL, "ibv_post_send: a QP of this type does not do operation %d", (int)wr->opcode);
	if (wr->send_flags & ~(unsigned int)SEND_FLAGS_KNOWN)
		return EXPLAIN(EINVAL, "ibv_post_send: send_flags 0x%x are not supported",
			       wr->send_flags & ~(unsigned int)SEND_FLAGS_KNOWN);
	if (qp->pub.qp_type == IBV_QPT_UD && (!wr->wr.ud.ah || !pd_is_same(wr->wr.ud.ah->pd, qp->pub.pd)))
		return EXPLAIN(EINVAL, "ibv_post_send: no address handle of the QP's protection domain");
	if (wr->opcode == IBV_WR_BIND_MW)
		return EXPLAIN(EINVAL,
			       "ibv_post_send: IBV_WR_BIND_MW is for a window of type 2 of the QP's device, with "
			       "access flags that regions have");
	if (wr->send_flags & IBV_SEND_INLINE)
		return EXPLAIN(EINVAL,
			       "ibv_post_send: inline data are for SEND and WRITE, and the QP has room for "
			       "%u bytes (max_inline_data)",
			       qp->sq->max_inline);
	return EXPLAIN(EINVAL, "ibv_post_send: %d SGEs; the QP has room for %u (max_send_sge)", wr->num_sge,
		       qp->sq->max_sge);
}

static inline int post_chain(struct abi_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad, uint32_t status)
{
	uint32_t count = 0;
	int err = 0;

	if (!qp_may_send(qp)) {
		*bad = wr;
		return fail(EXPLAIN(EINVAL, "ibv_post_send: the QP is not in RTS yet"));
	}
	if (spin_lock(&qp->sq_lock, qp->engine)) {
		*bad = wr;
		return fail(EIO);
	}
	for (; wr; wr = wr->next, count++) {
		struct send_wqe *w = sq_slot(qp->sq, count);

		err = w ? send_wqe_fill(w, qp, wr) : ENOMEM;
		if (err)
			break;
		if (status)
			send_wqe_fail(w, status);
	}
	if (count)
		sq_post(qp->sq, count);
	spin_unlock(&qp->sq_lock);
	if (count)
		engine_kick(qp->engine, qp->core);
	if (!err)
		return 0;
	*bad = wr;
	return fail(err == EINVAL ? explain_wr(qp, wr) : err);
}

/* Each request by itself, as the fault engine has it. */
static __attribute__((cold, noinline)) int post_injected(struct abi_qp *qp, struct ibv_send_wr *wr,
							 struct ibv_send_wr **bad)
{
	int err = injected(qp->pub.context, FAULT_CALL_post_send);

	for (; wr && !err; wr = wr->next) {
		struct fault_wr fault = engine_fault_wr(qp->engine, qp->core);
		struct ibv_send_wr one = *wr, *unused;

		one.next = NULL;
		err = fault.err ? fault.err : post_chain(qp, &one, &unused, fault.status);
		if (err)
			break;
	}
	if (!err)
		return 0;
	*bad = wr;
	return fail(err);
}

int post_send(struct ibv_qp *pub, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (engine_has_faults())
		return post_injected(qp_of(pub), wr, bad);
	return post_chain(qp_of(pub), wr, bad, 0);
}

int post_send_simulated(struct ibv_qp *pub, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	engine_catch_up(qp_of(pub)->engine);
	return post_send(pub, wr, bad);
}

int post_bind(struct ibv_qp *pub, const struct ibv_send_wr *wr)
{
	struct abi_qp *qp = qp_of(pub);
	struct send_wqe *w;
	int err;

	if (!qp_may_send(qp))
		return fail(EXPLAIN(EINVAL, "ibv_bind_mw: the QP is not in RTS yet"));
	if (spin_lock(&qp->sq_lock, qp->engine))
		return fail(EIO);
	w = sq_slot(qp->sq, 0);
	err = w ? send_wqe_begin(w, qp, wr) : ENOMEM;
	if (!err)
		err = local_fill(w, qp, wr, IBV_MW_TYPE_1);
	if (!err)
		sq_post(qp->sq, 1);
	spin_unlock(&qp->sq_lock);
	if (err)
		return fail(err);
	engine_kick(qp->engine, qp->core);
	return 0;
}

static int recv_wqe_fill(struct recv_wqe *w, const struct rq *rq, const struct ibv_recv_wr *wr)
{
	uint64_t total = 0;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	w->wr_id = wr->wr_id;
	w->num_sge = (uint32_t)wr->num_sge;
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *s = &wr->sg_list[i];

		w->sge[i] = (struct wqe_sge){s->addr, s->length, s->lkey};
		total += s->length;
	}
	w->length = total;
	return 0;
}

/* Returns the first request that could not be posted, with *err, or NULL. */
static struct ibv_recv_wr *recv_chain(struct rq *rq, struct ibv_recv_wr *wr, int *err)
{
	for (; wr; wr = wr->next) {
		struct recv_wqe *w = rq_slot(rq);

		*err = w ? recv_wqe_fill(w, rq, wr) : ENOMEM;
		if (*err)
			return wr;
		rq_post(rq, w);
	}
	return NULL;
}

static int recv_fail(int err, const struct rq *rq, const struct ibv_recv_wr *wr)
{
	if (err == EINVAL)
		EXPLAIN(err, "ibv_post_recv: %d SGEs; the queue has room for %u (max_recv_sge)", wr->num_sge,
			rq->max_sge);
	return fail(err);
}

int post_recv(struct ibv_qp *pub, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct abi_qp *qp = qp_of(pub);
	struct ibv_recv_wr *left;
	int err = injected(pub->context, FAULT_CALL_post_recv);

	if (err) {
		*bad = wr;
		return fail(err);
	}
	if (!qp->rq || qp_state(qp->core) == QPS_RESET) {
		*bad = wr;
		return fail(!qp->rq ? EXPLAIN(EINVAL, "ibv_post_recv: the QP takes its receives from an SRQ")
				    : EXPLAIN(EINVAL, "ibv_post_recv: the QP is in RESET"));
	}
	if (spin_lock(&qp->rq_lock, qp->engine)) {
		*bad = wr;
		return fail(EIO);
	}
	left = recv_chain(qp->rq, wr, &err);
	spin_unlock(&qp->rq_lock);
	/*
	 * Either the nic saw these WQEs when the QP went to the error state, or we see that state
	 * here.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (qp_state(qp->core) == QPS_ERR)
		engine_kick(qp->engine, qp->core);
	if (!err)
		return 0;
	*bad = left;
	return recv_fail(err, qp->rq, left);
}

int post_srq_recv(struct ibv_srq *pub, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct abi_srq *srq = srq_of(pub);
	struct ibv_recv_wr *left;
	int err = injected(pub->context, FAULT_CALL_post_srq_recv);

	if (err) {
		*bad = wr;
		return fail(err);
	}
	if (spin_lock(&srq->post_lock, context_of(pub->context)->engine)) {
		*bad = wr;
		return fail(EIO);
	}
	left = recv_chain(&srq->core->rq, wr, &err);
	spin_unlock(&srq->post_lock);
	if (!err)
		return 0;
	*bad = left;
	return recv_fail(err, &srq->core->rq, left);
}
