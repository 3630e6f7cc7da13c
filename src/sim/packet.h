/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet in the simulated network: a descriptor, moved by pointer from queue to queue. Its
 * transport headers lie in `body`, which only hosts and captures look at; the payload does not
 * exist. One cache line.
 */
#ifndef SIM_PACKET_H
#define SIM_PACKET_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct int_stack; /* base/int_stack.h */

enum {
	PACKET_CLASSES = 8,      /* traffic classes = PFC priorities; a higher number is no higher priority */
	PACKET_CONTROL_CLASS = 0 /* strict priority over all others: ACK, NAK, CNP, probe, trimmed */
};

enum packet_flags {
	PACKET_ECT = 1 << 0,     /* may be marked */
	PACKET_CE = 1 << 1,      /* was marked */
	PACKET_TRIMMABLE = 1 << 2,
	PACKET_TRIMMED = 1 << 3, /* payload cut off: wire_bytes is what is left */
	PACKET_INT = 1 << 4,     /* int_stack is there: switches append to it */
	PACKET_DATA = 1 << 5     /* what INT, marks and the n-th-packet loss lists are about */
};

struct packet {
	struct packet *next;         /* in the queue or ring that has it */
	void *body;                  /* the host's; freed by whoever frees the packet, see packet_free() */
	struct int_stack *int_stack; /* from a side slab, with PACKET_INT; else NULL */
	uint32_t wire_bytes;         /* all that takes time on a link: preamble, headers, FCS, gap */
	uint32_t src, dst;           /* hosts */
	uint32_t flow;               /* number of the flow, for loss lists and statistics */
	uint16_t sport, dport;       /* UDP: entropy of ECMP */
	uint16_t flags;              /* enum packet_flags */
	uint16_t body_bytes;         /* of body that hold headers */
	uint32_t transport_bytes;    /* after UDP, ICRC included, as the transport counts them; payload counted */
	uint16_t in_port;            /* of the switch it is in: what PFC accounts it to */
	uint8_t class;
	uint8_t hops;                /* switches passed */
};

static_assert(sizeof(struct packet) <= 64, "one cache line");

#endif
