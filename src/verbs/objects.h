/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects behind the pointers that programs hold: each begins with the public struct, as large
 * as its newest release has it, and ends with what we keep for it.
 *
 * Locks, in the order in which they may be taken:
 *
 *     SQ, RQ, SRQ and CQ locks of the program's threads (objects locked between two calls included)
 *     the engine lock
 *     a channel's and a context's event lock
 *
 * A program may hold a CQ (ibv_start_poll) or an SQ (ibv_wr_start) while it calls us again, so a
 * thread that has the engine lock only tries to take one of those; see quiesce() in qp.c. A CQ that it holds itself it
 * does not take: cq_is_in_batch().
 *
 * Private to src/verbs and src/rdmacm.
 */
#pragma once

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "engine/engine.h"
#include "engine/profile.h"
#include "nic/nic.h"
#include "space/space.h"
#include "verbs/abi.h"
#include "verbs/spin.h"

/* What release 65 puts before and into objects; older releases use a part of it. */
enum { CONTEXT_FRONT_BYTES = 368, QP_EX_BYTES = 360, DEVICE_TAIL_BYTES = 256 };

/* What stands behind a mutex in a public struct is further back where that is longer than the 40 bytes of x86-64. */
enum { ABI_MUTEX_MORE = sizeof(pthread_mutex_t) - 40 };

enum { PORT = 1, PORT_COUNT = 1, COMP_VECTORS = 1 };

/* A link in the list of objects that a context owns, in order of creation. Engine lock. */
struct object {
	struct list link;
	void (*reap)(struct object *); /* removes it from the nic; engine locked, pollers gone */
};

/* A queue of events behind a descriptor that is readable while events are in it. */
struct event_fd {
	pthread_mutex_t lock;
	struct list pending;
	atomic_uint count;
	int fd;
};

struct abi_context {
	uint8_t front[CONTEXT_FRONT_BYTES - offsetof(struct verbs_context, context)];
	struct verbs_context v;

	struct engine *engine;
	struct nic *nic;
	const struct profile *profile; /* of the device that ours is like */
	struct list objects;           /* engine lock */
	struct list link;              /* of all contexts; contexts_lock */
	dev_t dev;                     /* the file behind cmd_fd, by which copies of the descriptor are known */
	ino_t ino;
	struct event_fd async;
	bool quiet; /* VERBENA_QUIET when it was opened */
};

struct abi_pd {
	struct ibv_pd pub;
	struct object object;
	struct pd *core;       /* a parent domain's is that of its protection domain: keys and checks see one */
	struct abi_pd *parent; /* of a parent domain, the protection domain that it was made of; NULL: it is none */
	struct abi_td *td;     /* of a parent domain, or NULL */
	uint32_t users;        /* its parent domains; of one, queue pairs and SRQs. Engine lock */
	struct list shared;    /* with handles of other contexts (ibv_import_pd); engine lock */
};

/* A promise that one thread uses what is made with it. Locks that nobody contends cost nothing, so all are kept. */
struct abi_td {
	struct ibv_td pub;
	uint32_t users; /* parent domains; engine lock */
};

/* Memory of the device's: ours, which programs reach by these verbs and by keys alone. */
struct abi_dm {
	struct ibv_dm pub;
	struct object object;
	uint8_t *bytes;
	size_t length;
	void *room; /* what bytes is a part of */
	size_t room_bytes;
	uint32_t users; /* regions; engine lock */
	struct list
		shared; /* with handles of other contexts (ibv_import_dm), which have the same memory; engine lock */
};

struct abi_mr {
	struct ibv_mr pub;
	struct object object;
	struct mr *core;    /* NULL: the region is gone, and this a handle that was imported */
	struct list shared; /* with handles of other contexts (ibv_import_mr); engine lock */
	bool is_import;
	/* Of memory that is not the program's, whose region stays what it is: */
	struct abi_dm *dm; /* or NULL */
	void *map;         /* of a file, or NULL */
	size_t map_bytes;
	bool is_nothing;
};

struct abi_mw {
	struct ibv_mw pub;
	struct object object;
	struct mw *core;
	uint32_t handle;
	uint32_t index; /* of type 2: the bits of its R_Keys that never change */
	enum ibv_mw_type type;
};

struct abi_ah {
	struct ibv_ah pub;
	struct object object;
	struct flow flow;
};

struct abi_channel {
	struct ibv_comp_channel pub;
	struct event_fd events; /* of abi_cq.event */
};

struct abi_cq {
	union {
		struct ibv_cq pub;
		struct ibv_cq_ex ex;
	};
	struct object object;
	struct engine *engine;
	struct cq *core;
	struct spin poll_lock;
	struct cqe current; /* for the readers of cq_ex.c; poll_lock */
	_Atomic(pthread_t)
		batch_of; /* the thread that holds poll_lock from ibv_start_poll() to ibv_end_poll(); 0: none */

	struct list event;        /* in the channel's queue while events_pending > 0 */
	uint32_t events_pending;  /* channel's event lock */
	uint32_t comp_delivered;  /* channel's event lock */
	uint32_t async_delivered; /* context's event lock */
};

/*
 * Whether the caller is between ibv_start_poll() and ibv_end_poll() of that CQ. It holds off other pollers then, and
 * its batch reads the ring anew at each completion, so verbs that change the ring need no lock.
 */
static inline bool cq_is_in_batch(const struct abi_cq *cq)
{
	return atomic_load_explicit(&cq->batch_of, memory_order_relaxed) == pthread_self();
}

struct abi_srq {
	struct ibv_srq pub;
	struct object object;
	struct srq *core;
	struct spin post_lock;
	uint32_t async_delivered; /* context's event lock */
};

/* The chain that ibv_wr_start() opened; sq_lock. */
struct wr_builder {
	struct send_wqe *wqe; /* the request being described; NULL after an error */
	uint32_t count;
	int err;
	bool needs_address; /* UD, and no address was given yet; XRC, and no SRQ was */
	bool lost;          /* sq_lock was not to be had: spin_lock() */
};

/* One of the program's handles of an XRC domain; those of the same file share the domain. */
struct abi_xrcd {
	struct ibv_xrcd pub;
	struct object object;
	struct abi_domain *domain;
};

struct abi_qp {
	union {
		struct ibv_qp pub;
		struct ibv_qp_ex ex;
		uint8_t room[QP_EX_BYTES];
	};
	struct object object;
	struct engine *engine;
	struct qp *core;
	struct sq *sq;
	struct rq *rq; /* NULL with an SRQ */
	struct spin sq_lock;
	struct spin rq_lock;
	uint32_t ops; /* a mask of the operations that it does, by enum wr_opcode */
	bool sig_all;
	bool builds;        /* was created with send_ops_flags */
	bool off_host;      /* of what it sends to groups this host gets no copies */
	struct list shared; /* with other handles of the same XRC_RECV QP (ibv_open_qp); engine lock */
	struct wr_builder builder;
	uint32_t async_delivered; /* context's event lock */
	uint32_t number;          /* of the device's, in the order of creation, from 1 on */
};

static inline struct abi_context *context_of(struct ibv_context *c)
{
	return container_of(c, struct abi_context, v.context);
}

static inline struct abi_pd *pd_of(struct ibv_pd *pd)
{
	return container_of(pd, struct abi_pd, pub);
}

/* Whether both are the same to keys and address handles. */
static inline bool pd_is_same(struct ibv_pd *a, struct ibv_pd *b)
{
	return a == b || (a && b && pd_of(a)->core == pd_of(b)->core);
}

static inline struct abi_mr *mr_of(struct ibv_mr *mr)
{
	return container_of(mr, struct abi_mr, pub);
}

static inline struct abi_ah *ah_of(struct ibv_ah *ah)
{
	return container_of(ah, struct abi_ah, pub);
}

static inline struct abi_channel *channel_of(struct ibv_comp_channel *channel)
{
	return container_of(channel, struct abi_channel, pub);
}

static inline struct abi_cq *cq_of(struct ibv_cq *cq)
{
	return container_of(cq, struct abi_cq, pub);
}

static inline struct abi_srq *srq_of(struct ibv_srq *srq)
{
	return container_of(srq, struct abi_srq, pub);
}

static inline struct abi_xrcd *xrcd_of(struct ibv_xrcd *x)
{
	return container_of(x, struct abi_xrcd, pub);
}

static inline struct abi_qp *qp_of(struct ibv_qp *qp)
{
	return container_of(qp, struct abi_qp, pub);
}

/* How verbs fail: errno is set, and the value returned as well, or NULL, or -1. */
static inline int fail(int err)
{
	errno = err;
	return err;
}

static inline void *fail_null(int err)
{
	errno = err;
	return NULL;
}

static inline int fail_minus_one(int err)
{
	errno = err;
	return -1;
}

/* Whether the device has such verbs. */
static inline bool context_has(struct ibv_context *c, enum profile_verb verb)
{
	return profile_has(context_of(c)->profile, PROFILE_VERBS, verb);
}

static inline uint32_t context_max(struct ibv_context *c, enum profile_limit limit)
{
	return context_of(c)->profile->max[limit];
}

/* Engine locked: 0, or the errno value of a device that has no room for one more; `bytes` are a region's. room.c. */
int room_check(const struct abi_context *ctx, enum profile_limit limit, uint64_t have, uint64_t bytes);
/* Likewise, of a region that becomes so much longer. */
int room_check_longer(const struct abi_context *ctx, uint64_t bytes);

static inline void object_add(struct abi_context *ctx, struct object *o, void (*reap)(struct object *))
{
	o->reap = reap;
	list_append(&ctx->objects, &o->link);
}

/* device.c */
struct ibv_device *device_get(unsigned device); /* NULL: there are not so many */
int device_index(const struct ibv_device *);    /* -1: it is none of ours */

/* context.c */
/* The engine of the device with that index, started if need be; NULL and errno, and why is explained. */
struct engine *device_engine(unsigned index);
/* Runs f for every open context, with the list of contexts locked. */
void contexts_each(void (*f)(struct abi_context *, void *arg), void *arg);
/*
 * Engine locked: the newest object with that handle of any context whose descriptor is a copy of the context's. `is_it`
 * says whether an object is of the kind that is looked for, and has the handle. NULL and errno: there is none.
 */
struct object *object_import(struct ibv_context *, bool (*is_it)(const struct object *, uint32_t handle),
			     uint32_t handle);

/* query.c: the port's path MTU, 256 to 4096. */
uint32_t port_mtu_bytes(struct abi_context *);
enum ibv_mtu mtu_from_bytes(uint32_t bytes);
uint32_t mtu_to_bytes(enum ibv_mtu); /* 0: no such MTU */
/* As ibv_query_device_ex(3), ibv_query_port(3) and ibv_query_rt_values_ex(3). */
int query_device_ex(struct ibv_context *, const struct ibv_query_device_ex_input *, struct ibv_device_attr_ex *,
		    size_t size);
int query_port(struct ibv_context *, uint8_t port, struct ibv_port_attr *, size_t size);
int query_rt_values(struct ibv_context *, struct ibv_values_ex *);

/* event_fd.c */
int event_fd_init(struct event_fd *); /* 0, or an errno value */
void event_fd_fini(struct event_fd *);
/* Locked: one more event, or `count` fewer, is in the queue; the list is the caller's to change. */
void event_fd_added(struct event_fd *);
void event_fd_withdrawn(struct event_fd *, uint32_t count);
/*
 * Waits for an event, or fails at once if the descriptor is O_NONBLOCK: 0 with the queue locked and
 * a token used up, or -1 and errno. The list may be empty all the same: unlock and call again.
 */
int event_fd_take(struct event_fd *);
bool event_fd_is_empty(struct event_fd *);

/* channel.c */
void channel_cq_event(void *cq_owner); /* engine_sink.cq_event; the engine need not be locked */
void channel_attach(struct abi_cq *, struct ibv_comp_channel *);
/* Withdraws the CQ's undelivered events; no new ones may come any more. */
void channel_detach(struct abi_cq *);

/* injected.c: faults on command */
/* The errno with which a call of a verb is to fail; 0: it is not. */
static inline int injected(struct ibv_context *context, enum fault_call call)
{
	return engine_has_faults() ? engine_fault_call(context_of(context)->engine, call) : 0;
}
void each_qp(struct engine *); /* engine_sink.each_qp */

/* async.c */
void async_event(const struct async_event *);      /* engine_sink.async_event */
void port_event(struct engine *, enum event_type); /* engine_sink.port_event */
/* Withdraws the object's undelivered events; no new ones may come any more. */
void async_withdraw(struct abi_context *, const void *object);
void async_flush(struct abi_context *);
/* As pthread_cond_wait(), but a thread that is cancelled in it does not end with the mutex. */
void event_wait(pthread_cond_t *, pthread_mutex_t *);

/* tree_follow.c */
void tree_follow(void);             /* from now on, if there is a tree: before the first engine starts */
void port_changed(struct engine *); /* engine_sink.port_changed */

/* cq.c */
struct abi_cq *cq_create(struct ibv_context *, uint32_t cqe, void *cq_context, struct ibv_comp_channel *,
			 uint32_t comp_vector);
int poll_cq(struct ibv_cq *, int count, struct ibv_wc *);
int req_notify_cq(struct ibv_cq *, int solicited_only);
/* cq_ex.c */
struct ibv_cq_ex *create_cq_ex(struct ibv_context *, struct ibv_cq_init_attr_ex *);

/* mw.c */
struct ibv_mw *alloc_mw(struct ibv_pd *, enum ibv_mw_type);
int dealloc_mw(struct ibv_mw *);
int bind_mw(struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *);

/* ah.c */
void ah_attr_from_verbs(struct ah_attr *, const struct ibv_ah_attr *);
void ah_attr_to_verbs(struct ibv_ah_attr *, const struct ah_attr *);

/* qp.c */
struct abi_qp *qp_of_object(struct object *); /* NULL: it is no QP */
struct ibv_qp *create_qp_ex(struct ibv_context *, struct ibv_qp_init_attr_ex *);
struct ibv_qp *open_qp(struct ibv_context *, struct ibv_qp_open_attr *);
/* post.c */
int post_send(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **bad);
int post_send_simulated(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **bad);
int post_recv(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **bad);
int post_srq_recv(struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **bad);
/* post_ex.c: fills the builder's functions; false when an operation asked for does not exist. */
bool post_ex_init(struct abi_qp *, uint64_t send_ops_flags);

/* memory_faults.c: from now on copies from and to unmapped memory fail, and do not end the process. */
void memory_faults_claim(void);
/* As memcpy(). False: some of the memory is not there. */
bool memory_copy(void *to, const void *from, size_t len);

/* mr.c */
struct ibv_mr *reg_dm_mr(struct ibv_pd *, struct ibv_dm *, uint64_t offset, size_t length, unsigned int access);
struct ibv_mr *alloc_null_mr(struct ibv_pd *);

/* dm.c */
enum { DM_BYTES_MAX = 4 << 20 };
/* As ibv_alloc_dm(3). */
struct ibv_dm *alloc_dm(struct ibv_context *, struct ibv_alloc_dm_attr *);
int free_dm(struct ibv_dm *);

/* pd.c */
struct ibv_td *alloc_td(struct ibv_context *, struct ibv_td_init_attr *);
int dealloc_td(struct ibv_td *);
struct ibv_pd *alloc_parent_domain(struct ibv_context *, struct ibv_parent_domain_init_attr *);
/* Engine locked: an object that the domain may not go before, is made or destroyed. NULL: it has none. */
void pd_hold(struct ibv_pd *);
void pd_let_go(struct ibv_pd *);

/* advise.c */
int advise_mr(struct ibv_pd *, enum ib_uverbs_advise_mr_advice, uint32_t flags, struct ibv_sge *, uint32_t count);

/* xrc.c */
struct ibv_xrcd *open_xrcd(struct ibv_context *, struct ibv_xrcd_init_attr *);
int close_xrcd(struct ibv_xrcd *);
struct xrcd *xrcd_core(struct ibv_xrcd *);

/* srq.c */
struct ibv_srq *create_srq_ex(struct ibv_context *, struct ibv_srq_init_attr_ex *);
int get_srq_num(struct ibv_srq *, uint32_t *num);
