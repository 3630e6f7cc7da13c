/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A veRoCE packet as one value (veRoCE 2 and 3), and its length judge: the one place that compares
 * a packet's length with its opcode and its bit T. After it no decoder can fail.
 *
 *     data                                                               data + len
 *     | BTH | TSETH or TSEETH | other headers | payload | 0..3 pad | ICRC (4 bytes) |
 *            `-- if bth.ts                    |<------->| payload_len
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/aeth.h"
#include "wire/atomiceth.h"
#include "wire/bth.h"
#include "wire/capseth.h"
#include "wire/feth.h"
#include "wire/holdeth.h"
#include "wire/opcode.h"
#include "wire/poeth.h"
#include "wire/reth.h"
#include "wire/roameth.h"
#include "wire/rtteth.h"
#include "wire/sacketh.h"
#include "wire/tseeth.h"
#include "wire/tseth.h"

enum {
	VEROCE_SACKS_MAX = 8,      /* SACKETHs in one packet (veRoCE 5.5) */
	VEROCE_DSCP_TRIMMABLE = 8, /* veRoCE 8; our choice of marks, only where trimming was agreed */
	VEROCE_DSCP_TRIMMED = 9,

	/* A SACK with all its blocks and an echo of time stamps. */
	VEROCE_HEADERS_MAX =
		BTH_LEN + TSEETH_LEN + TSEETH_SHARE_LEN + AETH_LEN + POETH_LEN + VEROCE_SACKS_MAX * SACKETH_LEN
};

/* The members of a header that the packet lacks are not set, except those marked "always". */
struct veroce_packet {
	const struct opcode_info *info; /* not read by veroce_encode_headers */
	struct bth bth;                 /* ts only if a time stamp header is there */
	uint32_t msn, rqmsn, po;        /* 24 bits, always set; 0 where the packet carries none */
	uint32_t imm_or_key;            /* ImmDt or IETH, always set, else 0 */
	uint32_t sack_count;            /* always set, else 0 */
	uint32_t payload_len;           /* without pad, always set, else 0 */
	const uint8_t *payload;         /* in the packet; always set */
	const uint8_t *sacks;           /* sack_count SACKETHs back to back; always set, else NULL */
	struct aeth aeth;
	struct feth feth;
	struct reth reth;
	struct tseth ts;   /* if bth.ts, where the packet has a PSN of its own */
	struct tseeth tse; /* if bth.ts, where it acknowledges (F_ACK) */
	struct atomiceth atomic;
	uint64_t orig; /* AtomicAckETH */
	struct rtteth rtt;
	union { /* no packet has two of them, and early packets are kept with this */
		struct capseth caps;
		struct holdeth hold;
		struct roameth roam;
	};
};

extern const struct opcode_info veroce_opcode_table[256];

/* NULL where veRoCE has no such opcode. */
static inline const struct opcode_info *veroce_opcode_info(uint8_t opcode)
{
	const struct opcode_info *info = &veroce_opcode_table[opcode];

	return info->name ? info : NULL;
}

/* A First or Only packet, or a Middle one that stands for a First (veRoCE 13.1, CAPS_ALIKE). */
static inline bool veroce_starts_message(const struct veroce_packet *p)
{
	return p->info->flags & F_START || (p->info->flags & F_MIDDLE && !p->po);
}

/* Those two are never sealed with a secret (13.1, our choice). */
static inline bool opcode_is_caps(uint8_t opcode)
{
	return opcode == OP_CAPS_REQUEST || opcode == OP_CAPS_RESPONSE;
}

/* Bytes from BTH up to the payload, without time stamps and with one SACKETH; 0 if unknown. */
static inline uint32_t veroce_header_len(uint8_t opcode)
{
	return veroce_opcode_table[opcode].header_len;
}

/*
 * True where the opcode is known, the transport version 0, and len, which counts the ICRC, is one
 * that the opcode allows: headers, then payload and pad of a multiple of 4 bytes where payload is
 * allowed, otherwise neither; 1..VEROCE_SACKS_MAX SACKETHs in a SACK, where of the two forms of the time
 * stamp echo the one counts that leaves whole SACKETHs; a CNP with all of its reserved bytes, which count
 * as payload, or none. Any bytes at any length may be given. On false *p is undefined. What p points to
 * lies in data.
 *
 * Not judged: P_Key, QPN, the ICRC's value, whether the payload suits the path MTU (F_FULL), and
 * what the headers say. BTH.T is read as 0 in packets outside the PSN spaces, where it is reserved.
 */
bool veroce_decode(struct veroce_packet *p, const uint8_t *data, uint32_t len);

/*
 * The same for a receiver of many packets, most of which are alike: if the first 8 bytes, the
 * length and the bits before the PSN are those of the packet before, then opcode, judgement and
 * layout are too, and only numbers are read. A decoder of zeros remembers no packet. One thread at
 * a time uses it. No result depends on its state. The packet is lent until the next call; NULL
 * where veroce_decode() says false.
 */
enum { VEROCE_KINDS = 2 }; /* data and acknowledgements may alternate */

struct veroce_decoder {
	struct veroce_before {
		uint64_t first; /* 8 bytes */
		uint32_t len;   /* 0: none, or it says nothing about the next */
		uint8_t bits;   /* the byte before the PSN */
		struct veroce_packet packet;
	} before[VEROCE_KINDS];
};

const struct veroce_packet *veroce_decode_next(struct veroce_decoder *, const uint8_t *data, uint32_t len);

/*
 * Writes BTH and all headers that the row of p->bth.opcode and p->bth.ts ask for, at most
 * VEROCE_HEADERS_MAX bytes, and returns their length. The opcode is one of veRoCE; ts is set only
 * in a packet of a PSN space or an acknowledgement of one; a SACK has its 1..VEROCE_SACKS_MAX
 * blocks, encoded, at p->sacks. The reserved bytes of a CNP are payload, left to the caller.
 */
uint32_t veroce_encode_headers(uint8_t *out, const struct veroce_packet *p);

/*
 * Writes the headers of a Middle packet that follows another Middle packet, whose bytes are at `before`: the
 * same but for PSN, PO, path sequence number, the address of a WRITE, which grows by `va_step`, and AckReq.
 * Returns their length. Reads and writes VEROCE_NEXT_ROOM bytes. The packet before must not be a
 * retransmission.
 */
enum { VEROCE_NEXT_ROOM = 48 };
uint32_t veroce_encode_next(uint8_t *out, const uint8_t *before, uint32_t va_step, bool ackreq);

/*
 * Writes the headers of an Only packet of a SEND or WRITE, without ImmDt or IETH, that follows another of that opcode,
 * length and flags, whose bytes are at `before`. Of *p it reads what may differ: bth.psn, ts.path_seq where there are
 * time stamps, msn, rqmsn of a SEND, reth.va and reth.rkey of a WRITE. Returns their length. Reads and writes
 * VEROCE_NEXT_ROOM bytes, which may overlap. The packet before must not be a retransmission.
 */
uint32_t veroce_encode_alike(uint8_t *out, const uint8_t *before, const struct veroce_packet *p);
