/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet Offset header (veRoCE 2): the packet's index in its message, 0 for the first. In an
 * acknowledgement, the index of the packet behind the one that it names (veRoCE 5.2).
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------+-----------------------------------------------+
 *   0 |    reserved   |            PO                                 |
 *     +---------------+-----------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum {
	POETH_LEN = 4,
	POETH_NO_INFO = 0xffffff /* not known; in acknowledgements only */
};

struct poeth {
	uint32_t po; /* 24 bits */
};

static inline void poeth_decode(struct poeth *h, const uint8_t *p)
{
	h->po = get_low24(p);
}

static inline void poeth_encode(uint8_t *p, const struct poeth *h)
{
	put_with24(p, 0, h->po);
}
