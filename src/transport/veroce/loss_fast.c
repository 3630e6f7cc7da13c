/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loss detection "fast", the default (veRoCE 6.2): packets of one path arrive in the order in which they
 * were sent, or nearly so. A packet is lost when the peer reports it missing, although one was
 * acknowledged that was sent on the same path DUP_MAX packets later, or more than reo_ns later. A copy is
 * judged like its original, so a lost copy is found a round trip later, without a timeout.
 *
 * A PSN that no block of a SACK covers is unknown, not missing (5.5): it is judged when a block covers it.
 * aPSN + 1 is always known to be missing.
 *
 * After a path has reordered packets, only the time counts on it for a while.
 */
#include "transport/veroce/loss.h"
#include "transport/veroce/recovery.h"
#include "transport/veroce/work.h"

enum {
	DUP_MAX = 3,
	QUIET_SHIFT = 2 /* of the round trip: after so long without an acknowledgement the clock judges */
};

/* How many packets later on its path the newest acknowledged packet was sent. */
static int32_t later(const struct sender *s, const struct tx_record *r)
{
	const struct tx_path *l = &s->tx.ring->paths[r->path];

	return l->newest_order ? (int32_t)(l->newest_order - 1 - r->order) : 0;
}

/* When the acknowledgement of a packet that was overtaken would be later than any on its path. */
static uint64_t late_ns(const struct path *path, const struct tx_record *r)
{
	return r->tx_ns + path->srtt_ns + path->reo_ns;
}

/*
 * Evidence from other paths: an acknowledgement of a packet that was due later, by the round trips of both paths. A
 * pause of the peer delays all paths alike, and proves no loss on any. Neither does a growing queue that the paths
 * share: the round trip of a quiet path is outdated then, so the other path's counts as no longer than it.
 */
static uint64_t due_ns(const struct qp *qp, const struct sender *s, uint32_t paths, uint64_t srtt_ns_max)
{
	uint64_t due = 0;

	for (; paths; paths &= paths - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(paths);
		uint64_t srtt = qp->veroce->pair->path[i].srtt_ns;
		uint64_t d = s->tx.ring->paths[i].newest_tx_ns + (srtt < srtt_ns_max ? srtt : srtt_ns_max);

		if (s->tx.ring->paths[i].newest_tx_ns && d > due)
			due = d;
	}
	return due;
}

/* When a packet without other evidence counts as late. */
static uint64_t overdue_ns(const struct pair *pair, const struct tx_record *r)
{
	const struct path *path = &pair->path[r->path];
	/* If a queue grows, the present round trip may be twice as long as the measured one. */
	uint64_t slack = 4 * path->rttvar_ns > path->srtt_ns ? 4 * path->rttvar_ns : path->srtt_ns;

	return r->tx_ns + (path->srtt_ns ? path->srtt_ns + slack : pair->rto_ns);
}

/* Judges a PSN that is missing at the peer; `heard` has the paths of the packets just acknowledged. */
static void examine(struct transport *tp, struct qp *qp, struct sender *s, uint32_t psn, uint32_t heard,
		    uint64_t now_ns)
{
	const struct tx_record *r = tx_record(&s->tx, psn);
	const struct tx_path *l = &s->tx.ring->paths[r->path];
	struct pair *pair = qp->veroce->pair;
	const struct path *path = &pair->path[r->path];
	int32_t n = later(s, r);

	if (r->state != TX_FLYING)
		return;
	if (n > 0 && ((n >= DUP_MAX && !path->reo_until_ns) || r->tx_ns + path->reo_ns < l->newest_tx_ns ||
		      late_ns(path, r) < now_ns)) {
		recovery_lose(tp, qp, s, psn, now_ns);
	} else if (n > 0) {
		if (!s->reo_ns || late_ns(path, r) < s->reo_ns)
			s->reo_ns = late_ns(path, r);
	} else if (overdue_ns(pair, r) < due_ns(qp, s, heard, path->srtt_ns ? path->srtt_ns : UINT64_MAX)) {
		if (path->heard_ns < r->tx_ns)
			path_silent(pair, r->path, 1, now_ns);
		recovery_lose(tp, qp, s, psn, now_ns);
	}
}

static void examine_block(struct transport *tp, struct qp *qp, struct sender *s, const struct sacketh *h,
			  uint32_t heard, uint64_t now_ns)
{
	for (uint32_t word = 0; word < 2; word++) {
		uint32_t valid = h->valid_len > 64 * word ? h->valid_len - 64 * word : 0;
		uint64_t zeros = ~h->bits[word] & (valid >= 64 ? UINT64_MAX : (1ull << valid) - 1);

		for (; zeros; zeros &= zeros - 1) {
			uint32_t psn = psn_add(h->start_psn, 64 * word + (uint32_t)__builtin_ctzll(zeros));

			if (tx_is_outstanding(&s->tx, psn))
				examine(tp, qp, s, psn, heard, now_ns);
		}
	}
}

/* Takes for lost what is in flight on paths that are down: none of it will arrive. */
static void abandon(struct transport *tp, struct qp *qp, struct sender *s, uint64_t now_ns)
{
	const struct pair *pair = qp->veroce->pair;

	for (uint32_t i = 0; i < pair->path_count; i++) {
		while (pair->path[i].down && s->tx.ring->paths[i].head != TX_NIL)
			recovery_lose(tp, qp, s, s->tx.ring->paths[i].head, now_ns);
	}
}

static void acked(struct transport *tp, struct qp *qp, struct sender *s, const struct tx_news *news,
		  const struct acknowledgement *a, uint64_t now_ns)
{
	uint32_t heard = qp->veroce->pair->path_count > 1 ? news->paths : 0;

	s->reo_ns = 0;
	examine(tp, qp, s, s->tx.una, heard, now_ns);
	for (uint32_t b = 0; b < a->sack_count; b++) {
		struct sacketh h;

		sacketh_decode(&h, a->sacks + b * SACKETH_LEN);
		examine_block(tp, qp, s, &h, heard, now_ns);
	}
	if (qp->veroce->pair->down_count)
		abandon(tp, qp, s, now_ns);
	/* While acknowledgements arrive they show more than a clock does. */
	if (s->reo_ns) {
		uint64_t quiet = now_ns + (qp->veroce->pair->srtt_ns >> QUIET_SHIFT);

		s->reo_ns = s->reo_ns > quiet ? s->reo_ns : quiet;
	}
}

/* No acknowledgement arrived, and packets that were overtaken are later than reordering explains. */
static void late(struct transport *tp, struct qp *qp, struct sender *s, uint64_t now_ns)
{
	for (uint32_t i = 0; i < qp->veroce->pair->path_count; i++) {
		const struct path *path = &qp->veroce->pair->path[i];
		const struct tx_path *l = &s->tx.ring->paths[i];

		while (l->head != TX_NIL && later(s, tx_record(&s->tx, l->head)) > 0 &&
		       late_ns(path, tx_record(&s->tx, l->head)) <= now_ns)
			recovery_lose(tp, qp, s, l->head, now_ns);
	}
}

/* Packets older than the RTO are lost; those sent since may be under way. */
static void timeout(struct transport *tp, struct qp *qp, struct sender *s, uint64_t now_ns)
{
	for (uint32_t psn = s->tx.una; psn != s->tx.nxt; psn = psn_add(psn, 1)) {
		struct tx_record *r = tx_record(&s->tx, psn);

		if (r->state == TX_FLYING && r->tx_ns + qp->veroce->pair->rto_ns <= now_ns) {
			recovery_lose(tp, qp, s, psn, now_ns);
			r->timed_out = true;
		}
	}
}

/*
 * A hole may take many round trips to mend while other packets are acknowledged. The timeout counts from
 * packets that have flown too long, whether or not una moves.
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

const struct loss_ops loss_fast = {.acked = acked, .timeout = timeout, .late = late, .since = since, .probes = true};
