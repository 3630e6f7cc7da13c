/* SPDX-License-Identifier: BSD-2-Clause */
/* The figures of a run: the numbers in summaries, JSON and comparisons, in one list. */
#include "sim.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* In the precision of the files, so that their readers get the same numbers. */
static double six_digits(double v)
{
	return v < 1e12 ? (double)(uint64_t)(v * 1e6 + 0.5) / 1e6 : v;
}

static void add(struct figures *g, const char *name, const char *label, int kind, uint64_t value, double ratio)
{
	assert(g->count < FIGURES_MAX);
	g->f[g->count++] = (struct figure){
		.name = name, .label = label, .kind = (unsigned)kind, .value = value, .ratio = six_digits(ratio)};
}

static void add_number(struct figures *g, const char *name, const char *label, int kind, uint64_t value)
{
	add(g, name, label, kind, value, 0);
}

static void add_ratio(struct figures *g, const char *name, const char *label, double ratio)
{
	add(g, name, label, FIGURE_RATIO, 0, ratio);
}

static int by_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* When flows ended: first, median, last. */
static int finish_add(struct figures *g, const struct results *r)
{
	uint64_t *end = malloc((r->flows_done ? r->flows_done : 1) * sizeof(*end));
	uint32_t n = 0;

	if (!end)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->flow_count; i++) {
		const struct results_flow *f = &r->flows[i];

		if (f->fct_ps != RESULTS_NOT_DONE && n < r->flows_done)
			end[n++] = f->start_ps + f->fct_ps;
	}
	qsort(end, n, sizeof(*end), by_u64);
	if (n) {
		add_number(g, "finish_first", "first flow done", FIGURE_TIME, end[0]);
		add_number(g, "finish_median", "median flow done", FIGURE_TIME, results_percentile_u64(end, n, 500000));
		add_number(g, "finish_last", "last flow done", FIGURE_TIME, end[n - 1]);
	}
	free(end);
	return 0;
}

static int slowdown_add(struct figures *g, const struct results *r)
{
	struct results_bin all, fixed[RESULTS_FIXED_BINS];

	if (results_bin_all(r, UINT32_MAX, &all) || results_bins_fixed(r, UINT32_MAX, fixed))
		return -ENOMEM;
	if (!all.count)
		return 0;
	add_number(g, "slowdown_flows", "FCT slowdown, of flows done", FIGURE_COUNT, all.count);
	add_ratio(g, "slowdown_mean", "FCT slowdown, mean", all.mean);
	add_ratio(g, "slowdown_p50", "FCT slowdown, p50", all.p50);
	add_ratio(g, "slowdown_p95", "FCT slowdown, p95", all.p95);
	add_ratio(g, "slowdown_p99", "FCT slowdown, p99", all.p99);
	add_ratio(g, "slowdown_p999", "FCT slowdown, p99.9", all.p999);
	if (fixed[0].count && fixed[0].count != all.count) {
		add_ratio(g, "slowdown_7kb_p95", "... of flows <= 7 KB, p95", fixed[0].p95);
		add_ratio(g, "slowdown_7kb_p99", "... of flows <= 7 KB, p99", fixed[0].p99);
	}
	if (fixed[3].count && fixed[3].count != all.count) {
		add_ratio(g, "slowdown_1mb_p95", "... of flows > 1 MB, p95", fixed[3].p95);
		add_ratio(g, "slowdown_1mb_p99", "... of flows > 1 MB, p99", fixed[3].p99);
	}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of fairness over time, which is its value between changes. */
static int windows_add(struct figures *g, const struct results *r)
{
	struct results_fairness *over = malloc(RESULTS_SERIES_WINDOWS * sizeof(*over));
	double *jain = malloc(RESULTS_SERIES_WINDOWS * sizeof(*jain));
	double *flows = malloc(RESULTS_SERIES_WINDOWS * sizeof(*flows));
	size_t n = 0;

	if (over && jain && flows)
		n = results_fairness_over_time(r, sim_fairness_windows(r), over, RESULTS_SERIES_WINDOWS);
	for (size_t i = 0; i < n; i++) {
		jain[i] = over[i].jain;
		flows[i] = over[i].flows;
	}
	if (n > 1) {
		qsort(jain, n, sizeof(*jain), by_value);
		qsort(flows, n, sizeof(*flows), by_value);
		add_ratio(g, "jain_median", "Jain's index, median of windows", results_percentile(jain, n, 500000));
		add_number(g, "jain_window", "... each as long as", FIGURE_TIME, over[0].window_ps);
		add_number(g, "jain_windows", "... so many, with two flows or more", FIGURE_COUNT, n);
		add_number(g, "jain_window_flows", "... median of the flows open throughout one", FIGURE_COUNT,
			   (uint64_t)results_percentile(flows, n, 500000));
	}
	n = over && jain && flows;
	free(over);
	free(jain);
	free(flows);
	return n ? 0 : -ENOMEM;
}

/* As a share of the payload rate of the receiving hosts, with full packets and without INT. */
static void goodput_share_add(struct figures *g, const struct results *r, uint64_t goodput_bps)
{
	double possible = (double)r->receivers_bps * (double)r->header_share_ppb / 1e9;

	if (possible > 0)
		add(g, "goodput_share", "... of what its receivers can take", FIGURE_SHARE, 0,
		    (double)goodput_bps / possible);
}

/*
 * If a stretch is configured, the index of the flows open throughout; otherwise that of every flow's mean
 * rate over its own time, because a stretch to the end would contain only the slowest few. Mean rates of
 * flows of different sizes, or of pieces of one flow, say nothing about fairness.
 */
static void fairness_add(struct figures *g, const struct scenario *s, const struct results *r, bool alike)
{
	const struct scenario_output *o = &s->output;
	bool stretch = o->fairness_start_ps || o->fairness_window_ps != SCENARIO_NONE;
	struct results_fairness f = {0};

	if (stretch)
		f = results_fairness_between(r, o->fairness_start_ps,
					     o->fairness_window_ps == SCENARIO_NONE ? 0 : o->fairness_window_ps);
	else if (alike)
		f = results_fairness_of_flows(r, UINT32_MAX);
	if (f.flows < 2 || !f.max_bps)
		return;
	add_ratio(g, "jain", stretch ? "Jain's index, fairness window" : "Jain's index, mean rates", f.jain);
	add_number(g, "jain_flows",
		   stretch ? "... of the flows open throughout" : "... of flows, each over its own time", FIGURE_COUNT,
		   f.flows);
	add_number(g, "rate_min", "slowest of these flows", FIGURE_RATE, f.min_bps);
	add_number(g, "rate_max", "fastest of these flows", FIGURE_RATE, f.max_bps);
	add_number(g, "rate_spread", "fastest less slowest", FIGURE_RATE, f.max_bps - f.min_bps);
	if (!stretch)
		return;
	add_number(g, "jain_flows_open", "flows open at some time of it", FIGURE_COUNT, f.open);
	add_number(g, "fairness_window", "... the fairness window", FIGURE_TIME, f.window_ps);
}

static void throughput_add(struct figures *g, const struct scenario *s, const struct results *r)
{
	uint64_t acked = 0, first = UINT64_MAX, last = 0, least = UINT64_MAX, most = 0;
	bool alike = true;

	for (uint32_t i = 0; i < r->flow_count; i++) {
		const struct results_flow *w = &r->flows[i];
		uint64_t end = w->fct_ps == RESULTS_NOT_DONE ? r->time_ps : w->start_ps + w->fct_ps;

		acked += w->received_bytes;
		least = w->bytes < least ? w->bytes : least;
		most = w->bytes > most ? w->bytes : most;
		alike &= w->bytes == r->flows[0].bytes && w->curve_next == RESULTS_NO_FLOW;
		if (w->start_ps < first)
			first = w->start_ps;
		if (end > last)
			last = end;
	}
	if (most) {
		add_number(g, "flow_bytes_min", "smallest flow", FIGURE_BYTES, least);
		add_number(g, "flow_bytes_max", "largest flow", FIGURE_BYTES, most);
	}
	add_number(g, "received_bytes", "received", FIGURE_BYTES, acked);
	if (first < last) {
		uint64_t bps = results_bps(acked, last - first);

		add_number(g, "goodput", "goodput of all, first post to last completion", FIGURE_RATE, bps);
		goodput_share_add(g, r, bps);
	}
	fairness_add(g, s, r, alike);
}

static void credits_add(struct figures *g, const struct results_credits *c)
{
	add_number(g, "credit_packets", "flow control packets", FIGURE_COUNT, c->frames);
	add_number(g, "credit_waits", "waits for credits", FIGURE_COUNT, c->waits);
	add_number(g, "credit_waited", "waited for credits, of all lanes", FIGURE_TIME, c->waited_ps);
	add_number(g, "credit_wait_longest", "longest wait for credits", FIGURE_TIME, c->longest_ps);
	add_number(g, "lane_buffer_max", "most in a lane's buffer", FIGURE_BYTES, c->buffer_bytes_max);
	add_number(g, "hosts_waited", "hosts that waited for credits", FIGURE_COUNT, c->hosts_waited);
}

static void network_add(struct figures *g, const struct results *r)
{
	uint64_t queue_max = 0, drops = 0, dropped_bytes = 0, trims = 0, ce = 0, tx = 0;
	const struct results_port *longest = NULL;

	for (uint32_t i = 0; i < r->port_count; i++) {
		const struct results_port *p = &r->ports[i];

		if (!p->tier)
			continue;
		if (p->queue_bytes_max > queue_max) {
			queue_max = p->queue_bytes_max;
			longest = p;
		}
		ce += p->ce_packets;
		trims += p->trimmed_packets;
		tx += p->tx_packets;
	}
	add_number(g, "queue_max", "longest queue", FIGURE_BYTES, queue_max);
	/* Without samples only the longest queue is known. */
	if (longest && results_queue_percentile(longest, 1000000)) {
		add_number(g, "queue_p50", "... half of the time", FIGURE_BYTES,
			   results_queue_percentile(longest, 500000));
		add_number(g, "queue_p99", "... 99 % of the time", FIGURE_BYTES,
			   results_queue_percentile(longest, 990000));
		add_number(g, "queue_all_p99", "all switch queues, 99 % of the time", FIGURE_BYTES,
			   results_queue_percentile_all(r, 990000));
	}
	if (tx)
		add(g, "ce_share", "packets marked", FIGURE_SHARE, 0, (double)ce / (double)tx);
	add_number(g, "pause_frames", "PFC pause frames", FIGURE_COUNT, r->pfc.pause_frames);
	if (r->pfc.pause_frames) {
		add_number(g, "resume_frames", "PFC resume frames", FIGURE_COUNT, r->pfc.resume_frames);
		add_number(g, "paused", "paused, of all ports", FIGURE_TIME, r->pfc.paused_ps);
		add_number(g, "pause_longest", "longest pause", FIGURE_TIME, r->pfc.longest_ps);
		add_number(g, "pause_depth", "pauses that caused pauses, depth", FIGURE_COUNT, r->pfc.depth_max);
		add_number(g, "hosts_paused", "hosts paused", FIGURE_COUNT, r->pfc.hosts_paused);
	}
	if (r->credits.used)
		credits_add(g, &r->credits);
	for (uint32_t i = 0; i < r->drop_count; i++) {
		if (r->drops[i].reason == RESULTS_TRIMMED)
			continue;
		drops += r->drops[i].packets;
		dropped_bytes += r->drops[i].bytes;
	}
	add_number(g, "dropped_packets", "packets dropped", FIGURE_COUNT, drops);
	add_number(g, "dropped_bytes", "... bytes", FIGURE_BYTES, dropped_bytes);
	if (trims)
		add_number(g, "trimmed_packets", "packets trimmed", FIGURE_COUNT, trims);
}

static void recovery_add(struct figures *g, const struct results *r)
{
	add_number(g, "retransmitted_packets", "packets sent again", FIGURE_COUNT, r->recovery.retransmitted_packets);
	add_number(g, "spurious_packets", "... for nothing", FIGURE_COUNT, r->recovery.spurious_packets);
	add_number(g, "rtos", "retransmission timeouts", FIGURE_COUNT, r->recovery.timeouts);
	add_number(g, "naks", "NAKs", FIGURE_COUNT, r->recovery.naks);
	add_number(g, "cnps", "CNPs", FIGURE_COUNT, r->recovery.cnps);
	if (!r->recovery.line_packets)
		return;
	add_number(g, "sdr_packets", "packets of SDR, with data or parity", FIGURE_COUNT, r->recovery.line_packets);
	add_number(g, "parity_packets", "... with parity", FIGURE_COUNT, r->recovery.parity_packets);
	if (r->recovery.fill_packets)
		add_number(g, "fill_packets", "... with parity that filled idle time", FIGURE_COUNT,
			   r->recovery.fill_packets);
	add_number(g, "sdr_words", "control messages of SDR", FIGURE_COUNT, r->recovery.words);
}

/* Means of the steps that are done. */
static void steps_add(struct figures *g, const struct results *r)
{
	unsigned __int128 time = 0, compute = 0, exposed = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->step_count; i++) {
		const struct results_step *s = &r->steps[i];

		if (s->time_ps == RESULTS_NOT_DONE)
			continue;
		n++;
		time += s->time_ps;
		compute += s->compute_ps;
		exposed += s->exposed_ps;
	}
	if (!n)
		return;
	add_number(g, "step_time", "step, mean time", FIGURE_TIME, (uint64_t)(time / n));
	add_number(g, "step_compute", "... in which the mean rank computes", FIGURE_TIME, (uint64_t)(compute / n));
	add_number(g, "step_exposed", "... of exposed communication", FIGURE_TIME, (uint64_t)(exposed / n));
	if (time)
		add(g, "step_exposed_share", "exposed communication, share of the step", FIGURE_SHARE, 0,
		    (double)exposed / (double)time);
}

/* Of jobs whose step alone, or with an infinite network, is known: how much longer they take, in the mean. */
static void jobs_add(struct figures *g, const struct results *r)
{
	double alone = 0, infinite = 0;
	struct results_job *jobs;
	uint32_t count, n = 0, k = 0;

	if (results_jobs(r, &jobs, &count))
		return;
	for (uint32_t i = 0; i < count; i++) {
		const struct results_job *j = &jobs[i];

		if (j->steps_done && j->alone_ps) {
			alone += (double)j->time_ps / (double)j->alone_ps;
			n++;
		}
		if (j->steps_done && j->infinite_ps) {
			infinite += (double)j->time_ps / (double)j->infinite_ps;
			k++;
		}
	}
	free(jobs);
	if (n)
		add(g, "step_slowdown", "step, times that of the job alone", FIGURE_RATIO, 0, alone / n);
	if (k)
		add(g, "step_slowdown_infinite", "step, times that with an infinite network", FIGURE_RATIO, 0,
		    infinite / k);
}

static void collectives_add(struct figures *g, const struct results *r)
{
	uint64_t time = 0, bus = 0, algorithm = 0, ideal = 0, possible = 0, of_time = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->collective_count; i++) {
		const struct results_collective *c = &r->collectives[i];

		if (c->time_ps == RESULTS_NOT_DONE)
			continue;
		time += c->time_ps;
		ideal += c->ideal_ps;
		possible += c->possible_ps;
		of_time += c->possible_ps ? c->time_ps : 0;
		bus += c->bus_bps;
		algorithm += c->algorithm_bps;
		n++;
	}
	if (!n)
		return;
	add_number(g, "collective_time", "collective, mean time", FIGURE_TIME, time / n);
	add_number(g, "algorithm_bandwidth", "algorithm bandwidth, mean", FIGURE_RATE, algorithm / n);
	add_number(g, "bus_bandwidth", "bus bandwidth, mean", FIGURE_RATE, bus / n);
	if (ideal)
		add(g, "collective_share", "share of ideal", FIGURE_SHARE, 0, (double)ideal / (double)time);
	if (possible)
		add(g, "possible_share", "share of what is possible", FIGURE_SHARE, 0,
		    (double)possible / (double)of_time);
}

int figures_make(struct figures *g, const struct scenario *s, const struct results *r)
{
	g->count = 0;
	add_number(g, "flows", "flows", FIGURE_COUNT, r->flow_count + r->flows_held_back);
	add_number(g, "flows_done", "flows done", FIGURE_COUNT, r->flows_done);
	add_number(g, "time", "simulated time", FIGURE_TIME, r->time_ps);
	if (finish_add(g, r) || slowdown_add(g, r))
		return -ENOMEM;
	steps_add(g, r);
	jobs_add(g, r);
	collectives_add(g, r);
	throughput_add(g, s, r);
	if (windows_add(g, r))
		return -ENOMEM;
	network_add(g, r);
	recovery_add(g, r);
	add_number(g, "events", "events", FIGURE_COUNT, r->events);
	add_number(g, "packet_hops", "packet-hops", FIGURE_COUNT, r->packet_hops);
	add_number(g, "packets", "packets", FIGURE_COUNT, r->packets);
	return 0;
}

const struct figure *figure_find(const struct figures *g, const char *name)
{
	for (size_t i = 0; i < g->count; i++) {
		if (!strcmp(g->f[i].name, name))
			return &g->f[i];
	}
	return NULL;
}

const char *figure_text(const struct figure *f, char buf[SIM_TEXT_BYTES])
{
	switch (f->kind) {
	case FIGURE_COUNT: return count_text(f->value, buf);
	case FIGURE_TIME: return time_text(f->value, buf);
	case FIGURE_RATE: return rate_text(f->value, buf);
	case FIGURE_BYTES: return bytes_text(f->value, buf);
	case FIGURE_RATIO:
		snprintf(buf, SIM_TEXT_BYTES, f->ratio >= 100 ? "%.1f" : f->ratio >= 10 ? "%.2f" : "%.4g", f->ratio);
		return buf;
	case FIGURE_SHARE: snprintf(buf, SIM_TEXT_BYTES, "%.2f %%", 100 * f->ratio); return buf;
	}
	return "";
}

void figure_number(FILE *out, const struct figure *f)
{
	if (f->kind == FIGURE_RATIO || f->kind == FIGURE_SHARE)
		fprintf(out, "%.6f", f->ratio);
	else
		fprintf(out, "%" PRIu64, f->value);
}

static const char *const units[] = {
	[FIGURE_COUNT] = "count", [FIGURE_TIME] = "ps",     [FIGURE_RATE] = "bit/s",
	[FIGURE_BYTES] = "bytes", [FIGURE_RATIO] = "ratio", [FIGURE_SHARE] = "share",
};

const char *figure_unit(const struct figure *f)
{
	return units[f->kind];
}

bool figure_of_unit(struct figure *f, const char *unit)
{
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(units[i], unit))
			continue;
		f->kind = i;
		return true;
	}
	return false;
}
