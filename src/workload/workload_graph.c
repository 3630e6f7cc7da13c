/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A graph as a part of a workload. Rank i is host i of the part, and all messages from one rank to another go by one
 * connection. What the run needs is allocated when it begins, so of many rounds one needs memory at a time, and of those
 * that are done the times of their nodes are kept.
 */
#include <errno.h>
#include <stdlib.h>

#include "workload/graph_describe.h"
#include "workload/graph_run.h"
#include "workload/workload_part.h"

struct graph_part {
	struct workload_part part;
	struct graph_run_config config;
	struct graph_run *run;   /* NULL: it has not begun */
	struct graph_slow *slow; /* of the config */
	bool failed;
};

static struct graph_part *of(struct workload_part *p)
{
	return (struct graph_part *)p;
}

static const struct graph_part *of_const(const struct workload_part *p)
{
	return (const struct graph_part *)p;
}

/* All messages are released by reports. */
static bool graph_next(struct workload_part *p, struct message *out)
{
	(void)p;
	(void)out;
	return false;
}

static bool graph_released(struct workload_part *p, struct message *out)
{
	struct graph_part *g = of(p);
	struct graph_message m;

	if (!g->run || !graph_run_take(g->run, &m))
		return false;
	*out = part_message(p);
	out->start_ps = 0;
	out->src = m.src;
	out->dst = m.dst;
	out->bytes = m.bytes;
	out->number = m.number;
	out->connection = (uint64_t)m.src * p->host_count + m.dst;
	out->last = false;
	return true;
}

static void graph_sent(struct workload_part *p, const struct message *m, uint64_t now_ps)
{
	graph_run_sent(of(p)->run, m->number, now_ps);
}

static void graph_received(struct workload_part *p, const struct message *m, uint64_t now_ps)
{
	graph_run_received(of(p)->run, m->number, now_ps);
}

static uint64_t graph_deadline(const struct workload_part *p)
{
	const struct graph_part *g = of_const(p);

	if (g->failed)
		return WORKLOAD_NEVER_PS;
	return g->run ? graph_run_deadline(g->run) : p->begun_ps + p->start_ps;
}

static void graph_expire(struct workload_part *p, uint64_t now_ps)
{
	struct graph_part *g = of(p);

	if (g->run) {
		graph_run_expire(g->run, now_ps);
		return;
	}
	g->run = graph_run_create(&g->config);
	if (g->run)
		graph_run_begin(g->run, now_ps);
	else
		g->failed = true;
}

static bool graph_is_done(const struct workload_part *p)
{
	const struct graph_part *g = of_const(p);

	return g->run && !graph_run_left(g->run);
}

static bool graph_failed(const struct workload_part *p)
{
	return of_const(p)->failed || (of_const(p)->run && graph_run_failed(of_const(p)->run));
}

static void graph_part_free(struct workload_part *p)
{
	graph_run_free(of(p)->run);
	graph_free(of(p)->config.graph);
	free(of(p)->slow);
	free(p);
}

static const struct workload_part_ops graph_ops = {.next = graph_next,
						   .sent = graph_sent,
						   .received = graph_received,
						   .released = graph_released,
						   .deadline = graph_deadline,
						   .expire = graph_expire,
						   .is_done = graph_is_done,
						   .failed = graph_failed,
						   .free = graph_part_free};

uint32_t graph_part_unfinished(const struct workload_part *p, char *why, size_t why_bytes)
{
	const struct graph_part *g = of_const(p);

	if (!g->run) {
		if (why_bytes)
			*why = '\0';
		return p->facts.graph->node_count;
	}
	graph_run_why(g->run, why, why_bytes);
	return graph_run_left(g->run);
}

const struct graph_span *graph_part_spans(const struct workload_part *p)
{
	return of_const(p)->run ? graph_run_spans(of_const(p)->run) : NULL;
}

uint64_t graph_part_end_alone_ps(const struct workload_part *p, uint64_t start_ps)
{
	uint64_t end_ps;

	return graph_end_alone(&of_const(p)->config, start_ps, &end_ps) ? 0 : end_ps;
}

/* The host's rank; as many as there are ranks: it has none. */
static uint32_t rank_of(const struct graph_part *g, const struct workload_part *c, uint32_t host)
{
	uint32_t ranks = g->config.graph->rank_count, i = 0;

	while (i < ranks && (c->hosts ? c->hosts[i] : i) != host)
		i++;
	return i;
}

/* Of ranks, from those of hosts. */
static int copy_slow(struct graph_part *g, const struct workload_part *c, const struct workload_params *p)
{
	uint32_t ranks = g->config.graph->rank_count;

	if (!p->slow_count)
		return 0;
	g->slow = calloc(p->slow_count, sizeof(*g->slow));
	if (!g->slow)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->slow_count; i++) {
		struct graph_slow s = p->slow[i];

		s.rank = rank_of(g, c, s.rank);
		if (s.rank < ranks)
			g->slow[g->config.slow_count++] = s;
	}
	g->config.slow = g->slow;
	return 0;
}

int graph_part_create(struct workload_part **out, const struct workload_part *c, const struct workload_params *p,
		      struct text_error *err)
{
	struct graph_part *g;
	int rc;

	if (!p->graph)
		return text_fail(err, 0, "it has no graph");
	if (p->graph->rank_count > c->host_count)
		return text_fail(err, 0, "the graph has %u ranks; it has %u hosts", (uint64_t)p->graph->rank_count,
				 (uint64_t)c->host_count);
	rc = part_need("chunks", p->chunks, 0, COLLECTIVE_CHUNKS_MAX, err);
	if (rc)
		return rc;
	g = part_alloc(c, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->part.ops = &graph_ops;
	g->part.facts.graph = p->graph;
	g->part.facts.arrivals = true;
	g->config = (struct graph_run_config){
		.graph = graph_hold(p->graph),
		.eager_bytes = p->eager_bytes,
		.chunks = p->chunks ? p->chunks : 1,
		.algorithm = p->algorithm,
	};
	rc = copy_slow(g, c, p);
	if (rc) {
		graph_part_free(&g->part);
		return rc;
	}
	*out = &g->part;
	return 0;
}
