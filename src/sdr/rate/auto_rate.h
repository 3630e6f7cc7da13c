/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rate of a sending end that finds itself: PINGs while data is sent, and their COUNTs (message/control.h) as the
 * acknowledgements of congestion control (cc/delivery.h). A PING that travels behind the packets of its sender finds them
 * counted, or lost. A peer that answers by a PONG cannot count; then there is no limit, as without this.
 *
 * It also keeps the round trips that PINGs have measured, where the rate is a fixed one too. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cc/cc.h"

enum { AUTO_RATE_PINGS = 128 };

/* A PING that is out. */
struct rate_ping {
	uint64_t sent_ns; /* 0: it was answered */
	uint64_t sent;    /* bytes of packets before it */
};

struct auto_rate {
	bool on;      /* the rate finds itself, as far as is known of the peer */
	struct cc cc; /* if it does */
	uint64_t slack_ns;
	uint64_t sent;            /* bytes of packets so far */
	uint64_t acked, acked_ns; /* of these, those before the newest PING that was answered; and when */
	uint64_t got;             /* what the peer had counted */
	uint64_t apart_ns;        /* how far apart answers come at most, lately: a host has waited for a processor */
	uint64_t due_ns;          /* when the next PING may go */
	uint64_t pings;           /* the next one's number */
	uint64_t answered;        /* one more than that of the newest one that was answered */
	struct rate_ping ping[AUTO_RATE_PINGS];
	uint64_t rtt_ns_least, rtt_ns_mean; /* 0: not measured yet */
};

/* slack_ns: queueing that may be the hosts'. Where a whole round trip is shorter, a queue cannot be told from that, and
 * nothing is limited. Without `on` everything may be sent at any time. */
void auto_rate_init(struct auto_rate *, bool on, uint32_t mtu, uint64_t slack_ns, uint64_t now_ns);

/* The rate at which packets may leave; 0: nothing limits it. */
uint64_t auto_rate_bps(const struct auto_rate *);
/* Whether so many bytes may be in flight besides, if the pace allows it. */
bool auto_rate_may_send(const struct auto_rate *, uint32_t bytes, uint64_t now_ns);
/* A packet is handed over, a repetition too. */
static inline void auto_rate_sent(struct auto_rate *r, uint32_t bytes)
{
	r->sent += bytes;
}

/* When the next PING is to be sent; UINT64_MAX: no PING is needed, as all was acknowledged or nothing limits the rate. */
uint64_t auto_rate_due(const struct auto_rate *);
/* A PING is sent now: the stamp that it carries. */
uint64_t auto_rate_ping(struct auto_rate *, uint64_t now_ns);
/* A PONG or a COUNT has come. False, with nothing changed: no PING that is out had that stamp. */
bool auto_rate_pong(struct auto_rate *, uint64_t stamp, uint64_t now_ns);
bool auto_rate_count(struct auto_rate *, uint64_t stamp, uint64_t bytes, uint64_t peer_ns, uint64_t now_ns);
