/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses the port by which a packet leaves once it has arrived completely. */
#include "net/network_state.h"

void switch_receive(struct network *net, struct sim_switch *sw, uint16_t in_port, struct packet *p)
{
	struct port *out;

	if (__builtin_expect(sw->features & FEATURE_CREDITS, 0)) {
		credit_arrive_switch(net, sw, in_port, p);
		return;
	}
	p->in_port = in_port;
	if (++p->hops > HOPS_MAX) {
		port_drop(net, &sw->ports[in_port], p, NETWORK_DROP_HOPS);
		return;
	}
	out = route_choose(net, sw, p);
	if (!out) {
		port_drop(net, &sw->ports[in_port], p, NETWORK_DROP_NO_ROUTE);
		return;
	}
	port_enqueue(net, out, p);
}
