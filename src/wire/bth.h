/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Base Transport Header (IBTA 9.2):
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------+-+-+---+-------+-------------------------------+
 *   0 |    opcode     |S|M|Pad| TVer  |             P_Key             |
 *     +-+-+-----------+-+-+---+-------+-------------------------------+
 *   4 |F|B| reserved  |            destination QP                     |
 *     +-+-+-+---------+-----------------------------------------------+
 *   8 |A|R|T| reserv. |            PSN                                |
 *     +-+-+-+---------+-----------------------------------------------+
 *
 * F and B (FECN, BECN) are those of RoCEv2 and of IBTA 1.3; older texts call the byte reserved.
 * R and T are those of veRoCE 2. In RoCEv2 they are reserved: it sends 0 and ignores them on
 * receipt.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/byteorder.h"

enum { BTH_LEN = 12 };

struct bth {
	uint8_t opcode;
	bool se;      /* solicited event */
	bool migreq;  /* migration state */
	uint8_t pad;  /* 0..3 bytes after the payload */
	uint8_t tver; /* transport header version, 4 bits; 0 is the only one defined */
	uint16_t pkey;
	bool fecn;
	bool becn;
	bool ackreq;
	bool retrans;  /* veRoCE: the packet was sent before */
	bool ts;       /* veRoCE 13.2: a time stamp header follows */
	uint32_t dqpn; /* 24 bits */
	uint32_t psn;  /* 24 bits */
};

static inline void bth_decode(struct bth *h, const uint8_t *p)
{
	h->opcode = p[0];
	h->se = p[1] >> 7 & 1;
	h->migreq = p[1] >> 6 & 1;
	h->pad = p[1] >> 4 & 3;
	h->tver = p[1] & 0xf;
	h->pkey = get_be16(p + 2);
	h->fecn = p[4] >> 7 & 1;
	h->becn = p[4] >> 6 & 1;
	h->dqpn = get_low24(p + 4);
	h->ackreq = p[8] >> 7 & 1;
	h->retrans = p[8] >> 6 & 1;
	h->ts = p[8] >> 5 & 1;
	h->psn = get_low24(p + 8);
}

/* Reserved bits are sent as 0; bits beyond a field's width are dropped. */
static inline void bth_encode(uint8_t *p, const struct bth *h)
{
	p[0] = h->opcode;
	p[1] = (uint8_t)(h->se << 7 | h->migreq << 6 | (h->pad & 3) << 4 | (h->tver & 0xf));
	put_be16(p + 2, h->pkey);
	put_with24(p + 4, (uint8_t)(h->fecn << 7 | h->becn << 6), h->dqpn);
	put_with24(p + 8, (uint8_t)(h->ackreq << 7 | h->retrans << 6 | h->ts << 5), h->psn);
}
