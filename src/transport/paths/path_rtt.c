/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round trips of a path, and what is derived from them: its timeout (RFC 6298, per path), how late a packet may
 * arrive on it, how many bytes the network holds, and the round trips that congestion control gets.
 */
#include "transport/paths/path_rtt.h"

enum {
	REO_ROUNDS = 256,     /* round trips for which a path counts as one that reorders */
	REO_SHIFT = 3,        /* of the round trip, to begin with */
	STRETCH_ROUNDS = 4,   /* of a starved pair, and */
	STRETCH_SAMPLES = 32, /* at least: the least of one to two stretches is what the network takes */
	WAIT_PART = 4,        /* what is longer than the least by more than that part of it, and 1 ms, has waited */
	DETOUR = 4            /* a path counts as longer than the shortest by at most a fourth of that */
};

static const uint64_t starved_for_ns = 1000000000;
static const uint64_t reo_ns_min = 20000000;
static const uint64_t drain_rtt_ns = 200000; /* a host takes at least as long to read a window */

uint64_t path_rto_ns(const struct transport_config *c, const struct path *p)
{
	uint64_t vary = 4 * p->rttvar_ns > 2 * p->srtt_ns ? 4 * p->rttvar_ns : 2 * p->srtt_ns;

	/* Even where round trips vary little, this leaves time for a tail probe and its answer. */
	return p->srtt_ns + vary < c->veroce.rto_ns_min ? c->veroce.rto_ns_min : p->srtt_ns + vary;
}

/* A round trip was the shortest on its path: the network holds so much less, or is known at all. */
static __attribute__((noinline)) void shortest(const struct transport_config *c, struct pair *pair, uint32_t path,
					       uint64_t rtt_ns)
{
	uint64_t least = UINT64_MAX, factor;

	pair->min_rtt_ns[path] = rtt_ns;
	for (uint32_t i = 0; i < pair->path_count; i++) {
		if (pair->min_rtt_ns[i] < least)
			least = pair->min_rtt_ns[i];
	}
	/* The network holds bytes in addition to those in the peer's buffer. */
	factor = 1 + least / drain_rtt_ns;
	if (pair->window_bytes == pair->buffer_bytes)
		pair->window_bytes = UINT64_MAX;
	pair->buffer_bytes = c->window_bytes * (factor < PAIR_WINDOW_FACTOR_MAX ? factor : PAIR_WINDOW_FACTOR_MAX);
	if (c->window_fixed || !pair_is_controlled(c, pair->local))
		pair->buffer_bytes = c->window_bytes;
	if (pair->window_bytes > pair->buffer_bytes)
		pair->window_bytes = pair->buffer_bytes;
}

/* The longest timeout of the paths that are up. */
static __attribute__((noinline)) void find_longest(const struct transport_config *c, struct pair *pair)
{
	pair->rto_ns = 0;
	for (uint32_t i = 0; i < pair->path_count; i++) {
		uint64_t rto = path_rto_ns(c, &pair->path[i]);

		if (!pair->path[i].down && rto > pair->rto_ns)
			pair->rto_ns = rto;
	}
	pair->rto_down = pair->down_count;
}

void path_rtt_sample(const struct transport_config *c, struct pair *pair, uint32_t path, uint64_t rtt_ns,
		     uint64_t network_ns)
{
	struct path *p = &pair->own[path];
	uint64_t rto_before = path_rto_ns(c, p), rto;
	bool first = !pair->srtt_ns;

	if (!p->srtt_ns) {
		p->srtt_ns = rtt_ns;
		p->rttvar_ns = rtt_ns / 2;
		p->reo_ns = rtt_ns >> REO_SHIFT;
	} else {
		uint64_t off = rtt_ns > p->srtt_ns ? rtt_ns - p->srtt_ns : p->srtt_ns - rtt_ns;

		p->rttvar_ns = (3 * p->rttvar_ns + off) / 4;
		p->srtt_ns = (7 * p->srtt_ns + rtt_ns) / 8;
	}
	if (network_ns < pair->min_rtt_ns[path])
		shortest(c, pair, path, network_ns);
	pair->srtt_ns = pair->srtt_ns ? (7 * pair->srtt_ns + rtt_ns) / 8 : rtt_ns;
	rto = path_rto_ns(c, p);
	if (first || pair->down_count || pair->rto_down || (rto < rto_before && rto_before == pair->rto_ns))
		find_longest(c, pair);
	else if (rto > pair->rto_ns)
		pair->rto_ns = rto;
}

void path_rtt_expect(const struct transport_config *c, struct pair *pair, uint64_t rtt_ns)
{
	uint64_t rto = path_rto_ns(c, &(struct path){.srtt_ns = rtt_ns, .rttvar_ns = rtt_ns / 2});

	if (!pair->srtt_ns && rto < pair->rto_ns)
		pair->rto_ns = rto;
	/* The hosts took a part of it. */
	if (rtt_ns > drain_rtt_ns && path_rtt_is_long(rtt_ns - drain_rtt_ns))
		pair->blind_packets = UINT32_MAX;
}

void path_was_late(struct pair *pair, uint32_t path, uint64_t late_ns, uint64_t now_ns)
{
	struct path *p = &pair->own[path];

	p->reo_ns = p->reo_ns * 2 > late_ns ? p->reo_ns * 2 : late_ns;
	if (p->reo_ns > p->srtt_ns)
		p->reo_ns = p->srtt_ns;
	p->reo_until_ns = now_ns + (REO_ROUNDS * p->srtt_ns > reo_ns_min ? REO_ROUNDS * p->srtt_ns : reo_ns_min);
}

void path_reo_expire(struct path *p, uint64_t now_ns)
{
	if (p->reo_until_ns && p->reo_until_ns < now_ns) {
		p->reo_ns = p->srtt_ns >> REO_SHIFT;
		p->reo_until_ns = 0;
	}
}

void path_rtt_told(struct pair *pair, uint64_t hosts_ns, uint64_t now_ns)
{
	if (hosts_ns >= STARVED_NS_MIN)
		pair->starved_until_ns = now_ns + starved_for_ns;
}

/* A round has ended. */
static void note_least(struct path *p, uint64_t network_ns)
{
	uint64_t *least = p->cc_least_ns;

	if (p->cc_rounds >= STRETCH_ROUNDS && p->cc_samples >= STRETCH_SAMPLES) {
		least[1] = least[0];
		least[0] = 0;
		p->cc_rounds = 0;
		p->cc_samples = 0;
	}
	if (p->cc_rounds < STRETCH_ROUNDS)
		p->cc_rounds++;
	if (!least[0] || network_ns < least[0])
		least[0] = network_ns;
}

/* Of this stretch and the one before. */
static uint64_t least_of_stretches_ns(const struct path *p)
{
	bool older = p->cc_least_ns[1] && p->cc_least_ns[1] < p->cc_least_ns[0];

	return p->cc_least_ns[older];
}

bool path_rtt_round(struct path *p, bool starved, uint64_t *network_ns, uint64_t *hosts_ns, uint64_t now_ns)
{
	uint64_t least;

	if (!p->cc_network_ns || *network_ns < p->cc_network_ns) {
		p->cc_network_ns = *network_ns;
		p->cc_hosts_us = *hosts_ns / 1000 < UINT16_MAX ? (uint16_t)(*hosts_ns / 1000) : UINT16_MAX;
	}
	if (p->cc_samples < STRETCH_SAMPLES)
		p->cc_samples++;
	if (now_ns < p->cc_round_ns)
		return false;
	*network_ns = p->cc_network_ns;
	*hosts_ns = p->cc_hosts_us * 1000ull;
	p->cc_network_ns = 0;
	p->cc_round_ns = now_ns + p->srtt_ns;
	note_least(p, *network_ns);
	if (!starved)
		return true;
	*hosts_ns = 0;
	least = least_of_stretches_ns(p);
	return *network_ns - least <= least / WAIT_PART + STARVED_NS_MIN;
}

static uint64_t least_ns(const struct path *p)
{
	bool older = p->least_ns[1] && p->least_ns[1] < p->least_ns[0];

	return p->least_ns[older];
}

uint64_t path_detour_ns(const struct pair *pair, struct path *p, uint64_t rtt_ns, uint64_t now_ns)
{
	uint32_t this_while = (uint32_t)(now_ns / PATH_LEAST_WHILE_NS);
	uint64_t own, least;

	if (this_while != p->least_while) {
		p->least_ns[1] = p->least_ns[0];
		p->least_ns[0] = 0;
		p->least_while = this_while;
	}
	if (!p->least_ns[0] || rtt_ns < p->least_ns[0])
		p->least_ns[0] = rtt_ns;
	least = own = least_ns(p);
	for (uint32_t i = 0; i < pair->path_count; i++) {
		uint64_t other = least_ns(&pair->path[i]);

		if (other && other < least)
			least = other;
	}
	return own - least < least / DETOUR ? own - least : least / DETOUR;
}
