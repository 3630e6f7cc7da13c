/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive Queue header (veRoCE 2): which receive WQE the message takes, counted from 0 in the order
 * of posting (veRoCE 4.4).
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------+-----------------------------------------------+
 *   0 |    reserved   |            RQMSN                              |
 *     +---------------+-----------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { RQETH_LEN = 4 };

struct rqeth {
	uint32_t rqmsn; /* 24 bits */
};

static inline void rqeth_decode(struct rqeth *h, const uint8_t *p)
{
	h->rqmsn = get_low24(p);
}

static inline void rqeth_encode(uint8_t *p, const struct rqeth *h)
{
	put_with24(p, 0, h->rqmsn);
}
