/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoding of a packet on its way in: the part that rx.h does not inline. */
#include "transport/rx.h"

#include <string.h>

#include "transport/qp.h"
#include "wire/packet.h"

bool rx_decode_rocev2(struct rx_decoder *d, struct rx *rx)
{
	const struct pkt *pkt = rx->pkt;
	enum opcode_service service;
	uint32_t header_len;

	if (!opcode_judge_length(pkt->data, pkt->len, &rx->info, &d->bth, &header_len, &rx->payload_len) || d->bth.tver)
		return false;
	service = opcode_service(d->bth.opcode);
	rx->bth = &d->bth;
	rx->payload = pkt->data + header_len;
	rx->service = service == SVC_CNP ? SVC_RC : (uint8_t)service;
	rx->veroce = NULL;
	return true;
}

/* A switch that cuts the payload off leaves the headers as they are, pad count included (veRoCE 8). */
const struct veroce_packet *rx_decode_trimmed(struct rx_decoder *d, const struct pkt *pkt)
{
	if (!d->trims || pkt->flow->tos >> 2 != VEROCE_DSCP_TRIMMED || pkt->len > sizeof(d->trimmed) ||
	    pkt->len < BTH_LEN)
		return NULL;
	memcpy(d->trimmed, pkt->data, pkt->len);
	d->trimmed[1] &= (uint8_t)~0x30;
	return veroce_decode_next(&d->veroce, d->trimmed, pkt->len);
}
