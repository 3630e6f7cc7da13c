/* SPDX-License-Identifier: BSD-2-Clause */
#include "cc/cc.h"

#include "base/prng.h"
#include "cc/link_model.h"
#include "cc/params.h"
#include "support/cc_checks.h"

static const struct cc_config config = {.line_rate_bps = 40 * GBPS, .base_rtt_ns = 12000, .mtu_bytes = 1000};

static struct cc_params params_of(const char *preset)
{
	struct cc_params p;

	cc_params_default(&p, CC_DCQCN);
	assert_int_equal(cc_params_preset(&p, preset), 0);
	return p;
}

static void assert_state(const struct cc *c, double target_mbps, double rate_mbps, double alpha)
{
	assert_close((double)c->dcqcn.target_bps / 1e6, target_mbps);
	assert_close((double)c->rate_bps / 1e6, rate_mbps);
	assert_close((double)c->dcqcn.alpha_q32 / Q32, alpha);
}

/* Three CNPs 50 us apart on 40 Gbit/s, then silence: by hand, from the paper's equations. */
TEST(cuts_and_recovery_are_the_worked_ones)
{
	static const struct {
		int round;
		double target, rate, alpha;
	} rows[] = {
		{1, 10000, 7500, 0.996094},       {2, 10000, 8750, 0.992203},    {3, 10000, 9375, 0.988327},
		{4, 10000, 9687.5, 0.984466},     {5, 10040, 9863.75, 0.980621}, {6, 10080, 9971.875, 0.976790},
		{12, 10320, 10278.936, 0.954119},
	};
	struct cc_params p = params_of("paper");
	struct cc_config k = config;
	int round = 0;
	struct cc c;

	k.params = &p;
	cc_init(&c, CC_DCQCN, &k, 0);
	assert_true(c.deadline_ns == CC_NO_DEADLINE);
	cc_on_cnp(&c, 0);
	assert_state(&c, 40000, 20000, 1);
	cc_on_cnp(&c, 50 * US);
	assert_state(&c, 20000, 10000, 1);
	cc_on_cnp(&c, 100 * US);
	assert_state(&c, 10000, 5000, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		while (round < rows[i].round) {
			assert_int_equal(c.deadline_ns, (100 + 55 * ++round) * US);
			cc_on_timer(&c, c.deadline_ns);
		}
		assert_state(&c, rows[i].target, rows[i].rate, rows[i].alpha);
	}
}

/* The paper in real numbers, with CNPs, bytes and pauses at random. */
TEST(follows_a_model_of_real_numbers)
{
	struct cc_params p = params_of("paper");
	double rate = 40e9, target = 40e9, alpha = 1;
	uint64_t now_ns = 0, alpha_ns = 0, inc_ns = UINT64_MAX, bytes = 0;
	unsigned int t = 0, bc = 0, hyper = 0;
	struct cc_config k = config;
	struct prng prng;
	struct cc c;

	assert_int_equal(cc_params_set(&p, "bytes", "300KB"), 0);
	k.params = &p;
	prng_init(&prng, 21);
	cc_init(&c, CC_DCQCN, &k, 0);
	for (int i = 0; i < 100000; i++) {
		bool step = false;

		now_ns += prng_below(&prng, 4 * US);
		while (alpha_ns + 55 * US <= now_ns) {
			alpha *= 255. / 256;
			alpha_ns += 55 * US;
		}
		if (c.deadline_ns <= now_ns) {
			now_ns = c.deadline_ns;
			assert_int_equal(now_ns, inc_ns);
			cc_on_timer(&c, now_ns);
			inc_ns += 55 * US;
			t++;
			step = true;
		} else if (!prng_below(&prng, 700)) {
			cc_on_cnp(&c, now_ns);
			target = rate;
			rate *= 1 - alpha / 2;
			rate = rate < 4e6 ? 4e6 : rate;
			alpha = alpha * 255 / 256 + 1. / 256;
			alpha_ns = now_ns;
			t = bc = 0;
			bytes = 0;
			inc_ns = now_ns + 55 * US;
		} else {
			cc_on_sent(&c, now_ns, 0, 9000);
			if (inc_ns != UINT64_MAX)
				bytes += 9000;
			if (bytes >= 300000) {
				bytes -= 300000;
				bc++;
				step = true;
			}
		}
		if (step) {
			unsigned int most = t > bc ? t : bc, least = t < bc ? t : bc;

			if (least > 5)
				target += (least - 5) * 200e6;
			else if (most >= 5)
				target += 40e6;
			hyper += least > 5;
			target = target > 40e9 ? 40e9 : target;
			rate = (rate + target) / 2;
			if (c.rate_bps == 40 * GBPS)
				rate = target = 40e9;
		}
		if (c.deadline_ns == CC_NO_DEADLINE)
			inc_ns = UINT64_MAX;
		assert_close((double)c.rate_bps, rate);
		assert_close((double)c.dcqcn.target_bps, target);
	}
	assert_true(hyper > 100);
}

TEST(losses_are_cnps_at_most_once_an_interval)
{
	for (enum cc_loss_policy policy = CC_LOSS_OWN; policy < CC_LOSS_POLICIES; policy++) {
		struct cc_params p = params_of("paper");
		struct cc_config k = config;
		struct cc c;

		p.loss = policy;
		k.params = &p;
		cc_init(&c, CC_DCQCN, &k, 0);
		cc_on_loss(&c, 0, CC_LOSS_SACK_HOLE);
		assert_int_equal(c.rate_bps, policy == CC_LOSS_IGNORE ? 40 * GBPS : 20 * GBPS);
		cc_on_loss(&c, 5 * US, CC_LOSS_TRIM);
		cc_on_loss(&c, 5 * US, CC_LOSS_NAK);
		assert_int_equal(c.rate_bps, 20 * GBPS);
		cc_on_loss(&c, 30 * US, CC_LOSS_NAK);
		assert_int_equal(c.rate_bps, policy == CC_LOSS_HALVE ? 10 * GBPS : 20 * GBPS);
		cc_on_loss(&c, 31 * US, CC_LOSS_RTO);
		assert_int_equal(c.rate_bps, policy == CC_LOSS_HALVE ? 5 * GBPS : 10 * GBPS);
		assert_int_equal(c.dcqcn.target_bps, 2 * c.rate_bps);
	}
}

TEST(an_idle_flow_sleeps_within_a_second)
{
	struct cc_params p = params_of("paper");
	struct cc_config k = config;
	uint64_t at_ns = 0;
	struct cc c;

	p.dcqcn.rate_ai = 1;
	k.params = &p;
	cc_init(&c, CC_DCQCN, &k, 0);
	for (int i = 0; i < 100; i++)
		cc_on_cnp(&c, 0);
	assert_int_equal(c.rate_bps, 4000000);
	while (c.deadline_ns != CC_NO_DEADLINE) {
		at_ns = c.deadline_ns;
		cc_on_timer(&c, at_ns);
	}
	assert_in_range(at_ns, 500 * MS, 501 * MS);
	assert_int_equal(c.rate_bps, 40 * GBPS);
}

TEST(a_rate_comes_back_to_the_line_and_then_nothing_ticks)
{
	struct cc_params p = params_of("paper");
	struct cc_config k = config;
	struct cc c;

	k.params = &p;
	cc_init(&c, CC_DCQCN, &k, 0);
	for (int i = 0; i < 10; i++)
		cc_on_cnp(&c, 0);
	for (int i = 0; c.deadline_ns != CC_NO_DEADLINE; i++) {
		assert_in_range(i, 0, 1100); /* 40 Mbit/s each */
		cc_on_sent(&c, c.deadline_ns, 0, 1000);
		cc_on_timer(&c, c.deadline_ns);
	}
	assert_int_equal(c.rate_bps, 40 * GBPS);
}

static struct link l;

static void start(unsigned int flows, const struct cc_params *p)
{
	while (flows--)
		link_start(&l, CC_DCQCN, p);
}

static void set_up(uint64_t kmin_bytes, uint64_t kmax_bytes, uint64_t percent)
{
	link_init(&l, 40 * GBPS, 12000, 1000, 1);
	l.cnps = true;
	l.cnp_gap_ns = 50 * US;
	l.kmin_bytes = kmin_bytes;
	l.kmax_bytes = kmax_bytes;
	l.pmax_q32 = (UINT64_C(1) << 32) * percent / 100;
}

TEST(one_flow_hears_nothing_and_takes_it_all)
{
	struct cc_params p = params_of("default");

	set_up(5000, 200000, 1);
	start(1, &p);
	link_run(&l, 10 * MS);
	assert_int_equal(l.flows[0].cnps, 0);
	assert_true(l.flows[0].acked * 8 >= UINT64_C(396000000));
	assert_true(l.queue_bytes_max <= 1000);
}

/* Of two, the second of which begins 20 ms later, over 300 ms from 20 ms after that. */
static double least_share(const struct cc_params *p, double *used)
{
	uint64_t a, b;

	set_up(5000, 200000, 1);
	start(1, p);
	link_run(&l, 20 * MS);
	start(1, p);
	link_run(&l, 40 * MS);
	a = l.flows[0].acked;
	b = l.flows[1].acked;
	l.queue_bytes_max = 0;
	link_run(&l, 340 * MS);
	a = l.flows[0].acked - a;
	b = l.flows[1].acked - b;
	*used = (double)(a + b) * 8 / 300e6 / 40;
	print_message("%.4f of the link, shares %.4f, queue %llu bytes\n", *used,
		      (double)(a < b ? a : b) / (double)(a + b), (unsigned long long)l.queue_bytes_max);
	return (double)(a < b ? a : b) / (double)(a + b);
}

/*
 * A flow gets a CNP every millisecond or so, each CNP takes up to a half, and chance decides which
 * flow gets it. So shares are even in the mean over many CNPs, not over 20 ms.
 */
TEST_MANY(two_flows_share_in_the_mean)
{
	struct cc_params p = params_of("default");
	double used;

	for (int window = 0; window < 2; window++) {
		p.window = window;
		assert_true(least_share(&p, &used) >= .45);
		assert_true(used >= .95);
	}
}

/*
 * CNPs come no closer than K, so alpha stays near 1 where many flows share a port, and each CNP
 * takes nearly a half of a rate that is small already. With a window a queue remains that fills the
 * gap; without one the port runs dry now and then, more often with more flows.
 */
TEST_MANY(many_flows_fill_the_port_as_far_as_the_window_lets_them)
{
	static const struct {
		unsigned int flows;
		double plain;
	} rows[] = {{2, .95}, {8, .95}, {32, .9}, {128, .8}};

	for (int window = 0; window < 2; window++) {
		struct cc_params p = params_of("default");

		p.window = window;
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			uint64_t before = 0, sum = 0;
			double used;

			set_up(5000, 200000, 1);
			start(rows[i].flows, &p);
			link_run(&l, 20 * MS);
			for (unsigned int n = 0; n < rows[i].flows; n++)
				before += l.flows[n].acked;
			l.queue_bytes_max = 0;
			link_run(&l, 40 * MS);
			for (unsigned int n = 0; n < rows[i].flows; n++)
				sum += l.flows[n].acked;
			used = (double)(sum - before) * 8 / 20e6 / 40;
			print_message("%u flows%s: %.4f of the link, queue %llu bytes\n", rows[i].flows,
				      window ? " +w" : "", used, (unsigned long long)l.queue_bytes_max);
			assert_true(used >= (window ? .95 : rows[i].plain));
			assert_true(l.queue_bytes_max < 400000);
		}
	}
}
