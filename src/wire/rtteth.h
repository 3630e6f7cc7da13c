/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round-trip probe header (veRoCE 2), RTTReqETH and RTTRspETH alike. Stamps are nanoseconds, their
 * low 32 bits. A request leaves RX1 and TX2 at 0; RX2 is 0 on the wire, and the field is there for
 * the reader to fill in.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------------------------------------------------------+
 *   0 |                    congestion control context                 |
 *     +---------------------------------------------------------------+
 *   4 |                    TX1                                        |
 *     +---------------------------------------------------------------+
 *   8 |                    RX1                                        |
 *     +---------------------------------------------------------------+
 *  12 |                    TX2                                        |
 *     +---------------------------------------------------------------+
 *  16 |                    RX2                                        |
 *     +---------------------------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { RTTETH_LEN = 20 };

struct rtteth {
	uint32_t context; /* the requester's, echoed */
	uint32_t tx1;     /* the request left, by the requester's clock */
	uint32_t rx1;     /* it arrived, by the responder's clock */
	uint32_t tx2;     /* the response left, by the same clock */
	uint32_t rx2;     /* it arrived, by the requester's clock */
};

static inline void rtteth_decode(struct rtteth *h, const uint8_t *p)
{
	h->context = get_be32(p);
	h->tx1 = get_be32(p + 4);
	h->rx1 = get_be32(p + 8);
	h->tx2 = get_be32(p + 12);
	h->rx2 = get_be32(p + 16);
}

static inline void rtteth_encode(uint8_t *p, const struct rtteth *h)
{
	put_be32(p, h->context);
	put_be32(p + 4, h->tx1);
	put_be32(p + 8, h->rx1);
	put_be32(p + 12, h->tx2);
	put_be32(p + 16, h->rx2);
}
