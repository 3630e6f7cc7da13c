/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selective Acknowledgement header (veRoCE 2): which of up to 128 PSNs from start_psn on have
 * arrived. Bit i of the bitmap, a big-endian integer of 128 bits, is PSN start_psn + i.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------+-----------------------------------------------+
 *   0 |    ValidLen   |            StartPSN                           |
 *     +---------------+-----------------------------------------------+
 *   4 |                    bitmap (127..96)                           |
 *   8 |                    bitmap (95..64)                            |
 *  12 |                    bitmap (63..32)                            |
 *  16 |                    bitmap (31..0)                             |
 *     +---------------------------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { SACKETH_LEN = 20, SACKETH_BITS = 128 };

struct sacketh {
	uint8_t valid_len;  /* valid bits, 1..SACKETH_BITS; the others are unknown */
	uint32_t start_psn; /* 24 bits */
	uint64_t bits[2];   /* [0] is bits 0..63, [1] bits 64..127; 1: received */
};

/* The low n of 64 bits; n may be any. */
static inline uint64_t sacketh_low(unsigned n)
{
	return n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

/*
 * With any bytes of the peer, valid_len is at most SACKETH_BITS afterwards and the bits from
 * valid_len on are 0. veRoCE 2 gives no meaning to a ValidLen of 0 or above 128: they are read as
 * no bit and as all.
 */
static inline void sacketh_decode(struct sacketh *h, const uint8_t *p)
{
	unsigned n = p[0] < SACKETH_BITS ? p[0] : SACKETH_BITS;

	h->valid_len = (uint8_t)n;
	h->start_psn = get_be24(p + 1);
	h->bits[1] = get_be64(p + 4) & (n > 64 ? sacketh_low(n - 64) : 0);
	h->bits[0] = get_be64(p + 12) & sacketh_low(n);
}

static inline void sacketh_encode(uint8_t *p, const struct sacketh *h)
{
	p[0] = h->valid_len;
	put_be24(p + 1, h->start_psn);
	put_be64(p + 4, h->bits[1]);
	put_be64(p + 12, h->bits[0]);
}
