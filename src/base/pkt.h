/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet as a value: the only thing that passes between the core and the world.
 *
 * The core sees transport bytes (BTH .. ICRC for RoCEv2) and the addressing around them. IP and UDP
 * headers are not in the buffer: a UDP socket hides them, so they are described by `struct flow`
 * and re-created where somebody needs their bytes (ICRC, raw frames, capture files).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * One direction of a conversation over IP and UDP, or, without UDP ports, between the GIDs of RoCEv1 (flow_has_udp()).
 * Addresses are in GID form: IPv6, or ::ffff:a.b.c.d.
 */
struct flow {
	uint8_t src[16];
	uint8_t dst[16];
	/* IPv6 flow label, 20 bits; on receive 0 where the back end cannot know. Of a stream's packet: its stream. */
	uint32_t flow_label;
	uint32_t ifindex; /* interface of a link-local address; 0: any */
	uint16_t sport;   /* UDP ports, host order; RoCEv1 has none: 0 */
	uint16_t dport;
	uint8_t tos; /* IPv4 TOS or IPv6 traffic class: DSCP and ECN; RoCEv1: the GRH's TClass, which has no ECN */
	uint8_t ttl; /* IPv4 TTL or IPv6 hop limit */
	uint8_t sl;  /* service level, 0 .. 15: PFC's class; 0 on receipt from a socket */
	/*
	 * On receipt: 1 + the slot of the process of this host through whose memory it came; 0: it came from a network.
	 * On output: FLOW_OFF_HOST, or 0.
	 */
	uint8_t neighbour;
};

/* To a group, and no receiver on this host gets a copy. */
enum { FLOW_OFF_HOST = 1 };

/* No packet comes from or goes to UDP port 0, so a flow without a port is RoCEv1's. */
static inline bool flow_has_udp(const struct flow *f)
{
	return f->dport;
}

struct int_stack;    /* base/int_stack.h */
struct stream_event; /* base/stream_event.h */

/*
 * One packet. On output, packets that may leave in one system call form a train: same flow, same
 * length but for the last, which may be shorter, and contiguous in memory. `train` counts the
 * packets from this one to the train's end, itself included (1: alone or last). The IPv4
 * identification of a train's packets is 0, 1, 2 .. as the kernel numbers them; the ICRC was
 * computed with it, so a back end sends a train in one call or not as a train.
 *
 * On input `train` counts the packets from this one to the end of the datagram that the kernel
 * coalesced (GRO), and ip_id is a guess: a UDP socket does not show it, but most often the sender's
 * kernel has numbered the packets 0, 1, 2 .. as above.
 *
 * Of a TCP stream a packet is a piece of any length, or an event without bytes (base/stream_event.h). They come in
 * order.
 */
struct pkt {
	uint8_t *data;           /* first byte after UDP; the yielding call says who owns it */
	const struct flow *flow; /* lives as long as data */
	uint32_t len;            /* bytes from data, ICRC included */
	uint16_t ip_id;
	uint16_t train;
	union {
		/*
		 * Telemetry of the switches on the way. On input: what this packet gathered; of an
		 * acknowledgement, what the acknowledged packet gathered, as its receiver reports it. On output:
		 * what to report. NULL where there is none; lives as long as data. Simulated networks have it,
		 * sockets have not.
		 */
		const struct int_stack *int_stack;
		const struct stream_event *event; /* of a stream's packet; NULL: its bytes; lives as long as data */
	};
	/*
	 * Output, to a process of this host that can read this one's memory: bytes far_at .. far_at + far_bytes - 1 are
	 * not in the packet. In their place is a struct pkt_far. 0: all are there. Input: these bytes, all of the
	 * payload, are not in the packet, but where nic_place() said that they belong, and a struct pkt_far says so. 0:
	 * all are in the packet. Input, of a stream: so many bytes before those of the packet lie where
	 * nic_stream_place() said that they belong.
	 */
	uint16_t far_at, far_bytes;
	/* Input: how long it had been at this host before it was read. 0: not known. */
	uint32_t waited_ns;
};

struct pkt_far {
	const void *from; /* where they are */
	uint64_t lot;     /* of the bytes that are lent together (loan.h) */
};

enum { PKT_FAR_BYTES_MIN = 1024 };

enum {
	PKT_TRAIN_MAX = 64, /* segments the kernel takes in one UDP_SEGMENT call, all releases */
	/*
	 * The longest train that no interface takes apart: Linux passes a datagram on whole if it has
	 * less than 65,536 bytes with 14 of Ethernet, 4 of a VLAN tag, 40 of IPv6 and 8 of UDP.
	 */
	PKT_TRAIN_BYTES_MAX = 65535 - 14 - 4 - 40 - 8
};
