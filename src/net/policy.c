/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls policies that are not the network's own: keeps their state, and fills in what they get. */
#include "net/policy.h"

#include <errno.h>
#include <stdlib.h>

#include "net/network_state.h"

enum { STATE_ALIGN = 16 };

static size_t stride(size_t bytes)
{
	return (bytes + STATE_ALIGN - 1) & ~(size_t)(STATE_ALIGN - 1);
}

int policy_init(struct network *net)
{
	const struct routing_policy *routing = net->config.routing_policy;
	const struct marking_policy *marking = net->config.marking_policy;

	for (uint32_t i = 0; routing && routing->switch_bytes && i < net->switch_count; i++) {
		net->switches[i].routing = calloc(1, routing->switch_bytes);
		if (!net->switches[i].routing)
			return -ENOMEM;
	}
	if (!marking || !marking->port_bytes)
		return 0;
	net->marking_stride = stride(marking->port_bytes);
	net->marking = calloc((size_t)net->port_count - net->host_count + 1, net->marking_stride);
	return net->marking ? 0 : -ENOMEM;
}

void policy_fini(struct network *net)
{
	for (uint32_t i = 0; net->switches && i < net->switch_count; i++)
		free(net->switches[i].routing);
	free(net->marking);
}

static const struct port *port_of(const struct routing_question *q, uint32_t port)
{
	assert(port < q->count);
	return &q->network->ports[q->network->routes.members[q->first + port]];
}

uint64_t routing_load_bytes(const struct routing_question *q, uint32_t port)
{
	const struct port *p = port_of(q, port);

	return (uint64_t)p->queued_bytes + (p->free_ps > q->now_ps);
}

uint64_t routing_rate_bps(const struct routing_question *q, uint32_t port)
{
	return port_of(q, port)->rate_bps;
}

uint32_t policy_choose(struct network *net, struct sim_switch *sw, struct route r, uint32_t group, uint32_t hash,
		       const struct packet *p)
{
	const struct routing_policy *policy = net->config.routing_policy;
	const struct routing_question q = {
		.network = net,
		.sw = sw,
		.now_ps = net->now_ps,
		.count = r.count,
		.group = group,
		.group_count = net->routes.group_count,
		.first = r.first,
		.hash = hash,
		.prng = &sw->prng,
	};

	return policy->choose(policy->parameters, sw->routing, &q, p) % r.count;
}

void policy_mark(struct network *net, struct port *port, struct packet *p)
{
	const struct marking_policy *policy = net->config.marking_policy;
	size_t index = (size_t)(port - net->ports) - net->host_count;
	const struct marking_question q = {
		.now_ps = net->now_ps,
		.rate_bps = port->rate_bps,
		.class_bytes = port->queues[p->class].bytes,
		.port_bytes = port->queued_bytes,
		.prng = &port->prng,
	};
	void *state = net->marking ? net->marking + index * net->marking_stride : NULL;

	if (!policy->marks(policy->parameters, state, &q, p) || p->flags & PACKET_CE || !(p->flags & PACKET_ECT))
		return;
	p->flags |= PACKET_CE;
	port->marked_packets++;
}
