/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions. Optional access bits are hints and are dropped; the bits of features that the nic
 * lacks are refused.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int access_clean(struct ibv_context *context, unsigned int *access)
{
	const struct profile *p = context_of(context)->profile;

	*access &= ~(unsigned int)ACCESS_IGNORED;
	if (*access & IBV_ACCESS_ON_DEMAND && !mem_survives_faults())
		return EXPLAIN(EOPNOTSUPP, "memory region: on-demand paging is not supported on this processor");
	if (*access & MR_FLUSH_PERSISTENT)
		return EXPLAIN(EOPNOTSUPP, "memory region: no memory is known to outlive a loss of power, so none is "
					   "flushed to persistence");
	if (*access & MR_FLUSH_GLOBAL && !has_flush(context))
		return EXPLAIN(EOPNOTSUPP, "memory region: iWARP has no FLUSH");
	if ((*access & IBV_ACCESS_ON_DEMAND && !profile_has(p, PROFILE_VERBS, PROFILE_ON_DEMAND)) ||
	    (*access & IBV_ACCESS_MW_BIND && !profile_has(p, PROFILE_VERBS, PROFILE_WINDOWS)))
		return EXPLAIN(p->refused, "memory region: the profile lacks what the access flags 0x%x are for",
			       *access);
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

/* What is behind a region of memory that is not the program's. Engine locked. */
static void backing_put(struct abi_mr *mr)
{
	if (mr->dm)
		mr->dm->users--;
	if (mr->map)
		space_unmap(mr->map, mr->map_bytes);
	mr->dm = NULL;
	mr->map = NULL;
}

/* Engine locked: the region is gone, and all its handles but this one stay, without one. */
static void region_is_gone(struct abi_mr *mr)
{
	backing_put(mr);
	mr->core = NULL;
	while (!list_empty(&mr->shared)) {
		struct abi_mr *other = container_of(mr->shared.next, struct abi_mr, shared);

		list_remove(&other->shared);
		backing_put(other);
		other->core = NULL;
	}
}

static void mr_reap(struct object *o)
{
	struct abi_mr *mr = container_of(o, struct abi_mr, object);

	if (mr->core && !mr->is_import) {
		nic_mr_unbind(context_of(mr->pub.context)->nic, mr->core);
		nic_mr_dereg(context_of(mr->pub.context)->nic, mr->core);
		region_is_gone(mr);
	}
	list_remove(&mr->shared);
}

static void mr_publish(struct abi_mr *mr)
{
	mr->pub.handle = mr->core->key;
	mr->pub.lkey = mr->core->key;
	mr->pub.rkey = mr->core->key;
}

/*
 * A region of those bytes. `with` has what is behind them, which the region takes when this succeeds; its address is the
 * program's to know only if nothing is.
 */
static struct ibv_mr *mr_make(struct ibv_pd *pd, struct mr_range range, unsigned int access, struct abi_mr with)
{
	struct abi_context *ctx = context_of(pd->context);
	struct abi_mr *mr = space_get(sizeof(*mr));
	int err;

	if (!mr)
		return fail_null(ENOMEM);
	*mr = with;
	list_init(&mr->shared);
	engine_lock(ctx->engine);
	err = room_check(ctx, PROFILE_MR, nic_counters(ctx->nic)->mrs, mr->is_nothing ? 0 : range.length);
	if (!err)
		err = -(mr->is_nothing ? nic_mr_reg_nothing(ctx->nic, pd_of(pd)->core, &mr->core)
				       : nic_mr_reg(ctx->nic, pd_of(pd)->core, range, access, &mr->core));
	if (!err) {
		object_add(ctx, &mr->object, mr_reap);
		mr_publish(mr);
		if (mr->dm)
			mr->dm->users++;
	}
	engine_unlock(ctx->engine);
	if (err) {
		space_put(mr, sizeof(*mr));
		return fail_null(err);
	}
	mr->pub.context = pd->context;
	mr->pub.pd = pd;
	mr->pub.length = range.length;
	return &mr->pub;
}

static struct ibv_mr *mr_reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct ibv_mr *mr;
	int err = pd ? access_clean(pd->context, &access) : EINVAL;

	if (!err)
		err = injected(pd->context, FAULT_CALL_reg_mr);
	if (!err)
		err = range_check(addr, length, iova, access);
	if (err)
		return fail_null(err);
	mr = mr_make(pd, (struct mr_range){addr, length, iova}, access, (struct abi_mr){0});
	if (mr)
		mr->addr = addr;
	return mr;
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

/* Device memory has no addresses but the offsets in its region. */
struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *pub, uint64_t offset, size_t length, unsigned int access)
{
	struct abi_dm *dm = container_of(pub, struct abi_dm, pub);
	int err = access_clean(pd->context, &access);

	if (!err && (pub->context != pd->context || !(access & IBV_ACCESS_ZERO_BASED) || access & IBV_ACCESS_ON_DEMAND))
		err = EXPLAIN(EINVAL, "ibv_reg_dm_mr: needs IBV_ACCESS_ZERO_BASED and device memory of its context");
	if (!err && (offset > dm->length || length > dm->length - offset))
		err = EXPLAIN(EINVAL, "ibv_reg_dm_mr: %zu bytes from %" PRIu64 " on, of %zu", length, offset,
			      dm->length);
	if (err)
		return fail_null(err);
	return mr_make(pd, (struct mr_range){dm->bytes + offset, length, 0}, access, (struct abi_mr){.dm = dm});
}

/* Its key is an L_Key alone. */
struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
	struct ibv_mr *mr = mr_make(pd, (struct mr_range){.length = SIZE_MAX}, 0, (struct abi_mr){.is_nothing = true});

	if (mr)
		mr->rkey = 0;
	return mr;
}

/*
 * Maps so many bytes from the file's first on. Which errno says that the file has none to be mapped is its driver's to
 * choose.
 */
static int file_map(int fd, size_t bytes, struct abi_mr *with)
{
	struct stat st;

	if (fcntl(fd, F_GETFD) < 0)
		return EBADF;
	if (!fstat(fd, &st) && st.st_size > 0 && (uint64_t)st.st_size < bytes)
		return EXPLAIN(EINVAL, "ibv_reg_dmabuf_mr: the file has %" PRIu64 " bytes, not %zu",
			       (uint64_t)st.st_size, bytes);
	with->map = space_map(fd, bytes);
	with->map_bytes = bytes;
	if (with->map)
		return 0;
	return EXPLAIN(
		errno == ENOMEM ? ENOMEM : EOPNOTSUPP,
		"ibv_reg_dmabuf_mr: the file cannot be mapped for reading and writing (%s), as memory of another device "
		"often cannot",
		strerror(errno));
}

/*
 * A dma-buf is mapped, which those can be whose memory is the host's. Programs ask with descriptor -1 whether there are
 * such regions at all, and then expect them of every device: EOPNOTSUPP.
 */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	const unsigned int allowed = MR_LOCAL_WRITE | MR_REMOTE_ACCESS;
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned int bits = (unsigned int)access;
	struct abi_mr with = {0};
	struct ibv_mr *mr;
	int err = access_clean(pd->context, &bits);

	if (fd < 0 || !context_has(pd->context, PROFILE_DMABUF))
		return fail_null(EOPNOTSUPP);
	if (!err && (!length || bits & ~allowed || length > SIZE_MAX - offset || (offset ^ iova) % page))
		err = EXPLAIN(EINVAL,
			      "ibv_reg_dmabuf_mr: offset 0x%" PRIx64 " and iova 0x%" PRIx64
			      " must have the same place in a page, and the access flags be those of the manual page",
			      offset, iova);
	if (!err)
		err = -mr_validate(NULL, length, iova, bits);
	if (!err)
		err = file_map(fd, offset + length, &with);
	if (err)
		return fail_null(err);
	mr = mr_make(pd, (struct mr_range){(uint8_t *)with.map + offset, length, iova}, bits, with);
	if (!mr)
		space_unmap(with.map, with.map_bytes);
	return mr;
}

/* struct ibv_mr_init_attr and its mask, of rdma-core 59 and later, as far as there is something for it here. */
struct mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask, iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah; /* a hint for caches */
};

enum { MASK_IOVA = 1 << 0, MASK_ADDR = 1 << 1, MASK_FD = 1 << 2, MASK_FD_OFFSET = 1 << 3, MASK_DMAH = 1 << 4 };

EXPORT struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct mr_init_attr *attr);

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct mr_init_attr *attr)
{
	const uint64_t file = MASK_FD | MASK_FD_OFFSET | MASK_IOVA, mask = attr->comp_mask & ~(uint64_t)MASK_DMAH;

	if (attr->comp_mask & MASK_DMAH && attr->access & IBV_ACCESS_ON_DEMAND)
		return fail_null(EXPLAIN(EOPNOTSUPP, "ibv_reg_mr_ex: a region on demand has no DMA handle"));
	if (mask & ~(file | MASK_ADDR))
		return fail_null(EOPNOTSUPP); /* memory that the device would have given */
	if (mask & MASK_FD)
		return mask == file ? ibv_reg_dmabuf_mr(pd, attr->fd_offset, attr->length, attr->iova, attr->fd,
							attr->access)
				    : fail_null(EINVAL);
	if (mask & MASK_FD_OFFSET || !(mask & MASK_ADDR))
		return fail_null(EINVAL);
	return mr_reg(pd, attr->addr, attr->length, mask & MASK_IOVA ? attr->iova : (uintptr_t)attr->addr,
		      (unsigned int)attr->access);
}

/*
 * A handle with hints where an adapter's data should go in the host's caches, of rdma-core 59 and later. The processor
 * copies the data here, which puts them into its own.
 */
struct dmah {
	struct ibv_context *context;
};

struct dmah_init_attr {
	uint32_t comp_mask;
	uint32_t cpu;
	uint8_t processing_hint, mem_type;
};

enum { DMAH_CPU = 1 << 0, DMAH_HINT = 1 << 1, DMAH_MEM_TYPE = 1 << 2, HINT_MAX = 3, MEM_TYPES = 2 };

EXPORT struct dmah *ibv_alloc_dmah(struct ibv_context *context, const struct dmah_init_attr *attr);
EXPORT int ibv_dealloc_dmah(struct dmah *dmah);

/* Hints that make no sense are refused as by Linux: a processor that the thread may not use, with EPERM. */
static int dmah_check(const struct dmah_init_attr *a)
{
	cpu_set_t cpus;

	if ((a->comp_mask & DMAH_HINT && a->processing_hint > HINT_MAX) ||
	    (a->comp_mask & DMAH_MEM_TYPE && a->mem_type >= MEM_TYPES))
		return EXPLAIN(
			EINVAL,
			"ibv_alloc_dmah: processing hint %u, type of memory %u: 0 to %d, and 0 to %d, are allowed",
			a->processing_hint, a->mem_type, HINT_MAX, MEM_TYPES - 1);
	if (a->comp_mask & DMAH_CPU && !sched_getaffinity(0, sizeof(cpus), &cpus) &&
	    (a->cpu >= CPU_SETSIZE || !CPU_ISSET(a->cpu, &cpus)))
		return EXPLAIN(EPERM, "ibv_alloc_dmah: processor %u is none that this thread may use", a->cpu);
	return 0;
}

struct dmah *ibv_alloc_dmah(struct ibv_context *context, const struct dmah_init_attr *attr)
{
	int err = dmah_check(attr);
	struct dmah *dmah = err ? NULL : space_get(sizeof(*dmah));

	if (err)
		return fail_null(err);
	if (!dmah)
		return fail_null(ENOMEM);
	dmah->context = context;
	return dmah;
}

int ibv_dealloc_dmah(struct dmah *dmah)
{
	space_put(dmah, sizeof(*dmah));
	return 0;
}

static int rereg_check(struct abi_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, unsigned int *access)
{
	unsigned int effective;
	int err;

	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		return EINVAL;
	if (!context_has(mr->pub.context, PROFILE_REREG))
		return context_of(mr->pub.context)->profile->refused;
	if (mr->is_import || !list_empty(&mr->shared))
		return EXPLAIN(EOPNOTSUPP, "ibv_rereg_mr: a region that was imported stays what it is");
	if (mr->dm || mr->map || mr->is_nothing)
		return EXPLAIN(EOPNOTSUPP,
			       "ibv_rereg_mr: a region of device memory, of a file or of nothing stays what it is");
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
	err = moves && length > mr->core->length ? room_check_longer(ctx, length - mr->core->length) : 0;
	if (!err)
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
	err = mr->core ? -nic_mr_dereg(ctx->nic, mr->core) : ENOENT;
	if (!err) {
		list_remove(&mr->object.link);
		region_is_gone(mr);
	}
	engine_unlock(ctx->engine);
	if (err)
		return fail(EXPLAIN(err, err == ENOENT ? "ibv_dereg_mr: the region was deregistered by another handle"
						       : "ibv_dereg_mr: a memory window is bound to the region"));
	space_put(mr, sizeof(*mr));
	return 0;
}

static bool is_region(const struct object *o, uint32_t handle)
{
	const struct abi_mr *mr = container_of(o, struct abi_mr, object);

	return o->reap == mr_reap && mr->core && mr->pub.handle == handle;
}

/* Engine locked. */
static void take_over(struct abi_mr *mr, struct abi_mr *other)
{
	mr->core = other->core;
	mr->is_import = true;
	mr->pub.handle = other->pub.handle;
	mr->pub.lkey = other->pub.lkey;
	mr->pub.rkey = other->pub.rkey;
	mr->pub.length = other->pub.length;
	list_append(&other->shared, &mr->shared);
}

/* Where its memory is, the program knows: addr is NULL, as the manual page has it. */
struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct abi_context *ctx = context_of(pd->context);
	struct abi_mr *mr = space_get(sizeof(*mr));
	struct object *o;

	if (!mr)
		return fail_null(ENOMEM);
	mr->pub.context = pd->context;
	mr->pub.pd = pd;
	list_init(&mr->shared);
	engine_lock(ctx->engine);
	o = object_import(pd->context, is_region, handle);
	if (o && container_of(o, struct abi_mr, object)->core->pd != pd_of(pd)->core) {
		o = NULL;
		errno = EINVAL;
	}
	if (o) {
		take_over(mr, container_of(o, struct abi_mr, object));
		object_add(ctx, &mr->object, mr_reap);
	}
	engine_unlock(ctx->engine);
	if (o)
		return &mr->pub;
	space_put(mr, sizeof(*mr));
	return NULL;
}

void ibv_unimport_mr(struct ibv_mr *pub)
{
	struct abi_mr *mr = mr_of(pub);
	struct abi_context *ctx = context_of(pub->context);

	if (mr->core && !mr->is_import)
		return;
	engine_lock(ctx->engine);
	list_remove(&mr->shared);
	list_remove(&mr->object.link);
	engine_unlock(ctx->engine);
	space_put(mr, sizeof(*mr));
}
