/* SPDX-License-Identifier: BSD-2-Clause */
/* The RQETH codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/rqeth.h"

/* By hand from the figure in veRoCE 2. */
static const uint8_t golden[RQETH_LEN] = {0x00, 0xab, 0xcd, 0xef};
static const struct rqeth golden_fields = {.rqmsn = 0xabcdef};

TEST(rqeth_decodes_golden_bytes)
{
	struct rqeth h;

	rqeth_decode(&h, golden);
	assert_true(h.rqmsn == golden_fields.rqmsn);
}

TEST(rqeth_encodes_golden_bytes)
{
	uint8_t buf[RQETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	rqeth_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes, reserved ones cleared, survive decode and encode. */
TEST(rqeth_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[RQETH_LEN], out[RQETH_LEN];
		struct rqeth h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		in[0] = 0;
		rqeth_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		rqeth_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}

TEST(rqeth_ignores_the_reserved_byte)
{
	static const uint8_t in[RQETH_LEN] = {0xff, 0x00, 0x00, 0x01};
	struct rqeth h;

	rqeth_decode(&h, in);
	assert_true(h.rqmsn == 1);
}

TEST(rqeth_encode_confines_the_number_to_24_bits)
{
	static const uint8_t expect[RQETH_LEN] = {0x00, 0x00, 0x00, 0x02};
	uint8_t out[RQETH_LEN];

	rqeth_encode(out, &(struct rqeth){.rqmsn = 0xff000002});
	assert_memory_equal(out, expect, sizeof(expect));
}
