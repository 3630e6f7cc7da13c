/* SPDX-License-Identifier: BSD-2-Clause */
/* The RETH codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/reth.h"

/* By hand from the figure in IBTA 9.3. */
static const uint8_t golden[RETH_LEN] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
					 0xa1, 0xb2, 0xc3, 0xd4, 0x80, 0x00, 0x00, 0x01};
static const struct reth golden_fields = {.va = 0x0102030405060708, .rkey = 0xa1b2c3d4, .len = 0x80000001};

TEST(reth_decodes_golden_bytes)
{
	struct reth h;

	reth_decode(&h, golden);
	assert_true(h.va == golden_fields.va);
	assert_true(h.rkey == golden_fields.rkey);
	assert_true(h.len == golden_fields.len);
}

TEST(reth_encodes_golden_bytes)
{
	uint8_t buf[RETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	reth_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes survive decode and encode. */
TEST(reth_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[RETH_LEN], out[RETH_LEN];
		struct reth h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		reth_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		reth_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}
