/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the pace that a control block sets: a packet may leave when the one before it has had its time at
 * the present rate, so a change of rate also moves a packet that already waits. Fractions of a nanosecond
 * are kept; a call in the nanosecond in which the packet is due is not late.
 *
 * With slack there need not be a call for each packet: packets may leave up to slack_ns before their
 * time. Once the slack is used up, the next packet waits until half of it has come back. So a caller that
 * wakes up to half of the slack late keeps the rate, and sends half of the slack's worth at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cc/cc.h"

/* All zeroes: nothing was sent yet. */
struct pacer {
	uint64_t last_ns;    /* when the last packet had its turn, */
	uint32_t last_frac;  /* ... and its fraction, in 2^-32 ns */
	uint32_t last_bytes; /* on the wire */
	bool spent;          /* no packet could follow the last one at once */
};

static inline uint64_t pacer_next_ns(const struct pacer *p, uint64_t rate_bps, uint32_t *frac)
{
	unsigned __int128 gap;

	*frac = p->last_frac;
	if (rate_bps == CC_UNPACED)
		return p->last_ns;
	gap = ((unsigned __int128)p->last_bytes * 8000000000u << 32) / rate_bps + p->last_frac;
	*frac = (uint32_t)gap;
	return p->last_ns + (uint64_t)(gap >> 32);
}

/* When the next packet may leave. */
static inline uint64_t pacer_due_ns(const struct pacer *p, uint64_t rate_bps, uint64_t slack_ns)
{
	uint32_t frac;
	uint64_t at;

	if (rate_bps == CC_UNPACED || !p->last_bytes)
		return 0;
	at = pacer_next_ns(p, rate_bps, &frac);
	at += frac != 0;
	if (p->spent)
		slack_ns /= 2;
	return at > slack_ns ? at - slack_ns : 0;
}

/* A packet with that many bytes on the wire leaves. */
static inline void pacer_sent(struct pacer *p, uint64_t rate_bps, uint32_t bytes, uint64_t slack_ns, uint64_t now_ns)
{
	uint32_t frac;
	uint64_t at = pacer_next_ns(p, rate_bps, &frac);

	if (at + 1 < now_ns) {
		at = now_ns;
		frac = 0;
	}
	p->last_ns = at;
	p->last_frac = frac;
	p->last_bytes = bytes;
	p->spent = false;
	p->spent = pacer_due_ns(p, rate_bps, slack_ns) > now_ns;
}
