/* SPDX-License-Identifier: BSD-2-Clause */
/* The content of MPA's frames (RFC 5044 7.1, RFC 6581 6 to 9). */
#include "cm/mpa_start.h"

#include <errno.h>
#include <string.h>

#include "cm/state.h"

enum { REV_PLAIN = 1, REV_ENHANCED = 2 };

/*
 * Peer-to-peer (A) is not asked for: an RDMA Write without bytes comes first all the same. Linux's siw does not notice
 * one that comes very soon after its Reply, so with A its program might wait for ESTABLISHED without an end; and its
 * kernel does not survive that such a connection ends then (iw_cm's BUG()).
 */
size_t mpa_start_request(uint8_t *frame, const struct mpa *m, const struct cm_param *param)
{
	return mpa_encode(frame, &(struct mpa_frame){.markers = m->cm->streams.markers,
						     .crc = !m->cm->streams.no_crc,
						     .enhanced = true,
						     .rev = REV_ENHANCED,
						     .ird = m->ird,
						     .ord = m->ord,
						     .data = param->data,
						     .data_len = param->data_len});
}

/* In the terms of the Request: RFC 6581 9.2. */
void mpa_start_reply(struct mpa_frame *f, const struct mpa *m)
{
	*f = (struct mpa_frame){.reply = true,
				.markers = m->cm->streams.markers,
				.crc = !m->cm->streams.no_crc || m->peer.crc,
				.enhanced = m->peer.enhanced,
				.rev = m->peer.enhanced ? REV_ENHANCED : m->peer.rev,
				.peer_to_peer = m->peer.peer_to_peer,
				.ird = m->ird,
				.ord = m->ord};
	if (f->peer_to_peer)
		f->rtr = m->peer.rtr & MPA_RTR_WRITE ? MPA_RTR_WRITE : MPA_RTR_READ;
}

static uint8_t depth(uint16_t value)
{
	return (uint8_t)(value < NIC_MAX_RD_ATOM ? value : NIC_MAX_RD_ATOM);
}

/* Each side's wish is the other's promise. A peer that negotiates nothing takes what there is. */
void mpa_start_param(struct cm_param *p, const struct mpa *m)
{
	const struct mpa_frame *f = &m->peer;
	uint16_t len = f->data_len < CM_DATA_MAX ? f->data_len : CM_DATA_MAX;

	*p = (struct cm_param){.responder_resources = f->enhanced ? depth(f->ord) : NIC_MAX_RD_ATOM,
			       .initiator_depth = f->enhanced ? depth(f->ird) : NIC_MAX_RD_ATOM,
			       .data_len = len < UINT8_MAX ? len : UINT8_MAX};
	memcpy(p->data, f->data, len);
}

/* A responder takes a Write or a Read as the first message; a Send would take a receive WQE of the program's. */
int mpa_start_judge_request(struct mpa *m)
{
	mpa_decode(&m->peer, m->frame);
	if (m->peer.rejected || (m->peer.peer_to_peer && !(m->peer.rtr & (MPA_RTR_WRITE | MPA_RTR_READ))))
		return -EPROTO;
	return 0;
}

int mpa_start_judge_reply(struct mpa *m)
{
	mpa_decode(&m->peer, m->frame);
	if (m->peer.rejected)
		return 0;
	if (!m->peer.enhanced) {
		m->peer.peer_to_peer = false;
		return 0;
	}
	if (m->peer.peer_to_peer && !(m->peer.rtr & MPA_RTR_WRITE))
		return -EPROTO;
	if (m->peer.ird != MPA_DEPTH_ANY && m->peer.ird < m->ord)
		m->ord = (uint8_t)m->peer.ird;
	/* As siw does, the depth for the peer's READs is raised rather than the connection refused. */
	if (m->peer.ord != MPA_DEPTH_ANY && m->peer.ord > m->ird) {
		if (m->peer.ord > NIC_MAX_RD_ATOM)
			return -EPROTO;
		m->ird = (uint8_t)m->peer.ord;
	}
	return 0;
}
