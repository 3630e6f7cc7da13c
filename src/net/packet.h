/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet in the simulated network: a descriptor, moved by pointer from queue to queue. Its
 * transport headers lie in `body`, which only hosts and captures look at; the payload does not
 * exist. One cache line. And the store that packets, bodies and INT stacks come from: O(1) a piece,
 * each kind from slabs with a free list.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

struct int_stack; /* base/int_stack.h */

enum {
	/* traffic classes = PFC priorities; a higher number is no higher priority */
	PACKET_CLASSES = 8,
	/* strict priority over all others: ACK, NAK, CNP, probe, trimmed */
	PACKET_CONTROL_CLASS = 0
};

/* A packet of no flow, or of one without a number. */
#define PACKET_NO_FLOW UINT32_MAX

enum { PACKET_SHORT_BODY_BYTES = 32 }; /* RoCEv2's headers of all but the first packet of a message, and its ACKs */

enum packet_flags {
	PACKET_ECT = 1 << 0, /* may be marked */
	PACKET_CE = 1 << 1,  /* was marked */
	PACKET_TRIMMABLE = 1 << 2,
	PACKET_TRIMMED = 1 << 3, /* payload cut off; wire_bytes is the rest */
	PACKET_INT = 1 << 4,     /* int_stack is set; switches append to it */
	PACKET_DATA = 1 << 5,    /* data: subject to INT, marks and lists of losses */
	PACKET_PAUSE = 1 << 6,   /* a PFC frame: never seen by hosts */
	PACKET_CORRUPT = 1 << 7, /* on a wire: is lost at its end */
	PACKET_CREDITS = 1 << 8, /* with PACKET_PAUSE: a flow control packet instead of a PFC frame */
	PACKET_DETOUR = 1 << 9,  /* without credits: it goes by a third group of a dragonfly */
	/* of links with credits: the lane of the buffer that it is in, and its service level */
	PACKET_LANE_SHIFT = 9,
	PACKET_LANE_MASK = 7 << PACKET_LANE_SHIFT,
	PACKET_SL_SHIFT = 12,
	PACKET_SL_MASK = 15 << PACKET_SL_SHIFT
};

/*
 * A PFC frame (IEEE 802.1Qbb). Classes whose bit is not in `classes` stay as they are; of the others those in
 * `pause` stop for `quanta`, and the rest may go on.
 */
struct pause_frame {
	uint8_t classes; /* the class enable vector */
	uint8_t pause;
	uint8_t depth;   /* of the pause tree, 1 where it begins: ours, on no wire */
	uint16_t quanta; /* of 512 bit times; 0: until they are resumed */
};

/* A flow control packet (IBTA 7.9.4): blocks of 64 bytes, modulo 4096. */
struct credit_counters {
	uint8_t vl;
	uint16_t fctbs; /* sent on the lane in this packet's direction */
	uint16_t fccl;  /* up to which the lane of the other direction may send */
};

struct packet {
	struct packet *next;         /* in its queue or on its wire */
	void *body;                  /* the host's, from packet_body(); NULL: none */
	struct int_stack *int_stack; /* from packet_int(), with PACKET_INT; else NULL */
	uint64_t time_ps;            /* on a wire: when it arrives; in a queue: when it came */
	/* all that takes time on a link: preamble, headers, FCS, gap */
	uint32_t wire_bytes;
	uint32_t src, dst; /* hosts */
	union {
		struct {
			uint32_t flow;         /* number of the flow, for loss lists and statistics */
			uint16_t sport, dport; /* UDP: entropy of ECMP */
		};
		struct pause_frame pfc;         /* with PACKET_PAUSE */
		struct credit_counters credits; /* with PACKET_CREDITS too */
	};
	uint16_t flags;      /* enum packet_flags */
	uint16_t body_bytes; /* of body that hold headers */
	/* after UDP, ICRC included, as the transport counts them; payload counted */
	uint32_t transport_bytes;
	uint16_t in_port; /* of the switch it is in; PFC charges it there */
	uint8_t class;
	uint8_t hops; /* switches passed */
};

static_assert(sizeof(struct packet) == 64, "one cache line");

/* Open for its size and the inline functions; the fields are the store's own. */
struct packet_store {
	struct packet *free;
	struct packet_slab *slabs;
	struct packet *fresh; /* of the newest slab, not lent yet */
	uint32_t fresh_count;
	uint64_t lent;       /* packets now lent */
	uint64_t lent_total; /* packets ever lent */
	struct short_body *free_shorts;
	struct pool pool; /* longer bodies, and INT stacks */
};

/* Empty. */
void packet_store_init(struct packet_store *);
/* Frees all memory, that of packets still lent included. */
void packet_store_fini(struct packet_store *);

/* Adds a slab; NULL when memory runs out. */
struct packet *packet_get_slow(struct packet_store *);

/* Lends a packet of zeroes until packet_put(). NULL when memory runs out. */
static inline struct packet *packet_get(struct packet_store *s)
{
	struct packet *p = s->free;

	if (__builtin_expect(!p, 0))
		p = packet_get_slow(s);
	else
		s->free = p->next;
	if (p) {
		*p = (struct packet){0};
		s->lent++;
		s->lent_total++;
	}
	return p;
}

/*
 * Lends the packet a body of `bytes` uninitialised bytes (1 .. UINT16_MAX), which is freed with the
 * packet. The packet must have none yet. This sets body_bytes, which must not change later. NULL when
 * memory runs out.
 */
void *packet_body(struct packet_store *, struct packet *, size_t bytes);

/* The same of an INT stack, empty. Sets PACKET_INT. */
struct int_stack *packet_int(struct packet_store *, struct packet *);

/* Gives body and INT stack back. */
void packet_put_parts(struct packet_store *, struct packet *);

/* Takes the packet, its body and its INT stack back. */
static inline void packet_put(struct packet_store *s, struct packet *p)
{
	if (p->body || p->int_stack)
		packet_put_parts(s, p);
	p->next = s->free;
	s->free = p;
	s->lent--;
}
