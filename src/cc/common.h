/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers that the algorithms share. For this folder only. */
#pragma once

#include "base/archive.h"
#include "cc/cc.h"
#include "cc/fixed.h"
#include "cc/params.h"
#include "cc/relative.h"

/* No rate is higher: leaves room to add two. */
#define CC_RATE_BPS_LIMIT (UINT64_C(1) << 60)

/* Used for what the configuration leaves open, where a number is needed. */
#define CC_LINE_RATE_BPS_UNKNOWN UINT64_C(100000000000)
#define CC_BASE_RTT_NS_UNKNOWN   UINT64_C(13000)

/*
 * The parts of the block that all algorithms share: bounds in order, the start window between them,
 * no pacing, no timer.
 */
static inline void cc_init_common(struct cc *c, const struct cc_config *config, const struct cc_ops *ops)
{
	const struct cc_params *p = config->params;
	uint64_t start = config->cwnd_bytes_start, least = 0;

	/* The least rate is a least window where the base RTT is known. */
	if (p && config->base_rtt_ns)
		least = fx_muldiv(cc_rate_bps(p->rate_min, config->line_rate_bps), config->base_rtt_ns,
				  UINT64_C(8000000000));
	*c = (struct cc){
		.ops = ops,
		.rate_bps = CC_UNPACED,
		.deadline_ns = CC_NO_DEADLINE,
		.mtu_bytes = config->mtu_bytes ? config->mtu_bytes : 1024,
		.loss = config->loss_ignored ? CC_LOSS_IGNORE
			: p                  ? (uint8_t)p->loss
					     : CC_LOSS_OWN,
	};
	c->cwnd_bytes_max = fx_min(config->cwnd_bytes_max ? config->cwnd_bytes_max : UINT64_MAX, CC_CWND_BYTES_LIMIT);
	c->cwnd_bytes_min = fx_min(fx_max(fx_max(config->cwnd_bytes_min, 1), least), c->cwnd_bytes_max);
	if (!start && config->line_rate_bps && config->base_rtt_ns)
		start = fx_muldiv(config->line_rate_bps, config->base_rtt_ns, UINT64_C(8000000000));
	else if (!start)
		start = UINT64_C(10) * c->mtu_bytes; /* RFC 6928 */
	c->cwnd_bytes = fx_min(fx_max(start, c->cwnd_bytes_min), c->cwnd_bytes_max);
}

/* How a loss counts for the algorithm. */
enum cc_loss_is { CC_LOSS_IS_NOTHING, CC_LOSS_IS_ITS_OWN, CC_LOSS_IS_CNP, CC_LOSS_IS_HALF };

static inline enum cc_loss_is cc_judge_loss(const struct cc *c, enum cc_loss loss)
{
	if (loss == CC_LOSS_RTO)
		return CC_LOSS_IS_ITS_OWN;
	switch (c->loss) {
	case CC_LOSS_IGNORE: return loss == CC_LOSS_SACK_HOLE ? CC_LOSS_IS_NOTHING : CC_LOSS_IS_ITS_OWN;
	case CC_LOSS_CNP: return CC_LOSS_IS_CNP;
	case CC_LOSS_HALVE: return CC_LOSS_IS_HALF;
	default: return CC_LOSS_IS_ITS_OWN;
	}
}

/* Counters of bytes saturate here, so that none can overflow. */
static inline uint64_t cc_acked_bytes(const struct cc_ack *ack)
{
	return fx_min(ack->acked_bytes, CC_CWND_BYTES_LIMIT);
}

/* How many of the bytes were marked, where the peer may have counted packets only. */
static inline uint64_t cc_marked_bytes(const struct cc_ack *ack)
{
	uint64_t acked = cc_acked_bytes(ack);

	if (ack->ecn_bytes)
		return fx_min(ack->ecn_bytes, acked);
	if (!ack->ecn_packets)
		return 0;
	if (ack->ecn_packets >= ack->acked_packets)
		return acked;
	return fx_muldiv(acked, ack->ecn_packets, ack->acked_packets);
}

/* Whether a round that began with this window made use of it: half is enough. */
static inline bool cc_round_used(uint64_t acked_bytes, uint64_t cwnd_bytes)
{
	return acked_bytes >= cwnd_bytes - cwnd_bytes / 2;
}

/* A window of 1/65536 bytes, back between the bounds. */
static inline uint64_t cc_clamp_q16(const struct cc *c, uint64_t cwnd_q16)
{
	return fx_min(fx_max(cwnd_q16, c->cwnd_bytes_min << 16), c->cwnd_bytes_max << 16);
}

/* Additive increase of `packets_q16` a round trip, for these bytes; below one packet for each. */
static inline uint64_t cc_additive_q16(const struct cc *c, uint64_t cwnd_q16, uint32_t packets_q16,
				       uint64_t acked_bytes)
{
	uint64_t mtu_q16 = (uint64_t)c->mtu_bytes << 16;

	return fx_muldiv((uint64_t)c->mtu_bytes * packets_q16, acked_bytes << 16, fx_max(cwnd_q16, mtu_q16));
}

/* The window of this rate; UINT64_MAX where it does not fit. */
static inline uint64_t cc_pace_bps(uint64_t cwnd_q16, uint64_t rtt_ns)
{
	return fx_max(fx_muldiv(cwnd_q16, UINT64_C(8000000000), fx_max(rtt_ns, 1)) >> 16, 1);
}

/* base^n of a share. */
static inline uint64_t q32_pow(uint64_t base_q32, uint64_t n)
{
	uint64_t result = Q32_ONE;

	for (; n && result; n >>= 1) {
		if (n & 1)
			result = q32_mul(result, base_q32);
		base_q32 = q32_mul(base_q32, base_q32);
	}
	return result;
}

static inline void cc_limiter_set(struct cc *c, const struct cc_limiter *l, uint64_t rate_bps)
{
	c->rate_bps = fx_min(fx_max(rate_bps, l->min_bps), l->line_bps);
	if (l->window_bytes)
		c->cwnd_bytes = fx_min(fx_max(fx_muldiv(l->window_bytes, c->rate_bps, l->line_bps), c->cwnd_bytes_min),
				       c->cwnd_bytes_max);
}

/* After cc_init_common: sets the line rate, and with +w takes the first window for that rate. */
static inline void cc_limiter_init(struct cc *c, struct cc_limiter *l, const struct cc_config *config,
				   uint64_t rate_min, uint64_t now_ns)
{
	const struct cc_params *p = config->params;

	l->line_bps = config->line_rate_bps ? config->line_rate_bps : CC_LINE_RATE_BPS_UNKNOWN;
	l->line_bps = fx_min(l->line_bps, CC_RATE_BPS_LIMIT);
	rate_min = cc_rate_bps(p && p->rate_min ? p->rate_min : rate_min, l->line_bps);
	l->min_bps = fx_min(fx_max(rate_min, 1), l->line_bps);
	l->window_bytes = p && p->window ? c->cwnd_bytes : 0;
	l->active_ns = now_ns;
	l->halved_ns = UINT64_MAX;
	l->halve_gap_ns = config->base_rtt_ns ? config->base_rtt_ns : CC_BASE_RTT_NS_UNKNOWN;
	if (!l->window_bytes)
		c->cwnd_bytes = c->cwnd_bytes_max;
	cc_limiter_set(c, l, l->line_bps);
}

/* What changes; the rest follows from the configuration. */
static inline void cc_limiter_archive(struct archive *a, struct cc_limiter *l)
{
	ARCHIVE_TIMES(a, l, active_ns, halved_ns);
}

/* Whether a loss may take a half: not if another one has just done so. */
static inline bool cc_limiter_may_halve(struct cc_limiter *l, uint64_t now_ns)
{
	if (l->halved_ns != UINT64_MAX && fx_sub(now_ns, l->halved_ns) < l->halve_gap_ns)
		return false;
	l->halved_ns = now_ns;
	return true;
}

/* As cc_judge_loss(), but a half too soon after another half is ignored. */
static inline enum cc_loss_is cc_limiter_judge_loss(const struct cc *c, struct cc_limiter *l, enum cc_loss loss,
						    uint64_t now_ns)
{
	enum cc_loss_is is = cc_judge_loss(c, loss);

	return is == CC_LOSS_IS_HALF && !cc_limiter_may_halve(l, now_ns) ? CC_LOSS_IS_NOTHING : is;
}

/* Half of the way to a target; rounded up, or the line rate would never be reached. */
static inline void cc_limiter_approach(struct cc *c, const struct cc_limiter *l, uint64_t target_bps)
{
	cc_limiter_set(c, l, (c->rate_bps + target_bps + 1) / 2);
}

/*
 * The end of the period after the one that ended at at_ns. If called late, a whole period from now,
 * so that late calls do not come in a volley.
 */
static inline uint64_t cc_next_period_ns(uint64_t at_ns, uint64_t period_ns, uint64_t now_ns)
{
	return at_ns + period_ns > now_ns ? at_ns + period_ns : fx_add(now_ns, period_ns);
}

static inline bool cc_limiter_is_idle(const struct cc_limiter *l, uint64_t now_ns)
{
	return fx_sub(now_ns, l->active_ns) >= CC_IDLE_NS;
}

/* Each algorithm's part of cc_init: fills the whole block. */
