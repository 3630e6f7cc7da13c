/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table of open addressing, at most half full. Whoever is removed is followed by those behind him
 * that may step back, so that a search may end at the first free place.
 */
#include "sim/channel_map.h"

#include <stdlib.h>

enum { FIRST_PLACES = 64, QPN_BITS = 24 };

struct place {
	uint64_t key;
	struct channel *channel; /* NULL: free */
};

struct channel_map {
	struct place *places;
	uint32_t mask, count;
};

static uint64_t key_of(uint32_t host, uint32_t qpn)
{
	return (uint64_t)host << QPN_BITS | qpn;
}

static uint32_t home_of(const struct channel_map *m, uint64_t key)
{
	return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & m->mask;
}

/* Where the key is, or would be. */
static struct place *place_of(const struct channel_map *m, uint64_t key)
{
	uint32_t i = home_of(m, key);

	while (m->places[i].channel && m->places[i].key != key)
		i = (i + 1) & m->mask;
	return &m->places[i];
}

struct channel_map *channel_map_create(void)
{
	struct channel_map *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->mask = FIRST_PLACES - 1;
	m->places = calloc(FIRST_PLACES, sizeof(*m->places));
	if (m->places)
		return m;
	free(m);
	return NULL;
}

void channel_map_destroy(struct channel_map *m)
{
	if (m)
		free(m->places);
	free(m);
}

static bool widen(struct channel_map *m)
{
	struct place *old = m->places;
	uint32_t old_mask = m->mask;

	m->places = calloc(2 * ((size_t)old_mask + 1), sizeof(*old));
	if (!m->places) {
		m->places = old;
		return false;
	}
	m->mask = 2 * old_mask + 1;
	for (uint32_t i = 0; i <= old_mask; i++) {
		if (old[i].channel)
			*place_of(m, old[i].key) = old[i];
	}
	free(old);
	return true;
}

bool channel_map_add(struct channel_map *m, uint32_t host, uint32_t qpn, struct channel *c)
{
	if (2 * (m->count + 1) > m->mask && !widen(m))
		return false;
	*place_of(m, key_of(host, qpn)) = (struct place){key_of(host, qpn), c};
	m->count++;
	return true;
}

void channel_map_remove(struct channel_map *m, uint32_t host, uint32_t qpn)
{
	struct place *free_place = place_of(m, key_of(host, qpn));

	if (!free_place->channel)
		return;
	m->count--;
	for (uint32_t hole = (uint32_t)(free_place - m->places), i = hole;;) {
		m->places[hole].channel = NULL;
		do {
			i = (i + 1) & m->mask;
			if (!m->places[i].channel)
				return;
			/* It may step back to the hole unless its home lies behind that. */
		} while (((i - home_of(m, m->places[i].key)) & m->mask) < ((i - hole) & m->mask));
		m->places[hole] = m->places[i];
		hole = i;
	}
}

struct channel *channel_map_find(const struct channel_map *m, uint32_t host, uint32_t qpn)
{
	return place_of(m, key_of(host, qpn))->channel;
}
