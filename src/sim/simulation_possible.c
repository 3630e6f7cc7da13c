/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The chain is found by running the workload once more, without a network: each message arrives, and is acknowledged,
 * after the time that it takes alone. A workload whose messages are not known beforehand is not run.
 */
#include "sim/simulation_possible.h"

#include <stdlib.h>

#include "net/topology/topology_cut.h"
#include "sim/simulation_parts.h"

enum { ROUNDS_MAX = 64 }; /* each is a walk over all flows; later rounds of a workload have what the first has */

/* ---- the slowest cut ------------------------------------------------------------------------------- */

static void find_cut(const struct simulation *s, const uint64_t *link_bps, struct results_collective *c)
{
	const struct results *r = s->results;
	struct topology_cuts *cuts = topology_cuts_create(&s->topology, link_bps);
	struct topology_cut cut;

	for (uint32_t i = 0; cuts && i < r->flow_count; i++) {
		const struct results_flow *f = &r->flows[i];

		if (f->workload == c->workload && f->round == c->round)
			topology_cuts_add(cuts, f->src, f->dst, f->bytes);
	}
	if (cuts && !topology_cuts_slowest(cuts, &cut) && cut.bps) {
		c->possible_ps = rates_time_ps(cut.bytes * 8, cut.bps, r->header_share_ppb);
		c->limit = (struct results_limit){.hosts = cut.hosts, .host = cut.node, .bps = cut.bps};
	}
	topology_cuts_free(cuts);
}

/* ---- the longest chain ----------------------------------------------------------------------------- */

struct event {
	uint64_t at_ps;
	bool arrives; /* else it is acknowledged */
	struct message m;
};

struct chain {
	struct simulation *s;
	struct workload *workload;
	struct part_origin *origins; /* by part */
	struct event *heap;
	uint32_t count, room;
	uint64_t begin_ps[ROUNDS_MAX], end_ps[ROUNDS_MAX]; /* of the collectives */
	bool failed;
};

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at_ps != b->at_ps ? a->at_ps < b->at_ps : a->m.number < b->m.number;
}

static void swap(struct event *a, struct event *b)
{
	struct event e = *a;

	*a = *b;
	*b = e;
}

static void push(struct chain *c, uint64_t at_ps, bool arrives, const struct message *m)
{
	uint32_t i = c->count;

	if (c->count == c->room) {
		uint32_t room = c->room ? 2 * c->room : 1024;
		struct event *more = realloc(c->heap, room * sizeof(*more));

		if (!more) {
			c->failed = true;
			return;
		}
		c->heap = more;
		c->room = room;
	}
	c->heap[c->count++] = (struct event){at_ps, arrives, *m};
	for (; i && is_before(&c->heap[i], &c->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&c->heap[i], &c->heap[(i - 1) / 2]);
}

static struct event pop(struct chain *c)
{
	struct event first = c->heap[0];

	c->heap[0] = c->heap[--c->count];
	for (uint32_t i = 0, k; (k = 2 * i + 1) < c->count; i = k) {
		if (k + 1 < c->count && is_before(&c->heap[k + 1], &c->heap[k]))
			k++;
		if (!is_before(&c->heap[k], &c->heap[i]))
			break;
		swap(&c->heap[k], &c->heap[i]);
	}
	return first;
}

/* The number of the collective that the message belongs to; ROUNDS_MAX: none that counts. */
static uint32_t collective_of(const struct chain *c, const struct message *m)
{
	const struct part_origin *o = &c->origins[m->part];
	const struct results *r = c->s->results;

	for (uint32_t i = 0; i < r->collective_count && i < ROUNDS_MAX; i++) {
		if (r->collectives[i].workload == o->workload && r->collectives[i].round == o->round)
			return i;
	}
	return ROUNDS_MAX;
}

static void begin(struct chain *c, const struct message *m)
{
	uint32_t i = collective_of(c, m);
	uint64_t arrives_ps, acked_ps;

	if (!m->bytes)
		return;
	flows_alone(c->s->flows, m, &arrives_ps, &acked_ps);
	push(c, m->start_ps + arrives_ps, true, m);
	push(c, m->start_ps + acked_ps, false, m);
	if (i == ROUNDS_MAX)
		return;
	if (m->start_ps < c->begin_ps[i])
		c->begin_ps[i] = m->start_ps;
	if (m->start_ps + acked_ps > c->end_ps[i])
		c->end_ps[i] = m->start_ps + acked_ps;
}

static void run(struct chain *c)
{
	struct message next;
	bool has_next = workload_next(c->workload, &next);

	while ((has_next || c->count) && !c->failed) {
		struct event e;

		if (has_next && (!c->count || next.start_ps <= c->heap[0].at_ps)) {
			begin(c, &next);
			has_next = workload_next(c->workload, &next);
			continue;
		}
		e = pop(c);
		if (e.arrives)
			workload_received(c->workload, &e.m, e.at_ps);
		else
			workload_sent(c->workload, &e.m, e.at_ps);
		while (workload_released(c->workload, &e.m))
			begin(c, &e.m);
		if (!has_next)
			has_next = workload_next(c->workload, &next);
	}
}

/* All that the workload sends is known beforehand. */
static bool is_finite(const struct workload *w)
{
	for (uint32_t i = 0; i < workload_parts(w); i++) {
		struct workload_facts facts;

		workload_facts(w, i, &facts);
		if (!facts.message_count)
			return false;
	}
	return true;
}

static void find_chains(struct simulation *s)
{
	struct chain c = {.s = s, .workload = workload_create()};
	char text[256];

	c.origins = calloc(WORKLOAD_PARTS_MAX, sizeof(*c.origins));
	c.failed = !c.workload || !c.origins ||
		   !parts_workload(s->scenario, &s->topology, &s->rates, s->program, c.workload, c.origins,
				   (struct why){text, sizeof(text)}) ||
		   !is_finite(c.workload);
	for (uint32_t i = 0; i < ROUNDS_MAX; i++)
		c.begin_ps[i] = UINT64_MAX;
	if (!c.failed)
		run(&c);
	for (uint32_t i = 0; i < s->results->collective_count && i < ROUNDS_MAX && !c.failed; i++) {
		struct results_collective *k = &s->results->collectives[i];

		if (c.begin_ps[i] == UINT64_MAX || c.end_ps[i] - c.begin_ps[i] <= k->possible_ps)
			continue;
		k->possible_ps = c.end_ps[i] - c.begin_ps[i];
		k->limit = (struct results_limit){0};
	}
	free(c.heap);
	free(c.origins);
	workload_free(c.workload);
}

void possible_find(struct simulation *s)
{
	struct results *r = s->results;
	uint64_t *link_bps = r->collective_count && !s->inside ? parts_link_rates(s->scenario, &s->topology) : NULL;

	for (uint32_t i = 0; link_bps && i < r->collective_count && i < ROUNDS_MAX; i++) {
		if (r->collectives[i].time_ps != RESULTS_NOT_DONE)
			find_cut(s, link_bps, &r->collectives[i]);
	}
	if (link_bps)
		find_chains(s);
	for (uint32_t i = 0; i < r->collective_count; i++) {
		if (r->collectives[i].time_ps == RESULTS_NOT_DONE)
			r->collectives[i].possible_ps = 0;
	}
	free(link_bps);
}
