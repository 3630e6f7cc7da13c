/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SipHash-2-4 (Aumasson and Bernstein 2012) of 64-bit words: the keyed function behind R_Keys and QPNs, and what proves
 * whose a packet is where a seal is too little (veRoCE 13.5). A word's bytes count from the lowest.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t siphash_u64(const uint8_t key[16], uint64_t word);
/* Of fewer than 32 words. */
uint64_t siphash_words(const uint8_t key[16], const uint64_t *words, size_t count);

/*
 * A keyed permutation of [0, 2^bits), 2 <= bits <= 32: a Feistel network over siphash. Each number
 * comes out once, and without the key nobody can predict the order.
 */
uint32_t permute(const uint8_t key[16], uint32_t bits, uint32_t x);
