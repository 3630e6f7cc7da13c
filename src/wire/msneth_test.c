/* SPDX-License-Identifier: BSD-2-Clause */
/* The MSNETH codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/msneth.h"

/* By hand from the figure in veRoCE 2. */
static const uint8_t golden[MSNETH_LEN] = {0x00, 0xab, 0xcd, 0xef};
static const struct msneth golden_fields = {.msn = 0xabcdef};

TEST(msneth_decodes_golden_bytes)
{
	struct msneth h;

	msneth_decode(&h, golden);
	assert_true(h.msn == golden_fields.msn);
}

TEST(msneth_encodes_golden_bytes)
{
	uint8_t buf[MSNETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	msneth_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes, reserved ones cleared, survive decode and encode. */
TEST(msneth_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[MSNETH_LEN], out[MSNETH_LEN];
		struct msneth h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		in[0] = 0;
		msneth_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		msneth_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}

TEST(msneth_ignores_the_reserved_byte)
{
	static const uint8_t in[MSNETH_LEN] = {0xff, 0x00, 0x00, 0x01};
	struct msneth h;

	msneth_decode(&h, in);
	assert_true(h.msn == 1);
}

TEST(msneth_encode_confines_the_number_to_24_bits)
{
	static const uint8_t expect[MSNETH_LEN] = {0x00, 0x00, 0x00, 0x02};
	uint8_t out[MSNETH_LEN];

	msneth_encode(out, &(struct msneth){.msn = 0xff000002});
	assert_memory_equal(out, expect, sizeof(expect));
}
