/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seal of RC, and whether the peer sent a packet: between ends that have agreed on it, the ICRC is XORed with a
 * secret that only the peer knows, and no other packet is accepted (veRoCE 13.1, our choice).
 */
#include "transport/veroce/veroce.h"

/*
 * Whether the packet's sender knows the secret, for any place that the packet may have in its train. A random packet
 * must have 26 bits right over IPv4, and 32 over IPv6.
 */
static bool is_sealed(const struct transport *tp, const struct veroce *vr, const struct pkt *pkt)
{
	uint16_t ip_id;

	return icrc_check(tp->tx.icrc, pkt, vr->nonce, &ip_id) && (ip_id < PKT_TRAIN_MAX || !vr->ids_kept);
}

/* Whether the packet may lack the seal that was agreed: only one that a switch has cut, which cannot seal it. */
static bool may_be_unsealed(const struct qp *qp, const struct rx *rx)
{
	uint32_t flags = rx->info->flags;

	return flags & (F_REQUEST | F_RESPONSE) && !(flags & F_ACK) && !rx->payload_len &&
	       veroce_is_trimmed(qp, rx->pkt);
}

/* The peer may seal with our nonce before its response, which says that it does, has arrived. */
static bool seals_already(const struct transport *tp, struct qp *qp, const struct pkt *pkt)
{
	const struct veroce *vr = qp->veroce;

	if (vr->state == VEROCE_SEALED || !vr->caps_told || !(tp->caps_flags & CAPS_SEAL) || !is_sealed(tp, vr, pkt))
		return false;
	if (vr->state == VEROCE_AGREED && vr->caps & CAPS_SEAL)
		veroce_move(qp, VEROCE_SEALED);
	return true;
}

static bool open_agreed(struct transport *tp, struct qp *qp, struct rx *rx)
{
	struct veroce *vr = qp->veroce;
	bool sealed;

	if (!rx->veroce || !vr)
		return seal_icrc.open(tp, qp, rx);
	sealed = vr->state == VEROCE_SEALED;
	if (sealed && is_sealed(tp, vr, rx->pkt))
		return true;
	if (icrc_check(tp->tx.icrc, rx->pkt, 0, &rx->ip_id)) {
		if (!sealed || opcode_is_caps(rx->bth->opcode) || may_be_unsealed(qp, rx))
			return true;
		tp->counters.rx_dropped++;
		return false;
	}
	if (seals_already(tp, qp, rx->pkt))
		return true;
	tp->counters.rx_icrc_errors++;
	return false;
}

static uint32_t secret(const struct qp *qp, const struct rx *rx, bool *sure)
{
	const struct veroce *vr = qp->veroce;

	if (!rx->veroce || !vr || opcode_is_caps(rx->bth->opcode))
		return 0;
	*sure = vr->state == VEROCE_SEALED;
	return vr->nonce;
}

const struct seal seal_agreed = {
	.overhead = ICRC_LEN, .is_icrc = true, .seal = seal_with_icrc, .open = open_agreed, .secret = secret};
