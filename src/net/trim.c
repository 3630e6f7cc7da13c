/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet trimming: a data packet that finds no room loses its payload and goes on as a control
 * packet. With the coin of NDP (Handley et al., SIGCOMM 2017) half of the time the last packet that
 * waits is cut instead, so that no flow's phase decides whose packets are cut.
 */
#include "net/network_state.h"

static bool may_cut(const struct network *net, const struct packet *p)
{
	return p->flags & PACKET_TRIMMABLE && p->wire_bytes > net->config.trim_wire_bytes;
}

/* Replaces the last packet of a queue, and returns the packet that was there. */
static struct packet *change_last(struct network *net, struct port *port, struct packet *p)
{
	struct queue *q = &port->queues[p->class];
	struct packet *last = q->tail, **at = &q->head;

	if (port->sw->features & FEATURE_MMU) {
		port->sw->shared_used_bytes -= last->wire_bytes;
		port->sw->shared_used_bytes += p->wire_bytes;
	}
	while (*at != last)
		at = &(*at)->next;
	*at = q->tail = p;
	p->next = NULL;
	q->bytes = q->bytes - last->wire_bytes + p->wire_bytes;
	queue_changes(net, port, port->queued_bytes - last->wire_bytes + p->wire_bytes);
	return last;
}

static void count(struct network_drops *d, const struct packet *p, uint32_t left_bytes)
{
	d->trimmed_packets[p->class]++;
	d->trimmed_bytes[p->class] += p->wire_bytes - left_bytes;
}

bool trim_packet(struct network *net, struct port *port, struct packet **packet)
{
	struct packet *p = *packet;
	const struct packet *last = port->queues[p->class].tail;

	if (p->class == PACKET_CONTROL_CLASS || net->config.lossless_classes & 1u << p->class || !may_cut(net, p))
		return false;
	if (net->config.trim_coin && port->ready & 1u << p->class && may_cut(net, last) &&
	    last->wire_bytes >= p->wire_bytes && prng_next(&port->prng) >> 63)
		p = change_last(net, port, p);
	if (net->config.trim_mark && port->sw->features & FEATURE_RED && !(p->flags & PACKET_CE))
		red_mark(net, port, p);
	count(&net->drops, p, net->config.trim_wire_bytes);
	if (port_drops(port))
		count(port->drops, p, net->config.trim_wire_bytes);
	p->wire_bytes = net->config.trim_wire_bytes;
	p->flags |= PACKET_TRIMMED;
	p->flags &= (uint16_t)~PACKET_TRIMMABLE;
	p->class = PACKET_CONTROL_CLASS;
	port->trimmed_packets++;
	if (net->witness)
		tell_of_port(net, port, (struct network_record){.event = NETWORK_TRIMMED, .packet = p});
	*packet = p;
	return true;
}
