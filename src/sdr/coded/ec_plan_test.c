/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/byteorder.h"
#include "base/prng.h"
#include "sdr/coded/ec_plan.h"
#include "support/test.h"

/* MDS, parity on demand, an end marker; 32 and 8 of at most 40, 4 groups a block, 25 ms. */
static const uint8_t golden[EC_PLAN_LEN] = {
	0, 3, 0,    32,   0, 8, 0,    0,    0, 40, 0,    4,    0, 0, 0, 5, /* coded from block 5 */
	0, 0, 0x61, 0xa8, 0, 0, 0x27, 0x10, 0, 1,  0x24, 0xf8,             /* 10 us a piece, RTO 75 ms */
};

static const struct ec_config usual = {
	.layout =
		{.pieces = 1000, .data = 32, .parity = 8, .parity_max = 40, .depth = 4, .coded_from = 5, .groups = 32},
	.kind = EC_CAUCHY,
	.fallback = EC_FALLBACK_PARITY,
	.end_marker = true,
	.rtt_ns = 25000000,
	.rto_ns = 75000000,
	.inject_ns = 10000,
};

TEST(plans_are_as_they_are_drawn)
{
	uint8_t buf[EC_PLAN_LEN];
	struct ec_config c;

	ec_plan_encode(buf, &usual, false);
	assert_memory_equal(buf, golden, EC_PLAN_LEN);
	assert_true(ec_plan_decode(&c, golden, 1000, 1280, 1));
	assert_false(ec_plan_chunks(golden));
	assert_memory_equal(&c.layout, &usual.layout, sizeof(c.layout));
	assert_true(c.kind == EC_CAUCHY && c.fallback == EC_FALLBACK_PARITY && c.end_marker);
	assert_true(c.rtt_ns == 25000000 && c.rto_ns == 75000000 && c.inject_ns == 10000);
	assert_true(ec_config_valid(&c));
	ec_plan_encode(buf, &usual, true);
	assert_true(ec_plan_chunks(buf));
}

/* A peer that asks for answers every microsecond is not obliged. */
TEST(plans_of_short_times_are_lengthened)
{
	uint8_t buf[EC_PLAN_LEN];
	struct ec_config c;

	memcpy(buf, golden, sizeof(buf));
	put_be32(buf + 16, 0);
	put_be32(buf + 24, 0);
	assert_true(ec_plan_decode(&c, buf, 1000, 1280, 20000000));
	assert_true(c.rtt_ns == 20000000 && c.rto_ns == 20000000);
	assert_true(ec_config_valid(&c));
}

TEST(plans_that_make_no_sense_are_refused)
{
	static const struct {
		uint8_t at, value;
	} row[] = {{0, 2}, {1, 16}, {3, 0}, {5, 41}, {7, 9}, {9, 0}, {8, 255}, {11, 0}, {2, 1}};
	struct ec_config c;
	uint8_t buf[EC_PLAN_LEN];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		memcpy(buf, golden, sizeof(buf));
		buf[row[i].at] = row[i].value;
		assert_false(ec_plan_decode(&c, buf, 1000, UINT32_MAX, 1));
	}
	assert_false(ec_plan_decode(&c, golden, 1000, 1279, 1)); /* no room */
	memcpy(buf, golden, sizeof(buf));
	buf[0] = EC_XOR; /* has no fresh parities */
	assert_false(ec_plan_decode(&c, buf, 1000, 1280, 1));
	buf[1] = 0;
	assert_false(ec_plan_decode(&c, buf, 1000, 1280, 1)); /* not all are sent */
	buf[9] = 8;
	assert_true(ec_plan_decode(&c, buf, 1000, 1280, 1));
}

/* Any bytes: what is taken is valid, and within the room there is. */
TEST(any_plan_is_valid_or_refused)
{
	uint8_t buf[EC_PLAN_LEN];
	uint32_t taken = 0;
	struct prng rng;

	prng_init(&rng, 3);
	for (int i = 0; i < 200000; i++) {
		struct ec_config c;
		uint32_t pieces = 1 + (uint32_t)prng_below(&rng, 5000);

		for (int k = 0; k < EC_PLAN_LEN; k++)
			buf[k] = (uint8_t)prng_next(&rng);
		buf[0] &= 1;
		buf[1] &= 15;
		for (int k = 2; k < 12; k += 2)
			buf[k] = 0;
		buf[5] %= 32;
		buf[7] %= 8;
		if (!ec_plan_decode(&c, buf, pieces, 4000, 1000))
			continue;
		taken++;
		assert_true(ec_config_valid(&c));
		assert_true(c.layout.groups <= pieces);
		assert_true(c.layout.groups * c.layout.parity_max <= 4000);
	}
	assert_true(taken > 1000);
}
