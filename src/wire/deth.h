/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagram Extended Transport Header (IBTA 9.3).
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------------------------------------------------------+
 *   0 |                    Q_Key                                      |
 *     +---------------+-----------------------------------------------+
 *   4 |   reserved    |            source QP                          |
 *     +---------------+-----------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { DETH_LEN = 8 };

struct deth {
	uint32_t qkey;
	uint32_t sqpn; /* 24 bits */
};

static inline void deth_decode(struct deth *h, const uint8_t *p)
{
	h->qkey = get_be32(p);
	h->sqpn = get_be24(p + 5);
}

static inline void deth_encode(uint8_t *p, const struct deth *h)
{
	put_be32(p, h->qkey);
	p[4] = 0;
	put_be24(p + 5, h->sqpn);
}
