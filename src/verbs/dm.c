/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory: bytes of the device's own that a program reaches by copies, and by the keys of regions in them. An
 * adapter's is near its wire; ours is memory like any other, for programs that ask for some.
 */
#include "verbs/explain.h"
#include "verbs/objects.h"

static_assert(sizeof(struct ibv_dm) == 32, "ABI");
static_assert(sizeof(struct ibv_alloc_dm_attr) == 16, "ABI");

/* Copies go by words, as over a bus. */
enum { WORD_BYTES = 4, ALIGN_LOG_MAX = 12, SPACE_ALIGN_LOG = 6 };

/* Of each device, what is allocated in this process, and the device's engine lock; and the last handle. */
static size_t used[ENGINE_DEVICES_MAX];
static _Atomic uint32_t serial;

static struct abi_dm *dm_of(struct ibv_dm *dm)
{
	return container_of(dm, struct abi_dm, pub);
}

/* 0 or an errno value. */
static int range_check(const struct abi_dm *dm, uint64_t offset, size_t length)
{
	if (offset > dm->length || length > dm->length - offset)
		return EFAULT;
	return offset % WORD_BYTES || length % WORD_BYTES ? EINVAL : 0;
}

static int memcpy_to_dm(struct ibv_dm *pub, uint64_t offset, const void *from, size_t length)
{
	struct abi_dm *dm = dm_of(pub);
	int err = range_check(dm, offset, length);

	if (err)
		return fail(err);
	memcpy(dm->bytes + offset, from, length);
	return 0;
}

static int memcpy_from_dm(void *to, struct ibv_dm *pub, uint64_t offset, size_t length)
{
	struct abi_dm *dm = dm_of(pub);
	int err = range_check(dm, offset, length);

	if (err)
		return fail(err);
	memcpy(to, dm->bytes + offset, length);
	return 0;
}

/* Engine locked. The handle goes, and with the last one the memory. */
static void bytes_free(struct abi_dm *dm)
{
	if (!list_empty(&dm->shared)) {
		list_remove(&dm->shared);
		return;
	}
	used[device_index(dm->pub.context->device)] -= dm->length;
	space_put(dm->room, dm->room_bytes);
	dm->room = NULL;
}

static void dm_reap(struct object *o)
{
	bytes_free(container_of(o, struct abi_dm, object));
}

static struct abi_dm *dm_make(struct ibv_context *context, const struct ibv_alloc_dm_attr *attr)
{
	size_t align = (size_t)1 << attr->log_align_req;
	struct abi_dm *dm = space_get(sizeof(*dm));

	if (!dm)
		return NULL;
	dm->length = attr->length;
	dm->room_bytes = attr->length + (attr->log_align_req > SPACE_ALIGN_LOG ? align : 0);
	dm->room = space_get(dm->room_bytes);
	if (!dm->room) {
		space_put(dm, sizeof(*dm));
		return NULL;
	}
	dm->bytes = (uint8_t *)(((uintptr_t)dm->room + align - 1) & ~(uintptr_t)(align - 1));
	dm->pub.context = context;
	list_init(&dm->shared);
	dm->pub.memcpy_to_dm = memcpy_to_dm;
	dm->pub.memcpy_from_dm = memcpy_from_dm;
	return dm;
}

struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct abi_context *ctx = context_of(context);
	size_t *total = &used[device_index(context->device)];
	struct abi_dm *dm;
	bool fits;

	if (attr->comp_mask)
		return fail_null(EOPNOTSUPP);
	if (!attr->length || attr->length > DM_BYTES_MAX || attr->log_align_req > ALIGN_LOG_MAX)
		return fail_null(
			EXPLAIN(EINVAL,
				"ibv_alloc_dm: %zu bytes aligned to 2^%u; 1 to %d (max_dm_size), aligned to at most "
				"2^%d, are allowed",
				attr->length, attr->log_align_req, DM_BYTES_MAX, ALIGN_LOG_MAX));
	dm = dm_make(context, attr);
	if (!dm)
		return fail_null(ENOMEM);
	engine_lock(ctx->engine);
	fits = attr->length <= DM_BYTES_MAX - *total;
	*total += attr->length;
	dm->pub.handle = ++serial;
	if (fits)
		object_add(ctx, &dm->object, dm_reap);
	else
		bytes_free(dm);
	engine_unlock(ctx->engine);
	if (fits)
		return &dm->pub;
	space_put(dm, sizeof(*dm));
	return fail_null(
		EXPLAIN(ENOMEM, "ibv_alloc_dm: of the %d bytes of device memory not so many are left", DM_BYTES_MAX));
}

int free_dm(struct ibv_dm *pub)
{
	struct abi_dm *dm = dm_of(pub);
	struct abi_context *ctx = context_of(pub->context);
	bool in_use;

	engine_lock(ctx->engine);
	in_use = dm->users;
	if (!in_use) {
		list_remove(&dm->object.link);
		bytes_free(dm);
	}
	engine_unlock(ctx->engine);
	if (in_use)
		return fail(EXPLAIN(EBUSY, "ibv_free_dm: a memory region of the device memory exists"));
	space_put(dm, sizeof(*dm));
	return 0;
}

static bool is_memory(const struct object *o, uint32_t handle)
{
	return o->reap == dm_reap && container_of(o, struct abi_dm, object)->pub.handle == handle;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	struct abi_context *ctx = context_of(context);
	struct abi_dm *dm = space_get(sizeof(*dm)), *other;
	struct object *o;

	if (!dm)
		return fail_null(ENOMEM);
	engine_lock(ctx->engine);
	o = object_import(context, is_memory, handle);
	if (o) {
		other = container_of(o, struct abi_dm, object);
		*dm = *other;
		dm->pub.context = context;
		dm->users = 0;
		list_init(&dm->shared);
		list_append(&other->shared, &dm->shared);
		object_add(ctx, &dm->object, dm_reap);
	}
	engine_unlock(ctx->engine);
	if (o)
		return &dm->pub;
	space_put(dm, sizeof(*dm));
	return NULL;
}

/* While a region was made with this handle, it stays as long as its context. */
void ibv_unimport_dm(struct ibv_dm *dm)
{
	free_dm(dm);
}
