/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Global Route Header (IBTA 8.3), laid out as an IPv6 header.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +-------+---------------+---------------------------------------+
 *   0 | IPVer |    TClass     |              flow label               |
 *     +-------+---------------+-------+---------------+---------------+
 *   4 |        payload length         |    NxtHdr     |    HopLmt     |
 *     +-------------------------------+---------------+---------------+
 *   8 |                    SGID, 16 bytes                             |
 *  24 |                    DGID, 16 bytes                             |
 *     +---------------------------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/pkt.h"

enum {
	GRH_LEN = 40,
	GRH_IPVER = 6,
	GRH_NEXTHDR_IBA = 0x1b /* the next header is a BTH (RoCEv1, InfiniBand) */
};

struct grh {
	uint8_t tclass;
	uint8_t nexthdr;
	uint8_t hop_limit;
	uint16_t paylen;
	uint32_t flow_label; /* 20 bits */
	uint8_t sgid[16];
	uint8_t dgid[16];
};

/* IPVer is not kept: a caller that may get something other than 6 checks the high nibble first. */
void grh_decode(struct grh *h, const uint8_t *p);
void grh_encode(uint8_t *p, const struct grh *h);

/*
 * The 40 bytes that a UD receiver finds ahead of the payload: for a RoCEv1 packet its GRH; for a RoCEv2 packet (Annex
 * A17.4.5.1) the IPv6 header, or 20 bytes of 0 and the IPv4 header. len counts BTH .. ICRC. The IPv4 identification is
 * not known; it is 0, and the header checksum fits that.
 */
void grh_from_flow(uint8_t out[GRH_LEN], const struct flow *f, uint32_t len);
