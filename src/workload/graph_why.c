/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a graph does not go on: from the first node that has not ended, along what each waits for, until a node waits for
 * what will never be, or for one that was met before. Only called once nothing is under way, so it may search.
 */

#include "workload/graph_run.h"
#include "workload/graph_run_state.h"

enum { SHOWN_MAX = 4, STEPS_MAX = 256 };

struct answer {
	char *text;
	size_t bytes, len;
};

static void put(struct answer *a, const char *s)
{
	for (; *s && a->len + 1 < a->bytes; s++)
		a->text[a->len++] = *s;
	if (a->bytes)
		a->text[a->len] = '\0';
}

static void put_number(struct answer *a, uint64_t n)
{
	char digits[21];
	size_t i = sizeof(digits) - 1;

	digits[i] = '\0';
	do
		digits[--i] = (char)('0' + n % 10);
	while (n /= 10);
	put(a, digits + i);
}

static void put_node(struct answer *a, const struct graph *g, uint32_t node)
{
	char text[80];

	graph_node_text(g, node, text, sizeof(text));
	put(a, "rank ");
	put_number(a, g->nodes[node].rank);
	put(a, " node ");
	put_number(a, graph_number(g, node));
	put(a, " (");
	put(a, text);
	if (g->nodes[node].source) {
		put(a, ", ");
		put(a, g->source_word);
		put(a, " ");
		put_number(a, g->nodes[node].source);
	}
	put(a, ")");
}

/* A node that this one requires and that has not ended, or started. */
static uint32_t missing_need(const struct graph_run *r, uint32_t node)
{
	const struct graph *g = r->g;
	uint32_t rank = g->nodes[node].rank, first = g->first_node[rank], end = first + g->nodes_of[rank];

	for (uint32_t i = g->first_edge[first]; i < g->first_edge[end]; i++) {
		const struct graph_edge *e = &g->edges[i];

		if (e->node == node && r->state[e->needs] < (e->start ? GRAPH_RUNS : GRAPH_DONE))
			return e->needs;
	}
	return GRAPH_NO_NODE;
}

/* A send that would end the receive, and has not started. */
static uint32_t missing_send(const struct graph_run *r, uint32_t node)
{
	const struct graph *g = r->g;
	const struct graph_node *recv = &g->nodes[node];
	uint32_t first = g->first_node[recv->peer];

	for (uint32_t i = first; i < first + g->nodes_of[recv->peer]; i++) {
		const struct graph_node *n = &g->nodes[i];

		if (n->kind == GRAPH_SEND && n->peer == recv->rank && n->tag == recv->tag && r->state[i] < GRAPH_RUNS)
			return i;
	}
	return GRAPH_NO_NODE;
}

/* The rank's part in a collective; GRAPH_NO_NODE: it has none. */
static uint32_t part_of(const struct graph *g, const struct graph_node *n, uint32_t rank)
{
	for (uint32_t i = g->first_node[rank]; i < g->first_node[rank] + g->nodes_of[rank]; i++) {
		const struct graph_node *o = &g->nodes[i];

		if (o->kind == GRAPH_COLLECTIVE && o->peer == n->peer && o->tag == n->tag)
			return i;
	}
	return GRAPH_NO_NODE;
}

/* The first member whose part has not started; *absent: it has no part at all. */
static uint32_t missing_part(const struct graph_run *r, uint32_t node, uint32_t *absent)
{
	const struct graph *g = r->g;
	const struct graph_node *n = &g->nodes[node];
	const struct graph_group *of = &g->groups[n->peer];

	for (uint32_t i = 0; i < of->count; i++) {
		uint32_t rank = g->members[of->first + i], part = part_of(g, n, rank);

		if (part == GRAPH_NO_NODE) {
			*absent = rank;
			return part;
		}
		if (r->state[part] < GRAPH_RUNS)
			return part;
	}
	return GRAPH_NO_NODE;
}

/* What the node waits for; GRAPH_NO_NODE: no node, and *end says what. */
static uint32_t next_of(const struct graph_run *r, uint32_t node, struct answer *end)
{
	const struct graph_node *n = &r->g->nodes[node];
	uint32_t next, absent = UINT32_MAX;

	if (r->state[node] == GRAPH_WAITS)
		return missing_need(r, node);
	if (r->state[node] == GRAPH_READY)
		return r->streams[(size_t)n->rank * r->g->stream_count + n->stream].running - 1;
	if (n->kind == GRAPH_RECV) {
		next = missing_send(r, node);
		if (next == GRAPH_NO_NODE)
			put(end, "a message that nobody sends, or that was lost with its queue pair");
		return next;
	}
	if (n->kind == GRAPH_COLLECTIVE) {
		next = missing_part(r, node, &absent);
		if (absent != UINT32_MAX) {
			put(end, "rank ");
			put_number(end, absent);
			put(end, ", which has no such collective");
		} else if (next == GRAPH_NO_NODE) {
			put(end, "messages that were lost with their queue pair");
		}
		return next;
	}
	put(end, "an acknowledgement that was lost with its queue pair");
	return GRAPH_NO_NODE;
}

/* A node of the circle that a walk from `node` ends in; GRAPH_NO_NODE: it ends elsewhere. */
static uint32_t circle_of(const struct graph_run *r, uint32_t node)
{
	struct answer nowhere = {NULL, 0, 0};
	uint32_t slow = node, fast = node;

	for (uint32_t i = 0; i < STEPS_MAX; i++) {
		for (int k = 0; k < 2; k++) {
			fast = next_of(r, fast, &nowhere);
			if (fast == GRAPH_NO_NODE)
				return GRAPH_NO_NODE;
		}
		slow = next_of(r, slow, &nowhere);
		if (slow == fast)
			return slow;
	}
	return GRAPH_NO_NODE;
}

static void put_circle(struct answer *a, const struct graph_run *r, uint32_t begin)
{
	struct answer nowhere = {NULL, 0, 0};
	uint32_t at = begin, shown = 0;

	do {
		put_node(a, r->g, at);
		put(a, " waits for ");
		at = next_of(r, at, &nowhere);
	} while (at != begin && ++shown < SHOWN_MAX);
	if (at != begin)
		put(a, "... ");
	put(a, "the first one again: a cycle");
}

static void put_chain(struct answer *a, const struct graph_run *r, uint32_t node)
{
	char text[96];

	for (uint32_t i = 0; i < STEPS_MAX; i++) {
		struct answer end = {text, sizeof(text), 0};
		uint32_t next;

		text[0] = '\0';
		next = next_of(r, node, &end);
		if (i < SHOWN_MAX || next == GRAPH_NO_NODE) {
			put_node(a, r->g, node);
			put(a, " waits for ");
		} else if (i == SHOWN_MAX) {
			put(a, "... ");
		}
		if (next == GRAPH_NO_NODE) {
			put(a, text);
			return;
		}
		node = next;
	}
	put(a, "...");
}

void graph_run_why(const struct graph_run *r, char *text, size_t bytes)
{
	struct answer a = {text, bytes, 0};
	uint32_t first = 0, circle;

	put(&a, "");
	while (first < r->g->node_count && r->state[first] == GRAPH_DONE)
		first++;
	if (first == r->g->node_count)
		return;
	circle = circle_of(r, first);
	if (circle == GRAPH_NO_NODE)
		put_chain(&a, r, first);
	else
		put_circle(&a, r, circle);
}
