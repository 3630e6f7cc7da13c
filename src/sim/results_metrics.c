/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The metrics over a run's records: slowdowns by size, fairness. Sums go in the order of the
 * records or of sorted values, so that every machine prints the same digits.
 */
#include "sim/results.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* ---- Percentiles and bins ---- */

static size_t rank(size_t n, uint32_t ppm)
{
	size_t i = (size_t)((unsigned __int128)n * ppm / 1000000);

	return i < n ? i : n - 1;
}

double results_percentile(const double *sorted, size_t n, uint32_t ppm)
{
	return n ? sorted[rank(n, ppm)] : 0;
}

uint64_t results_percentile_u64(const uint64_t *sorted, size_t n, uint32_t ppm)
{
	return n ? sorted[rank(n, ppm)] : 0;
}

double results_slowdown(const struct results_flow *f)
{
	if (f->fct_ps == RESULTS_NOT_DONE || !f->ideal_ps)
		return 0;
	return (double)f->fct_ps / (double)f->ideal_ps;
}

struct sized {
	uint64_t bytes;
	double slowdown;
};

static int by_size(const void *a, const void *b)
{
	const struct sized *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return (x->slowdown > y->slowdown) - (x->slowdown < y->slowdown);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The flows that count, by size; *n of them. NULL with *n > 0: no memory. */
static struct sized *flows_sized(const struct results *r, uint32_t workload, size_t *n)
{
	struct sized *s = r->flow_count ? malloc(r->flow_count * sizeof(*s)) : NULL;

	*n = 0;
	for (uint32_t i = 0; i < r->flow_count; i++) {
		const struct results_flow *f = &r->flows[i];
		double slowdown = results_slowdown(f);

		if (slowdown == 0 || (workload != UINT32_MAX && f->workload != workload))
			continue;
		if (s)
			s[*n] = (struct sized){f->bytes, slowdown};
		(*n)++;
	}
	if (s)
		qsort(s, *n, sizeof(*s), by_size);
	return s;
}

/* One bin of flows [from, to); sorted is room for as many. */
static void bin_fill(struct results_bin *b, const struct sized *s, size_t from, size_t to, double *sorted)
{
	size_t n = to - from;
	double sum = 0;

	*b = (struct results_bin){.count = (uint32_t)n};
	if (!n)
		return;
	for (size_t i = 0; i < n; i++)
		sorted[i] = s[from + i].slowdown;
	qsort(sorted, n, sizeof(*sorted), by_value);
	for (size_t i = 0; i < n; i++)
		sum += sorted[i];
	b->bytes_min = s[from].bytes;
	b->bytes_max = s[to - 1].bytes;
	b->mean = sum / (double)n;
	b->p50 = results_percentile(sorted, n, 500000);
	b->p95 = results_percentile(sorted, n, 950000);
	b->p99 = results_percentile(sorted, n, 990000);
	b->p999 = results_percentile(sorted, n, 999000);
	b->max = sorted[n - 1];
}

/* Bins [end[i - 1], end[i]) of the flows by size. */
typedef size_t (*bin_end)(const struct sized *, size_t n, unsigned i);

static int bins_fill(const struct results *r, uint32_t workload, bin_end end, unsigned count, struct results_bin *bins)
{
	size_t n, from = 0;
	struct sized *s = flows_sized(r, workload, &n);
	double *sorted = n ? malloc(n * sizeof(*sorted)) : NULL;
	int rc = n && (!s || !sorted) ? -ENOMEM : 0;

	for (unsigned i = 0; i < count && !rc; i++) {
		size_t to = end(s, n, i);

		bin_fill(&bins[i], s, from, to, sorted);
		from = to;
	}
	free(sorted);
	free(s);
	return rc;
}

static size_t end_equal(const struct sized *s, size_t n, unsigned i)
{
	return (i + 1) * n / RESULTS_EQUAL_BINS;
}

static const uint64_t fixed_bounds[RESULTS_FIXED_BINS] = {7000, 120000, 1000000, UINT64_MAX};

static size_t end_fixed(const struct sized *s, size_t n, unsigned i)
{
	size_t k = 0;

	while (k < n && s[k].bytes <= fixed_bounds[i])
		k++;
	return k;
}

static size_t end_all(const struct sized *s, size_t n, unsigned i)
{
	return n;
}

int results_bins_equal(const struct results *r, uint32_t workload, struct results_bin bins[RESULTS_EQUAL_BINS])
{
	return bins_fill(r, workload, end_equal, RESULTS_EQUAL_BINS, bins);
}

int results_bins_fixed(const struct results *r, uint32_t workload, struct results_bin bins[RESULTS_FIXED_BINS])
{
	int rc = bins_fill(r, workload, end_fixed, RESULTS_FIXED_BINS, bins);

	for (unsigned i = 0; i < RESULTS_FIXED_BINS && !rc; i++) {
		bins[i].bytes_min = i ? fixed_bounds[i - 1] : 0;
		bins[i].bytes_max = fixed_bounds[i];
	}
	return rc;
}

int results_bin_all(const struct results *r, uint32_t workload, struct results_bin *bin)
{
	return bins_fill(r, workload, end_all, 1, bin);
}

/* ---- Fairness ---- */

double results_jain(const double *x, size_t n)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		sum += x[i];
		squares += x[i] * x[i];
	}
	return squares > 0 ? sum * sum / ((double)n * squares) : 1;
}

uint64_t results_bps(uint64_t bytes, uint64_t time_ps)
{
	unsigned __int128 v = (unsigned __int128)bytes * 8 * UINT64_C(1000000000000);

	return time_ps ? (uint64_t)(v / time_ps) : 0;
}

static uint64_t flow_end_ps(const struct results *r, const struct results_flow *f)
{
	return f->fct_ps == RESULTS_NOT_DONE ? r->time_ps : f->start_ps + f->fct_ps;
}

/* Whether some flow of the curve was open at every moment of [from, to). */
static bool curve_is_open(const struct results *r, const struct results_curve *c, uint64_t from_ps, uint64_t to_ps)
{
	uint64_t covered_ps = from_ps;

	for (uint32_t i = c->first; i != RESULTS_NO_FLOW && covered_ps < to_ps; i = r->flows[i].curve_next) {
		uint64_t end_ps = flow_end_ps(r, &r->flows[i]);

		if (r->flows[i].start_ps <= covered_ps && end_ps > covered_ps)
			covered_ps = end_ps;
	}
	return covered_ps >= to_ps;
}

/* How many curves were open at some moment of [from, to). */
static uint32_t curves_open(const struct results *r, uint64_t from_ps, uint64_t to_ps)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->goodput.curve_count; i++) {
		uint32_t k = r->goodput.curve[i].first;

		while (k != RESULTS_NO_FLOW &&
		       (r->flows[k].start_ps >= to_ps || flow_end_ps(r, &r->flows[k]) <= from_ps))
			k = r->flows[k].curve_next;
		n += k != RESULTS_NO_FLOW;
	}
	return n;
}

uint32_t results_open_rates(const struct results *r, uint32_t from, uint32_t to, double *bps)
{
	const struct results_goodput *g = &r->goodput;
	uint64_t w = g->total.window_ps;
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->curve_count; i++) {
		uint64_t bytes = 0;

		if (!curve_is_open(r, &g->curve[i], from * w, to * w))
			continue;
		for (uint32_t k = from; k < to; k++)
			bytes += results_series_value(&g->curve[i].series, w, k);
		bps[n++] = (double)results_bps(bytes, (to - from) * w);
	}
	return n;
}

/* Over windows [from, to). */
static struct results_fairness fairness(const struct results *r, uint32_t from, uint32_t to)
{
	uint64_t w = r->goodput.total.window_ps;
	struct results_fairness f = {.start_ps = from * w, .window_ps = (to - from) * w};
	double bps[RESULTS_GOODPUT_FLOWS_MAX];

	f.flows = results_open_rates(r, from, to, bps);
	f.open = curves_open(r, from * w, to * w);
	for (uint32_t i = 0; i < f.flows; i++) {
		if (!i || (uint64_t)bps[i] < f.min_bps)
			f.min_bps = (uint64_t)bps[i];
		if ((uint64_t)bps[i] > f.max_bps)
			f.max_bps = (uint64_t)bps[i];
	}
	f.jain = results_jain(bps, f.flows);
	return f;
}

size_t results_fairness_over_time(const struct results *r, uint32_t per, struct results_fairness *out, size_t max)
{
	const struct results_goodput *g = &r->goodput;
	size_t n = 0;

	assert(per);
	for (uint32_t i = 0; i < g->total.count && (i + (uint64_t)per) * g->total.window_ps <= r->time_ps; i += per) {
		struct results_fairness f = fairness(r, i, i + per);

		if (f.flows < 2 || !f.max_bps)
			continue;
		if (n < max)
			out[n] = f;
		n++;
	}
	return n;
}

struct results_fairness results_fairness_between(const struct results *r, uint64_t start_ps, uint64_t window_ps)
{
	uint64_t w = r->goodput.total.window_ps, end_ps = r->time_ps, from, to;

	if (window_ps && window_ps < end_ps - (start_ps < end_ps ? start_ps : end_ps))
		end_ps = start_ps + window_ps;
	if (!w || start_ps >= end_ps)
		return (struct results_fairness){.start_ps = start_ps, .jain = 1};
	from = start_ps / w;
	to = (end_ps + w - 1) / w;
	/* The last window is whole only if the run went on to its end. */
	if (to * w > r->time_ps)
		to = r->time_ps / w;
	if (to <= from)
		return (struct results_fairness){.start_ps = start_ps, .jain = 1};
	return fairness(r, (uint32_t)from, (uint32_t)to);
}

struct results_fairness results_fairness_of_flows(const struct results *r, uint32_t workload)
{
	struct results_fairness f = {.window_ps = r->time_ps, .jain = 1};
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < r->flow_count; i++) {
		const struct results_flow *flow = &r->flows[i];
		uint64_t end_ps = flow_end_ps(r, flow), bps;

		if ((workload != UINT32_MAX && flow->workload != workload) || end_ps <= flow->start_ps || flow->inside)
			continue;
		bps = results_bps(flow->received_bytes, end_ps - flow->start_ps);
		if (!f.flows++ || bps < f.min_bps)
			f.min_bps = bps;
		if (bps > f.max_bps)
			f.max_bps = bps;
		sum += (double)bps;
		squares += (double)bps * (double)bps;
	}
	f.open = f.flows;
	if (squares > 0)
		f.jain = sum * sum / ((double)f.flows * squares);
	return f;
}
