/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries in a ring by use: `newest` was used last, and its predecessor in the ring is the oldest. */
#include "sim/qp_cache.h"

#include <stdlib.h>

#include "sim/key_map.h"

struct entry {
	uint64_t key;
	uint64_t ready_ps; /* when it was, or will be, at hand */
	uint32_t newer, older;
};

struct qp_cache {
	struct key_map index; /* key to entry */
	struct entry *entries;
	uint32_t room, count;
	uint32_t newest;
	uint64_t miss_ps;
	uint64_t fetch_free_ps; /* when the fetch under way is done */
	uint64_t misses;
};

enum { ENTRIES_FIRST = 64 };

struct qp_cache *qp_cache_create(uint32_t room, uint64_t miss_ps)
{
	struct qp_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->room = room;
	c->miss_ps = miss_ps;
	return c;
}

void qp_cache_destroy(struct qp_cache *c)
{
	if (!c)
		return;
	key_map_fini(&c->index);
	free(c->entries);
	free(c);
}

static void unlink_entry(struct qp_cache *c, uint32_t i)
{
	struct entry *e = &c->entries[i];

	c->entries[e->newer].older = e->older;
	c->entries[e->older].newer = e->newer;
	if (c->newest == i)
		c->newest = e->older;
}

/* Into the ring, between the newest and the oldest. */
static void make_newest(struct qp_cache *c, uint32_t i)
{
	struct entry *e = &c->entries[i], *n = &c->entries[c->newest];

	e->older = c->newest;
	e->newer = n->newer;
	c->entries[n->newer].older = i;
	n->newer = i;
	c->newest = i;
}

/* A free entry, in the ring of none; the number of entries: no memory. */
static uint32_t take_entry(struct qp_cache *c)
{
	uint32_t i = c->count;

	if (c->count == c->room) {
		i = c->entries[c->newest].newer;
		key_map_remove(&c->index, c->entries[i].key);
		if (c->count > 1)
			unlink_entry(c, i);
		return i;
	}
	/* Grows by doubling, from a power of two; there may be fewer queue pairs than there is room for. */
	if (c->count >= ENTRIES_FIRST ? !(c->count & (c->count - 1)) : !c->count) {
		uint64_t want = c->count ? 2ull * c->count : ENTRIES_FIRST;
		struct entry *more = realloc(c->entries, (want < c->room ? want : c->room) * sizeof(*more));

		if (!more)
			return c->room;
		c->entries = more;
	}
	if (!c->count) {
		c->entries[0] = (struct entry){0};
		c->newest = 0;
	}
	c->count++;
	return i;
}

uint64_t qp_cache_use(struct qp_cache *c, uint64_t key, uint64_t now_ps)
{
	uint64_t at = key_map_get(&c->index, key);
	struct entry *e;
	uint32_t i;

	if (at != KEY_MAP_NONE) {
		e = &c->entries[at];
		if (c->newest != at) {
			unlink_entry(c, (uint32_t)at);
			make_newest(c, (uint32_t)at);
		}
		return e->ready_ps > now_ps ? e->ready_ps : now_ps;
	}
	c->misses++;
	c->fetch_free_ps = (c->fetch_free_ps > now_ps ? c->fetch_free_ps : now_ps) + c->miss_ps;
	i = take_entry(c);
	/* Without memory it is fetched and not kept. */
	if (i == c->room)
		return c->fetch_free_ps;
	e = &c->entries[i];
	e->key = key;
	e->ready_ps = c->fetch_free_ps;
	if (c->count > 1)
		make_newest(c, i);
	else
		e->newer = e->older = i;
	if (!key_map_set(&c->index, key, i))
		e->key = KEY_MAP_NONE;
	return c->fetch_free_ps;
}

uint64_t qp_cache_misses(const struct qp_cache *c)
{
	return c->misses;
}
