/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The field GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d), the one that storage
 * codes and ISA-L use. Addition is XOR. These functions set codes up; the bytes of pieces are
 * multiplied by ec/kernel.h.
 */
#pragma once

#include <stdint.h>

enum { GF256_ELEMENTS = 256 };

/* The product in GF(2^8), modulo the code's polynomial. */
uint8_t gf256_mul(uint8_t a, uint8_t b);

/* The inverse of a, and 0 for 0, which has none. */
uint8_t gf256_inv(uint8_t a);

/*
 * What multiplying many bytes by one element needs. Multiplication is linear over GF(2), so
 * a * x = low[x & 15] ^ high[x >> 4], and also a matrix of 8 x 8 bits times the bits of x, in the
 * order that the GFNI instruction VGF2P8AFFINEQB takes it: the row of result bit 7 in the low byte.
 */
struct gf256_factor {
	uint8_t low[16];
	uint8_t high[16];
	uint64_t matrix;
};

/* Prepares multiplication by a. */
void gf256_factor_init(struct gf256_factor *f, uint8_t a);
