/* SPDX-License-Identifier: BSD-2-Clause */
/* Weighted turns in two tables. */
#include "net/vl_arbiter.h"

#include <stdbool.h>
#include <stddef.h>

#include "net/credit.h"

static bool names(const struct vl_entry *e, uint8_t ready)
{
	return e->weight && e->vl < VL_LANES && ready >> e->vl & 1;
}

/* The turn stays at an entry while its weight lasts and its lane has a packet. NULL: the table names no ready lane. */
static const struct vl_entry *turn(struct vl_turn *t, const struct vl_entry *table, uint8_t count, uint8_t ready)
{
	if (t->at < count && t->left > 0 && names(&table[t->at], ready))
		return &table[t->at];
	for (unsigned i = 1; i <= count; i++) {
		unsigned at = (t->at + i) % count;

		if (!names(&table[at], ready))
			continue;
		t->at = (uint8_t)at;
		t->left = table[at].weight;
		return &table[at];
	}
	return NULL;
}

static int take(struct vl_turn *t, const struct vl_entry *e, const uint32_t bytes[VL_LANES])
{
	t->left -= (int32_t)((bytes[e->vl] + CREDIT_BLOCK_BYTES - 1) / CREDIT_BLOCK_BYTES);
	return e->vl;
}

/* Low priority has waited for as long as it must. */
static bool high_is_spent(const struct vl_arbiter *a, const struct vl_tables *t)
{
	if (t->high_limit == VL_HIGH_UNLIMITED)
		return false;
	return a->high_bytes && a->high_bytes >= (uint32_t)t->high_limit * VL_HIGH_LIMIT_BYTES;
}

int vl_choose(struct vl_arbiter *a, const struct vl_tables *t, uint8_t ready, const uint32_t bytes[VL_LANES])
{
	struct vl_turn high_turn = a->high;
	const struct vl_entry *high = turn(&high_turn, t->high, t->high_count, ready), *low = NULL;

	if (!high || high_is_spent(a, t))
		low = turn(&a->low, t->low, t->low_count, ready);
	if (low) {
		a->high_bytes = 0;
		return take(&a->low, low, bytes);
	}
	if (high) {
		a->high = high_turn;
		if (high_is_spent(a, t))
			a->high_bytes = 0; /* nobody of low priority waits */
		a->high_bytes += bytes[high->vl];
		return take(&a->high, high, bytes);
	}
	return ready ? __builtin_ctz(ready) : VL_NONE;
}
