/* SPDX-License-Identifier: BSD-2-Clause */
/* RED on the present length of the queue, without averaging: random marks between two thresholds. */
#include "net/network_state.h"

enum { PPB = 1000000000 };

static bool draw(struct network *net, struct port *port, uint32_t queue_bytes)
{
	uint64_t above = queue_bytes - port->red_min_bytes;
	uint64_t width = port->red_max_bytes - port->red_min_bytes;

	return prng_below(&port->prng, width * PPB) < above * net->config.red.pmax_ppb;
}

void red_mark(struct network *net, struct port *port, struct packet *p)
{
	uint32_t queue_bytes = port->queues[p->class].bytes;

	if (!(p->flags & PACKET_ECT) || !(net->config.red.classes & 1u << p->class))
		return;
	if (queue_bytes <= port->red_min_bytes)
		return;
	if (queue_bytes <= port->red_max_bytes && !draw(net, port, queue_bytes))
		return;
	p->flags |= PACKET_CE;
	port->marked_packets++;
}
