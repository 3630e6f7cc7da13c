/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An intrusive hash table by 64-bit keys, which need not be unique. It grows with its number of nodes; without
 * memory to grow it becomes slower. The caller hashes keys that a peer chooses with a secret first.
 *
 * Private to src/cm.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"

struct map_node {
	struct map_node *next;
	uint64_t key;
	bool in;
};

enum { MAP_BUCKETS_MIN = 64 };

struct map {
	const struct alloc *alloc;
	struct map_node **grown; /* NULL: `buckets` is the table */
	uint32_t bucket_count;
	uint32_t count;
	struct map_node *buckets[MAP_BUCKETS_MIN];
};

/* Borrows alloc for the table's life; takes nothing from it yet. */
void map_init(struct map *, const struct alloc *);
/* The nodes that are left stay the caller's. */
void map_fini(struct map *);
/* The node must be in no table. */
void map_add(struct map *, struct map_node *, uint64_t key);
/* Harmless on a node that is in no table. */
void map_remove(struct map *, struct map_node *);
/* The first node with the key, and the next one after a node; NULL: there is none. */
struct map_node *map_first(const struct map *, uint64_t key);
struct map_node *map_next(const struct map_node *);
