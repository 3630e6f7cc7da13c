/* SPDX-License-Identifier: BSD-2-Clause */
/* SipHash-2-4 specialised to messages of whole words, and the permutation built on it. */
#include <assert.h>
#include <string.h>

#include "base/siphash.h"

static uint64_t rotl(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

static void sipround(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

static void absorb(uint64_t v[4], uint64_t m)
{
	v[3] ^= m;
	sipround(v);
	sipround(v);
	v[0] ^= m;
}

uint64_t siphash_words(const uint8_t key[16], const uint64_t *words, size_t count)
{
	uint64_t k0, k1;

	memcpy(&k0, key, 8);
	memcpy(&k1, key + 8, 8);

	uint64_t v[4] = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
			 k1 ^ 0x7465646279746573u};

	assert(count < 32);
	for (size_t i = 0; i < count; i++)
		absorb(v, words[i]);
	absorb(v, (uint64_t)count << 59); /* the length in bytes, in the highest byte */
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sipround(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t siphash_u64(const uint8_t key[16], uint64_t word)
{
	return siphash_words(key, &word, 1);
}

uint32_t permute(const uint8_t key[16], uint32_t bits, uint32_t x)
{
	/* Unbalanced halves swap their widths each round, so an even number of rounds restores them. */
	enum { ROUNDS = 6 };
	uint32_t wa = bits / 2, wb = bits - wa;

	assert(bits >= 2 && bits <= 32);
	uint32_t a = x >> wb & (uint32_t)((1ull << wa) - 1);
	uint32_t b = x & (uint32_t)((1ull << wb) - 1);

	for (uint32_t r = 0; r < ROUNDS; r++) {
		uint64_t f = siphash_u64(key, (uint64_t)r << 40 | (uint64_t)bits << 32 | b);
		uint32_t next = a ^ ((uint32_t)f & (uint32_t)((1ull << wa) - 1));
		uint32_t w = wa;

		a = b;
		wa = wb;
		b = next;
		wb = w;
	}
	return a << wb | b;
}
