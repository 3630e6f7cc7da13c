/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated network: switches and links as a topology names them, and hosts that callers
 * attach. Packet level, one event queue, virtual time in picoseconds; the same topology,
 * configuration, seed and hosts give the same events in the same order on every machine. Several
 * networks may run at once, each in a thread of its own: they share nothing.
 *
 * A packet takes wire_bytes at the link's rate to leave a port, then the link's delay, and is in a
 * switch only when it is there as a whole (store and forward).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/endpoint.h"
#include "net/packet.h"
#include "net/policy.h"
#include "net/topology/topology.h"
#include "net/vl_arbiter.h"

struct network;

enum {
	NETWORK_ERROR_BYTES = 160,
	NETWORK_RATE_BPS_MIN = 1000,
	NETWORK_HISTOGRAM_BIN_BYTES = 1024,
};
#define NETWORK_RATE_BPS_MAX UINT64_C(100000000000000) /* 100 Tbit/s */
#define NETWORK_TIME_PS_MAX  (UINT64_C(1) << 63)       /* 106 days */
#define NETWORK_NEVER_PS     UINT64_MAX

/* Which of several shortest paths a packet takes; a switch decides for itself. */
enum network_routing {
	NETWORK_ECMP,              /* hash of addresses and ports, with a seed a switch */
	NETWORK_FLOWLET,           /* the same, drawn anew after a gap */
	NETWORK_SPRAY_RANDOM,      /* drawn for each packet */
	NETWORK_SPRAY_ROUND_ROBIN, /* in turns, from a random start */
	NETWORK_SPRAY_LEAST_OF_2,  /* the shorter queue of two drawn */
	NETWORK_SPRAY_LEAST,       /* the shortest queue, a drawn one of equals */
	/* of a dragonfly, without credits: by a third group, or so if the queue on the minimal way is twice as long; else ECMP */
	NETWORK_VALIANT,
	NETWORK_UGAL
};

/* The rule for when to pause (congestion-control notes, 2.3). */
enum network_pfc {
	NETWORK_PFC, /* thresholds from alpha, headroom from physics, quanta and refresh */
	/* as the reference simulator of HPCC: 1/8 of what is free, pause without a timer */
	NETWORK_PFC_HPCC
};

/*
 * Links with credits, as InfiniBand's (IBTA 7.9). Packets' classes are their virtual lanes on the host's link; a
 * packet's wire_bytes are LRH to VCRC and CREDIT_DELIMITER_BYTES. No class has strict priority, there is no shared
 * buffer, no mark and no trimming. Losses of a link cost no credits for longer than until the next flow control packet.
 */
struct network_credits {
	/* of each port and lane, at hosts too; at least mtu_bytes. 0: links have no credits */
	uint32_t buffer_bytes;
	/* packets queue at their way out, not behind the first one that came in by their port and lane */
	bool queue_per_output;
	/* a packet that has been a queue's first for so long without credits is dropped; 0: never */
	uint64_t lifetime_ps;
	struct vl_tables arbitration; /* no entries: all lanes alike, a packet of 4 KiB each */
};

/* RED on a packet's queue, for each class in the mask; it marks PACKET_ECT packets. */
struct network_red {
	uint8_t classes; /* a mask; 0: no marks */
	/* by the queue that a packet finds; else by the one behind it */
	bool at_enqueue;
	uint32_t kmin_bytes; /* no mark up to here */
	uint32_t kmax_bytes; /* a mark always above; in between up to pmax */
	uint32_t pmax_ppb;
	/* the port rate for which kmin and kmax hold; others scale them. 0: no scaling */
	uint64_t rate_bps;
};

/*
 * network_config_init() gives a plain network: ECMP, queues of one size with tail drop, no delay in
 * switches, and defaults for the features that are off.
 */
struct network_config {
	uint64_t seed;
	uint64_t switch_latency_ps; /* from a whole packet's arrival until it may leave */

	enum network_routing routing;
	const struct routing_policy *routing_policy; /* instead of that; borrowed as long as the network lives */
	bool weighted;                               /* ECMP and flowlets: ports of one group by their rates */
	uint64_t flowlet_gap_ps;
	/* from a link's failure until routes avoid it; NETWORK_NEVER_PS: they never do */
	uint64_t converge_ps;

	/* data that waits in one port, where there is no shared buffer */
	uint32_t port_queue_bytes;
	uint32_t control_queue_bytes;                /* control class that waits in one port */
	uint32_t dwrr_quantum_bytes[PACKET_CLASSES]; /* shares of the data classes */
	uint8_t low_class; /* a data class that a port sends only while it can send no other; 0: there is none */
	/* of control packets before a data packet that waits; 0: no limit */
	uint32_t control_burst;

	/* shared by the ports of a switch; 0: port_queue_bytes each */
	uint64_t buffer_bytes;
	/* of each node, instead; read by network_create() only. NULL: all alike */
	const uint64_t *node_buffer_bytes;
	/* -6 .. 3: a class's share of what is free, lossless or not */
	int8_t alpha_log2[PACKET_CLASSES];
	uint32_t class_queue_bytes; /* most of a lossy class in one port; 0: no limit */

	uint8_t lossless_classes; /* a mask; needs a shared buffer */
	enum network_pfc pfc;
	/* NETWORK_PFC: of each ingress port and lossless class. HPCC's is 4 KiB a port */
	uint32_t reserve_bytes;
	/* of each ingress port and lossless class; 0: by rate and delay */
	uint32_t headroom_bytes;
	/* below the threshold, until a class is resumed; HPCC's is 3 KiB */
	uint32_t resume_offset_bytes;
	uint32_t mtu_bytes;         /* the largest packet's wire_bytes, for headroom */
	uint32_t pause_wire_bytes;  /* a PFC frame's */
	uint64_t pause_response_ps; /* from the whole frame's arrival to its effect */
	uint16_t pause_quanta;      /* of 512 bit times; refreshed at half of it */
	/* no resume frames: a pause that is not refreshed runs out. Not with NETWORK_PFC_HPCC */
	bool no_resume_frames;

	struct network_credits credits;
	struct network_red red;
	const struct marking_policy *marking_policy; /* beside RED; borrowed as long as the network lives. NULL: none */
	bool int_stamp;                              /* packets with PACKET_INT */
	/* what is left of a PACKET_TRIMMABLE packet that finds no room; 0: it is dropped */
	uint32_t trim_wire_bytes;
	/* heads: the last waiting packet is cut, and the new one takes its place */
	bool trim_coin;
	/* RED also marks the trimmed packet, by the data queue that was full */
	bool trim_mark;

	bool check; /* invariants after every event; slow */
};

/* The defaults, as docs/simulator.md has them. */
void network_config_init(struct network_config *);

/*
 * Builds the network; borrows nothing of the topology. NULL with the reason in error: what is
 * wrong, and what is allowed.
 */
struct network *network_create(const struct topology *, const struct network_config *, char error[NETWORK_ERROR_BYTES]);
/* Packets that hosts still hold become invalid. Harmless on NULL. */
void network_destroy(struct network *);

/* The store from which a host takes packets, and to which it returns them. */
struct packet_store *network_packets(struct network *);
/*
 * Memory that all hosts share, for use within one of their calls; aligned to 64. The first call sets its size.
 * NULL: no memory.
 */
void *network_scratch(struct network *, size_t bytes);

/*
 * Makes `object` the host; borrows it until the network is destroyed. A host without an object
 * drops its packets.
 */
void network_attach(struct network *, uint32_t host, const struct endpoint_ops *, void *object);
/* The object attached, for a caller that puts another one between it and the network. */
struct endpoint_ops network_endpoint(const struct network *, uint32_t host, void **object);
struct subnet; /* net/topology/topology_subnet.h */
/*
 * From now on packets take the ways of these tables, instead of shortest paths; once, before the first packet. On links
 * with credits their lanes are those that the tables say, by the two hosts, not by the class. A link that is down stays
 * in the tables. 0, -ENOMEM, or -EINVAL: the network has another topology.
 */
int network_set_subnet(struct network *, const struct subnet *);

/* The host has something to send: the network pulls it as soon as the host's port is idle. */
void network_kick(struct network *, uint32_t host);
/*
 * Sets the host's one timer, or moves it; NETWORK_NEVER_PS turns it off. A time that has passed is
 * now. A host may move it at every call: that costs next to nothing unless it becomes earlier.
 */
void network_set_timer(struct network *, uint32_t host, uint64_t at_ps);

/*
 * Makes the host a slow receiver; only once. Packets that are not control wait in a buffer of so
 * many bytes and arrive at the drain rate; lossless classes are paused in time. 0, -ENOMEM, or
 * -EINVAL: no such host, a buffer of no more than network_receiver_headroom_bytes() or of 2 GiB, a
 * rate outside NETWORK_RATE_BPS_MIN and _MAX.
 */
int network_set_receiver(struct network *, uint32_t host, uint64_t buffer_bytes, uint64_t drain_bps);
/*
 * The part of a slow receiver's buffer that is kept for packets that come while its pause is on its
 * way.
 */
uint64_t network_receiver_headroom_bytes(const struct network *, uint32_t host);

/* Simulated time; and the rate of a host's link at the moment. */
uint64_t network_now_ps(const struct network *);
uint64_t network_host_rate_bps(const struct network *, uint32_t host);

/*
 * Links are named by their number in the topology, and a direction by the end it comes from: 0 for
 * link.a, 1 for link.b. The port at that end has the same name.
 */

/* Faults of one direction of a link; a packet's fate is decided when its first bit is sent. */
struct network_loss {
	/* each packet independently; in Gilbert-Elliott's good state */
	uint32_t loss_ppb;
	uint32_t good_to_bad_ppb; /* Gilbert-Elliott, a step a packet; 0: there is no bad state */
	uint32_t bad_to_good_ppb;
	uint32_t bad_loss_ppb;
	/* of those not lost: takes all its time on the wire, and is counted on arrival */
	uint32_t corrupt_ppb;
};

/* 0, or -EINVAL when there is no such link, or a probability is above 10^9; -ENOMEM. */
int network_set_loss(struct network *, uint32_t link, unsigned end, const struct network_loss *);
/* The n-th (from 0) PACKET_DATA packet of a flow that is sent on this link from now on is lost. */
int network_lose_packet(struct network *, uint32_t link, unsigned end, uint32_t flow, uint64_t n);
/* Each packet is late by up to so much, drawn; packets overtake each other. A test tool; not on links with credits. */
int network_set_jitter(struct network *, uint32_t link, unsigned end, uint64_t jitter_ps);
/*
 * Both directions. Packets on the wire when a link goes down, and packets sent into it, are lost;
 * routes follow after converge_ps. A new rate counts from the next packet on; the link stays in its
 * groups.
 */
int network_link_down(struct network *, uint32_t link, uint64_t at_ps);
int network_link_up(struct network *, uint32_t link, uint64_t at_ps);
int network_link_rate(struct network *, uint32_t link, uint64_t at_ps, uint64_t rate_bps);

enum network_stop {
	NETWORK_IDLE,    /* nothing will happen any more */
	NETWORK_UNTIL,   /* the time is up */
	NETWORK_EVENTS,  /* as many events as asked for */
	NETWORK_STOPPED, /* network_stop() */
	NETWORK_OUT_OF_MEMORY,
	NETWORK_DEADLOCK, /* buffers wait for each other for ever: network_deadlock() has them */
	NETWORK_BROKEN    /* an invariant does not hold: network_fault() says which */
};

/*
 * Advances time to until_ps (inclusive, at most NETWORK_TIME_PS_MAX) or by max_events events. If no
 * event is left, time is until_ps afterwards, too, unless that is NETWORK_TIME_PS_MAX.
 */
enum network_stop network_run(struct network *, uint64_t until_ps, uint64_t max_events);
/*
 * Divides the network into `count` parts, each with switches and their hosts, which network_run() gives a thread each.
 * All results are the same as undivided, but network_run() may run more events than it was asked for. To be called once,
 * before hosts are attached; a host then passes network_of_host() to the calls that it makes itself. The hosts' calls
 * come from several threads, those of one host always one after the other.
 *
 * Before each window the caller of network_run() is asked by apart(ctx, end_ps), while no other thread runs, whether the
 * parts may run apart up to end_ps, and once more when no window follows. False: network_stop() may be called by then,
 * and has to end the network at once.
 *
 * 0, or -EINVAL with the reason in error. Not with credits or checks, and not with a witness or taps later.
 */
struct network_cores {
	uint32_t count; /* 2 or more */
	bool (*apart)(void *ctx, uint64_t end_ps);
	void *ctx;
};

int network_divide(struct network *, const struct network_cores *, char error[NETWORK_ERROR_BYTES]);
/* The part that the host is in; the network itself, if it is not divided. And that part's number, from 0. */
struct network *network_of_host(struct network *, uint32_t host);
uint32_t network_part(const struct network *, uint32_t host);
/* Parts run apart at the moment: for hosts. */
bool network_is_apart(const struct network *);

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
	uint64_t pauses;    /* PFC frames sent that ask for a pause */
};

/* Copies what was counted up to now. */
void network_count(const struct network *, struct network_counts *);

/* Why a packet was lost. */
enum network_drop {
	NETWORK_DROP_QUEUE,     /* the data queue, or its share of the buffer, is full */
	NETWORK_DROP_CONTROL,   /* the control queue is full */
	NETWORK_DROP_HEADROOM,  /* a lossless class's headroom is full: must not happen */
	NETWORK_DROP_LINK_LOSS, /* by chance or by list */
	NETWORK_DROP_CORRUPT,
	NETWORK_DROP_LINK_DOWN,
	NETWORK_DROP_NO_ROUTE,
	NETWORK_DROP_HOPS,     /* too many switches */
	NETWORK_DROP_RECEIVER, /* a slow receiver's buffer is full */
	NETWORK_DROP_NO_HOST,  /* no host is attached */
	NETWORK_DROP_CREDITS,  /* there was no room in spite of credits: must not happen */
	NETWORK_DROP_LIFETIME, /* it waited too long for credits */
	NETWORK_DROPS
};

/*
 * Packets dropped or trimmed at one port, or everywhere. A loss in a switch counts at the port by
 * which the packet would have left; a packet with too many hops, or without a route, at the port it
 * came in by.
 */
struct network_drops {
	uint64_t packets[PACKET_CLASSES][NETWORK_DROPS];
	uint64_t bytes[PACKET_CLASSES][NETWORK_DROPS];
	/* not lost: they arrive without that many bytes of payload; by their former class */
	uint64_t trimmed_packets[PACKET_CLASSES], trimmed_bytes[PACKET_CLASSES];
};

struct network_port_counts {
	uint64_t rate_bps;                 /* now: network_link_rate() changes it */
	uint64_t sent_packets, sent_bytes; /* PFC frames left out */
	uint64_t marked_packets, trimmed_packets;
	uint32_t queue_bytes, queue_bytes_max;
	/* PFC: the pauses that this port received and sent. */
	uint64_t pauses_received, resumes_received, pauses_sent, resumes_sent;
	uint64_t paused_ps[PACKET_CLASSES], longest_pause_ps;
	uint32_t headroom_bytes_max; /* headroom used for packets from the far end */
	/* 1: the far end paused by itself; n: because it was paused at depth n - 1 */
	uint8_t pause_depth_max;
	/* Links with credits: paused_ps and longest_pause_ps are of lanes that waited for credits. */
	uint64_t credit_waits, credit_frames_sent;
	uint32_t buffer_blocks_max; /* of a lane's buffer, the most that packets from the far end filled */
};

/* A lane of one direction of a link. */
struct network_lane {
	uint32_t link;
	uint8_t end, vl;
};

enum { NETWORK_DEADLOCK_LANES = 32 };
#define NETWORK_DEADLOCK_PERIOD_PS UINT64_C(100000000) /* how often waiting buffers are looked at */

/* Buffers of switches whose packets wait for room in the next one, in a circle; each lane leads from one to the next.
 */
struct network_deadlock {
	uint64_t found_ps;
	uint32_t count; /* of lanes in the circle; the first NETWORK_DEADLOCK_LANES are named */
	struct network_lane lanes[NETWORK_DEADLOCK_LANES];
};

/* The deadlock that ended network_run(); NULL: there is none. With a lifetime of packets none is looked for. */
const struct network_deadlock *network_deadlock(const struct network *);

/* False: there is no such link. */
bool network_count_port(const struct network *, uint32_t link, unsigned end, struct network_port_counts *);
void network_count_drops(const struct network *, struct network_drops *);
bool network_count_port_drops(const struct network *, uint32_t link, unsigned end, struct network_drops *);
/* How many bytes wait in a port now; a cheap call, for sampling. */
uint32_t network_queue_bytes(const struct network *, uint32_t link, unsigned end);
/* The most bytes that waited in it since the last call. */
uint32_t network_queue_longest_bytes(struct network *, uint32_t link, unsigned end);

/*
 * From now on records how long a port's queue had each length: `bins` of
 * NETWORK_HISTOGRAM_BIN_BYTES, the last one also for longer queues. 0, -EINVAL, -ENOMEM.
 */
int network_watch_queue(struct network *, uint32_t link, unsigned end, uint32_t bins);
/*
 * The time in each bin up to now, lent until the network is run or destroyed; NULL: not recorded.
 * *bins: those that the queue ever reached, and perhaps more; at most as many as network_watch_queue()
 * was given.
 */
const uint64_t *network_queue_histogram(struct network *, uint32_t link, unsigned end, uint32_t *bins);

/*
 * Called each period while other events are pending, after all else at that time. One at a time;
 * NULL ends it. The sampler may ask for another period, which begins then.
 */
typedef void (*network_sampler)(void *context, struct network *, uint64_t now_ps);
void network_sample(struct network *, uint64_t period_ps, network_sampler, void *context);

/*
 * Shows each packet whose first bit a port sends, PFC frames and packets that will be lost
 * included. The packet is lent for the call.
 */
typedef void (*network_tap)(void *context, const struct packet *, uint64_t now_ps);
/* One tap a port; NULL ends it. 0 or a negative errno. */
int network_tap_port(struct network *, uint32_t link, unsigned end, network_tap, void *context);

/* The events that a witness gets, in order. */
enum network_event {
	NETWORK_SENT,      /* the first bit leaves the port; of PFC frames too */
	NETWORK_ARRIVED,   /* the packet has arrived completely at the far end of the port's link */
	NETWORK_DROPPED,   /* at the port, for `reason` */
	NETWORK_TRIMMED,   /* at the port; the packet as it goes on */
	NETWORK_WOKEN,     /* a host's timer */
	NETWORK_LINK_DOWN, /* both directions */
	NETWORK_LINK_UP,
	NETWORK_LINK_RATE
};

struct network_record {
	enum network_event event;
	uint32_t link; /* with `end` the port */
	unsigned end;
	uint32_t host;               /* NETWORK_WOKEN */
	const struct packet *packet; /* lent for the call; NULL: it is about none */
	uint32_t queue_bytes;        /* that wait in the port */
	enum network_drop reason;    /* NETWORK_DROPPED */
	uint64_t rate_bps;           /* NETWORK_LINK_RATE */
};

/*
 * Reports every event to the witness from now on. That takes time, but does not change the events. One witness
 * at a time; NULL ends it.
 */
typedef void (*network_witness)(void *context, const struct network_record *, uint64_t now_ps);
void network_tell(struct network *, network_witness, void *context);

/*
 * Checks the invariants now. NULL, or the one that does not hold. For tests; network_config.check
 * does it after every event.
 */
const char *network_check(const struct network *);
/* The invariant that network_run() found broken when it returned NETWORK_BROKEN; else NULL. */
const char *network_fault(const struct network *);
