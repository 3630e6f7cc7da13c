/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares: what a round comes to at the receiver, and the gaps of a sender.
 *
 * The port is used up when what arrives fills it but for 1/SPARE_FULL. It cannot be seen how much more
 * waits in front of it, so as long as that is so a little less is given out than there is, and the queue
 * goes; then all but 1/SPARE, which keeps it away. Both margins are wider than what a packet more or less
 * in a round makes of them.
 */
#include "transport/veroce/rxshare.h"

enum {
	SPARE_FULL = 512, SPARE = 128, SPARE_DRAIN = 16, /* of the line, a part in so many */
	FULL_PART = 8,       /* who sent all but an eighth of its share is full, */
	ROUND_PACKETS = 16,  /* ... of so many packets at least, so that one does not matter, */
	ROUND_LINE_PACKETS = 2048, /* ... nor of all that arrive, */
	ROUND_RTTS = 4,      /* ... and those that were given a share have long kept to it */
	IDLE_ROUNDS = 4,     /* after which nothing is known any more */
	STEADY_PART = 256,   /* a share stays as it is if it would change by less than that */
	CREDIT_PACKETS = 4,  /* that a sender which was held up may send at once */
	KEEP_PACKETS = 16
};

static const uint64_t round_ns_max = 100000000;
static const uint64_t keep_ns = 2000000;

/* kbit/s are bits in a millisecond. */
static const uint64_t bit_ns = 8000000;

static uint64_t rate_kbps(uint64_t bytes, uint64_t time_ns)
{
	return bytes * bit_ns / time_ns;
}

static uint64_t time_ns(uint64_t bytes, uint64_t kbps)
{
	return (bytes * bit_ns + kbps - 1) / kbps;
}

static uint64_t clamp(uint64_t x, uint64_t least, uint64_t most)
{
	return x < least ? least : x > most ? most : x;
}

/* ---- the receiver -------------------------------------------------------------------------------- */

static void begin_round(struct rxshare *s, uint32_t share_kbps, uint64_t now_ns)
{
	s->share_kbps = share_kbps;
	s->packet_ns = share_kbps ? time_ns(RXSHARE_PACKET_BYTES, share_kbps) : 0;
	s->round_ns = now_ns;
	s->length_ns = clamp(ROUND_PACKETS * s->packet_ns, s->round_ns_min, round_ns_max);
	s->full_at = UINT64_MAX;
	if (share_kbps)
		s->full_at = (share_kbps - share_kbps / FULL_PART) * s->length_ns / bit_ns;
	if (!++s->round)
		s->round = 1;
	s->bytes = s->full_bytes = s->top_bytes = 0;
	s->senders = s->full = 0;
}

void rxshare_init(struct rxshare *s, uint64_t line_bps, uint64_t rtt_ns)
{
	uint64_t line_ns;

	*s = (struct rxshare){.line_kbps = line_bps / 1000};
	if (!s->line_kbps)
		return;
	line_ns = time_ns(ROUND_LINE_PACKETS * RXSHARE_PACKET_BYTES, s->line_kbps);
	rtt_ns = clamp(rtt_ns, 0, round_ns_max) * ROUND_RTTS;
	s->round_ns_min = clamp(line_ns, rtt_ns, round_ns_max);
	begin_round(s, 0, 0);
}

/* What a full QP may have after a round of that time; 0: as much as it likes. */
static uint32_t next_share(const struct rxshare *s, uint64_t round_ns)
{
	bool used_up = rate_kbps(s->bytes, round_ns) >= s->line_kbps - s->line_kbps / SPARE_FULL;
	uint64_t give = s->line_kbps - s->line_kbps / (used_up ? SPARE_DRAIN : SPARE);
	uint64_t others = rate_kbps(s->bytes - s->full_bytes, round_ns);
	uint64_t top = rate_kbps(s->top_bytes, round_ns), next, even;

	if (s->senders < 2 || (!s->share_kbps && !used_up))
		return 0;
	if (s->full)
		next = (give > others ? give - others : 0) / s->full;
	else if (used_up) /* by those whom no share held back: who has most gives a little */
		next = top - top / SPARE_DRAIN;
	else
		next = 2 * (uint64_t)s->share_kbps;
	/* Nobody has to have less, however much the others send. */
	even = give / s->senders;
	if (next < even)
		next = even;
	if (next >= give && !used_up)
		return 0;
	if (next > give)
		next = give;
	next = clamp(next, RXSHARE_KBPS_MIN, UINT32_MAX);
	if (next - s->share_kbps + s->share_kbps / STEADY_PART <= 2 * (s->share_kbps / STEADY_PART))
		return s->share_kbps;
	return (uint32_t)next;
}

void rxshare_end_round(struct rxshare *s, uint64_t now_ns)
{
	uint64_t time = now_ns - s->round_ns;

	begin_round(s, time < IDLE_ROUNDS * s->length_ns ? next_share(s, time) : 0, now_ns);
}

/* ---- the sender ---------------------------------------------------------------------------------- */

void rxshare_set(struct rxshare_pace *p, uint32_t share_kbps, uint64_t now_ns)
{
	if (share_kbps && share_kbps < RXSHARE_KBPS_MIN)
		share_kbps = RXSHARE_KBPS_MIN;
	if (share_kbps && share_kbps != p->share_kbps)
		p->packet_ns = time_ns(RXSHARE_PACKET_BYTES, share_kbps);
	p->share_kbps = share_kbps;
	if (!share_kbps)
		return;
	p->until_ns = now_ns + keep_ns + KEEP_PACKETS * p->packet_ns;
	/* What waits by a smaller share than this waits no longer. */
	if (p->next_ns > now_ns + p->packet_ns)
		p->next_ns = now_ns + p->packet_ns;
}

/*
 * The gap begins where the one before ended, not when the packet could leave at last: who was held up, by
 * a window or because a host was late, catches up, as far as the credit reaches.
 */
void rxshare_leaves(struct rxshare_pace *p, uint32_t bytes, uint64_t slack_ns, uint64_t now_ns)
{
	uint64_t gap_ns = time_ns(bytes, p->share_kbps);
	uint64_t credit_ns = CREDIT_PACKETS * p->packet_ns + slack_ns;

	if (p->next_ns + credit_ns < now_ns)
		p->next_ns = now_ns - credit_ns;
	p->next_ns += gap_ns;
	if (p->next_ns > now_ns + gap_ns) /* it did not wait, as probes do not */
		p->next_ns = now_ns + gap_ns;
}
