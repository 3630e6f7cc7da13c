/* SPDX-License-Identifier: BSD-2-Clause */
/* The runs of a sweep side by side. Drawings read the CSV files of the runs. */
#include "sim.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

#include "tool.h"

enum { HALF_W = 540, HALF_H = 320, CURVES = 8, SMOOTH_POINTS = 150, LABEL_WIDTH = 34 };

static const struct {
	const char *name, *title;
	int width;
} columns[] = {
	{"flows_done", "flows", 9},           {"slowdown_p50", "p50", 8},       {"slowdown_p95", "p95", 8},
	{"slowdown_p99", "p99", 8},           {"finish_last", "last done", 12}, {"bus_bandwidth", "bus bandwidth", 14},
	{"collective_share", "of ideal", 10}, {"goodput", "goodput", 14},       {"jain", "Jain", 8},
	{"jain_median", "in windows", 10},    {"queue_max", "queue max", 10},   {"pause_frames", "pauses", 9},
	{"dropped_packets", "drops", 9},
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

/* Whether any run has the figure. */
static bool column_used(size_t c, const struct sweep_run *r, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (figure_find(&r[i].figures, columns[c].name))
			return true;
	}
	return false;
}

/* The remark about a run that has no figures, or not all. */
static const char *state_text(const struct sweep_run *r)
{
	return r->status == -1                 ? "not begun"
	       : r->status == EXIT_STUCK       ? "partial"
	       : r->status == EXIT_INTERRUPTED ? "partial"
	       : r->status                     ? "failed"
					       : "";
}

/* How many runs of its group are complete. */
static size_t group_runs(const struct sweep_run *r, size_t count, const char *group)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += !r[i].status && r[i].figures.count && !strcmp(r[i].group, group);
	return n;
}

/* Names are long, and so are values: a line each. */
static void print_means(FILE *f, const struct sweep_run *r, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!sim_group_begins(r, i))
			continue;
		fprintf(f, "\n%s%smean of %zu runs, 95 %% confidence\n", r[i].group, r[i].group[0] ? ": " : "",
			group_runs(r, count, r[i].group));
		for (size_t c = 0; c < COLUMNS; c++) {
			char mean[SIM_TEXT_BYTES], half[SIM_TEXT_BYTES];
			struct mean m;

			if (!sim_mean(r, count, r[i].group, columns[c].name, &m))
				continue;
			mean_text(&m, mean, half);
			fprintf(f, "  %-46s %s%s%s", m.figure.label, mean, half[0] ? " \u00b1 " : "", half);
			if (m.runs != group_runs(r, count, r[i].group))
				fprintf(f, ", of %zu", m.runs);
			fputc('\n', f);
		}
	}
}

void sim_compare_print(FILE *f, const struct sweep_run *r, size_t count)
{
	char t[SIM_TEXT_BYTES];

	fprintf(f, "%-*s", LABEL_WIDTH, "run");
	for (size_t c = 0; c < COLUMNS; c++) {
		if (column_used(c, r, count))
			fprintf(f, " %*s", columns[c].width, columns[c].title);
	}
	fputc('\n', f);
	for (size_t i = 0; i < count; i++) {
		fprintf(f, "%-*s", LABEL_WIDTH, r[i].label);
		for (size_t c = 0; c < COLUMNS && r[i].figures.count; c++) {
			const struct figure *g = figure_find(&r[i].figures, columns[c].name);

			if (column_used(c, r, count))
				fprintf(f, " %*s", columns[c].width, g ? figure_text(g, t) : "-");
		}
		fprintf(f, "%s%s\n", r[i].status ? "  " : "", state_text(&r[i]));
	}
	if (sim_groups_repeat(r, count))
		print_means(f, r, count);
}

static void write_csv(FILE *f, const struct sweep_run *r, size_t count)
{
	const char *names[FIGURES_MAX * 2];
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < r[i].figures.count; k++) {
			size_t j = 0;

			while (j < n && strcmp(names[j], r[i].figures.f[k].name))
				j++;
			if (j == n && n < sizeof(names) / sizeof(names[0]))
				names[n++] = r[i].figures.f[k].name;
		}
	}
	fprintf(f, "run,folder,settings,seed,state");
	for (size_t j = 0; j < n; j++)
		fprintf(f, ",%s", names[j]);
	fputc('\n', f);
	for (size_t i = 0; i < count; i++) {
		fprintf(f, "%zu,", i + 1);
		csv_field(f, r[i].folder);
		fputc(',', f);
		csv_field(f, r[i].label);
		fprintf(f, ",%" PRIu64 ",%s", r[i].seed, r[i].status ? state_text(&r[i]) : "done");
		for (size_t j = 0; j < n; j++) {
			const struct figure *g = figure_find(&r[i].figures, names[j]);

			fputc(',', f);
			if (g)
				figure_number(f, g);
		}
		fputc('\n', f);
	}
}

/* If settings are repeated with several seeds, each has one curve: that of its first seed. */
static bool one_of_each(const struct sweep_run *r, size_t count)
{
	size_t groups = 0;

	for (size_t i = 0; i < count; i++)
		groups += sim_group_begins(r, i);
	return groups > 1 && groups < count;
}

/* A drawing of one file of each run: `using` is gnuplot's, of its columns. */
static void draw(FILE *f, const char *path, const struct sweep_run *r, size_t count, const char *title,
		 const char *note, const char *commands, const char *file, const char *style)
{
	bool logarithmic = !strstr(commands, "index") && !strstr(commands, "share of flows");
	struct plotted plotted;
	char name[2 * PATH_MAX];
	FILE *s;
	struct plot *p = plot_begin(HALF_W, HALF_H, &s);
	size_t shown = 0;

	fprintf(s, "set datafile separator ','\nset key font ',11'\n%s\nplot ", commands);
	for (size_t i = 0; i < count && shown < CURVES; i++) {
		if (!r[i].figures.count || (one_of_each(r, count) && !sim_group_begins(r, i)))
			continue;
		snprintf(name, sizeof(name), "%s/%s/%s", path, r[i].folder, file);
		fprintf(s, "%s", shown ? ", " : "");
		plot_quote(s, name);
		fprintf(s, " %s lc rgb '%s' title ", style, plot_colour((unsigned)shown));
		plot_quote(s, one_of_each(r, count) ? r[i].group : r[i].label);
		shown++;
	}
	fputc('\n', s);
	if (logarithmic)
		plot_logarithmic(p);
	plotted = plot_end(p);
	/* A metric that no run has makes gnuplot fail, and then has no card. */
	if ((shown && plotted.svg) || !plot_possible()) {
		page_card_begin(f, title, note, false);
		if (plotted.svg)
			page_plotted(f, &plotted);
		else
			fputs("<p class=\"note\">Not drawn: gnuplot is missing.</p>\n", f);
		page_card_end(f);
	}
	plotted_free(&plotted);
}

static void write_table(FILE *f, const struct sweep_run *r, size_t count)
{
	char t[SIM_TEXT_BYTES];

	page_card_begin(f, "Runs", "Each has a report of its own. All figures are in sweep.csv.", true);
	fputs("<div class=\"scroll\"><table><tr><th>run", f);
	for (size_t c = 0; c < COLUMNS; c++) {
		if (column_used(c, r, count))
			fprintf(f, "<th>%s", columns[c].title);
	}
	fputs("</tr>\n", f);
	for (size_t i = 0; i < count; i++) {
		fputs("<tr><td>", f);
		if (r[i].figures.count) {
			fputs("<a href=\"", f);
			/* '%' begins an escape in a link. */
			for (const char *c = r[i].folder; *c; c++)
				fprintf(f, *c == '%' ? "%%25" : "%c", *c);
			fputs("/report.html\">", f);
		}
		html_text(f, r[i].label);
		if (r[i].figures.count)
			fputs("</a>", f);
		if (r[i].status)
			fprintf(f, " (%s)", state_text(&r[i]));
		for (size_t c = 0; c < COLUMNS; c++) {
			const struct figure *g = figure_find(&r[i].figures, columns[c].name);

			if (column_used(c, r, count))
				fprintf(f, "<td>%s", g ? figure_text(g, t) : "-");
		}
		fputs("</tr>\n", f);
	}
	fputs("</table></div>\n", f);
	page_card_end(f);
}

static void write_means(FILE *f, const struct sweep_run *r, size_t count)
{
	page_card_begin(f, "Means",
			"Of the runs that differ in their seed alone, with the half width of the 95 % "
			"confidence "
			"interval (Student's t). All figures, with least and most, are in means.csv.",
			true);
	fputs("<div class=\"scroll\"><table><tr><th>settings<th>runs", f);
	for (size_t c = 0; c < COLUMNS; c++) {
		if (column_used(c, r, count))
			fprintf(f, "<th>%s", columns[c].title);
	}
	fputs("</tr>\n", f);
	for (size_t i = 0; i < count; i++) {
		if (!sim_group_begins(r, i))
			continue;
		fputs("<tr><td>", f);
		html_text(f, r[i].group[0] ? r[i].group : "all");
		fprintf(f, "<td>%zu", group_runs(r, count, r[i].group));
		for (size_t c = 0; c < COLUMNS; c++) {
			char mean[SIM_TEXT_BYTES] = "-", half[SIM_TEXT_BYTES] = "";
			struct mean m;

			if (!column_used(c, r, count))
				continue;
			if (sim_mean(r, count, r[i].group, columns[c].name, &m))
				mean_text(&m, mean, half);
			fprintf(f, "<td>%s%s%s%s", mean, half[0] ? "<small>\u00b1 " : "", half,
				half[0] ? "</small>" : "");
		}
		fputs("</tr>\n", f);
	}
	fputs("</table></div>\n", f);
	page_card_end(f);
}

/* The largest of a figure; 0: no run has it. */
static uint64_t most_of(const struct sweep_run *r, size_t count, const char *name)
{
	uint64_t most = 0;

	for (size_t i = 0; i < count; i++) {
		const struct figure *g = figure_find(&r[i].figures, name);

		if (g && g->value > most)
			most = g->value;
	}
	return most;
}

/* Whether every run has flows of one size only, which cannot be sorted by size. */
static bool sizes_are_one(const struct sweep_run *r, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct figure *least = figure_find(&r[i].figures, "flow_bytes_min");
		const struct figure *most = figure_find(&r[i].figures, "flow_bytes_max");

		if (least && most && least->value != most->value)
			return false;
	}
	return true;
}

static void draw_slowdowns(FILE *f, const char *path, const struct sweep_run *r, size_t count, const char *note)
{
	static const char axes[] = "set xlabel 'flow size, bytes'\nset ylabel 'slowdown'\nset logscale x\n"
				   "set format x '%.0s%c'\nset yrange [1:*]";
	char line[192];

	if (sizes_are_one(r, count)) {
		snprintf(line, sizeof(line), "%sShare of the flows that are no slower than this.", note);
		draw(f, path, r, count, "FCT slowdown", line,
		     "set xlabel 'slowdown'\nset ylabel 'share of flows'\nset yrange [0:1.02]", "flows.csv",
		     "using (valid(10) ? $10 : NaN):(1) smooth cnormal with lines lw 2");
		return;
	}
	snprintf(line, sizeof(line), "%sTwenty bins of equally many flows, each at its largest.", note);
	draw(f, path, r, count, "FCT slowdown by flow size, median", line, axes, "slowdown_equal.csv",
	     "using (strcol(1) eq 'all' ? $4 : NaN):7 with linespoints lw 2 pt 7 ps 0.4");
	draw(f, path, r, count, "FCT slowdown by flow size, p99", line, axes, "slowdown_equal.csv",
	     "using (strcol(1) eq 'all' ? $4 : NaN):9 with linespoints lw 2 pt 7 ps 0.4");
}

static void write_page(FILE *f, const char *path, const char *name, const struct sweep_run *r, size_t count)
{
	static const char time_axes[] = "set xlabel 'time, ms'\nset yrange [0:*]\nset xrange [0:*]\n";
	char text[512], note[64], line[192], style[192], t[SIM_TEXT_BYTES];
	double window_ms;
	size_t ended = 0;
	bool mb;

	for (size_t i = 0; i < count; i++)
		ended += r[i].status == 0;
	page_begin(f, name, "verbena sim");
	fputs("<header><h1>", f);
	html_text(f, name);
	fprintf(f,
		"</h1>\n<p class=\"title\">A sweep of %zu runs</p>\n<ul class=\"chips\"><li>done "
		"<b>%zu</b></li>"
		"<li>verbena <b>" VERBENA_VERSION "</b></li></ul>\n</header>\n",
		count, ended);
	if (ended < count)
		fprintf(f,
			"<p class=\"partial\"><b>Partial.</b> %zu of %zu runs did not end by "
			"themselves.</p>\n",
			count - ended, count);
	fputs("<div class=\"cards\">\n", f);
	if (sim_groups_repeat(r, count))
		write_means(f, r, count);
	write_table(f, r, count);
	note[0] = 0;
	if (one_of_each(r, count))
		snprintf(note, sizeof(note), "Of the first seed of each. ");
	else if (count > CURVES)
		snprintf(note, sizeof(note), "Of the first %d runs. ", CURVES);
	draw_slowdowns(f, path, r, count, note);
	/* Windows of a run this small would hide each other: means over larger ones. */
	window_ms = (double)most_of(r, count, "time") / 1e9 / SMOOTH_POINTS;
	snprintf(text, sizeof(text), "%sset ylabel 'Gbit/s'", time_axes);
	snprintf(style, sizeof(style), "using (floor($1/1e9/%.9g)*%.9g):($3/1e9) smooth unique with steps lw 1.5",
		 window_ms, window_ms);
	snprintf(line, sizeof(line), "%sApplication bytes received, of all flows, mean over %s.", note,
		 time_text((uint64_t)(window_ms * 1e9), t));
	draw(f, path, r, count, "Goodput over time", line, text, "goodput.csv", style);
	snprintf(text, sizeof(text), "%sset ylabel 'index'\nset yrange [*<0.9:1.01]", time_axes);
	snprintf(line, sizeof(line), "%sJain's index of the flows open throughout a window.", note);
	draw(f, path, r, count, "Fairness over time", line, text, "fairness.csv",
	     "using (($1+$2/2)/1e9):5 with lines lw 1.8");
	mb = most_of(r, count, "queue_max") >= 5000000;
	snprintf(text, sizeof(text), "%sset ylabel '%s'", time_axes, mb ? "MB" : "KB");
	snprintf(style, sizeof(style), "using ($1/1e9):($3/%s) with steps lw 1.4", mb ? "1e6" : "1e3");
	snprintf(line, sizeof(line), "%sOf all switch ports; the longest in each window.", note);
	draw(f, path, r, count, "Longest queue over time", line, text, "queue_longest.csv", style);
	if (most_of(r, count, "pause_frames")) {
		snprintf(text, sizeof(text), "%sset ylabel 'pause frames'", time_axes);
		snprintf(line, sizeof(line), "%sPause frames sent in each window.", note);
		draw(f, path, r, count, "PFC over time", line, text, "pfc_over_time.csv",
		     "using ($1/1e9):3 with steps lw 1.4");
	}
	fputs("</div>\n<footer>A simulation by verbena " VERBENA_VERSION ".</footer>\n", f);
	page_end(f);
}

int sim_compare_report(const char *path, const char *name, const struct sweep_run *r, size_t count)
{
	struct folder d;

	if (!folder_open(&d, path)) {
		write_csv(folder_file(&d, "sweep.csv"), r, count);
		sim_means_csv(folder_file(&d, "means.csv"), r, count);
		write_page(folder_file(&d, "report.html"), path, name, r, count);
	}
	return folder_close(&d);
}
