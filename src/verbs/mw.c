/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows. A work request names its window by the handle, which is never used again while the device is open
 * but by chance of one in 2^32: what programs keep in the public struct they may change.
 */
#include "verbs/explain.h"
#include "verbs/objects.h"
#include "verbs/post.h"

static_assert(sizeof(struct ibv_mw) == 32, "ABI");
static_assert(offsetof(struct ibv_mw, rkey) == 16, "ABI");
static_assert(offsetof(struct ibv_mw, type) == 24, "ABI");
static_assert(sizeof(struct ibv_mw_bind_info) == 32, "ABI");
static_assert(offsetof(struct ibv_send_wr, bind_mw.mw) == 80, "ABI");
static_assert(offsetof(struct ibv_send_wr, bind_mw.bind_info) == 96, "ABI");
static_assert((int)IBV_MW_TYPE_1 == MW_TYPE_1 && (int)IBV_MW_TYPE_2 == MW_TYPE_2 && (int)IBV_WR_BIND_MW == WR_BIND_MW &&
		      (int)IBV_WR_LOCAL_INV == WR_LOCAL_INV,
	      "the numbers are one");

static void mw_reap(struct object *o)
{
	struct abi_mw *mw = container_of(o, struct abi_mw, object);

	nic_mw_free(context_of(mw->pub.context)->nic, mw->core);
}

struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct abi_context *ctx = context_of(pd->context);
	int err = injected(pd->context, FAULT_CALL_alloc_mw);
	struct abi_mw *mw;

	if (err)
		return fail_null(err);
	mw = space_get(sizeof(*mw));
	if (!mw)
		return fail_null(ENOMEM);
	engine_lock(ctx->engine);
	err = room_check(ctx, PROFILE_MW, nic_counters(ctx->nic)->mws, 0);
	if (!err)
		err = -nic_mw_alloc(ctx->nic, pd_of(pd)->core, (enum mw_type)type, &mw->core);
	if (!err)
		object_add(ctx, &mw->object, mw_reap);
	engine_unlock(ctx->engine);
	if (err) {
		space_put(mw, sizeof(*mw));
		return fail_null(err);
	}
	mw->pub.context = pd->context;
	mw->pub.pd = pd;
	mw->pub.rkey = mw->core->opened.key;
	mw->pub.handle = mw->core->anchor.key;
	mw->pub.type = type;
	mw->type = type;
	mw->handle = mw->core->anchor.key;
	mw->index = mw->pub.rkey & ~(uint32_t)MW_TAG_MASK;
	return &mw->pub;
}

int dealloc_mw(struct ibv_mw *pub)
{
	struct abi_mw *mw = container_of(pub, struct abi_mw, pub);
	struct abi_context *ctx = context_of(pub->context);

	engine_lock(ctx->engine);
	nic_mw_free(ctx->nic, mw->core);
	list_remove(&mw->object.link);
	engine_unlock(ctx->engine);
	space_put(mw, sizeof(*mw));
	return 0;
}

int send_wqe_bind(struct send_wqe *w, const struct abi_qp *qp, const struct bind *b)
{
	struct abi_mw *mw = container_of(b->mw, struct abi_mw, pub);
	const struct ibv_mw_bind_info *info = b->info;

	if (!b->mw || mw->pub.context != qp->pub.context || mw->type != b->type ||
	    info->mw_access_flags & ~(unsigned int)(MR_ACCESS_KNOWN & ~MR_ON_DEMAND))
		return EINVAL;
	/* Of type 2 the rest is the window's, whatever the program says (IBTA 10.6.7.2.1); drivers mask it. */
	w->rkey = b->type == IBV_MW_TYPE_2 ? mw->index | (b->rkey & MW_TAG_MASK) : b->rkey;
	mw->pub.rkey = w->rkey;
	w->bind = (struct wqe_bind){
		.addr = info->addr,
		.length = info->length,
		.handle = mw->handle,
		.lkey = info->mr ? mr_of(info->mr)->pub.lkey : 0,
		/* Local rights mean nothing to a window; programs set them all the same, and drivers drop them. */
		.access = info->mw_access_flags & MW_ACCESS_KNOWN,
	};
	return 0;
}

/* Of type 1: the header's inline function has looked at the type, the region and its PD. */
int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct abi_context *ctx = context_of(qp->context);
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {.mw = mw, .bind_info = bind->bind_info},
	};

	if (!pd_is_same(qp->pd, mw->pd))
		return fail(EPERM);
	if (bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return fail(EINVAL);
	engine_lock(ctx->engine);
	wr.bind_mw.rkey = nic_mw_draw_key(ctx->nic);
	engine_unlock(ctx->engine);
	return post_bind(qp, &wr);
}
