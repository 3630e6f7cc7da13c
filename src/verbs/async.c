/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous events: queued at the context that owns the object, port events at every context.
 * The destruction of a QP, CQ or SRQ waits until the program has acknowledged the events that were
 * delivered for it.
 */
#include "verbs/explain.h"
#include "verbs/objects.h"

struct queued_event {
	struct list link;
	struct ibv_async_event event;
	const void *object;  /* NULL: the port */
	uint32_t *delivered; /* the object's count, or NULL */
};

static_assert(sizeof(struct ibv_async_event) == 16, "ABI");

/* Without memory the event is lost; there is no way to report it. */
static void enqueue(struct abi_context *ctx, const struct queued_event *from)
{
	struct queued_event *e = space_get(sizeof(*e));

	if (!e)
		return;
	*e = *from;
	pthread_mutex_lock(&ctx->async.lock);
	list_append(&ctx->async.pending, &e->link);
	event_fd_added(&ctx->async);
	pthread_mutex_unlock(&ctx->async.lock);
}

struct port_event {
	const struct engine *engine;
	struct queued_event event;
};

static void enqueue_at(struct abi_context *ctx, void *arg)
{
	const struct port_event *p = arg;

	if (ctx->engine == p->engine)
		enqueue(ctx, &p->event);
}

void port_event(struct engine *engine, enum event_type type)
{
	struct port_event p = {.engine = engine,
			       .event.event = {.element.port_num = PORT, .event_type = (enum ibv_event_type)type}};

	contexts_each(enqueue_at, &p);
}

/*
 * Many programs that use XRC look at no events, and wait for good when a peer counts on a domain that several processes
 * share.
 */
static void explain_access(const struct abi_qp *qp)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (qp->pub.qp_type == IBV_QPT_XRC_RECV && !context_of(qp->pub.context)->quiet)
		explain_unasked(
			&told,
			"XRC_RECV queue pair 0x%06x was ended by a request for an SRQ that its domain does not have in "
			"this process, or for memory that is not open to it; an XRC domain is not shared between "
			"processes, also where they open it by the same file",
			qp->pub.qp_num);
}

void async_event(const struct async_event *ev)
{
	/* The numbers are the same, see queue/event.h. */
	struct queued_event e = {.event.event_type = (enum ibv_event_type)ev->type, .object = ev->owner};
	struct abi_cq *cq = ev->owner;
	struct abi_qp *qp = ev->owner;
	struct abi_srq *srq = ev->owner;

	switch (ev->type) {
	case EVENT_CQ_ERR:
		e.event.element.cq = &cq->pub;
		e.delivered = &cq->async_delivered;
		enqueue(context_of(cq->pub.context), &e);
		return;
	case EVENT_SRQ_ERR:
	case EVENT_SRQ_LIMIT_REACHED:
		e.event.element.srq = &srq->pub;
		e.delivered = &srq->async_delivered;
		enqueue(context_of(srq->pub.context), &e);
		return;
	case EVENT_QP_ACCESS_ERR:
		explain_access(qp);
		/* fallthrough */
	case EVENT_QP_FATAL:
	case EVENT_QP_REQ_ERR:
	case EVENT_COMM_EST:
	case EVENT_SQ_DRAINED:
	case EVENT_QP_LAST_WQE_REACHED:
		e.event.element.qp = &qp->pub;
		e.delivered = &qp->async_delivered;
		enqueue(context_of(qp->pub.context), &e);
		return;
	case EVENT_DEVICE_FATAL:
	case EVENT_PORT_ACTIVE:
	case EVENT_PORT_ERR:
	case EVENT_GID_CHANGE: return; /* of no object: port_event() */
	}
}

static void remove_matching(struct abi_context *ctx, const void *object, bool all)
{
	struct event_fd *q = &ctx->async;
	uint32_t count = 0;

	pthread_mutex_lock(&q->lock);
	for (struct list *l = q->pending.next, *next; l != &q->pending; l = next) {
		struct queued_event *e = container_of(l, struct queued_event, link);

		next = l->next;
		if (!all && e->object != object)
			continue;
		list_remove(l);
		space_put(e, sizeof(*e));
		count++;
	}
	event_fd_withdrawn(q, count);
	pthread_mutex_unlock(&q->lock);
}

void async_withdraw(struct abi_context *ctx, const void *object)
{
	remove_matching(ctx, object, false);
}

void async_flush(struct abi_context *ctx)
{
	remove_matching(ctx, NULL, true);
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct abi_context *ctx = context_of(context);
	struct event_fd *q = &ctx->async;
	struct queued_event *first = NULL;

	while (!first) {
		if (event_fd_is_empty(q))
			engine_hand_over(ctx->engine);
		if (event_fd_take(q))
			return -1;
		if (!list_empty(&q->pending)) {
			first = container_of(q->pending.next, struct queued_event, link);
			list_remove(&first->link);
			if (first->delivered)
				++*first->delivered;
		}
		pthread_mutex_unlock(&q->lock);
	}
	*event = first->event;
	space_put(first, sizeof(*first));
	return 0;
}

static void unlock(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

void event_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	pthread_cleanup_push(unlock, mutex);
	pthread_cond_wait(cond, mutex);
	pthread_cleanup_pop(0);
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mutex);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR: acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed); return;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED: acknowledge(&srq->mutex, &srq->cond, &srq->events_completed); return;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED: acknowledge(&qp->mutex, &qp->cond, &qp->events_completed); return;
	default: return;
	}
}
