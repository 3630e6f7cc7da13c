/* SPDX-License-Identifier: BSD-2-Clause */
/* The contract of cc.h, for every algorithm. */
#include "cc/cc.h"

#include "base/prng.h"
#include "cc/params.h"
#include "support/test.h"

enum { MTU = 4096 };

/* Those whose window grows from what it is given, and shrinks with losses. */
#define FIRST_WINDOW CC_SWIFT
#define LAST_WINDOW  CC_DCTCP

static const struct cc_config config = {
	.mtu_bytes = MTU,
	.base_rtt_ns = 12000,
	.cwnd_bytes_start = 64 << 10,
	.cwnd_bytes_min = MTU,
	.cwnd_bytes_max = 16 << 20,
};

TEST(names_go_there_and_back)
{
	enum cc_algorithm a;

	for (int i = 0; i < CC_ALGORITHMS; i++) {
		a = CC_ALGORITHMS;
		assert_true(cc_by_name(cc_name((enum cc_algorithm)i), &a));
		assert_int_equal(a, i);
	}
	a = CC_DCTCP;
	assert_false(cc_by_name("reno", &a));
	assert_false(cc_by_name("", &a));
	assert_int_equal(a, CC_DCTCP);
}

TEST(only_some_need_the_network_to_speak)
{
	for (enum cc_algorithm a = CC_NONE; a < CC_ALGORITHMS; a++) {
		assert_int_equal(cc_needs_int(a), !strcmp(cc_name(a), "hpcc"));
	}
}

TEST(none_hears_nothing)
{
	struct cc_config wide = config;
	struct cc c;

	wide.cwnd_bytes_max = UINT64_MAX;
	cc_init(&c, CC_NONE, &wide, 0);
	assert_int_equal(c.cwnd_bytes, UINT64_MAX);
	cc_init(&c, CC_NONE, &config, 0);
	cc_on_sent(&c, 0, 0, MTU);
	cc_on_loss(&c, 1, CC_LOSS_RTO);
	cc_on_cnp(&c, 1);
	cc_on_rtt(&c, 1, 1000000000);
	cc_on_timer(&c, 1);
	cc_on_ack(&c, 1, &(struct cc_ack){.acked_bytes = MTU, .ecn_bytes = MTU, .rtt_ns = 1});
	assert_int_equal(c.cwnd_bytes, 16 << 20);
	assert_true(c.rate_bps == CC_UNPACED);
	assert_true(c.deadline_ns == CC_NO_DEADLINE);
}

TEST(start_window_is_what_the_path_holds_if_that_is_known)
{
	struct cc_config k = {.mtu_bytes = MTU, .line_rate_bps = 100000000000, .base_rtt_ns = 13000};
	struct cc c;

	for (enum cc_algorithm a = FIRST_WINDOW; a <= LAST_WINDOW; a++) {
		k.base_rtt_ns = 13000;
		cc_init(&c, a, &k, 0);
		assert_int_equal(c.cwnd_bytes, 162500);
		k.base_rtt_ns = 0;
		cc_init(&c, a, &k, 0);
		assert_int_equal(c.cwnd_bytes, 10 * MTU);
	}
}

TEST(rates_begin_at_that_of_the_line)
{
	for (enum cc_algorithm a = LAST_WINDOW + 1; a < CC_DELIVERY; a++) {
		struct cc_config k = {.mtu_bytes = MTU, .line_rate_bps = 25000000000, .base_rtt_ns = 10000};
		struct cc_params p;
		struct cc c;

		cc_init(&c, a, &k, 0);
		assert_in_range(c.rate_bps, 24999000000, 25000000000);
		assert_true(c.deadline_ns == CC_NO_DEADLINE);
		cc_params_default(&p, a);
		assert_int_equal(cc_params_set(&p, "window", "on"), 0);
		k.params = &p;
		if (a != CC_HPCC) {
			assert_int_equal(c.cwnd_bytes, CC_CWND_BYTES_LIMIT);
			cc_init(&c, a, &k, 0);
			assert_int_equal(c.cwnd_bytes, 31250);
			cc_on_loss(&c, 0, CC_LOSS_RTO);
			assert_int_equal(c.rate_bps, 12500000000);
			assert_int_equal(c.cwnd_bytes, 15625);
		}
		k.line_rate_bps = 0;
		cc_init(&c, a, &k, 0);
		assert_in_range(c.rate_bps, 99990000000, 100000000000);
	}
}

TEST(contradictory_bounds_are_put_in_order)
{
	struct cc_config k = {.cwnd_bytes_start = 5, .cwnd_bytes_min = 100, .cwnd_bytes_max = 50};
	struct cc c;

	for (enum cc_algorithm a = CC_NONE; a < CC_ALGORITHMS; a++) {
		cc_init(&c, a, &k, 0);
		assert_int_equal(c.cwnd_bytes, 50);
	}
}

/* Rounds of all of the window, of one packet each, with nothing wrong. */
static uint64_t after_rounds(enum cc_algorithm a, int rounds, uint64_t used_bytes)
{
	uint64_t now_ns = 0, seq = 0;
	struct cc c;

	cc_init(&c, a, &config, 0);
	for (int i = 0; i < rounds; i++) {
		uint64_t left = used_bytes ? used_bytes : c.cwnd_bytes, nxt = seq + left;

		now_ns += 12000;
		for (; left >= MTU; left -= MTU) {
			seq += MTU;
			cc_on_ack(&c, now_ns,
				  &(struct cc_ack){.acked_bytes = MTU,
						   .acked_packets = 1,
						   .ack_seq = seq,
						   .snd_nxt = nxt,
						   .rtt_ns = 12000});
		}
	}
	return c.cwnd_bytes;
}

TEST(a_window_in_use_doubles_to_its_bound)
{
	for (enum cc_algorithm a = FIRST_WINDOW; a <= LAST_WINDOW; a++) {
		assert_in_range(after_rounds(a, 4, 0), (64 << 10) * 14, (64 << 10) * 16);
		assert_int_equal(after_rounds(a, 12, 0), 16 << 20);
	}
}

TEST(a_window_not_in_use_does_not_grow)
{
	for (enum cc_algorithm a = FIRST_WINDOW; a <= LAST_WINDOW; a++) {
		assert_int_equal(after_rounds(a, 1000, MTU), 64 << 10);
		assert_int_equal(after_rounds(a, 1000, 6 * MTU), 64 << 10);
		/* half of it is use */
		assert_in_range(after_rounds(a, 1000, 8 * MTU), 16 * MTU + 1, 33 * MTU);
	}
}

TEST(only_sack_holes_are_ignored)
{
	for (enum cc_algorithm a = FIRST_WINDOW; a <= LAST_WINDOW; a++) {
		for (int ignored = 0; ignored < 2; ignored++) {
			for (int loss = CC_LOSS_TRIM; loss <= CC_LOSS_RTO; loss++) {
				struct cc_config k = config;
				struct cc c, before;

				k.loss_ignored = ignored;
				cc_init(&c, a, &k, 0);
				before = c;
				cc_on_loss(&c, 1000000, (enum cc_loss)loss);
				if (ignored && loss == CC_LOSS_SACK_HOLE)
					assert_memory_equal(&c, &before, sizeof(c));
				else
					assert_true(c.cwnd_bytes <= before.cwnd_bytes / 2);
			}
		}
	}
}

/*
 * 400 Gbit/s, a second there and back, 4 GiB of window, the longest delays a clock can tell:
 * nothing overflows, and the window goes the right way.
 */
TEST(extremes_do_not_overflow)
{
	for (enum cc_algorithm a = FIRST_WINDOW; a <= LAST_WINDOW; a++) {
		struct cc_config k = {
			.line_rate_bps = 400000000000,
			.base_rtt_ns = 1000000000,
			.mtu_bytes = UINT32_MAX,
			.cwnd_bytes_start = UINT64_C(4) << 30,
			.cwnd_bytes_max = UINT64_MAX,
		};
		struct cc_ack ack = {.acked_bytes = UINT64_C(4) << 30,
				     .acked_packets = 1 << 20,
				     .ack_seq = UINT64_C(4) << 30,
				     .snd_nxt = UINT64_C(8) << 30,
				     .rtt_ns = 1000000000,
				     .hops = UINT8_MAX};
		struct cc c;

		cc_init(&c, a, &k, 0);
		cc_on_ack(&c, 1000000000, &ack);
		assert_int_equal(c.cwnd_bytes, UINT64_C(8) << 30);
		ack.acked_bytes = UINT64_MAX;
		ack.ack_seq = ack.snd_nxt = UINT64_MAX - 1;
		cc_on_ack(&c, 2000000000, &ack);
		cc_on_ack(&c, 3000000000, &ack);
		assert_true(c.cwnd_bytes > UINT64_C(8) << 30);
		assert_true(c.cwnd_bytes <= CC_CWND_BYTES_LIMIT);
		ack.ecn_bytes = UINT64_MAX;
		ack.ecn_packets = UINT32_MAX;
		ack.rtt_ns = UINT64_MAX;
		ack.remote_ns = ack.local_ns = UINT64_MAX;
		ack.ack_seq = ack.snd_nxt = UINT64_MAX;
		uint64_t before = c.cwnd_bytes;
		cc_on_ack(&c, UINT64_MAX - 1, &ack);
		assert_true(c.cwnd_bytes < before);
		cc_on_loss(&c, UINT64_MAX - 1, CC_LOSS_RTO);
		assert_true(c.cwnd_bytes >= 1);
	}
}

TEST(same_calls_give_the_same_block)
{
	for (enum cc_algorithm a = CC_NONE; a < CC_ALGORITHMS; a++) {
		struct cc c[2];

		memset(c, 0, sizeof(c));
		for (int i = 0; i < 2; i++) {
			uint64_t now_ns = 0, seq = 0;
			struct prng p;

			prng_init(&p, 42);
			cc_init(&c[i], a, &config, 0);
			for (int n = 0; n < 10000; n++) {
				now_ns += prng_below(&p, 2000);
				seq += MTU;
				cc_on_ack(&c[i], now_ns,
					  &(struct cc_ack){.acked_bytes = MTU,
							   .acked_packets = 1,
							   .ack_seq = seq,
							   .snd_nxt = seq + c[i].cwnd_bytes,
							   .ecn_packets = !prng_below(&p, 40),
							   .rtt_ns = 12000 + prng_below(&p, 40000)});
			}
		}
		assert_int_equal(c[0].cwnd_bytes, c[1].cwnd_bytes);
		assert_int_equal(c[0].rate_bps, c[1].rate_bps);
	}
}
