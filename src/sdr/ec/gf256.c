/* SPDX-License-Identifier: BSD-2-Clause */
/* Arithmetic bit by bit: it runs once a code or a repair, never once a byte, and needs no tables of
 * its own. */
#include "sdr/ec/gf256.h"

enum { POLYNOMIAL = 0x11d };

uint8_t gf256_mul(uint8_t a, uint8_t b)
{
	unsigned product = 0, shifted = a;

	for (; b != 0; b >>= 1) {
		if (b & 1)
			product ^= shifted;
		shifted <<= 1;
		if (shifted & 0x100)
			shifted ^= POLYNOMIAL;
	}
	return (uint8_t)product;
}

/* a^254: the multiplicative group has 255 elements, so a^255 is 1 for every a but 0. */
uint8_t gf256_inv(uint8_t a)
{
	uint8_t power = a, inverse = 1;

	for (int bit = 1; bit < 8; bit++) {
		power = gf256_mul(power, power);
		inverse = gf256_mul(inverse, power);
	}
	return inverse;
}

/* The sum of those of four elements whose bit in x is set. */
static uint8_t sum_of(const uint8_t elements[4], unsigned x)
{
	uint8_t sum = 0;

	for (unsigned i = 0; i < 4; i++) {
		if (x >> i & 1)
			sum ^= elements[i];
	}
	return sum;
}

void gf256_factor_init(struct gf256_factor *f, uint8_t a)
{
	uint8_t times[8] = {a}; /* a * 2^i */

	for (unsigned i = 1; i < 8; i++)
		times[i] = gf256_mul(times[i - 1], 2);
	for (unsigned x = 0; x < 16; x++) {
		f->low[x] = sum_of(times, x);
		f->high[x] = sum_of(times + 4, x);
	}
	f->matrix = 0;
	for (unsigned in = 0; in < 8; in++) {
		for (unsigned out = 0; out < 8; out++)
			f->matrix |= (uint64_t)(times[in] >> out & 1) << ((7 - out) * 8 + in);
	}
}
