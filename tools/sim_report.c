/* SPDX-License-Identifier: BSD-2-Clause */
/* A run's folder: CSV, JSON, the scenario itself, and the page with its drawings. */
#include "sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	HALF_W = 540, HALF_H = 280, /* of a drawing in one column, CSS pixels */
	POINTS = 400,               /* of a curve */
	BAND_POINTS = 128,
	FLOW_CURVES = 8,
	QUEUE_CURVES = 4,
	TRACE_CURVES = 6,
	TABLE_PORTS = 8
};

static const char *node_text(const struct results *r, uint32_t node, char buf[SIM_TEXT_BYTES])
{
	snprintf(buf, SIM_TEXT_BYTES, node < r->hosts ? "host %" PRIu32 : "switch %" PRIu32, node);
	return buf;
}

/* ---- Drawings ---- */

static void draw_slowdown(FILE *f, const struct results *r)
{
	struct results_bin b[RESULTS_EQUAL_BINS];
	static const struct {
		const char *name;
		size_t offset;
	} curves[] = {
		{"p50", offsetof(struct results_bin, p50)},
		{"p95", offsetof(struct results_bin, p95)},
		{"p99", offsetof(struct results_bin, p99)},
	};
	bool sizes_differ, logarithmic = false;
	uint64_t least = 0, most = 0;
	FILE *s;
	struct plot *p;

	if (results_bins_equal(r, UINT32_MAX, b))
		return;
	for (int i = 0; i < RESULTS_EQUAL_BINS; i++) {
		if (!b[i].count)
			continue;
		least = least ? least : b[i].bytes_min;
		most = b[i].bytes_max;
		logarithmic |= b[i].p99 > 30;
	}
	if (!most)
		return;
	sizes_differ = most > least;
	page_card_begin(f, sizes_differ ? "FCT slowdown by flow size" : "FCT slowdown",
			sizes_differ ? "Twenty bins of equally many flows, each at its largest flow; 1 is the ideal."
				     : "Share of the flows that are no slower than this; 1 is the ideal.",
			false);
	p = plot_begin(HALF_W, HALF_H, &s);
	if (!sizes_differ) {
		double *x = malloc(r->flow_count * sizeof(*x));
		struct results_bin all = {0};
		size_t n = 0;

		/* One size: the distribution instead. Percentiles come from the flows themselves. */
		fprintf(s, "$d << EOD\n");
		for (uint32_t i = 0; x && i < r->flow_count; i++) {
			double v = results_slowdown(&r->flows[i]);

			if (v > 0)
				x[n++] = v;
		}
		for (size_t i = 0; i < n; i++)
			fprintf(s, "%.6f\n", x[i]);
		free(x);
		results_bin_all(r, UINT32_MAX, &all);
		fprintf(s, "EOD\nset xlabel 'slowdown'\nset ylabel 'share of flows'\nset yrange [0:1.02]\n"
			   "set xrange [%s:*]\nset key off\n", all.p50 < 3 ? "1" : "*");
		fprintf(s, "plot $d using 1:(1.0/%zu) smooth cumulative with lines lw 2.5 lc rgb '%s'\n",
			n ? n : 1, plot_colour(0));
	} else {
		fprintf(s, "set xlabel 'flow size, bytes'\nset ylabel 'slowdown'\nset logscale x\n"
			   "set format x '%%.0s%%c'\nset yrange [%s:*]\n", logarithmic ? "1" : "1");
		if (logarithmic)
			fprintf(s, "set logscale y\n");
		fprintf(s, "$d << EOD\n");
		for (int i = 0; i < RESULTS_EQUAL_BINS; i++) {
			if (b[i].count)
				fprintf(s, "%" PRIu64 " %.6f %.6f %.6f\n", b[i].bytes_max ? b[i].bytes_max : 1,
					b[i].p50, b[i].p95, b[i].p99);
		}
		fprintf(s, "EOD\nplot ");
		for (int i = 2; i >= 0; i--)
			fprintf(s, "$d using 1:%d with linespoints lw 2 pt 7 ps 0.45 lc rgb '%s' title '%s'%s",
				i + 2, plot_colour((unsigned)i), curves[i].name, i ? ", " : "\n");
	}
	page_plot(f, p);
	page_card_end(f);
}

static int by_queue(const void *a, const void *b)
{
	const struct results_port *x = *(const struct results_port *const *)a;
	const struct results_port *y = *(const struct results_port *const *)b;

	if (x->queue_bytes_max != y->queue_bytes_max)
		return x->queue_bytes_max < y->queue_bytes_max ? 1 : -1;
	return x < y ? -1 : x > y;
}

/* Switch ports by their longest queue; *caller frees*. */
static const struct results_port **ports_by_queue(const struct results *r, size_t *n)
{
	const struct results_port **p = malloc((r->port_count ? r->port_count : 1) * sizeof(const void *));

	*n = 0;
	for (uint32_t i = 0; p && i < r->port_count; i++) {
		if (r->ports[i].tier)
			p[(*n)++] = &r->ports[i];
	}
	if (p)
		qsort(p, *n, sizeof(const void *), by_queue);
	return p;
}

static void draw_queues(FILE *f, const struct results *r)
{
	size_t n, shown = 0;
	const struct results_port **ports = ports_by_queue(r, &n);
	char name[SIM_TEXT_BYTES], to[SIM_TEXT_BYTES], note[256];
	uint64_t window = 0;
	FILE *s;
	struct plot *p;

	for (size_t i = 0; i < n && shown < QUEUE_CURVES; i++)
		shown += ports[i]->queue.count > 0 && ports[i]->queue_bytes_max;
	if (!shown) {
		free(ports);
		return;
	}
	p = plot_begin(HALF_W, HALF_H, &s);
	fprintf(s, "set xlabel 'time, ms'\nset ylabel 'KB'\nset yrange [0:*]\nset xrange [0:*]\n");
	shown = 0;
	for (size_t i = 0; i < n && shown < QUEUE_CURVES; i++) {
		if (!ports[i]->queue.count || !ports[i]->queue_bytes_max)
			continue;
		fprintf(s, "$q%zu << EOD\n", shown++);
		window = plot_series(s, &ports[i]->queue, POINTS, 1e-3);
		fprintf(s, "EOD\n");
	}
	fprintf(s, "plot ");
	for (size_t i = 0, k = 0; i < n && k < shown; i++) {
		if (!ports[i]->queue.count || !ports[i]->queue_bytes_max)
			continue;
		fprintf(s, "%s$q%zu using 1:2 with steps lw 1.6 lc rgb '%s' title '%s to %s'", k ? ", " : "", k,
			plot_colour((unsigned)k), node_text(r, ports[i]->node, name),
			node_text(r, ports[i]->to, to));
		k++;
	}
	fputc('\n', s);
	snprintf(note, sizeof(note), "The longest in each %s, of the port%s with the longest queue%s.",
		 time_text(window, name), shown > 1 ? "s" : "", shown > 1 ? "s" : "");
	page_card_begin(f, "Queue length over time", note, false);
	page_plot(f, p);
	page_card_end(f);
	free(ports);
}

/* Share of time that a queue was longer than x, of the longest and of all. */
static void draw_queue_shares(FILE *f, const struct results *r)
{
	size_t n;
	const struct results_port **ports = ports_by_queue(r, &n);
	char name[SIM_TEXT_BYTES], to[SIM_TEXT_BYTES];
	const struct results_port *longest = n ? ports[0] : NULL;
	FILE *s;
	struct plot *p;

	free(ports);
	if (!longest || !longest->queue_bins || !longest->queue_bytes_max)
		return;
	page_card_begin(f, "Queue length by share of time",
			"Share of the time at which the queue is longer than this.", false);
	p = plot_begin(HALF_W, HALF_H, &s);
	fprintf(s, "set xlabel 'queue, KB'\nset ylabel 'share of time'\nset logscale y\n"
		   "set yrange [1e-6:1]\nset format y '%%g'\nset xrange [0:*]\n");
	for (int all = 0; all < 2; all++) {
		double total = 0, above;

		fprintf(s, "$d%d << EOD\n", all);
		for (uint32_t i = 0; i < r->port_count; i++) {
			const struct results_port *q = &r->ports[i];

			for (uint32_t k = 0; k < q->queue_bins && q->tier && (all || q == longest); k++)
				total += (double)q->queue_time_ps[k];
		}
		above = total;
		for (uint32_t k = 0; k < longest->queue_bins && above > total * 1e-9; k++) {
			for (uint32_t i = 0; i < r->port_count; i++) {
				const struct results_port *q = &r->ports[i];

				if (q->tier && k < q->queue_bins && (all || q == longest))
					above -= (double)q->queue_time_ps[k];
			}
			if (longest->queue_bins <= 2048 || k % (longest->queue_bins / 1024) == 0)
				fprintf(s, "%g %.9g\n", k * (RESULTS_QUEUE_BIN_BYTES / 1e3), above / total);
		}
		fprintf(s, "EOD\n");
	}
	fprintf(s, "plot $d0 using 1:2 with lines lw 2 lc rgb '%s' title '%s to %s', "
		   "$d1 using 1:2 with lines lw 2 lc rgb '%s' title 'all switch ports'\n",
		plot_colour(0), node_text(r, longest->node, name), node_text(r, longest->to, to),
		plot_colour(1));
	page_plot(f, p);
	page_card_end(f);
}

static void draw_goodput(FILE *f, const struct sim_input *in, const struct results *r)
{
	const struct results_goodput *g = &r->goodput;
	char note[256], t[SIM_TEXT_BYTES];
	uint64_t window;
	FILE *s;
	struct plot *p;

	if (!g->total.count)
		return;
	p = plot_begin(HALF_W, HALF_H, &s);
	fprintf(s, "set xlabel 'time, ms'\nset ylabel 'Gbit/s'\nset yrange [0:*]\nset xrange [0:*]\n$t << EOD\n");
	window = plot_series(s, &g->total, POINTS, 8e3 / (double)g->total.window_ps);
	fprintf(s, "EOD\n");
	for (uint32_t i = 0; i < g->workloads && g->workloads > 1; i++) {
		fprintf(s, "$w%" PRIu32 " << EOD\n", i);
		plot_series(s, &g->of_workload[i], POINTS,
			    g->of_workload[i].window_ps ? 8e3 / (double)g->of_workload[i].window_ps : 0);
		fprintf(s, "EOD\n");
	}
	fprintf(s, "plot $t using 1:2 with steps lw 1.8 lc rgb '%s' title 'all'", plot_colour(0));
	for (uint32_t i = 0; i < g->workloads && g->workloads > 1; i++) {
		if (!g->of_workload[i].count)
			continue;
		fprintf(s, ", $w%" PRIu32 " using 1:2 with steps lw 1.4 lc rgb '%s' title ", i,
			plot_colour(i + 1));
		plot_quote(s, i < in->scenario->workload_count ? in->scenario->workload[i].name : "?");
	}
	fputc('\n', s);
	snprintf(note, sizeof(note), "Application bytes acknowledged, mean over %s.", time_text(window, t));
	page_card_begin(f, "Goodput over time", note, false);
	page_plot(f, p);
	page_card_end(f);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Rows "time min p25 median p75 max" of the flows open throughout each window; returns how many. */
static unsigned band_rows(FILE *s, const struct results *r, uint32_t per)
{
	const struct results_goodput *g = &r->goodput;
	uint64_t w = g->total.window_ps * per;
	double x[RESULTS_GOODPUT_FLOWS_MAX];
	unsigned rows = 0;

	for (uint32_t k = 0; (k + UINT64_C(1)) * w <= r->time_ps; k++) {
		uint32_t n = 0;

		for (uint32_t i = 0; i < results_goodput_flows(r); i++) {
			const struct results_flow *flow = &r->flows[i];
			uint64_t end = flow->fct_ps == RESULTS_NOT_DONE ? r->time_ps
									: flow->start_ps + flow->fct_ps;

			if (flow->start_ps <= k * w && end >= (k + 1) * w)
				x[n++] = (double)results_bps(results_series_value(&g->flow[i], w, k), w) / 1e9;
		}
		if (!n)
			continue;
		qsort(x, n, sizeof(*x), by_value);
		fprintf(s, "%.9g %.6g %.6g %.6g %.6g %.6g\n", (double)(k * w) / 1e9 + (double)w / 2e9, x[0],
			results_percentile(x, n, 250000), results_percentile(x, n, 500000),
			results_percentile(x, n, 750000), x[n - 1]);
		rows++;
	}
	return rows;
}

static void draw_flows(FILE *f, const struct results *r)
{
	const struct results_goodput *g = &r->goodput;
	uint32_t n = results_goodput_flows(r), per = 1;
	char note[256], t[SIM_TEXT_BYTES];
	unsigned rows = 2;
	uint64_t window = g->total.window_ps;
	FILE *s;
	struct plot *p;

	if (!n || !g->total.count)
		return;
	p = plot_begin(HALF_W, HALF_H, &s);
	fprintf(s, "set xlabel 'time, ms'\nset ylabel 'Gbit/s'\nset yrange [0:*]\nset xrange [0:*]\n");
	if (n <= FLOW_CURVES) {
		for (uint32_t i = 0; i < n; i++) {
			uint64_t one;

			fprintf(s, "$f%" PRIu32 " << EOD\n", i);
			one = plot_series(s, &g->flow[i], POINTS, 8e3 / (double)g->flow[i].window_ps);
			window = one > window ? one : window;
			fputs(g->flow[i].count ? "EOD\n" : "0 0\nEOD\n", s);
		}
		fprintf(s, "plot ");
		for (uint32_t i = 0; i < n; i++)
			fprintf(s, "%s$f%" PRIu32 " using 1:2 with steps lw 1.6 lc rgb '%s' title '%" PRIu32
				   " to %" PRIu32 "'", i ? ", " : "", i, plot_colour(i), r->flows[i].src,
				r->flows[i].dst);
		fputc('\n', s);
		snprintf(note, sizeof(note), "Each flow from host to host, mean over %s.", time_text(window, t));
	} else {
		while (g->total.count / per > BAND_POINTS)
			per *= 2;
		fprintf(s, "$b << EOD\n");
		rows = band_rows(s, r, per);
		fprintf(s, "EOD\nplot $b using 1:2:6 with filledcurves fs transparent solid 0.16 lc rgb '%s' title "
			   "'all', $b using 1:3:5 with filledcurves fs transparent solid 0.35 lc rgb '%s' title "
			   "'middle half', $b using 1:4 with lines lw 2 lc rgb '%s' title 'median'\n",
			plot_colour(0), plot_colour(0), plot_colour(0));
		snprintf(note, sizeof(note), "Of the first %" PRIu32 " flows those open all the time, mean over %s.",
			 n, time_text(g->total.window_ps * per, t));
	}
	if (rows > 1) {
		page_card_begin(f, "Throughput per flow", note, false);
		page_plot(f, p);
		page_card_end(f);
	} else {
		free(plot_end(p));
	}
}

static void draw_fairness(FILE *f, const struct results *r)
{
	static struct results_fairness over[RESULTS_SERIES_WINDOWS];
	uint32_t per = sim_fairness_windows(r);
	size_t n = results_fairness_over_time(r, per, over, RESULTS_SERIES_WINDOWS);
	char note[256], t[SIM_TEXT_BYTES];
	double least = 1, floor;
	FILE *s;
	struct plot *p;

	if (n < 2)
		return;
	snprintf(note, sizeof(note), "Jain's index of the flows open throughout each %s; 1: all equal.",
		 time_text(over[0].window_ps, t));
	for (size_t i = 0; i < n; i++)
		least = over[i].jain < least ? over[i].jain : least;
	floor = least >= 0.99 ? 0.99 : least >= 0.9 ? 0.9 : least >= 0.5 ? 0.5 : 0;
	page_card_begin(f, "Fairness over time", note, false);
	p = plot_begin(HALF_W, HALF_H, &s);
	fprintf(s, "set xlabel 'time, ms'\nset ylabel 'index'\nset yrange [%g:%g]\nset xrange [0:*]\nset key off\n"
		   "$d << EOD\n", floor, 1 + (1 - floor) * 0.03);
	for (size_t i = 0; i < n; i++) {
		if (i && over[i].start_ps != over[i - 1].start_ps + over[i - 1].window_ps)
			fputc('\n', s);
		fprintf(s, "%.9g %.6f\n", ((double)over[i].start_ps + (double)over[i].window_ps / 2) / 1e9,
			over[i].jain);
	}
	fprintf(s, "EOD\nplot $d using 1:2 with lines lw 2 lc rgb '%s'\n", plot_colour(2));
	page_plot(f, p);
	page_card_end(f);
}

static void draw_pfc(FILE *f, const struct results *r)
{
	char note[256], t[SIM_TEXT_BYTES];
	uint64_t window;
	FILE *s;
	struct plot *p;

	if (!r->pfc.frames.count || !r->pfc.pause_frames)
		return;
	p = plot_begin(HALF_W, HALF_H, &s);
	fprintf(s, "set xlabel 'time, ms'\nset ylabel 'frames'\nset yrange [0:*]\nset xrange [0:*]\nset key off\n"
		   "$d << EOD\n");
	/* A count per step, not a mean: what plot_series divides by is put back. */
	window = plot_series(s, &r->pfc.frames, POINTS, 1);
	fprintf(s, "EOD\nplot $d using 1:($2*%g) with fillsteps fs solid 0.8 lc rgb '%s'\n",
		(double)window / (double)r->pfc.frames.window_ps, plot_colour(1));
	snprintf(note, sizeof(note), "Pause frames sent in each %s.", time_text(window, t));
	page_card_begin(f, "PFC over time", note, false);
	page_plot(f, p);
	page_card_end(f);
}

static void draw_trace(FILE *f, const struct results *r)
{
	uint32_t flows[TRACE_CURVES];
	unsigned n = 0;
	bool rates = false;
	FILE *s;
	struct plot *p;

	for (uint32_t i = 0; i < r->trace_count; i++) {
		unsigned k = 0;

		rates |= r->trace[i].rate_bps != UINT64_MAX;
		while (k < n && flows[k] != r->trace[i].flow)
			k++;
		if (k == n && n < TRACE_CURVES)
			flows[n++] = r->trace[i].flow;
	}
	if (!n)
		return;
	page_card_begin(f, rates ? "Rate that congestion control allows" : "Congestion window",
			"On change, of the flows that output.cc_trace names, at most six.", false);
	p = plot_begin(HALF_W, HALF_H, &s);
	fprintf(s, "set xlabel 'time, ms'\nset ylabel '%s'\nset yrange [0:*]\nset xrange [0:*]\n",
		rates ? "Gbit/s" : "KB");
	for (unsigned k = 0; k < n; k++) {
		uint32_t records = 0, each;

		for (uint32_t i = 0; i < r->trace_count; i++)
			records += r->trace[i].flow == flows[k];
		each = records / (4 * POINTS) + 1;
		records = 0;
		fprintf(s, "$c%u << EOD\n", k);
		for (uint32_t i = 0; i < r->trace_count; i++) {
			const struct results_trace *c = &r->trace[i];

			if (c->flow != flows[k] || (rates && c->rate_bps == UINT64_MAX) || records++ % each)
				continue;
			fprintf(s, "%.9g %.6g\n", (double)c->time_ps / 1e9,
				rates ? (double)c->rate_bps / 1e9 : (double)c->cwnd_bytes / 1e3);
		}
		fprintf(s, "EOD\n");
	}
	fprintf(s, "plot ");
	for (unsigned k = 0; k < n; k++)
		fprintf(s, "%s$c%u using 1:2 with steps lw 1.5 lc rgb '%s' title 'flow %" PRIu32 "'",
			k ? ", " : "", k, plot_colour(k), flows[k]);
	fputc('\n', s);
	page_plot(f, p);
	page_card_end(f);
}

/* ---- Tables ---- */

static void tile(FILE *f, const char *label, const char *value, const char *more)
{
	fputs("<div class=\"tile\"><span>", f);
	html_text(f, label);
	fputs("</span><strong>", f);
	html_text(f, value);
	fputs("</strong><em>", f);
	html_text(f, more);
	fputs("</em></div>\n", f);
}

static void tile_figure(FILE *f, const struct figures *g, const char *label, const char *name,
			const char *more_label, const char *more_name)
{
	const struct figure *v = figure_find(g, name), *m = more_name ? figure_find(g, more_name) : NULL;
	char a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES], more[2 * SIM_TEXT_BYTES] = "";

	if (!v)
		return;
	if (m)
		snprintf(more, sizeof(more), "%s %s", more_label, figure_text(m, b));
	else if (!more_name)
		snprintf(more, sizeof(more), "%s", more_label);
	tile(f, label, figure_text(v, a), more);
}

static void write_tiles(FILE *f, const struct results *r, const struct figures *g)
{
	char a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES], text[2 * SIM_TEXT_BYTES + 8];

	fputs("<div class=\"tiles\">\n", f);
	snprintf(text, sizeof(text), "of %s", count_text(r->flow_count, b));
	tile(f, "Flows done", count_text(r->flows_done, a), text);
	if (figure_find(g, "collective_time")) {
		tile_figure(f, g, "Collective", "collective_time", "of ideal", "collective_share");
		tile_figure(f, g, "Bus bandwidth", "bus_bandwidth", "algorithm", "algorithm_bandwidth");
	} else {
		tile_figure(f, g, "Slowdown, p99", "slowdown_p99", "median", "slowdown_p50");
		tile_figure(f, g, "Last flow done", "finish_last", "first", "finish_first");
	}
	tile_figure(f, g, "Goodput", "goodput", "acknowledged", "acked_bytes");
	tile_figure(f, g, "Jain's index", "jain", "spread", "rate_spread");
	tile_figure(f, g, "Longest queue", "queue_max", "99 % of time", "queue_p99");
	tile_figure(f, g, "PFC pauses", "pause_frames", r->pfc.pause_frames ? "longest" : "none",
		    r->pfc.pause_frames ? "pause_longest" : NULL);
	tile_figure(f, g, "Packets dropped", "dropped_packets", "sent again", "retransmitted_packets");
	fputs("</div>\n", f);
}

static void write_slowdown_table(FILE *f, const struct results *r)
{
	static const char *const names[] = {"up to 7 KB", "up to 120 KB", "up to 1 MB", "more", "all"};
	struct results_bin b[RESULTS_FIXED_BINS + 1];

	if (results_bins_fixed(r, UINT32_MAX, b) ||
	    results_bin_all(r, UINT32_MAX, &b[RESULTS_FIXED_BINS]) || !b[RESULTS_FIXED_BINS].count)
		return;
	page_card_begin(f, "FCT slowdown", "Flow completion time by what it is on an empty network.", false);
	fputs("<div class=\"scroll\"><table><tr><th>flow size<th>flows<th>p50<th>p95<th>p99<th>p99.9"
	      "<th>max</tr>\n", f);
	for (int i = 0; i <= RESULTS_FIXED_BINS; i++) {
		if (b[i].count)
			fprintf(f, "<tr><td>%s<td>%" PRIu32 "<td>%.2f<td>%.2f<td>%.2f<td>%.2f<td>%.2f</tr>\n",
				names[i], b[i].count, b[i].p50, b[i].p95, b[i].p99, b[i].p999, b[i].max);
	}
	fputs("</table></div>\n", f);
	page_card_end(f);
}

static void write_ports_table(FILE *f, const struct results *r)
{
	size_t n;
	const struct results_port **ports = ports_by_queue(r, &n);
	char a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES], c[SIM_TEXT_BYTES], d[SIM_TEXT_BYTES], e[SIM_TEXT_BYTES];

	if (!n || !ports[0]->queue_bytes_max) {
		free(ports);
		return;
	}
	page_card_begin(f, "Ports with the longest queues", "Percentiles are of time; pauses: sent to the neighbour.", false);
	fputs("<div class=\"scroll\"><table><tr><th>port<th>mean<th>p99<th>max<th>pauses</tr>\n", f);
	for (size_t i = 0; i < n && i < TABLE_PORTS && ports[i]->queue_bytes_max; i++) {
		fprintf(f, "<tr><td>%s to %s<td>%s<td>%s<td>%s<td>%" PRIu64 "</tr>\n",
			node_text(r, ports[i]->node, a), node_text(r, ports[i]->to, b),
			bytes_text((uint64_t)results_queue_mean(ports[i]), c),
			bytes_text(results_queue_percentile(ports[i], 990000), d),
			bytes_text(ports[i]->queue_bytes_max, e), ports[i]->pause_tx);
	}
	fputs("</table></div>\n", f);
	page_card_end(f);
	free(ports);
}

static void write_drops_table(FILE *f, const struct results *r)
{
	char a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES];

	if (!r->drop_count)
		return;
	page_card_begin(f, "Drops and trims", "By place, reason and traffic class.", !page_row_is_open());
	fputs("<div class=\"scroll\"><table><tr><th>place<th>reason<th>class<th>packets<th>bytes</tr>\n", f);
	for (int place = 0; place < RESULTS_PLACES; place++) {
		for (int reason = 0; reason < RESULTS_REASONS; reason++) {
			for (int class = 0; class < RESULTS_CLASSES; class++) {
				uint64_t packets = 0, bytes = 0;

				for (uint32_t i = 0; i < r->drop_count; i++) {
					const struct results_drop *o = &r->drops[i];

					if ((int)o->place == place && (int)o->reason == reason &&
					    o->class == class) {
						packets += o->packets;
						bytes += o->bytes;
					}
				}
				if (packets)
					fprintf(f, "<tr><td>%s<td>%s<td>%d<td>%s<td>%s</tr>\n",
						results_place_name((enum results_place)place),
						results_reason_name((enum results_reason)reason), class,
						count_text(packets, a), bytes_text(bytes, b));
			}
		}
	}
	fputs("</table></div>\n", f);
	page_card_end(f);
}

static void write_collectives_table(FILE *f, const struct sim_input *in, const struct results *r)
{
	char t[SIM_TEXT_BYTES], i[SIM_TEXT_BYTES], a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES], z[SIM_TEXT_BYTES];

	if (!r->collective_count)
		return;
	page_card_begin(f, "Collectives", "Ideal: limited by headers and links alone.", true);
	fputs("<div class=\"scroll\"><table><tr><th>workload<th>round<th>hosts<th>bytes of each<th>time<th>ideal"
	      "<th>share of ideal<th>algorithm bandwidth<th>bus bandwidth</tr>\n", f);
	for (uint32_t k = 0; k < r->collective_count && k < 32; k++) {
		const struct results_collective *c = &r->collectives[k];
		bool done = c->time_ps != RESULTS_NOT_DONE;

		fputs("<tr><td>", f);
		html_text(f, c->workload < in->scenario->workload_count ? in->scenario->workload[c->workload].name
								      : "?");
		fprintf(f, "<td>%" PRIu32 "<td>%" PRIu32 "<td>%s<td>%s<td>%s", c->round + 1, c->hosts,
			bytes_text(c->bytes, z), done ? time_text(c->time_ps, t) : "not done",
			time_text(c->ideal_ps, i));
		if (done)
			fprintf(f, "<td>%.2f %%<td>%s<td>%s</tr>\n",
				c->time_ps ? 100.0 * (double)c->ideal_ps / (double)c->time_ps : 0.0,
				rate_text(c->algorithm_bps, a), rate_text(c->bus_bps, b));
		else
			fputs("<td>-<td>-<td>-</tr>\n", f);
	}
	fputs("</table></div>\n", f);
	page_card_end(f);
}

static void write_figures(FILE *f, const struct figures *g)
{
	char t[SIM_TEXT_BYTES];

	page_card_begin(f, "All figures", "The same as in totals.csv and summary.json, rounded.", true);
	fputs("<div class=\"columns\">\n", f);
	for (size_t i = 0; i < g->count; i++) {
		fputs("<div><span>", f);
		html_text(f, g->f[i].label);
		fprintf(f, "</span><b>%s</b></div>\n", figure_text(&g->f[i], t));
	}
	fputs("</div>\n", f);
	page_card_end(f);
}

static void chip(FILE *f, const char *name, const char *value)
{
	if (!value[0])
		return;
	fprintf(f, "<li>%s <b>", name);
	html_text(f, value);
	fputs("</b></li>\n", f);
}

static void write_page(FILE *f, const struct sim_input *in, const struct results *r, const struct figures *g)
{
	const struct scenario *s = in->scenario;
	char text[128], a[SIM_TEXT_BYTES];

	page_begin(f, s->name);
	fputs("<header><h1>", f);
	html_text(f, s->name);
	fputs("</h1>\n", f);
	if (s->title[0]) {
		fputs("<p class=\"title\">", f);
		html_text(f, s->title);
		fputs("</p>\n", f);
	}
	fputs("<ul class=\"chips\">\n", f);
	snprintf(text, sizeof(text), "%" PRIu64, s->run.seed);
	chip(f, "seed", text);
	chip(f, "transport", transport_text(s, r));
	chip(f, "congestion control", cc_text(s, r, a));
	snprintf(text, sizeof(text), "%" PRIu32 " hosts, %" PRIu32 " switches, %" PRIu32 " links", r->hosts,
		 r->switches, r->links);
	chip(f, "network", text);
	chip(f, "base RTT up to", time_text(r->base_rtt_ps, a));
	chip(f, "simulated", time_text(r->time_ps, a));
	chip(f, "verbena", VERBENA_VERSION);
	fputs("</ul>\n</header>\n", f);
	if (r->partial) {
		fputs("<p class=\"partial\"><b>Partial.</b> The run did not end by itself: ", f);
		html_text(f, r->partial_why);
		fputs(". What follows is what there was by then.</p>\n", f);
	}
	write_tiles(f, r, g);
	fputs("<div class=\"cards\">\n", f);
	write_collectives_table(f, in, r);
	draw_slowdown(f, r);
	draw_goodput(f, in, r);
	draw_flows(f, r);
	draw_fairness(f, r);
	draw_queues(f, r);
	draw_queue_shares(f, r);
	draw_pfc(f, r);
	draw_trace(f, r);
	write_slowdown_table(f, r);
	write_ports_table(f, r);
	write_drops_table(f, r);
	write_figures(f, g);
	page_card_begin(f, "Scenario", "scenario.ini beside this page; this line repeats the run.", true);
	fputs("<pre>", f);
	{
		char *command = NULL;
		size_t bytes;
		FILE *m = open_memstream(&command, &bytes);

		if (m) {
			sim_command_write(m, in);
			fclose(m);
			html_text(f, command);
		}
		free(command);
	}
	fputs("\n\n", f);
	html_text(f, in->text);
	fputs("</pre>\n", f);
	page_card_end(f);
	fputs("</div>\n<footer>A simulation by verbena " VERBENA_VERSION ": the transport is the code that runs on real "
	      "networks, the network is a model. What the machine took for it is in simulator.json.</footer>\n",
	      f);
	page_end(f);
}

int sim_report(const char *path, const struct sim_input *in, const struct results *r,
	       const struct figures *g)
{
	struct folder d;

	if (!folder_open(&d, path)) {
		fputs(in->text, folder_file(&d, "scenario.ini"));
		sim_csv_write(&d, in, r, g);
		sim_json_write(&d, in, r, g);
		write_page(folder_file(&d, "report.html"), in, r, g);
	}
	return folder_close(&d);
}
