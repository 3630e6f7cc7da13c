/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's results for its queue, computed from its lengths over time; the network has its own
 * counts.
 */
#pragma once

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/results.h"

static inline uint64_t *results_queue_bin(struct results_port *p)
{
	uint64_t bin = (p->queue_bytes + RESULTS_QUEUE_BIN_BYTES - 1) / RESULTS_QUEUE_BIN_BYTES;

	assert(bin < RESULTS_QUEUE_BINS_MAX);
	if (bin >= p->queue_bins) {
		p->queue_time_ps = reallocarray(p->queue_time_ps, bin + 1, sizeof(uint64_t));
		assert(p->queue_time_ps);
		memset(p->queue_time_ps + p->queue_bins, 0, (bin + 1 - p->queue_bins) * sizeof(uint64_t));
		p->queue_bins = (uint32_t)bin + 1;
	}
	return &p->queue_time_ps[bin];
}

/*
 * The queue is now `bytes` long; also at the end, for the time since the last change. Time must not go back,
 * and there is memory.
 */
static inline void results_queue_change(struct results_port *p, uint64_t now_ps, uint64_t bytes)
{
	uint64_t since_ps = p->queue_since_ps, window_ps = p->queue.window_ps;
	unsigned __int128 sum = (unsigned __int128)p->queue_byte_ps_hi << 64 | p->queue_byte_ps_lo;

	assert(now_ps >= since_ps);
	sum += (unsigned __int128)p->queue_bytes * (now_ps - since_ps);
	p->queue_byte_ps_hi = (uint64_t)(sum >> 64);
	p->queue_byte_ps_lo = (uint64_t)sum;
	if (now_ps > since_ps)
		*results_queue_bin(p) += now_ps - since_ps;
	/* A length that does not change counts in every window. */
	for (uint64_t at_ps = since_ps; window_ps && p->queue_bytes && at_ps < now_ps;
	     at_ps = (at_ps / window_ps + 1) * window_ps)
		results_series_add(&p->queue, at_ps, p->queue_bytes);
	if (window_ps)
		results_series_add(&p->queue, now_ps, bytes);
	p->queue_since_ps = now_ps;
	p->queue_bytes = bytes;
	if (bytes > p->queue_bytes_max)
		p->queue_bytes_max = bytes;
}
