/* SPDX-License-Identifier: BSD-2-Clause */
#include "sdr/model/ring.h"
#include "support/test.h"

#include <math.h>

enum { TRIALS = 4000 };

static double times[TRIALS], again[TRIALS];

static struct model_ring ring(unsigned nodes, double loss)
{
	return (struct model_ring){.nodes = nodes,
				   .message = {.chunks = 32768.0 / nodes,
					       .inject_s = 4096 * 8 / 400e9,
					       .rtt_s = 25e-3,
					       .chunk_loss = loss},
				   .rto_s = 75e-3};
}

TEST(without_loss_every_round_takes_one_message)
{
	struct model_ring r = ring(4, 0);

	model_ring_run(&r, 1, times, 10);
	assert_true(fabs(times[9] - 6 * model_ideal(&r.message)) < 1e-6);
	r.receiver_gated = true;
	model_ring_run(&r, 1, times, 10);
	assert_true(fabs(times[9] - (6 * (model_ideal(&r.message) - 12.5e-3) + 12.5e-3)) < 1e-6);
}

/* The ratio of the 99.9th percentiles of selective repeat and (32, 8) at four nodes and 128 MiB: it
 * grows with loss. */
TEST(loss_costs_repeats_several_times_what_coding_costs)
{
	static const struct model_code code = {.data = 32, .parity = 8, .wait_rtts = 1};
	static const double losses[] = {1e-6, 1e-4, 1e-3, 1e-2}, ratios[] = {1.96, 3.89, 4.86, 7.76};

	for (int i = 0; i < 4; i++) {
		struct model_ring r = ring(4, losses[i]);
		struct model_time sr, ec;

		model_ring_run(&r, 1, times, TRIALS);
		model_time_of(times, TRIALS, &sr);
		r.code = &code;
		model_ring_run(&r, 1, times, TRIALS);
		model_time_of(times, TRIALS, &ec);
		assert_true(fabs(sr.p999_s / ec.p999_s - ratios[i]) < 0.05 * ratios[i]);
	}
}

/* Six rounds of four nodes: without a second round all take the same, and with one in each message 1.1 round trips
 * more. */
TEST(tails_take_their_two_times)
{
	struct model_tail tail = {.coded = 8192, .groups = 32, .data = 256, .parity = 4};
	struct model_ring r = ring(4, 1e-12);
	struct model_time bound;

	r.tail = &tail;
	model_ring_run(&r, 1, times, 10);
	assert_true(fabs(times[9] - 6 * (model_ideal(&r.message) + 128 * r.message.inject_s)) < 1e-6);
	tail.parity = 0;
	r.message.chunk_loss = 0.01; /* no message does without a repetition */
	model_ring_run(&r, 1, times, 10);
	assert_true(fabs(times[0] - 6 * (model_ideal(&r.message) + 1.1 * 25e-3)) < 1e-3);
	r.is_bound = true;
	model_ring_run(&r, 1, times, TRIALS);
	model_time_of(times, TRIALS, &bound);
	assert_true(bound.mean_s > 6 * model_ideal(&r.message) && bound.p999_s < 6.1 * model_ideal(&r.message));
}

TEST(the_same_seed_gives_the_same_times_in_ascending_order)
{
	struct model_ring r = ring(2, 1e-3);

	model_ring_run(&r, 7, times, 500);
	model_ring_run(&r, 7, again, 500);
	assert_memory_equal(times, again, 500 * sizeof(*times));
	for (int i = 1; i < 500; i++)
		assert_true(times[i - 1] <= times[i]);
	model_ring_run(&r, 8, again, 500);
	assert_memory_not_equal(times, again, 500 * sizeof(*times));
}
