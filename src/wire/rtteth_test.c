/* SPDX-License-Identifier: BSD-2-Clause */
/* The RTTETH codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/rtteth.h"

/* By hand from the figure in veRoCE 2. */
static const uint8_t golden[RTTETH_LEN] = {0x81, 0x02, 0x03, 0x04, 0x91, 0x12, 0x13, 0x14, 0xa1, 0x22,
					   0x23, 0x24, 0xb1, 0x32, 0x33, 0x34, 0xc1, 0x42, 0x43, 0x44};
static const struct rtteth golden_fields = {
	.context = 0x81020304, .tx1 = 0x91121314, .rx1 = 0xa1222324, .tx2 = 0xb1323334, .rx2 = 0xc1424344};

TEST(rtteth_decodes_golden_bytes)
{
	struct rtteth h;

	rtteth_decode(&h, golden);
	assert_true(h.context == golden_fields.context);
	assert_true(h.tx1 == golden_fields.tx1);
	assert_true(h.rx1 == golden_fields.rx1);
	assert_true(h.tx2 == golden_fields.tx2);
	assert_true(h.rx2 == golden_fields.rx2);
}

TEST(rtteth_encodes_golden_bytes)
{
	uint8_t buf[RTTETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	rtteth_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes survive decode and encode. */
TEST(rtteth_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[RTTETH_LEN], out[RTTETH_LEN];
		struct rtteth h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		rtteth_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		rtteth_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}
