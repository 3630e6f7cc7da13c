/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Most hosts hang by one link from a switch, so paths are kept between *points*: the switches that
 * such hosts hang from, and each host with several links (or linked to a host), which is a point of
 * its own. A host's path to its point and a point's row of paths to all points add up, because
 * delay and serialisation do.
 *
 * The rates of a path's links are the way from a leaf to the root of a tree that all paths share,
 * because networks have many paths and few sequences of rates.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/topology/topology_adjacent.h"
#include "net/topology/topology_path.h"

enum { NONE = UINT32_MAX };

/* A sequence of rates: the parent's, and then this one. */
struct rates {
	uint64_t rate_bps;
	uint32_t parent, child, sibling; /* NO_RATES: none */
};

enum { NO_RATES = 0 }; /* the root: the empty sequence */

struct topology_paths {
	const struct topology *topology;
	struct topology_adjacent adj;
	uint32_t packet_bytes;

	uint32_t *point_of;   /* of every node; NONE: no point */
	uint32_t *host_point; /* of every host */
	uint32_t *points;     /* nodes */
	uint32_t point_count;
	struct topology_path **rows; /* by point; NULL: not computed yet */
	struct rates *rates;
	uint32_t rates_count, rates_room;
	bool out_of_memory; /* there was no memory for some sequence of rates */

	/* One walk's state, by node. */
	uint32_t *queue;
	struct topology_path *reached; /* rate_bps 0: not reached */
	uint32_t *via;                 /* the last link of the path to it */
};

static uint64_t serialise_ps(const struct topology_paths *p, uint64_t rate_bps)
{
	return (uint64_t)((unsigned __int128)p->packet_bytes * 8 * 1000000000000ull / rate_bps);
}

/* The sequence that is one link longer. */
static uint32_t longer_rates(struct topology_paths *p, uint32_t rates, uint64_t rate_bps)
{
	uint32_t i = p->rates[rates].child;

	while (i != NO_RATES && p->rates[i].rate_bps != rate_bps)
		i = p->rates[i].sibling;
	if (i != NO_RATES)
		return i;
	if (p->rates_count == p->rates_room) {
		struct rates *more = reallocarray(p->rates, 2 * p->rates_room, sizeof(*more));

		if (!more) {
			p->out_of_memory = true;
			return NO_RATES;
		}
		p->rates = more;
		p->rates_room *= 2;
	}
	i = p->rates_count++;
	p->rates[i] = (struct rates){.rate_bps = rate_bps, .parent = rates, .sibling = p->rates[rates].child};
	p->rates[rates].child = i;
	return i;
}

static struct topology_path over_link(struct topology_paths *p, struct topology_path path,
				      const struct topology_link *l)
{
	path.hops++;
	path.rates = longer_rates(p, path.rates, l->rate_bps);
	path.delay_ps += l->delay_ps;
	path.serialise_ps += serialise_ps(p, l->rate_bps);
	if (path.rate_bps > l->rate_bps)
		path.rate_bps = l->rate_bps;
	return path;
}

/* Of paths, or parts of paths, of as many links, whose switches take as long. */
static bool takes_longer(const struct topology_path *a, const struct topology_path *b)
{
	return topology_path_base_rtt_ps(a, 0) > topology_path_base_rtt_ps(b, 0);
}

static bool better(const struct topology_path *a, const struct topology_path *b)
{
	return takes_longer(b, a) || (!takes_longer(a, b) && a->rate_bps > b->rate_bps);
}

/* Whether a link leaves a group of a dragonfly other than that of `from`, a switch: the way would cross twice. */
static bool crosses_again(const struct topology *t, uint32_t from, uint32_t near, uint32_t far)
{
	uint32_t size = t->group_switches, hosts = t->host_count;

	if (!size || near < hosts || far < hosts || from < hosts)
		return false;
	return (near - hosts) / size != (from - hosts) / size && (near - hosts) / size != (far - hosts) / size;
}

static const struct topology_path nowhere = {.rate_bps = UINT64_MAX};

/* Breadth first: all of one distance is final before the next distance is looked at. */
static void walk(struct topology_paths *p, uint32_t from)
{
	const struct topology *t = p->topology;
	uint32_t head = 0, tail = 0;

	memset(p->reached, 0, t->node_count * sizeof(*p->reached));
	p->reached[from] = nowhere;
	p->queue[tail++] = from;
	while (head < tail) {
		uint32_t n = p->queue[head++];

		if (n < t->host_count && n != from)
			continue;
		for (uint32_t i = p->adj.first[n]; i < p->adj.first[n + 1]; i++) {
			const struct topology_link *l = &t->links[p->adj.links[i]];
			uint32_t other = topology_link_other(l, n);
			struct topology_path *known = &p->reached[other];
			struct topology_path path = over_link(p, p->reached[n], l);

			if (p->point_of[other] == NONE && other < t->host_count)
				continue;
			if (crosses_again(t, from, n, other))
				continue;
			if (!known->rate_bps)
				p->queue[tail++] = other;
			else if (known->hops != path.hops || !better(&path, known))
				continue;
			*known = path;
			p->via[other] = p->adj.links[i];
		}
	}
}

static uint32_t only_link(const struct topology_paths *p, uint32_t host)
{
	return p->adj.links[p->adj.first[host]];
}

static struct topology_path access_path(struct topology_paths *p, uint32_t host)
{
	if (p->points[p->host_point[host]] == host)
		return nowhere;
	return over_link(p, nowhere, &p->topology->links[only_link(p, host)]);
}

/* Joins two paths; the rates remain those of a. */
static struct topology_path joined(struct topology_path a, const struct topology_path *b)
{
	a.hops += b->hops;
	a.delay_ps += b->delay_ps;
	a.serialise_ps += b->serialise_ps;
	if (a.rate_bps > b->rate_bps)
		a.rate_bps = b->rate_bps;
	return a;
}

static void find_points(struct topology_paths *p)
{
	const struct topology *t = p->topology;

	memset(p->point_of, 0xff, t->node_count * sizeof(*p->point_of));
	for (uint32_t h = 0; h < t->host_count; h++) {
		uint32_t first = p->adj.first[h], node = h;

		if (p->adj.first[h + 1] - first == 1) {
			uint32_t other = topology_link_other(&t->links[p->adj.links[first]], h);

			if (other >= t->host_count)
				node = other;
		}
		if (p->point_of[node] == NONE) {
			p->point_of[node] = p->point_count;
			p->points[p->point_count++] = node;
		}
		p->host_point[h] = p->point_of[node];
	}
}

struct topology_paths *topology_paths_create(const struct topology *t, uint32_t packet_bytes)
{
	struct topology_paths *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->topology = t;
	p->packet_bytes = packet_bytes;
	if (topology_adjacent_init(&p->adj, t)) {
		free(p);
		return NULL;
	}
	p->point_of = malloc(t->node_count * sizeof(*p->point_of));
	p->host_point = malloc(t->host_count * sizeof(*p->host_point));
	p->points = malloc(t->node_count * sizeof(*p->points));
	p->rows = calloc(t->node_count, sizeof(*p->rows));
	p->queue = malloc(t->node_count * sizeof(*p->queue));
	p->reached = malloc(t->node_count * sizeof(*p->reached));
	p->via = malloc(t->node_count * sizeof(*p->via));
	p->rates_room = 16;
	p->rates = calloc(p->rates_room, sizeof(*p->rates));
	p->rates_count = 1;
	if (!p->point_of || !p->host_point || !p->points || !p->rows || !p->queue || !p->reached || !p->via ||
	    !p->rates) {
		topology_paths_free(p);
		return NULL;
	}
	find_points(p);
	return p;
}

void topology_paths_free(struct topology_paths *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->point_count; i++)
		free(p->rows[i]);
	topology_adjacent_free(&p->adj);
	free(p->point_of);
	free(p->host_point);
	free(p->points);
	free(p->rows);
	free(p->queue);
	free(p->reached);
	free(p->via);
	free(p->rates);
	free(p);
}

static const struct topology_path *row_of(struct topology_paths *p, uint32_t point)
{
	struct topology_path *row = p->rows[point];

	if (row)
		return row;
	row = malloc(p->point_count * sizeof(*row));
	if (!row)
		return NULL;
	walk(p, p->points[point]);
	for (uint32_t i = 0; i < p->point_count; i++)
		row[i] = p->reached[p->points[i]];
	return p->rows[point] = row;
}

int topology_paths_get(struct topology_paths *p, uint32_t src, uint32_t dst, struct topology_path *out)
{
	if (src >= p->topology->host_count || dst >= p->topology->host_count || src == dst)
		return -EINVAL;

	const struct topology_path *row = row_of(p, p->host_point[src]);
	struct topology_path last;

	if (!row)
		return -ENOMEM;
	last = access_path(p, dst);
	*out = joined(joined(access_path(p, src), &row[p->host_point[dst]]), &last);
	return 0;
}

/* Writes a sequence from place `at` on; returns the place behind it. */
static uint32_t put_rates(const struct topology_paths *p, const struct topology_path *path, uint32_t at,
			  uint64_t rates_bps[TOPOLOGY_HOPS_MAX])
{
	uint32_t i = path->rates;

	for (uint32_t k = at + path->hops; k-- > at; i = p->rates[i].parent) {
		if (k < TOPOLOGY_HOPS_MAX)
			rates_bps[k] = p->rates[i].rate_bps;
	}
	return at + path->hops;
}

int64_t topology_paths_rates(struct topology_paths *p, uint32_t src, uint32_t dst,
			     uint64_t rates_bps[TOPOLOGY_HOPS_MAX])
{
	const struct topology_path *row;
	struct topology_path first, last;
	uint32_t at;

	if (src >= p->topology->host_count || dst >= p->topology->host_count || src == dst)
		return -EINVAL;
	row = row_of(p, p->host_point[src]);
	if (!row)
		return -ENOMEM;
	first = access_path(p, src);
	last = access_path(p, dst);
	if (p->out_of_memory)
		return -ENOMEM;
	at = put_rates(p, &first, 0, rates_bps);
	at = put_rates(p, &row[p->host_point[dst]], at, rates_bps);
	return put_rates(p, &last, at, rates_bps);
}

int64_t topology_paths_links(struct topology_paths *p, uint32_t src, uint32_t dst, uint32_t *links, uint32_t room)
{
	uint32_t hosts = p->topology->host_count, from, at, hops, end;

	if (src >= hosts || dst >= hosts || src == dst)
		return -EINVAL;
	from = p->points[p->host_point[src]];
	at = p->points[p->host_point[dst]];
	walk(p, from);
	hops = (from != src) + p->reached[at].hops + (at != dst);
	end = hops;
	if (from != src && room)
		links[0] = only_link(p, src);
	if (at != dst && --end < room)
		links[end] = only_link(p, dst);
	for (; at != from; at = topology_link_other(&p->topology->links[p->via[at]], at))
		if (--end < room)
			links[end] = p->via[at];
	return hops;
}

int topology_paths_longest_rtt_ps(struct topology_paths *p, uint64_t switch_latency_ps, uint64_t *out)
{
	/* The longest and the second longest way from a host of a point to the point. */
	struct {
		struct topology_path first, second;
		uint32_t hosts;
	} *far = calloc(p->point_count, sizeof(*far));
	uint64_t longest = 0;

	if (!far)
		return -ENOMEM;
	for (uint32_t h = 0; h < p->topology->host_count; h++) {
		uint32_t point = p->host_point[h];
		struct topology_path path = access_path(p, h);

		if (!far[point].hosts++ || takes_longer(&path, &far[point].first)) {
			far[point].second = far[point].first;
			far[point].first = path;
		} else if (far[point].hosts == 2 || takes_longer(&path, &far[point].second)) {
			far[point].second = path;
		}
	}
	for (uint32_t i = 0; i < p->point_count; i++) {
		struct topology_path way = joined(far[i].first, &far[i].second);
		uint64_t rtt = topology_path_base_rtt_ps(&way, switch_latency_ps);

		if (far[i].hosts > 1 && rtt > longest)
			longest = rtt;
		walk(p, p->points[i]);
		for (uint32_t j = 0; j < p->point_count; j++) {
			way = joined(joined(far[i].first, &p->reached[p->points[j]]), &far[j].first);
			rtt = topology_path_base_rtt_ps(&way, switch_latency_ps);
			if (i != j && p->reached[p->points[j]].rate_bps && rtt > longest)
				longest = rtt;
		}
	}
	free(far);
	*out = longest;
	return 0;
}
