/* SPDX-License-Identifier: BSD-2-Clause */
/* SipHash-2-4 of one 64-bit word (Aumasson and Bernstein 2012): the keyed function behind rkeys and QPNs. */
#pragma once

#include <stdint.h>

uint64_t siphash_u64(const uint8_t key[16], uint64_t word);

/*
 * A keyed permutation of [0, 2^bits), 2 <= bits <= 32: a Feistel network over siphash. Each number
 * comes out once, and without the key nobody can predict the order.
 */
uint32_t permute(const uint8_t key[16], uint32_t bits, uint32_t x);
