/* SPDX-License-Identifier: BSD-2-Clause */
/* The POETH codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/poeth.h"

/* By hand from the figure in veRoCE 2. */
static const uint8_t golden[POETH_LEN] = {0x00, 0xab, 0xcd, 0xef};
static const struct poeth golden_fields = {.po = 0xabcdef};

TEST(poeth_decodes_golden_bytes)
{
	struct poeth h;

	poeth_decode(&h, golden);
	assert_true(h.po == golden_fields.po);
}

TEST(poeth_encodes_golden_bytes)
{
	uint8_t buf[POETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	poeth_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes, reserved ones cleared, survive decode and encode. */
TEST(poeth_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[POETH_LEN], out[POETH_LEN];
		struct poeth h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		in[0] = 0;
		poeth_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		poeth_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}

TEST(poeth_ignores_the_reserved_byte)
{
	static const uint8_t in[POETH_LEN] = {0xff, 0x00, 0x00, 0x01};
	struct poeth h;

	poeth_decode(&h, in);
	assert_true(h.po == 1);
}

TEST(poeth_encode_confines_the_number_to_24_bits)
{
	static const uint8_t expect[POETH_LEN] = {0x00, 0x00, 0x00, 0x02};
	uint8_t out[POETH_LEN];

	poeth_encode(out, &(struct poeth){.po = 0xff000002});
	assert_memory_equal(out, expect, sizeof(expect));
}

TEST(poeth_no_info_is_all_ones)
{
	static const uint8_t expect[POETH_LEN] = {0x00, 0xff, 0xff, 0xff};
	uint8_t out[POETH_LEN];

	poeth_encode(out, &(struct poeth){.po = POETH_NO_INFO});
	assert_memory_equal(out, expect, sizeof(expect));
}
