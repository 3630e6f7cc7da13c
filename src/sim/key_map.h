/* SPDX-License-Identifier: BSD-2-Clause */
/* 64-bit keys to 64-bit values: a hash table for look-ups by queue pair. Private to src/sim. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define KEY_MAP_NONE UINT64_MAX /* neither a key nor a value */

/* All zero is an empty map. */
struct key_map {
	struct key_map_place *places;
	uint64_t mask;
	uint64_t count;
};

/* Frees its memory; what the values point to is the caller's. */
void key_map_fini(struct key_map *);
/* The key's value, or KEY_MAP_NONE. */
uint64_t key_map_get(const struct key_map *, uint64_t key);
/* Sets or replaces it. False: no memory, and the map is as it was. */
bool key_map_set(struct key_map *, uint64_t key, uint64_t value);
/* Harmless where the key is not there. */
void key_map_remove(struct key_map *, uint64_t key);
