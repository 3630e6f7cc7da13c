/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans: parities grow with loss and stay few, and words say them; estimates. */

#include "base/prng.h"
#include "sdr/coded/coded_plan.h"
#include "sdr/coded/coded_words.h"
#include "sdr/coded/loss_estimate.h"
#include "support/test.h"

/* 4 KiB at 400 Gbit/s, 3750 km. */
static struct coded_link link_with(double loss, double burst)
{
	return (struct coded_link){.rtt_ns = 25000000, .piece_ns = 84, .loss = loss, .burst = burst};
}

TEST(plans_are_of_the_tail_whatever_its_size)
{
	static const uint32_t sizes[] = {1, 2, 7, 255, 256, 300, 2048, 32768, 32769, 262144, 700000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct coded_link l = link_with(1e-2, 1);
		struct ec_layout p, q;

		coded_plan_make(&p, sizes[i], &l);
		q = p;
		assert_true(ec_layout_settle(&q));
		assert_int_equal(q.groups, p.groups);
		assert_int_equal(p.pieces, sizes[i]);
		assert_int_equal(p.pieces - p.first, coded_plan_tail(sizes[i], l.rtt_ns, l.piece_ns));
		assert_true(p.depth <= CODED_DEPTH_MAX);
	}
}

TEST(only_what_no_word_can_reach_is_coded)
{
	struct coded_link l = link_with(1e-3, 1);
	struct ec_layout p;

	coded_plan_make(&p, 2097152, &l);
	assert_in_range(p.pieces - p.first, 25000000 / 84, 25000000 / 84 * 21 / 20);
	coded_plan_make(&p, 32768, &l);
	assert_int_equal(p.first, 0);
}

/* 128 MiB: 131 groups of 250 would need 5 parities at 1e-3, as P(Poisson(0.255) > 5) = 3e-7 and P(.. > 4) = 7e-6; 36 of
 * 911 need 7, as P(Poisson(0.92) > 7) = 6e-6. */
TEST(parities_are_as_few_as_do)
{
	static const struct {
		double loss;
		uint32_t least, most;
		double share;
	} want[] = {
		{0, 0, 0, 0},        {1e-5, 1, 2, 0.003},   {1e-4, 2, 3, 0.004},
		{1e-3, 5, 7, 0.008}, {1e-2, 12, 20, 0.052}, {5e-2, 28, 34, 0.15},
	};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct coded_link l = link_with(want[i].loss, 1);
		struct ec_layout p;

		coded_plan_make(&p, 32768, &l);
		assert_in_range(p.parity, want[i].least, want[i].most);
		assert_true((double)p.groups * p.parity <= want[i].share * 32768);
	}
}

/* At 1e-2 groups of 278 packets would have 13 parities, and the 32 that there are would not do for the 28 losses of
 * 1e-1. */
TEST(groups_are_small_enough_for_the_loss_that_is_feared)
{
	static const double losses[] = {1e-3, 1e-2, 2.5e-2};

	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
		struct coded_link l = link_with(losses[i], 1);
		double most, mean;
		struct ec_layout p;

		l.feared = 10 * losses[i];
		coded_plan_make(&p, 32768, &l);
		most = coded_plan_parity_max(p.data);
		mean = l.feared * (p.data + most);
		/* Four deviations above the mean at least. */
		assert_true(most > mean && (most - mean) * (most - mean) > 16 * mean);
		if (i)
			assert_true(p.data < 300);
	}
	assert_int_equal(coded_plan_parity_max(1), 127);
	assert_int_equal(coded_plan_parity_max(200), 55);
	assert_int_equal(coded_plan_parity_max(223), 32);
	assert_int_equal(coded_plan_parity_max(992), 32);
}

TEST(bursts_cost_little_where_groups_are_many)
{
	struct coded_link single = link_with(1e-3, 1), bursts = link_with(1e-3, 16);
	struct ec_layout a, b;

	coded_plan_make(&a, 32768, &single);
	coded_plan_make(&b, 32768, &bursts);
	assert_in_range(b.parity, a.parity, a.parity + 2);
	coded_plan_make(&a, 256, &single);
	coded_plan_make(&b, 256, &bursts);
	assert_true(b.parity > 4 * a.parity); /* two groups share each burst */
}

static const uint8_t golden_tail[CODED_PLAN_LEN] = {0, 0, 0x80, 0, 0, 0, 0x10, 0, 0, 250, 0, 44, 0, 5, 0, 1};
/* 1000 chunks by XOR (32, 8), 4 groups a block, and Selective Repeat that names; 25 ms, given up after 30. */
static const uint8_t golden_code[CODED_PLAN_LEN_MAX] = {
	0, 0, 3, 0xe8, 0, 0, 0, 0, 0, 32, 0, 4, 0, 8, 0, 62, 0, 0, 0x61, 0xa8, 0, 0, 0x75, 0x30,
};

TEST(a_plan_is_read_as_it_was_written)
{
	const struct coded_plan p = {
		.layout = {.pieces = 32768, .first = 4096, .data = 250, .depth = 44, .parity_max = 5}, .ended = true};
	const struct coded_plan c = {.layout = {.pieces = 1000, .data = 32, .depth = 4, .parity_max = 8},
				     .chunks = true,
				     .is_xor = true,
				     .repeats = true,
				     .nack = true,
				     .rtt_ns = 25000000,
				     .wait_ns = 30000000};
	uint8_t at[CODED_PLAN_LEN_MAX];
	struct coded_plan q;

	assert_int_equal(coded_plan_encode(at, &p), CODED_PLAN_LEN);
	assert_memory_equal(at, golden_tail, CODED_PLAN_LEN);
	assert_true(coded_plan_decode(&q, at));
	assert_true(q.ended && !q.chunks && !q.is_xor && !q.repeats && !q.nack && !q.rtt_ns);
	assert_int_equal(q.layout.first, 4096);
	assert_int_equal(q.layout.groups, 115);
	assert_int_equal(q.layout.parity, 5);
	assert_int_equal(coded_plan_encode(at, &c), CODED_PLAN_LEN_MAX);
	assert_memory_equal(at, golden_code, CODED_PLAN_LEN_MAX);
	assert_true(coded_plan_decode(&q, at));
	assert_true(!q.ended && q.chunks && q.is_xor && q.repeats && q.nack);
	assert_true(q.rtt_ns == 25000000 && q.wait_ns == 30000000);
}

/* Each row spoils two bytes. */
TEST(plans_that_make_no_sense_are_refused)
{
	static const struct {
		bool code;
		uint8_t at, high, low;
	} row[] = {
		{false, 12, 0, EC_WIDE_PARITY_MAX + 1}, /* of a wide group */
		{false, 8, EC_WIDE_DATA_MAX >> 8, (EC_WIDE_DATA_MAX & 255) + 1},
		{false, 8, 0, 0},
		{false, 10, 0, 0},
		{false, 14, 0, 64}, /* an unknown flag */
		{false, 14, 0, 4},  /* XOR without Selective Repeat */
		{true, 14, 0, 54},
		{true, 12, 0, 33}, /* more parities than data */
		{true, 8, 1, 0},   /* wide */
		{true, 4, 255, 255},
		{true, 0, 255, 255},
	};
	struct coded_plan q;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint8_t at[CODED_PLAN_LEN_MAX] = {0};

		memcpy(at, row[i].code ? golden_code : golden_tail, row[i].code ? CODED_PLAN_LEN_MAX : CODED_PLAN_LEN);
		if (!row[i].code)
			at[9] = 251; /* and 5 parities are 256: a wide group */
		assert_true(coded_plan_decode(&q, at));
		at[row[i].at] = row[i].high;
		at[row[i].at + 1] = row[i].low;
		assert_false(coded_plan_decode(&q, at));
	}
}

/* Any bytes: what is taken comes out again as it went in. */
TEST(any_plan_is_a_layout_or_refused)
{
	uint32_t taken = 0;
	struct prng rng;

	prng_init(&rng, 3);
	for (int i = 0; i < 200000; i++) {
		uint8_t at[CODED_PLAN_LEN_MAX], again[CODED_PLAN_LEN_MAX];
		struct coded_plan p;
		uint16_t len;

		for (int k = 0; k < CODED_PLAN_LEN_MAX; k++)
			at[k] = k == 8 || k == 10 || k == 12 || k == 14 ? 0 : (uint8_t)prng_next(&rng);
		at[0] &= 127;
		at[4] = 0;
		at[15] &= 63;
		if (!coded_plan_decode(&p, at))
			continue;
		taken++;
		assert_true(ec_layout_settle(&p.layout));
		len = coded_plan_encode(again, &p);
		if (p.rtt_ns || !(at[15] & CODED_PLAN_TIMES))
			assert_memory_equal(at, again, len);
	}
	assert_true(taken > 1000);
}

TEST(a_state_is_read_as_it_was_written)
{
	static const uint8_t golden[CODED_STATE_LEN] = {0, 0, 1, 0, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1};
	struct coded_state s = {256, 3, 2, true}, t;
	uint8_t at[CODED_STATE_LEN];

	coded_state_encode(at, &s);
	assert_memory_equal(at, golden, sizeof(golden));
	assert_true(coded_state_decode(&t, at));
	assert_int_equal(t.seen, 256);
	assert_true(t.whole);
	at[11] = 4; /* more bursts than losses */
	assert_false(coded_state_decode(&t, at));
}

TEST(the_estimate_is_upwards_and_comes_near)
{
	struct loss_estimate e;

	loss_estimate_init(&e);
	assert_true(loss_estimate_high(&e) >= 1e-2);
	for (int i = 0; i < 10; i++) {
		loss_estimate_add(&e, 32768, 33, 33);
		assert_true(loss_estimate_high(&e) > 1e-3);
	}
	assert_true(loss_estimate_high(&e) < 1.25e-3);
	for (int i = 0; i < 10; i++)
		loss_estimate_add(&e, 1 << 20, 1049, 66);
	assert_true(loss_estimate_burst(&e) > 10);
	loss_estimate_init(&e);
	loss_estimate_add(&e, 1 << 22, 0, 0);
	assert_true(loss_estimate_high(&e) <= 1.01e-5);
}

TEST(copies_grow_with_loss)
{
	assert_int_equal(coded_copies(300, 1e-3), 2); /* 300 packets, 1e-6 */
	assert_int_equal(coded_copies(3000, 1e-2), 4);
	assert_int_equal(coded_copies(1, 0), 1);
	assert_int_equal(coded_copies(1e6, 0.5), 8);
}
