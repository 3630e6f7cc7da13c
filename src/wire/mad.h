/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of all management datagrams (IBTA 13.4.3). A MAD always has 256 bytes.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------+---------------+---------------+-+-------------+
 *   0 | base version  |     class     | class version |R|   method    |
 *     +---------------+---------------+---------------+-+-------------+
 *   4 |            status             |        class-specific         |
 *     +-------------------------------+-------------------------------+
 *   8 |                                                               |
 *     +                         transaction id                        +
 *  12 |                                                               |
 *     +-------------------------------+-------------------------------+
 *  16 |         attribute id          |            reserved           |
 *     +-------------------------------+-------------------------------+
 *  20 |                      attribute modifier                       |
 *     +---------------------------------------------------------------+
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum {
	MAD_LEN = 256,
	MAD_HEADER_LEN = 24,
	MAD_DATA_LEN = MAD_LEN - MAD_HEADER_LEN,

	MAD_BASE_VERSION = 1,
	MAD_METHOD_SEND = 0x03 /* with R, the highest bit of its byte */
};

/* Their destination: the general services interface of a port (IBTA 3.9.4, 10.2.5). */
#define GSI_QPN  1u
#define GSI_QKEY 0x80010000u

struct mad {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method; /* R included */
	uint16_t status;
	uint16_t class_specific;
	uint64_t tid; /* transaction id */
	uint16_t attribute;
	uint32_t modifier; /* of the attribute */
};

static inline void mad_decode(struct mad *h, const uint8_t *p)
{
	h->base_version = p[0];
	h->mgmt_class = p[1];
	h->class_version = p[2];
	h->method = p[3];
	h->status = get_be16(p + 4);
	h->class_specific = get_be16(p + 6);
	h->tid = get_be64(p + 8);
	h->attribute = get_be16(p + 16);
	h->modifier = get_be32(p + 20);
}

static inline void mad_encode(uint8_t *p, const struct mad *h)
{
	p[0] = h->base_version;
	p[1] = h->mgmt_class;
	p[2] = h->class_version;
	p[3] = h->method;
	put_be16(p + 4, h->status);
	put_be16(p + 6, h->class_specific);
	put_be64(p + 8, h->tid);
	put_be16(p + 16, h->attribute);
	put_be16(p + 18, 0);
	put_be32(p + 20, h->modifier);
}
