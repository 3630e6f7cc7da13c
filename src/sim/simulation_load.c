/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenario to workload: each [workload.NAME] is a part, and each of its rounds one of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "workload/cdf.h"
#include "workload/graph_read.h"
#include "workload/workload_draw.h"
#include "sim/simulation_parts.h"

static const char *const kinds[SCENARIO_WORKLOAD_KINDS] = {
	[SCENARIO_INCAST] = "incast",
	[SCENARIO_INCAST_POISSON] = "poisson-incast",
	[SCENARIO_PERMUTATION] = "permutation",
	[SCENARIO_ALL_TO_ALL] = "all-to-all",
	[SCENARIO_RING_ALLREDUCE] = "ring",
	[SCENARIO_HALVING_DOUBLING] = "halving-doubling",
	[SCENARIO_TREE_ALLREDUCE] = "tree",
	[SCENARIO_MOE] = "moe",
	[SCENARIO_CDF] = "poisson",
	[SCENARIO_FLOW] = "pairs",
	[SCENARIO_STAIRCASE] = "staircase",
	[SCENARIO_VICTIM] = "victim",
	[SCENARIO_GRAPH] = "graph",
	[SCENARIO_PROGRAM] = "program",
};

/* The workload that names the file. */
static const char *file_of(const struct scenario_workload *w)
{
	return w->of[0] ? w->of : w->name;
}

static uint32_t first_of(const struct scenario_ranges *r, uint32_t otherwise)
{
	return r->count ? r->range[0].first : otherwise;
}

/* The hosts of a list; *count 0 and NULL: all. -1: one of them does not exist. */
static int hosts_of(const struct scenario_ranges *r, uint32_t host_count, uint32_t **hosts, uint32_t *count)
{
	uint64_t n = 0;

	*hosts = NULL;
	*count = host_count;
	if (!r->count)
		return 0;
	for (uint32_t i = 0; i < r->count; i++) {
		if (r->range[i].last >= host_count)
			return -EINVAL;
		n += r->range[i].last - r->range[i].first + 1;
	}
	if (n > WORKLOAD_HOSTS_MAX)
		return -EINVAL;
	*hosts = calloc(n, sizeof(**hosts));
	if (!*hosts)
		return -ENOMEM;
	*count = 0;
	for (uint32_t i = 0; i < r->count; i++)
		for (uint32_t h = r->range[i].first; h <= r->range[i].last; h++)
			(*hosts)[(*count)++] = h;
	return 0;
}

static bool add_round(const struct scenario_workload *w, const char *kind, const struct workload_params *p,
		      struct workload *out, struct why why)
{
	struct text_error err = {0};
	int rc = workload_add(out, kind, p, &err);

	if (!rc)
		return true;
	if (err.line)
		return refuse(why, "workload.%s.file: line %u: %s", file_of(w), err.line, err.message);
	return refuse(why, "%s.%s: %s", w->section, w->name, err.message[0] ? err.message : "out of memory");
}

/* What draws when the rounds of a job arrive: its seed and name, so they arrive alone as they do beside others. */
static void arrivals_begin(const struct scenario_workload *w, uint64_t seed, struct prng *r)
{
	uint64_t id = 0;

	for (const char *c = w->name; *c; c++)
		id = draw_seed(id, (uint8_t)*c);
	draw_init(r, seed, id);
}

/*
 * A round is a part for each of the queue pairs between two hosts. Without an interval it begins when the one before
 * is done. Rounds share their connections, unless they are to have new ones.
 */
static bool add_rounds(const struct scenario_workload *w, uint32_t number, const char *kind, struct workload_params *p,
		       struct workload *out, struct part_origin *origins, struct why why)
{
	uint32_t rounds = w->kind == SCENARIO_STAIRCASE || !w->repeat ? 1 : (uint32_t)w->repeat, qps = (uint32_t)w->qps;
	uint32_t first = workload_parts(out);
	uint64_t at_ps = w->start_ps;
	bool same_qps = w->round_qps == SCENARIO_ROUND_QPS_SAME, timed = w->interval_ps || w->arrive_gap_ps;
	struct prng arrivals;

	arrivals_begin(w, p->seed, &arrivals);
	if (rounds * (uint64_t)qps > WORKLOAD_PARTS_MAX - first)
		return refuse(why, "%s.%s.repeat: %u rounds of %u queue pairs; all workloads together may have %d",
			      w->section, w->name, rounds, qps, WORKLOAD_PARTS_MAX);
	for (uint32_t i = 0; i < rounds * qps; i++) {
		uint32_t round = i / qps, qp = i % qps;

		origins[first + i] = (struct part_origin){number, round, qp};
		p->connections_go_on = same_qps && round + 1 < rounds;
		if (round) {
			p->start_ps = timed ? w->start_ps + round * w->interval_ps : 0;
			p->after = first + (round - 1) * qps;
			p->after_count = timed ? 0 : qps;
			p->connections_of = same_qps ? first + qp + 1 : 0;
		}
		if (w->arrive_gap_ps)
			p->start_ps = at_ps += draw_gap_ps(&arrivals, w->arrive_gap_ps << 16);
		if (!add_round(w, kind, p, out, why))
			return false;
	}
	return true;
}

/* The text shows its format: htsim's begins with the word Nodes. */
static const char *file_kind(const struct scenario_file *f)
{
	return f->text_bytes >= 5 && !memcmp(f->text, "Nodes", 5) ? "htsim-matrix" : "hpcc-flows";
}

/* 0: as the file says. */
static uint8_t class_of(const struct scenario *s, const struct scenario_workload *w, const char *kind)
{
	if (w->traffic_class != SCENARIO_AUTO)
		return (uint8_t)w->traffic_class;
	return strcmp(kind, "hpcc-flows") ? (uint8_t)s->transport.data_class : 0;
}

static const char *kind_of(const struct scenario_workload *w)
{
	return w->kind == SCENARIO_FILE_FLOWS ? file_kind(&w->file) : kinds[w->kind];
}

static uint32_t nth_of(const struct scenario_ranges *r, uint32_t n)
{
	for (uint32_t i = 0; i < r->count; i++) {
		uint32_t count = r->range[i].last - r->range[i].first + 1;

		if (n < count)
			return r->range[i].first + n;
		n -= count;
	}
	return UINT32_MAX;
}

/* Flows from one list of hosts to another, as long as both last; NULL: no memory. */
static struct workload_pair *pairs_of(const struct scenario_workload *w, uint32_t *count)
{
	struct workload_pair *pairs;

	*count = 0;
	while (nth_of(&w->senders, *count) != UINT32_MAX && nth_of(&w->receivers, *count) != UINT32_MAX)
		++*count;
	pairs = calloc(*count + 1, sizeof(*pairs));
	for (uint32_t i = 0; pairs && i < *count; i++)
		pairs[i] = (struct workload_pair){nth_of(&w->senders, i), nth_of(&w->receivers, i)};
	return pairs;
}

static bool read_cdf(const struct scenario_workload *w, struct cdf *cdf, struct why why)
{
	struct text_error err = {0};
	int rc = w->cdf[0] ? cdf_builtin(cdf, w->cdf, &err)
			   : cdf_read(cdf, w->cdf_file.text, w->cdf_file.text_bytes, &err);

	if (rc)
		return refuse(why, "workload.%s.cdf: line %u: %s", w->name, err.line, err.message);
	return true;
}

/* Of the hosts of a list; NULL: no memory. */
static uint64_t *rates_of(const struct rates *rates, const uint32_t *hosts, uint32_t count)
{
	uint64_t *bps = calloc(count + 1, sizeof(*bps));

	for (uint32_t i = 0; bps && i < count; i++)
		bps[i] = rates->host_bps[hosts ? hosts[i] : i];
	return bps;
}

/* Of the flows in a file; 0: it cannot be read, which is said when it is added. */
static uint8_t classes_of_file(const struct scenario_workload *w, const struct topology *t)
{
	struct workload *alone = workload_create();
	struct workload_params p = {.text = w->file.text, .text_bytes = w->file.text_bytes, .topology = t};
	struct workload_facts facts = {0};
	struct text_error err;

	if (alone && !workload_add(alone, "hpcc-flows", &p, &err))
		workload_facts(alone, 0, &facts);
	workload_free(alone);
	return facts.classes;
}

uint8_t parts_classes(const struct scenario *s, const struct topology *t)
{
	uint8_t classes = 0;

	for (uint32_t i = 0; i < s->workload_count; i++) {
		const struct scenario_workload *w = &s->workload[i];
		uint8_t class = class_of(s, w, kind_of(w));

		classes = (uint8_t)(classes | (class ? 1u << class : classes_of_file(w, t)));
	}
	return classes;
}

/* For struct workload_params, in *out. */
static bool slow_of(const struct scenario *s, const struct topology *t, struct graph_slow out[SCENARIO_RANGES_MAX],
		    struct why why)
{
	for (uint32_t i = 0; i < s->host.slow_count; i++) {
		const struct scenario_slow *h = &s->host.slow[i];

		if (h->host >= t->host_count)
			return refuse(why, "host.slow: there is no host %u, only 0 to %u", h->host, t->host_count - 1);
		out[i] = (struct graph_slow){
			.rank = h->host, .from_ps = h->from_ps, .to_ps = h->to_ps, .factor_ppb = h->factor_ppb};
	}
	return true;
}

/* "workload.x.file: all_reduce.3.et:7: ..."; the '*' of a path stands for the number. */
static bool refuse_file(const struct scenario_workload *w, const struct graph_fault *f, struct why why)
{
	const char *path = w->file.path, *star = w->file.ranks ? strchr(path, '*') : NULL;
	char number[16] = "", line[16] = "";

	if (star)
		snprintf(number, sizeof(number), "%u", f->file);
	if (f->error.line)
		snprintf(line, sizeof(line), "%u:", f->error.line);
	return refuse(why, "workload.%s.file: %.*s%s%s:%s %s", file_of(w),
		      star ? (int)(star - path) : (int)strlen(path), path, number, star ? star + 1 : "", line,
		      f->error.message);
}

/* Jobs of one workload share its graph. */
static struct graph *graph_known(const struct scenario *s, const struct scenario_workload *w,
				 const struct workload *all, const struct part_origin *origins)
{
	struct workload_facts facts;

	for (uint32_t i = 0; w->of[0] && i < workload_parts(all); i++) {
		workload_facts(all, i, &facts);
		if (!strcmp(s->workload[origins[i].workload].of, w->of))
			return graph_hold(facts.graph);
	}
	return NULL;
}

static bool read_graph(const struct scenario_workload *w, struct graph **out, struct why why)
{
	struct graph_file one = {w->file.text, w->file.text_bytes};
	struct graph_fault fault = {0};
	int rc = w->file.ranks ? graph_read(w->file.ranks, w->file.rank_count, out, &fault)
			       : graph_read(&one, 1, out, &fault);

	if (rc == -EINVAL)
		return refuse_file(w, &fault, why);
	return !rc || refuse(why, "out of memory");
}

/* The numbers in a file, in place of *hosts. */
static bool read_placement(const struct scenario_workload *w, const struct topology *t, uint32_t **hosts,
			   uint32_t *count, struct why why)
{
	const struct scenario_file *f = &w->place.file;
	struct text text;
	struct word word;
	uint64_t host;

	free(*hosts);
	*hosts = calloc(f->text_bytes / 2 + 1, sizeof(**hosts));
	*count = 0;
	if (!*hosts)
		return refuse(why, "out of memory");
	text_start(&text, f->text, f->text_bytes);
	while (text_next_line(&text)) {
		while (text_word(&text, &word)) {
			if (!word_count(word, t->host_count - 1, &host))
				return refuse(why,
					      "%s.%s.place: %s:%u: '%.*s'; allowed are the numbers of hosts, 0 to %u",
					      w->section, w->name, f->path, text.line,
					      word.len < 32 ? (int)word.len : 32, word.at, t->host_count - 1);
			(*hosts)[(*count)++] = (uint32_t)host;
		}
	}
	return true;
}

/* The hosts in the order of the ranks; NULL in *hosts stands for all of them. */
static bool place_ranks(const struct scenario *s, const struct scenario_workload *w, const struct topology *t,
			uint32_t **hosts, uint32_t *host_count, struct why why)
{
	uint32_t count = *host_count;

	if (w->place.by == SCENARIO_PLACE_FILE)
		return read_placement(w, t, hosts, host_count, why);
	if (!*hosts && w->place.by != SCENARIO_PLACE_PACKED) {
		*hosts = calloc(count + (size_t)1, sizeof(**hosts));
		for (uint32_t i = 0; *hosts && i < count; i++)
			(*hosts)[i] = i;
		if (!*hosts)
			return refuse(why, "out of memory");
	}
	return parts_place(w->place.by, t, s->run.seed, *hosts, count) || refuse(why, "out of memory");
}

static bool add_graph(const struct scenario *s, const struct scenario_workload *w, const struct topology *t,
		      uint32_t number, struct workload_params *p, struct workload *out, struct part_origin *origins,
		      struct why why)
{
	struct graph_slow slow[SCENARIO_RANGES_MAX];
	bool good = slow_of(s, t, slow, why);

	p->graph = graph_known(s, w, out, origins);
	good = good && (p->graph || read_graph(w, &p->graph, why));
	p->slow = slow;
	p->slow_count = s->host.slow_count;
	p->algorithm = w->algorithm;
	p->chunks = (uint32_t)w->chunks;
	p->eager_bytes = w->eager_bytes;
	good = good && add_rounds(w, number, "graph", p, out, origins, why);
	graph_free(p->graph);
	return good;
}

static bool add_one(const struct scenario *s, const struct scenario_workload *w, const struct topology *t,
		    const struct rates *rates, struct program *program, uint32_t number, struct workload *out,
		    struct part_origin *origins, struct why why)
{
	const char *kind = kind_of(w);
	struct workload_params p = {
		.seed = s->run.seed,
		.start_ps = w->start_ps,
		.tag = (uint16_t)number,
		.class = class_of(s, w, kind),
		.bytes = w->size_bytes,
		.senders = w->fan_in == SCENARIO_AUTO ? 0 : (uint32_t)w->fan_in,
		.target = first_of(&w->receivers, 0),
		.jitter_ps = w->jitter_ps,
		.order = w->order == SCENARIO_ORDER_RANDOM ? WORKLOAD_RANDOM : WORKLOAD_SHIFTED,
		.active_max =
			w->active == SCENARIO_NONE || w->order == SCENARIO_ORDER_AT_ONCE ? 0 : (uint32_t)w->active,
		.rings = (uint32_t)w->rings,
		.zipf_milli = (uint32_t)(w->zipf_ppb / 1000000),
		.load_ppm = (uint32_t)(w->load_ppb / 1000),
		.end_ps = w->stop_ps == SCENARIO_NEVER ? 0 : w->stop_ps,
		.count_max = w->flows == SCENARIO_NONE ? 0 : w->flows,
		.interval_ps = w->interval_ps,
		.text = w->file.text,
		.text_bytes = w->file.text_bytes,
		.topology = t,
		.program = program,
	};
	struct cdf cdf = {0};
	uint32_t *hosts;
	uint64_t *rates_bps;
	struct workload_pair *pairs = NULL;
	bool good = true;
	int rc;

	if (w->kind == SCENARIO_FLOW) {
		pairs = pairs_of(w, &p.pair_count);
		if (!pairs)
			return refuse(why, "out of memory");
		p.pairs = pairs;
	}
	rc = hosts_of(&w->hosts, t->host_count, &hosts, &p.host_count);
	if (rc) {
		free(pairs);
		return refuse(why, "%s.%s.hosts: %s", w->section, w->name,
			      rc == -ENOMEM ? "out of memory" : "beyond the topology's last host");
	}
	p.hosts = hosts;
	rates_bps = rates_of(rates, hosts, p.host_count);
	if (!rates_bps) {
		free(pairs);
		free(hosts);
		return refuse(why, "out of memory");
	}
	p.rates_bps = rates_bps;
	/* Pairs name hosts by their numbers among all hosts. */
	if (pairs) {
		p.hosts = NULL;
		p.host_count = t->host_count;
	}
	if (w->kind == SCENARIO_VICTIM) {
		p.victim_src = first_of(&w->senders, 0);
		p.victim_dst = w->receivers.count > 1 ? w->receivers.range[1].first : p.host_count - 1;
		p.victim_bytes = w->size_bytes;
	}
	if (w->kind == SCENARIO_STAIRCASE && w->receivers.count == 0)
		p.stride = p.host_count / 2;
	if (w->kind == SCENARIO_CDF) {
		good = read_cdf(w, &cdf, why);
		p.cdf = &cdf;
	}
	p.bytes = w->size_bytes / w->qps;
	if (w->kind == SCENARIO_GRAPH || w->kind == SCENARIO_PROGRAM) {
		good = place_ranks(s, w, t, &hosts, &p.host_count, why);
		p.hosts = hosts;
	}
	if (w->kind == SCENARIO_GRAPH)
		good = good && add_graph(s, w, t, number, &p, out, origins, why);
	else
		good = good && add_rounds(w, number, kind, &p, out, origins, why);
	cdf_free(&cdf);
	free(pairs);
	free(hosts);
	free(rates_bps);
	return good;
}

bool parts_workload(const struct scenario *s, const struct topology *t, const struct rates *rates,
		    struct program *program, struct workload *out, struct part_origin *origins, struct why why)
{
	for (uint32_t i = 0; i < s->workload_count; i++) {
		if (!add_one(s, &s->workload[i], t, rates, program, i, out, origins, why))
			return false;
	}
	return true;
}
