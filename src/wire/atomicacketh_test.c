/* SPDX-License-Identifier: BSD-2-Clause */
/* The ATOMICACKETH codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/atomicacketh.h"

/* By hand from the figure in IBTA 9.5. */
static const uint8_t golden[ATOMICACKETH_LEN] = {0xf1, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08};
static const struct atomicacketh golden_fields = {.orig = 0xf102030405060708};

TEST(atomicacketh_decodes_golden_bytes)
{
	struct atomicacketh h;

	atomicacketh_decode(&h, golden);
	assert_true(h.orig == golden_fields.orig);
}

TEST(atomicacketh_encodes_golden_bytes)
{
	uint8_t buf[ATOMICACKETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	atomicacketh_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes survive decode and encode. */
TEST(atomicacketh_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[ATOMICACKETH_LEN], out[ATOMICACKETH_LEN];
		struct atomicacketh h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		atomicacketh_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		atomicacketh_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}
