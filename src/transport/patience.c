/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes of this host are doubted, and which are gone. */
#include "transport/patience.h"

#include "transport/qp.h"

enum { AWAY_PART = 8 }; /* of the patience: who is so late has been away */

static const uint64_t gone_for_ns = 1000000000;

static uint32_t slot_of(const struct qp *qp)
{
	return qp->dest_qpn >> PATIENCE_SLOT_SHIFT;
}

static bool is_gone(const struct patience *p, uint32_t slot, uint64_t now_ns)
{
	return p->gone_ns[slot] && now_ns - p->gone_ns[slot] < gone_for_ns;
}

void patience_doubt(struct transport *tp, const struct qp *qp)
{
	uint32_t slot = slot_of(qp);

	if (qp->local && tp->config.patience_ns)
		tp->patience.doubted[slot / 64] |= 1ull << slot % 64;
}

bool patience_keeps(struct transport *tp, const struct qp *qp, uint64_t since_ns, uint64_t now_ns)
{
	const struct patience *p = &tp->patience;
	uint32_t slot = slot_of(qp);

	if (!qp->local || !tp->config.patience_ns || is_gone(p, slot, now_ns))
		return false;
	patience_doubt(tp, qp);
	if (p->waits_ns[slot] > since_ns)
		since_ns = p->waits_ns[slot];
	if (p->back_ns > since_ns)
		since_ns = p->back_ns;
	return p->ran_ns[slot] < since_ns + tp->config.patience_ns;
}

void patience_woke(struct transport *tp, uint64_t due_ns, uint64_t now_ns)
{
	if (now_ns - due_ns >= tp->config.patience_ns / AWAY_PART)
		tp->patience.back_ns = now_ns;
}

bool patience_is_over(const struct transport *tp, const struct qp *qp, uint64_t now_ns)
{
	return is_gone(&tp->patience, slot_of(qp), now_ns);
}

uint64_t patience_late_ns(const struct transport *tp, uint64_t due_ns, uint64_t now_ns)
{
	uint64_t late_ns = now_ns - due_ns;

	return late_ns > tp->config.veroce.pto_ns_min / 2 ? late_ns : 0;
}

int patience_next(struct patience *p)
{
	for (int i = 0; i < PATIENCE_SLOTS / 64; i++) {
		if (p->doubted[i]) {
			int bit = __builtin_ctzll(p->doubted[i]);

			p->doubted[i] &= p->doubted[i] - 1;
			return 64 * i + bit;
		}
	}
	return -1;
}

void patience_gone(struct patience *p, uint32_t slot, uint64_t now_ns)
{
	if (slot < PATIENCE_SLOTS)
		p->gone_ns[slot] = now_ns;
}

void patience_lives(struct patience *p, uint32_t slot, bool ran, uint64_t now_ns)
{
	if (slot < PATIENCE_SLOTS)
		*(ran ? &p->ran_ns[slot] : &p->waits_ns[slot]) = now_ns;
}
