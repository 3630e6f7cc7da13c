/* SPDX-License-Identifier: BSD-2-Clause */
/* A port: packets wait in its queues, are sent one by one, and are on its wire until they arrive. */
#include <stdlib.h>

#include "net/network_state.h"

struct network_drops *port_drops(struct port *port)
{
	if (!port->drops)
		port->drops = calloc(1, sizeof(*port->drops));
	return port->drops;
}

void port_drop(struct network *net, struct port *port, struct packet *p, enum network_drop reason)
{
	if (net->witness)
		tell_of_port(net, port,
			     (struct network_record){.event = NETWORK_DROPPED, .packet = p, .reason = reason});
	if (port_drops(port)) {
		port->drops->packets[p->class][reason]++;
		port->drops->bytes[p->class][reason] += p->wire_bytes;
	}
	net->drops.packets[p->class][reason]++;
	net->drops.bytes[p->class][reason] += p->wire_bytes;
	net->counts.dropped++;
	packet_put(&net->packets, p);
}

void port_insert_flight(struct network *net, struct port *port, struct packet *p)
{
	struct packet **at = &port->flight;

	if (port->flight && port->flight_last->time_ps <= p->time_ps)
		at = &port->flight_last->next;
	while (*at && (*at)->time_ps <= p->time_ps)
		at = &(*at)->next;
	p->next = *at;
	*at = p;
	if (!p->next)
		port->flight_last = p;
	if (port->flight == p)
		port_event(net, p->time_ps, EVENT_CLASS_ARRIVE, EVENT_ARRIVE, port);
}

/* Of a port that may lead to another part. */
static void put_on_wire(struct network *net, struct port *port, struct packet *p)
{
	if (port->special & SPECIAL_CUT)
		cut_send(net, port->cut, p);
	else
		port_insert_flight(net, port, p);
}

static __attribute__((noinline)) void transmit_special(struct network *net, struct port *port, struct packet *p)
{
	if (port->special & SPECIAL_TAP)
		link_tap(net, port, p);
	if (port->special & SPECIAL_TOLD)
		tell_of_port(net, port, (struct network_record){.event = NETWORK_SENT, .packet = p});
	if (link_loses(net, port, p))
		return;
	p->time_ps += link_jitter_ps(net, port);
	put_on_wire(net, port, p);
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
	if (__builtin_expect(port->special, 0)) {
		transmit_special(net, port, p);
		return;
	}
	if (port->flight) {
		/* The last packet arrives later: a PFC frame takes longer, or jitter has ended. */
		if (__builtin_expect(port->flight_last->time_ps > p->time_ps, 0)) {
			port_insert_flight(net, port, p);
			return;
		}
		port->flight_last->next = p;
	} else {
		port->flight = p;
		port_event(net, p->time_ps, EVENT_CLASS_ARRIVE, EVENT_ARRIVE, port);
	}
	port->flight_last = p;
}

void port_transmit(struct network *net, struct port *port, struct packet *p)
{
	transmit(net, port, p);
}

/* A PFC frame or flow control packet goes ahead of all queues, and past a switch's pipeline when it arrives. */
void port_transmit_frame(struct network *net, struct port *port)
{
	struct packet *p = port->credit ? credit_frame(net, port) : pfc_frame(net, port);

	port->pause_due = false;
	if (!p)
		return;
	port->free_ps = net->now_ps + wire_ps(port, p->wire_bytes);
	p->time_ps = port->free_ps + (port->credit ? port->flight_ps : port->delay_ps + net->config.pause_response_ps);
	if (port->special & SPECIAL_TAP)
		link_tap(net, port, p);
	if (port->special & SPECIAL_TOLD)
		tell_of_port(net, port, (struct network_record){.event = NETWORK_SENT, .packet = p});
	if (port->special & SPECIAL_DOWN)
		packet_put(&net->packets, p);
	else
		put_on_wire(net, port, p);
}

static inline void send_when_free(struct network *net, struct port *port)
{
	if (port->send_pending)
		return;
	port->send_pending = true;
	port_event(net, port->free_ps > net->now_ps ? port->free_ps : net->now_ps, EVENT_CLASS_SEND, EVENT_SEND, port);
}

void port_wake(struct network *net, struct port *port)
{
	send_when_free(net, port);
}

static inline void send_from_switch(struct network *net, struct port *port, struct packet *p)
{
	if (p->flags & PACKET_INT && port->sw->features & FEATURE_INT)
		int_stamp(net, port, p);
	if (__builtin_expect(port->sw->features & FEATURE_MARK, 0))
		policy_mark(net, port, p);
	transmit(net, port, p);
}

/* Room for a packet that has to wait, or the reason why there is none. */
static inline enum network_drop admit(struct network *net, struct port *port, struct packet *p)
{
	if (p->class == PACKET_CONTROL_CLASS) {
		if (port->queues[PACKET_CONTROL_CLASS].bytes + p->wire_bytes > net->config.control_queue_bytes)
			return NETWORK_DROP_CONTROL;
	} else if (port->sw->features & FEATURE_MMU) {
		return mmu_admit(net, port, p);
	} else if (data_bytes(port) + p->wire_bytes > net->config.port_queue_bytes) {
		return NETWORK_DROP_QUEUE;
	}
	return NETWORK_DROPS;
}

static inline void wait_in_queue(struct network *net, struct port *port, struct packet *p)
{
	queue_push(&port->queues[p->class], p);
	queue_changes(net, port, port->queued_bytes + p->wire_bytes);
	if (port->queued_bytes > port->queued_bytes_max)
		port->queued_bytes_max = port->queued_bytes;
	port->ready |= (uint8_t)(1u << p->class);
}

void port_enqueue(struct network *net, struct port *port, struct packet *p)
{
	uint8_t bit = (uint8_t)(1u << p->class);
	enum network_drop reason;

	if (port->free_ps <= net->now_ps && !port->send_pending && !(bit & port->paused) &&
	    !(port->ready & (uint8_t)~port->paused)) {
		send_from_switch(net, port, p);
		return;
	}
	reason = admit(net, port, p);
	if (reason != NETWORK_DROPS && port->sw->features & FEATURE_TRIM && trim_packet(net, port, &p))
		reason = admit(net, port, p);
	if (reason != NETWORK_DROPS) {
		port_drop(net, port, p, reason);
		return;
	}
	if (port->sw->features & FEATURE_RED && net->config.red.at_enqueue)
		red_mark(net, port, p);
	wait_in_queue(net, port, p);
	if (port->ready & (uint8_t)~port->paused)
		send_when_free(net, port);
}

void port_pull(struct network *net, struct port *port)
{
	struct host *host = port->host;
	struct packet *p;

	if (__builtin_expect(port->credit != NULL, 0)) {
		credit_send(net, port);
		return;
	}
	p = host->ops.pull(host->object, (uint8_t)~port->paused, net->now_ps);

	if (!p)
		return;
	assert(p->class < PACKET_CLASSES && p->wire_bytes > 0);
	net->counts.packets++;
	transmit(net, port, p);
	send_when_free(net, port);
}

void port_send(struct network *net, struct port *port)
{
	struct packet *p;

	port->send_pending = false;
	if (__builtin_expect(port->credit != NULL, 0)) {
		credit_send(net, port);
		return;
	}
	if (port->pause_due) {
		port_transmit_frame(net, port);
		if (port->host || port->ready & (uint8_t)~port->paused)
			send_when_free(net, port);
		return;
	}
	if (port->host) {
		if (port->host->ops.pull)
			port_pull(net, port);
		return;
	}
	p = sched_next(net, port);
	if (!p)
		return;
	queue_changes(net, port, port->queued_bytes - p->wire_bytes);
	if (port->sw->features & FEATURE_MMU && p->class != PACKET_CONTROL_CLASS)
		mmu_release(net, port->sw, p);
	if (port->sw->features & FEATURE_RED && !net->config.red.at_enqueue)
		red_mark(net, port, p);
	send_from_switch(net, port, p);
	if (port->pause_due || port->ready & (uint8_t)~port->paused)
		send_when_free(net, port);
}

static __attribute__((noinline)) void arrive_special(struct network *net, struct port *port, struct packet *p)
{
	if (p->flags & PACKET_CREDITS)
		credit_receive(net, port, p);
	else if (p->flags & PACKET_PAUSE)
		pfc_receive(net, port, p);
	else
		port_drop(net, port, p, NETWORK_DROP_CORRUPT);
}

void host_deliver(struct network *net, struct host *host, struct packet *p)
{
	if (!host->ops.arrive) {
		port_drop(net, host->port->back, p, NETWORK_DROP_NO_HOST);
		return;
	}
	net->counts.delivered++;
	host->ops.arrive(host->object, p, net->now_ps);
}

void port_arrive(struct network *net, struct port *port)
{
	struct packet *p = port->flight;

	/*
	 * The packet that this event was about has been overtaken, or was lost with the link. How often that happens depends
	 * on whether the network is divided: it does not count.
	 */
	if (!p || p->time_ps > net->now_ps) {
		net->counts.events--;
		return;
	}
	port->flight = p->next;
	if (p->next) {
		port_event(net, p->next->time_ps, EVENT_CLASS_ARRIVE, EVENT_ARRIVE, port);
		/* The next two arrivals read memory that is cold, as it was written long ago. */
		__builtin_prefetch(p->next->next);
		if (port->to_host)
			__builtin_prefetch(p->next->body);
	}
	if (__builtin_expect(p->flags & (PACKET_PAUSE | PACKET_CORRUPT), 0)) {
		arrive_special(net, port, p);
		return;
	}
	net->counts.hops++;
	if (port->to_switch) {
		switch_receive(net, port->to_switch, port->to_number, p);
		return;
	}
	struct host *host = port->to_host;

	if (__builtin_expect(port->credit != NULL, 0))
		credit_arrive_host(net, port->back, p);
	else if (__builtin_expect(host->receiver && p->class != PACKET_CONTROL_CLASS, 0))
		receiver_take(net, host, p);
	else
		host_deliver(net, host, p);
}
