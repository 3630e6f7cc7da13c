/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the network's own files know of it: ports, switches, hosts, and the calls between those files.
 * Nobody else includes this.
 *
 * A port is one direction of a link: the queues at its near end and the wire to its far end. At most
 * two events of a port are pending: the arrival of the first packet on its wire, and, only while
 * packets wait, the end of the packet being sent. The port numbers of a network run over the hosts'
 * ports first (number = host), then over the switches', one switch after the other.
 */
#ifndef SIM_NETWORK_STATE_H
#define SIM_NETWORK_STATE_H

#include "base/prng.h"
#include "sim/event.h"
#include "sim/network.h"
#include "sim/route.h"

/* At equal times, what comes first. */
enum event_class {
	EVENT_CLASS_FAULT,
	EVENT_CLASS_ARRIVE,
	EVENT_CLASS_SEND,
	EVENT_CLASS_TIMER,
	EVENT_CLASS_SAMPLE
};

enum event_what {
	EVENT_ARRIVE, /* port: the first packet on its wire is there */
	EVENT_SEND,   /* port: the wire is free and something may wait */
	EVENT_TIMER   /* host */
};

enum { BYTE_PS_SHIFT = 20, HOPS_MAX = 64, TIMER_EVENTS = 4 };

struct queue {
	struct packet *head, *tail;
	uint32_t bytes, packets;
};

struct port {
	/* The wire. */
	uint64_t free_ps; /* when what is being sent has left */
	struct packet *flight, *flight_last;
	struct sim_switch *to_switch; /* what is at the far end: this or to_host */
	struct host *to_host;
	uint64_t flight_ps;   /* delay, and the latency of the switch at the far end */
	uint64_t byte_ps;     /* << BYTE_PS_SHIFT */
	uint16_t to_number;   /* of `back` among its switch's ports */
	uint8_t ready;        /* classes that have packets waiting */
	uint8_t paused;       /* classes that the far end has paused */
	bool send_pending;    /* an EVENT_SEND is */
	/* The queues. */
	struct sim_switch *sw; /* what is at the near end: this or host */
	struct host *host;
	struct port *back;    /* the other direction of the link */
	uint32_t queued_bytes;
	uint32_t queue_limit_bytes;
	uint64_t sent_bytes, sent_packets;
	struct queue queues[PACKET_CLASSES];
	/* Seldom. */
	uint64_t rate_bps, delay_ps;
	uint32_t link;
	bool down;
} __attribute__((aligned(64)));

struct sim_switch {
	const struct route *routes; /* to each group */
	struct port *ports;
	uint32_t port_count;
	uint32_t index;      /* among switches */
	uint64_t hash_seed;
	struct prng prng;
	uint32_t node;
	uint8_t tier;
};

struct host {
	struct endpoint_ops ops;
	void *object;
	struct port *port;
	struct host *next_kicked;
	bool kicked;
	uint64_t timer_ps;                  /* what the host wants */
	uint64_t timer_events[TIMER_EVENTS]; /* events that are pending for it; NETWORK_NEVER_PS: none */
};

struct network {
	uint64_t now_ps;
	struct host *kicked, **kicked_end;
	volatile bool stop;
	struct packet_store packets;
	struct port *ports;
	struct sim_switch *switches;
	struct host *hosts;
	struct route_table routes;
	uint32_t host_count, switch_count, node_count, port_count, link_count;
	uint32_t *link_ports; /* the port at end a of each link */
	struct network_config config;
	struct network_counts counts;
	struct event_queue events;
};

static inline uint64_t wire_ps(const struct port *port, uint32_t bytes)
{
	return (uint64_t)((unsigned __int128)bytes * port->byte_ps >> BYTE_PS_SHIFT);
}

static inline void queue_push(struct queue *q, struct packet *p)
{
	p->next = NULL;
	if (q->head)
		q->tail->next = p;
	else
		q->head = p;
	q->tail = p;
	q->bytes += p->wire_bytes;
	q->packets++;
}

static inline struct packet *queue_pop(struct queue *q)
{
	struct packet *p = q->head;

	q->head = p->next;
	q->bytes -= p->wire_bytes;
	q->packets--;
	return p;
}

enum drop_reason {
	DROP_QUEUE_FULL,
	DROP_NO_ROUTE,
	DROP_HOPS,
	DROP_NO_HOST,
	DROP_REASONS
};

/* network_build.c */
void port_set_rate(struct port *, uint64_t rate_bps);

/* port.c */
void port_arrive(struct network *, struct port *); /* the event */
void port_send(struct network *, struct port *);   /* the event */
/* Queues the packet at a switch's port, or sends it right away. */
void port_enqueue(struct network *, struct port *, struct packet *);
void port_drop(struct network *, struct port *, struct packet *, enum drop_reason);
/* Asks the host of an idle port for a packet. */
void port_pull(struct network *, struct port *);

/* switch.c */
void switch_receive(struct network *, struct sim_switch *, uint16_t in_port, struct packet *);

/* route_choose.c: the port a packet leaves by; NULL: there is none. */
struct port *route_choose(struct network *, struct sim_switch *, const struct packet *);

#endif
