/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DDP's headers (RFC 5041 4), with RDMAP's control byte (RFC 5040 4.1), which stands inside them. They begin a ULPDU.
 *
 *      0                   1
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5
 *     +-+-+-------+---+---+---+-------+
 *   0 |T|L| rsvd  | DV| RV|rsv| opcode|
 *     +-+-+-------+---+---+---+-------+
 *
 *   Tagged (T = 1), 14 bytes:  STag (32) at 2, TO (64) at 6
 *   Untagged, 18 bytes:        Invalidate STag (32) at 2, QN (32) at 6, MSN (32) at 10, MO (32) at 14
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/byteorder.h"

enum {
	DDP_TAGGED_LEN = 14,
	DDP_UNTAGGED_LEN = 18,
	DDP_VERSION = 1,
	RDMAP_VERSION = 1,
	DDP_CONTROL_T = 0x80,
	DDP_CONTROL_L = 0x40
};

struct ddp {
	bool tagged;
	bool last;
	uint8_t ddp_version;   /* 2 bits */
	uint8_t rdmap_version; /* 2 bits */
	uint8_t opcode;        /* enum rdmap_opcode, 4 bits */
	uint32_t stag;         /* tagged; untagged: the one to invalidate */
	uint64_t to;           /* tagged */
	uint32_t qn, msn, mo;  /* untagged */
};

static inline uint32_t ddp_len(bool tagged)
{
	return tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
}

static inline bool ddp_is_tagged(const uint8_t *p)
{
	return p[0] & DDP_CONTROL_T;
}

/* Reads as many bytes as the T bit of the first says. */
static inline void ddp_decode(struct ddp *h, const uint8_t *p)
{
	*h = (struct ddp){
		.tagged = ddp_is_tagged(p),
		.last = p[0] & DDP_CONTROL_L,
		.ddp_version = p[0] & 3,
		.rdmap_version = p[1] >> 6,
		.opcode = p[1] & 0xf,
		.stag = get_be32(p + 2),
	};
	if (h->tagged) {
		h->to = get_be64(p + 6);
	} else {
		h->qn = get_be32(p + 6);
		h->msn = get_be32(p + 10);
		h->mo = get_be32(p + 14);
	}
}

static inline void ddp_encode(uint8_t *p, const struct ddp *h)
{
	p[0] = (uint8_t)((h->tagged ? DDP_CONTROL_T : 0) | (h->last ? DDP_CONTROL_L : 0) | (h->ddp_version & 3));
	p[1] = (uint8_t)(h->rdmap_version << 6 | (h->opcode & 0xf));
	put_be32(p + 2, h->stag);
	if (h->tagged) {
		put_be64(p + 6, h->to);
	} else {
		put_be32(p + 6, h->qn);
		put_be32(p + 10, h->msn);
		put_be32(p + 14, h->mo);
	}
}
