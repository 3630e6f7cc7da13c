/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notice (IBTA 13.4.8.2): what an agent tells a manager of its own accord, in a MAD with the method
 * Trap. Some of subnet management (14.2.5.1) are here.
 *
 *   0 is generic:1 | type:7
 *   1 producer type:24
 *   4 trap number:16 | issuer LID:16
 *   8 toggle:1 | count:15
 *  10 details (54 bytes), of 128: LIDADDR:16
 *     of 129 and 130: 16 bits reserved | LIDADDR:16 | port:8
 *     of 257: 16 bits reserved | LIDADDR1:16 | LIDADDR2:16 | key:32 | SL:4, 4 bits reserved, QP1:24
 * | 8 bits reserved, QP2:24 | two GIDs of 259: data valid:16 | LIDADDR1:16 | LIDADDR2:16 | P_Key:16
 * | SL and QP1, QP2, GIDs as of 257 | LID of the switch:16 | port:8
 */
#pragma once

#include <stdint.h>

enum notice_trap {
	NOTICE_LINK_STATE = 128,     /* of a switch: some port came up or went down */
	NOTICE_LINK_INTEGRITY = 129, /* of a port: more physical errors than LocalPhyErrors */
	NOTICE_OVERRUN = 130,        /* of a port: OverrunErrors periods with overruns in a row */
	NOTICE_BAD_PKEY = 257,       /* a packet of a partition that its destination is not in */
	NOTICE_SWITCH_PKEY = 259,    /* the same at a switch that enforces partitions */
};

enum { NOTICE_LEN = 64, NOTICE_URGENT = 1, NOTICE_SECURITY = 2 };

struct notice {
	enum notice_trap trap;
	uint8_t producer; /* enum node_type */
	uint16_t issuer_lid;
	/* Of a P_Key's: the packet, which had no GRH; its SL is 0. */
	uint16_t slid, dlid, pkey;
	uint32_t sqp, dqp;
	uint8_t port; /* that trap 129, 130 or 259 is about */
};

/* NOTICE_LEN bytes. */
void notice_encode(uint8_t *, const struct notice *);
