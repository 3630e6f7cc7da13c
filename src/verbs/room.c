/* SPDX-License-Identifier: BSD-2-Clause */
/* How many objects a device has room for: by its profile in each process, by its quotas in all of them. */
#include "verbs/explain.h"
#include "verbs/objects.h"

static enum limit kind_of(enum profile_limit limit)
{
	switch (limit) {
	case PROFILE_QP: return LIMIT_QPS;
	case PROFILE_CQ: return LIMIT_CQS;
	case PROFILE_MR: return LIMIT_MRS;
	default: return LIMIT_HCA_OBJECT;
	}
}

static int explain_quota(int err)
{
	return err ? EXPLAIN(err,
			     "a quota of the device is used up (VERBENA_QUOTA); 'verbena stat --events' says which")
		   : 0;
}

int room_check(const struct abi_context *ctx, enum profile_limit limit, uint64_t have, uint64_t bytes)
{
	int err = explain_quota(engine_room(ctx->engine, kind_of(limit), bytes));

	if (err)
		return err;
	return have < ctx->profile->max[limit] ? 0 : ctx->profile->full;
}

int room_check_longer(const struct abi_context *ctx, uint64_t bytes)
{
	return explain_quota(engine_room(ctx->engine, LIMIT_MR_BYTES, bytes));
}
