/* SPDX-License-Identifier: BSD-2-Clause */
/* Logarithms bit by bit: slower than libm's, but the same on every machine to the last bit. */
#include <assert.h>

#include "base/siphash.h"
#include "workload/workload_draw.h"

typedef unsigned __int128 u128;

uint64_t draw_seed(uint64_t seed, uint64_t id)
{
	uint8_t key[16];

	for (int i = 0; i < 8; i++) {
		key[i] = (uint8_t)(seed >> 8 * i);
		key[8 + i] = (uint8_t)(~seed >> 8 * i);
	}
	return siphash_u64(key, id);
}

/* log2(m / 2^63) for m in [2^63, 2^64), in units of 2^-32: squaring m doubles its logarithm. */
static uint64_t log2_mantissa_q32(uint64_t m)
{
	uint64_t result = 0;

	for (int i = 0; i < 32; i++) {
		u128 square = (u128)m * m;

		result <<= 1;
		if (square >> 127) {
			result |= 1;
			m = (uint64_t)(square >> 64);
		} else {
			m = (uint64_t)(square >> 63);
		}
	}
	return result;
}

uint64_t draw_exponential_q32(uint64_t u)
{
	static const uint64_t ln2_q64 = 0xb17217f7d1cf79abu;
	uint64_t minus_log2;
	int zeros;

	if (u == UINT64_MAX)
		return 0;
	u++;
	zeros = __builtin_clzll(u);
	minus_log2 = ((uint64_t)(zeros + 1) << 32) - log2_mantissa_q32(u << zeros);
	return (uint64_t)((u128)minus_log2 * ln2_q64 >> 64);
}

uint64_t draw_gap_ps(struct prng *r, uint64_t mean_q16)
{
	u128 gap = (u128)draw_exponential_q32(prng_next(r)) * mean_q16 >> 48;

	return gap > UINT64_MAX / 4 ? UINT64_MAX / 4 : (uint64_t)gap;
}

/* The root of x/2^64, in the same units, rounded down. */
static uint64_t sqrt_q64(uint64_t x)
{
	u128 square = (u128)x << 64;
	uint64_t root = 0;

	for (int bit = 63; bit >= 0; bit--) {
		uint64_t trial = root | 1ull << bit;

		if ((u128)trial * trial <= square)
			root = trial;
	}
	return root;
}

uint64_t draw_zipf_weight_q60(uint32_t r, uint32_t milli)
{
	int zeros = __builtin_clzll(r);
	uint64_t log2_q32, exponent, weight = 1ull << 60, factor = 1ull << 63;

	assert(r >= 1 && milli <= 8000);
	log2_q32 = ((uint64_t)(63 - zeros) << 32) + log2_mantissa_q32((uint64_t)r << zeros);
	exponent = (uint64_t)((u128)log2_q32 * milli / 1000);
	if (exponent >> 32 >= 60)
		return 0;
	/* 2^-f is the product of 2^-(2^-i) over the bits i of f: each factor the root of the last.
	 */
	for (int i = 1; i <= 32; i++) {
		factor = sqrt_q64(factor);
		if (exponent >> (32 - i) & 1)
			weight = (uint64_t)((u128)weight * factor >> 64);
	}
	return weight >> (exponent >> 32);
}

void draw_shuffle(struct prng *r, uint32_t *items, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		items[i] = i;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = (uint32_t)prng_below(r, i), t = items[i - 1];

		items[i - 1] = items[j];
		items[j] = t;
	}
}
