/* SPDX-License-Identifier: BSD-2-Clause */
/* Cards that show what congestion control did to chosen flows. */
#include "sim.h"

#include <inttypes.h>
#include <string.h>

#include "page.h"

enum { HALF_W = 540, HALF_H = 280, POINTS = 400, TRACE_CURVES = 6, TRACE_PATHS = 16 };

/* One number of a flow's trace, of all its paths together. */
struct traced {
	const char *title, *note, *axis;
	double unit;
	bool (*has)(const struct results *, const struct results_trace *);
	uint64_t (*value)(const struct results_trace *);
	bool mean; /* of the paths; else their sum */
};

static bool has_rate(const struct results *r, const struct results_trace *t)
{
	return t->rate_bps != UINT64_MAX;
}

static uint64_t rate_of(const struct results_trace *t)
{
	return t->rate_bps;
}

static bool has_window(const struct results *r, const struct results_trace *t)
{
	return true;
}

/* Algorithms that set a rate leave the window at its widest. */
static bool windows_tell(const struct results *r)
{
	for (uint32_t i = 0; i < r->trace_count; i++) {
		if (r->trace[i].rate_bps == UINT64_MAX || r->trace[i].cwnd_bytes != r->trace[0].cwnd_bytes)
			return true;
	}
	return false;
}

static uint64_t window_of(const struct results_trace *t)
{
	return t->cwnd_bytes;
}

static bool has_share(const struct results *r, const struct results_trace *t)
{
	return r->trace_signal && strstr(r->trace_signal, "_ppb");
}

static bool has_time(const struct results *r, const struct results_trace *t)
{
	return r->trace_signal && strstr(r->trace_signal, "_ns") && t->signal;
}

static uint64_t signal_of(const struct results_trace *t)
{
	return t->signal;
}

/* Rows "time_ms value" on change of a path, thinned to what a drawing can show. */
static void trace_rows(FILE *s, const struct results *r, const struct traced *d, uint32_t flow)
{
	uint64_t of_path[TRACE_PATHS] = {0};
	bool seen[TRACE_PATHS] = {false};
	uint32_t records = 0, each, paths = 0;
	double sum = 0;

	for (uint32_t i = 0; i < r->trace_count; i++)
		records += r->trace[i].flow == flow;
	each = records / (4 * POINTS) + 1;
	records = 0;
	for (uint32_t i = 0; i < r->trace_count; i++) {
		const struct results_trace *t = &r->trace[i];

		if (t->flow != flow || t->path >= TRACE_PATHS || !d->has(r, t))
			continue;
		paths += !seen[t->path];
		seen[t->path] = true;
		sum += (double)d->value(t) - (double)of_path[t->path];
		of_path[t->path] = d->value(t);
		if (records++ % each == 0)
			fprintf(s, "%.9g %.6g\n", (double)t->time_ps / 1e9, sum / d->unit / (d->mean ? paths : 1));
	}
}

static void draw_traced(FILE *f, const struct results *r, const struct traced *d)
{
	uint32_t flows[TRACE_CURVES];
	unsigned n = 0;
	FILE *s;
	struct plot *p;

	for (uint32_t i = 0; i < r->trace_count && n < TRACE_CURVES; i++) {
		unsigned k = 0;

		if (!d->has(r, &r->trace[i]))
			continue;
		while (k < n && flows[k] != r->trace[i].flow)
			k++;
		if (k == n)
			flows[n++] = r->trace[i].flow;
	}
	if (!n)
		return;
	page_card_begin(f, d->title, d->note, false);
	p = plot_begin(HALF_W, HALF_H, &s);
	fprintf(s, "set xlabel 'time, ms'\nset ylabel '%s'\nset yrange [0:*]\nset xrange [0:*]\n", d->axis);
	for (unsigned k = 0; k < n; k++) {
		fprintf(s, "$c%u << EOD\n", k);
		trace_rows(s, r, d, flows[k]);
		fprintf(s, "EOD\n");
	}
	fprintf(s, "plot ");
	for (unsigned k = 0; k < n; k++)
		fprintf(s, "%s$c%u using 1:2 with steps lw 1.5 lc rgb '%s' title 'flow %" PRIu32 "'", k ? ", " : "", k,
			plot_colour(k), flows[k]);
	fputc('\n', s);
	plot_logarithmic(p);
	page_plot(f, p);
	page_card_end(f);
}

void draw_trace(FILE *f, const struct results *r)
{
	static const struct traced drawn[] = {
		{"Rate that congestion control allows", "Of the traced flows, at most six; all paths of one together.",
		 "Gbit/s", 1e9, has_rate, rate_of, false},
		{"Congestion window", "Of the traced flows, at most six; all paths of one together.", "KB", 1e3,
		 has_window, window_of, false},
		{"What congestion control goes by",
		 "HPCC: utilisation; DCQCN and DCTCP: alpha. Mean of a flow's paths.", "", 1e9, has_share, signal_of,
		 true},
		{"What congestion control goes by", "Round trip, mean of a flow's paths.", "us", 1e3, has_time,
		 signal_of, true},
	};

	for (size_t i = 0; i < sizeof(drawn) / sizeof(drawn[0]); i++) {
		if (drawn[i].value != window_of || windows_tell(r))
			draw_traced(f, r, &drawn[i]);
	}
}
