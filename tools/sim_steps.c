/* SPDX-License-Identifier: BSD-2-Clause */
/* Graphs that ran: a row each, a row for each rank, a table, and a trace for viewers. */
#include "sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

enum { TABLE_STEPS = 32, SHOWN_STEPS = 8, TRACE_NODES_MAX = 1 << 21 };

static const char *workload_name(const struct sim_input *in, uint32_t workload)
{
	return workload < in->scenario->workload_count ? in->scenario->workload[workload].name : "?";
}

static const char *name_of(const struct sim_input *in, const struct results_step *s)
{
	return workload_name(in, s->workload);
}

/* ---- jobs ---- */

/* 0: not known. */
static double times(uint64_t ps, uint64_t than_ps)
{
	return than_ps ? (double)ps / (double)than_ps : 0;
}

static void job_print(FILE *f, const struct sim_input *in, const struct results_job *j, bool first)
{
	char a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES], c[SIM_TEXT_BYTES], d[SIM_TEXT_BYTES];

	fprintf(f, "%-11s%s: %" PRIu32 " ranks, ", first ? "job" : "", workload_name(in, j->workload), j->ranks);
	if (j->steps > 1)
		fprintf(f, "%" PRIu32 " of %" PRIu32 " steps done; ", j->steps_done, j->steps);
	if (!j->steps_done) {
		fputs("no step done\n", f);
		return;
	}
	fprintf(f, "a step takes %s", time_text(j->time_ps, a));
	if (j->steps_done > 1)
		fprintf(f, ", at most %s", time_text(j->time_ps_max, b));
	fprintf(f, ", exposed communication %s", time_text(j->exposed_ps, c));
	if (j->bus_bps)
		fprintf(f, ", bus %s", rate_text(j->bus_bps, d));
	if (j->alone_ps)
		fprintf(f, "; %.3f times as long as alone", times(j->time_ps, j->alone_ps));
	if (j->infinite_ps)
		fprintf(f, "%s %.3f times as long as with an infinite network", j->alone_ps ? "," : ";",
			times(j->time_ps, j->infinite_ps));
	fputc('\n', f);
}

void jobs_print(FILE *f, const struct sim_input *in, const struct results *r)
{
	struct results_job *jobs;
	uint32_t count;

	if (results_jobs(r, &jobs, &count))
		return;
	for (uint32_t i = 0; i < count; i++)
		job_print(f, in, &jobs[i], !i);
	free(jobs);
}

static void ratio_csv(FILE *f, uint64_t ps, uint64_t than_ps)
{
	if (than_ps && ps)
		fprintf(f, "%" PRIu64 ",%.6f", than_ps, times(ps, than_ps));
	else
		fputc(',', f);
}

void jobs_csv(FILE *f, const struct sim_input *in, const struct results *r)
{
	struct results_job *jobs;
	uint32_t count;

	fputs("job,ranks,steps,steps_done,time_ps,time_ps_max,compute_ps,exposed_ps,bus_bps,alone_ps,slowdown_alone,"
	      "infinite_ps,slowdown_infinite\n",
	      f);
	if (results_jobs(r, &jobs, &count))
		return;
	for (uint32_t i = 0; i < count; i++) {
		const struct results_job *j = &jobs[i];

		fprintf(f,
			"%s,%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
			",%" PRIu64 ",",
			workload_name(in, j->workload), j->ranks, j->steps, j->steps_done, j->time_ps, j->time_ps_max,
			j->compute_ps, j->exposed_ps, j->bus_bps);
		ratio_csv(f, j->time_ps, j->alone_ps);
		fputc(',', f);
		ratio_csv(f, j->time_ps, j->infinite_ps);
		fputc('\n', f);
	}
	free(jobs);
}

static void ratio_cell(FILE *f, uint64_t ps, uint64_t than_ps)
{
	if (than_ps && ps)
		fprintf(f, "<td>%.3f", times(ps, than_ps));
	else
		fputs("<td>-", f);
}

void jobs_table(FILE *f, const struct sim_input *in, const struct results *r)
{
	char a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES], c[SIM_TEXT_BYTES], d[SIM_TEXT_BYTES];
	struct results_job *jobs;
	uint32_t count;

	if (!r->step_count || results_jobs(r, &jobs, &count))
		return;
	page_card_begin(
		f, "Jobs",
		"Means of the steps that are done. Bus bandwidth: of all collectives, by the time that each takes. "
		"Slowdown: against the same job alone (with --alone), and against a network in which messages take no "
		"time.",
		true);
	fputs("<div class=\"scroll\"><table><tr><th>job<th>ranks<th>steps<th>done<th>step<th>longest<th>exposed<th>bus "
	      "bandwidth<th>slowdown<th>... of an infinite network</tr>\n",
	      f);
	for (uint32_t i = 0; i < count; i++) {
		const struct results_job *j = &jobs[i];

		fputs("<tr><td>", f);
		html_text(f, workload_name(in, j->workload));
		fprintf(f, "<td>%" PRIu32 "<td>%" PRIu32 "<td>%" PRIu32 "<td>%s<td>%s<td>%s<td>%s", j->ranks, j->steps,
			j->steps_done, time_text(j->time_ps, a), time_text(j->time_ps_max, b),
			time_text(j->exposed_ps, c), rate_text(j->bus_bps, d));
		ratio_cell(f, j->time_ps, j->alone_ps);
		ratio_cell(f, j->time_ps, j->infinite_ps);
		fputs("</tr>\n", f);
	}
	fputs("</table></div>\n", f);
	page_card_end(f);
	free(jobs);
}

/* ---- steps ---- */

void steps_print(FILE *f, const struct sim_input *in, const struct results *r)
{
	char a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES], c[SIM_TEXT_BYTES], d[SIM_TEXT_BYTES];
	uint32_t shown = r->step_count < SHOWN_STEPS ? r->step_count : SHOWN_STEPS;

	for (uint32_t i = 0; i < shown; i++) {
		const struct results_step *s = &r->steps[i];

		fprintf(f, "%-11s%s, round %" PRIu32 ": ", i ? "" : "step", name_of(in, s), s->round + 1);
		if (s->time_ps == RESULTS_NOT_DONE)
			fprintf(f, "%" PRIu32 " of %" PRIu32 " nodes\n", s->nodes_done, s->graph->node_count);
		else
			fprintf(f,
				"%s; a rank computes %s (at most %s), its exposed communication is %s (at most %s)\n",
				time_text(s->time_ps, a), time_text(s->compute_ps, b), time_text(s->compute_ps_max, c),
				time_text(s->exposed_ps, d), time_text(s->exposed_ps_max, (char[SIM_TEXT_BYTES]){0}));
	}
	if (shown < r->step_count)
		fprintf(f, "%-11sand %" PRIu32 " more\n", "", r->step_count - shown);
}

void steps_csv(FILE *f, const struct sim_input *in, const struct results *r)
{
	fputs("workload,round,ranks,nodes,nodes_done,start_ps,time_ps,compute_ps,compute_ps_max,exposed_ps,"
	      "exposed_ps_max\n",
	      f);
	for (uint32_t i = 0; i < r->step_count; i++) {
		const struct results_step *s = &r->steps[i];

		fprintf(f, "%s,%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",", name_of(in, s), s->round,
			s->graph->rank_count, s->graph->node_count, s->nodes_done, s->start_ps);
		if (s->time_ps != RESULTS_NOT_DONE)
			fprintf(f, "%" PRIu64, s->time_ps);
		fprintf(f, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", s->compute_ps, s->compute_ps_max,
			s->exposed_ps, s->exposed_ps_max);
	}
}

void ranks_csv(FILE *f, const struct sim_input *in, const struct results *r)
{
	fputs("workload,round,rank,compute_ps,exposed_ps,end_ps\n", f);
	for (uint32_t i = 0; i < r->step_count; i++) {
		const struct results_step *s = &r->steps[i];

		for (uint32_t rank = 0; rank < s->graph->rank_count; rank++) {
			struct results_rank of;

			if (results_rank_of(s, rank, &of))
				return;
			fprintf(f, "%s,%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", name_of(in, s),
				s->round, rank, of.compute_ps, of.exposed_ps, of.end_ps);
			results_rank_free(&of);
		}
	}
}

void kinds_csv(FILE *f, const struct sim_input *in, const struct results *r)
{
	fputs("workload,round,collective,ranks,bytes,count,time_ps,skew_ps,bus_bps\n", f);
	for (uint32_t i = 0; i < r->step_count; i++) {
		const struct results_step *s = &r->steps[i];
		struct results_kind *k;
		uint32_t count;

		if (results_kinds(s, &k, &count))
			return;
		for (uint32_t n = 0; n < count; n++)
			fprintf(f,
				"%s,%" PRIu32 ",%s,%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
				"\n",
				name_of(in, s), s->round, collective_kind_name((enum collective_kind)k[n].kind),
				k[n].members, k[n].bytes, k[n].count, k[n].time_ps, k[n].skew_ps, k[n].bus_bps);
		free(k);
	}
}

/* A string of JSON; names are printable ASCII. */
static void write_name(FILE *f, const struct graph *g, uint32_t node)
{
	char text[96];
	const char *name = text;

	if (g->nodes[node].name)
		name = g->names + g->nodes[node].name;
	else
		graph_node_text(g, node, text, sizeof(text));
	fputc('"', f);
	for (; *name; name++)
		fprintf(f, *name == '"' || *name == '\\' ? "\\%c" : "%c", *name);
	fputc('"', f);
}

/* What a viewer shows as a line of its own: a stream of a rank; behind the streams what holds none. */
static uint32_t line_of(const struct graph *g, const struct graph_node *n)
{
	return n->stream != GRAPH_NO_STREAM ? n->stream : g->stream_count + (n->kind == GRAPH_RECV);
}

static void write_span(FILE *f, const struct results_step *s, uint32_t process, uint32_t node)
{
	static const char *const kinds[GRAPH_KINDS] = {"calc", "send", "recv", "collective"};
	const struct graph_node *n = &s->graph->nodes[node];
	const struct graph_span *at = &s->spans[node];
	/* What overlaps on one line, as receives do, is asynchronous to a viewer. */
	bool alone = n->stream != GRAPH_NO_STREAM;

	for (int end = 0; end < (alone ? 1 : 2); end++) {
		uint64_t ps = end ? at->end_ps : at->begin_ps;

		fputs(",\n{\"name\":", f);
		write_name(f, s->graph, node);
		fprintf(f,
			",\"cat\":\"%s\",\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"ts\":%" PRIu64
			".%06" PRIu64,
			kinds[n->kind],
			alone ? "X"
			: end ? "e"
			      : "b",
			process, line_of(s->graph, n), ps / 1000000, ps % 1000000);
		if (alone)
			fprintf(f, ",\"dur\":%" PRIu64 ".%06" PRIu64, (at->end_ps - at->begin_ps) / 1000000,
				(at->end_ps - at->begin_ps) % 1000000);
		else
			fprintf(f, ",\"id\":%" PRIu32, node);
		if (!end && n->kind != GRAPH_CALC)
			fprintf(f, ",\"args\":{\"bytes\":%" PRIu64 ",\"%s\":%" PRIu32 "}", n->amount,
				n->kind == GRAPH_COLLECTIVE ? "group" : "peer", n->peer);
		fputc('}', f);
	}
}

/* The Trace Event Format: a rank is a process, times are in us. */
void steps_trace(FILE *f, const struct sim_input *in, const struct results *r)
{
	uint64_t written = 0;
	uint32_t process = 0;

	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"name\":\"trace\",\"ph\":\"M\",\"pid\":0}", f);
	for (uint32_t i = 0; i < r->step_count; i++) {
		const struct results_step *s = &r->steps[i];

		for (uint32_t rank = 0; rank < s->graph->rank_count; rank++, process++)
			fprintf(f,
				",\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%" PRIu32
				",\"args\":{\"name\":\"%s round %" PRIu32 " rank %" PRIu32 "\"}}",
				process, name_of(in, s), s->round + 1, rank);
		for (uint32_t n = 0; n < s->graph->node_count && written < TRACE_NODES_MAX; n++) {
			if (s->spans[n].end_ps == GRAPH_NEVER_PS)
				continue;
			write_span(f, s, process - s->graph->rank_count + s->graph->nodes[n].rank, n);
			written++;
		}
	}
	fputs("\n]}\n", f);
}

void steps_table(FILE *f, const struct sim_input *in, const struct results *r)
{
	char a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES], c[SIM_TEXT_BYTES], d[SIM_TEXT_BYTES], e[SIM_TEXT_BYTES];

	if (!r->step_count)
		return;
	page_card_begin(
		f, "Steps",
		"Compute and exposed communication, in which a rank waits for messages and computes nothing, of the "
		"mean rank and of the one that has most. trace.json has each node, for trace viewers.",
		true);
	fputs("<div class=\"scroll\"><table><tr><th>workload<th>round<th>ranks<th>time<th>compute<th>most"
	      "<th>exposed<th>most</tr>\n",
	      f);
	for (uint32_t i = 0; i < r->step_count && i < TABLE_STEPS; i++) {
		const struct results_step *s = &r->steps[i];

		fputs("<tr><td>", f);
		html_text(f, name_of(in, s));
		fprintf(f, "<td>%" PRIu32 "<td>%" PRIu32 "<td>%s<td>%s<td>%s<td>%s<td>%s</tr>\n", s->round + 1,
			s->graph->rank_count, s->time_ps == RESULTS_NOT_DONE ? "not done" : time_text(s->time_ps, a),
			time_text(s->compute_ps, b), time_text(s->compute_ps_max, c), time_text(s->exposed_ps, d),
			time_text(s->exposed_ps_max, e));
	}
	fputs("</table></div>\n", f);
	page_card_end(f);
}

/* Later rounds of a workload have the same collectives. */
static const struct results_step *first_done(const struct results *r)
{
	for (uint32_t i = 0; i < r->step_count; i++) {
		if (r->steps[i].time_ps != RESULTS_NOT_DONE)
			return &r->steps[i];
	}
	return NULL;
}

static void kinds_rows(FILE *f, const struct sim_input *in, const struct results_step *s)
{
	char a[SIM_TEXT_BYTES], b[SIM_TEXT_BYTES], c[SIM_TEXT_BYTES], d[SIM_TEXT_BYTES];
	struct results_kind *k;
	uint32_t count;

	if (results_kinds(s, &k, &count))
		return;
	for (uint32_t i = 0; i < count && i < TABLE_STEPS; i++) {
		fputs("<tr><td>", f);
		html_text(f, name_of(in, s));
		fprintf(f, "<td>%s<td>%" PRIu32 "<td>%s<td>%" PRIu64 "<td>%s<td>%s<td>%s</tr>\n",
			collective_kind_name((enum collective_kind)k[i].kind), k[i].members, bytes_text(k[i].bytes, a),
			k[i].count, time_text(k[i].time_ps, b), time_text(k[i].skew_ps, c), rate_text(k[i].bus_bps, d));
	}
	free(k);
}

void kinds_table(FILE *f, const struct sim_input *in, const struct results *r)
{
	uint32_t shown = UINT32_MAX;

	if (!first_done(r) || !first_done(r)->graph->group_count)
		return;
	page_card_begin(
		f, "Collectives of each first step",
		"Means, from the first rank's start to the last one's end; skew: until the last rank started. Bus "
		"bandwidth is bytes by time, by (n-1)/n, of an all-reduce by twice that.",
		true);
	fputs("<div class=\"scroll\"><table><tr><th>workload<th>collective<th>ranks<th>bytes<th>count<th>time<th>skew<th>bus "
	      "bandwidth</tr>\n",
	      f);
	for (uint32_t i = 0; i < r->step_count; i++) {
		const struct results_step *s = &r->steps[i];

		if (s->time_ps == RESULTS_NOT_DONE || s->workload == shown)
			continue;
		shown = s->workload;
		kinds_rows(f, in, s);
	}
	fputs("</table></div>\n", f);
	page_card_end(f);
}

/* ---- the timeline ------------------------------------------------------------------------------------------------ */

enum { TIMELINE_RANKS = 64, TIMELINE_COLUMNS = 4000, ROW = 16 };

/* Spans of one colour on a rank's line; those that are too near each other to be told apart are drawn as one. */
static void draw_spans(FILE *f, const struct results_step *s, const struct graph_span *spans, uint32_t count,
		       uint32_t row, const char *class)
{
	uint64_t begin = 0, end = 0;

	for (uint32_t i = 0; i <= count; i++) {
		uint64_t from = 0, to = 0;

		if (i < count) {
			from = (uint64_t)((double)(spans[i].begin_ps - s->start_ps) * TIMELINE_COLUMNS / s->time_ps);
			to = (uint64_t)((double)(spans[i].end_ps - s->start_ps) * TIMELINE_COLUMNS / s->time_ps);
			if (to == from)
				to++;
		}
		if (i < count && end && from <= end) {
			end = to > end ? to : end;
			continue;
		}
		if (end)
			fprintf(f,
				"<rect class=\"%s\" x=\"%" PRIu64 "\" y=\"%" PRIu32 "\" width=\"%" PRIu64
				"\" height=\"%d\"/>\n",
				class, begin, row * ROW, end - begin, ROW - 4);
		begin = from;
		end = to;
	}
}

void draw_timeline(FILE *f, const struct results *r)
{
	static const char style[] =
		"<style>.ranks svg{height:auto;display:block;min-width:100%}.ranks rect{fill:var(--line)}.ranks "
		".c{fill:#2f7ed8}.ranks .m{fill:#e0712d}.ranks input{position:absolute;opacity:0}.ranks label{font-size:12px;"
		"padding:1px 9px;margin:0 4px 6px 0;border:1px solid var(--line);border-radius:999px;cursor:pointer;"
		"display:inline-block}.ranks input:checked+label{border-color:var(--soft)}.ranks "
		"#z4:checked~.scroll svg{width:400%}.ranks #z16:checked~.scroll svg{width:1600%}</style>\n";
	const struct results_step *s = first_done(r);
	uint32_t ranks = s ? s->graph->rank_count : 0;
	char time[SIM_TEXT_BYTES], note[256];

	if (!s || !s->time_ps)
		return;
	if (ranks > TIMELINE_RANKS)
		ranks = TIMELINE_RANKS;
	snprintf(note, sizeof(note),
		 "%s from left to right, ranks 0 to %" PRIu32
		 " from above: blue computes, orange is exposed communication, grey waits for neither.",
		 time_text(s->time_ps, time), ranks - 1);
	page_card_begin(f, "Ranks over the first step", note, true);
	fputs(style, f);
	fputs("<div class=\"ranks\"><input type=\"radio\" name=\"z\" id=\"z1\" checked><label for=\"z1\">all</label>"
	      "<input type=\"radio\" name=\"z\" id=\"z4\"><label for=\"z4\">x 4</label>"
	      "<input type=\"radio\" name=\"z\" id=\"z16\"><label for=\"z16\">x 16</label><div class=\"scroll\">",
	      f);
	fprintf(f, "<svg viewBox=\"0 0 %d %" PRIu32 "\" preserveAspectRatio=\"none\" style=\"height:%" PRIu32 "px\">\n",
		TIMELINE_COLUMNS, ranks * ROW, ranks * ROW);
	for (uint32_t rank = 0; rank < ranks; rank++) {
		struct results_rank of;

		if (results_rank_of(s, rank, &of))
			break;
		fprintf(f,
			"<rect x=\"0\" y=\"%" PRIu32 "\" width=\"%d\" height=\"%d\"><title>rank %" PRIu32
			"</title></rect>\n",
			rank * ROW, TIMELINE_COLUMNS, ROW - 4, rank);
		draw_spans(f, s, of.exposed, of.exposed_count, rank, "m");
		draw_spans(f, s, of.compute, of.compute_count, rank, "c");
		results_rank_free(&of);
	}
	fputs("</svg></div></div>\n", f);
	page_card_end(f);
}
