/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which packet a switch sends next: control before data, as long as its burst allows; the low class
 * only where no other has any; among the other data classes deficit weighted round robin (Shreedhar
 * and Varghese 1995), byte shares in the proportion of the quanta, independent of packet sizes.
 */
#include "net/network_state.h"

static unsigned next_ready(unsigned ready, unsigned after)
{
	unsigned above = ready & ~0u << (after + 1);

	return (unsigned)__builtin_ctz(above ? above : ready);
}

static unsigned data_class(struct network *net, struct port *port, unsigned ready)
{
	unsigned class = port->turn;

	if (!(ready & (ready - 1)))
		return (unsigned)__builtin_ctz(ready);
	for (;;) {
		if (ready & 1u << class && port->deficit_bytes[class] >= port->queues[class].head->wire_bytes)
			break;
		class = next_ready(ready, class);
		port->deficit_bytes[class] += net->config.dwrr_quantum_bytes[class];
	}
	port->turn = (uint8_t) class;
	port->deficit_bytes[class] -= port->queues[class].head->wire_bytes;
	return class;
}

struct packet *sched_next(struct network *net, struct port *port)
{
	unsigned ready = port->ready & (uint8_t)~port->paused;
	unsigned control = ready & 1u << PACKET_CONTROL_CLASS, data = ready & ~control;
	unsigned low = net->config.low_class ? 1u << net->config.low_class : 0;
	unsigned class = PACKET_CONTROL_CLASS;
	struct queue *q;
	struct packet *p;

	if (!ready)
		return NULL;
	if (data && (!control || (net->config.control_burst && port->control_run >= net->config.control_burst))) {
		class = data_class(net, port, data & ~low ? data & ~low : data);
		port->control_run = 0;
	} else {
		port->control_run++;
	}
	q = &port->queues[class];
	p = queue_pop(q);
	if (!q->head) {
		port->ready &= (uint8_t) ~(1u << class);
		port->deficit_bytes[class] = 0;
	}
	return p;
}
