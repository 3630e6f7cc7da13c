/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions, found by their key: an array sorted by it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sdr/verbs/objects.h"

/* Where the key is, or would be. */
static uint32_t place(const struct verbena_sdr_context *ctx, uint32_t lkey)
{
	uint32_t low = 0, high = ctx->mr_count;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (ctx->mrs[mid]->ibv->lkey < lkey)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int insert(struct verbena_sdr_context *ctx, struct verbena_sdr_mr *mr)
{
	uint32_t at = place(ctx, mr->ibv->lkey);

	if (ctx->mr_count == ctx->mr_room) {
		uint32_t room = ctx->mr_room ? 2 * ctx->mr_room : 16;
		struct verbena_sdr_mr **mrs = realloc(ctx->mrs, room * sizeof(struct verbena_sdr_mr *));

		if (!mrs)
			return -ENOMEM;
		ctx->mrs = mrs;
		ctx->mr_room = room;
	}
	memmove(&ctx->mrs[at + 1], &ctx->mrs[at], (ctx->mr_count++ - at) * sizeof(mr));
	ctx->mrs[at] = mr;
	return 0;
}

struct verbena_sdr_mr *verbena_sdr_mr_reg(struct verbena_sdr_context *ctx, void *addr, size_t length, uint32_t flags)
{
	int access = flags & VERBENA_SDR_REMOTE_WRITE ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
	struct verbena_sdr_mr *mr;
	int err;

	if (!ctx || !addr || !length || flags & ~VERBENA_SDR_REMOTE_WRITE)
		return sdr_fail_null(EINVAL);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	mr->ctx = ctx;
	mr->flags = flags;
	mr->ibv = ibv_reg_mr(ctx->pd, addr, length, access);
	if (!mr->ibv) {
		free(mr);
		return NULL;
	}
	pthread_mutex_lock(&ctx->memory_lock);
	err = insert(ctx, mr);
	pthread_mutex_unlock(&ctx->memory_lock);
	if (!err)
		return mr;
	ibv_dereg_mr(mr->ibv);
	free(mr);
	return sdr_fail_null(ENOMEM);
}

int verbena_sdr_mr_dereg(struct verbena_sdr_mr *mr)
{
	struct verbena_sdr_context *ctx;
	uint32_t at;

	if (!mr)
		return sdr_fail(EINVAL);
	ctx = mr->ctx;
	pthread_mutex_lock(&ctx->memory_lock);
	if (mr->receives) {
		pthread_mutex_unlock(&ctx->memory_lock);
		return sdr_fail(EBUSY);
	}
	at = place(ctx, mr->ibv->lkey);
	memmove(&ctx->mrs[at], &ctx->mrs[at + 1], (--ctx->mr_count - at) * sizeof(mr));
	pthread_mutex_unlock(&ctx->memory_lock);
	ibv_dereg_mr(mr->ibv);
	free(mr);
	return VERBENA_SDR_SUCCESS;
}

int verbena_sdr_mr_lkey_get(const struct verbena_sdr_mr *mr, uint32_t *lkey)
{
	if (!mr || !lkey)
		return sdr_fail(EINVAL);
	*lkey = mr->ibv->lkey;
	return VERBENA_SDR_SUCCESS;
}

int verbena_sdr_mr_rkey_get(const struct verbena_sdr_mr *mr, uint32_t *rkey)
{
	if (!mr || !rkey)
		return sdr_fail(EINVAL);
	*rkey = mr->ibv->rkey;
	return VERBENA_SDR_SUCCESS;
}

static bool holds(const struct verbena_sdr_mr *mr, const void *addr, size_t length, uint32_t flags)
{
	uintptr_t start = (uintptr_t)mr->ibv->addr, at = (uintptr_t)addr;

	return (mr->flags & flags) == flags && at >= start && at - start <= mr->ibv->length &&
	       length <= mr->ibv->length - (at - start);
}

struct verbena_sdr_mr *memory_find(struct verbena_sdr_context *ctx, uint32_t lkey, const void *addr, size_t length,
				   uint32_t flags, bool hold)
{
	struct verbena_sdr_mr *mr = NULL;
	uint32_t at;

	pthread_mutex_lock(&ctx->memory_lock);
	at = place(ctx, lkey);
	if (at < ctx->mr_count && ctx->mrs[at]->ibv->lkey == lkey && holds(ctx->mrs[at], addr, length, flags)) {
		mr = ctx->mrs[at];
		mr->receives += hold;
	}
	pthread_mutex_unlock(&ctx->memory_lock);
	return mr;
}

void memory_release(struct verbena_sdr_mr *mr)
{
	pthread_mutex_lock(&mr->ctx->memory_lock);
	mr->receives--;
	pthread_mutex_unlock(&mr->ctx->memory_lock);
}
