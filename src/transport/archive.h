/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state that QPs have and share, as bytes (base/archive.h). nic/image.c has the records; a QP's engine has its own
 * part, struct qp_ops.archive.
 *
 * Private to src/transport and src/nic.
 */
#pragma once

#include "base/archive.h"
#include "transport/qp.h"

/* Objects that others refer to. */
enum archive_kind {
	KIND_PD = 1,
	KIND_XRCD,
	KIND_CQ,
	KIND_SRQ,
	KIND_PAIR,
	KIND_QP,
	KIND_SQ,    /* of a QP */
	KIND_USER,  /* likewise: struct mr_user */
	KIND_WORK,  /* likewise: struct veroce_work */
	KIND_EVENTS /* struct event_source of a CQ, an SRQ or a QP */
};

/* What the QPs share, but for regions and whatever has a QP in it; then each pair, as a record of that type. */
void transport_archive(struct archive *, struct transport *);
void transport_archive_pairs(struct archive *, struct transport *, uint16_t type);
/* When all QPs are there: who waits for a turn, for an acknowledgement, for room; events; timers. */
void transport_archive_waiting(struct archive *, struct transport *);
/* What the QP has in every engine, without its engine's part and its receive queue. Loading, it was just created. */
void qp_archive(struct archive *, struct qp *);
/*
 * WQEs that have begun, [sq->una, sq->next): whether each has the PSNs behind those of the one before it, up to `end`,
 * and as many as packets of `mtu` bytes are made of it; for a READ one, or as many as its response has.
 */
bool qp_has_begun(const struct qp *, uint32_t end, uint32_t mtu, bool read_is_one);
/* Whether that SQ index and that PSN are those of the next packet: of a WQE that has begun, or of the one that comes
 * then. */
bool qp_is_cursor(const struct qp *, uint32_t index, uint32_t psn, uint32_t end);

/* rocev2/archive.c: `archive` of struct qp_ops, with a struct gbn or without. */
void gbn_archive(struct archive *, struct transport *, struct qp *);
void rd_resource_archive(struct archive *, struct rd_resource *);
/* Whether the packets that it is about to send are in the answer, and that is cut by that MTU. */
bool rd_resource_is_possible(const struct rd_resource *, uint32_t mtu);

/* veroce/archive.c: likewise, of RC. */
void veroce_archive(struct archive *, struct transport *, struct qp *);
/* Which QPs wait for room on the paths of a pair. */
void veroce_archive_waiting(struct archive *, struct transport *);
/* paths/pair_archive.c has those of pairs. */
