/* SPDX-License-Identifier: BSD-2-Clause */
/* A graph while it is built, and once it is whole. Arrays double; a group's members are in one array of all. */
#include "workload/graph.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct graph *graph_create(uint32_t ranks)
{
	struct graph *g = calloc(1, sizeof(*g));

	assert(ranks && ranks <= GRAPH_RANKS_MAX);
	if (!g)
		return NULL;
	g->rank_count = ranks;
	g->stream_count = 1;
	g->source_word = "line";
	g->holders = 1;
	g->name_bytes = 1; /* name 0 is none */
	g->first_node = calloc(ranks, sizeof(*g->first_node));
	g->nodes_of = calloc(ranks, sizeof(*g->nodes_of));
	if (g->first_node && g->nodes_of)
		return g;
	graph_free(g);
	return NULL;
}

struct graph *graph_hold(struct graph *g)
{
	g->holders++;
	return g;
}

void graph_free(struct graph *g)
{
	if (!g || --g->holders)
		return;
	free(g->first_node);
	free(g->nodes_of);
	free(g->nodes);
	free(g->edges);
	free(g->first_edge);
	free(g->groups);
	free(g->members);
	free(g->names);
	free(g);
}

/* Room for `more` elements behind `count`. 0, -ENOMEM, or -E2BIG beyond `max`; then nothing has changed. */
static int grow(void *array, uint32_t count, uint32_t *room, uint64_t more, uint64_t max, size_t size)
{
	void **at = array, *p;
	uint64_t want = *room ? *room : 16;

	if (count + more <= *room)
		return 0;
	if (count + more > max)
		return -E2BIG;
	while (want < count + more)
		want *= 2;
	p = reallocarray(*at, want, size);
	if (!p)
		return -ENOMEM;
	*at = p;
	*room = (uint32_t)want;
	return 0;
}

int graph_add(struct graph *g, const struct graph_node *n, uint32_t *number)
{
	int rc = grow(&g->nodes, g->node_count, &g->node_room, 1, GRAPH_NODES_MAX, sizeof(*g->nodes));

	assert(n->rank < g->rank_count && n->kind < GRAPH_KINDS);
	assert(n->kind == GRAPH_CALC || n->peer < (n->kind == GRAPH_COLLECTIVE ? g->group_count : g->rank_count));
	if (rc)
		return rc;
	if (!g->nodes_of[n->rank])
		g->first_node[n->rank] = g->node_count;
	assert(g->first_node[n->rank] + g->nodes_of[n->rank] == g->node_count);
	g->nodes_of[n->rank]++;
	if (n->stream != GRAPH_NO_STREAM && n->stream >= g->stream_count)
		g->stream_count = n->stream + 1u;
	g->nodes[g->node_count] = *n;
	*number = g->node_count++;
	return 0;
}

int graph_require(struct graph *g, uint32_t node, uint32_t needs, bool its_start)
{
	int rc = grow(&g->edges, g->edge_count, &g->edge_room, 1, GRAPH_EDGES_MAX, sizeof(*g->edges));

	assert(node < g->node_count && needs < g->node_count && g->nodes[node].rank == g->nodes[needs].rank);
	if (!rc)
		g->edges[g->edge_count++] =
			(struct graph_edge){.node = node, .needs = needs & INT32_MAX, .start = its_start};
	return rc;
}

int graph_group(struct graph *g, const uint32_t *ranks, uint32_t count, uint32_t *number)
{
	int rc = grow(&g->groups, g->group_count, &g->group_room, 1, UINT32_MAX / 2, sizeof(*g->groups));

	if (!rc)
		rc = grow(&g->members, g->member_count, &g->member_room, count, UINT32_MAX / 2, sizeof(*g->members));
	if (rc)
		return -ENOMEM;
	memcpy(g->members + g->member_count, ranks, count * sizeof(*ranks));
	g->groups[g->group_count] = (struct graph_group){g->member_count, count};
	g->member_count += count;
	*number = g->group_count++;
	return 0;
}

int graph_name(struct graph *g, const char *at, size_t bytes, uint32_t *name)
{
	if (bytes > UINT16_MAX)
		bytes = UINT16_MAX;
	if (grow(&g->names, g->name_bytes, &g->name_room, bytes + 1, UINT32_MAX / 2, 1))
		return -ENOMEM;
	g->names[0] = '\0';
	*name = g->name_bytes;
	for (size_t i = 0; i < bytes; i++)
		g->names[g->name_bytes++] = at[i] >= ' ' && at[i] <= '~' ? at[i] : '?';
	g->names[g->name_bytes++] = '\0';
	return 0;
}

uint32_t graph_position(const struct graph *g, uint32_t group, uint32_t rank)
{
	const struct graph_group *of = &g->groups[group];
	uint32_t i = 0;

	while (i < of->count && g->members[of->first + i] != rank)
		i++;
	return i;
}

/* ---- the end ---------------------------------------------------------------------------------------------- */

/* Counting sort by what an edge comes from; edges of one node keep their order. */
static int order_edges(struct graph *g)
{
	struct graph_edge *sorted = malloc((g->edge_count + (size_t)1) * sizeof(*sorted));

	g->first_edge = calloc(g->node_count + (size_t)2, sizeof(*g->first_edge));
	if (!sorted || !g->first_edge) {
		free(sorted);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < g->edge_count; i++)
		g->first_edge[g->edges[i].needs + 2]++;
	for (uint32_t i = 2; i < g->node_count + 2; i++)
		g->first_edge[i] += g->first_edge[i - 1];
	for (uint32_t i = 0; i < g->edge_count; i++)
		sorted[g->first_edge[g->edges[i].needs + 1]++] = g->edges[i];
	free(g->edges);
	g->edges = sorted;
	g->edge_room = g->edge_count;
	return 0;
}

/* The collectives of a group so far: how many at each member, and those of the member that has had most. */
struct calls {
	uint32_t *node; /* [n-th of the group]: the first one seen */
	uint32_t count, room;
};

static bool are_alike(const struct graph_node *a, const struct graph_node *b)
{
	return a->collective == b->collective && a->amount == b->amount && a->root == b->root &&
	       a->algorithm == b->algorithm;
}

static int fail_unlike(const struct graph *g, uint32_t node, uint32_t other, struct text_error *err)
{
	char a[96], b[96];

	graph_node_text(g, node, a, sizeof(a));
	graph_node_text(g, other, b, sizeof(b));
	return text_fail(err, g->nodes[node].source,
			 "collective %u of group %u is %s at rank %u and %s at rank %u; they must be alike",
			 (uint64_t)g->nodes[node].tag, (uint64_t)g->nodes[node].peer, a, (uint64_t)g->nodes[node].rank,
			 b, (uint64_t)g->nodes[other].rank);
}

/* `had`: of each group, how many this rank has had; `rank_of` whose count that is, so that nothing need be cleared. */
static int number_collective(struct graph *g, uint32_t node, struct calls *calls, uint32_t *had, uint32_t *rank_of,
			     struct text_error *err)
{
	struct graph_node *n = &g->nodes[node];
	struct calls *c = &calls[n->peer];
	int rc;

	if (graph_position(g, n->peer, n->rank) == g->groups[n->peer].count)
		return text_fail(err, n->source, "rank %u has a collective of group %u, whose member it is not",
				 (uint64_t)n->rank, (uint64_t)n->peer);
	if (rank_of[n->peer] != n->rank + 1) {
		rank_of[n->peer] = n->rank + 1;
		had[n->peer] = 0;
	}
	n->tag = had[n->peer]++;
	if (n->tag < c->count)
		return are_alike(n, &g->nodes[c->node[n->tag]]) ? 0 : fail_unlike(g, node, c->node[n->tag], err);
	rc = grow(&c->node, c->count, &c->room, 1, GRAPH_NODES_MAX, sizeof(*c->node));
	if (!rc)
		c->node[c->count++] = node;
	return rc;
}

static int number_collectives(struct graph *g, struct text_error *err)
{
	struct calls *calls = calloc(g->group_count + (size_t)1, sizeof(*calls));
	uint32_t *had = calloc(g->group_count + (size_t)1, sizeof(*had));
	uint32_t *rank_of = calloc(g->group_count + (size_t)1, sizeof(*rank_of));
	int rc = calls && had && rank_of ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < g->node_count && !rc; i++) {
		if (g->nodes[i].kind == GRAPH_COLLECTIVE)
			rc = number_collective(g, i, calls, had, rank_of, err);
	}
	for (uint32_t i = 0; calls && i < g->group_count; i++)
		free(calls[i].node);
	free(calls);
	free(had);
	free(rank_of);
	return rc;
}

int graph_finish(struct graph *g, struct text_error *err)
{
	int rc = number_collectives(g, err);

	return rc ? rc : order_edges(g);
}

/* ---- text ------------------------------------------------------------------------------------------------- */

struct writer {
	char *text;
	size_t bytes, len;
};

static void put(struct writer *w, const char *s)
{
	for (; *s && w->len + 1 < w->bytes; s++)
		w->text[w->len++] = *s;
	if (w->bytes)
		w->text[w->len] = '\0';
}

static void put_number(struct writer *w, uint64_t n)
{
	char digits[21];
	size_t i = sizeof(digits) - 1;

	digits[i] = '\0';
	do
		digits[--i] = (char)('0' + n % 10);
	while (n /= 10);
	put(w, digits + i);
}

size_t graph_node_text(const struct graph *g, uint32_t node, char *text, size_t bytes)
{
	const struct graph_node *n = &g->nodes[node];
	struct writer w = {text, bytes, 0};

	put(&w, n->kind == GRAPH_CALC   ? "calc "
		: n->kind == GRAPH_SEND ? "send "
		: n->kind == GRAPH_RECV ? "recv "
					: collective_kind_name(n->collective));
	if (n->kind == GRAPH_COLLECTIVE)
		put(&w, " ");
	put_number(&w, n->amount);
	if (n->kind == GRAPH_CALC)
		put(&w, " ps");
	if (n->kind == GRAPH_SEND || n->kind == GRAPH_RECV) {
		put(&w, n->kind == GRAPH_SEND ? " to " : " from ");
		put_number(&w, n->peer);
		put(&w, " tag ");
		put_number(&w, n->tag);
	}
	if (n->kind == GRAPH_COLLECTIVE) {
		put(&w, " of group ");
		put_number(&w, n->peer);
	}
	return w.len;
}
