/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time stamp echo header (veRoCE 13.2), directly behind the BTH of an acknowledgement that has the
 * bit T. The counts are of the path that the echoed packet took, and are never reset. The last word is
 * present if RXSHARE was agreed. No bit shows it; the packet's length does (wire/veroce.c).
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------------------------------------------------------+
 *   0 |                    TX1 of the echoed packet                   |
 *     +---------------------------------------------------------------+
 *   4 |                    RX1                                        |
 *     +---------------------------------------------------------------+
 *   8 |                    TX2                                        |
 *     +---------------+-----------------------------------------------+
 *  12 |     PathID    |            PathRcv                            |
 *     +---------------+-----------------------------------------------+
 *  16 |      Dups     |            PathCE                             |
 *     +---------------+-----------------------------------------------+
 *  20 |                   share (kbit/s), or absent                   |
 *     +---------------------------------------------------------------+
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/byteorder.h"

enum { TSEETH_LEN = 20, TSEETH_SHARE_LEN = 4 };

struct tseeth {
	uint32_t tx1; /* by the clock of the echoed packet's sender */
	uint32_t rx1; /* when that packet arrived, by the acknowledger's clock */
	uint32_t tx2; /* when this acknowledgement left, by the same clock */
	uint8_t path_id;
	uint32_t path_rcv; /* 24 bits; packets received */
	uint8_t dups;      /* duplicates among them, modulo 256 */
	uint32_t path_ce;  /* 24 bits; packets that carried a congestion mark */
	/*
	 * The highest rate at which the QP may send, headers and frames included; 0: any. (Why a rate and
	 * not a window: docs/veroce.md.)
	 */
	uint32_t share_kbps;
	bool has_share; /* not in the bytes: whether the last word is present */
};

static inline uint32_t tseeth_len(const struct tseeth *h)
{
	return TSEETH_LEN + (h->has_share ? TSEETH_SHARE_LEN : 0);
}

/* Reads or writes tseeth_len() bytes; the caller sets has_share first. */
static inline void tseeth_decode(struct tseeth *h, const uint8_t *p)
{
	h->tx1 = get_be32(p);
	h->rx1 = get_be32(p + 4);
	h->tx2 = get_be32(p + 8);
	h->path_id = p[12];
	h->path_rcv = get_low24(p + 12);
	h->dups = p[16];
	h->path_ce = get_low24(p + 16);
	h->share_kbps = h->has_share ? get_be32(p + TSEETH_LEN) : 0;
}

static inline void tseeth_encode(uint8_t *p, const struct tseeth *h)
{
	put_be32(p, h->tx1);
	put_be32(p + 4, h->rx1);
	put_be32(p + 8, h->tx2);
	put_with24(p + 12, h->path_id, h->path_rcv);
	put_with24(p + 16, h->dups, h->path_ce);
	if (h->has_share)
		put_be32(p + TSEETH_LEN, h->share_kbps);
}
