/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shortest paths: a search from each group's switch outwards, over switches only, then for each
 * switch the ports that lead one step nearer. A set of ports that a switch has used before is not
 * stored again; a look-up by its first port nearly always finds it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/network_state.h"

enum { UNREACHED = UINT32_MAX, FIRST_MEMBERS = 1024 };

/* A port between switches, which routes may use. */
struct edge {
	uint32_t to, port;
};

struct search {
	struct edge *edges;
	uint32_t *first;    /* edge of each switch, and one more for the end */
	uint32_t *distance; /* of each switch from the group's */
	uint32_t *queue;    /* of switches */
	bool *wide;         /* of each: it is reached by crossing between groups twice or more */
	struct route *last; /* that began with each port */
	uint32_t reached;
};

void route_fini(struct route_table *t)
{
	free(t->group_of);
	free(t->group_switch);
	free(t->routes);
	free(t->members);
	free(t->weights);
	*t = (struct route_table){0};
}

/* Switches that have hosts, in the order of the first host that each has. */
static int find_groups(struct network *net, struct route_table *t, uint32_t *of_switch)
{
	t->group_of = malloc(net->host_count * sizeof(*t->group_of));
	t->group_switch = malloc(net->host_count * sizeof(*t->group_switch));
	if (!t->group_of || !t->group_switch)
		return -ENOMEM;
	for (uint32_t i = 0; i < net->switch_count; i++)
		of_switch[i] = UNREACHED;
	for (uint32_t h = 0; h < net->host_count; h++) {
		struct sim_switch *sw = net->hosts[h].port->to_switch;

		if (!sw) { /* two hosts and one link: there is no switch */
			t->group_of[h] = 0;
			continue;
		}
		if (of_switch[sw->index] == UNREACHED) {
			of_switch[sw->index] = t->group_count;
			t->group_switch[t->group_count++] = sw->index;
		}
		t->group_of[h] = of_switch[sw->index];
	}
	return 0;
}

/* Ports are large, and edges are visited once for each group. */
static void find_edges(struct network *net, struct search *s)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < net->switch_count; i++) {
		const struct sim_switch *sw = &net->switches[i];

		s->first[i] = count;
		for (uint32_t j = 0; j < sw->port_count; j++) {
			const struct port *port = &sw->ports[j];

			if (port->to_switch && !port->avoided)
				s->edges[count++] =
					(struct edge){port->to_switch->index, (uint32_t)(port - net->ports)};
		}
	}
	s->first[net->switch_count] = count;
}

/* Whether an edge leaves a group of a dragonfly other than that of the way's end, so that the way would cross twice. */
static bool crosses_again(const struct network *net, uint32_t end, uint32_t near, uint32_t far)
{
	uint32_t size = net->group_switches;

	return size && near / size != end / size && near / size != far / size;
}

/* Links go down in both directions, so paths away from a switch are paths towards it. */
static void search_from(struct network *net, struct search *s, uint32_t from)
{
	uint32_t head = 0, tail = 0;

	for (uint32_t i = 0; i < net->switch_count; i++)
		s->distance[i] = UNREACHED;
	s->distance[from] = 0;
	s->wide[from] = false;
	s->queue[tail++] = from;
	for (int pass = 0; pass < 2 && tail < net->switch_count; pass++) {
		/* Groups that no link joins any more are reached by a third one. */
		for (head = 0; head < tail;) {
			uint32_t at = s->queue[head++];

			for (uint32_t i = s->first[at]; i < s->first[at + 1]; i++) {
				uint32_t next = s->edges[i].to;

				if (s->distance[next] != UNREACHED || (!pass && crosses_again(net, from, at, next)))
					continue;
				s->distance[next] = s->distance[at] + 1;
				s->wide[next] = pass;
				s->queue[tail++] = next;
			}
		}
	}
	s->reached = tail;
}

/* Members' rates, summed up along each route. Routes that share members share these, too. */
static int find_weights(struct network *net, struct route_table *t)
{
	t->weights = calloc((size_t)t->member_count + 1, sizeof(*t->weights));
	if (!t->weights)
		return -ENOMEM;
	for (size_t i = 0; i < (size_t)t->group_count * t->switch_count; i++) {
		struct route r = t->routes[i];
		uint64_t sum = 0;

		if (!r.count || t->weights[r.first])
			continue;
		for (uint32_t m = 0; m < r.count; m++) {
			sum += net->ports[t->members[r.first + m]].rate_bps;
			t->weights[r.first + m] = sum;
		}
	}
	return 0;
}

static int members_room(struct route_table *t, uint32_t more)
{
	uint64_t size = t->member_size ? t->member_size : FIRST_MEMBERS;
	uint32_t *members;

	if (t->member_count + (uint64_t)more <= t->member_size)
		return 0;
	while (size < t->member_count + (uint64_t)more)
		size *= 2;
	if (size > UINT32_MAX)
		return -ENOMEM;
	members = realloc(t->members, size * sizeof(*members));
	if (!members)
		return -ENOMEM;
	t->members = members;
	t->member_size = (uint32_t)size;
	return 0;
}

/* The ports of one switch that lead one step nearer. */
static int find_route(const struct network *net, struct route_table *t, struct search *s, uint32_t end, uint32_t at,
		      struct route *route)
{
	uint32_t near = s->distance[at] - 1;
	struct route r = {t->member_count, 0};

	*route = (struct route){0, 0};
	if (s->distance[at] == UNREACHED || s->distance[at] == 0)
		return 0;
	if (members_room(t, s->first[at + 1] - s->first[at]))
		return -ENOMEM;
	for (uint32_t i = s->first[at]; i < s->first[at + 1]; i++) {
		uint32_t to = s->edges[i].to;

		if (s->distance[to] == near && (s->wide[at] || !crosses_again(net, end, to, at)))
			t->members[r.first + r.count++] = s->edges[i].port;
	}
	assert(r.count > 0);
	struct route *last = &s->last[t->members[r.first]];

	if (last->count == r.count &&
	    !memcmp(&t->members[last->first], &t->members[r.first], r.count * sizeof(*t->members))) {
		*route = *last;
		return 0;
	}
	t->member_count += r.count;
	*last = *route = r;
	return 0;
}

static int build(struct network *net, struct route_table *t, struct search *s, uint32_t unreachable[2])
{
	uint32_t *of_switch = s->queue;
	bool whole = true;

	if (find_groups(net, t, of_switch))
		return -ENOMEM;
	find_edges(net, s);
	t->switch_count = net->switch_count;
	t->routes = malloc(((size_t)t->group_count * net->switch_count + 1) * sizeof(*t->routes));
	if (!t->routes)
		return -ENOMEM;
	for (uint32_t g = 0; g < t->group_count; g++) {
		search_from(net, s, t->group_switch[g]);
		for (uint32_t i = 0; i < net->switch_count; i++) {
			struct route *route = &t->routes[(size_t)i * t->group_count + g];

			if (find_route(net, t, s, t->group_switch[g], i, route))
				return -ENOMEM;
		}
		for (uint32_t h = 0; h < net->host_count && whole && s->reached < net->switch_count; h++) {
			if (s->distance[t->group_switch[t->group_of[h]]] != UNREACHED)
				continue;
			unreachable[0] = h;
			for (uint32_t d = 0; d < net->host_count; d++) {
				if (t->group_of[d] == g)
					unreachable[1] = d;
			}
			whole = false;
		}
	}
	if (net->config.weighted && find_weights(net, t))
		return -ENOMEM;
	return whole ? 0 : -ENETUNREACH;
}

int route_build(struct network *net, uint32_t unreachable[2])
{
	struct route_table t = {0};
	struct search s = {
		.distance = malloc((net->switch_count + 1) * sizeof(*s.distance)),
		.queue = malloc((net->switch_count + 1) * sizeof(*s.queue)),
		.wide = malloc((net->switch_count + 1) * sizeof(*s.wide)),
		.edges = malloc((net->port_count + 1) * sizeof(*s.edges)),
		.first = malloc((net->switch_count + 1) * sizeof(*s.first)),
		.last = calloc(net->port_count + 1, sizeof(*s.last)),
	};
	int r = -ENOMEM;

	if (s.distance && s.queue && s.wide && s.edges && s.first && s.last)
		r = build(net, &t, &s, unreachable);
	free(s.distance);
	free(s.queue);
	free(s.wide);
	free(s.edges);
	free(s.first);
	free(s.last);
	if (r == -ENOMEM) {
		route_fini(&t);
		return r;
	}
	route_fini(&net->routes);
	net->routes = t;
	for (uint32_t i = 0; i < net->switch_count; i++)
		net->switches[i].routes = &t.routes[(size_t)i * t.group_count];
	return r;
}
