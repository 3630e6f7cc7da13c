/* SPDX-License-Identifier: BSD-2-Clause */
#include "cc/cc.h"

#include "base/prng.h"
#include "cc/link_model.h"
#include "cc/params.h"
#include "support/cc_checks.h"

static const struct cc_config config = {.line_rate_bps = 100 * GBPS, .base_rtt_ns = 12000, .mtu_bytes = 1000};

static struct cc_params evaluated(void)
{
	struct cc_params p;

	cc_params_default(&p, CC_DCQCN_FW);
	assert_int_equal(cc_params_preset(&p, "hpcc-eval"), 0);
	return p;
}

/* Runs the block's timers up to this moment, keeping the flow awake. */
static void run(struct cc *c, uint64_t until_ns)
{
	while (c->deadline_ns <= until_ns) {
		uint64_t at_ns = c->deadline_ns;

		cc_on_sent(c, at_ns, 0, 1000);
		cc_on_timer(c, at_ns);
	}
}

/*
 * The evaluation's code, unchanged in structure: every check is an event, even if there is nothing
 * to check. In real numbers and whole nanoseconds.
 */
struct ticking {
	double rate, target, alpha;
	bool started, cnp_alpha, cnp_cut, inc_on;
	uint64_t alpha_ns, look_ns, inc_ns;
	unsigned int stage;
};

static void ticking_cnp(struct ticking *t, uint64_t now_ns)
{
	t->cnp_alpha = t->cnp_cut = true;
	if (t->started)
		return;
	t->started = true;
	t->alpha = 1;
	t->cnp_alpha = false;
	t->alpha_ns = now_ns + 1 * US;
	t->look_ns = now_ns + 4 * US + 1;
	t->target = t->rate;
}

static void ticking_run(struct ticking *t, uint64_t until_ns)
{
	while (t->started) {
		bool alpha = t->alpha_ns <= t->look_ns && (!t->inc_on || t->alpha_ns <= t->inc_ns);
		bool look = !alpha && (!t->inc_on || t->look_ns <= t->inc_ns);

		if ((alpha ? t->alpha_ns : look ? t->look_ns : t->inc_ns) > until_ns)
			return;
		if (alpha) {
			t->alpha = t->alpha * 255 / 256 + (t->cnp_alpha ? 1. / 256 : 0);
			t->cnp_alpha = false;
			t->alpha_ns += 1 * US;
		} else if (look) {
			if (t->cnp_cut) {
				if (t->stage)
					t->target = t->rate;
				t->rate *= 1 - t->alpha / 2;
				t->rate = t->rate < 1e8 ? 1e8 : t->rate;
				t->stage = 0;
				t->inc_on = true;
				t->inc_ns = t->look_ns + 300 * US;
				t->cnp_cut = false;
			}
			t->look_ns += 4 * US;
		} else {
			if (t->stage == 1)
				t->target += 20e6;
			else if (t->stage > 1)
				t->target += 200e6;
			t->target = t->target > 100e9 ? 100e9 : t->target;
			t->rate = (t->rate + t->target) / 2;
			t->stage++;
			t->inc_ns += 300 * US;
		}
	}
}

TEST(sleeping_checks_do_what_ticking_ones_do)
{
	struct cc_params p = evaluated();
	struct cc_config k = config;
	uint64_t now_ns = 12345, seen = 0;
	struct ticking t = {.rate = 100e9};
	struct prng prng;
	struct cc c;

	k.params = &p;
	prng_init(&prng, 9);
	cc_init(&c, CC_DCQCN_FW, &k, 0);
	for (int i = 0; i < 4000; i++) {
		/* volleys of CNPs, and pauses with increases only */
		now_ns += prng_below(&prng, i % 40 ? 3 * US : 5 * MS);
		run(&c, now_ns);
		ticking_run(&t, now_ns);
		assert_close((double)c.rate_bps, t.rate);
		assert_close((double)c.dcqcn_fw.target_bps, t.started ? t.target : 100e9);
		cc_on_cnp(&c, now_ns);
		ticking_cnp(&t, now_ns);
		seen += t.rate < 50e9;
	}
	assert_true(seen > 1000);
}

TEST(the_first_cnp_takes_half_a_look_later)
{
	struct cc c;

	cc_init(&c, CC_DCQCN_FW, &config, 0);
	assert_true(c.deadline_ns == CC_NO_DEADLINE);
	cc_on_cnp(&c, 10 * US);
	assert_int_equal(c.rate_bps, 100 * GBPS);
	assert_int_equal(c.deadline_ns, 14 * US + 1);
	cc_on_timer(&c, 14 * US); /* too early */
	assert_int_equal(c.rate_bps, 100 * GBPS);
	cc_on_timer(&c, 14 * US + 1);
	assert_close((double)c.rate_bps, 100e9 * (1 - .5 * 255 * 255 * 255 * 255 / 4294967296.));
	assert_int_equal(c.deadline_ns, 314 * US + 1);
	assert_int_equal(c.dcqcn_fw.target_bps, 100 * GBPS);
}

/* Recovery leads to the target, so the clamp of the target decides how fast a rate recovers. */
TEST(only_the_clamp_lowers_a_target_twice_in_a_row)
{
	for (int clamp = 0; clamp < 2; clamp++) {
		struct cc_params p = evaluated();
		struct cc_config k = config;
		struct cc c;

		k.params = &p;
		p.dcqcn_fw.clamp = clamp;
		cc_init(&c, CC_DCQCN_FW, &k, 0);
		for (int i = 0; i < 3; i++) {
			cc_on_cnp(&c, (10 + 20 * i) * US);
			run(&c, (20 + 20 * i) * US);
		}
		if (clamp)
			assert_in_range(c.dcqcn_fw.target_bps, 20 * GBPS, 35 * GBPS);
		else
			assert_int_equal(c.dcqcn_fw.target_bps, 100 * GBPS);
	}
}

TEST(a_loss_is_a_cnp_and_a_timeout_a_half)
{
	struct cc c;

	for (int loss = CC_LOSS_TRIM; loss < CC_LOSS_RTO; loss++) {
		cc_init(&c, CC_DCQCN_FW, &config, 0);
		cc_on_loss(&c, 0, (enum cc_loss)loss);
		assert_int_equal(c.deadline_ns, 4 * US + 1);
	}
	cc_init(&c, CC_DCQCN_FW, &config, 0);
	cc_on_loss(&c, 0, CC_LOSS_RTO);
	assert_int_equal(c.rate_bps, 50 * GBPS);
	cc_on_loss(&c, 0, CC_LOSS_RTO);
	assert_int_equal(c.rate_bps, 25 * GBPS);
	assert_int_equal(c.dcqcn_fw.target_bps, 50 * GBPS);
	for (int i = 0; i < 100; i++)
		cc_on_loss(&c, 0, CC_LOSS_RTO);
	assert_int_equal(c.rate_bps, 10000000); /* line/10000 */
}

TEST(a_rate_comes_back_to_the_line_and_then_nothing_ticks)
{
	struct cc c;

	cc_init(&c, CC_DCQCN_FW, &config, 0);
	for (uint64_t t = 0; t < 200; t++) {
		cc_on_cnp(&c, t * 4 * US);
		run(&c, t * 4 * US);
	}
	assert_true(c.rate_bps < GBPS);
	run(&c, 2000 * MS);
	assert_int_equal(c.rate_bps, 100 * GBPS);
	assert_true(c.deadline_ns == CC_NO_DEADLINE);
}

/*
 * An increase, and a check 2 us after it, both called late: they take effect in the order in which
 * they were due.
 */
TEST(late_calls_keep_the_order)
{
	struct cc c;
	uint64_t rate;

	cc_init(&c, CC_DCQCN_FW, &config, 0);
	cc_on_cnp(&c, 0);
	run(&c, 300 * US);
	cc_on_cnp(&c, 303 * US); /* check and increase are both due at 304 us: the increase waits */
	assert_int_equal(c.deadline_ns, 304 * US + 1);
	rate = c.rate_bps;
	cc_on_timer(&c, 400 * US);
	assert_true(c.rate_bps < rate);

	cc_init(&c, CC_DCQCN_FW, &config, 0);
	cc_on_cnp(&c, 0);
	run(&c, 303 * US);
	c.dcqcn_fw.inc_ns = c.deadline_ns = 303500; /* as if the cut had been at 3.5 us */
	cc_on_cnp(&c, 303 * US);
	rate = c.rate_bps;
	cc_on_timer(&c, 400 * US);
	assert_true(c.rate_bps > rate);
	assert_int_equal(c.deadline_ns, 304 * US + 1);
	rate = c.rate_bps;
	cc_on_timer(&c, 400 * US);
	assert_true(c.rate_bps < rate);
}

TEST(an_idle_flow_sleeps_within_a_second)
{
	struct cc_params p = evaluated();
	struct cc_config k = config;
	uint64_t at_ns = 0;
	struct cc c;

	k.params = &p;
	p.dcqcn_fw.rate_ai = p.dcqcn_fw.rate_hai = 1; /* so that it does not get far by itself */
	p.dcqcn_fw.clamp = true;
	cc_init(&c, CC_DCQCN_FW, &k, 0);
	for (uint64_t t = 0; t < 200; t++) {
		cc_on_cnp(&c, t * 4 * US);
		run(&c, t * 4 * US);
	}
	while (c.deadline_ns != CC_NO_DEADLINE) {
		at_ns = c.deadline_ns;
		cc_on_timer(&c, at_ns);
	}
	assert_in_range(at_ns, 500 * MS, 502 * MS);
	assert_int_equal(c.rate_bps, 100 * GBPS);
	cc_on_cnp(&c, 600 * MS + 2 * US); /* and CNPs still count, though alpha is nearly 0 */
	run(&c, 600 * MS + 5 * US);
	assert_true(c.rate_bps < 100 * GBPS);
}

static struct link l;

TEST_MANY(flows_fill_a_port_that_marks)
{
	static const unsigned int counts[] = {1, 2, 8, 32};

	for (int window = 0; window < 2; window++) {
		struct cc_params p = evaluated();

		p.window = window;
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			uint64_t sum = 0, before = 0;

			link_init(&l, 100 * GBPS, 12000, 1000, 1);
			l.cnps = true;
			l.kmin_bytes = 400000;
			l.kmax_bytes = 1600000;
			l.pmax_q32 = (UINT64_C(1) << 32) / 5;
			for (unsigned int n = 0; n < counts[i]; n++)
				link_start(&l, CC_DCQCN_FW, &p);
			link_run(&l, 20 * MS);
			for (unsigned int n = 0; n < counts[i]; n++)
				before += l.flows[n].acked;
			l.queue_bytes_max = 0;
			link_run(&l, 40 * MS);
			for (unsigned int n = 0; n < counts[i]; n++)
				sum += l.flows[n].acked;
			sum = (sum - before) * 8 / 20;
			print_message("%u flows%s: %.2f Gbit/s, queue %llu bytes\n", counts[i], window ? " +w" : "",
				      (double)sum / 1e6, (unsigned long long)l.queue_bytes_max);
			if (counts[i] == 1)
				assert_int_equal(l.flows[0].cnps, 0);
			assert_true(sum >= 90000000);
			if (window)
				assert_true(l.queue_bytes_max < 2000000);
		}
	}
}
