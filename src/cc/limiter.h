/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What algorithms that set a rate have in common: they start at the line rate, stay between a least
 * rate and the line's, and may carry a window that shrinks with the rate ("+w" of the HPCC paper).
 *
 * Private to src/cc.
 */
#pragma once

#include <stdint.h>

/* After this long without a packet or an acknowledgement the flow is idle, and its timers stop. */
#define CC_IDLE_NS UINT64_C(500000000)

struct cc_limiter {
	uint64_t line_bps;
	uint64_t min_bps;
	uint64_t window_bytes; /* at the line rate; 0: the widest, at any rate */
	uint64_t active_ns;    /* when something was last sent or acknowledged */
	uint64_t halved_ns;    /* when a loss last took a half; UINT64_MAX: never */
	uint64_t halve_gap_ns; /* least time between two halves */
};
