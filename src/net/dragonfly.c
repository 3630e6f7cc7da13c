/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ways of a dragonfly that are not minimal. A packet that leaves its group may go first to a switch of a third group and
 * from there on minimally: local, global, local, global, local (Valiant). The first switch decides; which third switch it
 * is follows from the packet's addresses and ports, so every switch of the first group finds the same one, and the packets
 * of a path keep their order. UGAL decides for each packet by the queues of the first switch alone (UGAL-L of Kim, Dally,
 * Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008).
 */
#include "net/network_state.h"

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

/* A switch of a group that is neither; `count` groups of `size` switches, three groups at least. */
static uint32_t middle(const struct network *net, const struct packet *p, uint32_t from, uint32_t goal)
{
	uint32_t size = net->group_switches, count = net->switch_count / size;
	uint32_t low = from < goal ? from : goal, high = from < goal ? goal : from;
	uint64_t ports = (uint64_t)p->sport << 16 | p->dport;
	uint64_t h = mix(mix(((uint64_t)p->src << 32 | p->dst) ^ net->config.seed) + ports);
	uint32_t group = (uint32_t)(h % (count - 2)), within = (uint32_t)(h >> 32) % size;

	group += group >= low;
	group += group >= high;
	return group * size + within;
}

/* Bytes that wait at the first port towards a switch, of those that are equal. */
static uint64_t load_towards(const struct network *net, const struct sim_switch *sw, uint32_t to)
{
	const struct route_table *t = &net->routes;
	const struct route *r = &sw->routes[to];
	const struct port *port = &net->ports[t->members[r->first]];

	return (uint64_t)port->queued_bytes + (port->free_ps > net->now_ps);
}

/* A way by a third group has about twice the links, so the queue of the minimal one may be twice as long. */
static bool detours(const struct network *net, const struct sim_switch *sw, uint32_t to, uint32_t by)
{
	if (net->config.routing == NETWORK_VALIANT)
		return true;
	return load_towards(net, sw, to) > 2 * load_towards(net, sw, by) + net->config.mtu_bytes;
}

uint32_t dragonfly_towards(const struct network *net, const struct sim_switch *sw, struct packet *p, uint32_t to)
{
	const struct route_table *t = &net->routes;
	uint32_t size = net->group_switches, here = sw->index / size, goal = to / size;
	uint32_t first = t->group_of[p->src], from = first / size, by;

	if (here != from || from == goal || net->switch_count / size < 3)
		return to;
	by = middle(net, p, from, goal);
	if (!sw->routes[by].count || !sw->routes[to].count)
		return to;
	if (sw->index == first && detours(net, sw, to, by))
		p->flags |= PACKET_DETOUR;
	return p->flags & PACKET_DETOUR ? by : to;
}
