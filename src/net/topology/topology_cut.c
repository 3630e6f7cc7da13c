/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts at one switch are a group: all that leave their switch share its links. So messages are summed up by group, and
 * flows are sought among switches only. What a host's own links carry is a sum of its own.
 */
#include "net/topology/topology_cut.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/topology/topology_adjacent.h"

#define UNLIMITED (INT64_MAX / 4)

struct arc {
	int64_t room; /* bit/s that may be added */
	uint32_t to;
};

struct topology_cuts {
	const struct topology *topology;
	const uint64_t *link_bps;
	struct topology_adjacent adjacent;
	uint32_t groups;
	uint32_t *group_of;    /* of each node: of a host its group, of a switch that of its hosts; UINT32_MAX: none */
	uint32_t *switch_of;   /* of each group */
	uint32_t *group_hosts; /* of each group: how many, and the first */
	uint32_t *group_host;
	uint64_t *host_out, *host_in;
	uint64_t *between; /* [groups][groups], bytes; NULL: too many groups */

	/* The flow of the present cut: arcs 2i and 2i + 1 are link i's, from a to b and from b to a. */
	struct arc *arcs;
	uint32_t *level, *queue, *at, *way;
	uint8_t *side; /* of each group: 1, on the cut's side */
	struct topology_cut slowest;
};

static uint32_t switch_count(const struct topology_cuts *b)
{
	return b->topology->node_count - b->topology->host_count;
}

/* Groups in order of their first hosts. */
static void number_groups(struct topology_cuts *b)
{
	const struct topology *t = b->topology;

	memset(b->group_of, 0xff, (t->node_count + 1) * sizeof(*b->group_of));
	for (uint32_t h = 0; h < t->host_count; h++) {
		uint32_t link = b->adjacent.links[b->adjacent.first[h]], at = topology_link_other(&t->links[link], h);

		if (at < t->host_count) /* two hosts and a link between them */
			at = h;
		if (b->group_of[at] == UINT32_MAX) {
			b->switch_of[b->groups] = at;
			b->group_host[b->groups] = h;
			b->group_of[at] = b->groups++;
		}
		b->group_of[h] = b->group_of[at];
		b->group_hosts[b->group_of[h]]++;
	}
}

struct topology_cuts *topology_cuts_create(const struct topology *t, const uint64_t *link_bps)
{
	struct topology_cuts *b = calloc(1, sizeof(*b));
	size_t nodes = t->node_count + 2;

	if (!b)
		return NULL;
	b->topology = t;
	b->link_bps = link_bps;
	b->group_of = calloc(nodes, sizeof(*b->group_of));
	b->switch_of = calloc(nodes, sizeof(*b->switch_of));
	b->group_hosts = calloc(nodes, sizeof(*b->group_hosts));
	b->group_host = calloc(nodes, sizeof(*b->group_host));
	b->host_out = calloc(nodes, sizeof(*b->host_out));
	b->host_in = calloc(nodes, sizeof(*b->host_in));
	b->arcs = calloc(2 * (size_t)t->link_count + 1, sizeof(*b->arcs));
	b->level = calloc(nodes, sizeof(*b->level));
	b->queue = calloc(nodes, sizeof(*b->queue));
	b->at = calloc(nodes, sizeof(*b->at));
	b->way = calloc(nodes, sizeof(*b->way));
	b->side = calloc(nodes, 1);
	if (topology_adjacent_init(&b->adjacent, t) || !b->group_of || !b->switch_of || !b->group_hosts ||
	    !b->group_host || !b->host_out || !b->host_in || !b->arcs || !b->level || !b->queue || !b->at || !b->way ||
	    !b->side)
		goto fail;
	number_groups(b);
	if (b->groups > CUTS_GROUPS_MAX)
		return b;
	b->between = calloc((size_t)b->groups * b->groups + 1, sizeof(*b->between));
	if (b->between)
		return b;
fail:
	topology_cuts_free(b);
	return NULL;
}

void topology_cuts_free(struct topology_cuts *b)
{
	if (!b)
		return;
	topology_adjacent_free(&b->adjacent);
	free(b->group_of);
	free(b->switch_of);
	free(b->group_hosts);
	free(b->group_host);
	free(b->host_out);
	free(b->host_in);
	free(b->arcs);
	free(b->level);
	free(b->queue);
	free(b->at);
	free(b->way);
	free(b->side);
	free(b->between);
	free(b);
}

void topology_cuts_add(struct topology_cuts *b, uint32_t src, uint32_t dst, uint64_t bytes)
{
	b->host_out[src] += bytes;
	b->host_in[dst] += bytes;
	if (b->between)
		b->between[(size_t)b->group_of[src] * b->groups + b->group_of[dst]] += bytes;
}

/* ---- flows --------------------------------------------------------------------------------------- */

static bool is_sink(const struct topology_cuts *b, uint32_t node)
{
	return b->group_of[node] != UINT32_MAX && !b->side[b->group_of[node]];
}

/* The arc of that link that leaves the node. */
static uint32_t arc_from(const struct topology_cuts *b, uint32_t link, uint32_t node)
{
	return 2 * link + (b->topology->links[link].b == node);
}

/* Links to hosts carry nothing here. */
static void clear_flow(struct topology_cuts *b)
{
	const struct topology *t = b->topology;

	for (uint32_t i = 0; i < t->link_count; i++) {
		const struct topology_link *l = &t->links[i];
		bool inner = (l->a >= t->host_count && l->b >= t->host_count) || t->node_count == t->host_count;

		b->arcs[2 * i] = (struct arc){inner ? (int64_t)b->link_bps[i] : 0, l->b};
		b->arcs[2 * i + 1] = (struct arc){inner ? (int64_t)b->link_bps[i] : 0, l->a};
	}
}

/* Sets the levels of all nodes that flow can still reach from the sources. False: no sink is among them. */
static bool set_levels(struct topology_cuts *b)
{
	uint32_t head = 0, tail = 0;
	bool reached = false;

	memset(b->level, 0xff, (b->topology->node_count + 1) * sizeof(*b->level));
	for (uint32_t g = 0; g < b->groups; g++) {
		if (b->side[g] != 1)
			continue;
		b->level[b->switch_of[g]] = 0;
		b->queue[tail++] = b->switch_of[g];
	}
	while (head < tail) {
		uint32_t node = b->queue[head++];

		reached |= is_sink(b, node);
		for (uint32_t i = b->adjacent.first[node]; i < b->adjacent.first[node + 1]; i++) {
			const struct arc *a = &b->arcs[arc_from(b, b->adjacent.links[i], node)];

			if (a->room <= 0 || b->level[a->to] != UINT32_MAX)
				continue;
			b->level[a->to] = b->level[node] + 1;
			b->queue[tail++] = a->to;
		}
	}
	return reached;
}

/* Adds flow along one way to a sink, from that source; 0: there is none left. */
static int64_t add_way(struct topology_cuts *b, uint32_t source)
{
	uint32_t depth = 0, node = source;
	int64_t most = UNLIMITED;

	while (!is_sink(b, node)) {
		uint32_t *at = &b->at[node], end = b->adjacent.first[node + 1];

		for (; *at < end; ++*at) {
			const struct arc *a = &b->arcs[arc_from(b, b->adjacent.links[*at], node)];

			if (a->room > 0 && b->level[a->to] == b->level[node] + 1)
				break;
		}
		if (*at < end) {
			b->way[depth++] = arc_from(b, b->adjacent.links[*at], node);
			node = b->arcs[b->way[depth - 1]].to;
			continue;
		}
		if (!depth)
			return 0;
		node = b->arcs[b->way[--depth] ^ 1].to;
		b->at[node]++;
	}
	for (uint32_t i = 0; i < depth; i++)
		most = b->arcs[b->way[i]].room < most ? b->arcs[b->way[i]].room : most;
	for (uint32_t i = 0; i < depth; i++) {
		b->arcs[b->way[i]].room -= most;
		b->arcs[b->way[i] ^ 1].room += most;
	}
	return most;
}

/* The most that the groups whose side is 1 can send to those whose side is 0; others only pass on (Dinic). */
static uint64_t flow_of(struct topology_cuts *b)
{
	uint64_t bps = 0;
	int64_t more;

	clear_flow(b);
	while (set_levels(b)) {
		memcpy(b->at, b->adjacent.first, b->topology->node_count * sizeof(*b->at));
		for (uint32_t g = 0; g < b->groups; g++) {
			while (b->side[g] == 1 && (more = add_way(b, b->switch_of[g])) > 0)
				bps += (uint64_t)more;
		}
	}
	return bps;
}

/* ---- cuts ---------------------------------------------------------------------------------------- */

/* Whether the first takes longer. */
static bool takes_longer(const struct topology_cut *a, const struct topology_cut *b)
{
	if (!a->bps || !a->bytes)
		return false;
	/* Fewer bits are enough to tell, and do not overflow. */
	return !b->bps || (double)a->bytes * (double)b->bps > (double)b->bytes * (double)a->bps;
}

static void judge(struct topology_cuts *b, const struct topology_cut *c)
{
	if (takes_longer(c, &b->slowest))
		b->slowest = *c;
}

static void judge_hosts(struct topology_cuts *b)
{
	for (uint32_t h = 0; h < b->topology->host_count; h++) {
		struct topology_cut c = {.hosts = 1, .node = h};

		c.bytes = b->host_out[h] > b->host_in[h] ? b->host_out[h] : b->host_in[h];
		for (uint32_t i = b->adjacent.first[h]; i < b->adjacent.first[h + 1]; i++)
			c.bps += b->link_bps[b->adjacent.links[i]];
		judge(b, &c);
	}
}

/* The cut of that capacity between the groups whose side is 1 and all others. */
static void judge_sides(struct topology_cuts *b, uint64_t bps)
{
	unsigned __int128 out = 0, in = 0;
	struct topology_cut c = {.bps = bps, .node = UINT32_MAX};

	for (uint32_t g = 0; g < b->groups; g++) {
		if (b->side[g] != 1)
			continue;
		c.hosts += b->group_hosts[g];
		if (c.node == UINT32_MAX)
			c.node = b->group_host[g];
		for (uint32_t k = 0; k < b->groups; k++) {
			if (b->side[k] == 1)
				continue;
			out += b->between[(size_t)g * b->groups + k];
			in += b->between[(size_t)k * b->groups + g];
		}
	}
	c.bytes = out > in ? out : in;
	judge(b, &c);
}

/* The side is set: 1 for some groups, 0 for all others. */
static void judge_set(struct topology_cuts *b)
{
	uint32_t in = 0;

	for (uint32_t g = 0; g < b->groups; g++)
		in += b->side[g];
	if (in && in < b->groups)
		judge_sides(b, flow_of(b));
}

/* Sets side[] to the groups that a walk from that switch finds over switches of no higher tier; notes whom it met. */
static void walk(struct topology_cuts *b, uint32_t from, uint8_t tier, uint32_t *met, uint32_t mark)
{
	const struct topology *t = b->topology;
	uint32_t head = 0, tail = 0;

	memset(b->side, 0, b->groups);
	met[from] = mark;
	b->queue[tail++] = from;
	while (head < tail) {
		uint32_t node = b->queue[head++];

		if (b->group_of[node] != UINT32_MAX)
			b->side[b->group_of[node]] = 1;
		for (uint32_t i = b->adjacent.first[node]; i < b->adjacent.first[node + 1]; i++) {
			uint32_t to = topology_link_other(&t->links[b->adjacent.links[i]], node);

			if (to < t->host_count || t->nodes[to].tier > tier || met[to] == mark)
				continue;
			met[to] = mark;
			b->queue[tail++] = to;
		}
	}
}

/* What the tiers up to each one connect: of the first, the hosts of a switch; of the second, a pod. */
static int judge_tiers(struct topology_cuts *b)
{
	const struct topology *t = b->topology;
	uint32_t *met = calloc(t->node_count + 1, sizeof(*met)), mark = 0;
	uint8_t highest = 0;

	if (!met)
		return -ENOMEM;
	for (uint32_t i = t->host_count; i < t->node_count; i++)
		highest = t->nodes[i].tier > highest ? t->nodes[i].tier : highest;
	for (uint8_t tier = 1; tier < highest; tier++) {
		uint32_t first = mark + 1;

		for (uint32_t g = 0; g < b->groups; g++) {
			if (met[b->switch_of[g]] >= first)
				continue;
			walk(b, b->switch_of[g], tier, met, ++mark);
			judge_set(b);
		}
	}
	free(met);
	return 0;
}

static void judge_groups(struct topology_cuts *b)
{
	for (uint32_t g = 0; g < b->groups; g++) {
		memset(b->side, 0, b->groups);
		b->side[g] = 1;
		judge_set(b);
	}
}

static void judge_sites(struct topology_cuts *b)
{
	const struct topology *t = b->topology;

	for (uint32_t site = 0; site <= UINT8_MAX; site++) {
		for (uint32_t g = 0; g < b->groups; g++)
			b->side[g] = t->nodes[b->group_host[g]].site == site;
		judge_set(b);
	}
}

/* The least cuts between all pairs of groups (Gusfield). */
static int judge_pairs(struct topology_cuts *b)
{
	enum { PASSES = 2 };
	uint32_t *parent = calloc(b->groups + 1, sizeof(*parent));

	if (!parent)
		return -ENOMEM;
	for (uint32_t i = 1; i < b->groups; i++) {
		uint64_t bps;

		memset(b->side, PASSES, b->groups);
		b->side[i] = 1;
		b->side[parent[i]] = 0;
		bps = flow_of(b);
		/* The last levels are those of the source's side. */
		for (uint32_t g = 0; g < b->groups; g++)
			b->side[g] = b->level[b->switch_of[g]] != UINT32_MAX;
		for (uint32_t k = i + 1; k < b->groups; k++) {
			if (b->side[k] && parent[k] == parent[i])
				parent[k] = i;
		}
		judge_sides(b, bps);
	}
	free(parent);
	return 0;
}

int topology_cuts_slowest(struct topology_cuts *b, struct topology_cut *out)
{
	int rc = 0;

	b->slowest = (struct topology_cut){0};
	judge_hosts(b);
	if (b->between && b->groups > 1) {
		judge_groups(b);
		judge_sites(b);
		rc = judge_tiers(b);
	}
	if (!rc && b->between && switch_count(b) && b->groups <= CUTS_SWITCHES_MAX)
		rc = judge_pairs(b);
	*out = b->slowest;
	return rc;
}
