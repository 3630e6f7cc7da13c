/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC Extended Transport Header (IBTA A14.3.3): the XRC SRQ that a request is for. It follows the BTH of every XRC request.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------+-----------------------------------------------+
 *   0 |   reserved    |                 XRCSRQ                        |
 *     +---------------+-----------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { XRCETH_LEN = 4 };

struct xrceth {
	uint32_t srqn; /* 24 bits */
};

static inline void xrceth_decode(struct xrceth *h, const uint8_t *p)
{
	h->srqn = get_be32(p) & 0xffffff;
}

static inline void xrceth_encode(uint8_t *p, const struct xrceth *h)
{
	put_be32(p, h->srqn & 0xffffff);
}
