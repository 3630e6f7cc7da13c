/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capabilities header (veRoCE 13.1): what one end of a connection offers beyond the base protocol.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---------------------------------------------------------------+
 *   0 |                    magic, "VRX1"                              |
 *     +---------------+---------------+-------------------------------+
 *   4 |    version    |    profile    |             flags             |
 *     +---------------+---------------+-------------------------------+
 *   8 |   PMTU code   |            RxWinQ                             |
 *     +---------------+-----------------------------------------------+
 *  12 |    NumPaths   |            RxWinR                             |
 *     +---------------+-----------------------------------------------+
 *  16 |     state     |            source QPN                         |
 *     +---------------+-----------------------------------------------+
 *  20 |                    nonce                                      |
 *     +-------------------------------+-------------------------------+
 *  24 |        out-of-order T         |         ack timer (us)        |
 *     +-------------------------------+-------------------------------+
 *  28 |                    own nonce                                  |
 *     +---------------------------------------------------------------+
 *
 * State and own nonce serve CAPS_SEAL.
 */
#pragma once

#include <stdint.h>

#include "base/byteorder.h"

enum { CAPSETH_LEN = 32, CAPS_MAGIC = 0x56525831, CAPS_VERSION = 1 };

enum caps_flags {
	CAPS_MULTI_SACK = 1, /* a SACK packet may hold 1..8 SACKETHs */
	CAPS_TS = 2,         /* BTH.T and its headers */
	CAPS_PMTU8192 = 4,
	CAPS_TRIM = 8,      /* switches cut payloads instead of dropping packets (veRoCE 8) */
	CAPS_RXSHARE = 16,  /* acknowledgements carry a share of the receiver's line */
	CAPS_SACK_ANY = 32, /* a SACK is information and does not say that a packet is lost */
	CAPS_SEAL = 128,    /* the ICRC of what is sent to an end is XORed with the nonce of that end (our choice) */
	CAPS_ALIKE = 256,   /* a Middle packet of PO 0 is the first of its message (our choice) */
	CAPS_LARGE = 512,   /* within a host messages are cut into CAPS_LARGE_BYTES, whatever the PMTU (our choice) */
	CAPS_HOLD = 1024,   /* an end that asks its peer to wait is waited for (13.4, our choice) */
	CAPS_ROAM = 2048    /* an end may go on under another address (13.5, our choice) */
};

/* A multiple of 4, as many KiB as one datagram holds beside the headers. */
enum { CAPS_LARGE_BYTES = 60 << 10 };

enum caps_state {
	CAPS_SEALS = 1 /* all that this sender sends from now on, except CAPS, is sealed */
};

struct capseth {
	uint32_t magic;       /* CAPS_MAGIC; not judged here */
	uint8_t version;      /* CAPS_VERSION; not judged here */
	uint8_t profile;      /* 0..3 */
	uint16_t flags;       /* caps_flags; those not known here may be set */
	uint8_t mtu_code;     /* 1..5 as in verbs, 6: 8192 */
	uint8_t paths;        /* 0: 256 */
	uint8_t state;        /* caps_state; bits not known here may be set */
	uint32_t rx_window_q; /* 24 bits; packets the sender of this header can record, requests */
	uint32_t rx_window_r; /* 24 bits; the same for responses */
	uint32_t source_qpn;  /* 24 bits */
	uint32_t nonce;       /* the requester's; the response echoes it */
	uint32_t own_nonce;   /* the responder's; 0 in requests */
	uint16_t t_hint;      /* the out-of-order threshold expected (veRoCE 5.4) */
	uint16_t ack_timer_us;
};

static inline void capseth_decode(struct capseth *h, const uint8_t *p)
{
	h->magic = get_be32(p);
	h->version = p[4];
	h->profile = p[5];
	h->flags = get_be16(p + 6);
	h->mtu_code = p[8];
	h->rx_window_q = get_be24(p + 9);
	h->paths = p[12];
	h->rx_window_r = get_be24(p + 13);
	h->state = p[16];
	h->source_qpn = get_be24(p + 17);
	h->nonce = get_be32(p + 20);
	h->t_hint = get_be16(p + 24);
	h->ack_timer_us = get_be16(p + 26);
	h->own_nonce = get_be32(p + 28);
}

static inline void capseth_encode(uint8_t *p, const struct capseth *h)
{
	put_be32(p, h->magic);
	p[4] = h->version;
	p[5] = h->profile;
	put_be16(p + 6, h->flags);
	p[8] = h->mtu_code;
	put_be24(p + 9, h->rx_window_q);
	p[12] = h->paths;
	put_be24(p + 13, h->rx_window_r);
	p[16] = h->state;
	put_be24(p + 17, h->source_qpn);
	put_be32(p + 20, h->nonce);
	put_be16(p + 24, h->t_hint);
	put_be16(p + 26, h->ack_timer_us);
	put_be32(p + 28, h->own_nonce);
}
