/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Message Sequence Number header (veRoCE 2): the number of the message that this packet belongs to.
 * Requests and responses count apart, each from 1 (veRoCE 4.3).
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------+-----------------------------------------------+
 *   0 |    reserved   |            MSN                                |
 *     +---------------+-----------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { MSNETH_LEN = 4 };

struct msneth {
	uint32_t msn; /* 24 bits */
};

static inline void msneth_decode(struct msneth *h, const uint8_t *p)
{
	h->msn = get_low24(p);
}

static inline void msneth_encode(uint8_t *p, const struct msneth *h)
{
	put_with24(p, 0, h->msn);
}
