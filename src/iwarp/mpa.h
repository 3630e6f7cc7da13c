/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPA's start-up frames (RFC 5044 7.1, RFC 6581 6 and 9): one each way, the Request first; FPDUs follow.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------------------------------------------------------+
 *   0 |  key, 16 bytes: "MPA ID Req Frame" or "MPA ID Rep Frame"      |
 *     +-+-+-+-+-------+---------------+-------------------------------+
 *  16 |M|C|R|S|  res  |      Rev      |          PD_Length            |
 *     +-+-+-+-+-------+---------------+-------------------------------+
 *  20 |A|B|           IRD             |C|D|           ORD             |   if S
 *     +-+-+---------------------------+-+-+---------------------------+
 *     |  private data                                                 |
 *
 * S counts in revision 2 alone; in revision 1 it is one of the reserved bits, which nobody checks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MPA_HEADER_LEN = 20,
	MPA_ENHANCED_LEN = 4,
	MPA_PD_MAX = 512, /* the enhanced bytes included */
	MPA_FRAME_MAX = MPA_HEADER_LEN + MPA_PD_MAX,
	MPA_DEPTH_MAX = 0x3ffe,
	MPA_DEPTH_ANY = 0x3fff /* not negotiated */
};

/* Which messages may begin a peer-to-peer connection: the frame's B, C and D. */
enum mpa_rtr { MPA_RTR_SEND = 1, MPA_RTR_WRITE = 2, MPA_RTR_READ = 4 };

struct mpa_frame {
	bool reply;
	bool markers;      /* M: the sender of this frame requests markers */
	bool crc;          /* C */
	bool rejected;     /* R */
	bool enhanced;     /* S: what follows up to ord means something */
	bool peer_to_peer; /* A */
	uint8_t rtr;       /* enum mpa_rtr */
	uint8_t rev;
	uint16_t ird, ord;   /* 14 bits */
	uint16_t data_len;   /* private data */
	const uint8_t *data; /* decoded: in the frame */
};

/*
 * How many bytes the frame has that begins with these `have`: 0 where too few are there to say, -EBADMSG if it is none
 * (key, revision, length).
 */
int mpa_frame_len(const uint8_t *, size_t have, bool reply);
/* Of a frame of which mpa_frame_len() bytes are there. */
void mpa_decode(struct mpa_frame *, const uint8_t *);
/* Writes at most MPA_FRAME_MAX bytes and returns how many; data_len fits. */
size_t mpa_encode(uint8_t *, const struct mpa_frame *);
