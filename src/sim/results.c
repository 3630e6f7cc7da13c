/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records and series of a run, and the metrics over them. Sums are of integers, in the order of the
 * records; quotients are single IEEE operations, so that every machine prints the same digits.
 */
#include "sim/results.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static_assert(RESULTS_SERIES_WINDOWS % 2 == 0, "windows are joined in pairs");

void results_init(struct results *r)
{
	memset(r, 0, sizeof(*r));
}

void results_free(struct results *r)
{
	for (uint32_t i = 0; i < r->port_count; i++) {
		free(r->ports[i].queue_time_ps);
		free(r->ports[i].sample_count);
		results_series_free(&r->ports[i].queue);
	}
	for (uint32_t i = 0; i < r->goodput.flow_capacity; i++)
		results_series_free(&r->goodput.flow[i]);
	for (uint32_t i = 0; i < r->goodput.workloads; i++)
		results_series_free(&r->goodput.of_workload[i]);
	results_series_free(&r->goodput.total);
	results_series_free(&r->pfc.frames);
	free(r->goodput.flow);
	free(r->goodput.of_workload);
	free(r->flows);
	free(r->ports);
	free(r->drops);
	free(r->collectives);
	free(r->trace);
	memset(r, 0, sizeof(*r));
}

/* Room for one more element; NULL: no memory, nothing changed. */
static void *grown(void *array, uint32_t count, uint32_t *capacity, size_t size)
{
	uint32_t want = *capacity ? *capacity * 2 : 16;
	void *p;

	if (count < *capacity)
		return array;
	if (want < *capacity)
		return NULL;
	p = reallocarray(array, want, size);
	if (p)
		*capacity = want;
	return p;
}

/* Appends *record to an array of r; 0 or -ENOMEM. */
#define APPEND(r, array, count, capacity, record)                                         \
	({                                                                                \
		void *p_ = grown((r)->array, (r)->count, &(r)->capacity, sizeof(*(record))); \
		if (p_) {                                                                 \
			(r)->array = p_;                                                  \
			(r)->array[(r)->count++] = *(record);                             \
		}                                                                         \
		p_ ? 0 : -ENOMEM;                                                         \
	})

int results_flow_add(struct results *r, const struct results_flow *f, uint32_t *number)
{
	int rc = APPEND(r, flows, flow_count, flow_capacity, f);

	if (!rc && number)
		*number = r->flow_count - 1;
	return rc;
}

int results_port_add(struct results *r, const struct results_port *p, uint32_t *number)
{
	int rc = APPEND(r, ports, port_count, port_capacity, p);

	if (!rc && number)
		*number = r->port_count - 1;
	return rc;
}

int results_collective_add(struct results *r, const struct results_collective *c)
{
	return APPEND(r, collectives, collective_count, collective_capacity, c);
}

int results_trace_add(struct results *r, const struct results_trace *t)
{
	if (r->trace_count == RESULTS_TRACE_MAX) {
		r->trace_lost++;
		return 0;
	}
	return APPEND(r, trace, trace_count, trace_capacity, t);
}

int results_drop_add(struct results *r, const struct results_drop *d)
{
	for (uint32_t i = r->drop_count; i-- > 0;) {
		struct results_drop *o = &r->drops[i];

		if (o->place == d->place && o->reason == d->reason && o->node == d->node &&
		    o->port == d->port && o->class == d->class) {
			o->packets += d->packets;
			o->bytes += d->bytes;
			return 0;
		}
	}
	return APPEND(r, drops, drop_count, drop_capacity, d);
}

void results_flow_done(struct results *r, uint32_t flow, uint64_t now_ps)
{
	assert(flow < r->flow_count);
	assert(r->flows[flow].fct_ps == RESULTS_NOT_DONE);
	r->flows[flow].fct_ps = now_ps - r->flows[flow].start_ps;
	r->flows_done++;
}

/* ---- Series ---- */

void results_series_init(struct results_series *s, uint64_t window_ps, enum results_join join)
{
	*s = (struct results_series){.window_ps = window_ps, .join = join};
}

void results_series_free(struct results_series *s)
{
	free(s->value);
	s->value = NULL;
	s->count = s->capacity = 0;
}

static uint64_t joined(enum results_join join, uint64_t a, uint64_t b)
{
	if (join == RESULTS_MAX)
		return a > b ? a : b;
	return a + b;
}

int results_series_add(struct results_series *s, uint64_t now_ps, uint64_t value)
{
	uint64_t i = now_ps / s->window_ps;

	while (i >= RESULTS_SERIES_WINDOWS) {
		for (uint32_t k = 0; k < s->count; k += 2)
			s->value[k / 2] = joined(s->join, s->value[k], k + 1 < s->count ? s->value[k + 1] : 0);
		s->count = (s->count + 1) / 2;
		s->window_ps *= 2;
		i = now_ps / s->window_ps;
	}
	if (i >= s->capacity) {
		uint32_t want = s->capacity ? s->capacity : 16;
		uint64_t *p;

		while (want <= i)
			want *= 2;
		p = reallocarray(s->value, want, sizeof(*p));
		if (!p)
			return -ENOMEM;
		s->value = p;
		s->capacity = want;
	}
	while (s->count <= i)
		s->value[s->count++] = 0;
	s->value[i] = joined(s->join, s->value[i], value);
	return 0;
}

uint64_t results_series_value(const struct results_series *s, uint64_t window_ps, uint32_t i)
{
	uint64_t per = s->window_ps ? window_ps / s->window_ps : 0, v = 0;

	for (uint64_t k = i * per; k < (i + UINT64_C(1)) * per && k < s->count; k++)
		v = joined(s->join, v, s->value[k]);
	return v;
}

/* ---- Goodput ---- */

int results_goodput_start(struct results *r, uint64_t window_ps, uint32_t flows, uint32_t workloads)
{
	struct results_goodput *g = &r->goodput;

	assert(window_ps > 0);
	assert(!g->total.window_ps);
	if (flows > RESULTS_GOODPUT_FLOWS_MAX)
		flows = RESULTS_GOODPUT_FLOWS_MAX;
	g->flow = calloc(flows ? flows : 1, sizeof(*g->flow));
	g->of_workload = calloc(workloads ? workloads : 1, sizeof(*g->of_workload));
	if (!g->flow || !g->of_workload) {
		free(g->flow);
		free(g->of_workload);
		g->flow = g->of_workload = NULL;
		return -ENOMEM;
	}
	g->flow_capacity = flows;
	g->workloads = workloads;
	results_series_init(&g->total, window_ps, RESULTS_SUM);
	for (uint32_t i = 0; i < flows; i++)
		results_series_init(&g->flow[i], window_ps, RESULTS_SUM);
	for (uint32_t i = 0; i < workloads; i++)
		results_series_init(&g->of_workload[i], window_ps, RESULTS_SUM);
	return 0;
}

int results_goodput_add(struct results *r, uint32_t flow, uint64_t now_ps, uint64_t bytes)
{
	struct results_goodput *g = &r->goodput;
	uint32_t w;

	assert(flow < r->flow_count);
	r->flows[flow].acked_bytes += bytes;
	if (!g->total.window_ps)
		return 0;
	w = r->flows[flow].workload;
	if (results_series_add(&g->total, now_ps, bytes) ||
	    (w < g->workloads && results_series_add(&g->of_workload[w], now_ps, bytes)))
		return -ENOMEM;
	return flow < g->flow_capacity ? results_series_add(&g->flow[flow], now_ps, bytes) : 0;
}

/* ---- Queues ---- */

static uint32_t queue_bin(uint64_t bytes)
{
	uint64_t bin = (bytes + RESULTS_QUEUE_BIN_BYTES - 1) / RESULTS_QUEUE_BIN_BYTES;

	return bin < RESULTS_QUEUE_BINS_MAX ? (uint32_t)bin : RESULTS_QUEUE_BINS_MAX - 1;
}

/* A zeroed element number `bin` in an array that grows by powers of two. */
static void *bins_reach(void *array, uint32_t *bins, uint32_t bin, size_t size)
{
	uint32_t want = *bins ? *bins : 16;
	char *p;

	if (bin < *bins)
		return array;
	while (want <= bin)
		want *= 2;
	p = reallocarray(array, want, size);
	if (!p)
		return NULL;
	memset(p + *bins * size, 0, (want - *bins) * size);
	*bins = want;
	return p;
}

static int queue_account(struct results_port *p, uint64_t now_ps)
{
	uint64_t dt = now_ps - p->queue_since_ps;
	uint32_t bin = queue_bin(p->queue_bytes);
	unsigned __int128 sum;
	uint64_t *bins;

	assert(now_ps >= p->queue_since_ps);
	if (!dt)
		return 0;
	bins = bins_reach(p->queue_time_ps, &p->queue_bins, bin, sizeof(*bins));
	if (!bins)
		return -ENOMEM;
	p->queue_time_ps = bins;
	bins[bin] += dt;
	sum = (unsigned __int128)p->queue_byte_ps_hi << 64 | p->queue_byte_ps_lo;
	sum += (unsigned __int128)p->queue_bytes * dt;
	p->queue_byte_ps_hi = (uint64_t)(sum >> 64);
	p->queue_byte_ps_lo = (uint64_t)sum;
	return 0;
}

/* The series' windows from the last change on have seen the length that ends now. */
static int queue_curve(struct results_port *p, uint64_t now_ps, uint64_t bytes)
{
	struct results_series *s = &p->queue;

	if (!s->window_ps)
		return 0;
	if (results_series_add(s, now_ps, bytes))
		return -ENOMEM;
	if (!p->queue_bytes)
		return 0;
	for (uint64_t i = p->queue_since_ps / s->window_ps; i * s->window_ps < now_ps; i++)
		s->value[i] = joined(RESULTS_MAX, s->value[i], p->queue_bytes);
	return 0;
}

int results_queue_change(struct results_port *p, uint64_t now_ps, uint64_t bytes)
{
	if (queue_account(p, now_ps) || queue_curve(p, now_ps, bytes))
		return -ENOMEM;
	p->queue_since_ps = now_ps;
	p->queue_bytes = bytes;
	if (bytes > p->queue_bytes_max)
		p->queue_bytes_max = bytes;
	return 0;
}

int results_queue_end(struct results_port *p, uint64_t now_ps)
{
	return results_queue_change(p, now_ps, p->queue_bytes);
}

int results_queue_sample(struct results_port *p)
{
	uint32_t bin = queue_bin(p->queue_bytes);
	uint32_t *count = bins_reach(p->sample_count, &p->sample_bins, bin, sizeof(*count));

	if (!count)
		return -ENOMEM;
	p->sample_count = count;
	count[bin]++;
	return 0;
}

/* The bin in which the share is reached, as its upper edge. */
static uint64_t histogram_percentile(const uint64_t *time_ps, uint32_t bins, uint32_t ppm)
{
	unsigned __int128 total = 0, sum = 0;
	uint32_t i;

	for (i = 0; i < bins; i++)
		total += time_ps[i];
	for (i = 0; i < bins; i++) {
		sum += time_ps[i];
		if (sum && sum * 1000000 >= total * ppm)
			return (uint64_t)i * RESULTS_QUEUE_BIN_BYTES;
	}
	return 0;
}

uint64_t results_queue_percentile(const struct results_port *p, uint32_t ppm)
{
	uint64_t edge = histogram_percentile(p->queue_time_ps, p->queue_bins, ppm);

	return edge < p->queue_bytes_max ? edge : p->queue_bytes_max;
}

uint64_t results_queue_percentile_all(const struct results *r, uint32_t ppm)
{
	uint64_t *sum = NULL, edge, max = 0;
	uint32_t bins = 0;

	for (uint32_t i = 0; i < r->port_count; i++) {
		const struct results_port *p = &r->ports[i];
		uint64_t *grown_sum;

		if (!p->tier || !p->queue_bins)
			continue;
		grown_sum = bins_reach(sum, &bins, p->queue_bins - 1, sizeof(*sum));
		if (!grown_sum)
			break;
		sum = grown_sum;
		for (uint32_t k = 0; k < p->queue_bins; k++)
			sum[k] += p->queue_time_ps[k];
		if (p->queue_bytes_max > max)
			max = p->queue_bytes_max;
	}
	edge = histogram_percentile(sum, bins, ppm);
	free(sum);
	return edge < max ? edge : max;
}

double results_queue_mean(const struct results_port *p)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < p->queue_bins; i++)
		total += p->queue_time_ps[i];
	if (!total)
		return 0;
	return ((double)p->queue_byte_ps_hi * 18446744073709551616.0 + (double)p->queue_byte_ps_lo) /
	       (double)total;
}

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
	return f->fct_ps > f->ideal_ps ? (double)f->fct_ps / (double)f->ideal_ps : 1;
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

static int bins_fill(const struct results *r, uint32_t workload, bin_end end, unsigned count,
		     struct results_bin *bins)
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

int results_bins_equal(const struct results *r, uint32_t workload,
		       struct results_bin bins[RESULTS_EQUAL_BINS])
{
	return bins_fill(r, workload, end_equal, RESULTS_EQUAL_BINS, bins);
}

int results_bins_fixed(const struct results *r, uint32_t workload,
		       struct results_bin bins[RESULTS_FIXED_BINS])
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

uint32_t results_goodput_flows(const struct results *r)
{
	return r->flow_count < r->goodput.flow_capacity ? r->flow_count : r->goodput.flow_capacity;
}

static uint64_t flow_end_ps(const struct results *r, const struct results_flow *f)
{
	return f->fct_ps == RESULTS_NOT_DONE ? r->time_ps : f->start_ps + f->fct_ps;
}

/* Of the flows that were open during windows [from, to), in their series' bytes. x: room for all. */
static struct results_fairness fairness(const struct results *r, uint32_t from, uint32_t to, double *x)
{
	const struct results_goodput *g = &r->goodput;
	uint64_t w = g->total.window_ps;
	struct results_fairness f = {.start_ps = from * w, .window_ps = (to - from) * w, .jain = 1};

	for (uint32_t i = 0; i < results_goodput_flows(r); i++) {
		const struct results_flow *flow = &r->flows[i];
		uint64_t bytes = 0, bps;

		if (flow->start_ps > from * w || flow_end_ps(r, flow) < to * w)
			continue;
		for (uint32_t k = from; k < to; k++)
			bytes += results_series_value(&g->flow[i], w, k);
		bps = results_bps(bytes, f.window_ps);
		if (!f.flows || bps < f.min_bps)
			f.min_bps = bps;
		if (bps > f.max_bps)
			f.max_bps = bps;
		x[f.flows++] = (double)bytes;
	}
	f.jain = results_jain(x, f.flows);
	return f;
}

size_t results_fairness_over_time(const struct results *r, uint32_t per, struct results_fairness *out,
				  size_t max)
{
	const struct results_goodput *g = &r->goodput;
	double x[RESULTS_GOODPUT_FLOWS_MAX];
	size_t n = 0;

	assert(per);
	for (uint32_t i = 0; i < g->total.count && (i + (uint64_t)per) * g->total.window_ps <= r->time_ps;
	     i += per) {
		struct results_fairness f = fairness(r, i, i + per, x);

		if (f.flows < 2)
			continue;
		if (n < max)
			out[n] = f;
		n++;
	}
	return n;
}

struct results_fairness results_fairness_between(const struct results *r, uint64_t start_ps,
						 uint64_t window_ps)
{
	uint64_t w = r->goodput.total.window_ps, end_ps = r->time_ps, from, to;
	double x[RESULTS_GOODPUT_FLOWS_MAX];

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
	return fairness(r, (uint32_t)from, (uint32_t)to, x);
}

struct results_fairness results_fairness_of_flows(const struct results *r, uint32_t workload)
{
	struct results_fairness f = {.window_ps = r->time_ps, .jain = 1};
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < r->flow_count; i++) {
		const struct results_flow *flow = &r->flows[i];
		uint64_t end_ps = flow_end_ps(r, flow), bps;

		if ((workload != UINT32_MAX && flow->workload != workload) || end_ps <= flow->start_ps)
			continue;
		bps = results_bps(flow->acked_bytes, end_ps - flow->start_ps);
		if (!f.flows++ || bps < f.min_bps)
			f.min_bps = bps;
		if (bps > f.max_bps)
			f.max_bps = bps;
		sum += (double)bps;
		squares += (double)bps * (double)bps;
	}
	if (squares > 0)
		f.jain = sum * sum / ((double)f.flows * squares);
	return f;
}

const char *results_place_name(enum results_place p)
{
	static const char *const names[RESULTS_PLACES] = {"link", "switch", "host"};

	return p < RESULTS_PLACES ? names[p] : "?";
}

const char *results_reason_name(enum results_reason r)
{
	static const char *const names[RESULTS_REASONS] = {
		[RESULTS_DROP_LOSS] = "loss",
		[RESULTS_DROP_CORRUPT] = "corrupt",
		[RESULTS_DROP_LIST] = "listed",
		[RESULTS_DROP_DOWN] = "link-down",
		[RESULTS_DROP_BUFFER] = "buffer-full",
		[RESULTS_DROP_THRESHOLD] = "queue-limit",
		[RESULTS_DROP_HEADROOM] = "headroom-full",
		[RESULTS_DROP_CONTROL_FULL] = "control-full",
		[RESULTS_DROP_NO_ROUTE] = "no-route",
		[RESULTS_DROP_RX_BUFFER] = "rx-buffer-full",
		[RESULTS_DROP_STALE] = "stale",
	};

	return r < RESULTS_REASONS ? names[r] : "?";
}
