/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A window of bits over memory that the caller owns, addressed by free-running positions: position
 * pos is bit pos modulo the ring's size, so that a window wraps both at the ring's end and at 2^32.
 * The caller that moves the window clears the bits that it leaves behind.
 *
 * `max` and `count` beyond the ring's size are allowed: the ring then repeats, as it does for
 * bitring_test(), and the work stays bounded by the ring's size.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct bitring {
	uint64_t *words; /* (mask + 1) / 64 of them; bit i of the ring is bit i % 64 of word i / 64 */
	uint32_t mask;   /* bits - 1; bits is a power of two >= 64 */
};

static inline bool bitring_test(const struct bitring *r, uint32_t pos)
{
	return r->words[(pos & r->mask) >> 6] >> (pos & 63) & 1;
}

static inline void bitring_set(struct bitring *r, uint32_t pos)
{
	r->words[(pos & r->mask) >> 6] |= UINT64_C(1) << (pos & 63);
}

static inline void bitring_clear(struct bitring *r, uint32_t pos)
{
	r->words[(pos & r->mask) >> 6] &= ~(UINT64_C(1) << (pos & 63));
}

/* The distance from `from` to the first set bit; max when the first max bits are clear. */
uint32_t bitring_next_set(const struct bitring *, uint32_t from, uint32_t max);

/* The 128 bits from `from` on: bit i of `out`, low word first, is position from + i, 0 at i >= max.
 */
void bitring_get128(const struct bitring *, uint32_t from, uint64_t out[2], uint32_t max);
/* Clears positions from .. from + count - 1. */
void bitring_clear_range(struct bitring *, uint32_t from, uint32_t count);
/* Clears all bits; a ring of uninitialised words must be cleared before use. */
void bitring_reset(struct bitring *);
