/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender's bookkeeping: which packets may leave, which have left, and which are acknowledged. The loss detection
 * (struct loss_ops) decides which are lost; this file, nak.c and timeouts.c have the rules that all of its variants
 * share.
 */
#include <assert.h>

#include "transport/veroce/recovery.h"

#include "transport/paths/path_rtt.h"
#include "transport/veroce/ackreq.h"
#include "transport/veroce/caps.h"
#include "transport/veroce/completer.h"
#include "transport/veroce/loss.h"
#include "transport/veroce/nak.h"
#include "transport/veroce/requester.h"
#include "transport/veroce/veroce.h"
#include "wire/aeth.h"

/* Other QPs wait already. If nothing is in flight, no acknowledgement would wake them. */
static bool is_not_its_turn(const struct pair *pair, const struct veroce_work *w)
{
	return !w->woken && !list_empty(&pair->waiting) && pair->waiting.next != &w->waiting &&
	       pair->sent_bytes - pair->gone_bytes != pair->idle_bytes;
}

static void wait_for_room(struct pair *pair, struct veroce_work *w, uint64_t now_ns)
{
	pair->full_ns = now_ns;
	if (list_empty(&w->waiting) && w->woken && !w->served)
		list_prepend(&pair->waiting, &w->waiting);
	else if (list_empty(&w->waiting))
		list_append(&pair->waiting, &w->waiting);
	w->woken = false;
}

/* How many packets the train has that a packet on that path would join; 0: it would begin one. */
static uint16_t open_train(const struct transport *tp, const struct qp *qp, uint32_t path)
{
	const struct tx *tx = &tp->tx;
	bool trimmable = qp->veroce->caps & CAPS_TRIM;

	if (!tx->train_open || tx->train_count >= tx->train_max ||
	    tx->train_bytes + tx->train_len > PKT_TRAIN_BYTES_MAX)
		return 0;
	return tx->flow == tx_kept_flow(tx, qp, path << 1 | trimmable) ? tx->train_count : 0;
}

/* Whether a QP whose packets go through memory may send one: its acknowledgements activate it. */
static bool has_near_room(const struct veroce_work *w, uint32_t bytes)
{
	return !w->near_bytes || w->near_bytes + bytes <= VEROCE_NEAR_BYTES;
}

static uint32_t near_run(const struct veroce_work *w, uint32_t bytes, uint32_t max)
{
	uint64_t room = w->near_bytes < VEROCE_NEAR_BYTES ? (VEROCE_NEAR_BYTES - w->near_bytes) / bytes : 0;

	if (max > room)
		max = (uint32_t)room;
	return max ? max : 1;
}

static void near_sent(const struct qp *qp, uint64_t bytes)
{
	struct veroce *vr = qp->veroce;

	if (!peer_is_near(qp->peer))
		return;
	vr->w->near_bytes += bytes;
	vr->pair->near_bytes += bytes;
}

void recovery_near_left(struct veroce *vr, uint64_t bytes)
{
	if (bytes > vr->w->near_bytes)
		bytes = vr->w->near_bytes;
	vr->w->near_bytes -= bytes;
	vr->pair->near_bytes -= bytes;
}

/* The QP need not wait in the pair's line. */
static void leave_line(struct veroce_work *w)
{
	if (!list_empty(&w->waiting)) {
		list_remove(&w->waiting);
		w->woken = true;
	}
	w->served = true;
}

int recovery_pick(struct transport *tp, struct qp *qp, struct sender *s, uint32_t bytes, const struct tx_record *again,
		  uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	int path;

	if (rxshare_holds(&vr->w->pace, now_ns) && !(again && again->probe))
		return PAIR_NO_PATH;
	if (peer_is_near(qp->peer)) {
		if (!has_near_room(vr->w, bytes) && !(again && again->probe))
			return PAIR_NO_PATH;
		leave_line(vr->w);
		return 0;
	}
	if (!again && is_not_its_turn(vr->pair, vr->w) && veroce_stands_in_line(tp)) {
		wait_for_room(vr->pair, vr->w, now_ns);
		return PAIR_NO_PATH;
	}
	if (vr->pair->path_count > 1)
		s->flowlet.open = open_train(tp, qp, s->flowlet.path);
	path = again ? pair_pick_again(vr->pair, &tp->config, bytes, again->path, now_ns)
		     : pair_pick(vr->pair, &tp->config, &s->flowlet, bytes, veroce_path_of_turn(tp, vr->pair), now_ns);
	if (path == PAIR_NO_PATH && again && again->probe)
		path = pair_pick_any(vr->pair, again->path);
	ackreq_fit(qp, s, path, now_ns);
	if (path != PAIR_NO_PATH) {
		leave_line(vr->w);
		return path;
	}
	wait_for_room(vr->pair, vr->w, now_ns);
	vr->pair->paced_ns = pair_paced_ns(vr->pair, &tp->config, bytes, now_ns);
	return path;
}

uint32_t recovery_run(const struct qp *qp, const struct sender *s, int path, uint32_t bytes, uint32_t len, uint32_t max)
{
	uint32_t window = s->peer_window - tx_outstanding(&s->tx), room = tx_space_room(&s->tx);

	/* A QP with a share of the receiver's port sends one packet at a time. */
	if (qp->veroce->w->pace.share_kbps)
		return 1;
	if (max > window)
		max = window;
	if (max > room)
		max = room;
	if (peer_is_near(qp->peer))
		return near_run(qp->veroce->w, bytes, max);
	return pair_run(qp->veroce->pair, &s->flowlet, (uint32_t)path, bytes, len, max);
}

void recovery_sent(struct transport *tp, struct qp *qp, struct sender *s, const struct tx_run *run, uint64_t now_ns)
{
	if (!tx_outstanding(&s->tx)) {
		s->progress_ns = now_ns;
		s->retries = 0;
		s->reo_ns = 0;
	}
	s->active_ns = now_ns;
	s->probes = 0;
	tx_space_sent(&s->tx, run, now_ns);
	pair_took(qp->veroce->pair, &s->flowlet, run->count);
	path_sent(&tp->config, qp->veroce->pair, run->path, run->bytes * run->count, now_ns);
	near_sent(qp, (uint64_t)run->bytes * run->count);
	pair_left(qp->veroce->pair, tp->tx.turn, run->path);
	rxshare_sent(&qp->veroce->w->pace, (run->bytes + tp->config.cc.wire_overhead_bytes) * run->count,
		     tp->config.cc.pace_slack_ns, now_ns);
}

void recovery_resent(struct transport *tp, struct qp *qp, struct sender *s, uint32_t psn, int path, uint64_t now_ns)
{
	tx_space_resent(&s->tx, psn, (uint8_t)path, now_ns);
	path_sent(&tp->config, qp->veroce->pair, (uint32_t)path, tx_record(&s->tx, psn)->bytes, now_ns);
	near_sent(qp, tx_record(&s->tx, psn)->bytes);
	rxshare_sent(&qp->veroce->w->pace, tx_record(&s->tx, psn)->bytes + tp->config.cc.wire_overhead_bytes,
		     tp->config.cc.pace_slack_ns, now_ns);
	s->active_ns = now_ns;
	tp->counters.retransmits++;
}

bool recovery_doubles(const struct sender *s, uint32_t psn)
{
	const struct tx_record *r = tx_record(&s->tx, psn);
	uint32_t distance = (s->tx.nxt - psn) & PSN_MASK;

	/* The window has moved by distance / copies in each round; the next copy's answer is two rounds away. */
	return r->copies > 1 && !r->probe && distance + 2 * (distance / r->copies) > s->peer_window;
}

void recovery_lose(struct transport *tp, struct qp *qp, struct sender *s, uint32_t psn, uint64_t now_ns)
{
	struct tx_record *r = tx_record(&s->tx, psn);

	if (veroce_is_q(qp, s))
		recovery_idle(tp, qp, false);
	s->calm = 0;
	if (r->state == TX_FLYING) {
		path_lost(qp->veroce->pair, r->path, r->bytes, now_ns);
		recovery_near_left(qp->veroce, r->bytes);
	}
	tx_space_lose(&s->tx, psn);
	/* Packets that may not leave yet would hold it back. */
	if (veroce_is_q(qp, s) && qp->veroce->w->refused && psn_diff(psn, qp->veroce->w->let_psn) <= 0)
		tx_space_hurry(&s->tx, psn);
	qp_activate(tp, qp);
}

/* ---- acknowledgements -------------------------------------------------------------------------- */

void recovery_wake(struct transport *tp, struct pair *pair)
{
	while (!list_empty(&pair->waiting)) {
		struct veroce_work *w = container_of(pair->waiting.next, struct veroce_work, waiting);

		list_remove(&w->waiting);
		w->woken = true;
		w->served = false;
		qp_activate(tp, w->qp);
		if (veroce_stands_in_line(tp))
			break;
	}
}

void recovery_idle(struct transport *tp, struct qp *qp, bool idles)
{
	struct veroce_work *w = qp->veroce->w;
	struct pair *pair = qp->veroce->pair;

	if (w->idles == idles || !pair->own || !w->q.tx.ring || (idles && w->near_bytes))
		return;
	w->idles = idles;
	for (uint32_t i = 0; i < pair->path_count; i++) {
		uint64_t bytes = 0;

		for (uint32_t psn = w->q.tx.ring->paths[i].head; psn != TX_NIL; psn = tx_record(&w->q.tx, psn)->next)
			bytes += tx_record(&w->q.tx, psn)->bytes;
		pair->own[i].idle_bytes = idles ? pair->own[i].idle_bytes + bytes : pair->own[i].idle_bytes - bytes;
		pair->idle_bytes = idles ? pair->idle_bytes + bytes : pair->idle_bytes - bytes;
	}
	if (idles)
		recovery_wake(tp, pair);
}

void recovery_end_turn(struct transport *tp, struct qp *qp, bool more)
{
	struct veroce_work *w = qp->veroce->w;

	if (!w || !w->woken || (more && !w->served))
		return;
	w->woken = false;
	w->served = false;
	if (veroce_stands_in_line(tp))
		recovery_wake(tp, qp->veroce->pair);
}

/* The four stamps of a round trip: TX1 and RX2 are ours, RX1 and TX2 the peer's (13.2). */
static struct path_echo read_echo(struct pair *pair, const struct acknowledgement *a, uint64_t now_ns)
{
	const struct tseeth *stamps = a->stamps;
	struct path_echo echo = {.path = PATHS_MAX, .becn = a->becn};
	uint32_t there_and_back, hosts;
	struct path *path;

	if (!stamps || stamps->path_id >= pair->path_count || !pair->own)
		return echo;
	there_and_back = (uint32_t)now_ns - stamps->tx1;
	hosts = stamps->tx2 - stamps->rx1;
	/* Such stamps are impossible; the peer has made them up. */
	if (hosts > there_and_back || there_and_back > 1u << 31)
		return echo;
	if (a->waited_ns <= there_and_back - hosts)
		hosts += a->waited_ns;
	path = &pair->own[stamps->path_id];
	echo.path = stamps->path_id;
	echo.rtt_ns = there_and_back - hosts;
	echo.there_ns = stamps->rx1 - stamps->tx1;
	echo.hosts_ns = hosts;
	echo.ce_packets = (stamps->path_ce - path->ce_seen) & PSN_MASK;
	if (echo.ce_packets > PSN_MASK / 2)
		echo.ce_packets = 0; /* a newer acknowledgement has overtaken this one */
	else
		path->ce_seen = stamps->path_ce;
	return echo;
}

/* Acknowledged packets make room in the paths' windows for every QP of the pair. */
static void account(struct transport *tp, struct qp *qp, const struct tx_news *news, const struct acknowledgement *a,
		    uint64_t now_ns)
{
	struct pair *pair = qp->veroce->pair;
	uint32_t paths = news->paths;
	struct path_echo echo = read_echo(pair, a, now_ns);

	tp->counters.spurious += news->spurious;
	if (a->stamps && a->stamps->has_share && qp->veroce->caps & CAPS_RXSHARE)
		rxshare_set(&qp->veroce->w->pace, a->stamps->share_kbps, now_ns);
	while (paths) {
		uint32_t i = (uint32_t)__builtin_ctz(paths);

		paths &= paths - 1;
		if (pair->local && news->path[i].newest_tx_ns)
			stall_read(&tp->config, &pair->stall, news->path[i].newest_tx_ns, now_ns);
		path_acked(&tp->pairs, pair, i, &news->path[i], &echo, now_ns);
		recovery_near_left(qp->veroce, news->path[i].bytes);
	}
	for (uint32_t late = news->late_paths; late; late &= late - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(late);

		path_was_late(pair, i, pair->path[i].reo_ns, now_ns);
	}
	recovery_wake(tp, pair);
}

static __attribute__((noinline)) void mark_blocks(struct sender *s, const uint64_t *min_rtt_ns,
						  const struct acknowledgement *a, uint64_t now_ns,
						  struct tx_news *news)
{
	for (uint32_t b = 0; b < a->sack_count; b++) {
		struct sacketh h;

		sacketh_decode(&h, a->sacks + b * SACKETH_LEN);
		for (int word = 0; word < 2; word++) {
			uint64_t bits = h.bits[word];

			while (bits) {
				uint32_t i = (uint32_t)__builtin_ctzll(bits) + 64u * (uint32_t)word;
				uint32_t psn = psn_add(h.start_psn, i);

				bits &= bits - 1;
				/* Forged or stale bits may name PSNs that are not outstanding. */
				if (tx_is_outstanding(&s->tx, psn))
					tx_space_ack_one(&s->tx, psn, min_rtt_ns, now_ns, news);
			}
		}
	}
}

static void moved(struct sender *s, uint64_t now_ns)
{
	s->progress_ns = now_ns;
	s->retries = 0;
	s->graced = false;
	s->grace_ns = 0;
}

/* AETH.MSN: the last message that is complete at the peer. Never beyond the last one sent, never backwards (4.3). */
static void take_msn(struct transport *tp, struct qp *qp, const struct sender *s, uint32_t msn, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (!veroce_is_q(qp, s)) {
		responder_reads_release(qp, msn);
		return;
	}
	if (psn_diff(msn, vr->acked_msn) > 0 && psn_diff(msn, vr->msn) <= 0)
		vr->acked_msn = msn;
	veroce_completer_complete(tp, qp, now_ns);
}

static void take_ack(struct transport *tp, struct qp *qp, struct sender *s, uint32_t psn,
		     const struct acknowledgement *a, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	const uint64_t *min_rtt_ns = vr->pair->min_rtt_ns;
	struct tx_news news;
	int32_t d = psn_diff(psn_add(psn, 1), s->tx.una);

	if (veroce_is_q(qp, s))
		recovery_idle(tp, qp, false);
	news.paths = 0;
	news.packets = 0;
	news.spurious = 0;
	news.late_paths = 0;
	if (d > 0) {
		tx_space_ack_to(&s->tx, &tp->pool, psn, min_rtt_ns, now_ns, &news);
		moved(s, now_ns);
		if (veroce_is_q(qp, s) && vr->w->rnr_again)
			vr->w->rnr_again = 0;
		if (veroce_is_q(qp, s) && vr->w->refused)
			veroce_requester_let_more(tp, qp);
	}
	if (d >= 0 && a->sack_count)
		mark_blocks(s, min_rtt_ns, a, now_ns, &news);
	if (news.packets) {
		s->active_ns = now_ns;
		s->probes = 0;
		s->calm = veroce_calm(s->calm + news.packets);
	}
	account(tp, qp, &news, a, now_ns);
	if (!veroce_is_answered(vr)) {
		caps_end_guess(vr);
		caps_unanswered(tp, qp, now_ns);
	}
	if (d >= 0)
		take_msn(tp, qp, s, a->msn, now_ns);
	if (qp_get_state(qp) == QPS_ERR)
		return;
	if (tx_outstanding(&s->tx) && d >= 0) /* otherwise a newer one has overtaken it */
		tp->loss->acked(tp, qp, s, &news, a, now_ns);
	/* Packets that blocks told of before are no news, but a NAK may have waited for the last of them. */
	if ((news.packets || d > 0) && veroce_has_more(qp))
		qp_activate(tp, qp);
}

void recovery_acked_to(struct transport *tp, struct qp *qp, struct sender *s, uint32_t psn, uint32_t msn,
		       uint64_t now_ns)
{
	const struct acknowledgement bare = {.msn = msn};

	assert(tx_is_outstanding(&s->tx, psn));
	take_ack(tp, qp, s, psn, &bare, now_ns);
}

/*
 * Whether the message number fits the acknowledged PSN: a message is complete once its last packet is. If a wrong one
 * were accepted, a WQE could stay incomplete with nothing outstanding.
 */
static bool msn_fits(const struct qp *qp, const struct sender *s, uint32_t psn, uint32_t msn)
{
	const struct send_wqe *w;

	if (!veroce_is_q(qp, s) || !tx_is_outstanding(&s->tx, psn))
		return true;
	w = sq_at(&qp->sq, tx_record(&s->tx, psn)->item);
	return psn_diff(msn, w->msn) == (psn == w->psn_last ? 0 : -1);
}

void recovery_input(struct transport *tp, struct qp *qp, struct sender *s, const struct pkt *pkt,
		    const struct veroce_packet *p, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint8_t kind = aeth_kind(p->aeth.syndrome), value = aeth_value(p->aeth.syndrome);
	const struct acknowledgement a = {.sacks = p->sacks,
					  .stamps = p->bth.ts ? &p->tse : NULL,
					  .sack_count = p->sack_count,
					  .msn = p->aeth.msn,
					  .waited_ns = pkt->waited_ns,
					  .becn = p->bth.becn};
	bool ack = kind == AETH_ACK || p->sack_count;
	uint32_t psn = ack ? p->bth.psn : (p->bth.psn - 1) & PSN_MASK;
	int32_t ahead = psn_diff(psn_add(psn, 1), s->tx.nxt);

	if (kind == AETH_NAK && value == NAK_PSN_SEQUENCE && !p->sack_count) {
		nak_drop(tp, qp, s, p, now_ns);
		return;
	}
	/* It acknowledges PSNs that were never sent: forged, or from an earlier connection of the QP. */
	if (ahead > 0 || !msn_fits(qp, s, psn, p->aeth.msn) || (!ack && kind != AETH_RNR_NAK && kind != AETH_NAK) ||
	    (!ack && psn_diff(p->bth.psn, s->tx.nxt) >= 0) ||
	    (!ack && kind == AETH_RNR_NAK && !tx_is_outstanding(&s->tx, p->bth.psn))) {
		tp->counters.rx_dropped++;
		return;
	}
	if (ack)
		tp->counters.acks_received++;
	take_ack(tp, qp, s, psn, &a, now_ns);
	if (qp_get_state(qp) == QPS_ERR)
		return;
	if (ack) {
		recovery_idle(tp, qp, vr->w->rnr_until_ns != 0);
		return;
	}
	if (kind == AETH_RNR_NAK && veroce_is_q(qp, s))
		nak_rnr(tp, qp, s, p->bth.psn, value, now_ns);
	else if (kind == AETH_NAK)
		nak_error(tp, qp, s, p->bth.psn, value, now_ns);
	if (qp_get_state(qp) == QPS_ERR || !vr->w->rnr_until_ns)
		return;
	recovery_idle(tp, qp, true);
	veroce_rearm(tp, qp, now_ns);
}
