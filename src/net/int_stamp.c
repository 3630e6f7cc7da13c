/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In-band telemetry at dequeue (HPCC): the bytes that the port has sent before the packet, and
 * those that wait behind it.
 */
#include "base/int_stack.h"
#include "net/network_state.h"

void int_stamp(struct network *net, const struct port *port, struct packet *p)
{
	const struct int_hop hop = {
		.rate_bps = port->rate_bps,
		.ts_ns = net->now_ps / NS_PS,
		.tx_bytes = port->sent_bytes,
		.qlen_bytes = port->queued_bytes,
	};

	/* A full stack stays unchanged; its hop count shows that it is full. */
	if (p->int_stack && p->flags & PACKET_DATA)
		int_stack_push(p->int_stack, &hop, port->sw->node);
}
