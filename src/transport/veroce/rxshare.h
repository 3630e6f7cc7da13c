/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares of a receiver's port (veRoCE 10, 13.2): where many QPs send to one nic, it tells all of them the
 * same rate in its acknowledgements, and each leaves a gap behind every packet that is its time at that
 * rate. So they get the same, to the packet, whatever their windows do; these hold beside it.
 *
 * The receiver (struct rxshare, one a nic) looks at what arrives in rounds. A QP that sent nearly its
 * share is full: it would send more. What the others leave of the line is divided by the full ones, which
 * is max-min fairness, and found in a few rounds from wherever it starts. Nothing is told while nobody
 * is held back: to a single QP, or where the line is not used up.
 *
 * Rates count everything that is on the wire, frames and headers included. Whole numbers, and no sum that
 * is rounded twice: two QPs that are told the same never drift apart.
 */
#ifndef TRANSPORT_VEROCE_RXSHARE_H
#define TRANSPORT_VEROCE_RXSHARE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	RXSHARE_PACKET_BYTES = 4200, /* the longest, about */
	RXSHARE_KBPS_MIN = 3360 /* told and obeyed at least: such a packet in 10 ms, whatever a peer says */
};

/* ---- the receiver -------------------------------------------------------------------------------- */

struct rxshare {
	uint64_t line_kbps;    /* of the port; 0: no shares, and nothing is counted */
	uint64_t round_ns_min;
	uint64_t round_ns;     /* when this round began, */
	uint64_t length_ns;    /* ... and how long it lasts */
	uint32_t round;        /* its number, never 0 */
	uint32_t share_kbps;   /* told; 0: none */
	uint64_t packet_ns;    /* of a packet of RXSHARE_PACKET_BYTES at that rate */
	uint64_t full_at;      /* bytes in a round from which a QP is full */
	uint64_t bytes;        /* that arrived in the round; */
	uint64_t full_bytes;   /* ... from QPs that are full, */
	uint64_t top_bytes;    /* ... and from the one that sent most */
	uint32_t senders;      /* QPs that sent */
	uint32_t full;
};

/* Of one QP, about the round that has this number. All zeroes: none. */
struct rxshare_sender {
	uint32_t round;
	bool full; /* and so to be told its share: it obeys */
	uint64_t bytes;
};

/* line_bps 0: unknown, so no shares. Rounds outlast the way to the senders and back several times. */
void rxshare_init(struct rxshare *, uint64_t line_bps, uint64_t rtt_ns);
/* The time of this round is over. */
void rxshare_end_round(struct rxshare *, uint64_t now_ns);

/*
 * So many bytes on the wire arrived, from this QP; NULL: they are no data, and nobody's share. `obeys`:
 * it agreed to. Only where there are shares.
 */
static inline void rxshare_arrived(struct rxshare *s, struct rxshare_sender *from, bool obeys,
				   uint32_t bytes, uint64_t now_ns)
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

/* Of one QP, for all its data. All zeroes: nothing was told. */
struct rxshare_pace {
	uint32_t share_kbps; /* 0: none, or none any more */
	bool waits;          /* a packet was held back until next_ns */
	uint64_t packet_ns;  /* of a packet of RXSHARE_PACKET_BYTES */
	uint64_t until_ns;   /* the share is believed; what is older tells nothing */
	uint64_t next_ns;    /* when the next packet may leave */
};

/* Any value may be told. */
void rxshare_told(struct rxshare_pace *, uint32_t share_kbps, uint64_t now_ns);
/* A packet that has so many bytes on the wire leaves, held back or not. Only while there is a share. */
void rxshare_leaves(struct rxshare_pace *, uint32_t bytes, uint64_t slack_ns, uint64_t now_ns);

/* Whether the next packet has to wait, until next_ns. */
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

#endif
