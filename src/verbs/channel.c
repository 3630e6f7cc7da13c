/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels. A CQ is in its channel's queue once, with the number of its events, so
 * delivering one needs no memory. ibv_destroy_cq() withdraws undelivered events and waits for the
 * acknowledgement of those that were delivered.
 */
#include "verbs/objects.h"

static_assert(sizeof(struct ibv_comp_channel) == 16, "ABI");
static_assert(offsetof(struct ibv_comp_channel, fd) == 8, "ABI");

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	int err = injected(context, FAULT_CALL_create_comp_channel);
	struct abi_channel *ch;

	if (err)
		return fail_null(err);
	ch = space_get(sizeof(*ch));
	if (!ch)
		return fail_null(ENOMEM);
	err = event_fd_init(&ch->events);
	if (err) {
		space_put(ch, sizeof(*ch));
		return fail_null(err);
	}
	ch->pub.context = context;
	ch->pub.fd = ch->events.fd;
	return &ch->pub;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct abi_channel *ch = channel_of(channel);
	int users;

	pthread_mutex_lock(&ch->events.lock);
	users = ch->pub.refcnt;
	pthread_mutex_unlock(&ch->events.lock);
	if (users)
		return fail(EBUSY);
	event_fd_fini(&ch->events);
	space_put(ch, sizeof(*ch));
	return 0;
}

void channel_cq_event(void *cq_owner)
{
	struct abi_cq *cq = cq_owner;
	struct abi_channel *ch;

	if (!cq || !cq->pub.channel)
		return;
	ch = channel_of(cq->pub.channel);
	pthread_mutex_lock(&ch->events.lock);
	if (cq->events_pending++ == 0)
		list_append(&ch->events.pending, &cq->event);
	event_fd_added(&ch->events);
	pthread_mutex_unlock(&ch->events.lock);
}

void channel_attach(struct abi_cq *cq, struct ibv_comp_channel *channel)
{
	list_init(&cq->event);
	cq->pub.channel = channel;
	if (!channel)
		return;
	pthread_mutex_lock(&channel_of(channel)->events.lock);
	channel->refcnt++;
	pthread_mutex_unlock(&channel_of(channel)->events.lock);
}

void channel_detach(struct abi_cq *cq)
{
	struct abi_channel *ch;

	if (!cq->pub.channel)
		return;
	ch = channel_of(cq->pub.channel);
	pthread_mutex_lock(&ch->events.lock);
	list_remove(&cq->event);
	event_fd_withdrawn(&ch->events, cq->events_pending);
	cq->events_pending = 0;
	ch->pub.refcnt--;
	pthread_mutex_unlock(&ch->events.lock);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct abi_channel *ch = channel_of(channel);
	struct event_fd *q = &ch->events;
	struct abi_cq *first = NULL;

	while (!first) {
		if (event_fd_is_empty(q))
			engine_hand_over(context_of(ch->pub.context)->engine);
		if (event_fd_take(q))
			return -1;
		if (!list_empty(&q->pending)) {
			first = container_of(q->pending.next, struct abi_cq, event);
			list_remove(&first->event);
			if (--first->events_pending > 0)
				list_append(&q->pending, &first->event);
			first->comp_delivered++;
		}
		pthread_mutex_unlock(&q->lock);
	}
	*cq = &first->pub;
	*cq_context = first->pub.cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
