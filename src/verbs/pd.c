/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, thread domains, and parent domains, which join the two. The nic counts the objects that refer to a
 * protection domain, and knows no others.
 *
 * A parent domain may come with functions that give memory for queues. They are never called: what the device goes by
 * lies where no region reaches (space/space.h), and no program's memory does.
 */
#include "verbs/explain.h"
#include "verbs/objects.h"

static_assert(sizeof(struct ibv_pd) == 16, "ABI");
static_assert(sizeof(struct ibv_td) == 8, "ABI");
static_assert(sizeof(struct ibv_parent_domain_init_attr) == 48, "ABI");

enum { ALLOW_UNPROTECTED = 1 << 2 /* IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC of later releases */ };

/* The handle goes, and with the last one the domain. */
static void pd_reap(struct object *o)
{
	struct abi_pd *pd = container_of(o, struct abi_pd, object);

	if (!pd->parent && list_empty(&pd->shared))
		nic_pd_free(context_of(pd->pub.context)->nic, pd->core);
	list_remove(&pd->shared);
}

/* Engine locked. */
static struct ibv_pd *publish(struct abi_pd *pd, struct ibv_context *context)
{
	list_init(&pd->shared);
	pd->pub.context = context;
	pd->pub.handle = pd->core->handle;
	object_add(context_of(context), &pd->object, pd_reap);
	return &pd->pub;
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
	err = room_check(ctx, PROFILE_PD, nic_counters(ctx->nic)->pds, 0);
	if (!err)
		err = -nic_pd_alloc(ctx->nic, &pd->core);
	if (!err)
		publish(pd, context);
	engine_unlock(ctx->engine);
	if (err) {
		space_put(pd, sizeof(*pd));
		return fail_null(err);
	}
	return &pd->pub;
}

int ibv_dealloc_pd(struct ibv_pd *pub)
{
	struct abi_pd *pd = pd_of(pub);
	struct abi_context *ctx = context_of(pub->context);
	int err;

	engine_lock(ctx->engine);
	err = pd->users || (!pd->parent && pd->core->users) ? EBUSY : 0;
	if (!err) {
		pd_reap(&pd->object);
		list_remove(&pd->object.link);
		if (pd->parent)
			pd->parent->users--;
		if (pd->td)
			pd->td->users--;
	}
	engine_unlock(ctx->engine);
	if (err)
		return fail(err);
	space_put(pd, sizeof(*pd));
	return 0;
}

static bool is_domain(const struct object *o, uint32_t handle)
{
	const struct abi_pd *pd = container_of(o, struct abi_pd, object);

	return o->reap == pd_reap && !pd->parent && pd->pub.handle == handle;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct abi_pd *pd = space_get(sizeof(*pd)), *other;
	struct abi_context *ctx = context_of(context);
	struct object *o;

	if (!pd)
		return fail_null(ENOMEM);
	engine_lock(ctx->engine);
	o = object_import(context, is_domain, handle);
	if (o) {
		other = container_of(o, struct abi_pd, object);
		pd->core = other->core;
		publish(pd, context);
		list_append(&other->shared, &pd->shared);
	}
	engine_unlock(ctx->engine);
	if (o)
		return &pd->pub;
	space_put(pd, sizeof(*pd));
	return NULL;
}

/* While something is made with the domain, the program's objects may name this handle: it stays as long as its context. */
void ibv_unimport_pd(struct ibv_pd *pd)
{
	ibv_dealloc_pd(pd);
}

void pd_hold(struct ibv_pd *pd)
{
	if (pd && pd_of(pd)->parent)
		pd_of(pd)->users++;
}

void pd_let_go(struct ibv_pd *pd)
{
	if (pd && pd_of(pd)->parent)
		pd_of(pd)->users--;
}

struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct abi_td *td;

	if (attr->comp_mask)
		return fail_null(EINVAL);
	td = space_get(sizeof(*td));
	if (!td)
		return fail_null(ENOMEM);
	td->pub.context = context;
	return &td->pub;
}

int dealloc_td(struct ibv_td *pub)
{
	struct abi_td *td = container_of(pub, struct abi_td, pub);
	struct abi_context *ctx = context_of(pub->context);
	bool in_use;

	engine_lock(ctx->engine);
	in_use = td->users;
	engine_unlock(ctx->engine);
	if (in_use)
		return fail(EXPLAIN(EBUSY, "ibv_dealloc_td: a parent domain of the thread domain exists"));
	space_put(td, sizeof(*td));
	return 0;
}

struct ibv_pd *alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	/* The last one allows memory that a confidential guest shares with its host, which no device of ours needs. */
	const uint32_t known =
		IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | ALLOW_UNPROTECTED;
	struct abi_context *ctx = context_of(context);
	struct abi_pd *pd;

	if (!attr->pd || attr->pd->context != context || pd_of(attr->pd)->parent || attr->comp_mask & ~known)
		return fail_null(EXPLAIN(EINVAL,
					 "ibv_alloc_parent_domain: needs a protection domain of its context that "
					 "is no parent domain itself"));
	if ((attr->td && attr->td->context != context) ||
	    (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS && (!attr->alloc || !attr->free)))
		return fail_null(EINVAL);
	pd = space_get(sizeof(*pd));
	if (!pd)
		return fail_null(ENOMEM);
	pd->parent = pd_of(attr->pd);
	pd->core = pd->parent->core;
	pd->td = attr->td ? container_of(attr->td, struct abi_td, pub) : NULL;
	engine_lock(ctx->engine);
	pd->parent->users++;
	if (pd->td)
		pd->td->users++;
	publish(pd, context);
	engine_unlock(ctx->engine);
	return &pd->pub;
}
