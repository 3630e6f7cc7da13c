/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records and series of a run, as the simulation adds them. Sums are of integers; quotients are
 * single IEEE operations, so that every machine prints the same digits.
 */
#include "sim/results.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/grown.h"

enum { HASH_SLOTS = 2 * RESULTS_GOODPUT_FLOWS_MAX };

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
	for (uint32_t i = 0; i < r->goodput.curve_count; i++)
		results_series_free(&r->goodput.curve[i].series);
	for (uint32_t i = 0; i < r->goodput.workloads; i++)
		results_series_free(&r->goodput.of_workload[i]);
	results_series_free(&r->goodput.total);
	results_series_free(&r->pfc.frames);
	free(r->goodput.curve);
	free(r->goodput.hash);
	free(r->goodput.of_workload);
	free(r->flows);
	free(r->ports);
	free(r->drops);
	free(r->collectives);
	for (uint32_t i = 0; i < r->step_count; i++) {
		graph_free(r->steps[i].graph);
		free(r->steps[i].spans);
	}
	free(r->steps);
	free(r->alone_ps);
	free(r->trace);
	memset(r, 0, sizeof(*r));
}

/* Appends *record to an array of r; 0 or -ENOMEM. */
#define APPEND(r, array, count, capacity, record)                                            \
	({                                                                                   \
		void *p_ = grown((r)->array, (r)->count, &(r)->capacity, sizeof(*(record))); \
		if (p_) {                                                                    \
			(r)->array = p_;                                                     \
			(r)->array[(r)->count++] = *(record);                                \
		}                                                                            \
		p_ ? 0 : -ENOMEM;                                                            \
	})

/* The curve of the connection, or where it would be entered. */
static uint32_t *curve_slot(const struct results_goodput *g, uint64_t connection)
{
	uint32_t i = (uint32_t)(connection * UINT64_C(0x9e3779b97f4a7c15) >> 32) % HASH_SLOTS;

	/* Never full: it has twice as many slots as there are curves. */
	while (g->hash[i] && g->curve[g->hash[i] - 1].connection != connection)
		i = (i + 1) % HASH_SLOTS;
	return &g->hash[i];
}

/* Gives the appended flow its curve, if one is left. */
static void curve_join(struct results *r, uint32_t flow)
{
	struct results_goodput *g = &r->goodput;
	struct results_flow *f = &r->flows[flow];
	uint32_t *slot = f->connection && g->curve_capacity ? curve_slot(g, f->connection) : NULL;
	struct results_curve *c;

	f->curve = RESULTS_NO_CURVE;
	f->curve_next = RESULTS_NO_FLOW;
	if (slot && *slot) {
		f->curve = *slot - 1;
		c = &g->curve[f->curve];
		r->flows[c->last].curve_next = flow;
		c->last = flow;
	} else if (g->curve_count < g->curve_capacity) {
		f->curve = g->curve_count++;
		c = &g->curve[f->curve];
		*c = (struct results_curve){.connection = f->connection, .first = flow, .last = flow};
		results_series_init(&c->series, g->window_ps, RESULTS_SUM);
		if (slot)
			*slot = f->curve + 1;
	}
}

int results_flow_add(struct results *r, const struct results_flow *f, uint32_t *number)
{
	int rc = APPEND(r, flows, flow_count, flow_capacity, f);

	if (rc)
		return rc;
	curve_join(r, r->flow_count - 1);
	if (number)
		*number = r->flow_count - 1;
	return 0;
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

int results_step_add(struct results *r, const struct results_step *s)
{
	struct results_step step = *s;
	uint64_t end_ps = step.start_ps, compute_ps = 0, exposed_ps = 0;
	uint32_t ranks = step.graph->rank_count;

	for (uint32_t i = 0; i < step.graph->node_count; i++) {
		step.nodes_done += step.spans[i].end_ps != GRAPH_NEVER_PS;
		if (step.spans[i].end_ps != GRAPH_NEVER_PS && step.spans[i].end_ps > end_ps)
			end_ps = step.spans[i].end_ps;
	}
	step.time_ps = step.nodes_done == step.graph->node_count ? end_ps - step.start_ps : RESULTS_NOT_DONE;
	for (uint32_t i = 0; i < ranks; i++) {
		struct results_rank of;

		if (results_rank_of(&step, i, &of))
			return -ENOMEM;
		compute_ps += of.compute_ps / ranks;
		exposed_ps += of.exposed_ps / ranks;
		step.compute_ps_max = of.compute_ps > step.compute_ps_max ? of.compute_ps : step.compute_ps_max;
		step.exposed_ps_max = of.exposed_ps > step.exposed_ps_max ? of.exposed_ps : step.exposed_ps_max;
		results_rank_free(&of);
	}
	step.compute_ps = compute_ps;
	step.exposed_ps = exposed_ps;
	return APPEND(r, steps, step_count, step_capacity, &step);
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

		if (o->node != d->node || o->port != d->port)
			break;
		if (o->place == d->place && o->reason == d->reason && o->class == d->class) {
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
	assert(!g->total.window_ps && !r->flow_count);
	if (flows > RESULTS_GOODPUT_FLOWS_MAX)
		flows = RESULTS_GOODPUT_FLOWS_MAX;
	g->curve = calloc(flows ? flows : 1, sizeof(*g->curve));
	g->hash = calloc(HASH_SLOTS, sizeof(*g->hash));
	g->of_workload = calloc(workloads ? workloads : 1, sizeof(*g->of_workload));
	if (!g->curve || !g->hash || !g->of_workload) {
		free(g->curve);
		free(g->hash);
		free(g->of_workload);
		*g = (struct results_goodput){0};
		return -ENOMEM;
	}
	g->window_ps = window_ps;
	g->curve_capacity = flows;
	g->workloads = workloads;
	results_series_init(&g->total, window_ps, RESULTS_SUM);
	for (uint32_t i = 0; i < workloads; i++)
		results_series_init(&g->of_workload[i], window_ps, RESULTS_SUM);
	return 0;
}

int results_goodput_add(struct results *r, uint32_t flow, uint64_t now_ps, uint64_t bytes)
{
	struct results_goodput *g = &r->goodput;
	uint32_t w;

	assert(flow < r->flow_count);
	r->flows[flow].received_bytes += bytes;
	if (!g->total.window_ps)
		return 0;
	if (bytes && (!g->grain_bytes || bytes < g->grain_bytes))
		g->grain_bytes = bytes;
	w = r->flows[flow].workload;
	if (results_series_add(&g->total, now_ps, bytes) ||
	    (w < g->workloads && results_series_add(&g->of_workload[w], now_ps, bytes)))
		return -ENOMEM;
	if (r->flows[flow].curve == RESULTS_NO_CURVE)
		return 0;
	return results_series_add(&g->curve[r->flows[flow].curve].series, now_ps, bytes);
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
	return ((double)p->queue_byte_ps_hi * 18446744073709551616.0 + (double)p->queue_byte_ps_lo) / (double)total;
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
		[RESULTS_DROP_LIFETIME] = "lifetime",
		[RESULTS_TRIMMED] = "trimmed",
	};

	return r < RESULTS_REASONS ? names[r] : "?";
}
