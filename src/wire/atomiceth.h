/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic Extended Transport Header (IBTA 9.3).
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------------------------------------------------------+
 *   0 |                    virtual address (63..32)                   |
 *   4 |                    virtual address (31..0)                    |
 *     +---------------------------------------------------------------+
 *   8 |                    R_Key                                      |
 *     +---------------------------------------------------------------+
 *  12 |                    swap (CmpSwap) or add (FetchAdd) (63..32)  |
 *  16 |                    swap or add (31..0)                        |
 *     +---------------------------------------------------------------+
 *  20 |                    compare (63..32), ignored by FetchAdd      |
 *  24 |                    compare (31..0)                            |
 *     +---------------------------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { ATOMICETH_LEN = 28 };

struct atomiceth {
	uint64_t va;
	uint32_t rkey;
	uint64_t swap_add;
	uint64_t compare;
};

static inline void atomiceth_decode(struct atomiceth *h, const uint8_t *p)
{
	h->va = get_be64(p);
	h->rkey = get_be32(p + 8);
	h->swap_add = get_be64(p + 12);
	h->compare = get_be64(p + 20);
}

static inline void atomiceth_encode(uint8_t *p, const struct atomiceth *h)
{
	put_be64(p, h->va);
	put_be32(p + 8, h->rkey);
	put_be64(p + 12, h->swap_add);
	put_be64(p + 20, h->compare);
}
