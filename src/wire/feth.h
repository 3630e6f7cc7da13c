/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FLUSH Extended Transport Header (IBTA A19.3.2): what a FLUSH does, and to what. The RETH behind it has the range.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------------------------------------------+---+-------+
 *   0 |    reserved                                       |SEL|  PLT  |
 *     +---------------------------------------------------+---+-------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { FETH_LEN = 4 };

/* PLT, placement type: bits. Those that have no name are reserved. */
enum feth_placement { FETH_GLOBAL = 1 << 0, FETH_PERSISTENT = 1 << 1 };

/* SEL, selectivity level: a number. Those that have no name are reserved. */
enum feth_selectivity { FETH_RANGE = 0, FETH_REGION = 1 };

struct feth {
	uint8_t placement;   /* 4 bits */
	uint8_t selectivity; /* 2 bits */
};

static inline void feth_decode(struct feth *h, const uint8_t *p)
{
	h->placement = p[3] & 0xf;
	h->selectivity = p[3] >> 4 & 3;
}

static inline void feth_encode(uint8_t *p, const struct feth *h)
{
	put_be32(p, (h->selectivity & 3u) << 4 | (h->placement & 0xfu));
}
