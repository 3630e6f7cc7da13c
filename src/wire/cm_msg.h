/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Common parts of the connection management messages: their place among MADs, and the header that the IP
 * addressing annex puts first into the private data of REQ and SIDR_REQ (IBTA A11.2, A11.3).
 *
 *   0 major version:4 | minor version:4 | IP version:4 | reserved:4 | source port:16
 *   4 source address (16 bytes; an IPv4 one is the last four, behind zeros)
 *  20 destination address (16 bytes, likewise)
 *
 * The destination port is in the service id: 0x0000_0000 | port space:16 (0x0106 TCP ..) | port:16.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/byteorder.h"

enum { CM_CLASS = 0x07, CM_CLASS_VERSION = 2 };

enum cm_attribute {
	CM_REQ = 0x10,
	CM_MRA = 0x11,
	CM_REJ = 0x12,
	CM_REP = 0x13,
	CM_RTU = 0x14,
	CM_DREQ = 0x15,
	CM_DREP = 0x16,
	CM_SIDR_REQ = 0x17,
	CM_SIDR_REP = 0x18,
	CM_LAP = 0x19,
	CM_APR = 0x1a
};

enum { CM_IP_LEN = 36 };

struct cm_ip {
	uint8_t version;    /* 8 bits: major and minor; 0 is the only one defined */
	uint8_t ip_version; /* 4 bits: 4 or 6 */
	uint16_t sport;
	uint8_t src[16]; /* as on the wire: an IPv4 address has zeros before it, not ::ffff: */
	uint8_t dst[16];
};

static inline void cm_ip_decode(struct cm_ip *h, const uint8_t *p)
{
	h->version = p[0];
	h->ip_version = p[1] >> 4;
	h->sport = get_be16(p + 2);
	memcpy(h->src, p + 4, sizeof(h->src));
	memcpy(h->dst, p + 20, sizeof(h->dst));
}

static inline void cm_ip_encode(uint8_t *p, const struct cm_ip *h)
{
	p[0] = h->version;
	p[1] = (uint8_t)(h->ip_version << 4);
	put_be16(p + 2, h->sport);
	memcpy(p + 4, h->src, sizeof(h->src));
	memcpy(p + 20, h->dst, sizeof(h->dst));
}
