/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss detection of IRN (Mittal et al., SIGCOMM 2018), for comparison: any arrival out of order counts as
 * a loss. The first NACK (here: SACK) begins a recovery that ends when all packets sent before it are
 * acknowledged. During it the oldest hole is sent again, then each hole below the highest selectively
 * acknowledged PSN, once. After a partial acknowledgement the new oldest hole is sent again.
 */
#include "transport/veroce/loss.h"
#include "transport/veroce/recovery.h"
#include "transport/veroce/work.h"

/* Sends again the PSNs missing below `high` that were not sent again in this recovery. */
static void fill_holes(struct transport *tp, struct qp *qp, struct sender *s, uint32_t high, uint64_t now_ns)
{
	uint32_t psn = psn_diff(s->rxt_psn, s->tx.una) < 0 ? s->tx.una : s->rxt_psn;

	for (; psn_diff(psn, high) < 0; psn = psn_add(psn, 1)) {
		if (tx_record(&s->tx, psn)->state == TX_FLYING)
			recovery_lose(tp, qp, s, psn, now_ns);
	}
	if (psn_diff(high, s->rxt_psn) > 0)
		s->rxt_psn = high;
}

static uint32_t highest_bit(const struct sacketh *h)
{
	return h->bits[1] ? 127 - (uint32_t)__builtin_clzll(h->bits[1]) : 63 - (uint32_t)__builtin_clzll(h->bits[0]);
}

static void acked(struct transport *tp, struct qp *qp, struct sender *s, const struct tx_news *news,
		  const struct acknowledgement *a, uint64_t now_ns)
{
	uint32_t una = s->tx.una;

	if (s->recovering && psn_diff(una, s->recover_psn) > 0)
		s->recovering = false;
	if (s->recovering && una != s->rxt_una) {
		s->rxt_una = una;
		if (tx_record(&s->tx, una)->state == TX_FLYING && !a->sack_count)
			recovery_lose(tp, qp, s, una, now_ns);
	}
	for (uint32_t b = 0; b < a->sack_count; b++) {
		struct sacketh h;
		uint32_t high;

		sacketh_decode(&h, a->sacks + b * SACKETH_LEN);
		if (!h.bits[0] && !h.bits[1])
			continue;
		high = psn_add(h.start_psn, highest_bit(&h));
		if (!tx_is_outstanding(&s->tx, high))
			continue;
		if (!s->recovering) {
			s->recovering = true;
			s->recover_psn = (s->tx.nxt - 1) & PSN_MASK;
			s->rxt_psn = una;
			s->rxt_una = una;
		}
		fill_holes(tp, qp, s, high, now_ns);
	}
}

static void timeout(struct transport *tp, struct qp *qp, struct sender *s, uint64_t now_ns)
{
	s->recovering = true;
	s->recover_psn = (s->tx.nxt - 1) & PSN_MASK;
	s->rxt_psn = psn_add(s->tx.una, 1);
	s->rxt_una = s->tx.una;
	if (tx_record(&s->tx, s->tx.una)->state == TX_FLYING)
		recovery_lose(tp, qp, s, s->tx.una, now_ns);
}

const struct loss_ops loss_irn = {.acked = acked, .timeout = timeout};
