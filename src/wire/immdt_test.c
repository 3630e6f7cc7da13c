/* SPDX-License-Identifier: BSD-2-Clause */
/* The IMMDT codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/immdt.h"

/* By hand from the figure in IBTA 9.3. */
static const uint8_t golden[IMMDT_LEN] = {0xf1, 0x02, 0x03, 0x04};
static const struct immdt golden_fields = {.imm = 0xf1020304};

TEST(immdt_decodes_golden_bytes)
{
	struct immdt h;

	immdt_decode(&h, golden);
	assert_true(h.imm == golden_fields.imm);
}

TEST(immdt_encodes_golden_bytes)
{
	uint8_t buf[IMMDT_LEN];

	memset(buf, 0xa5, sizeof(buf));
	immdt_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes survive decode and encode. */
TEST(immdt_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[IMMDT_LEN], out[IMMDT_LEN];
		struct immdt h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		immdt_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		immdt_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}
