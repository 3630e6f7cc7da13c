/* SPDX-License-Identifier: BSD-2-Clause */
/* The least times are found by a run in which each message arrives, and is acknowledged, when it is sent. */
#include "workload/graph_describe.h"

#include <errno.h>
#include <stdlib.h>

/* *time_ps: when it begins, and then when its last node ends; d: whose last members to fill in, or NULL. -ENOMEM or 0. */
static int run_alone(const struct graph_run_config *c, uint64_t *time_ps, struct graph_description *d)
{
	struct graph_run *r = graph_run_create(c);
	struct graph_message m;
	uint64_t now_ps = *time_ps;
	int rc;

	if (!r)
		return -ENOMEM;
	graph_run_begin(r, now_ps);
	for (;;) {
		if (graph_run_take(r, &m)) {
			graph_run_sent(r, m.number, now_ps);
			graph_run_received(r, m.number, now_ps);
		} else if (graph_run_deadline(r) != GRAPH_NEVER_PS && !graph_run_failed(r)) {
			now_ps = graph_run_deadline(r);
			graph_run_expire(r, now_ps);
		} else {
			break;
		}
	}
	*time_ps = now_ps;
	rc = graph_run_failed(r) ? -ENOMEM : 0;
	if (d) {
		d->left = graph_run_left(r);
		graph_run_why(r, d->why, sizeof(d->why));
	}
	graph_run_free(r);
	return rc;
}

int graph_end_alone(const struct graph_run_config *c, uint64_t start_ps, uint64_t *end_ps)
{
	*end_ps = start_ps;
	return run_alone(c, end_ps, NULL);
}

static void count(const struct graph *g, struct graph_description *d)
{
	uint64_t calc_ps = 0;

	d->edges = g->edge_count;
	for (uint32_t i = 0; i < g->rank_count; i++)
		d->ranks_empty += !g->nodes_of[i];
	for (uint32_t i = 0; i < g->node_count; i++) {
		const struct graph_node *n = &g->nodes[i];

		d->nodes[n->kind]++;
		d->bytes[n->kind] += n->amount;
		if (!i || g->nodes[i - 1].rank != n->rank)
			calc_ps = 0;
		calc_ps += n->kind == GRAPH_CALC ? n->amount : 0;
		if (calc_ps > d->calc_ps_most)
			d->calc_ps_most = calc_ps;
	}
}

int graph_describe(const struct graph_run_config *c, struct graph_description *d)
{
	struct graph_run_config wide = *c;
	int rc;

	*d = (struct graph_description){0};
	count(c->graph, d);
	wide.no_streams = true;
	rc = run_alone(c, &d->bound_ps, d);
	return rc ? rc : run_alone(&wide, &d->chain_ps, NULL);
}

static int by_kind(const void *a, const void *b)
{
	const struct graph_use *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->members < y->members ? -1 : x->members > y->members;
}

int graph_uses(const struct graph *g, struct graph_use **uses, uint32_t *out)
{
	uint64_t nodes = 0, n = 0, k = 0;
	struct graph_use *u;

	for (uint32_t i = 0; i < g->node_count; i++)
		nodes += g->nodes[i].kind == GRAPH_COLLECTIVE;
	u = calloc(nodes + 1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->node_count; i++) {
		const struct graph_node *o = &g->nodes[i];

		if (o->kind == GRAPH_COLLECTIVE)
			u[n++] = (struct graph_use){o->collective, g->groups[o->peer].count, 1, o->amount};
	}
	qsort(u, n, sizeof(*u), by_kind);
	for (uint64_t i = 0; i < n; i++) {
		if (!k || by_kind(&u[k - 1], &u[i])) {
			u[k++] = u[i];
		} else {
			u[k - 1].count++;
			u[k - 1].bytes += u[i].bytes;
		}
	}
	/* Each collective was counted at each member. */
	for (uint64_t i = 0; i < k; i++) {
		u[i].count = (u[i].count + u[i].members - 1) / u[i].members;
		u[i].bytes /= u[i].members;
	}
	*uses = u;
	*out = (uint32_t)k;
	return 0;
}
