/* SPDX-License-Identifier: BSD-2-Clause */
/* The drawings of a run's page: each function makes one card, or none if there is nothing to draw. */
#include "sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

enum {
	HALF_W = 540,
	HALF_H = 280, /* of a drawing in one column, CSS pixels */
	POINTS = 400, /* of a curve */
	FLOW_CURVES = 8,
	QUEUE_CURVES = 4
};

uint64_t plot_series(FILE *f, const struct results_series *s, unsigned points, double scale)
{
	uint32_t per = 1;
	double factor;

	while (s->count / per > points)
		per *= 2;
	/* Sums become means of the windows joined. */
	factor = s->join == RESULTS_SUM ? scale / per : scale;
	for (uint32_t i = 0; i * per < s->count; i++) {
		uint64_t w = s->window_ps * per;

		fprintf(f, "%.9g %.9g\n", (double)(i * w) / 1e9, (double)results_series_value(s, w, i) * factor);
	}
	return s->window_ps * per;
}

const char *node_text(const struct results *r, uint32_t node, char buf[SIM_TEXT_BYTES])
{
	snprintf(buf, SIM_TEXT_BYTES, node < r->hosts ? "host %" PRIu32 : "switch %" PRIu32, node);
	return buf;
}

void draw_slowdown(FILE *f, const struct results *r)
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
	bool sizes_differ;
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
	}
	if (!most)
		return;
	sizes_differ = most > least;
	page_card_begin(f, sizes_differ ? "FCT slowdown by flow size" : "FCT slowdown",
			sizes_differ ? "Twenty bins of equally many flows, each at its largest flow; 1 is "
				       "the ideal."
				     : "Share of the flows that are no slower than this; 1 is the ideal.",
			false);
	p = plot_begin(HALF_W, HALF_H, &s);
	if (!sizes_differ) {
		double *x = malloc(r->flow_count * sizeof(*x));
		struct results_bin all = {0};
		size_t n = 0;

		/* With one size, draws the distribution instead. Percentiles come from the flows
		 * themselves. */
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
		fprintf(s,
			"EOD\nset xlabel 'slowdown'\nset ylabel 'share of flows'\nset yrange "
			"[0:1.02]\n"
			"set xrange [%s:*]\nset key off\n",
			all.p50 < 3 ? "*<1" : "*");
		fprintf(s,
			"plot $d using 1:(1.0/%zu) smooth cumulative with lines lw 2.5 lc rgb "
			"'%s' title 'all flows'\n",
			n ? n : 1, plot_colour(0));
	} else {
		fputs("set xlabel 'flow size, bytes'\nset ylabel 'slowdown'\nset logscale x\n"
		      "set format x '%.0s%c'\nset yrange [*<1:*]\n",
		      s);
		plot_logarithmic(p);
		fprintf(s, "$d << EOD\n");
		for (int i = 0; i < RESULTS_EQUAL_BINS; i++) {
			if (b[i].count)
				fprintf(s, "%" PRIu64 " %.6f %.6f %.6f\n", b[i].bytes_max ? b[i].bytes_max : 1,
					b[i].p50, b[i].p95, b[i].p99);
		}
		fprintf(s, "EOD\nplot ");
		for (int i = 2; i >= 0; i--)
			fprintf(s,
				"$d using 1:%d with linespoints lw 2 pt 7 ps 0.45 lc rgb '%s' "
				"title '%s'%s",
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
const struct results_port **ports_by_queue(const struct results *r, size_t *n)
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

/* Bytes to a unit of an axis on which this is the largest. */
static double queue_unit(uint64_t bytes)
{
	return bytes >= 5000000 ? 1e6 : 1e3;
}

static const char *queue_unit_name(double unit)
{
	return unit > 1e3 ? "MB" : "KB";
}

void draw_queues(FILE *f, const struct results *r)
{
	size_t n, shown = 0;
	const struct results_port **ports = ports_by_queue(r, &n);
	char name[SIM_TEXT_BYTES], to[SIM_TEXT_BYTES], note[256];
	uint64_t window = 0, most = 0;
	double unit;
	FILE *s;
	struct plot *p;

	for (size_t i = 0; i < n && shown < QUEUE_CURVES; i++)
		shown += ports[i]->queue.count > 0 && ports[i]->queue_bytes_max;
	if (!shown) {
		free(ports);
		return;
	}
	p = plot_begin(HALF_W, HALF_H, &s);
	for (size_t i = 0; i < n; i++)
		most = ports[i]->queue_bytes_max > most ? ports[i]->queue_bytes_max : most;
	unit = queue_unit(most);
	fprintf(s, "set xlabel 'time, ms'\nset ylabel '%s'\nset yrange [0:*]\nset xrange [0:*]\n",
		queue_unit_name(unit));
	shown = 0;
	for (size_t i = 0; i < n && shown < QUEUE_CURVES; i++) {
		if (!ports[i]->queue.count || !ports[i]->queue_bytes_max)
			continue;
		fprintf(s, "$q%zu << EOD\n", shown++);
		window = plot_series(s, &ports[i]->queue, POINTS, 1 / unit);
		fprintf(s, "EOD\n");
	}
	fprintf(s, "plot ");
	for (size_t i = 0, k = 0; i < n && k < shown; i++) {
		if (!ports[i]->queue.count || !ports[i]->queue_bytes_max)
			continue;
		fprintf(s, "%s$q%zu using 1:2 with steps lw 1.6 lc rgb '%s' title '%s to %s'", k ? ", " : "", k,
			plot_colour((unsigned)k), node_text(r, ports[i]->node, name), node_text(r, ports[i]->to, to));
		k++;
	}
	fputc('\n', s);
	plot_logarithmic(p);
	snprintf(note, sizeof(note), "The longest in each %s, of the port%s with the longest queue%s.",
		 time_text(window, name), shown > 1 ? "s" : "", shown > 1 ? "s" : "");
	page_card_begin(f, "Queue length over time", note, false);
	page_plot(f, p);
	page_card_end(f);
	free(ports);
}

/* Share of time that a queue was longer than x, of the longest and of all. */
void draw_queue_shares(FILE *f, const struct results *r)
{
	size_t n;
	const struct results_port **ports = ports_by_queue(r, &n);
	char name[SIM_TEXT_BYTES], to[SIM_TEXT_BYTES];
	const struct results_port *longest = n ? ports[0] : NULL;
	double unit;
	FILE *s;
	struct plot *p;

	free(ports);
	if (!longest || longest->queue_bins < 2 || !longest->queue_bytes_max ||
	    !results_queue_percentile(longest, 1000000))
		return;
	page_card_begin(f, "Queue length by share of time", "Share of the time at which the queue is longer than this.",
			false);
	p = plot_begin(HALF_W, HALF_H, &s);
	unit = queue_unit(longest->queue_bytes_max);
	fprintf(s,
		"set xlabel 'queue, %s'\nset ylabel 'share of time'\nset logscale y\n"
		"set yrange [1e-6:1]\nset format y '%%g'\nset xrange [0:*]\n",
		queue_unit_name(unit));
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
				fprintf(s, "%g %.9g\n", k * (RESULTS_QUEUE_BIN_BYTES / unit), above / total);
		}
		fprintf(s, "EOD\n");
	}
	fprintf(s,
		"plot $d0 using 1:2 with lines lw 2 lc rgb '%s' title '%s to %s', "
		"$d1 using 1:2 with lines lw 2 lc rgb '%s' title 'all switch ports'\n",
		plot_colour(0), node_text(r, longest->node, name), node_text(r, longest->to, to), plot_colour(1));
	page_plot(f, p);
	page_card_end(f);
}

void draw_goodput(FILE *f, const struct sim_input *in, const struct results *r)
{
	const struct results_goodput *g = &r->goodput;
	char note[256], t[SIM_TEXT_BYTES];
	uint64_t window;
	FILE *s;
	struct plot *p;

	if (!g->total.count)
		return;
	p = plot_begin(HALF_W, HALF_H, &s);
	fprintf(s, "set xlabel 'time, ms'\nset ylabel 'Gbit/s'\nset yrange [0:*]\nset xrange "
		   "[0:*]\n$t << EOD\n");
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
		fprintf(s, ", $w%" PRIu32 " using 1:2 with steps lw 1.4 lc rgb '%s' title ", i, plot_colour(i + 1));
		plot_quote(s, i < in->scenario->workload_count ? in->scenario->workload[i].name : "?");
	}
	fputc('\n', s);
	plot_logarithmic(p);
	snprintf(note, sizeof(note), "Application bytes received, each once, mean over %s.", time_text(window, t));
	page_card_begin(f, "Goodput over time", note, false);
	page_plot(f, p);
	page_card_end(f);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Rows "time min p25 median p75 max" of the curves open throughout each `per` windows; returns how
 * many. */
static unsigned band_rows(FILE *s, const struct results *r, uint32_t per)
{
	uint64_t w = r->goodput.total.window_ps;
	double x[RESULTS_GOODPUT_FLOWS_MAX];
	unsigned rows = 0;

	for (uint32_t k = 0; (k + (uint64_t)per) * w <= r->time_ps && k < r->goodput.total.count; k += per) {
		uint32_t n = results_open_rates(r, k, k + per, x);

		if (!n)
			continue;
		qsort(x, n, sizeof(*x), by_value);
		for (uint32_t i = 0; i < n; i++)
			x[i] /= 1e9;
		fprintf(s, "%.9g %.6g %.6g %.6g %.6g %.6g\n", ((double)k + per / 2.0) * (double)w / 1e9, x[0],
			results_percentile(x, n, 250000), results_percentile(x, n, 500000),
			results_percentile(x, n, 750000), x[n - 1]);
		rows++;
	}
	return rows;
}

void draw_flows(FILE *f, const struct results *r)
{
	const struct results_goodput *g = &r->goodput;
	uint32_t n = g->curve_count, per = 1;
	char note[256], t[SIM_TEXT_BYTES];
	unsigned rows = 2;
	uint64_t window = g->total.window_ps;
	FILE *s;
	struct plot *p;

	if (!n || !g->total.count)
		return;
	p = plot_begin(HALF_W, HALF_H, &s);
	plot_logarithmic(p);
	fprintf(s, "set xlabel 'time, ms'\nset ylabel 'Gbit/s'\nset yrange [0:*]\nset xrange [0:*]\n");
	if (n <= FLOW_CURVES) {
		for (uint32_t i = 0; i < n; i++) {
			uint64_t one;

			fprintf(s, "$f%" PRIu32 " << EOD\n", i);
			one = plot_series(s, &g->curve[i].series, POINTS, 8e3 / (double)g->curve[i].series.window_ps);
			window = one > window ? one : window;
			fputs(g->curve[i].series.count ? "EOD\n" : "0 0\nEOD\n", s);
		}
		fprintf(s, "plot ");
		for (uint32_t i = 0; i < n; i++)
			fprintf(s,
				"%s$f%" PRIu32 " using 1:2 with steps lw 1.6 lc rgb '%s' title '%" PRIu32 " to %" PRIu32
				"'",
				i ? ", " : "", i, plot_colour(i), r->flows[g->curve[i].first].src,
				r->flows[g->curve[i].first].dst);
		fputc('\n', s);
		snprintf(note, sizeof(note), "Each flow from host to host, mean over %s.", time_text(window, t));
	} else {
		per = sim_fairness_windows(r);
		fprintf(s, "$b << EOD\n");
		rows = band_rows(s, r, per);
		fprintf(s,
			"EOD\nplot $b using 1:2:6 with filledcurves fs transparent solid 0.16 lc "
			"rgb '%s' title "
			"'all', $b using 1:3:5 with filledcurves fs transparent solid 0.35 lc rgb "
			"'%s' title "
			"'middle half', $b using 1:4 with lines lw 2 lc rgb '%s' title 'median'\n",
			plot_colour(0), plot_colour(0), plot_colour(0));
		snprintf(note, sizeof(note), "Of the first %" PRIu32 " flows those open at the time, mean over %s.", n,
			 time_text(g->total.window_ps * per, t));
	}
	if (rows > 1) {
		page_card_begin(f, "Throughput per flow", note, false);
		page_plot(f, p);
		page_card_end(f);
	} else {
		struct plotted nothing = plot_end(p);

		plotted_free(&nothing);
	}
}

void draw_fairness(FILE *f, const struct results *r)
{
	static struct results_fairness over[RESULTS_SERIES_WINDOWS];
	uint32_t per = sim_fairness_windows(r);
	size_t n = results_fairness_over_time(r, per, over, RESULTS_SERIES_WINDOWS);
	char note[256], t[SIM_TEXT_BYTES];
	double least = 1, floor;
	uint32_t fewest = UINT32_MAX, most = 0;
	FILE *s;
	struct plot *p;

	if (n < 2)
		return;
	for (size_t i = 0; i < n; i++) {
		least = over[i].jain < least ? over[i].jain : least;
		fewest = over[i].flows < fewest ? over[i].flows : fewest;
		most = over[i].flows > most ? over[i].flows : most;
	}
	snprintf(note, sizeof(note),
		 "Jain's index of the flows open throughout each %s, %" PRIu32 " to %" PRIu32 " of them; 1: all equal.",
		 time_text(over[0].window_ps, t), fewest, most);
	floor = least >= 0.99 ? 0.99 : least >= 0.9 ? 0.9 : least >= 0.5 ? 0.5 : 0;
	page_card_begin(f, "Fairness over time", note, false);
	p = plot_begin(HALF_W, HALF_H, &s);
	fprintf(s,
		"set xlabel 'time, ms'\nset ylabel 'index'\nset yrange [%g:%g]\nset xrange "
		"[0:*]\nset key off\n"
		"$d << EOD\n",
		floor, 1 + (1 - floor) * 0.03);
	for (size_t i = 0; i < n; i++) {
		if (i && over[i].start_ps != over[i - 1].start_ps + over[i - 1].window_ps)
			fputc('\n', s);
		fprintf(s, "%.9g %.6f\n", ((double)over[i].start_ps + (double)over[i].window_ps / 2) / 1e9,
			over[i].jain);
	}
	fprintf(s, "EOD\nplot $d using 1:2 with lines lw 2 lc rgb '%s' title 'index'\n", plot_colour(2));
	page_plot(f, p);
	page_card_end(f);
}

void draw_pfc(FILE *f, const struct results *r)
{
	char note[256], t[SIM_TEXT_BYTES];
	uint64_t window;
	FILE *s;
	struct plot *p;

	if (!r->pfc.frames.count || !r->pfc.pause_frames)
		return;
	p = plot_begin(HALF_W, HALF_H, &s);
	fprintf(s, "set xlabel 'time, ms'\nset ylabel 'frames'\nset yrange [0:*]\nset xrange "
		   "[0:*]\nset key off\n"
		   "$d << EOD\n");
	/* A count for each step, not a mean, so this multiplies by the divisor of plot_series. */
	window = plot_series(s, &r->pfc.frames, POINTS, 1);
	fprintf(s,
		"EOD\nplot $d using 1:($2*%g) with fillsteps fs solid 0.8 lc rgb '%s' title 'pause "
		"frames'\n",
		(double)window / (double)r->pfc.frames.window_ps, plot_colour(1));
	snprintf(note, sizeof(note), "Pause frames sent in each %s.", time_text(window, t));
	page_card_begin(f, "PFC over time", note, false);
	page_plot(f, p);
	page_card_end(f);
}
