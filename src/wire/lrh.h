/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local Route Header (IBTA 7.7), which every InfiniBand packet begins with:
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +-------+-------+-------+---+---+-------------------------------+
 *   0 |  VL   | LVer  |  SL   | 0 |LNH|              DLID             |
 *     +-------+-+-----+-------+---+---+-------------------------------+
 *   4 |    0    |       PktLen        |              SLID             |
 *     +---------+---------------------+-------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum {
	LRH_LEN = 8,

	/* Link next header. */
	LNH_RAW = 0,
	LNH_IPV6 = 1,
	LNH_LOCAL = 2,  /* BTH */
	LNH_GLOBAL = 3, /* GRH, then BTH */

	LID_NONE = 0,
	LID_UNICAST_MAX = 0xbfff,
	LID_MULTICAST_MAX = 0xfffe,
	LID_PERMISSIVE = 0xffff, /* of directed-route SMPs */

	VL_MANAGEMENT = 15
};

struct lrh {
	uint8_t vl;   /* 4 bits; a switch may change it */
	uint8_t lver; /* 4 bits; 0 is the only one defined */
	uint8_t sl;   /* 4 bits */
	uint8_t lnh;  /* 2 bits */
	uint16_t dlid;
	uint16_t pktlen; /* 11 bits: words of 4 bytes from here to the ICRC, VCRC not counted */
	uint16_t slid;
};

static inline void lrh_decode(struct lrh *h, const uint8_t *p)
{
	h->vl = p[0] >> 4;
	h->lver = p[0] & 0xf;
	h->sl = p[1] >> 4;
	h->lnh = p[1] & 3;
	h->dlid = get_be16(p + 2);
	h->pktlen = get_be16(p + 4) & 0x7ff;
	h->slid = get_be16(p + 6);
}

static inline void lrh_encode(uint8_t *p, const struct lrh *h)
{
	p[0] = (uint8_t)(h->vl << 4 | (h->lver & 0xf));
	p[1] = (uint8_t)(h->sl << 4 | (h->lnh & 3));
	put_be16(p + 2, h->dlid);
	put_be16(p + 4, h->pktlen & 0x7ff);
	put_be16(p + 6, h->slid);
}
