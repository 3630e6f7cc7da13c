/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains. The nic counts the objects that refer to one. */
#include "verbs/objects.h"

static_assert(sizeof(struct ibv_pd) == 16, "ABI");

static void pd_reap(struct object *o)
{
	struct abi_pd *pd = container_of(o, struct abi_pd, object);

	nic_pd_free(context_of(pd->pub.context)->nic, pd->core);
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct abi_context *ctx = context_of(context);
	int err = injected(context, FAULT_CALL_alloc_pd);
	struct abi_pd *pd;

	if (err)
		return fail_null(err);
	pd = space_get(sizeof(*pd));
	if (!pd)
		return fail_null(ENOMEM);
	engine_lock(ctx->engine);
	err = nic_pd_alloc(ctx->nic, &pd->core);
	if (!err)
		object_add(ctx, &pd->object, pd_reap);
	engine_unlock(ctx->engine);
	if (err) {
		space_put(pd, sizeof(*pd));
		return fail_null(-err);
	}
	pd->pub.context = context;
	pd->pub.handle = pd->core->handle;
	return &pd->pub;
}

int ibv_dealloc_pd(struct ibv_pd *pub)
{
	struct abi_pd *pd = pd_of(pub);
	struct abi_context *ctx = context_of(pub->context);
	int err;

	engine_lock(ctx->engine);
	err = nic_pd_free(ctx->nic, pd->core);
	if (!err)
		list_remove(&pd->object.link);
	engine_unlock(ctx->engine);
	if (err)
		return fail(-err);
	space_put(pd, sizeof(*pd));
	return 0;
}
