/* SPDX-License-Identifier: BSD-2-Clause */
/* The hash table against a naive model: an array. */

#include "base/prng.h"
#include "cm/map.h"
#include "support/test.h"

enum { NODES = 1000, KEYS = 300, STEPS = 20000 };

static bool no_memory;

static void *get(void *ctx, size_t bytes)
{
	return no_memory ? NULL : calloc(1, bytes);
}

static void put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

static const struct alloc alloc = {.get = get, .put = put};
static struct map_node nodes[NODES];

static size_t found_with(const struct map *m, uint64_t key)
{
	size_t n = 0;

	for (struct map_node *at = map_first(m, key); at; at = map_next(at)) {
		assert_true(at->in && at->key == key);
		n++;
	}
	return n;
}

static size_t model_with(uint64_t key)
{
	size_t n = 0;

	for (size_t i = 0; i < NODES; i++)
		n += nodes[i].in && nodes[i].key == key;
	return n;
}

TEST(agrees_with_the_model)
{
	struct prng rng;

	for (int poor = 0; poor < 2; poor++) {
		struct map m;

		no_memory = poor;
		memset(nodes, 0, sizeof(nodes));
		prng_init(&rng, 1);
		map_init(&m, &alloc);
		for (int step = 0; step < STEPS; step++) {
			struct map_node *n = &nodes[prng_below(&rng, NODES)];
			uint64_t key = prng_below(&rng, KEYS) << (prng_below(&rng, 2) * 40);

			if (n->in)
				map_remove(&m, n);
			else
				map_add(&m, n, key);
			assert_int_equal(found_with(&m, key), model_with(key));
		}
		for (size_t i = 0; i < NODES; i++)
			map_remove(&m, &nodes[i]);
		assert_int_equal(m.count, 0);
		map_remove(&m, &nodes[0]); /* harmless */
		map_fini(&m);
	}
}
