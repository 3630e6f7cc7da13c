/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/notice.h"

#include <string.h>

#include "base/byteorder.h"

enum {
	GENERIC = 0x80,
	DETAILS_AT = 10,
	/* What of trap 259's details holds (IBTA 14.2.5.1): LIDs, P_Key, SL and QPs; not the GIDs.
	 */
	VALID_LID1 = 1 << 0,
	VALID_LID2 = 1 << 1,
	VALID_PKEY = 1 << 2,
	VALID_SL = 1 << 3,
	VALID_QP1 = 1 << 4,
	VALID_QP2 = 1 << 5
};

static void bad_pkey_encode(uint8_t *d, const struct notice *n)
{
	put_be16(d + 2, n->slid);
	put_be16(d + 4, n->dlid);
	put_be32(d + 6, n->pkey);
	put_be32(d + 10, n->sqp & 0xffffff);
	put_be32(d + 14, n->dqp & 0xffffff);
}

static void switch_pkey_encode(uint8_t *d, const struct notice *n)
{
	put_be16(d, VALID_LID1 | VALID_LID2 | VALID_PKEY | VALID_SL | VALID_QP1 | VALID_QP2);
	put_be16(d + 2, n->slid);
	put_be16(d + 4, n->dlid);
	put_be16(d + 6, n->pkey);
	put_be32(d + 8, n->sqp & 0xffffff);
	put_be32(d + 12, n->dqp & 0xffffff);
	put_be16(d + 48, n->issuer_lid);
	d[50] = n->port;
}

void notice_encode(uint8_t *p, const struct notice *n)
{
	memset(p, 0, NOTICE_LEN);
	p[0] = (uint8_t)(GENERIC | (n->trap < NOTICE_BAD_PKEY ? NOTICE_URGENT : NOTICE_SECURITY));
	p[3] = n->producer;
	put_be16(p + 4, (uint16_t)n->trap);
	put_be16(p + 6, n->issuer_lid);
	switch (n->trap) {
	case NOTICE_LINK_STATE: put_be16(p + DETAILS_AT, n->issuer_lid); break;
	case NOTICE_LINK_INTEGRITY:
	case NOTICE_OVERRUN:
		put_be16(p + DETAILS_AT + 2, n->issuer_lid);
		p[DETAILS_AT + 4] = n->port;
		break;
	case NOTICE_BAD_PKEY: bad_pkey_encode(p + DETAILS_AT, n); break;
	case NOTICE_SWITCH_PKEY: switch_pkey_encode(p + DETAILS_AT, n); break;
	}
}
