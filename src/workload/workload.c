/* SPDX-License-Identifier: BSD-2-Clause */
/* Merges the parts in order of time, and passes reports to the part that a message came from. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workload/workload_draw.h"
#include "workload/workload_part.h"

enum { CONNECTION_PART_SHIFT = 48 };

static_assert(WORKLOAD_PARTS_MAX <= 1 << (64 - CONNECTION_PART_SHIFT), "a connection names its part");

struct workload {
	struct workload_part *parts[WORKLOAD_PARTS_MAX];
	uint32_t part_count;
	bool begun;

	/* Messages released by the last report: released[taken .. count - 1] are still to be taken.
	 */
	struct message *released;
	uint32_t taken, count, capacity;
	struct workload_part *begins; /* parts that it let begin, whose first messages are still to be taken */
	struct workload_part *last;   /* that the last report was to, and that may have released more */
	uint32_t timed;               /* parts with timers */
};

static const struct {
	const char *name;
	workload_create_part *create;
	uint32_t hosts_min; /* 0: it names none */
} kinds[] = {
	{"incast", incast_create, 2},
	{"permutation", permutation_create, 2},
	{"victim", victim_create, 2},
	{"staircase", staircase_create, 2},
	{"many-qps", many_qps_create, 2},
	{"all-to-all", all_to_all_create, 2},
	{"moe", moe_create, 2},
	{"ring", ring_create, 2},
	{"halving-doubling", halving_doubling_create, 2},
	{"tree", tree_create, 2},
	{"poisson", poisson_create, 2},
	{"poisson-incast", poisson_incast_create, 2},
	{"pairs", pairs_create, 2},
	{"hpcc-flows", hpcc_flows_create, 0},
	{"htsim-matrix", htsim_matrix_create, 0},
	{"graph", graph_part_create, 1},
	{"program", program_part_create, 1},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

const char *workload_kind(int i)
{
	return i < KINDS ? kinds[i].name : NULL;
}

struct workload *workload_create(void)
{
	return calloc(1, sizeof(struct workload));
}

static void part_free(struct workload_part *p)
{
	uint32_t *hosts = p->hosts;

	p->ops->free(p);
	free(hosts);
}

void workload_free(struct workload *w)
{
	if (!w)
		return;
	for (uint32_t i = 0; i < w->part_count; i++)
		part_free(w->parts[i]);
	free(w->released);
	free(w);
}

int part_need(const char *name, uint64_t value, uint64_t min, uint64_t max, struct text_error *err)
{
	if (value >= min && value <= max)
		return 0;
	return text_fail(err, 0, "%s is %u; allowed are %u to %u", name, value, min, max);
}

void *part_alloc(const struct workload_part *common, size_t bytes)
{
	struct workload_part *p = calloc(1, bytes);

	if (p)
		*p = *common;
	return p;
}

struct message part_message(const struct workload_part *p)
{
	return (struct message){.start_ps = p->start_ps, .tag = p->tag, .class = p->class, .last = true};
}

/* The message is handed out, in the simulation's terms. */
static void to_workload(struct workload_part *p, struct message *m)
{
	p->handed += m->bytes > 0;
	assert(m->src < p->host_count && m->dst < p->host_count && m->src != m->dst);
	if (p->hosts) {
		m->src = p->hosts[m->src];
		m->dst = p->hosts[m->dst];
	}
	m->part = p->number;
	m->connection |= (uint64_t)p->connections_of << CONNECTION_PART_SHIFT;
	m->last &= !p->connections_go_on;
}

void part_release(struct workload_part *p, const struct message *m)
{
	struct workload *w = p->workload;

	/*
	 * There is room for the messages that one report can release; those of the report before
	 * have been taken.
	 */
	assert(w->count < w->capacity);
	w->released[w->count] = *m;
	to_workload(p, &w->released[w->count++]);
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The caller's list of hosts, as a copy; each host has one rank. */
static int copy_hosts(struct workload_part *common, const struct workload_params *p, struct text_error *err)
{
	size_t bytes = p->host_count * sizeof(*p->hosts);
	uint32_t *sorted;
	int rc = 0;

	if (!p->hosts)
		return 0;
	common->hosts = malloc(bytes + 1);
	sorted = malloc(bytes + 1);
	if (!common->hosts || !sorted) {
		rc = -ENOMEM;
		goto out;
	}
	memcpy(common->hosts, p->hosts, bytes);
	memcpy(sorted, p->hosts, bytes);
	qsort(sorted, p->host_count, sizeof(*sorted), compare_u32);
	for (uint32_t i = 1; i < p->host_count && !rc; i++)
		if (sorted[i] == sorted[i - 1])
			rc = text_fail(err, 0, "host %u is named twice", (uint64_t)sorted[i]);
out:
	free(sorted);
	if (rc) {
		free(common->hosts);
		common->hosts = NULL;
	}
	return rc;
}

/* Parts of one kind have different draws, and a part of another kind does not change them. */
static uint64_t part_seed(const struct workload *w, const char *kind, uint64_t seed)
{
	uint64_t of_kind = 0xcbf29ce484222325u, before = 0;

	for (const char *c = kind; *c; c++)
		of_kind = (of_kind ^ (uint8_t)*c) * 0x100000001b3u;
	for (uint32_t i = 0; i < w->part_count; i++)
		before += strcmp(w->parts[i]->facts.kind, kind) == 0;
	return draw_seed(draw_seed(seed, of_kind), before);
}

static int reserve(struct workload *w, uint32_t messages)
{
	struct message *more;

	if (messages <= w->capacity)
		return 0;
	more = realloc(w->released, messages * sizeof(*more));
	if (!more)
		return -ENOMEM;
	w->released = more;
	w->capacity = messages;
	return 0;
}

/* The other parts that a part depends on exist. */
static int check_others(const struct workload *w, const struct workload_params *p, struct text_error *err)
{
	if (p->after > w->part_count || p->after_count > w->part_count - p->after)
		return text_fail(err, 0, "it is to begin after %u parts from number %u on; there are %u",
				 (uint64_t)p->after_count, (uint64_t)p->after, (uint64_t)w->part_count);
	for (uint32_t i = 0; i < p->after_count; i++)
		if (!w->parts[p->after + i]->facts.message_count && !w->parts[p->after + i]->facts.graph)
			return text_fail(err, 0, "it is to begin after part %u, whose end is not known",
					 (uint64_t)p->after + i);
	return part_need("connections_of", p->connections_of, 0, w->part_count, err);
}

int workload_add(struct workload *w, const char *kind, const struct workload_params *p, struct text_error *err)
{
	struct workload_part common = {0}, *part;
	int rc, k = 0;

	while (k < KINDS && strcmp(kinds[k].name, kind) != 0)
		k++;
	if (k == KINDS)
		return text_fail(err, 0,
				 "no workload is called '%s'; allowed are incast, permutation, "
				 "victim, staircase, many-qps, all-to-all, moe, ring, "
				 "halving-doubling, tree, poisson, poisson-incast, pairs, hpcc-flows, "
				 "htsim-matrix, graph, program",
				 kind);
	if (w->begun || w->part_count == WORKLOAD_PARTS_MAX)
		return text_fail(err, 0, "%u parts; allowed are %u, added before the first is used",
				 (uint64_t)w->part_count + 1, (uint64_t)WORKLOAD_PARTS_MAX);
	if (kinds[k].hosts_min) {
		rc = part_need("hosts", p->host_count, kinds[k].hosts_min, WORKLOAD_HOSTS_MAX, err);
		if (!rc)
			rc = copy_hosts(&common, p, err);
		if (rc)
			return rc;
		common.host_count = p->host_count;
	}
	rc = part_need("start, ps,", p->start_ps, 0, WORKLOAD_TIME_PS_MAX, err);
	if (!rc)
		rc = check_others(w, p, err);
	common.seed = part_seed(w, kind, p->seed);
	common.start_ps = p->start_ps;
	common.tag = p->tag;
	common.class = p->class;
	common.workload = w;
	common.number = (uint16_t)w->part_count;
	common.connections_of = (uint16_t)(p->connections_of ? p->connections_of - 1 : w->part_count);
	common.connections_go_on = p->connections_go_on;
	common.after = p->after;
	common.after_count = common.waits = p->after_count;
	common.facts.kind = kinds[k].name;
	common.facts.classes = (uint8_t)(1u << p->class);
	if (!rc)
		rc = kinds[k].create(&part, &common, p, err);
	if (rc) {
		free(common.hosts);
		return rc;
	}
	rc = reserve(w, part->release_max);
	if (rc) {
		part_free(part);
		return rc;
	}
	part->facts.arrivals |= part->facts.collective_bytes != 0;
	part->facts.waits = part->release_max || part->ops->released || part->ops->deadline || part->after_count;
	w->timed += part->ops->deadline != NULL;
	w->parts[w->part_count++] = part;
	return 0;
}

bool workload_next(struct workload *w, struct message *out)
{
	struct workload_part *first = NULL;

	w->begun = true;
	for (uint32_t i = 0; i < w->part_count; i++) {
		struct workload_part *p = w->parts[i];

		if (p->waits)
			continue;
		if (!p->held && !p->over) {
			p->held = p->ops->next(p, &p->ahead);
			p->over = !p->held;
		}
		if (p->held && (!first || p->ahead.start_ps < first->ahead.start_ps))
			first = p;
	}
	if (!first)
		return false;
	first->held = false;
	*out = first->ahead;
	to_workload(first, out);
	return true;
}

static struct workload_part *reported(struct workload *w, const struct message *m)
{
	assert(m->part < w->part_count);
	assert(w->taken == w->count && !w->begins && !w->last);
	w->taken = w->count = 0;
	if (w->parts[m->part]->ops->released)
		w->last = w->parts[m->part];
	return w->parts[m->part];
}

/* Lets those begin that have waited for this part and for no other. */
static void end_part(struct workload *w, const struct workload_part *done, uint64_t now_ps)
{
	struct workload_part **at = &w->begins;

	for (uint32_t i = done->number + 1u; i < w->part_count; i++) {
		struct workload_part *p = w->parts[i];

		if (done->number < p->after || done->number - p->after >= p->after_count || --p->waits)
			continue;
		p->begun_ps = now_ps;
		p->over = true; /* all that `next` has is taken at once */
		*at = p;
		at = &p->begins_next;
	}
}

static void count_report(struct workload *w, struct workload_part *p, uint64_t now_ps)
{
	bool is_done = p->ops->is_done ? p->ops->is_done(p)
				       : p->sent == p->facts.message_count && p->received == p->facts.message_count;

	if (!is_done || p->done)
		return;
	p->done = true;
	end_part(w, p, now_ps);
}

void workload_sent(struct workload *w, const struct message *m, uint64_t now_ps)
{
	struct workload_part *p = reported(w, m);

	p->sent++;
	if (p->ops->sent)
		p->ops->sent(p, m, now_ps);
	count_report(w, p, now_ps);
}

void workload_received(struct workload *w, const struct message *m, uint64_t now_ps)
{
	struct workload_part *p = reported(w, m);

	p->received++;
	if (p->ops->received)
		p->ops->received(p, m, now_ps);
	count_report(w, p, now_ps);
}

bool workload_released(struct workload *w, struct message *out)
{
	struct workload_part *p;

	if (w->taken < w->count) {
		*out = w->released[w->taken++];
		return true;
	}
	if (w->last && w->last->ops->released(w->last, out)) {
		to_workload(w->last, out);
		return true;
	}
	w->last = NULL;
	while ((p = w->begins)) {
		if (p->ops->next(p, out)) {
			out->start_ps += p->begun_ps;
			to_workload(p, out);
			return true;
		}
		w->begins = p->begins_next;
	}
	return false;
}

/* The part whose deadline comes first; NULL: none has one. */
static struct workload_part *first_timed(const struct workload *w, uint64_t *at_ps)
{
	struct workload_part *first = NULL;

	*at_ps = WORKLOAD_NEVER_PS;
	for (uint32_t i = 0; i < w->part_count && w->timed; i++) {
		struct workload_part *p = w->parts[i];
		uint64_t ps = p->ops->deadline && !p->waits ? p->ops->deadline(p) : WORKLOAD_NEVER_PS;

		if (ps < *at_ps) {
			*at_ps = ps;
			first = p;
		}
	}
	return first;
}

uint64_t workload_deadline(const struct workload *w)
{
	uint64_t at_ps;

	first_timed(w, &at_ps);
	return at_ps;
}

void workload_expire(struct workload *w, uint64_t now_ps)
{
	uint64_t at_ps;
	struct workload_part *p = first_timed(w, &at_ps);

	if (!p || at_ps > now_ps)
		return;
	assert(w->taken == w->count && !w->begins && !w->last);
	w->taken = w->count = 0;
	w->last = p->ops->released ? p : NULL;
	p->ops->expire(p, now_ps);
	count_report(w, p, now_ps);
}

bool workload_failed(const struct workload *w)
{
	for (uint32_t i = 0; i < w->part_count && w->timed; i++) {
		if (w->parts[i]->ops->failed && w->parts[i]->ops->failed(w->parts[i]))
			return true;
	}
	return false;
}

uint32_t workload_unfinished(const struct workload *w, uint32_t part, char *why, size_t why_bytes)
{
	assert(part < w->part_count);
	return w->parts[part]->facts.graph ? graph_part_unfinished(w->parts[part], why, why_bytes) : 0;
}

const struct graph_span *workload_spans(const struct workload *w, uint32_t part)
{
	assert(part < w->part_count);
	return w->parts[part]->facts.graph ? graph_part_spans(w->parts[part]) : NULL;
}

uint64_t workload_end_alone_ps(const struct workload *w, uint32_t part, uint64_t start_ps)
{
	assert(part < w->part_count);
	return w->parts[part]->facts.graph ? graph_part_end_alone_ps(w->parts[part], start_ps) : 0;
}

uint64_t workload_held_back(const struct workload *w, uint32_t part, struct message *first)
{
	const struct workload_part *p;
	uint64_t known;

	assert(part < w->part_count);
	p = w->parts[part];
	known = p->facts.message_count;
	*first = (struct message){0};
	if (known <= p->handed)
		return 0;
	if (p->ops->held_back && p->ops->held_back(p, first) && p->hosts) {
		first->src = p->hosts[first->src];
		first->dst = p->hosts[first->dst];
	}
	return known - p->handed;
}

uint32_t workload_parts(const struct workload *w)
{
	return w->part_count;
}

void workload_facts(const struct workload *w, uint32_t part, struct workload_facts *out)
{
	assert(part < w->part_count);
	*out = w->parts[part]->facts;
}
