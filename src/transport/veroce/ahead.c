/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See ahead.h. The responder and the completer will judge the packet in the same way. They will take it at once, as
 * there is no hole before it. The packets before it in the row are pieces of the same message, and change nothing that
 * is judged here.
 */
#include "transport/veroce/ahead.h"

#include "transport/veroce/completer.h"
#include "transport/veroce/responder.h"
#include "transport/veroce/veroce.h"

enum { KINDS = F_SEND | F_WRITE | F_RESPONSE };

/* Whether it is the receiver's next packet, and nothing came before its turn. */
static bool is_due(const struct receiver *in, const struct veroce_packet *p)
{
	return p->bth.psn == in->rx.epsn && !rx_has_holes(&in->rx);
}

static bool goes_on(const struct rx_row *row, const struct qp *qp, const struct veroce_packet *p)
{
	return row->qp == qp && p->bth.psn == psn_add(row->psn, 1) && p->msn == row->msn &&
	       p->po == psn_add(row->po, 1) && (p->info->flags & KINDS) == row->flags;
}

uint8_t *veroce_place_ahead(const struct transport *tp, const struct qp *qp, const struct rx *rx, struct rx_row *row)
{
	const struct veroce_packet *p = rx->veroce;
	const struct veroce *vr = qp->veroce;
	uint8_t *to;
	bool request;

	/* Once the ends agree, nothing that is settled later changes a packet's place. */
	if (!p || !vr->w || vr->w->fatal || !veroce_is_answered(vr) || vr->cut_open || !(p->info->flags & KINDS) ||
	    p->info->flags & (F_END | F_ATOMIC | F_ACK))
		return NULL;
	request = p->info->flags & F_REQUEST;
	if (row->qp ? !goes_on(row, qp, p) : !is_due(request ? &vr->w->q_in : &vr->w->r_in, p))
		return NULL;
	to = request ? veroce_responder_place(tp, qp, p, !row->qp) : veroce_completer_place(tp, qp, p, !row->qp);
	if (to)
		*row = (struct rx_row){
			.qp = qp, .psn = p->bth.psn, .msn = p->msn, .po = p->po, .flags = p->info->flags & KINDS};
	return to;
}
