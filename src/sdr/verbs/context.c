/* SPDX-License-Identifier: BSD-2-Clause */
/* A device, and for each worker the queues that it watches. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "sdr/verbs/objects.h"

static void *heap_get(void *ctx, size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);

	return p ? memset(p, 0, bytes) : NULL;
}

static void heap_put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

const struct alloc sdr_heap = {.get = heap_get, .put = heap_put};

uint64_t sdr_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int sdr_fail(int err)
{
	errno = err;
	return VERBENA_SDR_ERROR;
}

void *sdr_fail_null(int err)
{
	errno = err;
	return NULL;
}

void verbena_sdr_context_attr_init(struct verbena_sdr_context_attr *attr)
{
	*attr = (struct verbena_sdr_context_attr){
		.num_channels = 8,
		.log_max_qps = 4,
		.num_workers = 1,
		.port = 1,
	};
}

static bool attr_valid(const struct verbena_sdr_context_attr *a)
{
	bool workers =
		a->num_workers == VERBENA_SDR_NO_WORKERS || (a->num_workers >= 1 && a->num_workers <= a->num_channels);

	return a->num_channels >= 1 && a->num_channels <= SHAPE_CHANNELS_MAX && a->log_max_qps <= 16 && workers &&
	       a->port >= 1 && a->port <= UINT8_MAX && a->gid_index <= UINT8_MAX;
}

static struct ibv_context *device_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ibv = NULL;
	int err = ENODEV;

	if (!list)
		return NULL;
	for (size_t i = 0; list[i]; i++) {
		if (name && strcmp(name, ibv_get_device_name(list[i])))
			continue;
		errno = ENODEV;
		ibv = ibv_open_device(list[i]);
		err = errno;
		break;
	}
	ibv_free_device_list(list);
	return ibv ? ibv : sdr_fail_null(err);
}

/* ---- workers' queues */

static int post_data(struct sdr_worker *w)
{
	struct ibv_recv_wr *bad, wr = {0};

	for (int i = 0; i < RECV_DEPTH; i++) {
		if (ibv_post_srq_recv(w->data, &wr, &bad))
			return -ENOMEM;
	}
	return 0;
}

static int post_control(struct sdr_worker *w)
{
	for (uint32_t i = 0; i < CONTROL_DEPTH; i++) {
		if (control_repost(w, i))
			return -ENOMEM;
	}
	return 0;
}

static struct ibv_srq *srq_make(struct ibv_pd *pd, uint32_t depth)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = depth, .max_sge = 1}};

	return ibv_create_srq(pd, &attr);
}

static void queues_destroy(struct sdr_worker *w)
{
	if (w->control)
		ibv_destroy_srq(w->control);
	if (w->data)
		ibv_destroy_srq(w->data);
	if (w->control_mr)
		ibv_dereg_mr(w->control_mr);
	if (w->cq)
		ibv_destroy_cq(w->cq);
	if (w->channel)
		ibv_destroy_comp_channel(w->channel);
	if (w->wake_fd >= 0)
		close(w->wake_fd);
	free(w->control_memory);
}

static int queues_make(struct sdr_worker *w)
{
	struct verbena_sdr_context *ctx = w->ctx;
	const size_t bytes = (size_t)CONTROL_DEPTH * CONTROL_BYTES;

	w->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	w->control_memory = aligned_alloc(CONTROL_BYTES, bytes);
	w->channel = ibv_create_comp_channel(ctx->ibv);
	if (w->wake_fd < 0 || !w->control_memory || !w->channel)
		return -1;
	/* Every receive that is posted leads to one completion, and nothing else does. */
	w->cq = ibv_create_cq(ctx->ibv, RECV_DEPTH + CONTROL_DEPTH, w, w->channel, 0);
	w->control_mr = ibv_reg_mr(ctx->pd, w->control_memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	w->data = srq_make(ctx->pd, RECV_DEPTH);
	w->control = srq_make(ctx->pd, CONTROL_DEPTH);
	if (!w->cq || !w->control_mr || !w->data || !w->control)
		return -1;
	return post_data(w) || post_control(w) ? -1 : 0;
}

static void workers_free(struct verbena_sdr_context *ctx, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		queues_destroy(&ctx->workers[i]);
		pthread_mutex_destroy(&ctx->workers[i].gate);
	}
	free(ctx->workers);
}

static int workers_make(struct verbena_sdr_context *ctx)
{
	ctx->workers = calloc(ctx->worker_count, sizeof(*ctx->workers));
	if (!ctx->workers)
		return -1;
	for (uint32_t i = 0; i < ctx->worker_count; i++) {
		struct sdr_worker *w = &ctx->workers[i];
		int err;

		*w = (struct sdr_worker){.ctx = ctx, .index = i, .wake_fd = -1};
		pthread_mutex_init(&w->gate, NULL);
		if (queues_make(w)) {
			err = errno;
			workers_free(ctx, i + 1);
			errno = err;
			return -1;
		}
	}
	return 0;
}

/* ---- contexts */

/* The bytes of an address in a GID; an IPv4 address is mapped. */
static bool gid_read(const char *address, union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (inet_pton(AF_INET6, address, gid->raw) == 1)
		return true;
	memcpy(gid->raw, mapped, sizeof(mapped));
	return inet_pton(AF_INET, address, gid->raw + sizeof(mapped)) == 1;
}

/* The last one: an adapter lists an address first for RoCEv1, which no router carries, and then for RoCEv2. */
static void gid_choose(struct verbena_sdr_context *ctx, const char *address)
{
	union ibv_gid wanted, gid;

	if (!address || !gid_read(address, &wanted))
		return;
	for (int i = 0; i < ctx->port_attr.gid_tbl_len && i <= UINT8_MAX; i++) {
		if (!ibv_query_gid(ctx->ibv, ctx->port, i, &gid) && !memcmp(&gid, &wanted, sizeof(gid)))
			ctx->gid_index = (uint8_t)i;
	}
}

static int device_learn(struct verbena_sdr_context *ctx, const char *address)
{
	if (ibv_query_port(ctx->ibv, ctx->port, &ctx->port_attr)) {
		errno = EINVAL;
		return -1;
	}
	gid_choose(ctx, address);
	if (ibv_query_gid(ctx->ibv, ctx->port, ctx->gid_index, &ctx->gid)) {
		errno = EINVAL;
		return -1;
	}
	ctx->pd = ibv_alloc_pd(ctx->ibv);
	return ctx->pd ? 0 : -1;
}

static void context_free(struct verbena_sdr_context *ctx)
{
	int err = errno;

	events_close(ctx);
	if (ctx->pd)
		ibv_dealloc_pd(ctx->pd);
	if (ctx->ibv)
		ibv_close_device(ctx->ibv);
	pthread_mutex_destroy(&ctx->memory_lock);
	free(ctx->routes);
	free(ctx->qps);
	free(ctx->mrs);
	free(ctx);
	errno = err;
}

static struct verbena_sdr_context *context_alloc(const struct verbena_sdr_context_attr *attr)
{
	struct verbena_sdr_context *ctx = calloc(1, sizeof(*ctx));
	bool threads = attr->num_workers != VERBENA_SDR_NO_WORKERS;

	if (!ctx)
		return NULL;
	ctx->channels = attr->num_channels;
	ctx->worker_count = threads ? attr->num_workers : 1;
	ctx->threads = threads;
	ctx->qps_max = 1u << attr->log_max_qps;
	ctx->port = (uint8_t)attr->port;
	ctx->gid_index = (uint8_t)attr->gid_index;
	pthread_mutex_init(&ctx->memory_lock, NULL);
	ctx->qps = calloc(ctx->qps_max, sizeof(*ctx->qps));
	return ctx;
}

struct verbena_sdr_context *verbena_sdr_context_create(const char *device, const struct verbena_sdr_context_attr *attr)
{
	struct verbena_sdr_context_attr defaults;
	struct verbena_sdr_context *ctx;

	verbena_sdr_context_attr_init(&defaults);
	attr = attr ? attr : &defaults;
	if (!attr_valid(attr))
		return sdr_fail_null(EINVAL);
	ctx = context_alloc(attr);
	if (!ctx)
		return NULL;
	if (!ctx->qps || routes_reserve(ctx, 0))
		goto fail;
	ctx->ibv = device_open(device);
	if (!ctx->ibv || device_learn(ctx, attr->address) || workers_make(ctx))
		goto fail;
	if (!ctx->threads || !workers_start(ctx))
		return ctx;
	workers_free(ctx, ctx->worker_count);
fail:
	context_free(ctx);
	return NULL;
}

int verbena_sdr_context_destroy(struct verbena_sdr_context *ctx)
{
	bool used;

	if (!ctx)
		return sdr_fail(EINVAL);
	gates_close(ctx);
	used = ctx->qp_count || ctx->mr_count;
	gates_open(ctx);
	if (used)
		return sdr_fail(EBUSY);
	workers_stop(ctx);
	workers_free(ctx, ctx->worker_count);
	context_free(ctx);
	return VERBENA_SDR_SUCCESS;
}
