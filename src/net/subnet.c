/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes that are tables: of a subnet whose manager has set them. A packet's service level follows from its two hosts;
 * at each hop the level and the two ports give its lane (IBTA 7.6.6).
 */
#include <errno.h>
#include <stdlib.h>

#include "net/network_state.h"

static struct port *end_at(const struct network *net, const struct topology *t, uint32_t link, uint32_t node)
{
	return network_port(net, link, t->links[link].a != node);
}

static uint32_t number_at(const struct sim_switch *sw, const struct port *port)
{
	return (uint32_t)(port - sw->ports);
}

static int set_forwarding(struct network *net, const struct subnet *s, struct sim_switch *sw)
{
	const uint32_t *links = &s->forwarding[(size_t)sw->index * net->host_count];

	sw->forwarding = calloc(net->host_count, sizeof(struct port *));
	sw->lane_maps = malloc((size_t)sw->port_count * sw->port_count * sizeof(*sw->lane_maps));
	if (!sw->forwarding || !sw->lane_maps)
		return -ENOMEM;
	for (uint32_t h = 0; h < net->host_count; h++) {
		if (links[h] != SUBNET_NONE)
			sw->forwarding[h] = end_at(net, &s->topology, links[h], sw->node);
	}
	for (size_t i = 0; i < (size_t)sw->port_count * sw->port_count; i++) {
		for (uint8_t sl = 0; sl < SUBNET_LEVELS; sl++)
			sw->lane_maps[i].vl[sl] = sl % VL_LANES;
	}
	return 0;
}

static void set_lanes(struct network *net, const struct subnet *s, const struct subnet_lanes *l)
{
	struct lane_map map;

	for (unsigned sl = 0; sl < SUBNET_LEVELS; sl++)
		map.vl[sl] = l->vl[sl];
	if (l->node < net->host_count) {
		net->host_lanes[l->node] = map;
		return;
	}
	struct sim_switch *sw = &net->switches[l->node - net->host_count];
	uint32_t in = number_at(sw, end_at(net, &s->topology, l->in_link, l->node));
	uint32_t out = number_at(sw, end_at(net, &s->topology, l->out_link, l->node));

	sw->lane_maps[in * sw->port_count + out] = map;
}

/* Without credits there are no lanes to arbitrate between. */
static int set_arbitration(struct network *net, const struct subnet *s, const struct subnet_arbitration *a)
{
	bool host = a->node < net->host_count;

	if (!net->credit_ports)
		return 0;
	return credit_arbitrate(net, host ? net->hosts[a->node].port : end_at(net, &s->topology, a->link, a->node),
				&a->tables);
}

int network_set_subnet(struct network *net, const struct subnet *s)
{
	size_t pairs = (size_t)net->host_count * net->host_count;

	if (net->levels || s->topology.host_count != net->host_count || s->topology.node_count != net->node_count ||
	    s->topology.link_count != net->link_count)
		return -EINVAL;
	net->levels = malloc(pairs);
	net->host_lanes = calloc(net->host_count, sizeof(*net->host_lanes));
	if (!net->levels || !net->host_lanes)
		return -ENOMEM;
	for (size_t i = 0; i < pairs; i++)
		net->levels[i] = s->levels[i];
	for (uint32_t h = 0; h < net->host_count; h++) {
		for (uint8_t sl = 0; sl < SUBNET_LEVELS; sl++)
			net->host_lanes[h].vl[sl] = sl % VL_LANES;
	}
	for (uint32_t i = 0; i < net->switch_count; i++) {
		if (set_forwarding(net, s, &net->switches[i]))
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < s->lane_count; i++)
		set_lanes(net, s, &s->lanes[i]);
	for (uint32_t i = 0; i < s->arbitration_count; i++) {
		if (set_arbitration(net, s, &s->arbitrations[i]))
			return -ENOMEM;
	}
	return 0;
}

uint8_t subnet_level(const struct network *net, const struct packet *p)
{
	return net->levels[(size_t)p->src * net->host_count + p->dst];
}

uint8_t subnet_host_lane(const struct network *net, const struct packet *p)
{
	return net->host_lanes[p->src].vl[p->flags >> PACKET_SL_SHIFT];
}

uint8_t subnet_lane(const struct sim_switch *sw, const struct port *out, const struct packet *p)
{
	return sw->lane_maps[p->in_port * sw->port_count + number_at(sw, out)].vl[p->flags >> PACKET_SL_SHIFT];
}

void subnet_fini(struct network *net)
{
	for (uint32_t i = 0; net->switches && i < net->switch_count; i++) {
		free(net->switches[i].forwarding);
		free(net->switches[i].lane_maps);
	}
	free(net->levels);
	free(net->host_lanes);
}
