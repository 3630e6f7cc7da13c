/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens to a TCP stream, but for the bytes that come by it. A packet of a stream is a piece of its bytes or has
 * one of these instead of bytes (pkt.event), so both keep their order. Streams have numbers, which whoever opens one
 * chooses (flow->flow_label).
 */
#pragma once

#include <stdint.h>

#include "base/pkt.h"

enum stream_event_kind {
	STREAM_BYTES, /* no event: bytes */
	/*
	 * Output: connect to flow->dst and dport, from src and, if it can be had, sport. Input: connected, or
	 * accepted at a listener; the flow is as the stream's ends are.
	 */
	STREAM_OPEN,
	STREAM_ROOM, /* input: more may be sent */
	STREAM_FIN,  /* the sender has sent all: no more bytes come behind it in this direction */
	STREAM_RESET /* the stream is gone */
};

/* The members that are not named for a kind are 0; on output only the kind counts. */
struct stream_event {
	enum stream_event_kind kind; /* but for STREAM_BYTES */
	uint32_t room;               /* OPEN, ROOM: bytes that may be sent, besides those of earlier events */
	uint16_t segment_bytes;      /* OPEN: the largest TCP segment now */
	int error;                   /* RESET: the errno that says why; 0: it was connected before */
};

/* The packet is a stream's. */
static inline enum stream_event_kind pkt_stream_kind(const struct pkt *p)
{
	return p->event ? p->event->kind : STREAM_BYTES;
}
