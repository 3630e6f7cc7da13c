/* SPDX-License-Identifier: BSD-2-Clause */
/* Graphs that ran: a row each, a row for each rank, a table, and a trace for viewers. */
#include "sim.h"

#include <inttypes.h>
#include <string.h>

#include "page.h"

enum { TABLE_STEPS = 32, SHOWN_STEPS = 8, TRACE_NODES_MAX = 1 << 21 };

static const char *name_of(const struct sim_input *in, const struct results_step *s)
{
	return s->workload < in->scenario->workload_count ? in->scenario->workload[s->workload].name : "?";
}

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

			if (!results_rank_of(s, rank, &of))
				fprintf(f, "%s,%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
					name_of(in, s), s->round, rank, of.compute_ps, of.exposed_ps, of.end_ps);
		}
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
