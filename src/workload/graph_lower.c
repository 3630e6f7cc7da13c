/* SPDX-License-Identifier: BSD-2-Clause */
/* Each node becomes one, or a calc where it begins and one where it ends; edges go from ends to beginnings. */
#include "workload/graph_lower.h"

#include <errno.h>
#include <stdlib.h>

struct lowering {
	const struct graph *from;
	struct graph *to;
	struct text_error *err;
	enum collective_algorithm algorithm;
	uint32_t chunks;
	uint32_t *begin, *end; /* of each node: those of the copy */
	uint64_t *tags;        /* of each group and its collectives, behind each other: the first tag */
	uint32_t *first_tag;   /* of each group: where its tags begin */
	struct collective_plan plan;
	uint32_t *ops; /* of the plan: nodes of the copy */
	uint32_t op_room;
	uint8_t stream;
};

static struct collective collective_of(const struct lowering *l, const struct graph_node *n)
{
	return (struct collective){
		.kind = n->collective,
		.algorithm = n->algorithm == COLLECTIVE_AUTO ? l->algorithm : n->algorithm,
		.bytes = n->amount,
		.n = l->from->groups[n->peer].count,
		.root = n->root,
		.chunks = l->chunks,
	};
}

/* Collectives of each group are numbered; how many it has is one more than the highest number. */
static int count_collectives(struct lowering *l)
{
	const struct graph *g = l->from;
	uint64_t all = 0;

	l->first_tag = calloc(g->group_count + (size_t)1, sizeof(*l->first_tag));
	if (!l->first_tag)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->node_count; i++) {
		const struct graph_node *n = &g->nodes[i];

		if (n->kind == GRAPH_COLLECTIVE && n->tag >= l->first_tag[n->peer])
			l->first_tag[n->peer] = n->tag + 1;
	}
	for (uint32_t i = 0; i < g->group_count; i++) {
		uint32_t count = l->first_tag[i];

		l->first_tag[i] = (uint32_t)all;
		all += count;
	}
	l->tags = calloc(all + 1, sizeof(*l->tags));
	return l->tags ? 0 : -ENOMEM;
}

static int number_tags(struct lowering *l)
{
	const struct graph *g = l->from;
	uint64_t next = 1;
	int rc = count_collectives(l);

	for (uint32_t i = 0; i < g->node_count && !rc; i++) {
		if (g->nodes[i].kind != GRAPH_COLLECTIVE && g->nodes[i].kind != GRAPH_CALC && g->nodes[i].tag >= next)
			next = g->nodes[i].tag + 1ull;
	}
	for (uint32_t i = 0; i < g->node_count && !rc; i++) {
		const struct graph_node *n = &g->nodes[i];
		struct collective c;
		uint64_t *tag;

		if (n->kind != GRAPH_COLLECTIVE)
			continue;
		tag = &l->tags[l->first_tag[n->peer] + n->tag];
		if (*tag)
			continue;
		c = collective_of(l, n);
		*tag = next;
		next += collective_steps(&c);
		if (next > UINT32_MAX)
			rc = text_fail(l->err, 0, "its collectives need more than 2^32 tags");
	}
	return rc;
}

static int add(struct lowering *l, const struct graph_node *n, uint32_t *number)
{
	int rc = graph_add(l->to, n, number);

	return rc == -E2BIG ? text_fail(l->err, 0, "its collectives have more than %u sends and receives",
					(uint64_t)GRAPH_NODES_MAX)
			    : rc;
}

static int add_edge(struct lowering *l, uint32_t node, uint32_t needs, bool start)
{
	int rc = graph_require(l->to, node, needs, start);

	return rc == -E2BIG ? text_fail(l->err, 0, "its collectives have more than %u edges", (uint64_t)GRAPH_EDGES_MAX)
			    : rc;
}

/* The i-th op of the plan of a collective, behind its beginning and before its end. */
static int add_op(struct lowering *l, uint32_t node, uint32_t i)
{
	const struct graph_node *n = &l->from->nodes[node];
	const struct collective_op *op = &l->plan.ops[i];
	struct graph_node out = {
		.kind = op->send ? GRAPH_SEND : GRAPH_RECV,
		.rank = n->rank,
		.amount = op->bytes,
		.peer = l->from->members[l->from->groups[n->peer].first + op->peer],
		.tag = (uint32_t)(l->tags[l->first_tag[n->peer] + n->tag] + op->step),
		.stream = GRAPH_NO_STREAM,
		.source = n->source,
	};
	bool first = true;
	int rc = add(l, &out, &l->ops[i]);

	for (int k = 0; k < 2 && !rc; k++) {
		if (op->needs[k] == COLLECTIVE_NO_OP)
			continue;
		rc = add_edge(l, l->ops[i], l->ops[op->needs[k]], false);
		first = false;
	}
	if (!rc && op->begun != COLLECTIVE_NO_OP) {
		rc = add_edge(l, l->ops[i], l->ops[op->begun], true);
		first = false;
	}
	if (!rc && first)
		rc = add_edge(l, l->ops[i], l->begin[node], false);
	return rc;
}

static int lower_collective(struct lowering *l, uint32_t node)
{
	const struct graph_node *n = &l->from->nodes[node];
	struct graph_node mark = {
		.kind = GRAPH_CALC, .rank = n->rank, .stream = l->stream, .source = n->source, .name = 0};
	struct collective c = collective_of(l, n);
	int rc = collective_plan(&c, graph_position(l->from, n->peer, n->rank), &l->plan);

	if (rc == -E2BIG)
		return text_fail(l->err, n->source, "a collective of more than %u sends and receives",
				 (uint64_t)COLLECTIVE_OPS_MAX);
	if (!rc)
		rc = add(l, &mark, &l->begin[node]);
	if (!rc && l->plan.count > l->op_room) {
		free(l->ops);
		l->op_room = l->plan.room;
		l->ops = malloc(l->op_room * sizeof(*l->ops));
		if (!l->ops)
			l->op_room = 0;
		rc = l->ops ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; i < l->plan.count && !rc; i++)
		rc = add_op(l, node, i);
	if (!rc)
		rc = add(l, &mark, &l->end[node]);
	if (!rc)
		rc = add_edge(l, l->end[node], l->begin[node], false);
	for (uint32_t i = 0; i < l->plan.count && !rc; i++)
		rc = add_edge(l, l->end[node], l->ops[i], false);
	return rc;
}

/* A stream has one collective at a time. */
static int follow(struct lowering *l, uint32_t first, uint32_t end)
{
	const struct graph *g = l->from;
	uint32_t last[GRAPH_STREAMS_MAX];
	int rc = 0;

	for (uint32_t i = g->first_edge[first]; i < g->first_edge[end]; i++) {
		if (g->edges[i].node <= g->edges[i].needs)
			return 0;
	}
	for (int i = 0; i < GRAPH_STREAMS_MAX; i++)
		last[i] = GRAPH_NO_NODE;
	for (uint32_t i = first; i < end && !rc; i++) {
		const struct graph_node *n = &g->nodes[i];

		if (n->kind != GRAPH_COLLECTIVE || n->stream >= GRAPH_STREAMS_MAX)
			continue;
		if (last[n->stream] != GRAPH_NO_NODE)
			rc = add_edge(l, l->begin[i], l->end[last[n->stream]], false);
		last[n->stream] = i;
	}
	return rc;
}

static int lower_rank(struct lowering *l, uint32_t rank)
{
	const struct graph *g = l->from;
	uint32_t first = g->first_node[rank], end = first + g->nodes_of[rank];
	int rc = 0;

	if (!g->nodes_of[rank])
		return 0;
	for (uint32_t i = first; i < end && !rc; i++) {
		struct graph_node n = g->nodes[i];

		n.name = 0;
		if (n.kind == GRAPH_COLLECTIVE) {
			rc = lower_collective(l, i);
			continue;
		}
		rc = add(l, &n, &l->begin[i]);
		l->end[i] = l->begin[i];
	}
	for (uint32_t i = g->first_edge[first]; i < g->first_edge[end] && !rc; i++) {
		const struct graph_edge *e = &g->edges[i];

		rc = add_edge(l, l->begin[e->node], e->start ? l->begin[e->needs] : l->end[e->needs], e->start);
	}
	return rc ? rc : follow(l, first, end);
}

static int lower(struct lowering *l)
{
	const struct graph *g = l->from;
	int rc = 0;

	l->to = graph_create(g->rank_count);
	l->begin = calloc(g->node_count + (size_t)1, sizeof(*l->begin));
	l->end = calloc(g->node_count + (size_t)1, sizeof(*l->end));
	if (!l->to || !l->begin || !l->end)
		return -ENOMEM;
	l->stream = (uint8_t)(g->stream_count < GRAPH_STREAMS_MAX ? g->stream_count : GRAPH_STREAMS_MAX - 1);
	rc = number_tags(l);
	for (uint32_t i = 0; i < g->rank_count && !rc; i++)
		rc = lower_rank(l, i);
	return rc ? rc : graph_finish(l->to, l->err);
}

int graph_lower(const struct graph *g, enum collective_algorithm algorithm, uint32_t chunks, struct graph **out,
		struct text_error *err)
{
	struct lowering l = {.from = g, .err = err, .algorithm = algorithm, .chunks = chunks};
	int rc = lower(&l);

	collective_plan_free(&l.plan);
	free(l.ops);
	free(l.tags);
	free(l.first_tag);
	free(l.begin);
	free(l.end);
	if (rc)
		graph_free(l.to);
	else
		*out = l.to;
	return rc;
}
