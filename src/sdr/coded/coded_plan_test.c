/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans: every packet of the tail is in one group, sizes add up, parities grow with loss and stay few; estimates. */

#include "sdr/coded/loss_estimate.h"
#include "sdr/coded/coded_words.h"
#include "support/test.h"

/* 4 KiB at 400 Gbit/s, 3750 km. */
static struct coded_link link_with(double loss, double burst)
{
	return (struct coded_link){.rtt_ns = 25000000, .packet_ns = 84, .loss = loss, .burst = burst};
}

TEST(each_packet_of_the_tail_is_in_one_group)
{
	static const uint32_t sizes[] = {1, 2, 7, 255, 256, 300, 2048, 32768, 32769, 262144, 700000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct coded_link l = link_with(1e-2, 1);
		struct coded_plan p;
		uint8_t *in = calloc(sizes[i], 1);
		uint32_t all = 0;

		coded_plan_make(&p, sizes[i], &l);
		for (uint32_t g = 0; g < p.groups; g++) {
			assert_in_range(coded_plan_size(&p, g), 1, p.size);
			for (uint32_t k = 0; k < coded_plan_size(&p, g); k++, all++) {
				uint32_t packet = coded_plan_packet(&p, g, k);

				assert_in_range(packet, p.tail, sizes[i] - 1);
				assert_int_equal(coded_plan_group(&p, packet), g);
				assert_int_equal(in[packet]++, 0);
			}
		}
		assert_int_equal(all, sizes[i] - p.tail);
		free(in);
	}
}

TEST(only_what_no_word_can_reach_is_coded)
{
	struct coded_link l = link_with(1e-3, 1);
	struct coded_plan p;

	coded_plan_make(&p, 2097152, &l);
	assert_in_range(p.packets - p.tail, 25000000 / 84, 25000000 / 84 * 21 / 20);
	coded_plan_make(&p, 32768, &l);
	assert_int_equal(p.tail, 0);
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
		struct coded_plan p;

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
		struct coded_plan p;

		l.feared = 10 * losses[i];
		coded_plan_make(&p, 32768, &l);
		most = coded_plan_parity_max(p.size);
		mean = l.feared * (p.size + most);
		/* Four deviations above the mean at least. */
		assert_true(most > mean && (most - mean) * (most - mean) > 16 * mean);
		if (i)
			assert_true(p.size < 300);
	}
	assert_int_equal(coded_plan_parity_max(1), 127);
	assert_int_equal(coded_plan_parity_max(200), 55);
	assert_int_equal(coded_plan_parity_max(223), 32);
	assert_int_equal(coded_plan_parity_max(992), 32);
}

TEST(bursts_cost_little_where_groups_are_many)
{
	struct coded_link single = link_with(1e-3, 1), bursts = link_with(1e-3, 16);
	struct coded_plan a, b;

	coded_plan_make(&a, 32768, &single);
	coded_plan_make(&b, 32768, &bursts);
	assert_in_range(b.parity, a.parity, a.parity + 2);
	coded_plan_make(&a, 256, &single);
	coded_plan_make(&b, 256, &bursts);
	assert_true(b.parity > 4 * a.parity); /* two groups share each burst */
}

TEST(a_plan_is_read_as_it_was_written)
{
	static const uint8_t golden[CODED_PLAN_LEN] = {0, 0, 0x80, 0, 0, 0, 0x10, 0, 0, 250, 0, 44, 0, 5, 0, 1};
	struct coded_plan p = {.packets = 32768, .tail = 4096, .size = 250, .depth = 44, .parity = 5}, q;
	uint8_t at[CODED_PLAN_LEN];
	bool ended;

	assert_int_equal(coded_plan_encode(at, &p, true), CODED_PLAN_LEN);
	assert_memory_equal(at, golden, sizeof(golden));
	assert_true(coded_plan_decode(&q, &ended, at));
	assert_true(ended);
	assert_int_equal(q.tail, 4096);
	assert_int_equal(q.groups, 115);
	at[9] = 251; /* and 5 parities are 256: a wide group */
	assert_true(coded_plan_decode(&q, &ended, at));
	at[13] = EC_WIDE_PARITY_MAX + 1;
	assert_false(coded_plan_decode(&q, &ended, at));
	at[13] = 5;
	at[8] = EC_WIDE_DATA_MAX >> 8;
	at[9] = (EC_WIDE_DATA_MAX & 255) + 1;
	assert_false(coded_plan_decode(&q, &ended, at));
	at[8] = 0;
	at[9] = 0;
	assert_false(coded_plan_decode(&q, &ended, at));
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
