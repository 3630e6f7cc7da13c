/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Subnet management packet (IBTA 14.2.1): the MAD that subnet managers and agents exchange on QP0 and VL 15, routed by LID or by a
 * list of ports to leave by. Of class-specific bits the highest is D, of the way back; then hop pointer and hop count.
 *
 *    0 MAD header (24 bytes; 4: D:1 | status:15, 6: hop pointer, 7: hop count)
 *   24 M_Key (8 bytes)
 *   32 DrSLID | DrDLID
 *   36 reserved (28 bytes)
 *   64 attribute (64 bytes)
 *  128 initial path: one port a hop, from 1 on (64 bytes)
 *  192 return path (64 bytes)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/mad.h"

enum {
	SMP_CLASS_LID = 0x01,
	SMP_CLASS_DIRECTED = 0x81,
	SMP_CLASS_VERSION = 1,
	SMP_DATA_LEN = 64,
	SMP_DATA_AT = 64,
	SMP_HOPS_MAX = 63, /* the path's first byte is not a hop */

	/* Methods (IBTA 13.4.5). */
	MAD_METHOD_GET = 0x01,
	MAD_METHOD_SET = 0x02,
	MAD_METHOD_TRAP = 0x05,
	MAD_METHOD_TRAP_REPRESS = 0x07,
	MAD_METHOD_GET_RESP = 0x81,

	/* Status (IBTA 13.4.7). */
	MAD_STATUS_BAD_VERSION = 1 << 2,
	MAD_STATUS_BAD_METHOD = 2 << 2,
	MAD_STATUS_BAD_ATTRIBUTE = 3 << 2, /* method and attribute do not go together */
	MAD_STATUS_BAD_VALUE = 7 << 2,

	/* Attributes (IBTA 14.2.5). */
	SMP_NOTICE = 0x02,
	SMP_NODE_DESCRIPTION = 0x10,
	SMP_NODE_INFO = 0x11,
	SMP_SWITCH_INFO = 0x12,
	SMP_GUID_INFO = 0x14,
	SMP_PORT_INFO = 0x15,
	SMP_PKEY_TABLE = 0x16,
	SMP_SL_TO_VL = 0x17,
	SMP_VL_ARBITRATION = 0x18,
	SMP_LINEAR_FORWARDING = 0x19,
	SMP_MULTICAST_FORWARDING = 0x1b,
	SMP_SM_INFO = 0x20
};

struct smp {
	struct mad mad; /* its status without D; its class-specific bits are below */
	bool d;         /* on the way back; of directed routes */
	uint8_t hop_pointer;
	uint8_t hop_count;
	uint64_t mkey;
	uint16_t dr_slid; /* LID_PERMISSIVE: the directed part begins at the requester */
	uint16_t dr_dlid;
	uint8_t data[SMP_DATA_LEN];
	uint8_t initial[SMP_HOPS_MAX + 1];
	uint8_t back[SMP_HOPS_MAX + 1];
};

/* MAD_LEN bytes. */
void smp_decode(struct smp *, const uint8_t *);
void smp_encode(uint8_t *, const struct smp *);
