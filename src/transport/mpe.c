/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See mpe.h. A region lies in the memory of this host, which all its processors see alike, so all that is left of a
 * FLUSH is a barrier: what is placed before it is seen before its response. To memory that outlives a loss of power
 * nothing is flushed here: no region allows it (MR_FLUSH_PERSISTENT), as none is known to be that.
 */
#include <stdatomic.h>
#include <string.h>

#include "transport/mpe.h"

uint64_t mpe_value(const struct transport *tp, const uint8_t *payload, uint32_t len)
{
	uint64_t value = 0;

	if (len == sizeof(value) && !tp->mrs.no_payload)
		memcpy(&value, payload, sizeof(value));
	return value;
}

static bool is_known(const struct feth *h)
{
	return h->placement && !(h->placement & ~(FETH_GLOBAL | FETH_PERSISTENT)) && h->selectivity <= FETH_REGION;
}

/* A placement type or selectivity level that is reserved is an invalid request (our choice). */
static enum rx_verdict judge_flush(const struct transport *tp, const struct qp *qp, const struct mpe_request *m)
{
	uint32_t access = (m->feth.placement & FETH_GLOBAL ? (uint32_t)MR_FLUSH_GLOBAL : 0) |
			  (m->feth.placement & FETH_PERSISTENT ? (uint32_t)MR_FLUSH_PERSISTENT : 0);
	bool opens;

	if (!is_known(&m->feth) || access & ~qp->access)
		return RX_INVALID;
	if (m->feth.selectivity == FETH_REGION)
		opens = mr_check_remote_all(&tp->mrs, m->rkey, &qp->user, access);
	else
		opens = mr_check_remote(&tp->mrs, m->rkey, &qp->user, m->va, m->len, access);
	return opens ? RX_EXECUTE : RX_ACCESS;
}

/* *word gets the address. */
static enum rx_verdict judge_write(const struct transport *tp, const struct qp *qp, const struct mpe_request *m,
				   uint64_t **word)
{
	if (!(qp->access & MR_REMOTE_WRITE) || m->va & (ATOMIC_WRITE_BYTES - 1) || m->len != ATOMIC_WRITE_BYTES ||
	    m->payload_len != ATOMIC_WRITE_BYTES)
		return RX_INVALID;
	*word = (uint64_t *)mr_check_remote(&tp->mrs, m->rkey, &qp->user, m->va, ATOMIC_WRITE_BYTES, MR_REMOTE_WRITE);
	/* An iova may be aligned although the memory behind it is not. */
	return *word && !((uintptr_t)*word & (ATOMIC_WRITE_BYTES - 1)) ? RX_EXECUTE : RX_ACCESS;
}

enum rx_verdict mpe_judge(const struct transport *tp, const struct qp *qp, const struct mpe_request *m)
{
	uint64_t *word;

	return m->flush ? judge_flush(tp, qp, m) : judge_write(tp, qp, m, &word);
}

enum rx_verdict mpe_execute(const struct transport *tp, const struct qp *qp, const struct mpe_request *m)
{
	uint64_t *word = NULL;
	enum rx_verdict v = m->flush ? judge_flush(tp, qp, m) : judge_write(tp, qp, m, &word);

	if (v != RX_EXECUTE)
		return v;
	if (m->flush)
		atomic_thread_fence(memory_order_seq_cst);
	else if (!mr_store(&tp->mrs, word, m->value))
		return RX_ACCESS;
	return RX_EXECUTE;
}
