/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic ACK Extended Transport Header (IBTA 9.5): the value that memory held before.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------------------------------------------------------+
 *   0 |                    original remote data (63..32)              |
 *   4 |                    original remote data (31..0)               |
 *     +---------------------------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { ATOMICACKETH_LEN = 8 };

struct atomicacketh {
	uint64_t orig;
};

static inline void atomicacketh_decode(struct atomicacketh *h, const uint8_t *p)
{
	h->orig = get_be64(p);
}

static inline void atomicacketh_encode(uint8_t *p, const struct atomicacketh *h)
{
	put_be64(p, h->orig);
}
