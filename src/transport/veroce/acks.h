/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a receiver acknowledges, and with what (veRoCE 5).
 *
 * Private to src/transport/veroce.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/pkt.h"
#include "transport/qp.h"
#include "transport/veroce/receiver.h"
#include "wire/aeth.h"
#include "wire/bth.h"
#include "wire/icrc.h"
#include "wire/poeth.h"
#include "wire/psn.h"
#include "wire/tseeth.h"
#include "wire/veroce.h"

/* A packet arrived that makes an acknowledgement due; `now`: at once. */
void acks_note(struct transport *, struct qp *, struct receiver *, bool now, uint64_t now_ns);
/* Makes a NAK for that PSN due; in space R a NAK_Rsp. */
void acks_nak(struct transport *, struct qp *, struct receiver *, uint32_t psn, uint8_t syndrome);
/* The greatest reordering, in packets, that gives T its initial value (5.4). */
uint16_t acks_ext_start(uint32_t paths);
/* Whether a NAK is due and may leave: the one that ends the QP follows all responses. */
bool acks_nak_ready(const struct qp *);
bool acks_send(struct transport *, struct qp *, struct receiver *, uint64_t now_ns);
/* Bytes of an acknowledgement with time stamps, without its seal and a share. */
enum { ACKS_STAMPED_LEN = BTH_LEN + TSEETH_LEN + AETH_LEN + POETH_LEN };
/* Sends the acknowledgement that is due in one space. False: no room. */
static inline bool acks_output(struct transport *tp, struct qp *qp, struct receiver *in, uint64_t now_ns)
{
	return (!in->ack_due && !in->nak_due && !in->trims) || acks_send(tp, qp, in, now_ns);
}

/* Of a receiver before a packet arrives: its highest PSN, and whether any below that are missing. */
struct acks_before {
	uint32_t hpsn;
	bool had_holes;
};
static inline struct acks_before acks_before(const struct receiver *in)
{
	return (struct acks_before){.hpsn = in->rx.hpsn, .had_holes = rx_has_holes(&in->rx)};
}

/* The rest of acks_arrived(). */
void acks_arrived_news(struct transport *, struct qp *, struct receiver *, const struct veroce_packet *,
		       struct acks_before, uint64_t now_ns);
/* A new packet was accepted, in its turn or early. `before` is the receiver as it was. */
static inline void acks_arrived(struct transport *tp, struct qp *qp, struct receiver *in, const struct veroce_packet *p,
				struct acks_before before, uint64_t now_ns)
{
	/* One more packet in order, which the acknowledgement that is due covers. */
	if (in->ack_due && !before.had_holes && !rx_has_holes(&in->rx) && !p->bth.retrans && !p->bth.ackreq &&
	    !in->ce && in->unacked + 1 < in->ack_packets)
		in->unacked++;
	else
		acks_arrived_news(tp, qp, in, p, before, now_ns);
}
/* The QP has a turn soon in any case, and its acknowledgement does not wait for a packet to travel with. */
static inline bool acks_go_next(const struct transport *tp, const struct qp *qp)
{
	return !list_empty(&qp->active) && list_empty(&qp->held) && !qp_is_paused(tp, qp);
}
/*
 * Whether the packet is next in order, no packet is early, and acks_arrived() would do nothing but count it. Called
 * before veroce_arrival().
 */
static inline bool acks_counts_only(const struct transport *tp, const struct qp *qp, const struct receiver *in,
				    const struct pkt *pkt, const struct veroce_packet *p)
{
	if (p->bth.psn != in->rx.epsn || rx_has_holes(&in->rx) || !in->ack_due || p->bth.retrans || in->ce ||
	    rx_is_marked(pkt))
		return false;
	return (!p->bth.ackreq && in->unacked + 1 < in->ack_packets) ||
	       (in->unacked < UINT16_MAX && acks_go_next(tp, qp));
}
/*
 * Asserts that a fast path which took such a packet left the receiver as the general rule leaves it. `before` is the
 * receiver as it was.
 */
void acks_check_counted(const struct transport *, const struct qp *, const struct receiver *before,
			const struct receiver *, const struct veroce_packet *);
/* Calls it, in the debug build alone. */
static inline void acks_counted(const struct transport *tp, const struct qp *qp, const struct receiver *before,
				const struct receiver *in, const struct veroce_packet *p)
{
#ifdef VERBENA_DEBUG
	acks_check_counted(tp, qp, before, in, p);
#endif
}
/* A switch cut off the payload of the packet with that PSN (veRoCE 8). */
void acks_trimmed(struct transport *, struct qp *, struct receiver *, uint32_t psn);
/* Drops the Packet Drop NAKs that are due. */
void acks_drop(struct transport *, struct receiver *);
void acks_expire(struct transport *, struct qp *, struct receiver *, uint64_t now_ns);
