/* SPDX-License-Identifier: BSD-2-Clause */
#include "cc/cc.h"

#include "base/prng.h"
#include "cc/link_model.h"
#include "cc/params.h"
#include "support/cc_checks.h"

/* The paper's numbers at 10 Gbit/s, one sample at a time. */
static struct cc_params worked(enum cc_algorithm algorithm)
{
	struct cc_params p;

	cc_params_default(&p, algorithm);
	assert_int_equal(cc_params_set(&p, "rate_ai", "10Mbps"), 0);
	assert_int_equal(cc_params_set(&p, "t_low", "50us"), 0);
	assert_int_equal(cc_params_set(&p, "t_high", "500us"), 0);
	assert_int_equal(cc_params_set(&p, "min_rtt", "20us"), 0);
	assert_int_equal(cc_params_set(&p, "scaled", "off"), 0);
	return p;
}

static const struct cc_config config = {.line_rate_bps = 10 * GBPS, .base_rtt_ns = 20000, .mtu_bytes = 1000};

TEST(samples_worked_out_by_hand)
{
	static const struct {
		uint64_t us;
		double gradient, mbps; /* 0: not configured */
	} rows[] = {
		{62, 0.002000, 9984.0000},  {70, 0.009960, 9904.4475},  {100, 0.039761, 9589.4005},
		{600, 0.538966, 8310.8138}, {90, 0.018186, 8189.8996},  {80, 0.007823, 8138.6469},
		{70, 0, 8148.6469},         {60, 0, 8158.6469},         {55, 0, 8168.6469},
		{52, -0.019701, 8178.6469}, {51, -0.020307, 8228.6469}, {49, -0.021901, 8238.6469},
	};
	struct cc_params p = worked(CC_TIMELY);
	struct cc_config k = config;
	struct cc c;

	k.params = &p;
	cc_init(&c, CC_TIMELY, &k, 0);
	cc_on_rtt(&c, 0, 60 * US); /* the first sample has no gradient */
	assert_int_equal(c.rate_bps, 10 * GBPS);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cc_on_rtt(&c, (i + 1) * 300 * US, rows[i].us * US);
		if (rows[i].gradient != 0)
			assert_close((double)c.timely.diff_q16 / 65536 / 20000, rows[i].gradient);
		assert_close((double)c.rate_bps / 1e6, rows[i].mbps);
	}
}

/* Both forms in real numbers, samples at random times around all the thresholds. */
TEST(follow_a_model_of_real_numbers)
{
	for (enum cc_algorithm a = CC_TIMELY; a <= CC_TIMELY_PATCHED; a++) {
		for (unsigned int form = 0; form < 4; form++) {
			bool scaled = form & 1, any = form & 2;
			struct cc_params p = worked(a);
			double rate = 10e9, diff = 0, prev = 0;
			struct cc_config k = config;
			uint64_t now_ns = 0;
			unsigned int steps = 0;
			struct prng prng;
			struct cc c;

			p.timely.scaled = scaled;
			p.timely.hai_counts = any ? TIMELY_HAI_ANY : TIMELY_HAI_FALLING;
			k.params = &p;
			prng_init(&prng, 17);
			cc_init(&c, a, &k, 0);
			for (int i = 0; i < 50000; i++) {
				uint64_t since = 500 + prng_below(&prng, 40 * US);
				uint64_t rtt = (i / 100) % 3 == 0   ? 20 * US + prng_below(&prng, 40 * US)
					       : (i / 100) % 3 == 1 ? 40 * US + prng_below(&prng, 200 * US)
								    : 400 * US + prng_below(&prng, 200 * US);
				double part = scaled && since < 20000 ? (double)since / 20000 : 1;
				double delta = 10e6 * part, beta = .8 * part, grad, w;

				now_ns += since;
				cc_on_rtt(&c, now_ns, rtt);
				diff = i ? .98 * diff + .02 * ((double)rtt - prev) : 0;
				prev = (double)rtt;
				if (!i)
					continue;
				grad = diff / 20000;
				w = 2 * grad + .5;
				w = w < 0 ? 0 : w > 1 ? 1 : w;
				if (rtt < 50000) {
					rate += any && ++steps >= 5 ? 5 * delta : delta;
				} else if (rtt > 500000) {
					rate *= 1 - beta * (1 - 500000 / (double)rtt);
					steps = 0;
				} else if (a == CC_TIMELY_PATCHED) {
					rate = (1 - w) * delta +
					       rate * (1 - .008 * part * w * ((double)rtt - 50000) / 50000);
				} else if (grad <= 0) {
					rate += ++steps >= 5 ? 5 * delta : delta;
				} else {
					rate *= beta * grad > 1 ? 0 : 1 - beta * grad;
					steps = 0;
				}
				rate = rate < 1e6 ? 1e6 : rate > 10e9 ? 10e9 : rate;
				assert_close((double)c.rate_bps, rate);
			}
		}
	}
}

TEST(one_sample_a_round_trip_if_told_so)
{
	struct cc_params p = worked(CC_TIMELY);
	struct cc_ack ack = {.snd_nxt = 100000, .rtt_ns = 60 * US};
	struct cc_config k = config;
	uint64_t rate;
	struct cc c;

	p.timely.sample = TIMELY_EVERY_RTT;
	k.params = &p;
	cc_init(&c, CC_TIMELY, &k, 0);
	ack.ack_seq = 1000;
	cc_on_ack(&c, 0, &ack);
	ack.rtt_ns = 400 * US;
	for (ack.ack_seq = 2000; ack.ack_seq <= 100000; ack.ack_seq += 1000)
		cc_on_ack(&c, ack.ack_seq, &ack);
	assert_int_equal(c.rate_bps, 10 * GBPS);
	ack.snd_nxt = 200000;
	cc_on_ack(&c, 200000, &ack);
	rate = c.rate_bps;
	assert_true(rate < 10 * GBPS);
	ack.ack_seq += 1000;
	cc_on_ack(&c, 200001, &ack);
	assert_int_equal(c.rate_bps, rate);
}

TEST(without_a_base_rtt_the_least_seen_stands_in)
{
	struct cc_config k = config;
	struct cc c;

	k.base_rtt_ns = 0;
	cc_init(&c, CC_TIMELY, &k, 0);
	cc_on_rtt(&c, 0, 100 * US);
	cc_on_rtt(&c, 1 * MS, 20 * US);
	assert_int_equal(c.timely.base_rtt_ns, 20 * US);
	cc_on_rtt(&c, 2 * MS, 101 * US); /* above five of them */
	assert_true(c.rate_bps < 10 * GBPS);

	cc_init(&c, CC_TIMELY, &config, 0);
	cc_on_rtt(&c, 0, 5 * US);
	assert_int_equal(c.timely.base_rtt_ns, 20 * US);
}

TEST(an_idle_flow_begins_anew)
{
	struct cc c;

	cc_init(&c, CC_TIMELY, &config, 0);
	cc_on_sent(&c, 0, 0, 1000);
	for (int i = 1; i < 100; i++)
		cc_on_rtt(&c, (uint64_t)i * 100 * US, 900 * US);
	assert_true(c.rate_bps < GBPS);
	cc_on_sent(&c, 400 * MS, 0, 1000);
	assert_true(c.rate_bps < GBPS);
	cc_on_sent(&c, 900 * MS, 0, 1000);
	assert_int_equal(c.rate_bps, 10 * GBPS);
	cc_on_rtt(&c, 900 * MS + 20 * US, 20 * US); /* no fall from the last round trip before */
	assert_int_equal(c.timely.diff_q16, 0);
}

TEST(losses_halve_only_if_told_so)
{
	for (enum cc_loss_policy policy = CC_LOSS_OWN; policy < CC_LOSS_POLICIES; policy++) {
		struct cc_params p = worked(CC_TIMELY);
		struct cc_config k = config;
		struct cc c;

		p.loss = policy;
		k.params = &p;
		cc_init(&c, CC_TIMELY, &k, 0);
		for (int loss = CC_LOSS_TRIM; loss < CC_LOSS_RTO; loss++)
			cc_on_loss(&c, 5, (enum cc_loss)loss);
		assert_int_equal(c.rate_bps, policy >= CC_LOSS_CNP ? 5 * GBPS : 10 * GBPS);
		cc_on_loss(&c, 6, CC_LOSS_RTO);
		assert_int_equal(c.rate_bps, policy >= CC_LOSS_CNP ? 2500000000 : 5 * GBPS);
	}
}

static struct link l;

/* 25 Gbit/s, flows 300 us apart, after 20 ms. */
static void run(enum cc_algorithm a, unsigned int flows, bool window, double *used, double *fair)
{
	uint64_t before[LINK_FLOWS_MAX], sum = 0, least = UINT64_MAX, most = 0;
	struct cc_params p;

	cc_params_default(&p, a);
	p.window = window;
	link_init(&l, 25 * GBPS, 12000, 1000, 1);
	for (unsigned int i = 0; i < flows; i++) {
		link_start(&l, a, &p);
		link_run(&l, (i + 1) * 300 * US);
	}
	link_run(&l, 20 * MS);
	for (unsigned int i = 0; i < flows; i++)
		before[i] = l.flows[i].acked;
	l.queue_bytes_max = 0;
	link_run(&l, 40 * MS);
	for (unsigned int i = 0; i < flows; i++) {
		uint64_t got = l.flows[i].acked - before[i];

		sum += got;
		least = got < least ? got : least;
		most = got > most ? got : most;
	}
	*used = (double)sum * 8 / 20e6 / 25;
	*fair = (double)least / (double)most;
	print_message("%s%s, %u flows: %.4f of the link, least/most %.4f, queue %llu bytes\n", cc_name(a),
		      window ? " +w" : "", flows, *used, *fair, (unsigned long long)l.queue_bytes_max);
}

/*
 * The running gradient of many slow flows is older than the present queue, so they rise and fall
 * together: without a window the port is idle for a part of the time.
 */
TEST_MANY(a_port_is_filled_by_few_flows_or_with_a_window)
{
	static const unsigned int counts[] = {1, 2, 8, 32};

	for (enum cc_algorithm a = CC_TIMELY; a <= CC_TIMELY_PATCHED; a++) {
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			double used, fair;

			run(a, counts[i], false, &used, &fair);
			if (a == CC_TIMELY_PATCHED && counts[i] <= 8)
				assert_true(used >= .99 && fair >= .99);
			assert_true(used >= (counts[i] <= 2 ? .95 : .45));
			run(a, counts[i], true, &used, &fair);
			assert_true(used >= .98); /* a window is whole packets */
			if (a == CC_TIMELY_PATCHED && counts[i] <= 8)
				assert_true(fair >= .95);
		}
	}
}
