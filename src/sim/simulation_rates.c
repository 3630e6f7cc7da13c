/* SPDX-License-Identifier: BSD-2-Clause */
/* What hosts can do, and what a run did. */
#include "sim/simulation_rates.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PS_A_SECOND UINT64_C(1000000000000)

enum { PACKET_BYTES_MAX = 16384 }; /* a packet counts as sent when its first bit leaves */

int rates_read(struct rates *r, const struct network *n, uint32_t hosts)
{
	r->host_bps = calloc(hosts + 1, sizeof(*r->host_bps));
	if (!r->host_bps)
		return -ENOMEM;
	r->hosts = hosts;
	r->least_bps = UINT64_MAX;
	for (uint32_t i = 0; i < hosts; i++) {
		uint64_t bps = network_host_rate_bps(n, i);

		r->host_bps[i] = bps;
		r->least_bps = bps < r->least_bps ? bps : r->least_bps;
		r->most_bps = bps > r->most_bps ? bps : r->most_bps;
	}
	return 0;
}

void rates_free(struct rates *r)
{
	free(r->host_bps);
	r->host_bps = NULL;
}

uint64_t rates_of_receivers(const struct rates *rates, const struct results *r)
{
	uint8_t *seen = calloc(rates->hosts + 1, 1);
	uint64_t bps = 0;

	for (uint32_t i = 0; seen && i < r->flow_count; i++) {
		uint32_t dst = r->flows[i].dst;

		if (r->flows[i].inside)
			continue;
		bps += seen[dst] ? 0 : rates->host_bps[dst];
		seen[dst] = 1;
	}
	free(seen);
	return bps;
}

/* ---- collectives ------------------------------------------------------------------------------------ */

static uint64_t slower(const struct rates *rates, const struct results_flow *f)
{
	uint64_t a = rates->host_bps[f->src], b = rates->host_bps[f->dst];

	return a < b ? a : b;
}

/* What the flows of a round say of it. */
struct round {
	struct results_collective c;
	uint64_t messages, done; /* that it has, and that are done */
	uint64_t end_ps, least_bps;
	bool exchange;
	unsigned __int128 bus_bits;     /* that the fullest link carries in any algorithm */
	uint64_t *out_bytes, *in_bytes; /* of each host; NULL: not an exchange */
};

static bool round_begin(struct round *k, const struct rates *rates, const struct workload_facts *facts,
			const struct part_origin *o)
{
	*k = (struct round){
		.c = {.workload = o->workload, .round = o->round, .start_ps = UINT64_MAX, .hosts = facts->bus_den},
		.least_bps = UINT64_MAX,
		.exchange = facts->exchange,
	};
	if (!k->exchange)
		return true;
	k->out_bytes = calloc(2 * (size_t)rates->hosts + 1, sizeof(*k->out_bytes));
	k->in_bytes = k->out_bytes + rates->hosts;
	return k->out_bytes;
}

/* A round is as many parts as there are queue pairs between two hosts. */
static void round_add_part(struct round *k, const struct workload_facts *facts)
{
	k->messages += facts->message_count;
	k->c.bytes += facts->collective_bytes;
	k->bus_bits += (unsigned __int128)facts->collective_bytes * 8 * facts->bus_num / facts->bus_den;
}

static void round_add_flow(struct round *k, const struct rates *rates, const struct results_flow *f)
{
	if (f->fct_ps == RESULTS_NOT_DONE)
		return;
	k->done++;
	if (slower(rates, f) < k->least_bps)
		k->least_bps = slower(rates, f);
	if (f->start_ps < k->c.start_ps)
		k->c.start_ps = f->start_ps;
	if (f->start_ps + f->fct_ps > k->end_ps)
		k->end_ps = f->start_ps + f->fct_ps;
	if (k->exchange) {
		k->out_bytes[f->src] += f->bytes;
		k->in_bytes[f->dst] += f->bytes;
	}
}

uint64_t rates_time_ps(unsigned __int128 bits, uint64_t bps, uint32_t header_share_ppb)
{
	return (uint64_t)(bits * PS_A_SECOND / ((unsigned __int128)bps * header_share_ppb / SCENARIO_PPB));
}

/*
 * The slowest host decides how long an allreduce takes, whatever the algorithm. In an exchange it is the host that
 * takes longest to send or to receive its own bytes, so a popular receiver counts.
 */
static uint64_t ideal_of(const struct round *k, const struct rates *rates, uint32_t header_share_ppb)
{
	uint64_t longest_ps = 0;

	if (!k->exchange)
		return rates_time_ps(k->bus_bits, k->least_bps, header_share_ppb);
	for (uint32_t h = 0; h < rates->hosts; h++) {
		uint64_t most = k->out_bytes[h] > k->in_bytes[h] ? k->out_bytes[h] : k->in_bytes[h];
		uint64_t ps =
			most ? rates_time_ps((unsigned __int128)most * 8, rates->host_bps[h], header_share_ppb) : 0;

		if (ps > longest_ps)
			longest_ps = ps;
	}
	return longest_ps;
}

static int round_end(struct round *k, const struct rates *rates, struct results *r)
{
	struct results_collective *c = &k->c;

	c->time_ps = k->done && k->done == k->messages ? k->end_ps - c->start_ps : RESULTS_NOT_DONE;
	if (c->time_ps != RESULTS_NOT_DONE && c->time_ps) {
		c->algorithm_bps = (uint64_t)((unsigned __int128)c->bytes * 8 * PS_A_SECOND / c->time_ps);
		c->bus_bps = (uint64_t)(k->bus_bits * PS_A_SECOND / c->time_ps);
		c->ideal_ps = rates->inside ? 0 : ideal_of(k, rates, r->header_share_ppb);
	}
	free(k->out_bytes);
	return results_collective_add(r, c);
}

void rates_collectives(const struct rates *rates, const struct workload *w, const struct part_origin *origins,
		       struct results *r)
{
	uint32_t parts = workload_parts(w), count = 0, first[SCENARIO_WORKLOADS_MAX];
	struct round *rounds = calloc(parts + 1, sizeof(*rounds));

	memset(first, 0xff, sizeof(first));
	for (uint32_t part = 0; rounds && part < parts; part++) {
		const struct part_origin *o = &origins[part];
		struct workload_facts facts;

		workload_facts(w, part, &facts);
		if (!facts.collective_bytes)
			continue;
		if (!o->qp && !round_begin(&rounds[count++], rates, &facts, o))
			goto end;
		if (!o->qp && !o->round)
			first[o->workload] = count - 1;
		round_add_part(&rounds[count - 1], &facts);
	}
	for (uint32_t i = 0; rounds && i < r->flow_count; i++) {
		const struct results_flow *f = &r->flows[i];

		if (first[f->workload] != UINT32_MAX)
			round_add_flow(&rounds[first[f->workload] + f->round], rates, f);
	}
end:
	for (uint32_t i = 0; rounds && i < count; i++)
		round_end(&rounds[i], rates, r);
	free(rounds);
}

/* ---- what is possible
 * ----------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool impossible(struct results *r, const char *format, ...)
{
	va_list ap;

	r->partial = true;
	va_start(ap, format);
	vsnprintf(r->partial_why, sizeof(r->partial_why), format, ap);
	va_end(ap);
	return false;
}

/* The highest rate that a link gets during the run; 0: none changes. */
static uint64_t later_bps(const struct scenario *s)
{
	uint64_t bps = 0;

	for (uint32_t i = 0; i < s->failure_count; i++) {
		if (s->failure[i].action == SCENARIO_LINK_RATE && s->failure[i].rate_bps > bps)
			bps = s->failure[i].rate_bps;
	}
	return bps;
}

static bool judge_ports(const struct topology *t, const struct network *n, uint64_t later, struct results *r)
{
	for (uint32_t i = 0; i < 2 * t->link_count; i++) {
		const struct topology_link *l = &t->links[i / 2];
		uint64_t bps = l->rate_bps > later ? l->rate_bps : later;
		struct network_port_counts counts;
		unsigned __int128 could;

		if (!network_count_port(n, i / 2, i % 2, &counts))
			continue;
		could = (unsigned __int128)bps * r->time_ps / PS_A_SECOND / 8 + PACKET_BYTES_MAX;
		if (counts.sent_bytes > could)
			return impossible(r,
					  "internal error: the port from node %u to %u sent %" PRIu64
					  " bytes, more than its rate",
					  i % 2 ? l->b : l->a, i % 2 ? l->a : l->b, counts.sent_bytes);
	}
	return true;
}

static bool judge_flows(const struct rates *rates, uint64_t later, struct results *r)
{
	uint64_t first_ps = UINT64_MAX, last_ps = 0, bytes = 0, could = rates_of_receivers(rates, r);

	for (uint32_t i = 0; i < r->flow_count; i++) {
		const struct results_flow *f = &r->flows[i];
		uint64_t bps = slower(rates, f) > later ? slower(rates, f) : later;

		if (f->fct_ps == RESULTS_NOT_DONE || f->inside)
			continue;
		if (results_bps(f->bytes, f->fct_ps) > bps)
			return impossible(
				r, "internal error: flow %u had %" PRIu64 " bit/s, more than its hosts' %" PRIu64, i,
				results_bps(f->bytes, f->fct_ps), bps);
		bytes += f->bytes;
		first_ps = f->start_ps < first_ps ? f->start_ps : first_ps;
		last_ps = f->start_ps + f->fct_ps > last_ps ? f->start_ps + f->fct_ps : last_ps;
	}
	if (could && !later && bytes && results_bps(bytes, last_ps - first_ps) > could)
		return impossible(
			r, "internal error: goodput is %" PRIu64 " bit/s, more than the %" PRIu64 " of its receivers",
			results_bps(bytes, last_ps - first_ps), could);
	return true;
}

bool rates_judge(const struct rates *rates, const struct scenario *s, const struct topology *t, const struct network *n,
		 struct results *r)
{
	uint64_t later = later_bps(s), most = rates->most_bps > later ? rates->most_bps : later;

	if (!judge_ports(t, n, later, r) || !judge_flows(rates, later, r))
		return false;
	for (uint32_t i = 0; i < r->collective_count; i++) {
		const struct results_collective *c = &r->collectives[i];

		if (c->time_ps < c->ideal_ps && !later)
			return impossible(r, "internal error: collective %u took less than what is ideal", i);
		if (c->time_ps < c->possible_ps)
			return impossible(r, "internal error: collective %u took less than what is possible", i);
		if (c->bus_bps > most && !rates->inside)
			return impossible(r,
					  "internal error: collective %u had a bus of %" PRIu64
					  " bit/s, more than a host's %" PRIu64,
					  i, c->bus_bps, most);
	}
	return true;
}
