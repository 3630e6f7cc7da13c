/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The extended CQ: one completion at a time is taken out of the ring and looked at through readers.
 * From a start_poll that succeeds to end_poll the thread holds the poll lock. It may destroy and reset queue pairs
 * meanwhile, whose completions then do not come any more, and resize the CQ. Taking a completion frees the send
 * queue's slots at once, because programs post the next request while they read the last completion.
 */
#include <endian.h>
#include <time.h>

#include "verbs/explain.h"
#include "verbs/objects.h"

static_assert(offsetof(struct ibv_cq_ex, comp_mask) == 128 + ABI_MUTEX_MORE, "ABI");
static_assert(offsetof(struct ibv_cq_ex, status) == 132 + ABI_MUTEX_MORE, "ABI");
static_assert(offsetof(struct ibv_cq_ex, wr_id) == 136 + ABI_MUTEX_MORE, "ABI");
static_assert(offsetof(struct ibv_cq_ex, start_poll) == 144 + ABI_MUTEX_MORE, "ABI");
static_assert(offsetof(struct ibv_cq_ex, read_completion_wallclock_ns) == 280 + ABI_MUTEX_MORE, "ABI");
static_assert(sizeof(struct ibv_cq_init_attr_ex) == 56, "ABI");

enum {
	WC_FLAGS_SUPPORTED = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	CQ_FLAGS_SUPPORTED = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN
};

static struct abi_cq *ex_of(struct ibv_cq_ex *ex)
{
	return container_of(ex, struct abi_cq, ex);
}

static bool take(struct abi_cq *cq)
{
	const struct cqe *e = cq_peek(cq->core, 0);

	if (!e)
		return false;
	cq->current = *e;
	cq_consume(cq->core, 1);
	cq->ex.status = (enum ibv_wc_status)cq->current.status;
	cq->ex.wr_id = cq->current.wr_id;
	return true;
}

/* As take(), and begins a batch. */
static bool begin(struct abi_cq *cq)
{
	if (!take(cq))
		return false;
	atomic_store_explicit(&cq->batch_of, pthread_self(), memory_order_relaxed);
	return true;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct abi_cq *cq = ex_of(ex);
	int err;

	if (attr->comp_mask)
		return fail(EINVAL);
	if (spin_lock(&cq->poll_lock, cq->engine))
		return fail(EIO);
	if (begin(cq))
		return 0;
	spin_unlock(&cq->poll_lock);
	engine_poll(cq->engine);
	if (spin_lock(&cq->poll_lock, cq->engine))
		return fail(EIO);
	if (begin(cq))
		return 0;
	err = cq->core->overrun ? EOVERFLOW : ENOENT;
	spin_unlock(&cq->poll_lock);
	return err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return take(ex_of(ex)) ? 0 : ENOENT;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct abi_cq *cq = ex_of(ex);

	atomic_store_explicit(&cq->batch_of, 0, memory_order_relaxed);
	spin_unlock(&cq->poll_lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return (enum ibv_wc_opcode)ex_of(ex)->current.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return ex_of(ex)->current.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return ex_of(ex)->current.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	const struct cqe *e = &ex_of(ex)->current;

	/* ibv_wc_read_invalidated_rkey() comes here as well and needs host order. */
	return e->flags & WC_WITH_INV ? (__be32)e->imm_or_key : htobe32(e->imm_or_key);
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return ex_of(ex)->current.qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return ex_of(ex)->current.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return ex_of(ex)->current.flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return 0; /* RoCE has no LIDs */
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return ex_of(ex)->current.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return ex_of(ex)->current.timestamp_ns;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	return engine_wall_at_0_ns(ex_of(ex)->engine) + ex_of(ex)->current.timestamp_ns;
}

static void readers_fill(struct ibv_cq_ex *ex, uint64_t flags)
{
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	if (flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_slid;
	if (flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_dlid_path_bits;
	if (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}

/*
 * A single-threaded CQ is locked all the same, since a QP's destruction reaches into it. With
 * "ignore overrun" the program promises that there are none; if there is one after all, the CQ is
 * in error.
 */
struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct abi_cq *cq;

	if (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) ||
	    attr->wc_flags & ~(uint64_t)WC_FLAGS_SUPPORTED)
		return fail_null(EOPNOTSUPP);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	    (!attr->parent_domain || attr->parent_domain->context != context || !pd_of(attr->parent_domain)->parent))
		return fail_null(EXPLAIN(EINVAL, "ibv_create_cq_ex: needs a parent domain of its context"));
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && attr->flags & ~(uint32_t)CQ_FLAGS_SUPPORTED)
		return fail_null(EOPNOTSUPP);
	cq = cq_create(context, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector);
	if (!cq)
		return NULL;
	readers_fill(&cq->ex, attr->wc_flags);
	return &cq->ex;
}
