/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/results.h"
#include "support/results_queue.h"
#include "support/test.h"

#define US  UINT64_C(1000000)
#define ALL UINT32_MAX

static struct results r;

static int setup(void **state)
{
	results_init(&r);
	return 0;
}

static int teardown(void **state)
{
	results_free(&r);
	return 0;
}

static void near(double a, double b)
{
	double d = a > b ? a - b : b - a;

	if (d > 1e-9)
		fail_msg("%.12g is not %.12g", a, b);
}

/* A flow that is done at `slowdown` times its ideal of 10 us. */
static void flow_add(uint64_t bytes, double slowdown)
{
	struct results_flow f = {
		.bytes = bytes,
		.fct_ps = (uint64_t)(slowdown * 10 * US),
		.ideal_ps = 10 * US,
	};

	assert_int_equal(results_flow_add(&r, &f, NULL), 0);
	r.flows_done++;
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(percentiles_are_elements_of_rank_n_times_p)
{
	double x[10];
	uint64_t u[3] = {5, 6, 7};

	for (int i = 0; i < 10; i++)
		x[i] = i + 1;
	near(results_percentile(x, 10, 0), 1);
	near(results_percentile(x, 10, 500000), 6); /* x[floor(5.0)] */
	near(results_percentile(x, 10, 950000), 10);
	near(results_percentile(x, 10, 1000000), 10);
	near(results_percentile(x, 1, 990000), 1);
	near(results_percentile(x, 0, 500000), 0);
	assert_int_equal(results_percentile_u64(u, 3, 500000), 6);
	assert_int_equal(results_percentile_u64(u, 3, 333333), 5);
}

CASE(slowdown_is_of_done_flows_and_may_be_below_one)
{
	struct results_flow f = {.fct_ps = 25 * US, .ideal_ps = 10 * US};

	near(results_slowdown(&f), 2.5);
	f.fct_ps = 9 * US;
	near(results_slowdown(&f), 0.9);
	f.fct_ps = RESULTS_NOT_DONE;
	near(results_slowdown(&f), 0);
	f.fct_ps = 9 * US;
	f.ideal_ps = 0;
	near(results_slowdown(&f), 0);
}

CASE(equal_bins_hold_a_twentieth_of_the_flows_by_size)
{
	struct results_bin b[RESULTS_EQUAL_BINS];

	/* 40 flows of 1000, 2000 .. bytes, put in backwards; two to a bin, slowdowns as the
	 * thousands. */
	for (int i = 40; i > 0; i--)
		flow_add((uint64_t)i * 1000, i);
	assert_int_equal(results_bins_equal(&r, ALL, b), 0);
	for (int i = 0; i < RESULTS_EQUAL_BINS; i++) {
		assert_int_equal(b[i].count, 2);
		assert_int_equal(b[i].bytes_min, (2 * i + 1) * 1000);
		assert_int_equal(b[i].bytes_max, (2 * i + 2) * 1000);
		near(b[i].mean, 2 * i + 1.5);
		near(b[i].p50, 2 * i + 2);
		near(b[i].max, 2 * i + 2);
	}
}

CASE(bins_of_few_flows_may_be_empty)
{
	struct results_bin b[RESULTS_EQUAL_BINS];
	uint32_t sum = 0;

	assert_int_equal(results_bins_equal(&r, ALL, b), 0);
	for (int i = 0; i < RESULTS_EQUAL_BINS; i++)
		assert_int_equal(b[i].count, 0);
	flow_add(1, 1);
	flow_add(2, 1);
	flow_add(3, 1);
	assert_int_equal(results_bins_equal(&r, ALL, b), 0);
	for (int i = 0; i < RESULTS_EQUAL_BINS; i++)
		sum += b[i].count;
	assert_int_equal(sum, 3);
	assert_int_equal(b[RESULTS_EQUAL_BINS - 1].bytes_max, 3);
}

CASE(fixed_bins_include_their_upper_bound)
{
	static const uint64_t sizes[] = {1, 7000, 7001, 120000, 120001, 1000000, 1000001, 30000000};
	struct results_bin b[RESULTS_FIXED_BINS];

	for (int i = 0; i < 8; i++)
		flow_add(sizes[i], 2 + i % 2);
	assert_int_equal(results_bins_fixed(&r, ALL, b), 0);
	for (int i = 0; i < RESULTS_FIXED_BINS; i++) {
		assert_int_equal(b[i].count, 2);
		near(b[i].mean, 2.5);
		near(b[i].p99, 3);
	}
	assert_int_equal(b[1].bytes_min, 7000);
	assert_int_equal(b[1].bytes_max, 120000);
	assert_int_equal(b[3].bytes_max, UINT64_MAX);
}

CASE(bins_can_be_of_one_workload)
{
	struct results_bin b;

	flow_add(10, 4);
	flow_add(20, 8);
	r.flows[1].workload = 1;
	assert_int_equal(results_bin_all(&r, 1, &b), 0);
	assert_int_equal(b.count, 1);
	near(b.p50, 8);
	assert_int_equal(results_bin_all(&r, 2, &b), 0);
	assert_int_equal(b.count, 0);
}

CASE(jain_is_one_when_all_are_equal)
{
	static const double equal[] = {3, 3, 3, 3}, one[] = {4, 0, 0, 0}, some[] = {1, 2, 3};

	near(results_jain(equal, 4), 1);
	near(results_jain(one, 4), 0.25);
	near(results_jain(some, 3), 36.0 / 42); /* 6^2 / (3 x 14) */
	near(results_jain(some, 0), 1);
	near(results_jain((double[]){0, 0}, 2), 1);
}

CASE(series_double_their_window_when_full)
{
	struct results_series s;

	results_series_init(&s, 10, RESULTS_SUM);
	results_series_add(&s, 0, 1);
	results_series_add(&s, 9, 2);
	results_series_add(&s, 10, 4);
	results_series_add(&s, 10 * RESULTS_SERIES_WINDOWS - 1, 8);
	assert_int_equal(s.window_ps, 10);
	assert_int_equal(s.count, RESULTS_SERIES_WINDOWS);
	assert_int_equal(s.value[0], 3);
	assert_int_equal(results_series_value(&s, 20, 0), 7);
	results_series_add(&s, 10 * RESULTS_SERIES_WINDOWS, 16);
	assert_int_equal(s.window_ps, 20);
	assert_int_equal(s.count, RESULTS_SERIES_WINDOWS / 2 + 1);
	assert_int_equal(s.value[0], 7);
	assert_int_equal(s.value[RESULTS_SERIES_WINDOWS / 2 - 1], 8);
	assert_int_equal(s.value[RESULTS_SERIES_WINDOWS / 2], 16);
	/* A leap over many doublings. */
	results_series_add(&s, UINT64_C(1) << 50, 32);
	assert_true(s.count <= RESULTS_SERIES_WINDOWS);
	assert_int_equal(s.value[0], 31);
	results_series_free(&s);

	results_series_init(&s, 1, RESULTS_MAX);
	results_series_add(&s, 0, 5);
	results_series_add(&s, 1, 9);
	results_series_add(&s, RESULTS_SERIES_WINDOWS, 2);
	assert_int_equal(s.value[0], 9);
	assert_int_equal(results_series_value(&s, 2, RESULTS_SERIES_WINDOWS / 2), 2);
	assert_int_equal(results_series_value(&s, 2, RESULTS_SERIES_WINDOWS), 0);
	results_series_free(&s);
}

CASE(queues_are_weighted_by_time)
{
	struct results_port p = {.tier = 1}, *q;

	results_series_init(&p.queue, 10, RESULTS_MAX);
	assert_int_equal(results_port_add(&r, &p, NULL), 0);
	q = &r.ports[0];
	/* Empty for 60, 1500 bytes for 30, 3000 bytes for 10. */
	results_queue_change(q, 60, 1500);
	results_queue_change(q, 90, 3000);
	results_queue_change(q, 100, 3000);
	assert_int_equal(q->queue_time_ps[0], 60);
	assert_int_equal(q->queue_time_ps[2], 30);
	assert_int_equal(q->queue_time_ps[3], 10);
	assert_int_equal(q->queue_bytes_max, 3000);
	near(results_queue_mean(q), 750); /* (1500 x 30 + 3000 x 10) / 100 */
	assert_int_equal(results_queue_percentile(q, 500000), 0);
	assert_int_equal(results_queue_percentile(q, 600000), 0);
	assert_int_equal(results_queue_percentile(q, 600001), 2000);
	assert_int_equal(results_queue_percentile(q, 990000), 3000);
	assert_int_equal(results_queue_percentile_all(&r, 900000), 2000);
	/* The curve: a queue that does not change counts in every window. */
	assert_int_equal(results_series_value(&q->queue, 10, 5), 0);
	assert_int_equal(results_series_value(&q->queue, 10, 6), 1500);
	assert_int_equal(results_series_value(&q->queue, 10, 8), 1500);
	assert_int_equal(results_series_value(&q->queue, 10, 9), 3000);
	assert_int_equal(results_queue_sample(q), 0);
	assert_int_equal(q->sample_count[3], 1);
}

CASE(a_port_of_a_host_is_no_switch_queue)
{
	struct results_port p = {.tier = 0};

	results_port_add(&r, &p, NULL);
	results_queue_change(&r.ports[0], 0, 5000);
	results_queue_change(&r.ports[0], 10, 5000);
	assert_int_equal(results_queue_percentile_all(&r, 990000), 0);
}

CASE(drops_of_one_place_are_one_record)
{
	struct results_drop d = {RESULTS_AT_SWITCH, RESULTS_DROP_BUFFER, 7, 9, 1, 3, 2, 3000};

	results_drop_add(&r, &d);
	results_drop_add(&r, &d);
	d.class = 4;
	results_drop_add(&r, &d);
	assert_int_equal(r.drop_count, 2);
	assert_int_equal(r.drops[0].packets, 4);
	assert_int_equal(r.drops[0].bytes, 6000);
}

CASE(rates_are_bits_by_time)
{
	assert_int_equal(results_bps(1250, 100000), UINT64_C(100000000000)); /* 1250 B in 100 ns */
	assert_int_equal(results_bps(UINT64_MAX / 2, UINT64_C(1) << 63), 7999999999999);
	assert_int_equal(results_bps(1, 0), 0);
}

/* Two flows over four windows of 1 us: 100 and 300 bytes in each; the second ends after the third.
 */
static void two_flows(void)
{
	results_goodput_start(&r, US, 4, 1);
	flow_add(400, 1);
	flow_add(900, 1);
	r.flows[0].fct_ps = RESULTS_NOT_DONE;
	r.flows[1].fct_ps = 3 * US;
	for (uint64_t i = 0; i < 4; i++) {
		results_goodput_add(&r, 0, i * US + 5, 100);
		if (i < 3)
			results_goodput_add(&r, 1, i * US + 7, 300);
	}
	r.time_ps = 4 * US;
}

CASE(fairness_is_of_flows_open_throughout)
{
	struct results_fairness f[8];

	two_flows();
	assert_int_equal(r.goodput.curve_count, 2);
	assert_int_equal(results_fairness_over_time(&r, 1, f, 8), 3);
	near(f[0].jain, 0.8); /* 400^2 / (2 x (100^2 + 300^2)) */
	assert_int_equal(f[0].flows, 2);
	assert_int_equal(f[2].start_ps, 2 * US);
	assert_int_equal(f[0].min_bps, 800000000);
	assert_int_equal(f[0].max_bps, 2400000000);
	assert_int_equal(results_fairness_over_time(&r, 2, f, 8), 1);
	near(f[0].jain, 0.8);
	assert_int_equal(f[0].window_ps, 2 * US);

	f[0] = results_fairness_between(&r, 0, 0);
	assert_int_equal(f[0].flows, 1); /* the one that lasts */
	assert_int_equal(f[0].open, 2);
	f[0] = results_fairness_between(&r, US + 1, US);
	assert_int_equal(f[0].start_ps, US);
	assert_int_equal(f[0].window_ps, 2 * US);
	assert_int_equal(f[0].flows, 2);
	f[0] = results_fairness_between(&r, 9 * US, 0);
	assert_int_equal(f[0].flows, 0);
	f[0] = results_fairness_of_flows(&r, ALL);
	assert_int_equal(f[0].flows, 2);
	assert_int_equal(f[0].min_bps, 800000000);
	assert_int_equal(f[0].max_bps, 2400000000);
	near(f[0].jain, 0.8);
}

CASE(flows_of_a_connection_share_a_curve)
{
	struct results_fairness f[8];

	/* Two flows of connection 9, one after the other, and one of connection 7 beside them. */
	results_goodput_start(&r, US, 4, 1);
	for (uint32_t i = 0; i < 3; i++) {
		struct results_flow flow = {
			.connection = i == 1 ? 7 : 9,
			.start_ps = i == 2 ? US : 0,
			.fct_ps = i == 1 ? 2 * US : US,
			.bytes = 100,
		};

		results_flow_add(&r, &flow, NULL);
	}
	assert_int_equal(r.goodput.curve_count, 2);
	assert_int_equal(r.flows[2].curve, 0);
	assert_int_equal(r.goodput.curve[0].first, 0);
	assert_int_equal(r.flows[0].curve_next, 2);
	results_goodput_add(&r, 0, 5, 100);
	results_goodput_add(&r, 1, 5, 100);
	results_goodput_add(&r, 1, US + 5, 100);
	results_goodput_add(&r, 2, US + 5, 300);
	r.time_ps = 2 * US;
	assert_int_equal(results_fairness_over_time(&r, 2, f, 8), 1);
	assert_int_equal(f[0].flows, 2);
	near(f[0].jain, 0.9); /* 600^2 / (2 x (400^2 + 200^2)) */
	/* A gap between the two: then it was not open throughout. */
	r.flows[0].fct_ps = US - 1;
	assert_int_equal(results_fairness_over_time(&r, 2, f, 8), 0);
}

CASE(curves_are_bounded)
{
	results_goodput_start(&r, US, 2, 1);
	for (uint64_t i = 0; i < 5; i++) {
		struct results_flow flow = {.connection = i, .bytes = 100};

		results_flow_add(&r, &flow, NULL);
		assert_int_equal(results_goodput_add(&r, (uint32_t)i, 5, 1), 0);
	}
	assert_int_equal(r.goodput.curve_count, 2);
	assert_int_equal(r.flows[4].curve, RESULTS_NO_CURVE);
	assert_int_equal(r.goodput.total.value[0], 5);
	assert_int_equal(r.goodput.grain_bytes, 1);
}

CASE(goodput_counts_without_series_too)
{
	flow_add(400, 1);
	results_goodput_add(&r, 0, 5, 100);
	assert_int_equal(r.flows[0].received_bytes, 100);
	assert_int_equal(r.goodput.curve_count, 0);
	assert_int_equal(results_fairness_between(&r, 0, 0).flows, 0);
}

CASE(a_flow_is_done_once)
{
	struct results_flow f = {.start_ps = 5, .fct_ps = RESULTS_NOT_DONE};
	uint32_t number;

	results_flow_add(&r, &f, &number);
	assert_int_equal(number, 0);
	results_flow_done(&r, number, 12);
	assert_int_equal(r.flows[0].fct_ps, 7);
	assert_int_equal(r.flows_done, 1);
}

CASE(names_cover_every_reason)
{
	for (int i = 0; i < RESULTS_REASONS; i++)
		assert_non_null(results_reason_name((enum results_reason)i));
	for (int i = 0; i < RESULTS_PLACES; i++)
		assert_non_null(results_place_name((enum results_place)i));
}
