/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow control packet (IBTA 7.9.4): the credits of one virtual lane of a link, in blocks of 64 bytes, modulo 4096.
 *
 *      0                   1                   2                   3                   4
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7
 *     +-------+-----------------------+-------+-----------------------+-------------------------------+
 *   0 |  op   |         FCTBS         |  VL   |         FCCL          |             LPCRC             |
 *     +-------+-----------------------+-------+-----------------------+-------------------------------+
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	FLOW_CONTROL_LEN = 6,
	FLOW_CONTROL_NORMAL = 0,
	FLOW_CONTROL_INIT = 1, /* while the link initialises */
	CREDIT_BLOCK_BYTES = 64,
	CREDIT_BLOCKS_MAX = 2048 /* outstanding on a lane */
};

struct flow_control {
	uint8_t op;     /* 4 bits */
	uint8_t vl;     /* 4 bits */
	uint16_t fctbs; /* 12 bits: blocks that the sender of this packet has sent */
	uint16_t fccl;  /* 12 bits: up to which block its peer may send */
};

/* False: the LPCRC is wrong. */
bool flow_control_decode(struct flow_control *, const uint8_t *);
void flow_control_encode(uint8_t *, const struct flow_control *);

/* Whether a packet of that many blocks may be sent behind `sent` blocks when the peer's limit is fccl (IBTA 7.9.4.4).
 */
static inline bool credit_allows(uint16_t fccl, uint16_t sent, uint16_t blocks)
{
	return ((fccl - (sent + blocks)) & 0xfff) <= CREDIT_BLOCKS_MAX;
}
