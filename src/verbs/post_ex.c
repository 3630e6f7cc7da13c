/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The send builder. From wr_start to wr_complete or wr_abort the thread holds the SQ lock; WQEs are
 * written where they will lie and become visible when the chain is complete. The first error stays:
 * later requests are ignored, and wr_complete posts nothing and returns that error.
 */
#include <endian.h>
#include <string.h>

#include "verbs/explain.h"
#include "verbs/objects.h"
#include "verbs/post.h"

static_assert(offsetof(struct ibv_qp_ex, comp_mask) == 160 + ABI_MUTEX_MORE, "ABI");
static_assert(offsetof(struct ibv_qp_ex, wr_id) == 168 + ABI_MUTEX_MORE, "ABI");
static_assert(offsetof(struct ibv_qp_ex, wr_flags) == 176 + ABI_MUTEX_MORE, "ABI");
static_assert(offsetof(struct ibv_qp_ex, wr_atomic_cmp_swp) == 184 + ABI_MUTEX_MORE, "ABI");
static_assert(offsetof(struct ibv_qp_ex, wr_start) == 320 + ABI_MUTEX_MORE, "ABI");
static_assert(offsetof(struct ibv_qp_ex, wr_abort) == 336 + ABI_MUTEX_MORE, "ABI");
static_assert(offsetof(struct ibv_qp_ex, wr_atomic_write) == 344 + ABI_MUTEX_MORE, "ABI");

/* rdma-core 45 and later. The header of an older one ends before wr_flush. */
enum { QP_EX_WITH_FLUSH = 1 << 11, QP_EX_WR_FLUSH = 352 };
typedef void wr_flush_fn(struct ibv_qp_ex *, uint32_t rkey, uint64_t remote_va, size_t len, uint8_t placement,
			 uint8_t selectivity);
static_assert(QP_EX_WR_FLUSH + sizeof(wr_flush_fn *) <= QP_EX_BYTES, "it has room");

#define OPS_UD (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_UC                                                                                              \
	(OPS_UD | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_BIND_MW | \
	 IBV_QP_EX_WITH_LOCAL_INV)
#define OPS_XRC                                                                                                        \
	(OPS_UC | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | \
	 IBV_QP_EX_WITH_SEND_WITH_INV)
#define OPS_RC (OPS_XRC | IBV_QP_EX_WITH_ATOMIC_WRITE | QP_EX_WITH_FLUSH)

static struct abi_qp *ex_of(struct ibv_qp_ex *ex)
{
	return container_of(ex, struct abi_qp, ex);
}

static void stick(struct wr_builder *b, int err)
{
	if (!b->err)
		b->err = err;
	b->wqe = NULL;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct abi_qp *qp = ex_of(ex);

	if (spin_lock(&qp->sq_lock, qp->engine))
		qp->builder = (struct wr_builder){.err = EIO, .lost = true};
	else
		qp->builder = (struct wr_builder){.err = qp_may_send(qp) ? 0 : EINVAL};
}

static void wr_start_simulated(struct ibv_qp_ex *ex)
{
	engine_catch_up(ex_of(ex)->engine);
	wr_start(ex);
}

/* The chain is as it will be posted. The errno of the call that posts nothing of it; 0: it is posted. */
static __attribute__((cold, noinline)) int chain_injected(struct abi_qp *qp, uint32_t count)
{
	int err = injected(qp->pub.context, FAULT_CALL_post_send);

	for (uint32_t i = 0; i < count && !err; i++) {
		struct fault_wr fault = engine_fault_wr(qp->engine, qp->core);

		err = fault.err;
		if (fault.status)
			send_wqe_fail(sq_slot(qp->sq, i), fault.status);
	}
	return err;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct abi_qp *qp = ex_of(ex);
	uint32_t count = qp->builder.count;
	int err = qp->builder.err;

	if (!err && qp->builder.needs_address)
		err = EINVAL;
	if (qp->builder.lost)
		return fail(err);
	if (!err && count && engine_has_faults()) {
		err = chain_injected(qp, count);
		if (err) {
			spin_unlock(&qp->sq_lock);
			return fail(err);
		}
	}
	if (!err && count)
		sq_post(qp->sq, count);
	spin_unlock(&qp->sq_lock);
	if (err)
		return fail(err != EINVAL
				    ? err
				    : EXPLAIN(err, "ibv_wr_complete: the QP is not in RTS yet, or a request "
						   "has no address (UD) or SRQ (XRC), flags that are not supported, or "
						   "more SGEs or inline bytes than the QP has room for"));
	if (count)
		engine_kick(qp->engine, qp->core);
	return 0;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	if (!ex_of(ex)->builder.lost)
		spin_unlock(&ex_of(ex)->sq_lock);
}

/* The next request of the chain, with no data yet; NULL after an error. */
static struct send_wqe *begin(struct ibv_qp_ex *ex, enum wr_opcode opcode)
{
	struct abi_qp *qp = ex_of(ex);
	struct wr_builder *b = &qp->builder;

	if (!b->err && b->needs_address)
		stick(b, EINVAL);
	if (!b->err && ex->wr_flags & ~(unsigned int)SEND_FLAGS_KNOWN)
		stick(b, EINVAL);
	if (b->err)
		return NULL;
	b->wqe = sq_slot(qp->sq, b->count);
	if (!b->wqe) {
		stick(b, ENOMEM);
		return NULL;
	}
	b->count++;
	b->needs_address = qp->pub.qp_type == IBV_QPT_UD ||
			   (qp->pub.qp_type == IBV_QPT_XRC_SEND && opcode != WR_BIND_MW && opcode != WR_LOCAL_INV);
	b->wqe->wr_id = ex->wr_id;
	b->wqe->opcode = (uint8_t)opcode;
	/* The setter decides whether the data is inline. */
	b->wqe->flags = (uint8_t)((ex->wr_flags & ~(unsigned int)IBV_SEND_INLINE) | (qp->sig_all ? WR_SIGNALED : 0));
	b->wqe->num_sge = 0;
	b->wqe->length = 0;
	b->wqe->imm_or_key = 0;
	b->wqe->packets = 0;
	b->wqe->done = 0;
	return b->wqe;
}

static struct send_wqe *begin_rdma(struct ibv_qp_ex *ex, enum wr_opcode opcode, uint32_t rkey, uint64_t remote_va)
{
	struct send_wqe *w = begin(ex, opcode);

	if (w) {
		w->rkey = rkey;
		w->remote_va = remote_va;
	}
	return w;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct send_wqe *w = begin(ex, WR_SEND_IMM);

	if (w)
		w->imm_or_key = be32toh(imm);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct send_wqe *w = begin(ex, WR_SEND_INV);

	if (w)
		w->imm_or_key = rkey;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_va)
{
	begin_rdma(ex, WR_WRITE, rkey, remote_va);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_va, __be32 imm)
{
	struct send_wqe *w = begin_rdma(ex, WR_WRITE_IMM, rkey, remote_va);

	if (w)
		w->imm_or_key = be32toh(imm);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_va)
{
	begin_rdma(ex, WR_READ, rkey, remote_va);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_va, uint64_t compare, uint64_t swap)
{
	struct send_wqe *w = begin_rdma(ex, WR_CMP_SWAP, rkey, remote_va);

	if (w) {
		w->atomic.compare_add = compare;
		w->atomic.swap = swap;
	}
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_va, uint64_t add)
{
	struct send_wqe *w = begin_rdma(ex, WR_FETCH_ADD, rkey, remote_va);

	if (w) {
		w->atomic.compare_add = add;
		w->atomic.swap = 0;
	}
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_va, const void *value)
{
	struct abi_qp *qp = ex_of(ex);
	struct send_wqe *w = begin_rdma(ex, WR_ATOMIC_WRITE, rkey, remote_va);

	if (w && !mem_copy(send_wqe_inline(w), value, ATOMIC_WRITE_BYTES))
		stick(&qp->builder, EFAULT);
	qp->builder.wqe = NULL; /* its data is set */
	if (!w)
		return;
	w->flags |= WR_INLINE;
	w->length = ATOMIC_WRITE_BYTES;
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_va, size_t len, uint8_t placement,
		     uint8_t selectivity)
{
	struct abi_qp *qp = ex_of(ex);
	struct send_wqe *w = begin_rdma(ex, WR_FLUSH, rkey, remote_va);

	/* What the header has room for. What the peer makes of it is the peer's. */
	if (w && (len > UINT32_MAX || placement > 0xf || selectivity > 3))
		stick(&qp->builder, EINVAL);
	qp->builder.wqe = NULL;
	if (!w)
		return;
	w->flush.bytes = (uint32_t)len;
	w->flush.placement = placement;
	w->flush.selectivity = selectivity;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct send_wqe *w = begin(ex, WR_LOCAL_INV);

	if (w)
		w->imm_or_key = rkey;
	ex_of(ex)->builder.wqe = NULL; /* it has no data to be set */
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct abi_qp *qp = ex_of(ex);
	struct send_wqe *w = begin(ex, WR_BIND_MW);
	int err = w ? send_wqe_bind(w, qp, &(struct bind){IBV_MW_TYPE_2, mw, rkey, info}) : 0;

	if (err)
		stick(&qp->builder, err);
	qp->builder.wqe = NULL;
}

/* A setter's request, or NULL with the error recorded: a setter without a request is a mistake. */
static struct send_wqe *current(struct wr_builder *b)
{
	if (!b->wqe)
		stick(b, EINVAL);
	return b->wqe;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct abi_qp *qp = ex_of(ex);
	struct send_wqe *w = current(&qp->builder);
	int err;

	if (!w)
		return;
	err = qp->builder.needs_address ? send_wqe_address(w, qp, ah, qpn, qkey) : EINVAL;
	if (err)
		stick(&qp->builder, err);
	else
		qp->builder.needs_address = false;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
	struct wr_builder *b = &ex_of(ex)->builder;
	struct send_wqe *w = current(b);

	if (!w)
		return;
	w->srqn = srqn;
	b->needs_address = false;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_sge *sge)
{
	struct abi_qp *qp = ex_of(ex);
	struct send_wqe *w = current(&qp->builder);
	int err = w ? send_wqe_sges(w, qp->sq, sge, count) : 0;

	if (err)
		stick(&qp->builder, err);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_data_buf *buf)
{
	struct abi_qp *qp = ex_of(ex);
	struct send_wqe *w = current(&qp->builder);
	size_t len = 0;

	if (!w)
		return;
	for (size_t i = 0; i < count; i++) {
		if (buf[i].length > qp->sq->max_inline - len) {
			stick(&qp->builder, EINVAL);
			return;
		}
		if (!mem_copy(send_wqe_inline(w) + len, buf[i].addr, buf[i].length)) {
			stick(&qp->builder, EFAULT);
			return;
		}
		len += buf[i].length;
	}
	if (w->opcode == WR_READ || w->opcode == WR_CMP_SWAP || w->opcode == WR_FETCH_ADD) {
		stick(&qp->builder, EINVAL);
		return;
	}
	w->flags |= WR_INLINE;
	w->num_sge = 0;
	w->length = (uint32_t)len;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	const struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(ex, 1, &buf);
}

bool post_ex_init(struct abi_qp *qp, uint64_t flags)
{
	static const uint64_t supported[] = {
		[QPT_RC] = OPS_RC, [QPT_UC] = OPS_UC, [QPT_UD] = OPS_UD, [QPT_XRC_SEND] = OPS_XRC};
	/* iWARP has fewer of RC's, and a profile may have (post_ops()). */
	uint64_t lacks = (qp->ops & 1u << WR_SEND ? 0 : IBV_QP_EX_WITH_SEND) |
			 (qp->ops & 1u << WR_SEND_INV ? 0 : IBV_QP_EX_WITH_SEND_WITH_INV) |
			 (qp->ops & 1u << WR_WRITE ? 0 : IBV_QP_EX_WITH_RDMA_WRITE) |
			 (qp->ops & 1u << WR_READ ? 0 : IBV_QP_EX_WITH_RDMA_READ) |
			 (qp->ops & 1u << WR_BIND_MW ? 0 : IBV_QP_EX_WITH_BIND_MW) |
			 (qp->ops & 1u << WR_LOCAL_INV ? 0 : IBV_QP_EX_WITH_LOCAL_INV) |
			 (qp->ops & 1u << WR_SEND_IMM ? 0 : IBV_QP_EX_WITH_SEND_WITH_IMM) |
			 (qp->ops & 1u << WR_WRITE_IMM ? 0 : IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM) |
			 (qp->ops & 1u << WR_CMP_SWAP ? 0 : IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP) |
			 (qp->ops & 1u << WR_FETCH_ADD ? 0 : IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD) |
			 (qp->ops & 1u << WR_ATOMIC_WRITE ? 0 : IBV_QP_EX_WITH_ATOMIC_WRITE | QP_EX_WITH_FLUSH);
	struct ibv_qp_ex *ex = &qp->ex;

	if (flags & (~supported[qp->pub.qp_type] | lacks))
		return false;
	if (flags & IBV_QP_EX_WITH_SEND)
		ex->wr_send = wr_send;
	if (flags & IBV_QP_EX_WITH_SEND_WITH_IMM)
		ex->wr_send_imm = wr_send_imm;
	if (flags & IBV_QP_EX_WITH_SEND_WITH_INV)
		ex->wr_send_inv = wr_send_inv;
	if (flags & IBV_QP_EX_WITH_RDMA_WRITE)
		ex->wr_rdma_write = wr_rdma_write;
	if (flags & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		ex->wr_rdma_write_imm = wr_rdma_write_imm;
	if (flags & IBV_QP_EX_WITH_RDMA_READ)
		ex->wr_rdma_read = wr_rdma_read;
	if (flags & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
		ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	if (flags & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
		ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	if (flags & IBV_QP_EX_WITH_ATOMIC_WRITE)
		ex->wr_atomic_write = wr_atomic_write;
	if (flags & QP_EX_WITH_FLUSH)
		memcpy(qp->room + QP_EX_WR_FLUSH, &(wr_flush_fn *){wr_flush}, sizeof(wr_flush_fn *));
	if (flags & IBV_QP_EX_WITH_LOCAL_INV)
		ex->wr_local_inv = wr_local_inv;
	if (flags & IBV_QP_EX_WITH_BIND_MW)
		ex->wr_bind_mw = wr_bind_mw;
	ex->wr_start = engine_is_simulated(qp->engine) ? wr_start_simulated : wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	if (qp->pub.qp_type == IBV_QPT_UD)
		ex->wr_set_ud_addr = wr_set_ud_addr;
	if (qp->pub.qp_type == IBV_QPT_XRC_SEND)
		ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	return true;
}
