/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening and closing a device. Every open is a context of its own; all of one device share its
 * engine, which the first one starts. Closing a context removes the objects that the program left
 * from the nic, newest first, as the kernel does when the descriptor is closed; the structs stay,
 * because the program may still read them.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs/explain.h"
#include "verbs/objects.h"

/* Each field keeps its distance to the context in every release: the struct grows at its front. */
#define DISTANCE(field) ((long)offsetof(struct verbs_context, field) - (long)offsetof(struct verbs_context, context))
static_assert(sizeof(struct ibv_context) == 328 + ABI_MUTEX_MORE, "ABI");
static_assert(offsetof(struct ibv_context, ops) == 8, "ABI");
static_assert(offsetof(struct ibv_context, cmd_fd) == 264, "ABI");
static_assert(offsetof(struct ibv_context, async_fd) == 268, "ABI");
static_assert(offsetof(struct ibv_context, num_comp_vectors) == 272, "ABI");
static_assert(offsetof(struct ibv_context, mutex) == 280, "ABI");
static_assert(offsetof(struct ibv_context, abi_compat) == 320 + ABI_MUTEX_MORE, "ABI");
static_assert(sizeof(struct ibv_context_ops) == 256, "ABI");
static_assert(offsetof(struct ibv_context_ops, alloc_mw) == 56, "ABI");
static_assert(offsetof(struct ibv_context_ops, bind_mw) == 64, "ABI");
static_assert(offsetof(struct ibv_context_ops, dealloc_mw) == 72, "ABI");
static_assert(offsetof(struct ibv_context_ops, poll_cq) == 88, "ABI");
static_assert(offsetof(struct ibv_context_ops, req_notify_cq) == 96, "ABI");
static_assert(offsetof(struct ibv_context_ops, post_srq_recv) == 160, "ABI");
static_assert(offsetof(struct ibv_context_ops, post_send) == 200, "ABI");
static_assert(offsetof(struct ibv_context_ops, post_recv) == 208, "ABI");
static_assert(DISTANCE(sz) == -8, "ABI");
static_assert(DISTANCE(open_qp) == -64, "ABI");
static_assert(DISTANCE(close_xrcd) == -24, "ABI");
static_assert(DISTANCE(open_xrcd) == -32, "ABI");
static_assert(DISTANCE(create_srq_ex) == -40, "ABI");
static_assert(DISTANCE(get_srq_num) == -48, "ABI");
static_assert(DISTANCE(create_qp_ex) == -56, "ABI");
static_assert(DISTANCE(query_device_ex) == -104, "ABI");
static_assert(DISTANCE(create_cq_ex) == -120, "ABI");
static_assert(DISTANCE(query_rt_values) == -128, "ABI");
static_assert(DISTANCE(alloc_td) == -192, "ABI");
static_assert(DISTANCE(dealloc_td) == -200, "ABI");
static_assert(DISTANCE(alloc_parent_domain) == -208, "ABI");
static_assert(DISTANCE(free_dm) == -248, "ABI");
static_assert(DISTANCE(alloc_dm) == -256, "ABI");
static_assert(DISTANCE(reg_dm_mr) == -264, "ABI");
static_assert(DISTANCE(alloc_null_mr) == -304, "ABI");
static_assert(DISTANCE(advise_mr) == -312, "ABI");
static_assert(DISTANCE(query_port) == -320, "ABI");
static_assert(offsetof(struct verbs_context, context) <= CONTEXT_FRONT_BYTES, "ABI");
static_assert(offsetof(struct abi_context, v.context) == CONTEXT_FRONT_BYTES, "ABI");

static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list contexts = {&contexts, &contexts};

static const struct engine_sink sink = {
	.cq_event = channel_cq_event,
	.async_event = async_event,
	.port_event = port_event,
	.each_qp = each_qp,
	.port_changed = port_changed,
};

void contexts_each(void (*f)(struct abi_context *, void *arg), void *arg)
{
	pthread_mutex_lock(&contexts_lock);
	for (struct list *l = contexts.next; l != &contexts; l = l->next)
		f(container_of(l, struct abi_context, link), arg);
	pthread_mutex_unlock(&contexts_lock);
}

/*
 * Nothing is ever sent through this descriptor, but some programs fcntl() or dup() it. In the kernel's case it is a
 * character device; a socket is a file of its own, too, so that its copies can be known, and needs no /dev.
 */
static int cmd_fd_open(void)
{
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* What the profile lacks is a null pointer, as in a driver that does not have it. */
static void profile_apply(struct abi_context *ctx)
{
#define OP(verb, name)                                     \
	{                                                  \
		verb, offsetof(struct verbs_context, name) \
	}
	static const struct {
		enum profile_verb verb;
		size_t at;
	} ops[] = {
		OP(PROFILE_EXTENDED, query_device_ex),    OP(PROFILE_EXTENDED, query_rt_values),
		OP(PROFILE_EXTENDED, create_cq_ex),       OP(PROFILE_EXTENDED, create_qp_ex),
		OP(PROFILE_EXTENDED, create_srq_ex),      OP(PROFILE_HAS_SRQ, create_srq_ex),
		OP(PROFILE_ON_DEMAND, advise_mr),         OP(PROFILE_NULL_REGIONS, alloc_null_mr),
		OP(PROFILE_DEVICE_MEMORY, alloc_dm),      OP(PROFILE_DOMAINS, alloc_td),
		OP(PROFILE_DOMAINS, alloc_parent_domain),
	};
#undef OP

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (!profile_has(ctx->profile, PROFILE_VERBS, ops[i].verb))
			memset((char *)&ctx->v + ops[i].at, 0, sizeof(void (*)(void)));
	}
	if (!profile_has(ctx->profile, PROFILE_QP_TYPES, PROFILE_XRC))
		ctx->v.open_xrcd = NULL;
}

static void context_fill(struct abi_context *ctx)
{
	struct ibv_context *c = &ctx->v.context;

	ctx->v.sz = CONTEXT_FRONT_BYTES + sizeof(struct ibv_context);
	ctx->v.query_port = query_port;
	ctx->v.query_device_ex = query_device_ex;
	ctx->v.query_rt_values = query_rt_values;
	ctx->v.create_cq_ex = create_cq_ex;
	ctx->v.create_qp_ex = create_qp_ex;
	ctx->v.create_srq_ex = create_srq_ex;
	ctx->v.get_srq_num = get_srq_num;
	ctx->v.open_xrcd = open_xrcd;
	ctx->v.close_xrcd = close_xrcd;
	ctx->v.open_qp = open_qp;
	ctx->v.advise_mr = advise_mr;
	ctx->v.alloc_null_mr = alloc_null_mr;
	ctx->v.alloc_dm = alloc_dm;
	ctx->v.free_dm = free_dm;
	ctx->v.reg_dm_mr = reg_dm_mr;
	ctx->v.alloc_td = alloc_td;
	ctx->v.dealloc_td = dealloc_td;
	ctx->v.alloc_parent_domain = alloc_parent_domain;

	profile_apply(ctx);

	c->ops.alloc_mw = context_has(c, PROFILE_WINDOWS) ? alloc_mw : NULL;
	c->ops.bind_mw = bind_mw;
	c->ops.dealloc_mw = dealloc_mw;
	c->ops.poll_cq = poll_cq;
	c->ops.req_notify_cq = req_notify_cq;
	c->ops.post_send = engine_is_simulated(ctx->engine) ? post_send_simulated : post_send;
	c->ops.post_recv = post_recv;
	c->ops.post_srq_recv = post_srq_recv;
	c->async_fd = ctx->async.fd;
	c->num_comp_vectors = COMP_VECTORS;
	c->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&c->mutex, NULL);
}

static void explain_empty_port(struct engine *engine)
{
	struct engine_port port;

	engine_lock(engine);
	port = engine_port(engine);
	engine_unlock(engine);
	if (!port.enabled)
		EXPLAIN(0, "no interface of the port's is up and has an address: the port is down until one comes");
}

struct engine *device_engine(unsigned index)
{
	static atomic_bool opened[ENGINE_DEVICES_MAX];
	char why[512] = "the engine did not start";
	struct engine *engine;

	memory_faults_claim();
	tree_follow();
	errno = 0;
	engine = engine_get(index, &sink, why, sizeof(why));
	if (!engine)
		return fail_null(EXPLAIN(errno ? errno : EIO, "%s", why));
	if (!atomic_exchange(&opened[index], true)) {
		port_changed(engine); /* since the tree was made */
		explain_empty_port(engine);
	}
	return engine;
}

/* Takes the descriptor, when it succeeds. */
static struct ibv_context *context_make(struct ibv_device *device, struct engine *engine, int cmd_fd)
{
	struct abi_context *ctx = space_get(sizeof(*ctx));
	struct stat file;
	int err;

	if (!ctx)
		return fail_null(ENOMEM);
	ctx->engine = engine;
	ctx->nic = engine_nic(engine);
	ctx->profile = engine_profile(engine);
	ctx->v.context.device = device;
	ctx->quiet = explain_is_quiet();
	list_init(&ctx->objects);
	ctx->v.context.cmd_fd = cmd_fd;
	err = fstat(cmd_fd, &file) ? errno : event_fd_init(&ctx->async);
	if (err) {
		space_put(ctx, sizeof(*ctx));
		return fail_null(err);
	}
	ctx->dev = file.st_dev;
	ctx->ino = file.st_ino;
	context_fill(ctx);
	pthread_mutex_lock(&contexts_lock);
	list_append(&contexts, &ctx->link);
	pthread_mutex_unlock(&contexts_lock);
	return &ctx->v.context;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	int index = device_index(device), cmd_fd;
	struct ibv_context *context;
	struct engine *engine;

	if (index < 0)
		return fail_null(ENODEV);
	engine = device_engine((unsigned)index);
	cmd_fd = engine ? cmd_fd_open() : -1;
	if (cmd_fd < 0)
		return NULL;
	context = context_make(device, engine, cmd_fd);
	if (!context)
		close(cmd_fd);
	return context;
}

/* ---- contexts that share objects ---- */

struct copy {
	struct stat file;
	int fd;
	const struct abi_context *of; /* NULL: the descriptor is of no open context */
	bool is_its;                  /* it is a context's own, and no copy */
};

static void find_original(struct abi_context *ctx, void *arg)
{
	struct copy *copy = arg;

	if (ctx->dev != copy->file.st_dev || ctx->ino != copy->file.st_ino || engine_is_lost(ctx->engine))
		return;
	copy->of = ctx;
	copy->is_its |= ctx->v.context.cmd_fd == copy->fd;
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct copy copy = {.fd = cmd_fd};

	if (fstat(cmd_fd, &copy.file))
		return NULL;
	contexts_each(find_original, &copy);
	if (!copy.of)
		return fail_null(EXPLAIN(EOPNOTSUPP,
					 "ibv_import_device: descriptor %d is of no open context of this process, and "
					 "what another process has cannot be imported",
					 cmd_fd));
	if (copy.is_its)
		return fail_null(
			EXPLAIN(EINVAL, "ibv_import_device: descriptor %d is a context's own; dup() it first", cmd_fd));
	if (!profile_has(copy.of->profile, PROFILE_VERBS, PROFILE_IMPORT))
		return fail_null(copy.of->profile->refused);
	return context_make(copy.of->v.context.device, copy.of->engine, cmd_fd);
}

struct search {
	const struct abi_context *from;
	bool (*is_it)(const struct object *, uint32_t handle);
	uint32_t handle;
	struct object *found;
};

static void search_context(struct abi_context *ctx, void *arg)
{
	struct search *s = arg;

	if (ctx->dev != s->from->dev || ctx->ino != s->from->ino)
		return;
	for (struct list *l = ctx->objects.next; l != &ctx->objects; l = l->next) {
		struct object *o = container_of(l, struct object, link);

		if (s->is_it(o, s->handle))
			s->found = o;
	}
}

struct object *object_import(struct ibv_context *context, bool (*is_it)(const struct object *, uint32_t handle),
			     uint32_t handle)
{
	struct search s = {.from = context_of(context), .is_it = is_it, .handle = handle};

	contexts_each(search_context, &s);
	if (!s.found)
		errno = ENOENT;
	return s.found;
}

int ibv_close_device(struct ibv_context *context)
{
	struct abi_context *ctx = context_of(context);

	engine_lock(ctx->engine);
	while (!list_empty(&ctx->objects)) {
		struct list *newest = ctx->objects.prev;
		struct object *o = container_of(newest, struct object, link);

		list_remove(newest);
		o->reap(o);
	}
	engine_unlock(ctx->engine);

	pthread_mutex_lock(&contexts_lock);
	list_remove(&ctx->link);
	pthread_mutex_unlock(&contexts_lock);
	async_flush(ctx);
	event_fd_fini(&ctx->async);
	close(context->cmd_fd);
	pthread_mutex_destroy(&context->mutex);
	space_put(ctx, sizeof(*ctx));
	return 0;
}
