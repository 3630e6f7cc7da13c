/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet on its way in: its bytes and its decoded headers. rx_decode() makes one; after that no decoder can fail, and
 * every call takes the packet as this one value.
 *
 * Private to src/transport.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/pkt.h"
#include "wire/bth.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/veroce.h"

struct qp;
struct transport;

/* A call borrows its pointers; they are valid until the next rx_decode(). */
struct rx {
	const struct pkt *pkt;
	const struct opcode_info *info; /* of the opcode, in the packet's protocol */
	const struct bth *bth;
	const uint8_t *payload;
	uint32_t payload_len; /* without pad */
	uint16_t ip_id;       /* pkt's guess, or the sender's own, where its seal had to find it */
	uint8_t service;      /* enum opcode_service of the QPs that accept it; RC accepts CNPs */
	/* A veRoCE packet's headers. NULL: it is RoCEv2's, and they are at rx_header(). */
	const struct veroce_packet *veroce;
	uint64_t now_ns; /* when it arrived */
};

/*
 * Packets of one message, one behind the other, whose places are asked for before they are handed in: the one that was
 * asked for last.
 */
struct rx_row {
	const struct qp *qp; /* NULL: the row begins */
	uint32_t psn, msn, po;
	uint32_t flags; /* F_SEND, F_WRITE or F_RESPONSE */
};

/* The decoder. It holds the packet that was decoded last. */
struct rx_decoder {
	uint16_t veroce_port; /* packets to this port are veRoCE's, all others RoCEv2's */
	bool trims;           /* switches may trim veRoCE packets */
	struct bth bth;
	struct veroce_decoder veroce;
	uint8_t trimmed[VEROCE_HEADERS_MAX + ICRC_LEN]; /* the headers of a trimmed packet */
};

/*
 * The part of rx_decode() for a RoCEv2 packet, and for a veRoCE packet whose length contradicts its
 * headers.
 */
bool rx_decode_rocev2(struct rx_decoder *, struct rx *);
const struct veroce_packet *rx_decode_trimmed(struct rx_decoder *, const struct pkt *);

/*
 * Judges length, opcode and transport version of pkt, and decodes it into *rx. False, with *rx undefined: it is not a
 * packet of the protocol whose port it arrived at.
 */
static inline bool rx_decode(struct rx_decoder *d, const struct pkt *pkt, uint64_t now_ns, struct rx *rx)
{
	const struct veroce_packet *p;

	rx->pkt = pkt;
	rx->ip_id = pkt->ip_id;
	rx->now_ns = now_ns;
	if (pkt->flow->dport != d->veroce_port)
		return rx_decode_rocev2(d, rx);
	p = veroce_decode_next(&d->veroce, pkt->data, pkt->len);
	if (!p)
		p = rx_decode_trimmed(d, pkt);
	if (!p)
		return false;
	rx->info = p->info;
	rx->bth = &p->bth;
	rx->payload = p->payload;
	rx->payload_len = p->payload_len;
	rx->service = SVC_RC;
	rx->veroce = p;
	return true;
}

/* Where the header h (one H_ bit, which the opcode has) of a RoCEv2 packet begins. */
static inline const uint8_t *rx_header(const struct rx *rx, uint32_t h)
{
	return rx->pkt->data + opcode_header_offset(rx->info, h);
}

/* Whether a switch on the way has marked it CE (RFC 3168). Without IP there is no ECN, and the program uses the bits.
 */
static inline bool rx_is_marked(const struct pkt *pkt)
{
	return (pkt->flow->tos & 3) == 3 && flow_has_udp(pkt->flow);
}
