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

/* Whether something has the key, or may choose it. */
bool mr_is_taken(const struct mr_table *, uint32_t key);
/* A key that is not taken. */
uint32_t mr_draw_key(struct mr_table *);
/* A key of whose family none is taken. */
uint32_t mr_draw_family(struct mr_table *);

/* Frees all windows, whose slots are empty then. The table cannot be searched any more. */
void mw_free_all(struct mr_table *);
