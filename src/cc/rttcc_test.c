/* SPDX-License-Identifier: BSD-2-Clause */
#include "cc/cc.h"

#include "base/prng.h"
#include "cc/link_model.h"
#include "cc/params.h"
#include "support/cc_checks.h"

static const struct cc_config config = {.line_rate_bps = 100 * GBPS, .base_rtt_ns = 12000, .mtu_bytes = 1000};

/* At R = 1/n the target queue is base x alpha x sqrt(n). */
TEST(the_target_grows_with_the_root_of_the_flows)
{
	for (unsigned int n = 1; n <= 1 << 14; n *= 2) {
		uint64_t target = rttcc_target(UINT64_C(12000000000), 429496730, (UINT64_C(1) << 32) / n);

		assert_close((double)target, 12e9 * (1 + .1 * root(n)));
	}
	/* 128 flows, 12 us: 13.6 us of queue */
	assert_in_range(rttcc_target(12000, 429496730, 1 << 25), 25570, 25580);
}

TEST(follows_a_model_of_real_numbers)
{
	struct cc_config k = config;
	unsigned int good = 0;
	struct prng prng;
	double r = 1;
	struct cc c;

	prng_init(&prng, 4);
	cc_init(&c, CC_RTTCC, &k, 0);
	for (int i = 0; i < 50000; i++) {
		/* long calms, for hyper increase; queues about the target; extremes */
		bool calm = (i / 30) % 2, cnp = !prng_below(&prng, 50), nak = !prng_below(&prng, 90);
		uint64_t rtt = 12000 + prng_below(&prng, calm ? 1200 : i % 17 ? 8000 : 200000);
		double target = 12000 * (1 + .1 / root(r)), cut;

		if (cnp)
			cc_on_cnp(&c, (uint64_t)i * 20 * US);
		if (nak)
			cc_on_loss(&c, (uint64_t)i * 20 * US, CC_LOSS_NAK);
		if ((double)rtt > target - 2 && (double)rtt < target + 2)
			rtt += 10; /* the two may differ on which side of the edge this is */
		cc_on_rtt(&c, (uint64_t)i * 20 * US, rtt);
		if (nak || rtt >= 150000) {
			r *= .5;
			good = 0;
		} else if ((double)rtt > target) {
			cut = .8 * ((double)rtt - target) / (double)rtt;
			r *= 1 - (cut < .5 ? cut : .5);
			good = 0;
		} else if (cnp) {
			r *= 1 - .125;
			good = 0;
		} else {
			double step = ++good >= 5 ? .01 : .0005;

			r += step < .5 * r ? step : .5 * r;
		}
		r = r > 1 ? 1 : r < 1. / 16384 ? 1. / 16384 : r;
		assert_close((double)c.rttcc.share_q32 / Q32, r);
		assert_close((double)c.rate_bps, 100e9 * r);
	}
}

TEST(probes_follow_the_traffic_one_at_a_time)
{
	struct cc c;

	cc_init(&c, CC_RTTCC, &config, 0);
	assert_false(c.probe_wanted); /* nothing to measure for */
	cc_on_sent(&c, 1000, 0, 1000);
	assert_true(c.probe_wanted);
	cc_on_probe(&c, 2000);
	assert_false(c.probe_wanted);
	cc_on_rtt(&c, 14000, 12000);
	assert_false(c.probe_wanted); /* nothing left since */
	assert_true(c.deadline_ns == CC_NO_DEADLINE);
	cc_on_sent(&c, 15000, 1000, 1000);
	assert_true(c.probe_wanted);
	cc_on_probe(&c, 15000);
	cc_on_sent(&c, 16000, 2000, 1000);
	assert_false(c.probe_wanted); /* one is under way */
	cc_on_rtt(&c, 27000, 12000);
	assert_true(c.probe_wanted);
}

TEST(a_lost_probe_is_given_up_later_each_time)
{
	static const unsigned int factors[] = {1, 2, 4, 8, 16, 16, 16};
	struct cc_params p;
	struct cc_config k = config;
	uint64_t now_ns = 0;
	struct cc c;

	cc_params_default(&p, CC_RTTCC);
	assert_int_equal(cc_params_set(&p, "max_delay", "1s"), 0); /* the timeout alone */
	k.params = &p;
	cc_init(&c, CC_RTTCC, &k, 0);
	cc_on_sent(&c, 0, 0, 1000);
	for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++) {
		cc_on_probe(&c, now_ns);
		cc_on_sent(&c, now_ns, 0, 1000);
		assert_int_equal(c.deadline_ns, now_ns + factors[i] * 300 * US);
		cc_on_timer(&c, c.deadline_ns - 1);
		assert_false(c.probe_wanted);
		now_ns = c.deadline_ns;
		cc_on_timer(&c, now_ns);
		assert_true(c.probe_wanted);
		assert_int_equal(c.rate_bps, 100 * GBPS >> (i + 1) / 3);
	}
	cc_on_probe(&c, now_ns);
	cc_on_rtt(&c, now_ns + 12000, 12000);
	cc_on_probe(&c, now_ns + 12000);
	assert_int_equal(c.deadline_ns, now_ns + 12000 + 300 * US);
}

TEST(a_late_probe_is_a_long_one)
{
	struct cc c;

	cc_init(&c, CC_RTTCC, &config, 0);
	cc_on_sent(&c, 0, 0, 1000);
	cc_on_probe(&c, 0);
	assert_int_equal(c.deadline_ns, 150 * US);
	cc_on_timer(&c, 150 * US);
	assert_int_equal(c.rate_bps, 50 * GBPS);
	assert_int_equal(c.deadline_ns, 300 * US);
	cc_on_timer(&c, 300 * US); /* given up */
	assert_true(c.deadline_ns == CC_NO_DEADLINE);
	assert_int_equal(c.rate_bps, 50 * GBPS);
}

TEST(an_idle_flow_asks_for_nothing)
{
	struct cc c;

	cc_init(&c, CC_RTTCC, &config, 0);
	cc_on_sent(&c, 0, 0, 1000);
	cc_on_probe(&c, 0);
	while (c.deadline_ns != CC_NO_DEADLINE)
		cc_on_timer(&c, c.deadline_ns);
	assert_false(c.probe_wanted);
	assert_true(c.rate_bps < 100 * GBPS);
	cc_on_sent(&c, 2000 * MS, 1000, 1000);
	assert_int_equal(c.rate_bps, 100 * GBPS); /* as a new flow would */
	assert_true(c.probe_wanted);
}

TEST(the_first_congestion_may_leave_less)
{
	struct cc_params p;
	struct cc_config k = config;
	struct cc c;

	cc_params_default(&p, CC_RTTCC);
	assert_int_equal(cc_params_set(&p, "rate_first", "0.25"), 0);
	k.params = &p;
	cc_init(&c, CC_RTTCC, &k, 0);
	cc_on_rtt(&c, 0, 14000);
	assert_int_equal(c.rate_bps, 25 * GBPS);
	cc_on_rtt(&c, 12 * US, 12000 + 12000 / 5 + 20);
	assert_in_range(c.rate_bps, 24 * GBPS, 25 * GBPS);
}

TEST(losses_are_heard_with_the_next_probe_and_a_timeout_at_once)
{
	for (enum cc_loss_policy policy = CC_LOSS_OWN; policy < CC_LOSS_POLICIES; policy++) {
		static const uint64_t after_gbps[] = {50, 100, 87, 50};
		struct cc_params p;
		struct cc_config k = config;
		struct cc c;

		cc_params_default(&p, CC_RTTCC);
		p.loss = policy;
		k.params = &p;
		cc_init(&c, CC_RTTCC, &k, 0);
		cc_on_loss(&c, 0, CC_LOSS_SACK_HOLE);
		cc_on_rtt(&c, 0, 12000);
		assert_in_range(c.rate_bps, after_gbps[policy] * GBPS, (after_gbps[policy] + 1) * GBPS);
		cc_init(&c, CC_RTTCC, &k, 0);
		cc_on_loss(&c, 0, CC_LOSS_RTO);
		assert_int_equal(c.rate_bps, 50 * GBPS);
	}
}

TEST(acks_stand_in_for_probes_if_told_so)
{
	struct cc_params p;
	struct cc_config k = config;
	struct cc_ack ack = {.ack_seq = 1000, .snd_nxt = 3000, .rtt_ns = 20000};
	uint64_t rate;
	struct cc c;

	cc_params_default(&p, CC_RTTCC);
	assert_int_equal(cc_params_set(&p, "probes", "off"), 0);
	k.params = &p;
	cc_init(&c, CC_RTTCC, &k, 0);
	cc_on_sent(&c, 0, 0, 1000);
	assert_false(c.probe_wanted);
	cc_on_ack(&c, 0, &ack);
	rate = c.rate_bps;
	assert_true(rate < 100 * GBPS);
	ack.ack_seq = 3000;
	cc_on_ack(&c, 1000, &ack); /* the same round trip */
	assert_int_equal(c.rate_bps, rate);
	ack.ack_seq = 3001;
	cc_on_ack(&c, 1000, &ack);
	assert_true(c.rate_bps < rate);
}

static struct link l;

static double least_share(unsigned int flows, uint64_t ns, double *used)
{
	uint64_t before[LINK_FLOWS_MAX], sum = 0, least = UINT64_MAX;

	for (unsigned int i = 0; i < flows; i++)
		before[i] = l.flows[i].acked;
	l.queue_bytes_max = 0;
	link_run(&l, l.now_ns + ns);
	for (unsigned int i = 0; i < flows; i++) {
		uint64_t got = l.flows[i].acked - before[i];

		sum += got;
		least = got < least ? got : least;
	}
	*used = (double)sum * 8 / (double)ns / 100;
	print_message("%u flows: %.4f of the link, least share %.4f of even, queue %llu bytes\n", flows, *used,
		      (double)least / (double)sum * flows, (unsigned long long)l.queue_bytes_max);
	return (double)least / (double)sum * flows;
}

/* Without a window hyper increase overshoots, and one round trip later all cut at once. */
TEST(two_flows_share_within_five_milliseconds)
{
	for (int window = 0; window < 2; window++) {
		struct cc_params p;
		double used;

		cc_params_default(&p, CC_RTTCC);
		p.window = window;
		link_init(&l, 100 * GBPS, 12000, 1000, 1);
		link_start(&l, CC_RTTCC, &p);
		link_run(&l, 1 * MS);
		assert_true(l.flows[0].acked * 8 >= 98000000);
		link_start(&l, CC_RTTCC, &p);
		least_share(2, 5 * MS, &used);
		assert_true(used >= (window ? .9 : .85));
		assert_true(least_share(2, 1 * MS, &used) >= .95);
		assert_true(used >= (window ? .99 : .85));
	}
}

/*
 * Many flows that all begin at line rate overwhelm a port before the first probe is back, so they
 * have a window here; and without one hyper increase, 1 % of the line for each of them, overshoots.
 */
TEST(many_flows_fill_the_port_with_a_window)
{
	static const unsigned int counts[] = {2, 8, 32, 128};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct cc_params p;
		double used, fair;

		cc_params_default(&p, CC_RTTCC);
		p.window = true;
		link_init(&l, 100 * GBPS, 12000, 1000, 1);
		for (unsigned int n = 0; n < counts[i]; n++)
			link_start(&l, CC_RTTCC, &p);
		link_run(&l, 5 * MS);
		fair = least_share(counts[i], 5 * MS, &used);
		assert_true(used >= .95);
		assert_true(fair >= .9);
		assert_true(l.queue_bytes_max < 250000);
	}
}
