/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Advice on regions whose memory may come and go. The device reads and writes through the process's own page tables,
 * so a page that is in memory is the device's as well: to prefetch is to bring pages in.
 */
#include "verbs/objects.h"
#include "verbs/pinned.h"

/* One element's bytes in this process; how Linux's drivers answer decides where the manual page leaves a choice. */
static int place_of(struct abi_context *ctx, struct ibv_pd *pd, const struct ibv_sge *sge, bool write, uint8_t **at)
{
	const struct mr *mr = nic_mr_find(ctx->nic, sge->lkey);

	if (!mr)
		return ENOENT;
	if (!(mr->access & MR_ON_DEMAND))
		return EINVAL;
	if (mr->pd != pd_of(pd)->core || (write && !(mr->access & MR_LOCAL_WRITE)))
		return EPERM;
	if (!sge->length)
		return 0;
	*at = nic_mr_reach(ctx->nic, mr, sge->addr, sge->length);
	return *at ? 0 : EFAULT;
}

/* The lock is not held while pages come in, which may take long. */
static int prefetch(struct ibv_pd *pd, const struct ibv_sge *sge, bool write, bool fault)
{
	struct abi_context *ctx = context_of(pd->context);
	uint8_t *at = NULL;
	int err;

	engine_lock(ctx->engine);
	err = place_of(ctx, pd, sge, write, &at);
	engine_unlock(ctx->engine);
	return err || !fault || !at ? err : pages_bring_in(at, sge->length, write);
}

/* All is done when it returns, so IBV_ADVISE_MR_FLAG_FLUSH changes nothing. */
int advise_mr(struct ibv_pd *pd, enum ib_uverbs_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sges,
	      uint32_t count)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	int err = 0;

	if (!write && advice != IBV_ADVISE_MR_ADVICE_PREFETCH && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return fail(EOPNOTSUPP);
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || !count)
		return fail(EINVAL);
	for (uint32_t i = 0; i < count && !err; i++)
		err = prefetch(pd, &sges[i], write, false);
	if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) {
		for (uint32_t i = 0; i < count && !err; i++)
			err = prefetch(pd, &sges[i], write, true);
	}
	return err ? fail(err) : 0;
}
