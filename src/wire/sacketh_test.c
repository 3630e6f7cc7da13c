/* SPDX-License-Identifier: BSD-2-Clause */
/* The SACKETH codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/sacketh.h"

/* The second example of veRoCE 1.1: from PSN 5 on, PSN 7 and 9 have arrived. */
static const uint8_t golden[SACKETH_LEN] = {5, 0x00, 0x00, 0x05, [19] = 0x14};
static const struct sacketh golden_fields = {.valid_len = 5, .start_psn = 5, .bits = {1 << 2 | 1 << 4}};

TEST(sacketh_decodes_golden_bytes)
{
	struct sacketh h;

	sacketh_decode(&h, golden);
	assert_true(h.valid_len == golden_fields.valid_len);
	assert_true(h.start_psn == golden_fields.start_psn);
	assert_true(h.bits[0] == golden_fields.bits[0]);
	assert_true(h.bits[1] == golden_fields.bits[1]);
}

TEST(sacketh_encodes_golden_bytes)
{
	uint8_t buf[SACKETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	sacketh_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Byte 4 + k holds the bits from 120 - 8k on (veRoCE 2). */
TEST(sacketh_bit_i_is_the_value_2_to_the_i)
{
	for (unsigned i = 0; i < SACKETH_BITS; i++) {
		uint8_t in[SACKETH_LEN] = {SACKETH_BITS}, out[SACKETH_LEN];
		struct sacketh h;

		in[SACKETH_LEN - 1 - i / 8] = (uint8_t)(1u << i % 8);
		sacketh_decode(&h, in);
		assert_true(h.bits[i / 64] == UINT64_C(1) << i % 64);
		assert_true(h.bits[1 - i / 64] == 0);
		sacketh_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}

TEST(sacketh_decode_clears_the_bits_that_are_not_valid)
{
	for (unsigned n = 0; n < 256; n++) {
		uint8_t in[SACKETH_LEN];
		struct sacketh h;

		memset(in, 0xff, sizeof(in));
		in[0] = (uint8_t)n;
		sacketh_decode(&h, in);
		assert_true(h.valid_len == (n < SACKETH_BITS ? n : SACKETH_BITS));
		for (unsigned i = 0; i < SACKETH_BITS; i++)
			assert_true((h.bits[i / 64] >> i % 64 & 1) == (i < n));
	}
}

/* Any bytes survive decode and encode, the bits that say nothing cleared. */
TEST(sacketh_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[SACKETH_LEN], out[SACKETH_LEN];
		struct sacketh h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		in[0] %= SACKETH_BITS + 1;
		for (unsigned b = in[0]; b < SACKETH_BITS; b++)
			in[SACKETH_LEN - 1 - b / 8] &= (uint8_t) ~(1u << b % 8);
		sacketh_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		sacketh_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}
