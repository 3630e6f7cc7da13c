/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a BTH opcode means: the service, the headers that follow, and the packet's role in its
 * message (IBTA 9.2 and 9.4; CNP: Annex A17.9.3). The facts live in one table for each protocol:
 * RoCEv2's in opcode.c, veRoCE's in veroce.c. They share the numbers, but not which of them exist
 * and what follows the BTH.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/bth.h"

/* The high 3 bits are the service, the low 5 the operation. */
enum opcode {
	OP_RC_SEND_FIRST = 0x00,
	OP_RC_SEND_MIDDLE = 0x01,
	OP_RC_SEND_LAST = 0x02,
	OP_RC_SEND_LAST_IMM = 0x03,
	OP_RC_SEND_ONLY = 0x04,
	OP_RC_SEND_ONLY_IMM = 0x05,
	OP_RC_WRITE_FIRST = 0x06,
	OP_RC_WRITE_MIDDLE = 0x07,
	OP_RC_WRITE_LAST = 0x08,
	OP_RC_WRITE_LAST_IMM = 0x09,
	OP_RC_WRITE_ONLY = 0x0a,
	OP_RC_WRITE_ONLY_IMM = 0x0b,
	OP_RC_READ_REQUEST = 0x0c,
	OP_RC_READ_RESPONSE_FIRST = 0x0d,
	OP_RC_READ_RESPONSE_MIDDLE = 0x0e,
	OP_RC_READ_RESPONSE_LAST = 0x0f,
	OP_RC_READ_RESPONSE_ONLY = 0x10,
	OP_RC_ACK = 0x11,
	OP_RC_ATOMIC_ACK = 0x12,
	OP_RC_CMP_SWAP = 0x13,
	OP_RC_FETCH_ADD = 0x14,
	OP_RC_SEND_LAST_INV = 0x16,
	OP_RC_SEND_ONLY_INV = 0x17,
	OP_RC_SACK = 0x18,         /* veRoCE 3, like all marked so below */
	OP_RC_ACK_RSP = 0x19,      /* veRoCE: an acknowledgement of responses */
	OP_RC_FLUSH = 0x1c,        /* IBTA A19 */
	OP_RC_ATOMIC_WRITE = 0x1d, /* IBTA A19 */
	OP_RC_SACK_RSP = 0x1e,     /* veRoCE */

	OP_UC_SEND_FIRST = 0x20,
	OP_UC_SEND_MIDDLE = 0x21,
	OP_UC_SEND_LAST = 0x22,
	OP_UC_SEND_LAST_IMM = 0x23,
	OP_UC_SEND_ONLY = 0x24,
	OP_UC_SEND_ONLY_IMM = 0x25,
	OP_UC_WRITE_FIRST = 0x26,
	OP_UC_WRITE_MIDDLE = 0x27,
	OP_UC_WRITE_LAST = 0x28,
	OP_UC_WRITE_LAST_IMM = 0x29,
	OP_UC_WRITE_ONLY = 0x2a,
	OP_UC_WRITE_ONLY_IMM = 0x2b,

	OP_UD_SEND_ONLY = 0x64,
	OP_UD_SEND_ONLY_IMM = 0x65,

	OP_CNP = 0x81,

	OP_RTT_REQUEST = 0x82,  /* veRoCE */
	OP_RTT_RESPONSE = 0x83, /* veRoCE */
	OP_SLOW_PACKET = 0x84,  /* veRoCE: the packet named by the PSN came late */

	/* IBTA A14.3.2: those of RC, of another service */
	OP_XRC_SEND_FIRST = 0xa0,
	OP_XRC_SEND_MIDDLE = 0xa1,
	OP_XRC_SEND_LAST = 0xa2,
	OP_XRC_SEND_LAST_IMM = 0xa3,
	OP_XRC_SEND_ONLY = 0xa4,
	OP_XRC_SEND_ONLY_IMM = 0xa5,
	OP_XRC_WRITE_FIRST = 0xa6,
	OP_XRC_WRITE_MIDDLE = 0xa7,
	OP_XRC_WRITE_LAST = 0xa8,
	OP_XRC_WRITE_LAST_IMM = 0xa9,
	OP_XRC_WRITE_ONLY = 0xaa,
	OP_XRC_WRITE_ONLY_IMM = 0xab,
	OP_XRC_READ_REQUEST = 0xac,
	OP_XRC_READ_RESPONSE_FIRST = 0xad,
	OP_XRC_READ_RESPONSE_MIDDLE = 0xae,
	OP_XRC_READ_RESPONSE_LAST = 0xaf,
	OP_XRC_READ_RESPONSE_ONLY = 0xb0,
	OP_XRC_ACK = 0xb1,
	OP_XRC_ATOMIC_ACK = 0xb2,
	OP_XRC_CMP_SWAP = 0xb3,
	OP_XRC_FETCH_ADD = 0xb4,
	OP_XRC_SEND_LAST_INV = 0xb6,
	OP_XRC_SEND_ONLY_INV = 0xb7,

	OP_CAPS_REQUEST = 0xf0,  /* veRoCE */
	OP_CAPS_RESPONSE = 0xf1, /* veRoCE */
	OP_HOLD = 0xf2,          /* veRoCE */
	OP_HELD = 0xf3,          /* veRoCE: the answer */
	OP_ROAM = 0xf4,          /* veRoCE */
};

enum opcode_service { SVC_RC = 0, SVC_UC = 1, SVC_RD = 2, SVC_UD = 3, SVC_CNP = 4, SVC_XRC = 5 };

/*
 * A CNP carries 16 reserved bytes behind its BTH, sent as 0. Senders that leave them out exist, so
 * they count as payload, which the receiver ignores, and not as a header.
 */
enum { CNP_RESV_LEN = 16 };

/*
 * Headers present, for opcode_info.headers. The bits are in wire order, of both protocols, so a
 * header lies behind all those with a lower bit.
 */
enum {
	H_BTH = 1 << 0,
	H_XRCETH = 1 << 1,
	H_DETH = 1 << 2,
	H_MSNETH = 1 << 3, /* veRoCE */
	H_FETH = 1 << 4,
	H_RETH = 1 << 5,
	H_ATOMICETH = 1 << 6,
	H_AETH = 1 << 7,
	H_RQETH = 1 << 8,    /* veRoCE */
	H_POETH = 1 << 9,    /* veRoCE */
	H_SACKETH = 1 << 10, /* veRoCE; counts as one, but there may be several */
	H_ATOMICACKETH = 1 << 11,
	H_IMMDT = 1 << 12,
	H_IETH = 1 << 13,
	H_RTTETH = 1 << 14,  /* veRoCE */
	H_CAPSETH = 1 << 15, /* veRoCE */
	H_HOLDETH = 1 << 16, /* veRoCE */
	H_ROAMETH = 1 << 17  /* veRoCE */
};

/* The packet's role, for opcode_info.flags. */
enum {
	F_REQUEST = 1 << 0,
	F_RESPONSE = 1 << 1,
	F_SEND = 1 << 2,
	F_WRITE = 1 << 3,
	F_READ = 1 << 4,   /* the request and the responses */
	F_ATOMIC = 1 << 5, /* the requests and the response */
	F_ACK = 1 << 6,    /* acknowledges and nothing else */
	F_FIRST = 1 << 7,  /* but for CNPs: exactly one of FIRST, MIDDLE, LAST, ONLY */
	F_MIDDLE = 1 << 8,
	F_LAST = 1 << 9,
	F_ONLY = 1 << 10,
	F_PAYLOAD = 1 << 11, /* may carry payload */
	F_IMM = 1 << 12,     /* derived: H_IMMDT present */
	F_INV = 1 << 13,     /* derived: H_IETH present */
	F_FULL = 1 << 14,    /* derived: FIRST or MIDDLE, the payload is exactly the path MTU */
	F_MPE = 1 << 15,     /* Memory Placement Extensions (IBTA A19): FLUSH, ATOMIC WRITE */

	F_START = F_FIRST | F_ONLY, /* masks: `flags & F_START` asks whether a message starts here */
	F_END = F_LAST | F_ONLY,
	F_ANSWERED = F_READ | F_ATOMIC | F_MPE /* of a request: it has a response, beside being acknowledged */
};

struct opcode_info {
	uint32_t headers;
	uint16_t flags;
	uint16_t header_len; /* derived: the sum of the headers, BTH included */
	const char *name;    /* "RC_SEND_FIRST"; NULL in the rows of unknown opcodes */
};

extern const struct opcode_info opcode_table[256];

/* NULL where the opcode is reserved, or belongs to a service not offered here (RD). */
static inline const struct opcode_info *opcode_info(uint8_t opcode)
{
	const struct opcode_info *info = &opcode_table[opcode];

	return info->name ? info : NULL;
}

/* Bytes from BTH up to the payload; 0 for an unknown opcode. */
static inline uint32_t opcode_header_len(uint8_t opcode)
{
	return opcode_table[opcode].header_len;
}

static inline enum opcode_service opcode_service(uint8_t opcode)
{
	return (enum opcode_service)(opcode >> 5);
}

/* Bytes of these headers (H_ bits). */
uint32_t opcode_headers_len(uint32_t headers);

/*
 * Bytes from BTH to where the header h (one H_ bit) lies in packets of this kind, of either
 * protocol, time stamps not counted. Whether it is present at all is in info->headers.
 */
static inline uint32_t opcode_header_offset(const struct opcode_info *info, uint32_t h)
{
	uint32_t before = info->headers & (h - 1u);

	/* To add up what all headers have takes a hundred instructions, and most lie behind the BTH. */
	return before == H_BTH ? (uint32_t)BTH_LEN : opcode_headers_len(before);
}
