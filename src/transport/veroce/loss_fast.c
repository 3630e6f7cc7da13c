/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss detection "fast", the default (veRoCE 6.2): packets of one path arrive in the order in which they
 * were sent, or nearly so. A packet is lost when three that were sent after it on the same path were
 * acknowledged, or one that was sent more than reo_ns after it. A copy is judged as its original was,
 * so a lost copy is found a round trip later, without a timeout.
 *
 * Once a path has been seen to reorder, only the time counts on it for a while.
 */
#include "transport/veroce/veroce.h"

enum { DUP_MAX = 3 };

static bool is_lost(const struct tx_path *l, const struct tx_record *r, const struct path *path)
{
	/* Everything sent before r on this path is accounted for, so what is gone was sent after it. */
	uint32_t later = l->sent - r->order - l->flying;

	if (r->tx_ns + path->reo_ns < l->newest_tx_ns)
		return true;
	return later >= DUP_MAX && !path->reo_until_ns;
}

static void search(struct transport *tp, struct qp *qp, struct sender *s, uint32_t i,
		   uint64_t now_ns)
{
	struct tx_path *l = &s->tx.ring->paths[i];
	const struct path *path = &qp->veroce->pair->path[i];

	while (l->head != TX_NIL && is_lost(l, tx_record(&s->tx, l->head), path))
		recovery_lose(tp, qp, s, l->head, now_ns);
}

/*
 * Evidence from other paths: an acknowledgement of a packet that was due later, by what is known of both
 * paths' round trips. A pause of the peer delays all of them alike, and proves nothing against any.
 */
static uint64_t due_ns(const struct qp *qp, const struct sender *s, uint32_t paths)
{
	uint64_t due = 0;

	for (; paths; paths &= paths - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(paths);
		uint64_t d = s->tx.ring->paths[i].newest_tx_ns + qp->veroce->pair->path[i].srtt_ns;

		if (s->tx.ring->paths[i].newest_tx_ns && d > due)
			due = d;
	}
	return due;
}

static void search_overdue(struct transport *tp, struct qp *qp, struct sender *s, uint32_t i,
			   uint64_t due, uint64_t now_ns)
{
	struct tx_path *l = &s->tx.ring->paths[i];
	struct pair *pair = qp->veroce->pair;
	const struct path *path = &pair->path[i];
	uint64_t slack = 4 * path->rttvar_ns > path->srtt_ns / 4 ? 4 * path->rttvar_ns
								 : path->srtt_ns / 4;
	uint64_t wait = path->srtt_ns ? path->srtt_ns + slack : tp->pairs.config.rto_min_ns;
	uint32_t unheard = 0;

	while (l->head != TX_NIL && tx_record(&s->tx, l->head)->tx_ns + wait < due) {
		unheard += path->heard_ns < tx_record(&s->tx, l->head)->tx_ns;
		recovery_lose(tp, qp, s, l->head, now_ns);
	}
	if (unheard)
		path_silent(pair, i, unheard, now_ns);
}

static void acked(struct transport *tp, struct qp *qp, struct sender *s, const struct tx_news *news,
		  const struct veroce_packet *p, uint64_t now_ns)
{
	uint32_t paths = qp->veroce->pair->path_count;
	uint64_t due = paths > 1 ? due_ns(qp, s, news->paths) : 0;

	for (uint32_t i = 0; i < paths; i++) {
		if (s->tx.ring->paths[i].head == TX_NIL)
			continue;
		if (news->paths & 1u << i)
			search(tp, qp, s, i, now_ns);
		else if (due)
			search_overdue(tp, qp, s, i, due, now_ns);
	}
}

/* Everything that is older than the RTO is lost; what was sent since may be on its way. */
static void timeout(struct transport *tp, struct qp *qp, struct sender *s, uint64_t now_ns)
{
	for (uint32_t psn = s->tx.una; psn != s->tx.nxt; psn = psn_add(psn, 1)) {
		const struct tx_record *r = tx_record(&s->tx, psn);

		if (r->state == TX_FLYING && r->tx_ns + tp->pairs.config.rto_min_ns <= now_ns)
			recovery_lose(tp, qp, s, psn, now_ns);
	}
}

/*
 * A hole may take many round trips to mend while everything else goes on. Time is up only for packets
 * that have flown too long, whatever una does.
 */
static uint64_t since(const struct qp *qp, const struct sender *s)
{
	uint64_t oldest = UINT64_MAX;

	for (uint32_t i = 0; i < qp->veroce->pair->path_count; i++) {
		uint32_t head = s->tx.ring->paths[i].head;

		if (head != TX_NIL && tx_record(&s->tx, head)->tx_ns < oldest)
			oldest = tx_record(&s->tx, head)->tx_ns;
	}
	return oldest == UINT64_MAX ? s->active_ns : oldest;
}

const struct loss_ops loss_fast = {
	.acked = acked, .timeout = timeout, .since = since, .probes = true};
