/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions. Optional access bits are hints and are dropped; the bits of features that the nic
 * lacks are refused.
 */
#include "verbs/explain.h"
#include "verbs/objects.h"
#include "verbs/pinned.h"

static_assert(sizeof(struct ibv_mr) == 48, "ABI");
static_assert(offsetof(struct ibv_mr, lkey) == 36, "ABI");
static_assert(offsetof(struct ibv_mr, rkey) == 40, "ABI");
static_assert((int)IBV_ACCESS_LOCAL_WRITE == MR_LOCAL_WRITE && (int)IBV_ACCESS_REMOTE_WRITE == MR_REMOTE_WRITE &&
		      (int)IBV_ACCESS_REMOTE_READ == MR_REMOTE_READ &&
		      (int)IBV_ACCESS_REMOTE_ATOMIC == MR_REMOTE_ATOMIC && (int)IBV_ACCESS_MW_BIND == MR_MW_BIND &&
		      (int)IBV_ACCESS_ZERO_BASED == MR_ZERO_BASED && (int)IBV_ACCESS_ON_DEMAND == MR_ON_DEMAND,
	      "the numbers are one");

/* Bits that only describe the mapping, and the range of bits that may be ignored by definition. */
#define ACCESS_IGNORED (IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_HUGETLB)

/* Whether a device has FLUSH (IBTA A19). */
static bool has_flush(const struct ibv_context *context)
{
	return context->device->transport_type != IBV_TRANSPORT_IWARP;
}

static int access_clean(const struct ibv_context *context, unsigned int *access)
{
	*access &= ~(unsigned int)ACCESS_IGNORED;
	if (*access & IBV_ACCESS_ON_DEMAND && !mem_survives_faults())
		return EXPLAIN(EOPNOTSUPP, "memory region: on-demand paging is not supported on this processor");
	if (*access & MR_FLUSH_PERSISTENT)
		return EXPLAIN(EOPNOTSUPP, "memory region: no memory is known to outlive a loss of power, so none is "
					   "flushed to persistence");
	if (*access & MR_FLUSH_GLOBAL && !has_flush(context))
		return EXPLAIN(EOPNOTSUPP, "memory region: iWARP has no FLUSH");
	if (*access & ~(unsigned int)MR_ACCESS_KNOWN)
		return EXPLAIN(EINVAL, "memory region: access flags 0x%x are not supported",
			       *access & ~(unsigned int)MR_ACCESS_KNOWN);
	return 0;
}

/* Whether such a region is allowed, and its pages exist, unless they may come and go. */
static int range_check(const void *addr, size_t length, uint64_t iova, unsigned int access)
{
	const unsigned int remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	int err = -mr_validate(addr, length, iova, access);

	if (err && access & remote && !(access & IBV_ACCESS_LOCAL_WRITE))
		return EXPLAIN(err, "memory region: remote write or atomic access needs IBV_ACCESS_LOCAL_WRITE "
				    "too");
	if (err || mr_is_whole(addr, length, access))
		return err;
	if (space_has(addr, length))
		return EXPLAIN(EFAULT, "memory region: of the %zu bytes at %p some are the device's own", length, addr);
	if (access & IBV_ACCESS_ON_DEMAND)
		return 0;
	err = pages_check(addr, length, access & IBV_ACCESS_LOCAL_WRITE);
	if (err == EFAULT)
		return EXPLAIN(err, "memory region: not all of the %zu bytes at %p are mapped%s", length, addr,
			       access & IBV_ACCESS_LOCAL_WRITE ? " and writable" : "");
	return err;
}

static void mr_reap(struct object *o)
{
	struct abi_mr *mr = container_of(o, struct abi_mr, object);

	nic_mr_unbind(context_of(mr->pub.context)->nic, mr->core);
	nic_mr_dereg(context_of(mr->pub.context)->nic, mr->core);
}

static void mr_publish(struct abi_mr *mr)
{
	mr->pub.handle = mr->core->key;
	mr->pub.lkey = mr->core->key;
	mr->pub.rkey = mr->core->key;
}

static struct ibv_mr *mr_reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct abi_context *ctx;
	struct abi_mr *mr;
	int err = pd ? access_clean(pd->context, &access) : EINVAL;

	if (!err)
		err = injected(pd->context, FAULT_CALL_reg_mr);
	if (!err)
		err = range_check(addr, length, iova, access);
	if (err)
		return fail_null(err);
	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	mr = space_get(sizeof(*mr));
	if (!mr)
		return fail_null(ENOMEM);
	ctx = context_of(pd->context);
	engine_lock(ctx->engine);
	err = -nic_mr_reg(ctx->nic, pd_of(pd)->core, (struct mr_range){addr, length, iova}, access, &mr->core);
	if (!err) {
		object_add(ctx, &mr->object, mr_reap);
		mr_publish(mr);
	}
	engine_unlock(ctx->engine);
	if (err) {
		space_put(mr, sizeof(*mr));
		return fail_null(err);
	}
	mr->pub.context = pd->context;
	mr->pub.pd = pd;
	mr->pub.addr = addr;
	mr->pub.length = length;
	return &mr->pub;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return mr_reg(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return mr_reg(pd, addr, length, iova, (unsigned int)access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	return mr_reg(pd, addr, length, iova, access);
}

/* struct ibv_mr_init_attr and its mask, of rdma-core 59 and later, as far as there is something for it here. */
struct mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask, iova;
	void *addr;
};

enum { MASK_IOVA = 1 << 0, MASK_ADDR = 1 << 1 };

EXPORT struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct mr_init_attr *attr);

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct mr_init_attr *attr)
{
	if (attr->comp_mask & ~(uint64_t)(MASK_IOVA | MASK_ADDR))
		return fail_null(EOPNOTSUPP); /* memory of other devices, and hints for caches */
	if (!(attr->comp_mask & MASK_ADDR))
		return fail_null(EINVAL);
	return mr_reg(pd, attr->addr, attr->length, attr->comp_mask & MASK_IOVA ? attr->iova : (uintptr_t)attr->addr,
		      (unsigned int)attr->access);
}

static int rereg_check(struct abi_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, unsigned int *access)
{
	unsigned int effective;
	int err;

	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		return EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_PD && (!pd || pd->context != mr->pub.context))
		return EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!addr || !length))
		return EINVAL;
	if (!(flags & IBV_REREG_MR_CHANGE_ACCESS) && *access)
		return EINVAL;
	err = access_clean(mr->pub.context, access);
	if (err)
		return err;
	effective = flags & IBV_REREG_MR_CHANGE_ACCESS ? *access : mr->core->access;
	if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
		addr = mr->pub.addr;
		length = mr->pub.length;
	}
	return range_check(addr, length, (uintptr_t)addr, effective);
}

/* The checks come first and nothing changes when they fail, so the old region stays valid. */
int ibv_rereg_mr(struct ibv_mr *pub, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct abi_mr *mr = mr_of(pub);
	struct abi_context *ctx = context_of(pub->context);
	unsigned int wanted = (unsigned int)access;
	bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	int err = rereg_check(mr, flags, pd, addr, length, &wanted);

	if (err) {
		errno = err;
		return IBV_REREG_MR_ERR_INPUT;
	}
	engine_lock(ctx->engine);
	err = -nic_mr_rereg(ctx->nic, mr->core, flags & IBV_REREG_MR_CHANGE_PD ? pd_of(pd)->core : NULL,
			    moves ? addr : NULL, moves ? length : 0,
			    flags & IBV_REREG_MR_CHANGE_ACCESS ? (int64_t)wanted : -1);
	if (!err)
		mr_publish(mr);
	engine_unlock(ctx->engine);
	if (err) {
		errno = err;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		pub->pd = pd;
	if (moves) {
		pub->addr = addr;
		pub->length = length;
	}
	return 0;
}

int ibv_dereg_mr(struct ibv_mr *pub)
{
	struct abi_mr *mr = mr_of(pub);
	struct abi_context *ctx = context_of(pub->context);
	int err = injected(pub->context, FAULT_CALL_dereg_mr);

	if (err)
		return fail(err);
	engine_lock(ctx->engine);
	err = -nic_mr_dereg(ctx->nic, mr->core);
	if (!err)
		list_remove(&mr->object.link);
	engine_unlock(ctx->engine);
	if (err)
		return fail(EXPLAIN(err, "ibv_dereg_mr: a memory window is bound to the region"));
	space_put(mr, sizeof(*mr));
	return 0;
}
