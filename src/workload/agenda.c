/* SPDX-License-Identifier: BSD-2-Clause */
#include "workload/agenda.h"

#include <stdlib.h>

void agenda_free(struct agenda *a)
{
	free(a->items);
	*a = (struct agenda){0};
}

bool agenda_make_room(struct agenda *a, uint64_t items)
{
	uint64_t room = 2 * (uint64_t)a->room > items ? 2 * (uint64_t)a->room : items;
	struct agenda_item *more;

	if (items <= a->room)
		return true;
	more = room < UINT32_MAX ? reallocarray(a->items, room, sizeof(*more)) : NULL;
	if (!more)
		return false;
	a->items = more;
	a->room = (uint32_t)room;
	return true;
}

static bool is_before(const struct agenda_item *a, const struct agenda_item *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void agenda_add(struct agenda *a, struct agenda_item item)
{
	uint32_t i = a->count++;

	for (; i && is_before(&item, &a->items[(i - 1) / 2]); i = (i - 1) / 2)
		a->items[i] = a->items[(i - 1) / 2];
	a->items[i] = item;
}

struct agenda_item agenda_take(struct agenda *a)
{
	struct agenda_item first = a->items[0], last = a->items[--a->count];
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < a->count) {
		if (child + 1 < a->count && is_before(&a->items[child + 1], &a->items[child]))
			child++;
		if (!is_before(&a->items[child], &last))
			break;
		a->items[i] = a->items[child];
		i = child;
	}
	a->items[i] = last;
	return first;
}
