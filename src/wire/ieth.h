/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invalidate Extended Transport Header (IBTA 9.3): the R_Key that SEND with Invalidate revokes.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------------------------------------------------------+
 *   0 |                    R_Key                                      |
 *     +---------------------------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { IETH_LEN = 4 };

struct ieth {
	uint32_t rkey;
};

static inline void ieth_decode(struct ieth *h, const uint8_t *p)
{
	h->rkey = get_be32(p);
}

static inline void ieth_encode(uint8_t *p, const struct ieth *h)
{
	put_be32(p, h->rkey);
}
