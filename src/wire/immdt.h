/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Immediate Data (IBTA 9.3): 4 bytes that the peer's consumer gets with its completion.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------------------------------------------------------+
 *   0 |                    immediate data                             |
 *     +---------------------------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { IMMDT_LEN = 4 };

struct immdt {
	uint32_t imm; /* host order; verbs carries it in network order */
};

static inline void immdt_decode(struct immdt *h, const uint8_t *p)
{
	h->imm = get_be32(p);
}

static inline void immdt_encode(uint8_t *p, const struct immdt *h)
{
	put_be32(p, h->imm);
}
