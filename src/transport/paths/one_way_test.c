/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues on the way back are told apart from those on the way there, whatever the clocks of the two hosts do. */
#include "base/prng.h"
#include "support/test.h"
#include "transport/paths/one_way.h"

enum { THERE_NS = 4000, BACK_NS = 8000, STEP_NS = 20000, SECOND_STEPS = 50000 };

/* And how much the peer's clock is ahead. */
struct ways {
	struct one_way one_way;
	uint32_t ahead_ns;
	uint64_t now_ns;
};

/* A sample whose ways have those queues; what it tells. */
static uint32_t sample(struct ways *w, uint32_t there_queue_ns, uint32_t back_queue_ns)
{
	uint64_t rtt_ns = THERE_NS + there_queue_ns + BACK_NS + back_queue_ns;

	w->now_ns += STEP_NS;
	return one_way_waited_ns(&w->one_way, THERE_NS + there_queue_ns + w->ahead_ns, rtt_ns, w->now_ns);
}

TEST(a_queue_on_the_way_back_is_told_whatever_the_clocks_say)
{
	static const uint32_t ahead_ns[] = {0, 1, 123456789, INT32_MAX, 1u << 31, UINT32_MAX - THERE_NS, UINT32_MAX};

	for (size_t i = 0; i < sizeof(ahead_ns) / sizeof(ahead_ns[0]); i++) {
		struct ways w = {.ahead_ns = ahead_ns[i]};

		assert_int_equal(sample(&w, 0, 0), 0);
		assert_int_equal(sample(&w, 0, 5000), 5000);
		assert_int_equal(sample(&w, 7000, 0), 0);
		assert_int_equal(sample(&w, 7000, 5000), 5000);
		assert_int_equal(sample(&w, 1000000, 300000), 300000);
	}
}

/* The first sample may have met a queue, and it may never have been empty on both ways at once. */
TEST(what_was_there_before_is_no_queue_until_it_is_gone)
{
	struct ways w = {0};

	assert_int_equal(sample(&w, 2000, 1000), 0);
	assert_int_equal(sample(&w, 2000, 1500), 500);
	assert_int_equal(sample(&w, 2000, 0), 0);
	assert_int_equal(sample(&w, 0, 1000), 1000);
	assert_int_equal(sample(&w, 0, 1500), 1500);
}

/*
 * Within 10 ppm a queue on the way there is never told to be one on the way back, whoever is faster; and what is told
 * is short by twice that at most.
 */
TEST(clocks_that_drift_a_little_hide_no_queue_on_the_way_there)
{
	for (int faster = 0; faster < 2; faster++) {
		struct ways w = {.ahead_ns = UINT32_MAX / 2};

		sample(&w, 0, 0);
		for (uint32_t i = 1; i < 2 * SECOND_STEPS; i++) {
			bool back = i % 100 == 0;
			uint32_t told, most_ns = 1 + i / 5 / 5 * 2;

			if (i % 5 == 0)
				w.ahead_ns += faster ? 1 : UINT32_MAX;
			told = sample(&w, 30000, back ? 40000 : 0);
			assert_true(told <= (back ? 40000 : 0));
			assert_true(told + (most_ns < 20 ? 20 : most_ns) >= (back ? 40000 - 20 : 0));
		}
	}
}

/* A queue that stands is forgotten by 10 us a second. */
TEST(a_queue_on_the_way_back_counts_again_when_it_has_stood_for_long)
{
	struct ways w = {0};
	uint32_t told = 0;

	sample(&w, 0, 0);
	for (uint32_t i = 0; i < SECOND_STEPS; i++)
		told = sample(&w, 0, 25000);
	assert_in_range(told, 25000 - 10001, 25000 - 9999);
	for (uint32_t i = 0; i < 2 * SECOND_STEPS; i++)
		told = sample(&w, 0, 25000);
	assert_int_equal(told, 0);
	assert_int_equal(sample(&w, 0, 0), 0);
	assert_int_equal(sample(&w, 0, 25000), 25000);
}

TEST(clocks_that_were_stepped_tell_nothing_for_ten_seconds)
{
	static const int32_t steps_ns[] = {4000, -4000, 1000000, -1000000, INT32_MAX, -INT32_MAX};

	for (size_t i = 0; i < sizeof(steps_ns) / sizeof(steps_ns[0]); i++) {
		struct ways w = {.ahead_ns = 5};

		sample(&w, 0, 0);
		assert_int_equal(sample(&w, 0, 5000), 5000);
		w.ahead_ns += (uint32_t)steps_ns[i];
		sample(&w, 0, 0);
		for (uint32_t k = 0; k < 10 * SECOND_STEPS - 1; k++)
			assert_int_equal(sample(&w, 0, 5000), 0);
		w.now_ns += STEP_NS;
		assert_int_equal(sample(&w, 0, 0), 0);
		assert_int_equal(sample(&w, 0, 5000), 5000);
	}
}

/* 50 ppm, and the way there is free now and then: what is told is wrong by a fourth of a round trip, and then nothing is. */
TEST(clocks_that_drift_fast_tell_nothing)
{
	for (int faster = 0; faster < 2; faster++) {
		struct ways w = {0};
		uint32_t told = 0;

		for (uint32_t i = 0; i < 5 * SECOND_STEPS; i++) {
			uint32_t queue_ns = i % 8 ? 20000 : 0, waited_ns;

			w.ahead_ns += faster ? 1 : UINT32_MAX;
			waited_ns = sample(&w, queue_ns, 0);
			assert_true(waited_ns <= (THERE_NS + BACK_NS) / 4 + 20);
			told += waited_ns > 100;
		}
		assert_true(told <= SECOND_STEPS);
		assert_true(w.now_ns < w.one_way.apart_until_ns);
	}
}

/* A shorter way, and a longer one, which is a queue until it has been there for long. */
TEST(a_new_route_is_not_a_stepped_clock)
{
	struct ways w = {0};

	sample(&w, 10000, 10000);
	assert_int_equal(sample(&w, 10000, 12000), 2000);
	assert_int_equal(sample(&w, 0, 0), 0);
	assert_int_equal(sample(&w, 0, 2000), 2000);
	assert_int_equal(sample(&w, 50000, 2000), 2000);
	assert_int_equal(w.one_way.apart_until_ns, 0);
}

TEST(after_a_long_silence_all_begins_anew)
{
	struct ways w = {0};

	sample(&w, 0, 0);
	w.now_ns += UINT64_C(10000000000);
	w.ahead_ns += 1000000;
	assert_int_equal(sample(&w, 0, 5000), 0);
	assert_int_equal(w.one_way.apart_until_ns, 0);
	assert_int_equal(sample(&w, 0, 6000), 1000);
}

TEST(made_up_stamps_tell_of_less_than_a_round_trip)
{
	struct one_way o = {.wanted = true};
	uint64_t now_ns = 1;
	struct prng prng;

	prng_init(&prng, 7);
	for (uint32_t i = 0; i < 1000000; i++) {
		uint64_t rtt_ns = 1 + prng_below(&prng, prng_below(&prng, 2) ? 100000 : 1u << 31);
		uint32_t there_ns = (uint32_t)prng_next(&prng);

		if (prng_below(&prng, 2))
			there_ns = (uint32_t)prng_below(&prng, rtt_ns);
		now_ns += prng_below(&prng, prng_below(&prng, 100) ? 100000 : UINT64_C(20000000000));
		assert_true(one_way_waited_ns(&o, there_ns, rtt_ns, now_ns) < rtt_ns);
		if (!prng_below(&prng, 100))
			o.apart_until_ns = 0;
	}
}
