/* SPDX-License-Identifier: BSD-2-Clause */
/* A run's folder: CSV, JSON, the scenario itself, and the page with its drawings. */
#include "sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

enum { TABLE_PORTS = 8 };

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

static void tile_figure(FILE *f, const struct figures *g, const char *label, const char *name, const char *more_label,
			const char *more_name)
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

/* The line below the index says what it covers; without that line the index means nothing. */
static void tile_fairness(FILE *f, const struct figures *g)
{
	const struct figure *jain = figure_find(g, "jain"), *median = figure_find(g, "jain_median");
	const struct figure *flows = figure_find(g, "jain_flows"), *open = figure_find(g, "jain_flows_open");
	char a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES], text[3 * SIM_TEXT_BYTES] = "";
	int n = 0;

	if (jain && open)
		n = snprintf(text, sizeof(text), "%s of %s flows", figure_text(flows, a), figure_text(open, b));
	else if (jain)
		n = snprintf(text, sizeof(text), "mean rates of %s flows", figure_text(flows, a));
	if (jain && median)
		snprintf(text + n, sizeof(text) - (size_t)n, "; in windows %s", figure_text(median, a));
	else if (median)
		snprintf(text, sizeof(text), "median of windows of %s", figure_text(figure_find(g, "jain_window"), a));
	if (jain || median)
		tile(f, "Jain's index", figure_text(jain ? jain : median, a), text);
}

static void write_tiles(FILE *f, const struct results *r, const struct figures *g)
{
	char a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES], text[2 * SIM_TEXT_BYTES + 8];

	fputs("<div class=\"tiles\">\n", f);
	snprintf(text, sizeof(text), "of %s", count_text(r->flow_count, b));
	tile(f, "Flows done", count_text(r->flows_done, a), text);
	if (figure_find(g, "step_time")) {
		tile_figure(f, g, "Step", "step_time", "compute", "step_compute");
		tile_figure(f, g, "Exposed communication", "step_exposed", "of the step", "step_exposed_share");
	} else if (figure_find(g, "collective_time")) {
		tile_figure(f, g, "Collective", "collective_time", "of ideal", "collective_share");
		tile_figure(f, g, "Bus bandwidth", "bus_bandwidth", "algorithm", "algorithm_bandwidth");
	} else {
		tile_figure(f, g, "Slowdown, p99", "slowdown_p99", "median", "slowdown_p50");
		tile_figure(f, g, "Last flow done", "finish_last", "first", "finish_first");
	}
	tile_figure(f, g, "Goodput", "goodput", "share of receivers' rate", "goodput_share");
	tile_fairness(f, g);
	tile_figure(f, g, "Longest queue", "queue_max", "99 % of time", "queue_p99");
	if (r->credits.used)
		tile_figure(f, g, "Waits for credits", "credit_waits", r->credits.waits ? "longest" : "none",
			    r->credits.waits ? "credit_wait_longest" : NULL);
	else
		tile_figure(f, g, "PFC pauses", "pause_frames", r->pfc.pause_frames ? "longest" : "none",
			    r->pfc.pause_frames ? "pause_longest" : NULL);
	tile_figure(f, g, "Packets dropped", "dropped_packets", "sent again", "retransmitted_packets");
	fputs("</div>\n", f);
}

static void write_slowdown_table(FILE *f, const struct results *r)
{
	static const char *const names[] = {"up to 7 KB", "up to 120 KB", "up to 1 MB", "more", "all"};
	struct results_bin b[RESULTS_FIXED_BINS + 1];

	if (results_bins_fixed(r, UINT32_MAX, b) || results_bin_all(r, UINT32_MAX, &b[RESULTS_FIXED_BINS]) ||
	    !b[RESULTS_FIXED_BINS].count)
		return;
	page_card_begin(f, "FCT slowdown", "Flow completion time by what it is on an empty network.", false);
	fputs("<div class=\"scroll\"><table><tr><th>flow "
	      "size<th>flows<th>p50<th>p95<th>p99<th>p99.9"
	      "<th>max</tr>\n",
	      f);
	for (int i = 0; i <= RESULTS_FIXED_BINS; i++) {
		if (b[i].count)
			fprintf(f, "<tr><td>%s<td>%" PRIu32 "<td>%.2f<td>%.2f<td>%.2f<td>%.2f<td>%.2f</tr>\n", names[i],
				b[i].count, b[i].p50, b[i].p95, b[i].p99, b[i].p999, b[i].max);
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
	page_card_begin(f, "Ports with the longest queues", "Percentiles are of time; pauses: sent to the neighbour.",
			false);
	fputs("<div class=\"scroll\"><table><tr><th>port<th>mean<th>p99<th>max<th>pauses</tr>\n", f);
	for (size_t i = 0; i < n && i < TABLE_PORTS && ports[i]->queue_bytes_max; i++) {
		fprintf(f, "<tr><td>%s to %s<td>%s<td>%s<td>%s<td>%" PRIu64 "</tr>\n", node_text(r, ports[i]->node, a),
			node_text(r, ports[i]->to, b), bytes_text((uint64_t)results_queue_mean(ports[i]), c),
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
	fputs("<div "
	      "class=\"scroll\"><table><tr><th>place<th>reason<th>class<th>packets<th>bytes</tr>\n",
	      f);
	for (int place = 0; place < RESULTS_PLACES; place++) {
		for (int reason = 0; reason < RESULTS_REASONS; reason++) {
			for (int class = 0; class < RESULTS_CLASSES; class ++) {
				uint64_t packets = 0, bytes = 0;

				for (uint32_t i = 0; i < r->drop_count; i++) {
					const struct results_drop *o = &r->drops[i];

					if ((int)o->place == place && (int)o->reason == reason && o->class == class) {
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
	page_card_begin(
		f, "Collectives",
		"Ideal: limited by headers and the hosts' links. Possible: by the slowest cut of the network, or by steps that wait for each other.",
		true);
	fputs("<div class=\"scroll\"><table><tr><th>workload<th>round<th>hosts<th>bytes of "
	      "each<th>time<th>ideal"
	      "<th>share of ideal<th>share of what is possible<th>algorithm bandwidth<th>bus bandwidth</tr>\n",
	      f);
	for (uint32_t k = 0; k < r->collective_count && k < 32; k++) {
		const struct results_collective *c = &r->collectives[k];
		bool done = c->time_ps != RESULTS_NOT_DONE;

		fputs("<tr><td>", f);
		html_text(f,
			  c->workload < in->scenario->workload_count ? in->scenario->workload[c->workload].name : "?");
		fprintf(f, "<td>%" PRIu32 "<td>%" PRIu32 "<td>%s<td>%s<td>%s", c->round + 1, c->hosts,
			bytes_text(c->bytes, z), done ? time_text(c->time_ps, t) : "not done",
			time_text(c->ideal_ps, i));
		if (done)
			fprintf(f, "<td>%.2f %%<td>%.2f %%<td>%s<td>%s</tr>\n",
				c->time_ps ? 100.0 * (double)c->ideal_ps / (double)c->time_ps : 0.0,
				c->time_ps ? 100.0 * (double)c->possible_ps / (double)c->time_ps : 0.0,
				rate_text(c->algorithm_bps, a), rate_text(c->bus_bps, b));
		else
			fputs("<td>-<td>-<td>-<td>-</tr>\n", f);
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

static bool program_sends(const struct scenario *s)
{
	for (uint32_t i = 0; i < s->workload_count; i++) {
		if (s->workload[i].kind == SCENARIO_PROGRAM)
			return true;
	}
	return false;
}

static void write_page(FILE *f, const struct sim_input *in, const struct results *r, const struct figures *g)
{
	const struct scenario *s = in->scenario;
	char text[128], a[SIM_TEXT_BYTES], settings[SETTINGS_TEXT_BYTES];

	page_begin(f, s->name, "verbena sim");
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
	chip(f, "settings", settings_text(s, r, settings));
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
	jobs_table(f, in, r);
	steps_table(f, in, r);
	draw_timeline(f, r);
	kinds_table(f, in, r);
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
	page_card_begin(f, "Scenario",
			program_sends(s) ? "scenario.ini beside this page; a program sent the messages."
					 : "scenario.ini beside this page; this line repeats the run.",
			true);
	fputs("<pre>", f);
	if (!program_sends(s)) {
		char *command = NULL;
		size_t bytes;
		FILE *m = open_memstream(&command, &bytes);

		if (m) {
			sim_command_write(m, in);
			fclose(m);
			html_text(f, command);
		}
		free(command);
		fputs("\n\n", f);
	}
	html_text(f, in->text);
	fputs("</pre>\n", f);
	page_card_end(f);
	fputs("</div>\n<footer>A simulation by verbena " VERBENA_VERSION
	      ": the transport is the code that runs on real "
	      "networks, the network is a model. What the machine took for it is in "
	      "simulator.json.</footer>\n",
	      f);
	page_end(f);
}

int sim_report(const char *path, const struct sim_input *in, const struct results *r, const struct figures *g)
{
	struct folder d;

	if (!folder_open(&d, path)) {
		fputs(in->text, folder_file(&d, "scenario.ini"));
		sim_csv_write(&d, in, r, g);
		sim_json_write(&d, in, r, g);
		if (r->step_count)
			steps_trace(folder_file(&d, "trace.json"), in, r);
		write_page(folder_file(&d, "report.html"), in, r, g);
	}
	return folder_close(&d);
}
