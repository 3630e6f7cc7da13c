/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMAP's Terminate (RFC 5040 4.8): why a stream ends, as the last message on it.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +-------+-------+---------------+-+-+-+-------------------------+
 *   0 | layer | etype |  error code   |M|D|R|         reserved        |
 *     +-------+-------+---------------+-+-+-+-------------------------+
 *   4 | DDP segment length (M)        | DDP header, 14 or 18 (D)      |
 *     | RDMAP header of the Read Request, 28 bytes (R)                |
 *
 * Which of M, D and R a cause has is RFC 5040 figure 10. Where M or D is set the length's two bytes are there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Layer, error type and code: the first two bytes (RFC 5040 4.8, RFC 5041 7, RFC 5044 8, RFC 6581 9.1). */
enum term_cause {
	TERM_LOCAL_CATASTROPHIC = 0x0000,
	TERM_PROTECTION_STAG = 0x0100,
	TERM_PROTECTION_BOUNDS = 0x0101,
	TERM_PROTECTION_ACCESS = 0x0102,
	TERM_PROTECTION_STREAM = 0x0103,
	TERM_PROTECTION_WRAP = 0x0104,
	TERM_PROTECTION_NO_INVALIDATE = 0x0109,
	TERM_PROTECTION_OTHER = 0x01ff,
	TERM_OPERATION_VERSION = 0x0205,
	TERM_OPERATION_OPCODE = 0x0206,
	TERM_OPERATION_STREAM = 0x0207, /* catastrophic error of this stream */
	TERM_OPERATION_GLOBAL = 0x0208,
	TERM_OPERATION_NO_INVALIDATE = 0x0209,
	TERM_OPERATION_OTHER = 0x02ff,
	TERM_DDP_CATASTROPHIC = 0x1000,
	TERM_TAGGED_STAG = 0x1100,
	TERM_TAGGED_BOUNDS = 0x1101,
	TERM_TAGGED_STREAM = 0x1102,
	TERM_TAGGED_WRAP = 0x1103,
	TERM_TAGGED_VERSION = 0x1104,
	TERM_UNTAGGED_QN = 0x1201,
	TERM_UNTAGGED_NO_BUFFER = 0x1202,
	TERM_UNTAGGED_MSN = 0x1203,
	TERM_UNTAGGED_MO = 0x1204,
	TERM_UNTAGGED_TOO_LONG = 0x1205,
	TERM_UNTAGGED_VERSION = 0x1206,
	TERM_MPA_LOST = 0x2001,
	TERM_MPA_CRC = 0x2002,
	TERM_MPA_MARKER = 0x2003,
	TERM_MPA_STARTUP = 0x2004,
	TERM_MPA_CATASTROPHIC = 0x2005,
	TERM_MPA_DEPTH = 0x2006,
	TERM_MPA_RTR = 0x2007,
	TERM_NONE = 0xffff
};

enum { TERM_CONTROL_LEN = 4, TERM_LENGTH_LEN = 2, TERM_MAX = 4 + 2 + 18 + 28 };

/* The content of a Terminate; the headers' bytes are borrowed. */
struct terminate {
	enum term_cause cause;
	uint16_t segment_len;   /* ULPDU_Length of the refused segment */
	const uint8_t *ddp;     /* its DDP header, 14 or 18 bytes by its T bit; NULL: absent */
	const uint8_t *request; /* READ_REQUEST_LEN bytes behind it; NULL: absent */
};

/*
 * Writes at most TERM_MAX bytes and returns how many. Of the headers given, as many go along as the cause has
 * (RFC 5040 figure 10).
 */
uint32_t terminate_encode(uint8_t *, const struct terminate *);
/*
 * False: too short, or not what the bits say. The pointers lead into the bytes given. Linux's siw writes its control
 * word as bit-fields of a little-endian machine; that order is understood too.
 */
bool terminate_decode(struct terminate *, const uint8_t *, uint32_t len);
