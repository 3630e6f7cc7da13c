/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fixed point without surprises: results that do not fit saturate, products never overflow on the
 * way, and nothing depends on the machine. A q32 is a u64 with 32 fraction bits; the other
 * operand's unit is the result's.
 */
#pragma once

#include <stdint.h>

#define Q32_ONE (UINT64_C(1) << 32)

/* A constant: Q32_RATIO(4, 5) is 0.8, rounded to nearest. num < 2^31. */
#define Q32_RATIO(num, den) ((((uint64_t)(num) << 33) / (den) + 1) / 2)

static inline uint64_t fx_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t fx_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t fx_add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t fx_sub(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* a * b / c, rounded down; UINT64_MAX also for c == 0. */
static inline uint64_t fx_muldiv(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t product;
	unsigned __int128 wide;

	if (c == 0)
		return UINT64_MAX;
	if (!__builtin_mul_overflow(a, b, &product))
		return product / c;
	wide = (unsigned __int128)a * b / c;
	return wide > UINT64_MAX ? UINT64_MAX : (uint64_t)wide;
}

/* Parts of 10^9. */
static inline uint64_t q32_ppb(uint64_t q32)
{
	return (uint64_t)((unsigned __int128)q32 * 1000000000 >> 32);
}

static inline uint64_t q32_mul(uint64_t a, uint64_t q32)
{
	unsigned __int128 wide = (unsigned __int128)a * q32 >> 32;

	return wide > UINT64_MAX ? UINT64_MAX : (uint64_t)wide;
}

/* The share a/b. */
static inline uint64_t q32_div(uint64_t a, uint64_t b)
{
	return fx_muldiv(a, Q32_ONE, b);
}

/* The square root, rounded down. */
static inline uint64_t fx_isqrt(uint64_t x)
{
	uint64_t root, next;

	if (x < 2)
		return x;
	/* Newton from above: 2^ceil(bits/2) is no less than the root. */
	next = UINT64_C(1) << ((65 - __builtin_clzll(x)) / 2);
	do {
		root = next;
		next = (root + x / root) / 2;
	} while (next < root);
	return root;
}
