/* SPDX-License-Identifier: BSD-2-Clause */
/* Which hosts the ranks of a graph are on: an order of the hosts that take part. */
#include <stdlib.h>

#include "base/prng.h"
#include "sim/simulation_parts.h"

/* The first switch of each host. NULL: no memory. */
static uint32_t *leaves_of(const struct topology *t)
{
	uint32_t *leaf = calloc(t->host_count + (size_t)1, sizeof(*leaf));

	for (uint32_t i = t->link_count; leaf && i-- > 0;) {
		const struct topology_link *l = &t->links[i];

		if (l->a < t->host_count)
			leaf[l->a] = l->b;
		if (l->b < t->host_count)
			leaf[l->b] = l->a;
	}
	return leaf;
}

/* One of each leaf, then the next one of each, leaves in the order of their first hosts. */
static bool take_turns(const struct topology *t, uint32_t *hosts, uint32_t count)
{
	uint32_t *leaf = leaves_of(t), *turn = calloc(count + (size_t)1, sizeof(*turn));
	uint32_t *had = calloc(t->node_count + (size_t)1, sizeof(*had));
	uint32_t *out = calloc(count + (size_t)1, sizeof(*out)), n = 0;
	bool good = leaf && turn && had && out;

	/* The k-th host of its leaf has turn k. */
	for (uint32_t i = 0; good && i < count; i++)
		turn[i] = had[leaf[hosts[i]]]++;
	for (uint32_t k = 0; good && n < count; k++) {
		for (uint32_t i = 0; i < count; i++) {
			if (turn[i] == k)
				out[n++] = hosts[i];
		}
	}
	for (uint32_t i = 0; good && i < count; i++)
		hosts[i] = out[i];
	free(leaf);
	free(turn);
	free(had);
	free(out);
	return good;
}

static void shuffle(uint32_t *hosts, uint32_t count, uint64_t seed)
{
	struct prng r;

	prng_init(&r, seed);
	for (uint32_t i = count; i > 1; i--) {
		uint32_t k = (uint32_t)prng_below(&r, i), host = hosts[k];

		hosts[k] = hosts[i - 1];
		hosts[i - 1] = host;
	}
}

bool parts_place(unsigned place, const struct topology *t, uint64_t seed, uint32_t *hosts, uint32_t count)
{
	if (place == SCENARIO_PLACE_ROUND_ROBIN)
		return take_turns(t, hosts, count);
	if (place == SCENARIO_PLACE_RANDOM)
		shuffle(hosts, count, seed);
	return true;
}
