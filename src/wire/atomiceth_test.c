/* SPDX-License-Identifier: BSD-2-Clause */
/* The ATOMICETH codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/atomiceth.h"

/* By hand from the figure in IBTA 9.3. */
static const uint8_t golden[ATOMICETH_LEN] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0xa1, 0xb2,
					      0xc3, 0xd4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
					      0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8};
static const struct atomiceth golden_fields = {
	.va = 0x0102030405060708, .rkey = 0xa1b2c3d4, .swap_add = 0x1112131415161718, .compare = 0xf1f2f3f4f5f6f7f8};

TEST(atomiceth_decodes_golden_bytes)
{
	struct atomiceth h;

	atomiceth_decode(&h, golden);
	assert_true(h.va == golden_fields.va);
	assert_true(h.rkey == golden_fields.rkey);
	assert_true(h.swap_add == golden_fields.swap_add);
	assert_true(h.compare == golden_fields.compare);
}

TEST(atomiceth_encodes_golden_bytes)
{
	uint8_t buf[ATOMICETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	atomiceth_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes survive decode and encode. */
TEST(atomiceth_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[ATOMICETH_LEN], out[ATOMICETH_LEN];
		struct atomiceth h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		atomiceth_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		atomiceth_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}
