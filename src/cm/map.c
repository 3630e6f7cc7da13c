/* SPDX-License-Identifier: BSD-2-Clause */
/* Chains; the buckets double when there are more nodes than buckets. */
#include "cm/map.h"

#include <stddef.h>

static struct map_node **table(const struct map *m)
{
	return m->grown ? m->grown : (struct map_node **)m->buckets;
}

static struct map_node **bucket_of(const struct map *m, uint64_t key)
{
	/* Fibonacci hashing: counted keys spread as well as hashed ones. */
	uint64_t hash = key * 0x9e3779b97f4a7c15u;

	return &table(m)[(hash >> 32) & (m->bucket_count - 1)];
}

void map_init(struct map *m, const struct alloc *alloc)
{
	*m = (struct map){.alloc = alloc, .bucket_count = MAP_BUCKETS_MIN};
}

static void put_grown(struct map *m)
{
	alloc_put(m->alloc, m->grown, m->bucket_count * sizeof(*m->grown));
}

void map_fini(struct map *m)
{
	put_grown(m);
	map_init(m, m->alloc);
}

static void grow(struct map *m)
{
	struct map old = *m, *from = &old;
	struct map_node **to = alloc_get(m->alloc, 2 * m->bucket_count * sizeof(*to));

	if (!to)
		return;
	m->grown = to;
	m->bucket_count *= 2;
	for (uint32_t i = 0; i < from->bucket_count; i++) {
		struct map_node *n = table(from)[i];

		while (n) {
			struct map_node *next = n->next, **b = bucket_of(m, n->key);

			n->next = *b;
			*b = n;
			n = next;
		}
	}
	put_grown(from);
}

void map_add(struct map *m, struct map_node *n, uint64_t key)
{
	struct map_node **b;

	if (m->count >= m->bucket_count)
		grow(m);
	b = bucket_of(m, key);
	*n = (struct map_node){.next = *b, .key = key, .in = true};
	*b = n;
	m->count++;
}

void map_remove(struct map *m, struct map_node *n)
{
	if (!n->in)
		return;
	for (struct map_node **at = bucket_of(m, n->key); *at; at = &(*at)->next) {
		if (*at == n) {
			*at = n->next;
			break;
		}
	}
	n->in = false;
	m->count--;
}

static struct map_node *with_key(struct map_node *n, uint64_t key)
{
	while (n && n->key != key)
		n = n->next;
	return n;
}

struct map_node *map_first(const struct map *m, uint64_t key)
{
	return with_key(*bucket_of(m, key), key);
}

struct map_node *map_next(const struct map_node *n)
{
	return with_key(n->next, n->key);
}
