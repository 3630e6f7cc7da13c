/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time stamp header (veRoCE 13.2), directly behind the BTH of a packet that has a PSN of its own
 * and the bit T. Paths and the packets on them are numbered per ordered pair of hosts, not per QP.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------------------------------------------------------+
 *   0 |                    TX1 (ns, low 32 bits)                      |
 *     +---------------+-----------------------------------------------+
 *   4 |     PathID    |            PathSeq                            |
 *     +---------------+-----------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { TSETH_LEN = 8 };

struct tseth {
	uint32_t tx1; /* when the packet left, by the sender's clock */
	uint8_t path_id;
	uint32_t path_seq; /* 24 bits */
};

static inline void tseth_decode(struct tseth *h, const uint8_t *p)
{
	h->tx1 = get_be32(p);
	h->path_id = p[4];
	h->path_seq = get_low24(p + 4);
}

static inline void tseth_encode(uint8_t *p, const struct tseth *h)
{
	put_be32(p, h->tx1);
	put_with24(p + 4, h->path_id, h->path_seq);
}
