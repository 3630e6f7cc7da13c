/* SPDX-License-Identifier: BSD-2-Clause */
/* The Terminate message as bytes: which headers go along, and the order of the control word's bits. */
#include "iwarp/terminate.h"

#include <string.h>

#include "base/byteorder.h"
#include "iwarp/ddp.h"
#include "iwarp/rdmap.h"

enum { BIT_M = 0x80, BIT_D = 0x40, BIT_R = 0x20, BITS = BIT_M | BIT_D | BIT_R, SIW_BITS = 0x07 };

/* Layer and error type to M, D, R: RFC 5040 figure 10. */
static uint8_t shape(enum term_cause cause)
{
	switch (cause >> 8) {
	case 0x01: /* remote protection */ return BIT_M | BIT_D | BIT_R;
	case 0x02: /* remote operation */
	case 0x11: /* DDP, tagged buffer */
	case 0x12: /* DDP, untagged buffer */ return BIT_M | BIT_D;
	default: /* what is catastrophic here, and all of the lower layer */ return 0;
	}
}

uint32_t terminate_encode(uint8_t *p, const struct terminate *t)
{
	uint8_t bits = t->ddp ? shape(t->cause) : 0;
	uint32_t len = TERM_CONTROL_LEN;

	if (!t->request)
		bits &= (uint8_t)~BIT_R;
	put_be16(p, (uint16_t)t->cause);
	p[2] = bits;
	p[3] = 0;
	if (!bits)
		return len;
	put_be16(p + len, t->segment_len);
	len += TERM_LENGTH_LEN;
	memcpy(p + len, t->ddp, ddp_len(ddp_is_tagged(t->ddp)));
	len += ddp_len(ddp_is_tagged(t->ddp));
	if (bits & BIT_R) {
		memcpy(p + len, t->request, READ_REQUEST_LEN);
		len += READ_REQUEST_LEN;
	}
	return len;
}

/*
 * M, D and R of byte 2. siw has them in its three low bits, with layer and error type swapped. Where it sets none, only
 * the error numbers are left: the layers' own errors, 0/0, 1/0 and 2/0, have no header.
 */
static uint8_t control(const uint8_t *p, enum term_cause *cause)
{
	uint8_t first = p[0], swapped = (uint8_t)(first << 4 | first >> 4), bits = p[2] & BITS;

	if (!bits && (p[2] & SIW_BITS || swapped == 0x10 || swapped == 0x20)) {
		first = swapped;
		bits = (uint8_t)((p[2] & 1 ? BIT_M : 0) | (p[2] & 2 ? BIT_D : 0) | (p[2] & 4 ? BIT_R : 0));
	}
	*cause = (enum term_cause)(first << 8 | p[1]);
	return bits;
}

bool terminate_decode(struct terminate *t, const uint8_t *p, uint32_t len)
{
	uint32_t at = TERM_CONTROL_LEN;
	struct terminate out = {0};
	uint8_t bits;

	if (len < TERM_CONTROL_LEN)
		return false;
	bits = control(p, &out.cause);
	if (bits & (BIT_M | BIT_D)) {
		if (len < at + TERM_LENGTH_LEN)
			return false;
		out.segment_len = get_be16(p + at);
		at += TERM_LENGTH_LEN;
	}
	if (bits & BIT_D) {
		if (len < at + DDP_TAGGED_LEN || len < at + ddp_len(ddp_is_tagged(p + at)))
			return false;
		out.ddp = p + at;
		at += ddp_len(ddp_is_tagged(p + at));
	}
	if (bits & BIT_R) {
		if (len < at + READ_REQUEST_LEN)
			return false;
		out.request = p + at;
	}
	*t = out;
	return true;
}
