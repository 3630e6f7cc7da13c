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
 * Windows do as well for a few senders, and sooner, as a share reflects what was true a round ago. So only a crowd gets
 * shares, unless they are configured for all (CC_SHARES_ON). A crowd is RXSHARE_CROWD hosts or more that send within a
 * round, use half of the line at least, and whose packets arrive in more than twice the time in which they left: a queue
 * builds in front of the port. As long as it stands there, all of them together get a fourth of the line, and from then
 * on all of it.
 *
 * Rates count everything that is on the wire, frames and headers included. All are whole numbers, and no
 * sum is rounded twice, so two QPs with the same share never drift apart.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	RXSHARE_CROWD = 64,          /* hosts: twice as many as a busy receiver of collectives has at a time */
	RXSHARE_PACKET_BYTES = 4200, /* about the longest */
	RXSHARE_KBPS_MIN = 3360      /* the least share sent and accepted: such a packet in 10 ms */
};

/* ---- the receiver -------------------------------------------------------------------------------- */

struct rxshare {
	uint64_t line_kbps; /* of the port; 0: no shares */
	uint64_t rtt_ns;    /* to the senders */
	uint64_t round_ns_min;
	uint32_t hosts_min;  /* arrivals are counted only while QPs have so many hosts as peers */
	bool crowds;         /* no others get shares */
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
	uint32_t crowd;   /* while its queue stands, the most QPs that sent in a round; else 0 */
	uint32_t hosts;   /* in a round without a share, those that sent; */
	uint64_t left_ns; /* ... the times from each packet of theirs to the next as they left, */
	uint64_t came_ns; /* ... and as they arrived */
	uint64_t told_ns; /* until when a sender may still have the last share */
};

/* What one QP sent in the round that has this number. All zeroes: nothing. */
struct rxshare_sender {
	uint32_t round;
	bool full; /* ... and therefore gets a share, and keeps it */
	uint64_t bytes;
};

/*
 * The newest packet of one host, in the round that has this number. All zeroes: none. A host stamps its packets as soon as
 * it knows that it may: those before left within a round trip.
 */
struct rxshare_host {
	uint32_t round;
	uint32_t left_ns; /* by the host's clock; 0: not stamped */
	uint32_t came_ns; /* ... if so, that of the first */
};

/*
 * line_bps 0: unknown, so no shares. A round lasts several round trips to the senders; rtt_ns 0: unknown. `crowds`:
 * only a crowd gets shares.
 */
void rxshare_init(struct rxshare *, bool crowds, uint64_t line_bps, uint64_t rtt_ns);
/* Whether acknowledgements carry the share. A sender keeps to the last one that it was told, until that expires. */
static inline bool rxshare_is_told(const struct rxshare *s, uint64_t now_ns)
{
	return !s->crowds || s->share_kbps || now_ns < s->told_ns;
}
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

/*
 * The same packet, behind rxshare_arrived(): whether a crowd has come. left_ns: its stamp, by the clock of the host that
 * sent it; 0: none.
 */
void rxshare_watch(struct rxshare *, struct rxshare_host *from, uint32_t left_ns, uint64_t now_ns);
/* Whether rxshare_watch() is to be called. */
static inline bool rxshare_watches(const struct rxshare *s)
{
	return s->crowds && !s->share_kbps;
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
