/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers: which processes of this host take no more, which are doubted, and which are gone. */
#include "transport/peer.h"

#include "transport/qp.h"

enum { AWAY_PART = 8 }; /* of the patience: this process has been away when it is so late */

static const uint64_t gone_for_ns = 1000000000;

/* In a network of thousands of nics hardly a peer is ever a process of the same host: the memory of others is not
 * touched. */
struct peer *peer_at(struct transport *tp, uint32_t slot)
{
	struct peer *p = &tp->peers[slot];

	if (!p->local) {
		p->local = true;
		p->slot = (uint8_t)slot;
		list_init(&p->held_up);
		list_init(&p->doubted);
		borrower_init(&p->borrower, NULL);
	}
	return p;
}

void peer_change(struct transport *tp, struct qp *qp, struct peer *p)
{
	bool waits = qp->peer->full && !qp->answering && !list_empty(&qp->active);

	if (qp->peer == p)
		return;
	qp_take_back(tp, qp);
	__atomic_store_n(&qp->peer, p, __ATOMIC_RELAXED);
	if (!waits)
		return;
	list_remove(&qp->active);
	qp_activate(tp, qp);
}

static bool is_gone(const struct peer *p, uint64_t now_ns)
{
	return p->gone_ns && now_ns - p->gone_ns < gone_for_ns;
}

void patience_doubt(struct transport *tp, const struct qp *qp)
{
	if (qp->peer->local && tp->config.patience_ns && list_empty(&qp->peer->doubted))
		list_append(&tp->doubted, &qp->peer->doubted);
}

bool patience_keeps(struct transport *tp, const struct qp *qp, uint64_t since_ns, uint64_t now_ns)
{
	const struct peer *p = qp->peer;

	if (!p->local || !tp->config.patience_ns || is_gone(p, now_ns))
		return false;
	patience_doubt(tp, qp);
	if (p->waits_ns > since_ns)
		since_ns = p->waits_ns;
	if (tp->back_ns > since_ns)
		since_ns = tp->back_ns;
	return p->ran_ns < since_ns + tp->config.patience_ns;
}

void patience_woke(struct transport *tp, uint64_t due_ns, uint64_t now_ns)
{
	if (now_ns - due_ns >= tp->config.patience_ns / AWAY_PART)
		tp->back_ns = now_ns;
}

bool patience_is_over(const struct qp *qp, uint64_t now_ns)
{
	return is_gone(qp->peer, now_ns);
}

uint64_t patience_late_ns(const struct transport *tp, uint64_t due_ns, uint64_t now_ns)
{
	uint64_t late_ns = now_ns - due_ns;

	return late_ns > tp->config.veroce.pto_ns_min / 2 ? late_ns : 0;
}

int patience_next(struct transport *tp)
{
	struct list *first = tp->doubted.next;

	if (list_empty(&tp->doubted))
		return -1;
	list_remove(first);
	return container_of(first, struct peer, doubted)->slot;
}

void patience_gone(struct transport *tp, uint32_t slot, uint64_t now_ns)
{
	if (slot < PEER_SLOTS)
		peer_at(tp, slot)->gone_ns = now_ns;
}

void patience_lives(struct transport *tp, uint32_t slot, bool ran, uint64_t now_ns)
{
	if (slot < PEER_SLOTS)
		*(ran ? &peer_at(tp, slot)->ran_ns : &peer_at(tp, slot)->waits_ns) = now_ns;
}
