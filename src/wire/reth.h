/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA Extended Transport Header (IBTA 9.3): where a WRITE goes or a READ comes from.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------------------------------------------------------+
 *   0 |                    virtual address (63..32)                   |
 *   4 |                    virtual address (31..0)                    |
 *     +---------------------------------------------------------------+
 *   8 |                    R_Key                                      |
 *     +---------------------------------------------------------------+
 *  12 |                    DMA length                                 |
 *     +---------------------------------------------------------------+
 *
 * In RoCEv2 the place and the length are those of the whole message, in each packet of a veRoCE
 * WRITE those of the packet (veRoCE 3).
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { RETH_LEN = 16 };

struct reth {
	uint64_t va;
	uint32_t rkey;
	uint32_t len;
};

static inline void reth_decode(struct reth *h, const uint8_t *p)
{
	h->va = get_be64(p);
	h->rkey = get_be32(p + 8);
	h->len = get_be32(p + 12);
}

static inline void reth_encode(uint8_t *p, const struct reth *h)
{
	put_be64(p, h->va);
	put_be32(p + 8, h->rkey);
	put_be32(p + 12, h->len);
}
