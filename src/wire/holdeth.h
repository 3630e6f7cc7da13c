/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hold header (veRoCE 13.4): asks the peer to wait, or to go on.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +-------------------------------+-------------------------------+
 *   0 |        time (ms)              |            number             |
 *     +---------------+---------------+-------------------------------+
 *   4 |   reserved    |            source QPN                         |
 *     +---------------+-----------------------------------------------+
 *   8 |                    nonce                                      |
 *     +---------------------------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { HOLDETH_LEN = 12, HOLD_MS_MAX = 10000 };

struct holdeth {
	uint16_t ms;         /* 0: RESUME; not judged here */
	uint16_t number;     /* of the hold, by its sender's count; 0: none has it */
	uint32_t source_qpn; /* 24 bits */
	uint32_t nonce;      /* that of the end that the packet goes to */
};

static inline void holdeth_decode(struct holdeth *h, const uint8_t *p)
{
	h->ms = get_be16(p);
	h->number = get_be16(p + 2);
	h->source_qpn = get_be24(p + 5);
	h->nonce = get_be32(p + 8);
}

static inline void holdeth_encode(uint8_t *p, const struct holdeth *h)
{
	put_be16(p, h->ms);
	put_be16(p + 2, h->number);
	p[4] = 0;
	put_be24(p + 5, h->source_qpn);
	put_be32(p + 8, h->nonce);
}
