/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Open addressing with linear probing, at most half full. A removed key leaves no mark: the keys behind
 * it in its run move up, so that a lookup may end at the first free place.
 */
#include "sim/key_map.h"

#include <assert.h>
#include <stdlib.h>

enum { PLACES_FIRST = 16 };

struct key_map_place {
	uint64_t key; /* KEY_MAP_NONE: free */
	uint64_t value;
};

void key_map_fini(struct key_map *m)
{
	free(m->places);
	*m = (struct key_map){0};
}

static uint64_t home(const struct key_map *m, uint64_t key)
{
	key = (key ^ key >> 32) * UINT64_C(0x9e3779b97f4a7c15);
	return key >> 24 & m->mask;
}

/* Where the key is, or the free place that ends its search. */
static struct key_map_place *place_of(const struct key_map *m, uint64_t key)
{
	uint64_t i = home(m, key);

	while (m->places[i].key != key && m->places[i].key != KEY_MAP_NONE)
		i = (i + 1) & m->mask;
	return &m->places[i];
}

static bool grow(struct key_map *m)
{
	uint64_t places = m->places ? 2 * (m->mask + 1) : PLACES_FIRST;
	struct key_map more = {.places = malloc(places * sizeof(*more.places)), .mask = places - 1, .count = m->count};

	if (!more.places)
		return false;
	for (uint64_t i = 0; i < places; i++)
		more.places[i].key = KEY_MAP_NONE;
	for (uint64_t i = 0; m->places && i <= m->mask; i++) {
		if (m->places[i].key != KEY_MAP_NONE)
			*place_of(&more, m->places[i].key) = m->places[i];
	}
	free(m->places);
	*m = more;
	return true;
}

uint64_t key_map_get(const struct key_map *m, uint64_t key)
{
	const struct key_map_place *p;

	if (!m->count)
		return KEY_MAP_NONE;
	p = place_of(m, key);
	return p->key == key ? p->value : KEY_MAP_NONE;
}

bool key_map_set(struct key_map *m, uint64_t key, uint64_t value)
{
	struct key_map_place *p;

	assert(key != KEY_MAP_NONE && value != KEY_MAP_NONE);
	if ((!m->places || 2 * (m->count + 1) > m->mask) && !grow(m))
		return false;
	p = place_of(m, key);
	m->count += p->key == KEY_MAP_NONE;
	*p = (struct key_map_place){key, value};
	return true;
}

void key_map_remove(struct key_map *m, uint64_t key)
{
	struct key_map_place *p;
	uint64_t hole, i;

	if (!m->count)
		return;
	p = place_of(m, key);
	if (p->key == KEY_MAP_NONE)
		return;
	m->count--;
	hole = (uint64_t)(p - m->places);
	for (i = (hole + 1) & m->mask; m->places[i].key != KEY_MAP_NONE; i = (i + 1) & m->mask) {
		/* It may move up unless its search begins behind the hole. */
		if (((i - home(m, m->places[i].key)) & m->mask) < ((i - hole) & m->mask))
			continue;
		m->places[hole] = m->places[i];
		hole = i;
	}
	m->places[hole].key = KEY_MAP_NONE;
}
