/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a report causes is worked off in a queue, never by recursion, as chains of nodes that take no time may be as long
 * as the graph. Streams start their next node when the queue is empty, so that of nodes that become ready at one time
 * the first one added is the one that starts.
 */
#include "workload/graph_run.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "workload/graph_run_state.h"

typedef unsigned __int128 u128;

#define PPB 1000000000u

/* ---- queues ------------------------------------------------------------------------------------------------ */

static bool fifo_push(struct graph_run *r, struct graph_fifo *f, const void *item, size_t size)
{
	if (f->count == f->room) {
		uint32_t room = f->room ? 2 * f->room : 64;
		char *more = room ? reallocarray(f->items, room, size) : NULL;

		if (!more) {
			r->failed = true;
			return false;
		}
		/* What stood before `first` goes behind the rest. */
		memcpy(more + f->room * size, more, f->first * size);
		f->items = more;
		f->room = room;
	}
	memcpy((char *)f->items + ((f->first + f->count) & (f->room - 1)) * size, item, size);
	f->count++;
	return true;
}

static bool fifo_pop(struct graph_fifo *f, void *item, size_t size)
{
	if (!f->count)
		return false;
	memcpy(item, (char *)f->items + f->first * size, size);
	f->first = (f->first + 1) & (f->room - 1);
	f->count--;
	return true;
}

static void todo(struct graph_run *r, uint64_t of, enum graph_what what)
{
	struct graph_todo t = {of, what};

	fifo_push(r, &r->todo, &t, sizeof(t));
}

static struct graph_stream *stream_of(const struct graph_run *r, const struct graph_node *n)
{
	return &r->streams[(size_t)n->rank * r->g->stream_count + n->stream];
}

static void stir(struct graph_run *r, struct graph_stream *s)
{
	uint32_t number = (uint32_t)(s - r->streams);

	if (!s->dirty)
		s->dirty = fifo_push(r, &r->dirty, &number, sizeof(number));
}

/* ---- ready nodes of a stream: a pairing heap, the first node on top ------------------------------------------- */

static uint32_t meld(struct graph_run *r, uint32_t a, uint32_t b)
{
	uint32_t low = a < b ? a : b, high = a < b ? b : a;

	if (!low)
		return high;
	r->sibling[high - 1] = r->child[low - 1];
	r->child[low - 1] = high;
	return low;
}

static uint32_t pop_ready(struct graph_run *r, struct graph_stream *s)
{
	uint32_t top = s->ready, at = r->child[top - 1], pairs = 0;

	/* Melds neighbours in pairs, which it keeps in a list, and then the pairs. */
	while (at) {
		uint32_t a = at, b = r->sibling[a - 1], next = b ? r->sibling[b - 1] : 0, both;

		r->sibling[a - 1] = 0;
		if (b)
			r->sibling[b - 1] = 0;
		both = meld(r, a, b);
		r->sibling[both - 1] = pairs;
		pairs = both;
		at = next;
	}
	s->ready = 0;
	while (pairs) {
		uint32_t next = r->sibling[pairs - 1];

		r->sibling[pairs - 1] = 0;
		s->ready = meld(r, s->ready, pairs);
		pairs = next;
	}
	r->child[top - 1] = 0;
	return top - 1;
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

struct graph_run *graph_run_create(const struct graph_run_config *c)
{
	struct graph_run *r = calloc(1, sizeof(*r));
	size_t nodes = c->graph->node_count + (size_t)1;
	size_t streams = (size_t)c->graph->rank_count * c->graph->stream_count;

	if (!r)
		return NULL;
	r->c = *c;
	r->g = graph_hold(c->graph);
	r->left = r->g->node_count;
	r->waits = calloc(nodes, sizeof(*r->waits));
	r->state = calloc(nodes, sizeof(*r->state));
	r->spans = malloc(nodes * sizeof(*r->spans));
	r->child = calloc(nodes, sizeof(*r->child));
	r->sibling = calloc(nodes, sizeof(*r->sibling));
	r->streams = calloc(streams, sizeof(*r->streams));
	if (!r->waits || !r->state || !r->spans || !r->child || !r->sibling || !r->streams ||
	    !agenda_make_room(&r->calcs, c->no_streams ? nodes : streams)) {
		graph_run_free(r);
		return NULL;
	}
	memset(r->spans, 0xff, nodes * sizeof(*r->spans));
	for (uint32_t i = 0; i < r->g->edge_count; i++)
		r->waits[r->g->edges[i].node]++;
	return r;
}

static void act_free(struct graph_act *a)
{
	collective_plan_free(&a->plan);
	free(a->waits);
	free(a->first);
	free(a->next);
	free(a);
}

void graph_run_free(struct graph_run *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->act_count; i++)
		act_free(r->acts[i]);
	free(r->acts);
	match_free(&r->match);
	free(r->todo.items);
	free(r->out.items);
	free(r->dirty.items);
	agenda_free(&r->calcs);
	free(r->streams);
	free(r->sibling);
	free(r->child);
	free(r->spans);
	free(r->state);
	free(r->waits);
	graph_free(r->g);
	free(r);
}

/* ---- collectives ------------------------------------------------------------------------------------------------ */

static struct graph_act *act_of(const struct graph_run *r, uint64_t of)
{
	return r->acts[(of >> 32) - 1];
}

static uint64_t op_number(uint32_t slot, uint32_t op)
{
	return (uint64_t)(slot + 1) << 32 | op;
}

/* A slot with an act that is empty but for its memory; its number, or UINT32_MAX: no memory. */
static uint32_t take_act(struct graph_run *r)
{
	uint32_t slot = r->act_free;

	if (slot) {
		r->act_free = r->acts[slot - 1]->free_next;
		return slot - 1;
	}
	if (r->act_count == r->act_room) {
		uint32_t room = r->act_room ? 2 * r->act_room : 64;
		struct graph_act **more = reallocarray(r->acts, room, sizeof(struct graph_act *));

		if (!more)
			return UINT32_MAX;
		r->acts = more;
		r->act_room = room;
	}
	r->acts[r->act_count] = calloc(1, sizeof(struct graph_act));
	return r->acts[r->act_count] ? r->act_count++ : UINT32_MAX;
}

static struct collective collective_of(const struct graph_run *r, const struct graph_node *n)
{
	return (struct collective){
		.kind = n->collective,
		.algorithm = n->algorithm == COLLECTIVE_AUTO ? r->c.algorithm : n->algorithm,
		.bytes = n->amount,
		.n = r->g->groups[n->peer].count,
		.root = n->root,
		.chunks = r->c.chunks,
	};
}

/* Enters op i into the list of op `cause`, of which it is entry 3i + k. */
static void await_op(struct graph_act *a, uint32_t i, uint32_t k, uint32_t cause)
{
	if (cause == COLLECTIVE_NO_OP)
		return;
	a->next[3 * i + k] = a->first[cause];
	a->first[cause] = 3 * i + k + 1;
	a->waits[i]++;
}

/* False: no memory. */
static bool act_plan(const struct graph_run *r, struct graph_act *a, uint32_t node)
{
	const struct graph_node *n = &r->g->nodes[node];
	struct collective c = collective_of(r, n);
	size_t count;

	a->node = node;
	a->position = graph_position(r->g, n->peer, n->rank);
	a->reports = 0;
	if (collective_plan(&c, a->position, &a->plan))
		return false;
	count = a->plan.count;
	a->left = a->plan.count;
	a->waits = calloc(count + 1, sizeof(*a->waits));
	a->first = calloc(count + 1, sizeof(*a->first));
	a->next = calloc(3 * count + 1, sizeof(*a->next));
	if (!a->waits || !a->first || !a->next)
		return false;
	/* Backwards, so that lists are in order. */
	for (uint32_t i = a->plan.count; i-- > 0;) {
		await_op(a, i, 2, a->plan.ops[i].begun);
		await_op(a, i, 1, a->plan.ops[i].needs[1]);
		await_op(a, i, 0, a->plan.ops[i].needs[0]);
	}
	return true;
}

/* Once its last op has ended and its last report has come. */
static void act_end(struct graph_run *r, struct graph_act *a, uint32_t slot)
{
	if (a->left || a->reports)
		return;
	free(a->waits);
	free(a->first);
	free(a->next);
	a->waits = NULL;
	a->first = a->next = NULL;
	collective_plan_free(&a->plan);
	a->node = GRAPH_NO_NODE;
	a->free_next = r->act_free;
	r->act_free = slot + 1;
}

static void act_begin(struct graph_run *r, uint32_t node)
{
	uint32_t slot = take_act(r);

	if (slot == UINT32_MAX) {
		r->failed = true;
		return;
	}
	if (!act_plan(r, r->acts[slot], node)) {
		r->failed = true;
		return;
	}
	if (!r->acts[slot]->plan.count) {
		todo(r, node, GRAPH_HAS_ENDED);
		act_end(r, r->acts[slot], slot);
		return;
	}
	for (uint32_t i = 0; i < r->acts[slot]->plan.count; i++) {
		if (!r->acts[slot]->waits[i])
			todo(r, op_number(slot, i), GRAPH_IS_READY);
	}
}

/* ---- sends and receives ------------------------------------------------------------------------------------------- */

struct transfer {
	struct match_key key; /* of the message that a send sends, or a receive takes */
	uint64_t bytes;
	bool send;
};

static struct transfer transfer_of(const struct graph_run *r, uint64_t of)
{
	const struct graph *g = r->g;
	const struct graph_node *n;
	const struct collective_op *op;
	struct transfer t;
	uint32_t peer;

	if (!(of >> 32)) {
		n = &g->nodes[of];
		t = (struct transfer){.key = {.tag = n->tag}, .bytes = n->amount, .send = n->kind == GRAPH_SEND};
		peer = n->peer;
	} else {
		n = &g->nodes[act_of(r, of)->node];
		op = &act_of(r, of)->plan.ops[(uint32_t)of];
		t = (struct transfer){.key = {.context = (n->peer + 1ull) << 32 | n->tag, .tag = op->step},
				      .bytes = op->bytes,
				      .send = op->send};
		peer = g->members[g->groups[n->peer].first + op->peer];
	}
	t.key.src = t.send ? n->rank : peer;
	t.key.dst = t.send ? peer : n->rank;
	return t;
}

static void arrive(struct graph_run *r, const struct match_key *k)
{
	uint64_t recv;
	bool found;

	if (!match_arrive(&r->match, k, &found, &recv))
		r->failed = true;
	else if (found)
		todo(r, recv, GRAPH_HAS_ENDED);
}

static void transfer_begin(struct graph_run *r, uint64_t of)
{
	struct transfer t = transfer_of(r, of);
	bool found;

	if (!t.send) {
		if (!match_receive(&r->match, &t.key, of, &found))
			r->failed = true;
		else if (found)
			todo(r, of, GRAPH_HAS_ENDED);
		return;
	}
	if (t.key.src == t.key.dst) {
		arrive(r, &t.key);
		todo(r, of, GRAPH_HAS_ENDED);
		return;
	}
	if (!fifo_push(r, &r->out, &of, sizeof(of)))
		return;
	if (of >> 32)
		act_of(r, of)->reports += 2;
	if (t.bytes <= r->c.eager_bytes)
		todo(r, of, GRAPH_HAS_ENDED);
}

bool graph_run_take(struct graph_run *r, struct graph_message *m)
{
	struct transfer t;
	uint64_t of;

	if (!fifo_pop(&r->out, &of, sizeof(of)))
		return false;
	t = transfer_of(r, of);
	*m = (struct graph_message){.number = of, .bytes = t.bytes ? t.bytes : 1, .src = t.key.src, .dst = t.key.dst};
	return true;
}

/* ---- nodes and ops ---------------------------------------------------------------------------------------------- */

/* What is computed in a time; and how long it takes. */
static uint64_t work_in(uint64_t ps, uint64_t factor_ppb)
{
	return (uint64_t)((u128)ps * PPB / factor_ppb);
}

static u128 time_of(uint64_t work_ps, uint64_t factor_ppb)
{
	return (u128)work_ps * factor_ppb / PPB;
}

/* How long a calc takes that begins now: piece by piece, as its rank is slow for a while or not. */
static uint64_t calc_ps(const struct graph_run *r, const struct graph_node *n)
{
	uint64_t left = n->amount, at = r->now_ps;
	u128 ps = 0;

	for (uint32_t i = 0; i < r->c.slow_count && left; i++) {
		const struct graph_slow *s = &r->c.slow[i];
		uint64_t before, within;

		if (s->rank != n->rank || s->to_ps <= at)
			continue;
		before = s->from_ps > at ? s->from_ps - at : 0;
		if (before >= left)
			break;
		left -= before;
		ps += before;
		at += before;
		within = s->to_ps - at;
		if (s->to_ps == GRAPH_NEVER_PS || time_of(left, s->factor_ppb) <= within) {
			ps += time_of(left, s->factor_ppb);
			left = 0;
		} else {
			left -= work_in(within, s->factor_ppb);
			ps += within;
			at += within;
		}
	}
	ps += left;
	return ps > GRAPH_CALC_PS_MAX ? GRAPH_CALC_PS_MAX : (uint64_t)ps;
}

static void node_start(struct graph_run *r, uint32_t node)
{
	const struct graph_node *n = &r->g->nodes[node];
	uint64_t ps;

	r->state[node] = GRAPH_RUNS;
	r->spans[node].begin_ps = r->now_ps;
	todo(r, node, GRAPH_HAS_STARTED);
	switch ((enum graph_kind)n->kind) {
	case GRAPH_CALC:
		ps = calc_ps(r, n);
		if (ps)
			agenda_add(&r->calcs, (struct agenda_item){.at = r->now_ps + ps, .order = node});
		else
			todo(r, node, GRAPH_HAS_ENDED);
		break;
	case GRAPH_COLLECTIVE: act_begin(r, node); break;
	default: transfer_begin(r, node); break;
	}
}

static void node_ready(struct graph_run *r, uint32_t node)
{
	const struct graph_node *n = &r->g->nodes[node];
	struct graph_stream *s;

	r->state[node] = GRAPH_READY;
	if (n->stream == GRAPH_NO_STREAM || r->c.no_streams) {
		node_start(r, node);
		return;
	}
	s = stream_of(r, n);
	s->ready = meld(r, s->ready, node + 1);
	stir(r, s);
}

/* Those that wait for the node's start, or end, are nearer to being ready. */
static void node_release(struct graph_run *r, uint32_t node, bool start)
{
	const struct graph *g = r->g;

	for (uint32_t i = g->first_edge[node]; i < g->first_edge[node + 1]; i++) {
		const struct graph_edge *e = &g->edges[i];

		if (e->start == start && !--r->waits[e->node])
			todo(r, e->node, GRAPH_IS_READY);
	}
}

static void node_end(struct graph_run *r, uint32_t node)
{
	const struct graph_node *n = &r->g->nodes[node];

	assert(r->state[node] == GRAPH_RUNS);
	r->state[node] = GRAPH_DONE;
	r->spans[node].end_ps = r->now_ps;
	r->left--;
	if (n->stream != GRAPH_NO_STREAM && !r->c.no_streams) {
		stream_of(r, n)->running = 0;
		stir(r, stream_of(r, n));
	}
	node_release(r, node, false);
}

static void op_release(struct graph_run *r, uint64_t of, bool start)
{
	struct graph_act *a = act_of(r, of);
	uint32_t slot = (uint32_t)(of >> 32) - 1;

	for (uint32_t e = a->first[(uint32_t)of]; e; e = a->next[e - 1]) {
		if (((e - 1) % 3 == 2) == start && !--a->waits[(e - 1) / 3])
			todo(r, op_number(slot, (e - 1) / 3), GRAPH_IS_READY);
	}
}

static void op_do(struct graph_run *r, const struct graph_todo *t)
{
	struct graph_act *a = act_of(r, t->of);

	switch (t->what) {
	case GRAPH_IS_READY:
		todo(r, t->of, GRAPH_HAS_STARTED);
		transfer_begin(r, t->of);
		break;
	case GRAPH_HAS_STARTED: op_release(r, t->of, true); break;
	case GRAPH_HAS_ENDED:
		op_release(r, t->of, false);
		if (!--a->left)
			todo(r, a->node, GRAPH_HAS_ENDED);
		act_end(r, a, (uint32_t)(t->of >> 32) - 1);
		break;
	}
}

static void node_do(struct graph_run *r, const struct graph_todo *t)
{
	uint32_t node = (uint32_t)t->of;

	switch (t->what) {
	case GRAPH_IS_READY: node_ready(r, node); break;
	case GRAPH_HAS_STARTED: node_release(r, node, true); break;
	case GRAPH_HAS_ENDED: node_end(r, node); break;
	}
}

/* Until nothing more happens at this time. */
static void settle(struct graph_run *r, uint64_t now_ps)
{
	struct graph_todo t;
	uint32_t number;

	r->now_ps = now_ps;
	while (!r->failed) {
		if (fifo_pop(&r->todo, &t, sizeof(t))) {
			if (t.of >> 32)
				op_do(r, &t);
			else
				node_do(r, &t);
		} else if (fifo_pop(&r->dirty, &number, sizeof(number))) {
			struct graph_stream *s = &r->streams[number];

			s->dirty = false;
			if (s->running || !s->ready)
				continue;
			s->running = pop_ready(r, s) + 1;
			node_start(r, s->running - 1);
		} else {
			return;
		}
	}
}

void graph_run_begin(struct graph_run *r, uint64_t now_ps)
{
	for (uint32_t i = 0; i < r->g->node_count; i++) {
		if (!r->waits[i])
			todo(r, i, GRAPH_IS_READY);
	}
	settle(r, now_ps);
}

static void report(struct graph_run *r, uint64_t number)
{
	struct graph_act *a;

	if (!(number >> 32))
		return;
	a = act_of(r, number);
	a->reports--;
	act_end(r, a, (uint32_t)(number >> 32) - 1);
}

void graph_run_sent(struct graph_run *r, uint64_t number, uint64_t now_ps)
{
	if (transfer_of(r, number).bytes > r->c.eager_bytes)
		todo(r, number, GRAPH_HAS_ENDED);
	settle(r, now_ps);
	report(r, number);
}

void graph_run_received(struct graph_run *r, uint64_t number, uint64_t now_ps)
{
	struct transfer t = transfer_of(r, number);

	arrive(r, &t.key);
	settle(r, now_ps);
	report(r, number);
}

uint64_t graph_run_deadline(const struct graph_run *r)
{
	return agenda_due(&r->calcs);
}

void graph_run_expire(struct graph_run *r, uint64_t now_ps)
{
	while (agenda_is_due(&r->calcs, now_ps))
		todo(r, agenda_take(&r->calcs).order, GRAPH_HAS_ENDED);
	settle(r, now_ps);
}

uint32_t graph_run_left(const struct graph_run *r)
{
	return r->left;
}

bool graph_run_failed(const struct graph_run *r)
{
	return r->failed;
}

const struct graph_span *graph_run_spans(const struct graph_run *r)
{
	return r->spans;
}
