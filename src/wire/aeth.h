/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ACK Extended Transport Header (IBTA 9.3) and what its syndrome means.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +-+---+---------+-----------------------------------------------+
 *   0 |0|knd|  value  |            MSN                                |
 *     +-+---+---------+-----------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { AETH_LEN = 4 };

/* The kind, in bits 6:5 (IBTA 9.7.5.1.1). 0x40 is reserved. Bit 7 is 0 on the wire, ignored on
 * receipt. */
enum aeth_kind {
	AETH_ACK = 0x00,     /* value: end-to-end flow control credits, coded */
	AETH_RNR_NAK = 0x20, /* value: timer code, see aeth_rnr_ns */
	AETH_NAK = 0x60      /* value: enum aeth_nak */
};

enum {
	AETH_KIND_MASK = 0x60,
	AETH_VALUE_MASK = 0x1f,
	AETH_CREDIT_INVALID = 0x1f /* the value of an ACK that carries no credits */
};

/* The NAK codes (IBTA 9.7.5.1.1). */
enum aeth_nak {
	NAK_PSN_SEQUENCE = 0,
	NAK_INVALID_REQUEST = 1,
	NAK_REMOTE_ACCESS = 2,
	NAK_REMOTE_OPERATIONAL = 3,
	NAK_INVALID_RD = 4
};

struct aeth {
	uint8_t syndrome; /* the whole byte: aeth_kind | value */
	uint32_t msn;     /* 24 bits */
};

static inline void aeth_decode(struct aeth *h, const uint8_t *p)
{
	h->syndrome = p[0];
	h->msn = get_low24(p);
}

static inline void aeth_encode(uint8_t *p, const struct aeth *h)
{
	put_with24(p, h->syndrome, h->msn);
}

/* May also be the reserved 0x40, which no enumerator names. */
static inline uint8_t aeth_kind(uint8_t syndrome)
{
	return syndrome & AETH_KIND_MASK;
}

static inline uint8_t aeth_value(uint8_t syndrome)
{
	return syndrome & AETH_VALUE_MASK;
}

/* The RNR timer: the least wait that an RNR NAK prescribes (Table 45); only the low 5 bits of code count. */
uint64_t aeth_rnr_ns(uint8_t code);
