/* SPDX-License-Identifier: BSD-2-Clause */
/* Items stay where they were added, so that triggers and messages name them by index. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "workload/workload_list.h"

struct place {
	uint64_t start_ps;
	uint32_t item;
};

struct list {
	struct workload_part part;
	struct listed *items;
	uint32_t count, room;
	struct list_trigger *triggers;
	uint32_t trigger_count;
	uint32_t *targets;

	/* Items that start at a time, in order of it and then as added. */
	struct place *timed;
	uint32_t timed_count, timed_next;
};

static struct list *of(struct workload_part *p)
{
	return (struct list *)p;
}

static struct message item_message(const struct list *l, uint32_t i)
{
	const struct listed *item = &l->items[i];
	struct message m = part_message(&l->part);

	m.start_ps = item->start_ps;
	m.bytes = item->bytes;
	m.number = i;
	m.connection = item->connection;
	m.src = item->src;
	m.dst = item->dst;
	m.tag = item->tag;
	m.class = item->class;
	return m;
}

static bool list_next(struct workload_part *p, struct message *out)
{
	struct list *l = of(p);

	if (l->timed_next == l->timed_count)
		return false;
	*out = item_message(l, l->timed[l->timed_next++].item);
	return true;
}

static void fire(struct list *l, uint32_t trigger, uint64_t now_ps)
{
	struct list_trigger *t;
	uint32_t first = 0, last;

	if (trigger == LIST_NO_TRIGGER)
		return;
	assert(trigger < l->trigger_count);
	t = &l->triggers[trigger];
	last = t->target_count;
	if (t->type == LIST_MULTISHOT) {
		if (t->fired >= t->target_count)
			return;
		first = (uint32_t)t->fired;
		last = first + 1;
	}
	t->fired++;
	if ((t->type == LIST_ONESHOT && t->fired != 1) || (t->type == LIST_BARRIER && t->fired != t->count))
		return;
	for (uint32_t i = first; i < last; i++) {
		uint32_t item = l->targets[t->first + i];
		struct message m = item_message(l, item);

		l->items[item].released = true;
		m.start_ps += now_ps;
		part_release(&l->part, &m);
	}
}

static void list_sent(struct workload_part *p, const struct message *m, uint64_t now_ps)
{
	assert(m->number < of(p)->count);
	fire(of(p), of(p)->items[m->number].sent_trigger, now_ps);
}

static void list_received(struct workload_part *p, const struct message *m, uint64_t now_ps)
{
	assert(m->number < of(p)->count);
	fire(of(p), of(p)->items[m->number].received_trigger, now_ps);
}

void list_free(struct list *l)
{
	if (!l)
		return;
	free(l->items);
	free(l->triggers);
	free(l->targets);
	free(l->timed);
	free(l);
}

static void list_part_free(struct workload_part *p)
{
	list_free(of(p));
}

static bool list_held_back(const struct workload_part *p, struct message *out)
{
	const struct list *l = (const struct list *)p;

	for (uint32_t i = 0; i < l->count; i++) {
		if (l->items[i].waits && !l->items[i].released) {
			*out = item_message(l, i);
			return true;
		}
	}
	return false;
}

static const struct workload_part_ops list_ops = {.next = list_next,
						  .sent = list_sent,
						  .received = list_received,
						  .held_back = list_held_back,
						  .free = list_part_free};

struct list *list_create(const struct workload_part *common, uint32_t room, uint32_t triggers, uint32_t targets)
{
	struct list *l = part_alloc(common, sizeof(*l));

	if (!l)
		return NULL;
	l->part.ops = &list_ops;
	l->room = room;
	l->trigger_count = triggers;
	l->items = calloc((size_t)room + 1, sizeof(*l->items));
	l->triggers = calloc((size_t)triggers + 1, sizeof(*l->triggers));
	l->targets = calloc((size_t)targets + 1, sizeof(*l->targets));
	if (!l->items || !l->triggers || !l->targets) {
		list_free(l);
		return NULL;
	}
	return l;
}

struct listed *list_add(struct list *l)
{
	struct listed *item = &l->items[l->count];

	assert(l->count < l->room);
	item->tag = l->part.tag;
	item->class = l->part.class;
	item->connection = l->count++;
	item->sent_trigger = item->received_trigger = LIST_NO_TRIGGER;
	return item;
}

uint32_t list_count(const struct list *l)
{
	return l->count;
}

struct listed *list_items(struct list *l)
{
	return l->items;
}

struct list_trigger *list_triggers(struct list *l)
{
	return l->triggers;
}

uint32_t *list_targets(struct list *l)
{
	return l->targets;
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->start_ps != y->start_ps)
		return x->start_ps < y->start_ps ? -1 : 1;
	return x->item < y->item ? -1 : x->item > y->item;
}

int list_finish(struct list *l, struct workload_part **out)
{
	l->timed = malloc(((size_t)l->count + 1) * sizeof(*l->timed));
	if (!l->timed) {
		list_free(l);
		return -ENOMEM;
	}
	l->part.facts.classes = 0;
	for (uint32_t i = 0; i < l->count; i++) {
		const struct listed *item = &l->items[i];

		l->part.facts.classes |= (uint8_t)(1u << item->class);
		l->part.facts.message_count += item->bytes > 0;
		l->part.facts.bytes += item->bytes;
		if (!item->waits)
			l->timed[l->timed_count++] = (struct place){item->start_ps, i};
	}
	qsort(l->timed, l->timed_count, sizeof(*l->timed), compare_places);
	for (uint32_t i = 0; i < l->trigger_count; i++)
		if (l->triggers[i].target_count > l->part.release_max)
			l->part.release_max = l->triggers[i].target_count;
	*out = &l->part;
	return 0;
}
