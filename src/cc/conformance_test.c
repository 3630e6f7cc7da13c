/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Claims about every algorithm, on one port with all signals on: RED, CNPs or echoed marks, INT,
 * probes. Claims about a single one are in its own test.
 */
#include "cc/cc.h"

#include "base/siphash.h"
#include "cc/link_model.h"
#include "cc/params.h"
#include "support/cc_checks.h"

static const struct {
	enum cc_algorithm algorithm;
	const char *preset;
	bool window;
	double share; /* of the line that one flow takes */
} cases[] = {
	{CC_SWIFT, "default", false, 1},         {CC_SWIFT, "plain", false, 1},
	{CC_SWIFT, "htsim", false, 1},           {CC_DCTCP, "default", false, 1},
	{CC_DCTCP, "hpcc-eval", false, 1},       {CC_DCQCN, "default", false, 1},
	{CC_DCQCN, "default", true, 1},          {CC_DCQCN, "paper", false, 1},
	{CC_DCQCN_FW, "default", false, 1},      {CC_DCQCN_FW, "default", true, 1},
	{CC_DCQCN_FW, "connectx", false, 1},     {CC_HPCC, "default", false, .95},
	{CC_HPCC, "hpcc-eval", false, .95},      {CC_HPCC, "later", false, .99},
	{CC_TIMELY, "default", false, 1},        {CC_TIMELY, "default", true, 1},
	{CC_TIMELY, "hpcc-eval", false, 1},      {CC_TIMELY_PATCHED, "default", false, 1},
	{CC_TIMELY_PATCHED, "default", true, 1}, {CC_RTTCC, "default", false, 1},
	{CC_RTTCC, "default", true, 1},          {CC_DELIVERY, "default", false, .9},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static struct link l;
static struct cc_params params;

/* 50 Gbit/s, where a window of 75 packets is the port's in full. */
static void set_up(size_t i, uint64_t seed)
{
	cc_params_default(&params, cases[i].algorithm);
	assert_int_equal(cc_params_preset(&params, cases[i].preset), 0);
	params.window = cases[i].window;
	link_init(&l, 50 * GBPS, 12000, 1000, seed);
	l.cnps = cases[i].algorithm != CC_SWIFT && cases[i].algorithm != CC_DCTCP;
	l.cnp_gap_ns = 50 * US;
	l.stacks = true;
	l.kmin_bytes = 100000;
	l.kmax_bytes = 400000;
	l.pmax_q32 = (UINT64_C(1) << 32) / 5;
}

/* Some algorithms probe for the line's capacity by overfilling it, unless a window prevents that. */
static bool overfills(size_t i)
{
	switch (cases[i].algorithm) {
	case CC_SWIFT: return true;
	case CC_DCTCP: return !params.dctcp.bounded;
	case CC_RTTCC: return !cases[i].window;
	default: return false;
	}
}

TEST(one_flow_takes_what_is_there_from_the_first_round_trip)
{
	for (size_t i = 0; i < CASES; i++) {
		uint64_t before;
		double used;

		set_up(i, 1);
		link_start(&l, cases[i].algorithm, &params);
		link_run(&l, 100 * US);
		before = l.flows[0].acked;
		l.queue_bytes_max = 0;
		link_run(&l, 2100 * US);
		used = (double)(l.flows[0].acked - before) * 8 / 2e6 / 50;
		print_message("%s, %s%s: %.4f of the line, queue %llu bytes\n", cc_name(cases[i].algorithm),
			      cases[i].preset, cases[i].window ? " +w" : "", used,
			      (unsigned long long)l.queue_bytes_max);
		assert_true(used >= cases[i].share * .99);
		assert_int_equal(l.flows[0].cnps, 0);
		assert_true(l.queue_bytes_max <= (overfills(i) ? 150000 : 2000));
	}
}

/*
 * The second begins at full speed into the first's traffic; settled after the time, over the next
 * 2 ms. The tests of the other algorithms have their own figures, and say why two flows do not
 * settle. Swift's two flows cut in turns, each in its own phase of the other's queue, so that a
 * difference of a tenth stays.
 */
TEST(two_flows_share)
{
	static const struct {
		enum cc_algorithm algorithm;
		const char *preset;
		uint64_t after_ns;
		double used, share;
	} rows[] = {
		{CC_SWIFT, "default", 2 * MS, .9, .465},           {CC_SWIFT, "plain", 2 * MS, .9, .465},
		{CC_DCTCP, "default", 5 * MS, .9, .475},           {CC_DCTCP, "hpcc-eval", 5 * MS, .9, .475},
		{CC_TIMELY_PATCHED, "default", 20 * MS, .8, .475},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t a, b;
		double share;

		cc_params_default(&params, rows[i].algorithm);
		assert_int_equal(cc_params_preset(&params, rows[i].preset), 0);
		link_init(&l, 100 * GBPS, 12000, 1000, 1);
		l.kmin_bytes = l.kmax_bytes = 200000;
		if (rows[i].algorithm == CC_SWIFT)
			l.kmax_bytes = 0;
		link_start(&l, rows[i].algorithm, &params);
		link_run(&l, 1 * MS);
		link_start(&l, rows[i].algorithm, &params);
		a = l.flows[0].acked;
		link_run(&l, 1 * MS + rows[i].after_ns);
		assert_true((double)(l.flows[0].acked - a + l.flows[1].acked) * 80 >=
			    rows[i].used * (double)rows[i].after_ns * 1000);
		a = l.flows[0].acked;
		b = l.flows[1].acked;
		link_run(&l, 3 * MS + rows[i].after_ns);
		a = l.flows[0].acked - a;
		b = l.flows[1].acked - b;
		share = (double)(a < b ? a : b) / (double)(a + b);
		print_message("%s, %s: shares %.4f\n", cc_name(rows[i].algorithm), rows[i].preset, share);
		assert_true(share >= rows[i].share);
	}
}

/* Everything that the blocks returned, in order. */
static uint64_t trace(size_t i, uint64_t seed)
{
	static const uint8_t key[16] = "conformance";
	uint64_t h = 0;

	set_up(i, seed);
	for (int n = 0; n < 4; n++) {
		link_start(&l, cases[i].algorithm, &params);
		link_run(&l, l.now_ns + 50 * US);
	}
	while (l.now_ns < 2 * MS) {
		link_run(&l, l.now_ns + 10 * US);
		for (unsigned int n = 0; n < l.flow_count; n++) {
			const struct cc *c = &l.flows[n].cc;

			h = siphash_u64(key, h ^ c->cwnd_bytes);
			h = siphash_u64(key, h ^ c->rate_bps);
			h = siphash_u64(key, h ^ c->deadline_ns);
			h = siphash_u64(key, h ^ l.flows[n].acked);
		}
	}
	return h;
}

/* Marks are random, so algorithms that use marks must differ with the seed, and no others. */
TEST(the_same_seed_gives_the_same_bits)
{
	for (size_t i = 0; i < CASES; i++) {
		uint64_t first = trace(i, 1);

		assert_true(first == trace(i, 1));
		switch (cases[i].algorithm) {
		case CC_HPCC:
		case CC_TIMELY:
		case CC_TIMELY_PATCHED: assert_true(first == trace(i, 2)); break;
		case CC_DCTCP:
		case CC_DCQCN_FW: assert_true(first != trace(i, 2)); break;
		default: break;
		}
	}
}

/* Four busy flows fall silent: no acknowledgement comes back, nothing more is sent. */
TEST(no_timer_outlives_a_second_of_silence)
{
	for (size_t i = 0; i < CASES; i++) {
		set_up(i, 1);
		for (int n = 0; n < 4; n++)
			link_start(&l, cases[i].algorithm, &params);
		link_run(&l, 1 * MS);
		for (int n = 0; n < 4; n++) {
			struct cc *c = &l.flows[n].cc;
			uint64_t calls = 0, last_ns = l.now_ns;

			while (c->deadline_ns != CC_NO_DEADLINE) {
				last_ns = c->deadline_ns;
				cc_on_timer(c, last_ns);
				assert_true(++calls < 100000);
			}
			assert_true(last_ns - l.now_ns <= 1000 * MS);
		}
	}
}

/*
 * n times the least rate is below the link: under any events the floor holds, and no rate is above
 * what it may be.
 */
TEST(no_rate_falls_below_the_least)
{
	for (size_t i = 0; i < CASES; i++) {
		struct cc_config k = {.line_rate_bps = 50 * GBPS, .base_rtt_ns = 12000, .mtu_bytes = 1000};
		struct cc c;

		set_up(i, 1);
		assert_int_equal(cc_params_set(&params, "rate_min", "line/500"), 0);
		k.params = &params;
		cc_init(&c, cases[i].algorithm, &k, 0);
		for (int n = 0; n < 1000; n++)
			cc_on_loss(&c, (uint64_t)n * MS, CC_LOSS_RTO);
		/* 150 bytes a base RTT; DCTCP and HPCC leave a packet after a timeout */
		if (cases[i].algorithm == CC_HPCC || cases[i].algorithm == CC_DCTCP)
			assert_int_equal(c.cwnd_bytes, 1000);
		else if (cases[i].algorithm == CC_SWIFT)
			assert_int_equal(c.cwnd_bytes, 150);
		else
			assert_in_range(c.rate_bps, 99999900, 100000000);
	}
}
