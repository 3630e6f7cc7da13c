/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the network: ports, switches, hosts, and the calls between the network's own files.
 * No other file includes this.
 *
 * A port is one direction of a link: the queues at its near end and the wire to its far end. At
 * most two events of a port are pending: the arrival of the first packet on its wire, and, only
 * while packets wait, the end of the packet being sent. The port numbers of a network run over the
 * hosts' ports first (number = host), then over the switches', one switch after the other.
 *
 * Private to src/net.
 */
#pragma once

#include "base/prng.h"
#include "net/cores.h"
#include "net/credit.h"
#include "net/event.h"
#include "net/network.h"
#include "net/route.h"
#include "net/topology/topology_subnet.h"
#include "net/vl_arbiter.h"

/* At equal times, what comes first. */
enum event_class {
	EVENT_CLASS_FAULT,
	EVENT_CLASS_ROUTES,
	EVENT_CLASS_ARRIVE,
	EVENT_CLASS_PAUSE,
	EVENT_CLASS_SEND,
	EVENT_CLASS_TIMER,
	EVENT_CLASS_SAMPLE
};

enum event_what {
	EVENT_ARRIVE,    /* port: the first packet on its wire is there */
	EVENT_SEND,      /* port: the wire is free and something may wait */
	EVENT_TIMER,     /* host */
	EVENT_DRAIN,     /* host: the first packet of its receive buffer is due */
	EVENT_FAULT,     /* fault */
	EVENT_PAUSE_END, /* port: a pause may have run out here */
	EVENT_REFRESH,   /* port: pauses that it asked for run out soon */
	EVENT_ROUTES,    /* network: what routes may use has changed */
	EVENT_SAMPLE,    /* network */
	EVENT_CREDIT,    /* port: the far end must hear of its credits */
	EVENT_LEFT,      /* port: the packet that it was sending has left its switch */
	EVENT_LIFETIME,  /* port: the life of a packet that waits for credits may have ended */
	EVENT_WATCH      /* network: packets wait for credits, perhaps in a circle */
};

enum { BYTE_PS_SHIFT = 20, HOPS_MAX = 64, TIMER_EVENTS = 4, NS_PS = 1000, FLOWLETS = 1024 };

struct queue {
	struct packet *head, *tail;
	uint32_t bytes, packets;
};

/* Functions of a port beyond sending; 0 for most ports. */
enum port_special {
	SPECIAL_DOWN = 1 << 0,
	SPECIAL_LOSS = 1 << 1,
	SPECIAL_JITTER = 1 << 2,
	SPECIAL_TAP = 1 << 3,
	SPECIAL_TOLD = 1 << 4, /* a witness sees what is sent */
	SPECIAL_CUT = 1 << 5   /* its link leads to another part of a network that is divided */
};

/* Functions of a switch beyond forwarding. */
enum switch_feature {
	FEATURE_MMU = 1 << 0,
	FEATURE_PFC = 1 << 1,
	FEATURE_RED = 1 << 2,
	FEATURE_INT = 1 << 3,
	FEATURE_TRIM = 1 << 4,
	FEATURE_MARK = 1 << 5, /* by a policy */
	FEATURE_CREDITS = 1 << 6
};

struct port {
	/* The wire. */
	uint64_t free_ps; /* when the packet being sent has left */
	struct packet *flight, *flight_last;
	struct sim_switch *to_switch; /* what is at the far end: this or to_host */
	struct host *to_host;
	uint64_t flight_ps; /* delay, and the latency of the switch at the far end */
	uint64_t byte_ps;   /* << BYTE_PS_SHIFT */
	uint16_t to_number; /* of `back` among its switch's ports */
	uint8_t ready;      /* classes that have packets waiting */
	uint8_t paused;     /* classes that the far end has paused */
	uint8_t special;    /* enum port_special */
	bool send_pending;  /* an EVENT_SEND is */
	bool pause_due;     /* a PFC frame is sent next */
	uint8_t turn;       /* the data class whose turn it is */
	/* The queues. */
	struct sim_switch *sw; /* what is at the near end: this or host */
	struct host *host;
	struct port *back;                       /* the other direction of the link */
	uint32_t queued_bytes, queued_bytes_max; /* max: since it was last asked for */
	uint64_t sent_bytes, sent_packets;
	struct histogram *histogram;
	uint64_t bin_since_ps;      /* when the queue came into the bin of the histogram that it is in */
	struct pfc_port *pfc;       /* NULL: no lossless classes */
	struct credit_port *credit; /* NULL: no credits */
	struct queue queues[PACKET_CLASSES];
	uint32_t deficit_bytes[PACKET_CLASSES];
	uint32_t control_run; /* control packets sent since the last data packet */
	uint32_t red_min_bytes, red_max_bytes;
	uint64_t marked_packets, trimmed_packets;
	struct prng prng; /* marks and coins */
	/* Rarely used. */
	uint64_t rate_bps, delay_ps;
	struct impairment *impairment;
	struct network_drops *drops;
	struct cut *cut; /* with SPECIAL_CUT */
	uint32_t link;
	uint32_t queued_bytes_ever; /* at most, before that */
	bool avoided;               /* by routes, because the link is down */
} __attribute__((aligned(64)));

/* PFC at one port, both ways: what the far end has paused here, and what arrives from it. */
struct pfc_port {
	/* Ingress. */
	uint32_t ingress_bytes[PACKET_CLASSES];  /* in reserve and shared buffer */
	uint32_t headroom_bytes[PACKET_CLASSES]; /* in headroom */
	uint32_t headroom_limit_bytes;
	uint32_t headroom_bytes_max;
	uint8_t alpha_shift; /* HPCC's */
	uint8_t pausing;     /* classes that the far end is asked to pause */
	uint8_t due;         /* classes about which a frame is due */
	bool refresh_pending;
	uint8_t depth_sent;
	uint64_t pauses_sent, resumes_sent;
	/* Egress. */
	uint64_t pauses_received, resumes_received, longest_pause_ps;
	uint64_t until_ps[PACKET_CLASSES], since_ps[PACKET_CLASSES], paused_ps[PACKET_CLASSES];
	uint8_t depth[PACKET_CLASSES], depth_max;
};

static inline bool port_is_ready(const struct port *port)
{
	return port->ready & (uint8_t)~port->paused;
}

/* One lane at one port: what is sent by the port, and the buffer of what comes in by it. */
struct credit_lane {
	struct credit_sender tx;
	struct credit_receiver rx;
	uint16_t fctbs_told, fccl_told; /* in the last flow control packet */
	uint16_t turn;                  /* the input port whose turn at this output is next */
	bool asks;                      /* the buffer's first packet has asked for its way out, */
	struct queue behind;            /* and these are behind it */
	uint64_t head_ps;               /* since when the queue's first packet has been the first */
	uint64_t since_ps;              /* since when it has been blocked, if it is */
	uint64_t waits, waited_ps, waited_ps_max;
};

/* The packet that is being sent, whose buffer is freed when it has left. */
struct leaving {
	bool any;
	uint8_t vl;
	uint16_t in_port, blocks;
};

struct credit_port {
	struct credit_lane lanes[VL_LANES];
	const struct vl_tables *tables; /* the network's, or its own: credit_arbitrate() */
	struct vl_arbiter arbiter;
	struct leaving leaving;
	uint8_t due; /* lanes that a flow control packet is due for */
	bool timer_pending;
	uint64_t frames_sent;
};

struct flowlet {
	uint64_t last_ps;
	uint32_t member; /* of its route */
	bool used;
};

/* SLtoVL from one port to another one. */
struct lane_map {
	uint8_t vl[SUBNET_LEVELS];
};

struct sim_switch {
	const struct route *routes; /* to each group */
	struct port *ports;
	uint32_t port_count;
	uint32_t index;   /* among switches */
	uint8_t features; /* enum switch_feature */
	uint8_t tier;
	uint64_t hash_seed;
	/* Shared memory beyond reserves and headroom. */
	uint64_t shared_bytes, shared_used_bytes;
	struct prng prng;
	struct flowlet *flowlets;
	uint32_t *turns;            /* of round robin, each group's */
	void *routing;              /* a policy's state */
	struct port **forwarding;   /* by host; NULL: routes are shortest paths */
	struct lane_map *lane_maps; /* [in][out], with that */
	uint32_t node;
};

struct host {
	struct endpoint_ops ops;
	void *object;
	struct port *port;
	struct receiver *receiver; /* NULL: takes packets as fast as they come */
	struct host *next_kicked;
	bool kicked;
	uint64_t timer_ps; /* what the host set */
	/* events that are pending for it; NETWORK_NEVER_PS: none */
	uint64_t timer_events[TIMER_EVENTS];
};

struct network {
	uint64_t now_ps;
	uint64_t last_ps; /* of the last event of network_advance() */
	struct host *kicked, **kicked_end;
	volatile bool stop;
	struct packet_store packets;
	struct cores *cores; /* NULL: it is not divided, or is a part */
	void *scratch;
	struct port *ports;
	struct sim_switch *switches;
	struct host *hosts;
	struct pfc_port *pfc_ports;
	struct credit_port *credit_ports;
	uint16_t credit_mtu_blocks;
	bool watch_pending;                /* an EVENT_WATCH is */
	uint8_t *levels;                   /* [source][destination]; NULL: no subnet was set */
	struct lane_map *host_lanes;       /* with that */
	struct network_deadlock *deadlock; /* NULL: none was found */
	uint8_t *marking;                  /* a policy's state, marking_stride bytes of each port of a switch */
	size_t marking_stride;
	struct route_table routes;
	uint32_t host_count, switch_count, node_count, port_count, link_count;
	uint32_t group_switches; /* of each group of a dragonfly; 0: it is none */
	uint32_t *link_ports;    /* the port at end 0 of each link */
	struct network_config config;
	struct network_counts counts;
	struct network_drops drops;
	struct fault *faults; /* all that were ever asked for */
	bool routes_stale;
	uint64_t sample_period_ps;
	network_sampler sampler;
	void *sampler_context;
	bool sample_pending;
	const char *broken;
	bool slow; /* there is a witness, or checks are on */
	network_witness witness;
	void *witness_context;
	struct event_queue events;
};

static inline void port_event(struct network *net, uint64_t at_ps, enum event_class class, enum event_what what,
			      struct port *port)
{
	event_push(&net->events, at_ps, class, what, (uint64_t)(port - net->ports), port);
}

static inline void host_event(struct network *net, uint64_t at_ps, enum event_class class, enum event_what what,
			      struct host *host)
{
	event_push(&net->events, at_ps, class, what, (uint64_t)(host - net->hosts), host);
}

/* Of the whole network. */
static inline void network_event(struct network *net, uint64_t at_ps, enum event_class class, enum event_what what)
{
	event_push(&net->events, at_ps, class, what, 0, net);
}

static inline uint64_t wire_ps(const struct port *port, uint32_t bytes)
{
	return (uint64_t)((unsigned __int128)bytes * port->byte_ps >> BYTE_PS_SHIFT);
}

static inline uint32_t data_bytes(const struct port *port)
{
	return port->queued_bytes - port->queues[PACKET_CONTROL_CLASS].bytes;
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

/* network.c: network_run() of a network that is not divided; and what hosts have requested, now. */
enum network_stop network_advance(struct network *, uint64_t until_ps, uint64_t max_events);
void network_answer(struct network *);

/* network_build.c */
void port_set_rate(struct network *, struct port *, uint64_t rate_bps);
/* How long a byte takes, << BYTE_PS_SHIFT. */
uint64_t rate_byte_ps(uint64_t rate_bps);

/* port.c */
void port_arrive(struct network *, struct port *); /* the event */
void port_send(struct network *, struct port *);   /* the event */
/* Queues the packet at a switch's port, or sends it right away. */
void port_enqueue(struct network *, struct port *, struct packet *);
void port_drop(struct network *, struct port *, struct packet *, enum network_drop);
/* The port's own counts, made if need be; NULL: no memory, and they are not kept. */
struct network_drops *port_drops(struct port *);
/* Asks the host of an idle port for a packet. */
void port_pull(struct network *, struct port *);
/* Hands a packet to its host. */
void host_deliver(struct network *, struct host *, struct packet *);
/* Something that waits may now be sent. */
void port_wake(struct network *, struct port *);
/* Puts a packet on the wire, which is free; counts it. */
void port_transmit(struct network *, struct port *, struct packet *);
/* The same of the PFC frame or flow control packet that is due. */
void port_transmit_frame(struct network *, struct port *);
/* Puts a packet among those on the wire where its time_ps belongs. */
void port_insert_flight(struct network *, struct port *, struct packet *);

/* switch.c */
void switch_receive(struct network *, struct sim_switch *, uint16_t in_port, struct packet *);

/* route_choose.c: the port a packet leaves by; NULL: there is none. */
struct port *route_choose(struct network *, struct sim_switch *, struct packet *);

/* dragonfly.c: the group of hosts towards which the packet goes on, or the switch of a third group with that number. */
uint32_t dragonfly_towards(const struct network *, const struct sim_switch *, struct packet *, uint32_t group);

/* sched.c: takes the next packet that may be sent from a switch's queues; NULL: there is none. */
struct packet *sched_next(struct network *, struct port *);

/* mmu.c */
/* The bytes that may still arrive from the far end of a port after a pause frame was sent. */
uint64_t mmu_headroom_bytes(const struct network *, const struct port *);
/* 0, or -ENOSPC: that node's buffer is not enough for its reserves and headroom. */
int mmu_init(struct network *, uint32_t *node);
/*
 * Room for the packet on its way out of `port`: charges it. Else the reason why not, and nothing
 * done.
 */
enum network_drop mmu_admit(struct network *, struct port *, struct packet *);
/* The packet has left the buffer: what mmu_admit() charged is given back. */
void mmu_release(struct network *, struct sim_switch *, const struct packet *);

/* pfc.c */
/* A frame about a class is due to the far end of a switch's ingress port. */
void pfc_pause(struct network *, struct port *, unsigned class);
void pfc_resume(struct network *, struct port *, unsigned class);
/* Makes the frame that is due at a port; NULL when memory runs out. */
struct packet *pfc_frame(struct network *, struct port *);
/* A frame arrived over `port`; takes it. */
void pfc_receive(struct network *, struct port *, struct packet *);
void pfc_release_all(struct network *, struct port *);
void pfc_expire(struct network *, struct port *);  /* the event */
void pfc_refresh(struct network *, struct port *); /* the event */

/* credits.c; all but credit_init() for networks with credits only */
int credit_init(struct network *); /* 0, or -1: no memory */
struct packet *credit_frame(struct network *, struct port *);
/* A flow control packet arrived over `from`; takes it. */
void credit_receive(struct network *, struct port *from, struct packet *);
void credit_arrive_switch(struct network *, struct sim_switch *, uint16_t in_port, struct packet *);
void credit_arrive_host(struct network *, struct port *, struct packet *);
void credit_send(struct network *, struct port *);     /* the port is idle */
void credit_left(struct network *, struct port *);     /* the event */
void credit_period(struct network *, struct port *);   /* the event */
void credit_lifetime(struct network *, struct port *); /* the event */
void credit_link_up(struct network *, struct port *);  /* both directions begin anew */
void credit_link_down(struct network *, struct port *);
void credit_watch(struct network *);
/* The port has tables of its own from now on, a copy. 0 or -ENOMEM. */
int credit_arbitrate(struct network *, struct port *, const struct vl_tables *);
void credit_fini(struct network *);
void credit_count(const struct network *, const struct port *, struct network_port_counts *);

/* subnet.c; the three in the middle need network_set_subnet() */
uint8_t subnet_level(const struct network *, const struct packet *);
uint8_t subnet_host_lane(const struct network *, const struct packet *);
uint8_t subnet_lane(const struct sim_switch *, const struct port *out, const struct packet *);
void subnet_fini(struct network *);

/* deadlock.c */
void deadlock_look(struct network *); /* the event */

/* red.c: marks the packet or not, by the present length of its class's queue at the port. */
void red_mark(struct network *, struct port *, struct packet *);

/* policy.c */
int policy_init(struct network *); /* 0 or -ENOMEM */
void policy_fini(struct network *);
/* Which of the route's members; asks network_config.routing_policy. */
uint32_t policy_choose(struct network *, struct sim_switch *, struct route, uint32_t group, uint32_t hash,
		       const struct packet *);
/* Asks network_config.marking_policy about the packet that is sent now. */
void policy_mark(struct network *, struct port *, struct packet *);

/*
 * int_stamp.c: appends the port's state to the packet's INT stack; before it is sent and counted.
 */
void int_stamp(struct network *, const struct port *, struct packet *);

/*
 * trim.c: the data packet finds no room at the port: trims it, or another one. False: the caller
 * must drop it.
 */
bool trim_packet(struct network *, struct port *, struct packet **);

/* link.c */
/* Whether the packet that a special port is about to send gets lost; then it is taken. */
bool link_loses(struct network *, struct port *, struct packet *);
uint64_t link_jitter_ps(struct network *, struct port *);
void link_tap(struct network *, struct port *, const struct packet *);
struct fault;
void link_fault(struct network *, struct fault *); /* the event */
/* Frees what link.c keeps. */
void link_fini(struct network *);

/* receiver.c */
void receiver_take(struct network *, struct host *, struct packet *);
void receiver_drain(struct network *, struct host *); /* the event */
uint32_t receiver_packets(const struct receiver *);

/* observe.c */
struct port *network_port(const struct network *, uint32_t link, unsigned end);
/* Counts the time since bin_since_ps for that bin. */
void histogram_add(struct network *, struct port *, uint32_t bin);
/* The port's queued_bytes changes; while it stays in its bin, there is nothing to count. */
static inline void queue_changes(struct network *net, struct port *port, uint32_t bytes)
{
	uint32_t bin = port->queued_bytes / NETWORK_HISTOGRAM_BIN_BYTES;

	port->queued_bytes = bytes;
	if (port->histogram && bin != bytes / NETWORK_HISTOGRAM_BIN_BYTES)
		histogram_add(net, port, bin);
}
void network_take_sample(struct network *); /* the event */
/* Frees what observe.c keeps. */
void observe_fini(struct network *);
/* Fills in the place and calls the witness, which must exist. */
void tell_of_port(struct network *, const struct port *, struct network_record);
/* Reports the event that comes next, if it is about arrivals or hosts. */
void tell_of_event(struct network *, const struct event *);
