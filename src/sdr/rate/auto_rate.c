/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers come 32 times a round trip at most, so what has arrived since the newest one is estimated: an eighth of the window
 * at most, at the rate of sending. Otherwise packets would leave in bursts, and a lost answer would be a pause. Where hosts
 * wait for processors, answers come in groups, and it is what arrives between two of these.
 *
 * A peer that counts more than was sent counts as one that has received everything.
 */
#include "sdr/rate/auto_rate.h"

enum {
	PINGS_A_RTT = 32,
	PINGS_A_SHORT_RTT = 8,
	PACKETS_A_PING = 4,
	LATE_RTTS = 4,
	START_PACKETS = 32,
	LEAST_PACKETS = 8
};

#define PING_NS_MIN   UINT64_C(1000000)
#define PING_NS_START UINT64_C(10000000)
#define APART_NS_MAX  UINT64_C(50000000)

void auto_rate_init(struct auto_rate *r, bool on, uint32_t mtu, uint64_t slack_ns, uint64_t now_ns)
{
	const struct cc_config config = {
		.mtu_bytes = mtu,
		.cwnd_bytes_start = (uint64_t)START_PACKETS * mtu,
		.cwnd_bytes_min = (uint64_t)LEAST_PACKETS * mtu,
		.target_ns = slack_ns,
	};

	*r = (struct auto_rate){.on = on, .slack_ns = slack_ns, .due_ns = now_ns};
	cc_init(&r->cc, on ? CC_DELIVERY : CC_NONE, &config, now_ns);
}

static bool limits(const struct auto_rate *r)
{
	return r->on && !(r->rtt_ns_least && r->rtt_ns_least < r->slack_ns);
}

uint64_t auto_rate_bps(const struct auto_rate *r)
{
	return limits(r) ? r->cc.rate_bps : 0;
}

static uint64_t bytes_in(const struct auto_rate *r, uint64_t ns)
{
	return (uint64_t)((double)r->cc.rate_bps / 8e9 * (double)ns);
}

bool auto_rate_may_send(const struct auto_rate *r, uint32_t bytes, uint64_t now_ns)
{
	uint64_t in_flight = r->sent - r->acked, most = r->cc.cwnd_bytes / 8, late, more;

	if (!limits(r) || !in_flight)
		return true;
	late = bytes_in(r, r->apart_ns);
	most = most > late ? most : late;
	more = r->acked_ns ? bytes_in(r, now_ns - r->acked_ns) : 0;
	return in_flight + bytes <= r->cc.cwnd_bytes + (more < most ? more : most);
}

/* Of a round trip of a few milliseconds there are more, unless packets are as rare. */
static uint64_t least_gap_ns(const struct auto_rate *r)
{
	uint64_t part = r->rtt_ns_least / PINGS_A_SHORT_RTT;
	uint64_t packets = UINT64_C(8000000000) * PACKETS_A_PING * r->cc.mtu_bytes / r->cc.rate_bps;
	uint64_t gap = part > packets ? part : packets;

	return gap < PING_NS_MIN ? gap : PING_NS_MIN;
}

/* PINGs go while packets may be under way, and less often where no answer comes. */
static uint64_t gap_ns(const struct auto_rate *r, uint64_t now_ns)
{
	uint64_t gap = r->rtt_ns_least / PINGS_A_RTT, least = least_gap_ns(r);

	if (!r->rtt_ns_least)
		return PING_NS_START;
	if (now_ns - r->acked_ns > LATE_RTTS * (r->rtt_ns_least + PING_NS_START))
		gap = r->rtt_ns_least / 4 + PING_NS_START;
	return gap > least ? gap : least;
}

uint64_t auto_rate_due(const struct auto_rate *r)
{
	return limits(r) && r->sent != r->acked ? r->due_ns : UINT64_MAX;
}

uint64_t auto_rate_ping(struct auto_rate *r, uint64_t now_ns)
{
	r->ping[r->pings % AUTO_RATE_PINGS] = (struct rate_ping){now_ns, r->sent};
	r->due_ns = now_ns + gap_ns(r, now_ns);
	return r->pings++;
}

static void note_trip(struct auto_rate *r, uint64_t rtt_ns)
{
	r->rtt_ns_mean = r->rtt_ns_least ? r->rtt_ns_mean - r->rtt_ns_mean / 8 + rtt_ns / 8 : rtt_ns;
	if (!r->rtt_ns_least || rtt_ns < r->rtt_ns_least)
		r->rtt_ns_least = rtt_ns;
}

/* While packets are under way, the time since the last answer. The longest one counts, and fades within some round trips. */
static void note_apart(struct auto_rate *r, uint64_t now_ns)
{
	uint64_t apart_ns = r->acked_ns && r->sent != r->acked ? now_ns - r->acked_ns : 0;

	r->apart_ns -= r->apart_ns / 64;
	r->apart_ns = apart_ns > r->apart_ns ? apart_ns : r->apart_ns;
	r->apart_ns = r->apart_ns < APART_NS_MAX ? r->apart_ns : APART_NS_MAX;
}

static void acknowledge(struct auto_rate *r, const struct rate_ping *p, uint64_t bytes, uint64_t peer_ns,
			uint64_t now_ns)
{
	struct cc_ack ack = {
		.ack_seq = p->sent,
		.snd_nxt = r->sent,
		.rtt_ns = now_ns - p->sent_ns,
		.peer_ns = peer_ns,
	};

	if (bytes > r->sent)
		bytes = r->sent;
	ack.acked_bytes = bytes > r->got ? bytes - r->got : 0;
	ack.acked_packets = ack.acked_bytes > 0;
	r->got += ack.acked_bytes;
	note_apart(r, now_ns);
	r->acked = p->sent;
	r->acked_ns = now_ns;
	cc_on_ack(&r->cc, now_ns, &ack);
}

/* Takes the PING with that stamp, if it is out. */
static bool answered(struct auto_rate *r, uint64_t stamp, uint64_t now_ns, struct rate_ping *sent)
{
	struct rate_ping *p = &r->ping[stamp % AUTO_RATE_PINGS];

	if (stamp >= r->pings || r->pings - stamp > AUTO_RATE_PINGS || !p->sent_ns || now_ns <= p->sent_ns)
		return false;
	*sent = *p;
	p->sent_ns = 0;
	note_trip(r, now_ns - sent->sent_ns);
	return true;
}

bool auto_rate_pong(struct auto_rate *r, uint64_t stamp, uint64_t now_ns)
{
	struct rate_ping sent;

	if (!answered(r, stamp, now_ns, &sent))
		return false;
	r->on = false;
	return true;
}

bool auto_rate_count(struct auto_rate *r, uint64_t stamp, uint64_t bytes, uint64_t peer_ns, uint64_t now_ns)
{
	struct rate_ping sent;

	if (!answered(r, stamp, now_ns, &sent))
		return false;
	if (stamp < r->answered)
		return true; /* a later one was faster */
	r->answered = stamp + 1;
	acknowledge(r, &sent, bytes, peer_ns, now_ns);
	return true;
}
