/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters that depend on the link: a rate may be a part of the line rate, a time a multiple of
 * the base RTT. The top bit of such a number says so. They become plain numbers when a block is
 * made, so one set of parameters serves links of every speed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cc/fixed.h"

#define CC_RELATIVE (UINT64_C(1) << 63)

/* 1/n of the line rate, n > 0. */
#define CC_LINE_PART(n) (CC_RELATIVE | (uint64_t)(n))

/* num/den of the base RTT, below 2^31. */
#define CC_RTTS(num, den) (CC_RELATIVE | Q32_RATIO(num, den))

static inline bool cc_is_relative(uint64_t value)
{
	return value & CC_RELATIVE;
}

/* In bit/s, at most the line rate if it is a part of it. */
static inline uint64_t cc_rate_bps(uint64_t value, uint64_t line_rate_bps)
{
	uint64_t part = value & ~CC_RELATIVE;

	return cc_is_relative(value) ? line_rate_bps / (part ? part : 1) : value;
}

static inline uint64_t cc_time_ns(uint64_t value, uint64_t base_rtt_ns)
{
	return cc_is_relative(value) ? q32_mul(base_rtt_ns, value & ~CC_RELATIVE) : value;
}
