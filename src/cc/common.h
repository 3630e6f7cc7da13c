/* SPDX-License-Identifier: BSD-2-Clause */
/* What the algorithms share. For this folder only. */
#ifndef CC_COMMON_H
#define CC_COMMON_H

#include "cc/cc.h"
#include "cc/fixed.h"

/*
 * The parts of the block that are no algorithm's: bounds in order, the start window between them,
 * no pacing, no timer.
 */
static inline void cc_init_common(struct cc *c, const struct cc_config *config,
				  const struct cc_ops *ops)
{
	uint64_t start = config->cwnd_bytes_start;

	*c = (struct cc){
		.ops = ops,
		.rate_bps = CC_UNPACED,
		.deadline_ns = CC_NO_DEADLINE,
		.mtu_bytes = config->mtu_bytes ? config->mtu_bytes : 1024,
		.loss_ignored = config->loss_ignored,
	};
	c->cwnd_bytes_max = fx_min(config->cwnd_bytes_max ? config->cwnd_bytes_max : UINT64_MAX,
				   CC_CWND_BYTES_LIMIT);
	c->cwnd_bytes_min = fx_min(fx_max(config->cwnd_bytes_min, 1), c->cwnd_bytes_max);
	if (!start && config->line_rate_bps && config->base_rtt_ns)
		start = fx_muldiv(config->line_rate_bps, config->base_rtt_ns, UINT64_C(8000000000));
	else if (!start)
		start = UINT64_C(10) * c->mtu_bytes; /* RFC 6928 */
	c->cwnd_bytes = fx_min(fx_max(start, c->cwnd_bytes_min), c->cwnd_bytes_max);
}

/* No counter of bytes need hold more than this, so that none can overflow. */
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

	return fx_muldiv((uint64_t)c->mtu_bytes * packets_q16, acked_bytes << 16,
			 fx_max(cwnd_q16, mtu_q16));
}

/* Each algorithm's part of cc_init: fills the whole block. */
void cc_none_init(struct cc *, const struct cc_config *, uint64_t now_ns);
void cc_swift_init(struct cc *, const struct cc_config *, uint64_t now_ns);
void cc_dctcp_init(struct cc *, const struct cc_config *, uint64_t now_ns);

#endif
