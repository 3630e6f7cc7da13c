/* SPDX-License-Identifier: BSD-2-Clause */
/* The DETH codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/deth.h"

/* By hand from the figure in IBTA 9.3. */
static const uint8_t golden[DETH_LEN] = {0x80, 0x01, 0x00, 0x00, 0x00, 0xab, 0xcd, 0xef};
static const struct deth golden_fields = {.qkey = 0x80010000, .sqpn = 0xabcdef};

TEST(deth_decodes_golden_bytes)
{
	struct deth h;

	deth_decode(&h, golden);
	assert_true(h.qkey == golden_fields.qkey);
	assert_true(h.sqpn == golden_fields.sqpn);
}

TEST(deth_encodes_golden_bytes)
{
	uint8_t buf[DETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	deth_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes, reserved bits cleared, survive decode and encode. */
TEST(deth_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[DETH_LEN], out[DETH_LEN];
		struct deth h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		in[4] = 0;
		deth_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		deth_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}

TEST(deth_ignores_and_clears_the_reserved_byte)
{
	uint8_t in[DETH_LEN], out[DETH_LEN];
	struct deth h;

	memcpy(in, golden, sizeof(in));
	in[4] = 0xff;
	deth_decode(&h, in);
	assert_int_equal(h.sqpn, 0xabcdef);
	h.sqpn |= 0xff000000;
	deth_encode(out, &h);
	assert_memory_equal(out, golden, sizeof(golden));
}
