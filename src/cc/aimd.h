/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much a RoCEv2 QP may have unacknowledged. The window begins at one train and doubles a round trip
 * until something is lost; then it halves with each loss and grows by an eighth of itself a round trip,
 * so that go-back-N senders sharing a receive buffer that is too small for all of them settle. So a
 * slow peer, for example an emulated one, is not overrun again and again before its first
 * acknowledgement. Bytes throughout.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct aimd {
	uint32_t window_bytes;
	uint32_t window_bytes_max;
	uint32_t window_bytes_min;
	uint32_t acked_bytes; /* since the window last grew */
	bool doubling;        /* nothing was lost yet */
};

enum { AIMD_START_BYTES = 64 << 10 };

static inline void aimd_init(struct aimd *c, uint32_t max, uint32_t min)
{
	c->window_bytes_max = max > min ? max : min;
	c->window_bytes_min = min;
	c->window_bytes = c->window_bytes_max < AIMD_START_BYTES ? c->window_bytes_max : AIMD_START_BYTES;
	if (c->window_bytes < min)
		c->window_bytes = min;
	c->acked_bytes = 0;
	c->doubling = true;
}

static inline void aimd_acked(struct aimd *c, uint32_t bytes)
{
	if (c->window_bytes >= c->window_bytes_max)
		return;
	c->acked_bytes += bytes;
	if (c->acked_bytes < c->window_bytes)
		return;
	c->acked_bytes = 0;
	c->window_bytes += c->doubling ? c->window_bytes : c->window_bytes / 8;
	if (c->window_bytes > c->window_bytes_max)
		c->window_bytes = c->window_bytes_max;
}

static inline void aimd_lost(struct aimd *c)
{
	c->acked_bytes = 0;
	c->doubling = false;
	c->window_bytes /= 2;
	if (c->window_bytes < c->window_bytes_min)
		c->window_bytes = c->window_bytes_min;
}
