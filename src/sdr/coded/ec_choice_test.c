/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/prng.h"
#include "sdr/ec/code.h"
#include "sdr/coded/ec_choice.h"
#include "sdr/model/binomial.h"
#include "support/test.h"

/* 400 Gbit/s and 25 ms: 1.25 GB are under way. */
static struct ec_link far(double loss)
{
	return (struct ec_link){.rate_bps = 400000000000, .rtt_ns = 25000000, .loss = loss};
}

static enum ec_reason choose(double loss, uint32_t pieces, uint64_t behind, struct ec_layout *l)
{
	struct ec_link link = far(loss);

	return ec_choose(&link, pieces, 4096, behind, UINT32_MAX, l);
}

TEST(what_others_follow_is_not_coded)
{
	struct ec_layout l;

	assert_int_equal(choose(0.01, 1024, 1250000000, &l), EC_NOTHING_EXPOSED);
	assert_int_equal(l.parity, 0);
	assert_true(l.parity_max >= 8);
	assert_int_equal(choose(0.01, 1024, 1240000000, &l), EC_ALL_CODED);
	assert_true(l.parity > 0);
}

TEST(what_loses_nothing_is_not_coded)
{
	struct ec_layout l;

	assert_int_equal(choose(1e-9, 32768, 0, &l), EC_NOTHING_LOST);
	assert_int_equal(choose(0, 32768, 0, &l), EC_NOTHING_LOST);
	assert_int_equal(choose(1e-5, 32768, 0, &l), EC_ALL_CODED);
}

/* 8 GiB: the last 1.25 GB and a block at most. */
TEST(a_long_message_has_a_coded_tail)
{
	struct ec_layout l;
	uint32_t first;

	assert_int_equal(choose(1e-3, 2097152, 0, &l), EC_TAIL_CODED);
	first = l.coded_from * l.depth * l.data;
	assert_true(first <= 2097152 - 305175 && first + l.depth * l.data > 2097152 - 305176);
}

/* As many parities as keep all but a message in ten thousand from a second answer, at a price that
 * grows with the loss. */
TEST(a_message_is_short_once_in_ten_thousand)
{
	static const struct {
		double loss, most;
	} row[] = {{1e-5, 0.02}, {1e-4, 0.02}, {1e-3, 0.04}, {1e-2, 0.12}, {5e-2, 0.35}};
	double before = 0;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct ec_layout l;
		double share;

		assert_int_equal(choose(row[i].loss, 32768, 0, &l), EC_ALL_CODED);
		share = (double)l.parity / l.data;
		assert_true(l.groups * binomial_above(l.data + l.parity, l.parity, row[i].loss) <= 1.01e-4);
		assert_true(share >= before && share <= row[i].most);
		assert_true(l.parity_max > l.parity && l.data + l.parity_max <= EC_PIECES_MAX);
		before = share;
	}
}

TEST(every_choice_is_a_layout_and_a_code)
{
	struct prng rng;

	prng_init(&rng, 5);
	for (int i = 0; i < 2000; i++) {
		uint32_t pieces = 1 + (uint32_t)prng_below(&rng, i % 2 ? 3000 : 300000);
		struct ec_link link = {.rate_bps = 1 + prng_below(&rng, 400000000000),
				       .rtt_ns = 1 + prng_below(&rng, 1000000000),
				       .loss = (double)prng_below(&rng, 500) / 1000};
		uint64_t room = pieces / 16 + 1 + prng_below(&rng, pieces);
		struct ec_layout l;

		ec_choose(&link, pieces, 4096, prng_below(&rng, 1 << 30), room, &l);
		assert_true(l.groups > 0 && ec_layout_settle(&l));
		assert_true(l.parity_max > 0 && l.parity <= l.parity_max);
		assert_true(l.data + l.parity_max <= EC_PIECES_MAX);
		assert_true((uint64_t)l.groups * l.parity_max <= room);
	}
}

TEST(losses_are_estimated_upwards)
{
	struct loss_counts e = {0};

	assert_true(loss_upper(&e) == 0.01); /* nothing is known */
	loss_note(&e, 10000, 0);
	assert_true(loss_upper(&e) > 3e-4 && loss_upper(&e) < 8e-4);
	loss_note(&e, 10000000, 0);
	assert_true(loss_upper(&e) == 1e-5);
	loss_note(&e, 100000, 1000);
	assert_true(loss_upper(&e) > 0.0009 && loss_upper(&e) < 0.0012);
	for (int i = 0; i < 100; i++)
		loss_note(&e, 100000, 1000); /* what was long ago fades */
	assert_true(loss_upper(&e) > 0.01 && loss_upper(&e) < 0.011);
	e = (struct loss_counts){0};
	loss_note(&e, 100, 100);
	assert_true(loss_upper(&e) == 0.5);
}
