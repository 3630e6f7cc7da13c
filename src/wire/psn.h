/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet sequence numbers: 24-bit serial arithmetic (IBTA 9.7.2). A PSN is held in a uint32_t whose
 * upper 8 bits are 0; both functions also accept arguments where they are not.
 */
#pragma once

#include <stdint.h>

enum { PSN_MASK = 0xffffff };

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PSN_MASK;
}

/* a - b in [-2^23, 2^23): negative where a comes before b, 0 where they are the same PSN. */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}
