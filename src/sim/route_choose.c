/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of the ports towards its destination a packet takes. */
#include "sim/network_state.h"

/* A finalizer of 64 bits in which every bit of the input changes every bit of the output. */
static inline uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

static inline uint32_t flow_hash(const struct sim_switch *sw, const struct packet *p)
{
	uint64_t hosts = (uint64_t)p->src << 32 | p->dst;
	uint64_t ports = (uint64_t)p->sport << 16 | p->dport;

	return (uint32_t)mix(mix(hosts ^ sw->hash_seed) + ports);
}

static inline uint32_t below(uint32_t hash, uint32_t n)
{
	return (uint32_t)((uint64_t)hash * n >> 32);
}

struct port *route_choose(struct network *net, struct sim_switch *sw, const struct packet *p)
{
	const struct route_table *t = &net->routes;

	if (p->dst >= net->host_count)
		return NULL;
	uint32_t group = t->group_of[p->dst];
	struct route r = sw->routes[group];

	if (t->group_switch[group] == sw->index)
		return net->hosts[p->dst].port->back;
	if (r.count == 0)
		return NULL;
	if (r.count == 1)
		return &net->ports[t->members[r.first]];
	return &net->ports[t->members[r.first + below(flow_hash(sw, p), r.count)]];
}
