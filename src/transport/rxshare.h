/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares of a receiver's port (veRoCE 10, 13.2): where many QPs send to one nic, its acknowledgements
 * give all of them the same rate, and each leaves a gap behind every packet for its time at that rate. So
 * they get the same rate, to the packet, in addition to the limits of their windows.
 *
 * The receiver (struct rxshare, one for each nic) counts arrivals in rounds. A QP that sent nearly its
 * share is full: it would send more. The full QPs divide what the others leave of the line, which is
 * max-min fairness and is reached in a few rounds from any start. No share is sent while no QP is held
 * back: to a single QP, or if the line is not used up.
 *
 * Rates count everything that is on the wire, frames and headers included. All are whole numbers, and no
 * sum is rounded twice, so two QPs with the same share never drift apart.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	RXSHARE_PACKET_BYTES = 4200, /* about the longest */
	RXSHARE_KBPS_MIN = 3360      /* the least share sent and accepted: such a packet in 10 ms */
};

/* ---- the receiver -------------------------------------------------------------------------------- */

struct rxshare {
	uint64_t line_kbps; /* of the port; 0: no shares, and nothing is counted */
	uint64_t round_ns_min;
	uint64_t round_ns;   /* when this round began, */
	uint64_t length_ns;  /* ... and how long it lasts */
	uint32_t round;      /* its number, never 0 */
	uint32_t share_kbps; /* the present share; 0: none */
	uint64_t packet_ns;  /* of a packet of RXSHARE_PACKET_BYTES at that rate */
	uint64_t full_at;    /* bytes in a round from which a QP is full */
	uint64_t bytes;      /* that arrived in the round; */
	uint64_t full_bytes; /* ... from QPs that are full, */
	uint64_t top_bytes;  /* ... and from the one that sent most */
	uint32_t senders;    /* QPs that sent */
	uint32_t full;
};

/* What one QP sent in the round that has this number. All zeroes: nothing. */
struct rxshare_sender {
	uint32_t round;
	bool full; /* ... and therefore gets a share, and keeps it */
	uint64_t bytes;
};

/* line_bps 0: unknown, so no shares. A round lasts several round trips to the senders. */
void rxshare_init(struct rxshare *, uint64_t line_bps, uint64_t rtt_ns);
/* Ends the round whose time is over. */
void rxshare_end_round(struct rxshare *, uint64_t now_ns);

/*
 * `bytes` on the wire arrived from this QP; NULL: they are not data, and count for no share.
 * `obeys`: the peer agreed to shares. Called only if there are shares.
 */
static inline void rxshare_arrived(struct rxshare *s, struct rxshare_sender *from, bool obeys, uint32_t bytes,
				   uint64_t now_ns)
{
	if (now_ns - s->round_ns >= s->length_ns)
		rxshare_end_round(s, now_ns);
	s->bytes += bytes;
	if (!from)
		return;
	if (from->round != s->round) {
		*from = (struct rxshare_sender){.round = s->round};
		s->senders++;
	}
	from->bytes += bytes;
	if (from->bytes > s->top_bytes)
		s->top_bytes = from->bytes;
	if (!obeys || from->bytes < s->full_at)
		return;
	s->full_bytes += from->full ? bytes : from->bytes;
	s->full += !from->full;
	from->full = true;
}

/* ---- the sender ---------------------------------------------------------------------------------- */

/* The share of one QP, for all its data. All zeroes: none. */
struct rxshare_pace {
	uint32_t share_kbps; /* 0: none, or none any more */
	bool waits;          /* a packet was held back until next_ns */
	uint64_t packet_ns;  /* of a packet of RXSHARE_PACKET_BYTES */
	uint64_t until_ns;   /* until when the share is valid */
	uint64_t next_ns;    /* when the next packet may leave */
};

/* A share arrived; any value is accepted. */
void rxshare_set(struct rxshare_pace *, uint32_t share_kbps, uint64_t now_ns);
/*
 * A packet of `bytes` on the wire leaves, whether or not it was held back. Called only while there is a
 * share.
 */
void rxshare_leaves(struct rxshare_pace *, uint32_t bytes, uint64_t slack_ns, uint64_t now_ns);

/* Whether the next packet must wait until next_ns. */
static inline bool rxshare_holds(struct rxshare_pace *p, uint64_t now_ns)
{
	if (!p->share_kbps)
		return false;
	if (p->until_ns <= now_ns)
		p->share_kbps = 0;
	p->waits = p->share_kbps && p->next_ns > now_ns;
	return p->waits;
}

static inline void rxshare_sent(struct rxshare_pace *p, uint32_t bytes, uint64_t slack_ns, uint64_t now_ns)
{
	if (p->share_kbps)
		rxshare_leaves(p, bytes, slack_ns, now_ns);
}
