/* SPDX-License-Identifier: BSD-2-Clause */
/* The run on one screen. */
#include "sim.h"

#include <inttypes.h>
#include <string.h>

static const char *text_of(const struct figures *g, const char *name, char buf[SIM_TEXT_BYTES])
{
	const struct figure *f = figure_find(g, name);

	return f ? figure_text(f, buf) : "-";
}

static void line(FILE *f, const char *name)
{
	fprintf(f, "%-11s", name);
}

static void print_slowdown(FILE *f, const struct results *r)
{
	static const char *const names[RESULTS_FIXED_BINS] = {"<= 7 KB", "<= 120 KB", "<= 1 MB", "> 1 MB"};
	struct results_bin b[RESULTS_FIXED_BINS + 1];
	int kinds = 0;

	if (results_bins_fixed(r, UINT32_MAX, b) || results_bin_all(r, UINT32_MAX, &b[RESULTS_FIXED_BINS]) ||
	    !b[RESULTS_FIXED_BINS].count)
		return;
	for (int i = 0; i < RESULTS_FIXED_BINS; i++)
		kinds += b[i].count > 0;
	fprintf(f, "slowdown            flows      p50      p95      p99    p99.9      max\n");
	for (int i = 0; i <= RESULTS_FIXED_BINS; i++) {
		if (!b[i].count || (i == RESULTS_FIXED_BINS && kinds == 1))
			continue;
		fprintf(f, "  %-11s %11" PRIu32 " %8.2f %8.2f %8.2f %8.2f %8.2f\n",
			i < RESULTS_FIXED_BINS ? names[i] : "all", b[i].count, b[i].p50, b[i].p95, b[i].p99, b[i].p999,
			b[i].max);
	}
}

/* What limits it. */
static void print_possible(FILE *f, const struct results_collective *c)
{
	char t[SIM_TEXT_BYTES], a[SIM_TEXT_BYTES];

	line(f, "");
	fprintf(f, "%.2f %% of what is possible, %s: ", 100.0 * (double)c->possible_ps / (double)c->time_ps,
		time_text(c->possible_ps, t));
	if (!c->limit.hosts)
		fprintf(f, "steps wait for each other\n");
	else if (c->limit.hosts == 1)
		fprintf(f, "host %" PRIu32 " has %s\n", c->limit.host, rate_text(c->limit.bps, a));
	else
		fprintf(f, "%" PRIu32 " hosts, %" PRIu32 " among them, have %s to all others\n", c->limit.hosts,
			c->limit.host, rate_text(c->limit.bps, a));
}

static void print_collectives(FILE *f, const struct scenario *s, const struct results *r)
{
	char t[SIM_TEXT_BYTES], a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES];
	uint32_t shown = r->collective_count < 8 ? r->collective_count : 8;

	for (uint32_t i = 0; i < shown; i++) {
		const struct results_collective *c = &r->collectives[i];

		line(f, i ? "" : "collective");
		fprintf(f, "%s, round %" PRIu32 ": ",
			c->workload < s->workload_count ? s->workload[c->workload].name : "?", c->round + 1);
		if (c->time_ps == RESULTS_NOT_DONE)
			fprintf(f, "not done\n");
		else
			fprintf(f, "%s, algorithm %s, bus %s", time_text(c->time_ps, t), rate_text(c->algorithm_bps, a),
				rate_text(c->bus_bps, b));
		if (c->time_ps != RESULTS_NOT_DONE && c->time_ps && c->ideal_ps)
			fprintf(f, ", %.2f %% of ideal", 100.0 * (double)c->ideal_ps / (double)c->time_ps);
		if (c->time_ps != RESULTS_NOT_DONE)
			fputc('\n', f);
		if (c->possible_ps && c->time_ps)
			print_possible(f, c);
	}
	if (shown < r->collective_count) {
		line(f, "");
		fprintf(f, "and %" PRIu32 " more\n", r->collective_count - shown);
	}
}

static void print_fairness(FILE *f, const struct figures *g)
{
	char a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES], c[SIM_TEXT_BYTES];
	const struct figure *jain = figure_find(g, "jain"), *median = figure_find(g, "jain_median");

	if (jain) {
		line(f, "fairness");
		fprintf(f, "Jain %.5f of ", jain->ratio);
		if (figure_find(g, "fairness_window"))
			fprintf(f, "the rates over %s of %s of %s flows, those open throughout",
				text_of(g, "fairness_window", a), text_of(g, "jain_flows", b),
				text_of(g, "jain_flows_open", c));
		else
			fprintf(f, "the mean rates of %s flows, each over its own time", text_of(g, "jain_flows", a));
		fprintf(f, ": %s to %s (%s apart)\n", text_of(g, "rate_min", a), text_of(g, "rate_max", b),
			text_of(g, "rate_spread", c));
	}
	if (median) {
		line(f, jain ? "" : "fairness");
		fprintf(f, "Jain %.5f in the median of %s windows of %s", median->ratio, text_of(g, "jain_windows", a),
			text_of(g, "jain_window", b));
		fprintf(f, ", of the flows open throughout each, %s in the median\n",
			text_of(g, "jain_window_flows", a));
	}
}

static void print_drops(FILE *f, const struct results *r)
{
	bool any = false;
	char n[SIM_TEXT_BYTES];

	line(f, "drops");
	for (int place = 0; place < RESULTS_PLACES; place++) {
		for (int reason = 0; reason < RESULTS_TRIMMED; reason++) {
			uint64_t packets = 0;

			for (uint32_t i = 0; i < r->drop_count; i++) {
				if ((int)r->drops[i].place == place && (int)r->drops[i].reason == reason)
					packets += r->drops[i].packets;
			}
			if (packets)
				fprintf(f, "%s%s %s at %s", any ? ", " : "", count_text(packets, n),
					results_reason_name((enum results_reason)reason),
					results_place_name((enum results_place)place));
			any |= packets > 0;
		}
	}
	fprintf(f, "%s\n", any ? "" : "none");
}

static void print_flow_control(FILE *f, const struct results *r, const struct figures *g)
{
	char a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES], c[SIM_TEXT_BYTES];

	line(f, r->credits.used ? "credits" : "PFC");
	if (r->credits.used)
		fprintf(f, "%s waits, %s longest, up to %s in a lane's buffer, %" PRIu32 " hosts waited\n",
			text_of(g, "credit_waits", a), text_of(g, "credit_wait_longest", b),
			text_of(g, "lane_buffer_max", c), r->credits.hosts_waited);
	else if (r->pfc.pause_frames)
		fprintf(f, "%s pauses, %s resumes, %s longest, depth %" PRIu32 ", %" PRIu32 " hosts stopped\n",
			text_of(g, "pause_frames", a), text_of(g, "resume_frames", b), text_of(g, "pause_longest", c),
			r->pfc.depth_max, r->pfc.hosts_paused);
	else
		fprintf(f, "no pause\n");
}

void sim_summary(FILE *f, const struct sim_input *in, const struct results *r, const struct figures *g)
{
	const struct scenario *s = in->scenario;
	char a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES], c[SIM_TEXT_BYTES], settings[SETTINGS_TEXT_BYTES];

	fprintf(f, "%s%s%s: seed %" PRIu64 ", %s, %s\n", s->name, s->title[0] ? ": " : "", s->title, s->run.seed,
		transport_text(s, r), cc_text(s, r, a));
	if (r->partial) {
		line(f, "PARTIAL");
		fprintf(f, "%s\n", r->partial_why);
	}
	line(f, "network");
	fprintf(f, "%" PRIu32 " hosts at ", r->hosts);
	if (r->host_rate_bps_min < r->host_rate_bps)
		fprintf(f, "%s to ", rate_text(r->host_rate_bps_min, a));
	fprintf(f, "%s, %" PRIu32 " switches, %" PRIu32 " links, base RTT up to %s\n", rate_text(r->host_rate_bps, a),
		r->switches, r->links, time_text(r->base_rtt_ps, b));
	line(f, "settings");
	fprintf(f, "%s\n", settings_text(s, r, settings));
	line(f, "flows");
	fprintf(f, "%s of %s done", text_of(g, "flows_done", a), text_of(g, "flows", b));
	if (r->flows_held_back)
		fprintf(f, "; %" PRIu64 " never began", r->flows_held_back);
	if (figure_find(g, "finish_first"))
		fprintf(f, ": first %s,", text_of(g, "finish_first", c));
	if (figure_find(g, "finish_median"))
		fprintf(f, " median %s, last %s", text_of(g, "finish_median", a), text_of(g, "finish_last", b));
	fputc('\n', f);
	print_slowdown(f, r);
	jobs_print(f, in, r);
	steps_print(f, in, r);
	print_collectives(f, s, r);
	line(f, "goodput");
	fprintf(f, "%s", text_of(g, "goodput", a));
	if (figure_find(g, "goodput_share"))
		fprintf(f, ", %s of what its receivers can take", text_of(g, "goodput_share", b));
	fputc('\n', f);
	print_fairness(f, g);
	line(f, "queues");
	fprintf(f, "longest %s", text_of(g, "queue_max", a));
	if (figure_find(g, "queue_p99"))
		fprintf(f, "; that port half of the time up to %s, 99 %% up to %s", text_of(g, "queue_p50", b),
			text_of(g, "queue_p99", c));
	fputc('\n', f);
	print_flow_control(f, r, g);
	print_drops(f, r);
	line(f, "recovery");
	fprintf(f, "%s packets sent again, %s of them for nothing", text_of(g, "retransmitted_packets", a),
		text_of(g, "spurious_packets", b));
	fprintf(f, ", %s timeouts\n", text_of(g, "rtos", c));
	if (r->trace_lost) {
		line(f, "cc trace");
		fprintf(f, "full: %s records of %s are missing\n", count_text(r->trace_lost, a),
			count_text(r->trace_lost + r->trace_count, b));
	}
	line(f, "simulator");
	fprintf(f, "%s simulated, %s events, %s packet-hops", time_text(r->time_ps, a), count_text(r->events, b),
		count_text(r->packet_hops, c));
	fprintf(f, "; %.2f s, %.2f s CPU, %s\n", (double)r->simulator.wall_ns / 1e9, (double)r->simulator.cpu_ns / 1e9,
		bytes_text(r->simulator.memory_bytes_peak, a));
}
