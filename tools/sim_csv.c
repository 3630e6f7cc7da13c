/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One CSV file a metric. Units are in the column's name; times are picoseconds as whole numbers, so
 * that nothing is rounded. A metric without records has only its header line.
 */
#include "sim.h"

#include <inttypes.h>
#include <string.h>

/*
 * Fairness over time has at most this many points, each of at least this many of the smallest
 * steps.
 */
enum { FAIRNESS_POINTS = 128, FAIRNESS_GRAINS = 8 };

#define U64 "%" PRIu64
#define U32 "%" PRIu32

void csv_field(FILE *f, const char *s)
{
	if (!strpbrk(s, ",\"\n")) {
		fputs(s, f);
		return;
	}
	fputc('"', f);
	for (; *s; s++)
		fprintf(f, *s == '"' ? "\"\"" : "%c", *s);
	fputc('"', f);
}

static const char *workload_name(const struct sim_input *in, uint32_t i)
{
	return i < in->scenario->workload_count ? in->scenario->workload[i].name : "";
}

static void write_flows(FILE *f, const struct sim_input *in, const struct results *r)
{
	fprintf(f, "flow,workload,round,src,dst,qp,bytes,start_ps,fct_ps,ideal_ps,slowdown,"
		   "received_bytes,base_rtt_ps\n");
	for (uint32_t i = 0; i < r->flow_count; i++) {
		const struct results_flow *w = &r->flows[i];

		fprintf(f, U32 ",%s," U32 "," U32 "," U32 "," U32 "," U64 "," U64 ",", i,
			workload_name(in, w->workload), w->round, w->src, w->dst, w->qp, w->bytes, w->start_ps);
		if (w->fct_ps == RESULTS_NOT_DONE)
			fprintf(f, "," U64 ",,", w->ideal_ps);
		else
			fprintf(f, U64 "," U64 ",%.6f,", w->fct_ps, w->ideal_ps, results_slowdown(w));
		fprintf(f, U64 "," U64 "\n", w->received_bytes, w->base_rtt_ps);
	}
}

static void write_bins(FILE *f, const char *name, const struct results_bin *b, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (!b[i].count)
			continue;
		fprintf(f, "%s,%u," U64 ",", name, i, b[i].bytes_min);
		if (b[i].bytes_max != UINT64_MAX)
			fprintf(f, U64, b[i].bytes_max);
		fprintf(f, "," U32 ",%.6f,%.6f,%.6f,%.6f,%.6f,%.6f\n", b[i].count, b[i].mean, b[i].p50, b[i].p95,
			b[i].p99, b[i].p999, b[i].max);
	}
}

static void write_slowdown(struct folder *d, const struct sim_input *in, const struct results *r)
{
	static const char header[] = "workload,bin,bytes_min,bytes_max,flows,mean,p50,p95,p99,p999,max\n";
	struct results_bin equal[RESULTS_EQUAL_BINS], fixed[RESULTS_FIXED_BINS];
	FILE *f = folder_file(d, "slowdown_equal.csv");

	fputs(header, f);
	if (!results_bins_equal(r, UINT32_MAX, equal))
		write_bins(f, "all", equal, RESULTS_EQUAL_BINS);
	for (uint32_t i = 0; i < in->scenario->workload_count; i++) {
		if (!results_bins_equal(r, i, equal))
			write_bins(f, workload_name(in, i), equal, RESULTS_EQUAL_BINS);
	}
	f = folder_file(d, "slowdown_fixed.csv");
	fputs(header, f);
	if (!results_bins_fixed(r, UINT32_MAX, fixed))
		write_bins(f, "all", fixed, RESULTS_FIXED_BINS);
	for (uint32_t i = 0; i < in->scenario->workload_count; i++) {
		if (!results_bins_fixed(r, i, fixed))
			write_bins(f, workload_name(in, i), fixed, RESULTS_FIXED_BINS);
	}
}

static void write_ports(FILE *f, const struct results *r)
{
	fprintf(f, "node,port,to,tier,rate_bps,tx_packets,tx_bytes,ce_packets,trimmed_packets,"
		   "queue_bytes_max,queue_bytes_mean,queue_bytes_p50,queue_bytes_p99,pause_tx,"
		   "resume_tx,"
		   "pause_rx,resume_rx,longest_pause_ps,headroom_bytes_max\n");
	for (uint32_t i = 0; i < r->port_count; i++) {
		const struct results_port *p = &r->ports[i];

		fprintf(f,
			U32 ",%u," U32 ",%u," U64 "," U64 "," U64 "," U64 "," U64 "," U64 ",%.3f," U64 "," U64 "," U64
			    "," U64 "," U64 "," U64 "," U64 "," U64 "\n",
			p->node, p->port, p->to, p->tier, p->rate_bps, p->tx_packets, p->tx_bytes, p->ce_packets,
			p->trimmed_packets, p->queue_bytes_max, results_queue_mean(p),
			results_queue_percentile(p, 500000), results_queue_percentile(p, 990000), p->pause_tx,
			p->resume_tx, p->pause_rx, p->resume_rx, p->longest_pause_ps, p->headroom_bytes_max);
	}
}

/*
 * All windows up to the end are written, empty ones too: a missing row would look like a window that
 * was not kept. A series to which nothing was added for long has narrower windows than the run
 * needs.
 */
static uint32_t windows_until(uint64_t end_ps, uint64_t window_ps)
{
	return window_ps ? (uint32_t)((end_ps + window_ps - 1) / window_ps) : 0;
}

static uint64_t wide_enough(const struct results *r, uint64_t window_ps)
{
	while (window_ps && windows_until(r->time_ps, window_ps) > RESULTS_SERIES_WINDOWS)
		window_ps *= 2;
	return window_ps;
}

/* The same for all queues; 0: there is none. */
static uint64_t queue_window(const struct results *r)
{
	uint64_t window = 0;

	for (uint32_t i = 0; i < r->port_count; i++) {
		const struct results_series *s = &r->ports[i].queue;

		if (r->ports[i].tier && s->count && s->window_ps > window)
			window = s->window_ps;
	}
	return wide_enough(r, window);
}

/* Of ports that ever had one. */
static void write_queues_over_time(FILE *f, const struct results *r)
{
	uint64_t window = queue_window(r);

	fprintf(f, "node,port,time_ps,window_ps,bytes_max\n");
	for (uint32_t i = 0; i < r->port_count; i++) {
		const struct results_port *p = &r->ports[i];

		if (!p->tier || !p->queue.count)
			continue;
		for (uint32_t k = 0; k < windows_until(r->time_ps, window); k++)
			fprintf(f, U32 ",%u," U64 "," U64 "," U64 "\n", p->node, p->port, k * window, window,
				results_series_value(&p->queue, window, k));
	}
}

static void write_queues(struct folder *d, const struct results *r)
{
	FILE *f = folder_file(d, "queue_histogram.csv");

	fprintf(f, "node,port,bytes_up_to,time_ps\n");
	for (uint32_t i = 0; i < r->port_count; i++) {
		const struct results_port *p = &r->ports[i];

		for (uint32_t k = 0; k < p->queue_bins; k++) {
			if (p->queue_time_ps[k])
				fprintf(f, U32 ",%u," U64 "," U64 "\n", p->node, p->port,
					(uint64_t)k * RESULTS_QUEUE_BIN_BYTES, p->queue_time_ps[k]);
		}
	}
	f = folder_file(d, "queue_samples.csv");
	fprintf(f, "node,port,bytes_up_to,samples\n");
	for (uint32_t i = 0; i < r->port_count; i++) {
		const struct results_port *p = &r->ports[i];

		for (uint32_t k = 0; k < p->sample_bins; k++) {
			if (p->sample_count[k])
				fprintf(f, U32 ",%u," U64 "," U32 "\n", p->node, p->port,
					(uint64_t)k * RESULTS_QUEUE_BIN_BYTES, p->sample_count[k]);
		}
	}
	write_queues_over_time(folder_file(d, "queue_over_time.csv"), r);
}

/* The longest of all switch queues in each window. */
static void write_longest(FILE *f, const struct results *r)
{
	uint64_t window = queue_window(r);

	fprintf(f, "time_ps,window_ps,bytes_max\n");
	for (uint32_t k = 0; k < windows_until(r->time_ps, window); k++) {
		uint64_t most = 0;

		for (uint32_t i = 0; i < r->port_count; i++) {
			uint64_t v = r->ports[i].queue.count ? results_series_value(&r->ports[i].queue, window, k) : 0;

			most = v > most ? v : most;
		}
		fprintf(f, U64 "," U64 "," U64 "\n", k * window, window, most);
	}
}

static void write_pfc(struct folder *d, const struct results *r)
{
	FILE *f = folder_file(d, "pfc_ports.csv");
	uint64_t w;

	fprintf(f, "node,port,class,paused_ps\n");
	for (uint32_t i = 0; i < r->port_count; i++) {
		for (int c = 0; c < RESULTS_CLASSES; c++) {
			if (r->ports[i].paused_ps[c])
				fprintf(f, U32 ",%u,%d," U64 "\n", r->ports[i].node, r->ports[i].port, c,
					r->ports[i].paused_ps[c]);
		}
	}
	f = folder_file(d, "pfc_over_time.csv");
	fprintf(f, "time_ps,window_ps,pause_frames\n");
	w = wide_enough(r, r->pfc.frames.window_ps);
	for (uint32_t k = 0; k < windows_until(r->time_ps, w); k++)
		fprintf(f, U64 "," U64 "," U64 "\n", k * w, w, results_series_value(&r->pfc.frames, w, k));
}

static void write_drops(FILE *f, const struct results *r)
{
	fprintf(f, "place,reason,node,port,to,class,packets,bytes\n");
	for (uint32_t i = 0; i < r->drop_count; i++) {
		const struct results_drop *o = &r->drops[i];

		fprintf(f, "%s,%s,", results_place_name(o->place), results_reason_name(o->reason));
		if (o->node != RESULTS_NO_NODE)
			fprintf(f, U32 ",%u," U32, o->node, o->port, o->to);
		else
			fputs(",,", f);
		fprintf(f, ",%u," U64 "," U64 "\n", o->class, o->packets, o->bytes);
	}
}

/* The end of its last flow. */
static uint64_t curve_end_ps(const struct results *r, const struct results_curve *c)
{
	uint64_t end_ps = 0;

	for (uint32_t i = c->first; i != RESULTS_NO_FLOW; i = r->flows[i].curve_next) {
		const struct results_flow *f = &r->flows[i];
		uint64_t at_ps = f->fct_ps == RESULTS_NOT_DONE ? r->time_ps : f->start_ps + f->fct_ps;

		end_ps = at_ps > end_ps ? at_ps : end_ps;
	}
	return end_ps;
}

static void write_goodput(struct folder *d, const struct sim_input *in, const struct results *r)
{
	const struct results_goodput *g = &r->goodput;
	uint64_t w = wide_enough(r, g->total.window_ps);
	FILE *f = folder_file(d, "goodput.csv");

	fprintf(f, "time_ps,window_ps,total_bps");
	for (uint32_t i = 0; i < g->workloads; i++)
		fprintf(f, ",%s_bps", workload_name(in, i));
	fputc('\n', f);
	for (uint32_t k = 0; k < windows_until(r->time_ps, w); k++) {
		fprintf(f, U64 "," U64 "," U64, k * w, w, results_bps(results_series_value(&g->total, w, k), w));
		for (uint32_t i = 0; i < g->workloads; i++)
			fprintf(f, "," U64, results_bps(results_series_value(&g->of_workload[i], w, k), w));
		fputc('\n', f);
	}
	f = folder_file(d, "goodput_flows.csv");
	fprintf(f, "flow,src,dst,time_ps,window_ps,bps\n");
	for (uint32_t i = 0; i < g->curve_count; i++) {
		const struct results_series *s = &g->curve[i].series;
		const struct results_flow *first = &r->flows[g->curve[i].first];
		uint64_t end_ps = curve_end_ps(r, &g->curve[i]);

		/* All windows from its start to its end. */
		for (uint32_t k = w ? (uint32_t)(first->start_ps / w) : 0; k < windows_until(end_ps, w); k++)
			fprintf(f, U32 "," U32 "," U32 "," U64 "," U64 "," U64 "\n", g->curve[i].first, first->src,
				first->dst, k * w, w, results_bps(results_series_value(s, w, k), w));
	}
}

/* The bytes that a flow gets in a window, on average while it is open. */
static double window_bytes(const struct results *r)
{
	double acked = 0, open_ps = 0;

	for (uint32_t i = 0; i < r->flow_count; i++) {
		const struct results_flow *f = &r->flows[i];

		if (f->curve == RESULTS_NO_CURVE)
			continue;
		acked += (double)f->received_bytes;
		if (f->fct_ps != RESULTS_NOT_DONE)
			open_ps += (double)f->fct_ps;
		else if (r->time_ps > f->start_ps)
			open_ps += (double)(r->time_ps - f->start_ps);
	}
	return open_ps > 0 ? acked / open_ps * (double)r->goodput.total.window_ps : 0;
}

uint32_t sim_fairness_windows(const struct results *r)
{
	uint32_t per = 1;
	double bytes = window_bytes(r);

	while (per < r->goodput.total.count && (r->goodput.total.count / per > FAIRNESS_POINTS ||
						bytes * per < FAIRNESS_GRAINS * (double)r->goodput.grain_bytes))
		per *= 2;
	return per;
}

static void write_fairness(FILE *f, const struct results *r)
{
	static struct results_fairness over[RESULTS_SERIES_WINDOWS];
	size_t n = results_fairness_over_time(r, sim_fairness_windows(r), over, RESULTS_SERIES_WINDOWS);

	fprintf(f, "time_ps,window_ps,flows,open,jain,min_bps,max_bps\n");
	for (size_t i = 0; i < n && i < RESULTS_SERIES_WINDOWS; i++)
		fprintf(f, U64 "," U64 "," U32 "," U32 ",%.6f," U64 "," U64 "\n", over[i].start_ps, over[i].window_ps,
			over[i].flows, over[i].open, over[i].jain, over[i].min_bps, over[i].max_bps);
}

static void write_collectives(FILE *f, const struct sim_input *in, const struct results *r)
{
	fprintf(f, "workload,round,hosts,bytes,start_ps,time_ps,ideal_ps,algorithm_bps,bus_bps,possible_ps,limit_hosts,"
		   "limit_host,limit_bps\n");
	for (uint32_t i = 0; i < r->collective_count; i++) {
		const struct results_collective *c = &r->collectives[i];

		fprintf(f, "%s," U32 "," U32 "," U64 "," U64 ",", workload_name(in, c->workload), c->round, c->hosts,
			c->bytes, c->start_ps);
		if (c->time_ps != RESULTS_NOT_DONE)
			fprintf(f, U64, c->time_ps);
		fprintf(f, "," U64 "," U64 "," U64 "," U64 "," U32 ",", c->ideal_ps, c->algorithm_bps, c->bus_bps,
			c->possible_ps, c->limit.hosts);
		if (c->limit.hosts)
			fprintf(f, U32 "," U64, c->limit.host, c->limit.bps);
		fprintf(f, "%s\n", c->limit.hosts ? "" : ",");
	}
}

static void write_trace(FILE *f, const struct results *r)
{
	fprintf(f, "flow,path,time_ps,rate_bps,cwnd_bytes,%s,%s\n", r->trace_signal ? r->trace_signal : "signal",
		r->trace_target ? r->trace_target : "target");
	for (uint32_t i = 0; i < r->trace_count; i++) {
		const struct results_trace *t = &r->trace[i];

		fprintf(f, U32 "," U32 "," U64 ",", t->flow, t->path, t->time_ps);
		if (t->rate_bps != UINT64_MAX)
			fprintf(f, U64, t->rate_bps);
		fprintf(f, "," U64 ",", t->cwnd_bytes);
		if (r->trace_signal)
			fprintf(f, U64, t->signal);
		fputc(',', f);
		if (r->trace_target)
			fprintf(f, U64, t->target);
		fputc('\n', f);
	}
}

void sim_csv_write(struct folder *d, const struct sim_input *in, const struct results *r, const struct figures *g)
{
	FILE *f = folder_file(d, "totals.csv");

	fprintf(f, "figure,value,unit,label\n");
	for (size_t i = 0; i < g->count; i++) {
		fprintf(f, "%s,", g->f[i].name);
		figure_number(f, &g->f[i]);
		fprintf(f, ",%s,", figure_unit(&g->f[i]));
		csv_field(f, g->f[i].label);
		fputc('\n', f);
	}
	write_flows(folder_file(d, "flows.csv"), in, r);
	write_slowdown(d, in, r);
	write_ports(folder_file(d, "ports.csv"), r);
	write_queues(d, r);
	write_longest(folder_file(d, "queue_longest.csv"), r);
	write_pfc(d, r);
	write_drops(folder_file(d, "drops.csv"), r);
	write_goodput(d, in, r);
	write_fairness(folder_file(d, "fairness.csv"), r);
	write_collectives(folder_file(d, "collectives.csv"), in, r);
	jobs_csv(folder_file(d, "jobs.csv"), in, r);
	steps_csv(folder_file(d, "steps.csv"), in, r);
	ranks_csv(folder_file(d, "ranks.csv"), in, r);
	kinds_csv(folder_file(d, "step_collectives.csv"), in, r);
	write_trace(folder_file(d, "cc_trace.csv"), r);
}
