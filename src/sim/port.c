/* SPDX-License-Identifier: BSD-2-Clause */
/* A port's life: packets wait in its queues, are sent one by one, and are on its wire until they are there. */
#include "sim/network_state.h"

void port_drop(struct network *net, struct port *port, struct packet *p, enum drop_reason reason)
{
	net->counts.dropped++;
	packet_put(&net->packets, p);
}

/* Puts a packet on the wire, which is free. */
static inline void transmit(struct network *net, struct port *port, struct packet *p)
{
	uint64_t end_ps = net->now_ps + wire_ps(port, p->wire_bytes);

	port->free_ps = end_ps;
	port->sent_bytes += p->wire_bytes;
	port->sent_packets++;
	p->time_ps = end_ps + port->flight_ps;
	p->next = NULL;
	if (port->flight) {
		port->flight_last->next = p;
	} else {
		port->flight = p;
		event_push(&net->events, p->time_ps, EVENT_CLASS_ARRIVE, EVENT_ARRIVE, port);
	}
	port->flight_last = p;
}

static inline void send_when_free(struct network *net, struct port *port)
{
	if (port->send_pending)
		return;
	port->send_pending = true;
	event_push(&net->events, port->free_ps, EVENT_CLASS_SEND, EVENT_SEND, port);
}

void port_enqueue(struct network *net, struct port *port, struct packet *p)
{
	if (!port->ready && port->free_ps <= net->now_ps) {
		transmit(net, port, p);
		return;
	}
	if (port->queued_bytes + p->wire_bytes > port->queue_limit_bytes) {
		port_drop(net, port, p, DROP_QUEUE_FULL);
		return;
	}
	queue_push(&port->queues[p->class], p);
	port->queued_bytes += p->wire_bytes;
	port->ready |= (uint8_t)(1u << p->class);
	send_when_free(net, port);
}

void port_pull(struct network *net, struct port *port)
{
	struct host *host = port->host;
	struct packet *p = host->ops.pull(host->object, (uint8_t)~port->paused, net->now_ps);

	if (!p)
		return;
	assert(p->class < PACKET_CLASSES && p->wire_bytes > 0);
	net->counts.packets++;
	transmit(net, port, p);
	send_when_free(net, port);
}

void port_send(struct network *net, struct port *port)
{
	port->send_pending = false;
	if (port->host) {
		port_pull(net, port);
		return;
	}
	unsigned ready = port->ready & (uint8_t)~port->paused;

	if (!ready)
		return;
	unsigned class = (unsigned)__builtin_ctz(ready);
	struct queue *q = &port->queues[class];
	struct packet *p = queue_pop(q);

	if (!q->head)
		port->ready &= (uint8_t)~(1u << class);
	port->queued_bytes -= p->wire_bytes;
	transmit(net, port, p);
	if (port->ready)
		send_when_free(net, port);
}

void port_arrive(struct network *net, struct port *port)
{
	struct packet *p = port->flight;

	port->flight = p->next;
	if (p->next)
		event_push(&net->events, p->next->time_ps, EVENT_CLASS_ARRIVE, EVENT_ARRIVE, port);
	net->counts.hops++;
	if (port->to_switch) {
		switch_receive(net, port->to_switch, port->to_number, p);
		return;
	}
	struct host *host = port->to_host;

	if (!host->ops.arrive) {
		port_drop(net, port, p, DROP_NO_HOST);
		return;
	}
	net->counts.delivered++;
	host->ops.arrive(host->object, p, net->now_ps);
}
