/* SPDX-License-Identifier: BSD-2-Clause */
/* Channels and their events. */
#include <errno.h>
#include <string.h>

#include "cm/state.h"

enum { STRANGER_LOOKS = 64 }; /* at requests that wait, for one to drop */

int cm_channel_create(struct cm *cm, void *owner, struct cm_channel **out)
{
	struct cm_channel *ch = pool_get(&cm->pool, sizeof(*ch));

	if (!ch)
		return -ENOMEM;
	*ch = (struct cm_channel){.cm = cm, .owner = owner};
	list_init(&ch->stirred);
	list_init(&ch->ids);
	list_init(&ch->events);
	list_append(&cm->channels, &ch->link);
	*out = ch;
	return 0;
}

static void destroy_ids(struct cm_channel *ch, uint64_t now_ns)
{
	while (!list_empty(&ch->ids))
		cm_id_destroy(container_of(ch->ids.next, struct cm_id, link), now_ns);
}

void cm_channel_destroy(struct cm_channel *ch, uint64_t now_ns)
{
	destroy_ids(ch, now_ns);
	list_remove(&ch->link);
	list_remove(&ch->stirred);
	pool_put(&ch->cm->pool, ch, sizeof(*ch));
}

void cm_hang_up(struct cm *cm, uint64_t now_ns)
{
	for (struct list *l = cm->channels.next; l != &cm->channels; l = l->next)
		destroy_ids(container_of(l, struct cm_channel, link), now_ns);
}

void *cm_channel_owner(const struct cm_channel *ch)
{
	return ch->owner;
}

size_t cm_channel_events(const struct cm_channel *ch)
{
	return ch->event_count;
}

uint64_t cm_channel_added(const struct cm_channel *ch)
{
	return ch->events_added;
}

static void stir(struct cm_channel *ch)
{
	if (list_empty(&ch->stirred))
		list_append(&ch->cm->stirred, &ch->stirred);
}

struct cm_channel *cm_next_stirred(struct cm *cm)
{
	struct cm_channel *ch;

	if (list_empty(&cm->stirred))
		return NULL;
	ch = container_of(cm->stirred.next, struct cm_channel, stirred);
	list_remove(&ch->stirred);
	return ch;
}

/* ---- in ------------------------------------------------------------------------------------------- */

static struct event *event_add(struct cm_id *id, enum cm_event_type type, const struct cm_param *param)
{
	struct event *e = pool_get(&id->cm->pool, sizeof(*e));

	if (!e)
		return NULL;
	*e = (struct event){
		.id = id,
		.event = {.type = type, .uid = id->uid, .number = id->number, .datagram = id->qp_type == QPT_UD}};
	e->event.answered = param;
	if (param)
		e->event.param = *param;
	list_append(&id->channel->events, &e->link);
	id->channel->event_count++;
	id->channel->events_added++;
	stir(id->channel);
	return e;
}

/*
 * Whether an id in its state still gets the event. A program gets the end of a connection once, and after that only the
 * event that its queue pair may be reused.
 */
static bool concerns(struct cm_id *id, enum cm_event_type type)
{
	switch (type) {
	case CM_ADDR_RESOLVED:
	case CM_ROUTE_RESOLVED: return true;
	case CM_ADDR_ERROR: return id->state != ID_DISCONNECTED;
	case CM_DEVICE_REMOVAL:
	case CM_ADDR_CHANGE: return true;
	case CM_TIMEWAIT_EXIT: return id->state == ID_DISCONNECTED;
	default: return id->state == ID_CONNECTING;
	}
}

void event_tell(struct cm_id *id, enum cm_event_type type, int status, const struct cm_param *param)
{
	struct event *e;

	if (!id || !concerns(id, type))
		return;
	if (type == CM_DISCONNECTED)
		id->state = ID_DISCONNECTED;
	if (!id->uid) /* no program has accepted it yet; accepting it will fail */
		return;
	e = event_add(id, type, param);
	if (e)
		e->event.status = status;
}

void event_tell_datagram(struct cm_id *id, const struct ah_attr *ah, const struct cm_param *param)
{
	struct event *e = id->uid && concerns(id, CM_ESTABLISHED) ? event_add(id, CM_ESTABLISHED, param) : NULL;

	if (e)
		e->event.ah = *ah;
}

/* Told in any state of the id, as its queue pair is in no conversation. Without memory it is lost. */
void event_tell_join(struct cm_join *j, const struct cm_event *what)
{
	struct event *e =
		j->id->channel->event_count < CM_EVENTS_MAX ? event_add(j->id, what->type, &what->param) : NULL;

	if (!e)
		return;
	e->join = j;
	e->event.uid = j->uid;
	e->event.number = j->number;
	e->event.status = what->status;
	e->event.ah = what->ah;
}

int cm_id_tell(struct cm_id *id, enum cm_event_type type, int32_t status, uint64_t arg)
{
	struct event *e = id->channel->event_count < CM_EVENTS_MAX ? event_add(id, type, NULL) : NULL;

	if (!e)
		return -ENOMEM;
	e->event.status = status;
	e->event.arg = arg;
	return 0;
}

/* The request no longer counts for its listener's backlog. */
static void unburden(struct event *e)
{
	if (!e->made)
		return;
	e->id->backlog++;
	e->made->request = NULL;
	limit_half_open_done(e->id->cm, e->place);
}

static void event_remove(struct event *e)
{
	struct cm_channel *ch = e->id->channel;

	list_remove(&e->link);
	ch->event_count--;
	stir(ch);
	unburden(e);
	pool_put(&ch->cm->pool, e, sizeof(*e));
}

/* Among the requests that have waited longest, the first one of an address that is not known. */
static struct event *stranger_of(const struct cm_id *listener)
{
	const struct list *head = &listener->channel->events, *l = head->next;

	for (int i = 0; l != head && i < STRANGER_LOOKS; l = l->next, i++) {
		struct event *e = container_of(l, struct event, link);

		if (e->id == listener && e->made && e->made->conn &&
		    known_find(listener->cm, id_gid(e->made, &e->made->remote)) < 0)
			return e;
	}
	return NULL;
}

/* A full backlog makes room for an address that is known: the request that goes comes again, if anybody sent it. */
static bool make_room(struct cm_id *listener, const struct cm_id *made)
{
	struct event *e = known_find(listener->cm, id_gid(made, &made->remote)) >= 0 ? stranger_of(listener) : NULL;
	struct cm_id *gone;

	if (!e)
		return false;
	gone = e->made;
	event_remove(e);
	conn_close(gone->conn);
	id_drop(gone);
	listener->cm->counters.requests_dropped++;
	return true;
}

static bool is_full(const struct cm_id *listener)
{
	return listener->backlog <= 0 || listener->channel->event_count >= CM_EVENTS_MAX;
}

int event_tell_request(struct cm_id *listener, struct cm_id *made, const struct cm_param *param)
{
	struct cm *cm = listener->cm;
	uint16_t place;
	struct event *e;

	if (is_full(listener)) {
		limit_reached(cm, listener->backlog <= 0 ? CM_LIMIT_BACKLOG : CM_LIMIT_EVENTS);
		if (!make_room(listener, made))
			return -EAGAIN;
	}
	if (cm->half_open_count >= CM_HALF_OPEN_MAX)
		make_room(listener, made);
	if (!limit_half_open(cm, id_gid(made, &made->remote), &place))
		return -EAGAIN;
	e = event_add(listener, CM_CONNECT_REQUEST, param);
	if (!e) {
		limit_half_open_done(cm, place);
		return -ENOMEM;
	}
	e->place = place;
	e->made = made;
	e->event.number = made->number;
	listener->backlog--;
	made->request = e;
	return 0;
}

/* ---- out ------------------------------------------------------------------------------------------ */

bool cm_channel_take_event(struct cm_channel *ch, struct cm_event *out)
{
	struct event *e;

	if (list_empty(&ch->events))
		return false;
	e = container_of(ch->events.next, struct event, link);
	*out = e->event;
	e->id->events_taken++;
	if (e->join)
		e->join->events_taken++;
	event_remove(e);
	return true;
}

static struct event *first_of(const struct cm_id *id)
{
	const struct list *head = &id->channel->events;

	for (struct list *l = head->next; l != head; l = l->next) {
		struct event *e = container_of(l, struct event, link);

		if (e->id == id)
			return e;
	}
	return NULL;
}

void event_forget_join(const struct cm_join *j)
{
	struct list *head = &j->id->channel->events, *next;

	for (struct list *l = head->next; l != head; l = next) {
		struct event *e = container_of(l, struct event, link);

		next = l->next;
		if (e->join == j)
			event_remove(e);
	}
}

void event_forget(struct cm_id *id, uint64_t now_ns)
{
	struct event *e;

	if (id->request)
		event_remove(id->request);
	while ((e = first_of(id))) {
		struct cm_id *made = e->made;

		event_remove(e);
		if (made)
			cm_id_destroy(made, now_ns);
	}
}

void event_move(struct cm_id *id, struct cm_channel *to)
{
	struct list *head = &id->channel->events, *next;

	for (struct list *l = head->next; l != head; l = next) {
		struct event *e = container_of(l, struct event, link);

		next = l->next;
		if (e->id != id)
			continue;
		list_remove(l);
		id->channel->event_count--;
		list_append(&to->events, l);
		to->event_count++;
		to->events_added++;
		if (e->made) {
			list_remove(&e->made->link);
			list_append(&to->ids, &e->made->link);
			e->made->channel = to;
		}
	}
	stir(id->channel);
	stir(to);
}
