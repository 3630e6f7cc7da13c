/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Roam header (veRoCE 13.5): an end goes on under another address, and proves it.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------+---------------+-------------------------------+
 *   0 |     step      |            source QPN                         |
 *     +---------------+-----------------------------------------------+
 *   4 |                    number                                     |
 *     +---------------------------------------------------------------+
 *   8 |                    challenge (64 bits)                        |
 *     +---------------------------------------------------------------+
 *  16 |                    MAC (64 bits)                              |
 *     +---------------------------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { ROAMETH_LEN = 24 };

/* MOVED and ECHO are those of the end that has another address, CHALLENGE and DONE its peer's. */
enum roam_step { ROAM_MOVED = 1, ROAM_CHALLENGE, ROAM_ECHO, ROAM_DONE };

struct roameth {
	uint8_t step;        /* enum roam_step; not judged here */
	uint32_t source_qpn; /* 24 bits */
	uint32_t number;     /* of the move, by the count of the end that moves; 0: none has it */
	uint64_t challenge;  /* 0 in a MOVED */
	uint64_t mac;
};

static inline void roameth_decode(struct roameth *h, const uint8_t *p)
{
	h->step = p[0];
	h->source_qpn = get_be24(p + 1);
	h->number = get_be32(p + 4);
	h->challenge = get_be64(p + 8);
	h->mac = get_be64(p + 16);
}

static inline void roameth_encode(uint8_t *p, const struct roameth *h)
{
	p[0] = h->step;
	put_be24(p + 1, h->source_qpn);
	put_be32(p + 4, h->number);
	put_be64(p + 8, h->challenge);
	put_be64(p + 16, h->mac);
}
