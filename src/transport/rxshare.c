/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares: how the receiver evaluates a round, and the gaps of a sender.
 *
 * The port is used up when arrivals fill all of it but 1/SPARE_FULL. The receiver does not know how much more
 * waits in front of the port, so while it is used up the shares add up to a little less than the line, and the
 * queue shrinks; otherwise they add up to all but 1/SPARE, so that none builds up. Both margins are wider than
 * the effect of one packet more or less in a round.
 */
#include "transport/rxshare.h"

enum {
	SPARE_FULL = 512,
	SPARE = 128,
	SPARE_CROWD = 256, /* likewise, where shares are for a crowd */
	SPARE_DRAIN = 16,  /* parts of the line: one in so many */
	CROWD_DRAIN = 4,   /* the part of the line that a crowd gets while its queue stands */
	CROWD_USES = 2,    /* ... and that it uses at least */
	STRETCH = 2,       /* a crowd's packets take so many times as long to arrive as they did to leave */
	LEAVERS = 2,       /* half of a crowd is none any more */
	FULL_PART = 8,     /* a QP that sent all but an eighth of its share is full */
	ROUND_PACKETS =
		16, /* a round has at least so many packets of a QP with a share, so that one does not matter; */
	ROUND_LINE_PACKETS = 2048,              /* ... at least so many of all QPs, */
	CROWD_LINE_PACKETS = 4 * RXSHARE_CROWD, /* ... or only those among which a crowd is seen; */
	ROUND_RTTS = 4,     /* ... and lasts for so many round trips, so that QPs keep to the last round's shares */
	IDLE_ROUNDS = 4,    /* after which shares are forgotten */
	STEADY_PART = 256,  /* a share stays as it is if it would change by less than that */
	CREDIT_PACKETS = 4, /* that a sender may send at once after it was held up */
	KEEP_PACKETS = 16
};

static const uint64_t round_ns_max = 100000000;
static const uint64_t keep_ns = 2000000;
static const uint64_t rtt_ns_unknown = 100000; /* within a data centre, hosts included */

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

/* How long a sender believes a share of which a packet takes that time. */
static uint64_t share_keeps_ns(uint64_t packet_ns)
{
	return keep_ns + KEEP_PACKETS * packet_ns;
}

static void begin_round(struct rxshare *s, uint32_t share_kbps, uint64_t now_ns)
{
	if (s->share_kbps && !share_kbps)
		s->told_ns = now_ns + share_keeps_ns(s->packet_ns);
	s->share_kbps = share_kbps;
	s->packet_ns = share_kbps ? time_ns(RXSHARE_PACKET_BYTES, share_kbps) : 0;
	s->round_ns = now_ns;
	/* Short rounds tell soon when a crowd's queue is gone. */
	s->length_ns = s->crowd ? s->round_ns_min : clamp(ROUND_PACKETS * s->packet_ns, s->round_ns_min, round_ns_max);
	s->full_at = UINT64_MAX;
	if (share_kbps)
		s->full_at = (share_kbps - share_kbps / FULL_PART) * s->length_ns / bit_ns;
	if (!++s->round)
		s->round = 1;
	s->bytes = s->full_bytes = s->top_bytes = 0;
	s->senders = s->full = s->hosts = 0;
	s->left_ns = s->came_ns = 0;
}

void rxshare_init(struct rxshare *s, bool crowds, uint64_t line_bps, uint64_t rtt_ns)
{
	uint64_t line_ns;

	*s = (struct rxshare){.line_kbps = line_bps / 1000, .hosts_min = UINT32_MAX, .crowds = crowds};
	if (!s->line_kbps)
		return;
	line_ns = time_ns((crowds ? CROWD_LINE_PACKETS : ROUND_LINE_PACKETS) * RXSHARE_PACKET_BYTES, s->line_kbps);
	s->rtt_ns = clamp(rtt_ns ? rtt_ns : rtt_ns_unknown, 0, round_ns_max / ROUND_RTTS);
	s->round_ns_min = clamp(line_ns, ROUND_RTTS * s->rtt_ns, round_ns_max);
	s->hosts_min = crowds ? RXSHARE_CROWD : 0;
	begin_round(s, 0, 0);
}

static uint32_t even_kbps(uint64_t kbps, uint32_t senders)
{
	return (uint32_t)clamp(kbps / senders, RXSHARE_KBPS_MIN, UINT32_MAX);
}

void rxshare_watch(struct rxshare *s, struct rxshare_host *from, uint32_t left_ns, uint64_t now_ns)
{
	struct rxshare_host before = *from;
	uint32_t left = left_ns - before.left_ns, came = (uint32_t)now_ns - before.came_ns;
	bool is_new = before.round != s->round;
	bool counts = !is_new && left_ns && before.left_ns && left <= INT32_MAX; /* else it was overtaken */

	*from = (struct rxshare_host){.round = s->round, .left_ns = left_ns, .came_ns = (uint32_t)now_ns};
	if (before.round && !left_ns && !before.left_ns) {
		from->came_ns = before.came_ns;
		left = (uint32_t)s->rtt_ns; /* at most */
		counts = came > STRETCH * left;
	}
	s->hosts += is_new;
	s->left_ns += counts ? left : 0;
	s->came_ns += counts ? came : 0;
	if (s->hosts < RXSHARE_CROWD || s->came_ns <= STRETCH * s->left_ns || now_ns == s->round_ns ||
	    rate_kbps(s->bytes, now_ns - s->round_ns) < s->line_kbps / CROWD_USES)
		return;
	s->crowd = s->senders;
	begin_round(s, even_kbps(s->line_kbps / CROWD_DRAIN, s->crowd), now_ns);
}

/*
 * The share of a crowd after a round of that time. Its queue is gone when those who keep to the share no longer send
 * more than that, whatever others do. In a short round not all of them may have sent.
 */
static uint32_t crowd_share(struct rxshare *s, uint64_t round_ns)
{
	uint32_t crowd = s->crowd > s->senders ? s->crowd : s->senders;
	bool stands = rate_kbps(s->full_bytes, round_ns) >= s->line_kbps / CROWD_USES;

	s->crowd = stands ? crowd : 0;
	return even_kbps(stands ? s->line_kbps / CROWD_DRAIN : s->line_kbps - s->line_kbps / SPARE_CROWD, crowd);
}

/* The share of a full QP after a round of that time; 0: unlimited. */
static uint32_t next_share(const struct rxshare *s, uint64_t round_ns)
{
	bool used_up = rate_kbps(s->bytes, round_ns) >= s->line_kbps - s->line_kbps / SPARE_FULL;
	uint64_t give = s->line_kbps - s->line_kbps / (used_up ? SPARE_DRAIN : s->crowds ? SPARE_CROWD : SPARE);
	uint64_t others = rate_kbps(s->bytes - s->full_bytes, round_ns);
	uint64_t top = rate_kbps(s->top_bytes, round_ns), next, even;

	if (s->senders < (s->crowds ? RXSHARE_CROWD / LEAVERS : 2) || (!s->share_kbps && (s->crowds || !used_up)))
		return 0;
	if (s->full)
		next = (give > others ? give - others : 0) / s->full;
	else if (used_up) /* by QPs that no share held back: the one with most gives up a little */
		next = top - top / SPARE_DRAIN;
	else
		next = 2 * (uint64_t)s->share_kbps;
	/* No QP gets less than this, however much the others send. */
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
	uint32_t next = 0;

	if (time >= IDLE_ROUNDS * s->length_ns)
		s->crowd = 0;
	else
		next = s->crowd ? crowd_share(s, time) : next_share(s, time);
	begin_round(s, next, now_ns);
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
	p->until_ns = now_ns + share_keeps_ns(p->packet_ns);
	/* A packet that waits for a smaller share stops waiting. */
	if (p->next_ns > now_ns + p->packet_ns)
		p->next_ns = now_ns + p->packet_ns;
}

/*
 * The gap begins where the one before ended, not when the packet actually left: a sender that was held up, by
 * a window or because its host was late, catches up, as far as the credit reaches.
 */
void rxshare_leaves(struct rxshare_pace *p, uint32_t bytes, uint64_t slack_ns, uint64_t now_ns)
{
	uint64_t gap_ns = time_ns(bytes, p->share_kbps);
	uint64_t credit_ns = CREDIT_PACKETS * p->packet_ns + slack_ns;

	if (p->next_ns + credit_ns < now_ns)
		p->next_ns = now_ns - credit_ns;
	p->next_ns += gap_ns;
	if (p->next_ns > now_ns + gap_ns) /* the packet did not wait; probes do not */
		p->next_ns = now_ns + gap_ns;
}
