/* SPDX-License-Identifier: BSD-2-Clause */
/* The TSETH codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/tseth.h"

/* By hand from the figure in veRoCE 13.2. */
static const uint8_t golden[TSETH_LEN] = {0x81, 0x02, 0x03, 0x04, 0x95, 0xa6, 0xb7, 0xc8};
static const struct tseth golden_fields = {.tx1 = 0x81020304, .path_id = 0x95, .path_seq = 0xa6b7c8};

TEST(tseth_decodes_golden_bytes)
{
	struct tseth h;

	tseth_decode(&h, golden);
	assert_true(h.tx1 == golden_fields.tx1);
	assert_true(h.path_id == golden_fields.path_id);
	assert_true(h.path_seq == golden_fields.path_seq);
}

TEST(tseth_encodes_golden_bytes)
{
	uint8_t buf[TSETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	tseth_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes survive decode and encode. */
TEST(tseth_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[TSETH_LEN], out[TSETH_LEN];
		struct tseth h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		tseth_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		tseth_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}
