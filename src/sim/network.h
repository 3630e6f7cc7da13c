/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated network: switches and links as a topology names them, and hosts that are whoever
 * attaches to them. Packet level, one event queue, virtual time in picoseconds; the same topology,
 * configuration, seed and hosts give the same events in the same order on every machine. Several
 * networks may run at once, each in a thread of its own: they share nothing.
 *
 * A packet takes wire_bytes at the link's rate to leave a port, then the link's delay, and is in a
 * switch only when it is there as a whole (store and forward).
 */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/endpoint.h"
#include "sim/packet.h"
#include "sim/topology.h"

struct network;

enum {
	NETWORK_ERROR_BYTES = 160,
	NETWORK_RATE_BPS_MIN = 1000
};
#define NETWORK_RATE_BPS_MAX UINT64_C(100000000000000) /* 100 Tbit/s */
#define NETWORK_TIME_PS_MAX  (UINT64_C(1) << 63)        /* 106 days */
#define NETWORK_NEVER_PS     UINT64_MAX

/* Which of several shortest paths a packet takes; a switch decides for itself. */
enum network_routing {
	NETWORK_ECMP,              /* hash of addresses and ports, with a seed a switch */
	NETWORK_FLOWLET,           /* the same, drawn anew after a gap */
	NETWORK_SPRAY_RANDOM,      /* drawn for each packet */
	NETWORK_SPRAY_ROUND_ROBIN, /* in turns, from a random start */
	NETWORK_SPRAY_LEAST_OF_2,  /* the shorter queue of two drawn */
	NETWORK_SPRAY_LEAST        /* the shortest queue, a drawn one of equals */
};

/* All zeroes is a plain network: ECMP, tail drop, no delay in switches. */
struct network_config {
	uint64_t seed;
	uint64_t switch_latency_ps; /* from a whole packet's arrival until it may leave */
	uint32_t port_queue_bytes;  /* waiting in one port of a plain switch; 0: NETWORK_PORT_QUEUE_BYTES */
	enum network_routing routing;
	bool weighted;              /* ECMP and flowlets: ports of one group by their rates */
	uint64_t flowlet_gap_ps;
	uint64_t converge_ps;       /* from a link's failure until routes avoid it; NETWORK_NEVER_PS: they never do */
};

enum { NETWORK_PORT_QUEUE_BYTES = 1 << 20 };

/*
 * Builds the network; borrows nothing of the topology. NULL when it refuses, with the reason in
 * error (what was wrong, and what is allowed).
 */
struct network *network_create(const struct topology *, const struct network_config *,
			       char error[NETWORK_ERROR_BYTES]);
/* Packets that hosts still have become invalid. Harmless on NULL. */
void network_destroy(struct network *);

/* Where a host's packets come from, and go when it has no more use for them. */
struct packet_store *network_packets(struct network *);

/* Makes `object` the host; borrows it until the network is destroyed. A host without one drops what it gets. */
void network_attach(struct network *, uint32_t host, const struct endpoint_ops *, void *object);
/* The host has something to send: it is asked for it as soon as its port is idle. */
void network_kick(struct network *, uint32_t host);
/*
 * Sets the host's one timer, or moves it; NETWORK_NEVER_PS turns it off. A time that has passed is now.
 * A host may move it at every call: that costs next to nothing unless it becomes earlier.
 */
void network_set_timer(struct network *, uint32_t host, uint64_t at_ps);

uint64_t network_now_ps(const struct network *);
uint64_t network_host_rate_bps(const struct network *, uint32_t host);

enum network_stop {
	NETWORK_IDLE,          /* nothing will happen any more */
	NETWORK_UNTIL,         /* the time is up */
	NETWORK_EVENTS,        /* as many events as asked for */
	NETWORK_STOPPED,       /* network_stop() */
	NETWORK_OUT_OF_MEMORY,
	NETWORK_BROKEN         /* an invariant does not hold: network_fault() tells which */
};

/* Lets time pass until until_ps (inclusive, at most NETWORK_TIME_PS_MAX) or for max_events events. */
enum network_stop network_run(struct network *, uint64_t until_ps, uint64_t max_events);
/* Ends network_run() after the present event. For hosts; also from a signal handler. */
void network_stop(struct network *);

struct network_counts {
	uint64_t events;
	uint64_t hops;      /* packets that arrived over a link, PFC frames left out */
	uint64_t packets;   /* put into the network by hosts */
	uint64_t delivered; /* handed to hosts */
	uint64_t dropped;   /* by all reasons together */
	uint64_t inside;    /* now in queues and on wires */
	uint64_t pending;   /* events to come */
};

void network_count(const struct network *, struct network_counts *);

#endif
