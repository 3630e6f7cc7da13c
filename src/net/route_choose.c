/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of the ports towards its destination a packet takes. */
#include "net/network_state.h"

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

/* The member for a random number of 32 bits, each member by its weight. */
static uint32_t pick(const struct route_table *t, struct route r, uint32_t drawn)
{
	if (!t->weights)
		return below(drawn, r.count);
	const uint64_t *sums = &t->weights[r.first];
	uint64_t at = (uint64_t)((unsigned __int128)sums[r.count - 1] * drawn >> 32);
	uint32_t i = 0;

	while (sums[i] <= at)
		i++;
	return i;
}

static uint32_t draw(struct sim_switch *sw, uint32_t n)
{
	return (uint32_t)prng_below(&sw->prng, n);
}

static uint32_t flowlet(const struct network *net, struct sim_switch *sw, struct route r, uint32_t hash)
{
	struct flowlet *f = &sw->flowlets[hash % FLOWLETS];

	if (!f->used || net->now_ps - f->last_ps > net->config.flowlet_gap_ps || f->member >= r.count)
		f->member = pick(&net->routes, r, (uint32_t)prng_next(&sw->prng));
	f->used = true;
	f->last_ps = net->now_ps;
	return f->member;
}

static uint64_t load(const struct network *net, struct route r, uint32_t i)
{
	const struct port *port = &net->ports[net->routes.members[r.first + i]];

	return (uint64_t)port->queued_bytes + (port->free_ps > net->now_ps);
}

static uint32_t least_of_2(const struct network *net, struct sim_switch *sw, struct route r)
{
	uint32_t a = draw(sw, r.count), b = draw(sw, r.count - 1);

	b += b >= a;
	return load(net, r, a) <= load(net, r, b) ? a : b;
}

static uint32_t least(const struct network *net, struct sim_switch *sw, struct route r)
{
	uint32_t best = draw(sw, r.count);
	uint64_t best_load = load(net, r, best);

	for (uint32_t n = 1, i = best; n < r.count && best_load; n++) {
		i = i + 1 < r.count ? i + 1 : 0;
		if (load(net, r, i) < best_load) {
			best = i;
			best_load = load(net, r, i);
		}
	}
	return best;
}

static uint32_t choose(struct network *net, struct sim_switch *sw, struct route r, uint32_t group,
		       const struct packet *p)
{
	if (net->config.routing_policy)
		return policy_choose(net, sw, r, group, flow_hash(sw, p), p);
	switch (net->config.routing) {
	case NETWORK_VALIANT:
	case NETWORK_UGAL:
	case NETWORK_ECMP: return pick(&net->routes, r, flow_hash(sw, p));
	case NETWORK_FLOWLET: return flowlet(net, sw, r, flow_hash(sw, p));
	case NETWORK_SPRAY_RANDOM: return draw(sw, r.count);
	case NETWORK_SPRAY_ROUND_ROBIN: return sw->turns[group]++ % r.count;
	case NETWORK_SPRAY_LEAST_OF_2: return least_of_2(net, sw, r);
	case NETWORK_SPRAY_LEAST: return least(net, sw, r);
	}
	return 0;
}

struct port *route_choose(struct network *net, struct sim_switch *sw, struct packet *p)
{
	const struct route_table *t = &net->routes;

	if (p->dst >= net->host_count)
		return NULL;
	if (__builtin_expect(sw->forwarding != NULL, 0))
		return sw->forwarding[p->dst];
	uint32_t group = t->group_of[p->dst];
	if (__builtin_expect(net->config.routing >= NETWORK_VALIANT, 0))
		group = dragonfly_towards(net, sw, p, group);
	struct route r = sw->routes[group];

	if (t->group_switch[group] == sw->index)
		return net->hosts[p->dst].port->back;
	if (r.count == 0)
		return NULL;
	if (r.count > 1)
		r.first += choose(net, sw, r, group, p);
	return &net->ports[t->members[r.first]];
}
