/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The word-wise walks over a bit ring. A ring is whole words, so no word is ever cut by the wrap: a
 * walk starts inside one word and goes on word by word, the index taken modulo the ring.
 */
#include <string.h>

#include "base/bitring.h"

static inline uint64_t word_at(const struct bitring *r, uint32_t pos)
{
	return r->words[(pos & r->mask) >> 6];
}

/* After one lap the answer is known. */
uint32_t bitring_next_set(const struct bitring *r, uint32_t from, uint32_t max)
{
	uint64_t lap = (uint64_t)r->mask + 1, limit = max < lap ? max : lap, d;
	uint64_t w = word_at(r, from) >> (from & 63);

	for (d = 0; !w;) {
		d += 64 - ((from + d) & 63);
		if (d >= limit)
			return max;
		w = word_at(r, (uint32_t)(from + d));
	}
	d += (uint64_t)__builtin_ctzll(w);
	return d < limit ? (uint32_t)d : max;
}

static uint64_t get64(const struct bitring *r, uint32_t from)
{
	uint32_t shift = from & 63;

	if (!shift)
		return word_at(r, from);
	return word_at(r, from) >> shift | word_at(r, from + 64) << (64 - shift);
}

/* The lowest n bits; all when there are no more than n. */
static uint64_t low(uint64_t word, uint32_t n)
{
	return n < 64 ? word & ((UINT64_C(1) << n) - 1) : word;
}

void bitring_get128(const struct bitring *r, uint32_t from, uint64_t out[2], uint32_t max)
{
	out[0] = low(get64(r, from), max);
	out[1] = max > 64 ? low(get64(r, from + 64), max - 64) : 0;
}

void bitring_clear_range(struct bitring *r, uint32_t from, uint32_t count)
{
	if (count > r->mask) {
		bitring_reset(r);
		return;
	}
	while (count) {
		uint32_t shift = from & 63, n = count < 64 - shift ? count : 64 - shift;

		r->words[(from & r->mask) >> 6] &= ~(low(UINT64_MAX, n) << shift);
		from += n;
		count -= n;
	}
}

void bitring_reset(struct bitring *r)
{
	memset(r->words, 0, ((size_t)r->mask + 1) / 8);
}
