/* SPDX-License-Identifier: BSD-2-Clause */
/* Graphs that ran: how their ranks spent their time, and what their collectives took. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/results.h"

/* ---- ranks ---- */

static int by_begin(const void *a, const void *b)
{
	const struct graph_span *x = a, *y = b;

	if (x->begin_ps != y->begin_ps)
		return x->begin_ps < y->begin_ps ? -1 : 1;
	return x->end_ps < y->end_ps ? -1 : x->end_ps > y->end_ps;
}

/* Joins spans that touch; returns how many are left. */
static uint32_t join(struct graph_span *s, uint32_t count)
{
	uint32_t n = 0;

	qsort(s, count, sizeof(*s), by_begin);
	for (uint32_t i = 0; i < count; i++) {
		if (!n || s[i].begin_ps > s[n - 1].end_ps)
			s[n++] = s[i];
		else if (s[i].end_ps > s[n - 1].end_ps)
			s[n - 1].end_ps = s[i].end_ps;
	}
	return n;
}

static uint64_t length_ps(const struct graph_span *s, uint32_t count)
{
	uint64_t ps = 0;

	for (uint32_t i = 0; i < count; i++)
		ps += s[i].end_ps - s[i].begin_ps;
	return ps;
}

/* Those parts of `a`, in order, that are in none of `b`; there is room for both counts. */
static uint32_t without(const struct graph_span *a, uint32_t a_count, const struct graph_span *b, uint32_t b_count,
			struct graph_span *out)
{
	uint32_t n = 0, k = 0;

	for (uint32_t i = 0; i < a_count; i++) {
		uint64_t at = a[i].begin_ps;

		while (k < b_count && b[k].end_ps <= at)
			k++;
		for (uint32_t j = k; j < b_count && b[j].begin_ps < a[i].end_ps; j++) {
			if (b[j].begin_ps > at)
				out[n++] = (struct graph_span){at, b[j].begin_ps};
			at = b[j].end_ps;
		}
		if (at < a[i].end_ps)
			out[n++] = (struct graph_span){at, a[i].end_ps};
	}
	return n;
}

int results_rank_of(const struct results_step *s, uint32_t rank, struct results_rank *out)
{
	uint32_t first = s->graph->first_node[rank], count = s->graph->nodes_of[rank], n = 0, m = 0;
	struct graph_span *compute = malloc((4 * (size_t)count + 1) * sizeof(*compute)), *moves = compute + count;

	if (!compute)
		return -ENOMEM;
	*out = (struct results_rank){.compute = compute, .exposed = compute + 2 * (size_t)count};
	for (uint32_t i = first; i < first + count; i++) {
		if (s->spans[i].end_ps == GRAPH_NEVER_PS)
			continue;
		if (s->graph->nodes[i].kind == GRAPH_CALC)
			compute[n++] = s->spans[i];
		else
			moves[m++] = s->spans[i];
		if (s->spans[i].end_ps - s->start_ps > out->end_ps)
			out->end_ps = s->spans[i].end_ps - s->start_ps;
	}
	out->compute_count = n = join(compute, n);
	m = join(moves, m);
	out->exposed_count = without(moves, m, compute, n, out->exposed);
	out->compute_ps = length_ps(compute, n);
	out->exposed_ps = length_ps(out->exposed, out->exposed_count);
	return 0;
}

void results_rank_free(struct results_rank *r)
{
	free(r->compute);
	*r = (struct results_rank){0};
}

/* ---- collectives ---- */

/* One, as its members' nodes say. */
struct call {
	uint64_t begin_ps, last_begin_ps, end_ps;
	uint32_t node, members; /* one of its nodes; those that have ended */
};

static int by_kind(const void *a, const void *b)
{
	const struct results_kind *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->members != y->members)
		return x->members < y->members ? -1 : 1;
	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* The calls of all groups behind each other, in first[group] + number. NULL: no memory. */
static struct call *calls_of(const struct results_step *s, uint64_t *count)
{
	const struct graph *g = s->graph;
	uint64_t *first = calloc(g->group_count + (size_t)1, sizeof(*first));
	struct call *calls;

	*count = 0;
	if (!first)
		return NULL;
	for (uint32_t i = 0; i < g->node_count; i++) {
		const struct graph_node *n = &g->nodes[i];

		if (n->kind == GRAPH_COLLECTIVE && n->tag >= first[n->peer])
			first[n->peer] = n->tag + 1ull;
	}
	for (uint32_t i = 0; i < g->group_count; i++) {
		uint64_t of_group = first[i];

		first[i] = *count;
		*count += of_group;
	}
	calls = calloc(*count + 1, sizeof(*calls));
	for (uint32_t i = 0; calls && i < g->node_count; i++) {
		const struct graph_node *n = &g->nodes[i];
		const struct graph_span *at = &s->spans[i];
		struct call *c;

		if (n->kind != GRAPH_COLLECTIVE || at->end_ps == GRAPH_NEVER_PS)
			continue;
		c = &calls[first[n->peer] + n->tag];
		if (!c->members || at->begin_ps < c->begin_ps)
			c->begin_ps = at->begin_ps;
		if (at->begin_ps > c->last_begin_ps)
			c->last_begin_ps = at->begin_ps;
		if (at->end_ps > c->end_ps)
			c->end_ps = at->end_ps;
		c->node = i;
		c->members++;
	}
	free(first);
	return calls;
}

static struct results_kind kind_of(const struct results_step *s, const struct call *c)
{
	const struct graph_node *n = &s->graph->nodes[c->node];

	return (struct results_kind){
		.kind = n->collective,
		.members = s->graph->groups[n->peer].count,
		.bytes = n->amount,
		.count = 1,
		.time_ps = c->end_ps - c->begin_ps,
		.skew_ps = c->last_begin_ps - c->begin_ps,
	};
}

static uint64_t bus_bps(const struct results_kind *k)
{
	struct collective c = {.kind = (enum collective_kind)k->kind, .n = k->members};
	uint32_t num, den;

	collective_bus(&c, &num, &den);
	return (uint64_t)((double)results_bps(k->bytes, k->time_ps) * num / den);
}

int results_kinds(const struct results_step *s, struct results_kind **kinds, uint32_t *count)
{
	uint64_t calls, n = 0, k = 0;
	struct call *call = calls_of(s, &calls);
	struct results_kind *all = calloc(call ? calls + 1 : 1, sizeof(*all));

	if (!call || !all) {
		free(call);
		free(all);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < calls; i++) {
		if (call[i].members && call[i].members == kind_of(s, &call[i]).members)
			all[n++] = kind_of(s, &call[i]);
	}
	free(call);
	qsort(all, n, sizeof(*all), by_kind);
	for (uint64_t i = 0; i < n; i++) {
		if (!k || by_kind(&all[k - 1], &all[i])) {
			all[k++] = all[i];
		} else {
			all[k - 1].count++;
			all[k - 1].time_ps += all[i].time_ps;
			all[k - 1].skew_ps += all[i].skew_ps;
		}
	}
	for (uint64_t i = 0; i < k; i++) {
		all[i].time_ps /= all[i].count;
		all[i].skew_ps /= all[i].count;
		all[i].bus_bps = bus_bps(&all[i]);
	}
	*kinds = all;
	*count = (uint32_t)k;
	return 0;
}

/* ---- jobs ---- */

/* Sums of what results_jobs() means. */
struct job_sums {
	unsigned __int128 time, compute, exposed, infinite;
	double bus_bits, bus_ps;
};

static int add_bus(const struct results_step *s, struct job_sums *sums)
{
	struct results_kind *k;
	uint32_t count;

	if (results_kinds(s, &k, &count))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		double ps = (double)k[i].time_ps * (double)k[i].count;

		if (k[i].members < 2 || !k[i].bus_bps)
			continue;
		sums->bus_bits += (double)k[i].bus_bps * ps;
		sums->bus_ps += ps;
	}
	free(k);
	return 0;
}

static int add_step(const struct results_step *s, struct results_job *j, struct job_sums *sums)
{
	j->steps++;
	if (s->time_ps == RESULTS_NOT_DONE)
		return 0;
	j->steps_done++;
	j->time_ps_max = s->time_ps > j->time_ps_max ? s->time_ps : j->time_ps_max;
	sums->time += s->time_ps;
	sums->compute += s->compute_ps;
	sums->exposed += s->exposed_ps;
	sums->infinite += s->infinite_ps;
	return add_bus(s, sums);
}

static void job_end(const struct results *r, struct results_job *j, const struct job_sums *sums)
{
	if (!j->steps_done)
		return;
	j->time_ps = (uint64_t)(sums->time / j->steps_done);
	j->compute_ps = (uint64_t)(sums->compute / j->steps_done);
	j->exposed_ps = (uint64_t)(sums->exposed / j->steps_done);
	j->infinite_ps = (uint64_t)(sums->infinite / j->steps_done);
	j->bus_bps = sums->bus_ps > 0 ? (uint64_t)(sums->bus_bits / sums->bus_ps) : 0;
	if (j->workload < r->alone_count)
		j->alone_ps = r->alone_ps[j->workload];
}

int results_jobs(const struct results *r, struct results_job **jobs, uint32_t *count)
{
	struct results_job *all = calloc(r->step_count + (size_t)1, sizeof(*all));
	int rc = all ? 0 : -ENOMEM;
	uint32_t n = 0;

	/* The steps of a workload stand together. */
	for (uint32_t i = 0; i < r->step_count && !rc; n++) {
		struct job_sums sums = {0};
		struct results_job *j = &all[n];

		*j = (struct results_job){.workload = r->steps[i].workload, .ranks = r->steps[i].graph->rank_count};
		for (; i < r->step_count && r->steps[i].workload == j->workload && !rc; i++)
			rc = add_step(&r->steps[i], j, &sums);
		job_end(r, j, &sums);
	}
	if (rc) {
		free(all);
		return rc;
	}
	*jobs = all;
	*count = n;
	return 0;
}
