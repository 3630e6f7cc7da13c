/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss detection "base" (veRoCE 6.1): after a SACK, aPSN + 1 and every PSN with a zero in its bitmap count as
 * lost. RxtPSN keeps later SACKs from causing the same retransmissions, until it has not moved for a round
 * trip. After a timeout SACKs cause no retransmissions until the PSN that timed out is acknowledged.
 */
#include "transport/veroce/loss.h"
#include "transport/veroce/recovery.h"
#include "transport/veroce/work.h"

static void examine(struct transport *tp, struct qp *qp, struct sender *s, uint32_t psn, uint64_t now_ns)
{
	if (psn_diff(psn, s->rxt_psn) > 0 && tx_is_outstanding(&s->tx, psn) &&
	    tx_record(&s->tx, psn)->state == TX_FLYING)
		recovery_lose(tp, qp, s, psn, now_ns);
}

static void acked(struct transport *tp, struct qp *qp, struct sender *s, const struct tx_news *news,
		  const struct acknowledgement *a, uint64_t now_ns)
{
	uint32_t una = s->tx.una;

	if (s->recovering && psn_diff(una, s->recover_psn) > 0)
		s->recovering = false;
	/* RxtPSN is never behind aPSN, and is set back to it after a round trip. */
	if (psn_diff(s->rxt_psn, una) < 0 || (s->rxt_ns && now_ns - s->rxt_ns > qp->veroce->pair->srtt_ns)) {
		s->rxt_psn = (una - 1) & PSN_MASK;
		s->rxt_ns = 0;
	}
	if (s->recovering)
		return;
	for (uint32_t b = 0; b < a->sack_count; b++) {
		struct sacketh h;
		uint32_t high;

		sacketh_decode(&h, a->sacks + b * SACKETH_LEN);
		if (!h.valid_len)
			continue;
		if (b == 0)
			examine(tp, qp, s, una, now_ns);
		for (uint32_t i = 0; i < h.valid_len; i++) {
			if (!(h.bits[i / 64] >> i % 64 & 1))
				examine(tp, qp, s, psn_add(h.start_psn, i), now_ns);
		}
		high = psn_add(h.start_psn, h.valid_len - 1u);
		if (psn_diff(high, s->rxt_psn) > 0 && tx_is_outstanding(&s->tx, high)) {
			s->rxt_psn = high;
			s->rxt_ns = now_ns;
		}
	}
}

static void timeout(struct transport *tp, struct qp *qp, struct sender *s, uint64_t now_ns)
{
	s->recovering = true;
	s->recover_psn = s->tx.una;
	for (uint32_t psn = s->tx.una; psn != s->tx.nxt; psn = psn_add(psn, 1)) {
		if (tx_record(&s->tx, psn)->state == TX_FLYING)
			recovery_lose(tp, qp, s, psn, now_ns);
	}
}

const struct loss_ops loss_base = {.acked = acked, .timeout = timeout};
