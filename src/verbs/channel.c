/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels. A CQ is in its channel's queue once, with the number of its events, so
 * delivering one needs no memory. ibv_destroy_cq() withdraws undelivered events and waits for the
 * acknowledgement of those that were delivered.
 */
#include <fcntl.h>
#include <sched.h>

#include "verbs/objects.h"

static_assert(sizeof(struct ibv_comp_channel) == 16, "ABI");
static_assert(offsetof(struct ibv_comp_channel, fd) == 8, "ABI");

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct abi_channel *ch = calloc(1, sizeof(*ch));
	int err;

	if (!ch)
		return fail_null(ENOMEM);
	err = event_fd_init(&ch->events);
	if (err) {
		free(ch);
		return fail_null(err);
	}
	list_init(&ch->cqs);
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
	free(ch);
	return 0;
}

/* Event lock held. */
static void add_event(struct abi_channel *ch, struct abi_cq *cq)
{
	if (cq->events_pending++ == 0)
		list_append(&ch->events.pending, &cq->event);
	event_fd_added(&ch->events);
}

void channel_cq_event(void *cq_owner)
{
	struct abi_cq *cq = cq_owner;
	struct abi_channel *ch;

	if (!cq || !cq->pub.channel)
		return;
	ch = channel_of(cq->pub.channel);
	pthread_mutex_lock(&ch->events.lock);
	add_event(ch, cq);
	pthread_mutex_unlock(&ch->events.lock);
}

/*
 * A program that takes one event, asks for the next and polls only some of its completions would
 * now sleep although it has completions. Common adapters raise an event in this case (perftest's -e
 * -b relies on it), and the manual allows events without a new completion. A program that does not
 * block needs no such event.
 */
static void wake_for_missed(struct abi_channel *ch)
{
	int flags = fcntl(ch->pub.fd, F_GETFL);

	if (flags < 0 || flags & O_NONBLOCK)
		return;
	pthread_mutex_lock(&ch->events.lock);
	for (struct list *n = ch->cqs.next; n != &ch->cqs; n = n->next) {
		struct abi_cq *cq = container_of(n, struct abi_cq, of_channel);

		while (!cq_settled(cq->core))
			sched_yield();
		if (cq_disarm_if_waiting(cq->core))
			add_event(ch, cq);
	}
	pthread_mutex_unlock(&ch->events.lock);
}

void channel_attach(struct abi_cq *cq, struct ibv_comp_channel *channel)
{
	list_init(&cq->event);
	list_init(&cq->of_channel);
	cq->pub.channel = channel;
	if (!channel)
		return;
	pthread_mutex_lock(&channel_of(channel)->events.lock);
	list_append(&channel_of(channel)->cqs, &cq->of_channel);
	channel->refcnt++;
	pthread_mutex_unlock(&channel_of(channel)->events.lock);
}

void channel_watch(struct abi_cq *cq, bool watch)
{
	struct abi_channel *ch;

	if (!cq->pub.channel)
		return;
	ch = channel_of(cq->pub.channel);
	pthread_mutex_lock(&ch->events.lock);
	if (watch)
		list_append(&ch->cqs, &cq->of_channel);
	else
		list_remove(&cq->of_channel);
	pthread_mutex_unlock(&ch->events.lock);
}

void channel_detach(struct abi_cq *cq)
{
	struct abi_channel *ch;

	if (!cq->pub.channel)
		return;
	ch = channel_of(cq->pub.channel);
	pthread_mutex_lock(&ch->events.lock);
	list_remove(&cq->event);
	list_remove(&cq->of_channel);
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
		if (event_fd_is_empty(q)) {
			engine_hand_over(context_of(ch->pub.context)->engine);
			wake_for_missed(ch);
		}
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
