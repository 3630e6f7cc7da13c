/* SPDX-License-Identifier: BSD-2-Clause */
/* The XRCETH codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/xrceth.h"

/* By hand from the figure in IBTA A14.3.3. */
static const uint8_t golden[XRCETH_LEN] = {0x00, 0xf2, 0x03, 0x04};
static const struct xrceth golden_fields = {.srqn = 0xf20304};

TEST(xrceth_decodes_golden_bytes)
{
	struct xrceth h;

	xrceth_decode(&h, golden);
	assert_true(h.srqn == golden_fields.srqn);
}

TEST(xrceth_encodes_golden_bytes)
{
	uint8_t buf[XRCETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	xrceth_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes survive decode and encode, but the reserved ones: they are sent as 0 and ignored. */
TEST(xrceth_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[XRCETH_LEN], out[XRCETH_LEN];
		struct xrceth h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		xrceth_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		xrceth_encode(out, &h);
		in[0] = 0;
		assert_memory_equal(out, in, sizeof(in));
	}
}
