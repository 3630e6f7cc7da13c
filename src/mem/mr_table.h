/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of keys, for those whose keys are in it. Private to src/mem.
 *
 * A key's low byte does not count for its place: a window of type 2 lets the program choose that byte, and all 256 keys
 * of its family must be found to be taken with one search.
 */
#pragma once

#include "mem/mr.h"

enum { MR_FAMILY_BITS = 8 };

/* Room for so many more keys: 0 or -ENOMEM. mr_insert() needs it. */
int mr_table_fit(struct mr_table *, uint32_t more);
void mr_insert(struct mr_table *, struct mr *);
void mr_take_out(struct mr_table *, const struct mr *);

/* One more region of nothing is in the table. */
void mr_note_nothing(struct mr_table *);

/* Where a region has those bytes, or NULL. */
uint8_t *mr_reach(const struct mr_table *, const struct mr *, uint64_t va, uint64_t len);

/* Whether something has the key, or may choose it. */
bool mr_is_taken(const struct mr_table *, uint32_t key);
/* A key that is not taken. */
uint32_t mr_draw_key(struct mr_table *);
/* A key of whose family none is taken. */
uint32_t mr_draw_family(struct mr_table *);

/* Whether no key of its family is taken. */
bool mr_family_is_free(const struct mr_table *, uint32_t key);
/* Whether such a key may be drawn. */
bool mr_may_draw(uint32_t key);
/* The slot in which a search for that key ends. */
uint32_t mr_slot_of(const struct mr_table *, uint32_t key);
/* So many slots, a power of two and at least twice as many as are taken: 0 or -ENOMEM. */
int mr_table_resize(struct mr_table *, size_t slots);

struct mw;
/* A window that is free opens the region from that offset on; its length and access are set. NULL: it is of type 1. */
void mw_open(struct mw *, struct mr *region, uint64_t off, struct mr_user *);
/* Frees all windows, whose slots are empty then. The table cannot be searched any more. */
void mw_free_all(struct mr_table *);
