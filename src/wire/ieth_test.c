/* SPDX-License-Identifier: BSD-2-Clause */
/* The IETH codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/ieth.h"

/* By hand from the figure in IBTA 9.3. */
static const uint8_t golden[IETH_LEN] = {0xf1, 0x02, 0x03, 0x04};
static const struct ieth golden_fields = {.rkey = 0xf1020304};

TEST(ieth_decodes_golden_bytes)
{
	struct ieth h;

	ieth_decode(&h, golden);
	assert_true(h.rkey == golden_fields.rkey);
}

TEST(ieth_encodes_golden_bytes)
{
	uint8_t buf[IETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	ieth_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes survive decode and encode. */
TEST(ieth_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[IETH_LEN], out[IETH_LEN];
		struct ieth h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		ieth_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		ieth_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}
