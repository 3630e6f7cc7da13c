/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC domains. A domain belongs to this process: one that is opened by a file is the same for all who open it by that
 * file here, and other processes that do have domains of their own (docs/verbs.md 3.7).
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "verbs/explain.h"
#include "verbs/objects.h"

static_assert(sizeof(struct ibv_xrcd) == 8, "ABI");
static_assert(sizeof(struct ibv_xrcd_init_attr) == 12, "ABI");

/* The engine's lock. */
struct abi_domain {
	struct list link; /* in domains */
	struct nic *nic;
	struct xrcd *core;
	uint32_t handles;
	bool has_file;
	dev_t dev;
	ino_t ino;
};

static struct list domains = {&domains, &domains};
static pthread_mutex_t domains_lock = PTHREAD_MUTEX_INITIALIZER; /* inside the engine's: each device has an engine */

struct xrcd *xrcd_core(struct ibv_xrcd *x)
{
	return xrcd_of(x)->domain->core;
}

static struct abi_domain *domain_of_file(const struct nic *nic, const struct stat *st)
{
	for (struct list *l = domains.next; l != &domains; l = l->next) {
		struct abi_domain *d = container_of(l, struct abi_domain, link);

		if (d->nic == nic && d->has_file && d->dev == st->st_dev && d->ino == st->st_ino)
			return d;
	}
	return NULL;
}

/* 0 or an errno value. */
static int domain_make(struct nic *nic, const struct stat *st, struct abi_domain **out)
{
	struct abi_domain *d = space_get(sizeof(*d));

	if (!d || nic_xrcd_alloc(nic, &d->core)) {
		space_put(d, sizeof(*d));
		return ENOMEM;
	}
	d->nic = nic;
	if (st) {
		d->has_file = true;
		d->dev = st->st_dev;
		d->ino = st->st_ino;
	}
	list_append(&domains, &d->link);
	*out = d;
	return 0;
}

/* Linux's errors: EAGAIN, there is none and O_CREAT is not given; EINVAL, there is one and O_EXCL is. */
static int domain_open(struct nic *nic, const struct stat *st, int oflags, struct abi_domain **out)
{
	struct abi_domain *d = st ? domain_of_file(nic, st) : NULL;
	int err = 0;

	if (d && oflags & O_EXCL)
		return EINVAL;
	if (!d && st && !(oflags & O_CREAT))
		return EAGAIN;
	if (!d)
		err = domain_make(nic, st, &d);
	if (err)
		return err;
	d->handles++;
	*out = d;
	return 0;
}

/* 0, or EBUSY: the last handle of a domain with queue pairs or SRQs. */
static int domain_close(struct abi_domain *d)
{
	if (d->handles == 1) {
		if (nic_xrcd_free(d->nic, d->core))
			return EBUSY;
		list_remove(&d->link);
		space_put(d, sizeof(*d));
	} else {
		d->handles--;
	}
	return 0;
}

static void xrcd_reap(struct object *o)
{
	pthread_mutex_lock(&domains_lock);
	domain_close(container_of(o, struct abi_xrcd, object)->domain);
	pthread_mutex_unlock(&domains_lock);
}

struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct abi_context *ctx = context_of(context);
	struct abi_xrcd *x;
	struct stat st;
	int err;

	if (context->device->transport_type == IBV_TRANSPORT_IWARP)
		return fail_null(EXPLAIN(EOPNOTSUPP, "ibv_open_xrcd: iWARP has no XRC"));
	if (attr->comp_mask != needed)
		return fail_null(EINVAL);
	if (attr->fd != -1 && fstat(attr->fd, &st))
		return NULL;
	x = space_get(sizeof(*x));
	if (!x)
		return fail_null(ENOMEM);
	x->pub.context = context;
	engine_lock(ctx->engine);
	pthread_mutex_lock(&domains_lock);
	err = domain_open(ctx->nic, attr->fd != -1 ? &st : NULL, attr->oflags, &x->domain);
	pthread_mutex_unlock(&domains_lock);
	if (!err)
		object_add(ctx, &x->object, xrcd_reap);
	engine_unlock(ctx->engine);
	if (!err)
		return &x->pub;
	space_put(x, sizeof(*x));
	return fail_null(err);
}

int close_xrcd(struct ibv_xrcd *pub)
{
	struct abi_context *ctx = context_of(pub->context);
	struct abi_xrcd *x = xrcd_of(pub);
	int err;

	engine_lock(ctx->engine);
	pthread_mutex_lock(&domains_lock);
	err = domain_close(x->domain);
	pthread_mutex_unlock(&domains_lock);
	if (!err)
		list_remove(&x->object.link);
	engine_unlock(ctx->engine);
	if (err)
		return fail(EXPLAIN(err, "ibv_close_xrcd: queue pairs or SRQs of the domain exist"));
	space_put(x, sizeof(*x));
	return 0;
}
