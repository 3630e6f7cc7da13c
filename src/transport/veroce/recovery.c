/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender's bookkeeping: what acknowledgements confirm, what time brings. What is taken for lost is
 * the loss detection's judgement (struct loss_ops); here are the rules that all of them share.
 */
#include <assert.h>

#include "transport/request.h"
#include "transport/paths/path_rtt.h"
#include "transport/veroce/veroce.h"
#include "wire/aeth.h"

enum {
	RTO_SHIFT_MAX = 6,
	RNR_SHIFT_MAX = 10,
	PROBES_MAX = 3, /* a stall; each may be lost, or its answer */
	DOUBTS = 7,     /* timeouts in a row after which a peer is doubted, where the program never gives up */
	SILENT_A_TIMEOUT = 4 /* packets that a timeout counts for against a path */
};

static const uint64_t asks_ns = 10000000;
static const uint64_t rnr_ns_max = 1000000; /* that a wait grows to by itself */

/* The local ACK timeout that the program asked for (IBTA 9.7.6.1.3); 0: none. */
static uint64_t local_ack_ns(const struct qp *qp)
{
	return qp->timeout ? 4096ull << qp->timeout : 0;
}

static bool is_q(const struct qp *qp, const struct sender *s)
{
	return s == &qp->veroce->w->q;
}

/*
 * Many QPs that share the windows of a pair have few packets under way each, too few for a receiver to
 * acknowledge them without being asked; and one's acknowledgement is what another waits for. Since with that
 * none waits any more, the pair has to be remembered as full for a while (our choice).
 */
static bool shares_a_full_pair(const struct qp *qp, uint64_t now_ns)
{
	const struct pair *pair = qp->veroce->pair;

	return pair->users > 1 && !qp->local && pair->full_ns && now_ns - pair->full_ns <= asks_ns;
}

/* Others came before. Where nothing is in flight, nothing would wake them either. */
static bool is_not_its_turn(const struct pair *pair, const struct veroce_work *w)
{
	return !w->woken && !list_empty(&pair->waiting) && pair->waiting.next != &w->waiting &&
	       pair->sent_bytes != pair->gone_bytes;
}

/* With gaps a QP waits for its own path, and room on others is nothing to it: then nobody stands in line. */
static bool stand_in_line(const struct transport *tp)
{
	return !tp->config.veroce.flowlet_gap_ns;
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

int recovery_pick(struct transport *tp, struct qp *qp, struct sender *s, uint32_t bytes,
		  const struct tx_record *again, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	int path;

	if (rxshare_holds(&vr->w->pace, now_ns) && !(again && again->probe))
		return PAIR_NO_PATH;
	if (!again && is_not_its_turn(vr->pair, vr->w) && stand_in_line(tp)) {
		wait_for_room(vr->pair, vr->w, now_ns);
		return PAIR_NO_PATH;
	}
	path = pair_pick(vr->pair, &tp->config, &s->flowlet, bytes, again,
			 again ? again->path : PATHS_MAX, now_ns);
	if (path == PAIR_NO_PATH && again && again->probe)
		path = pair_pick_any(vr->pair, again->path);
	vr->pair->asks = shares_a_full_pair(qp, now_ns);
	if (path != PAIR_NO_PATH) {
		if (!list_empty(&vr->w->waiting)) {
			list_remove(&vr->w->waiting);
			vr->w->woken = true;
		}
		vr->w->served = true;
		return path;
	}
	wait_for_room(vr->pair, vr->w, now_ns);
	vr->pair->paced_ns = pair_paced_ns(vr->pair, &tp->config, bytes, now_ns);
	return path;
}

uint32_t recovery_run(const struct qp *qp, const struct sender *s, int path, uint32_t bytes, uint32_t max)
{
	uint32_t window = s->peer_window - tx_outstanding(&s->tx), room = tx_space_room(&s->tx);

	/* Of its share of the receiver's port a packet leaves at a time. */
	if (qp->veroce->w->pace.share_kbps)
		return 1;
	if (max > window)
		max = window;
	if (max > room)
		max = room;
	return pair_run(qp->veroce->pair, &s->flowlet, (uint32_t)path, bytes, max);
}

void recovery_sent(struct transport *tp, struct qp *qp, struct sender *s, uint32_t item, uint32_t step,
		   int path, uint32_t bytes, uint32_t count, uint64_t now_ns)
{
	if (!tx_outstanding(&s->tx)) {
		s->progress_ns = now_ns;
		s->retries = 0;
		s->reo_ns = 0;
	}
	s->active_ns = now_ns;
	s->probes = 0;
	tx_space_sent(&s->tx, item, step, (uint8_t)path, (uint16_t)bytes, count, now_ns);
	pair_took(qp->veroce->pair, &s->flowlet, count);
	path_sent(&tp->config, qp->veroce->pair, (uint32_t)path, bytes * count, now_ns);
	rxshare_sent(&qp->veroce->w->pace, (bytes + tp->config.cc.wire_overhead_bytes) * count,
		     tp->config.cc.pace_slack_ns, now_ns);
}

void recovery_resent(struct transport *tp, struct qp *qp, struct sender *s, uint32_t psn, int path,
		     uint64_t now_ns)
{
	tx_space_resent(&s->tx, psn, (uint8_t)path, now_ns);
	path_sent(&tp->config, qp->veroce->pair, (uint32_t)path, tx_record(&s->tx, psn)->bytes, now_ns);
	rxshare_sent(&qp->veroce->w->pace, tx_record(&s->tx, psn)->bytes + tp->config.cc.wire_overhead_bytes,
		     tp->config.cc.pace_slack_ns, now_ns);
	s->active_ns = now_ns;
	tp->counters.retransmits++;
}

bool recovery_doubles(const struct sender *s, uint32_t psn)
{
	const struct tx_record *r = tx_record(&s->tx, psn);
	uint32_t distance = (s->tx.nxt - psn) & PSN_MASK;

	/* The window moved on by distance / copies in each round; the next copy's answer is two rounds away. */
	return r->copies > 1 && !r->probe && distance + 2 * (distance / r->copies) > s->peer_window;
}

void recovery_lose(struct transport *tp, struct qp *qp, struct sender *s, uint32_t psn,
		   uint64_t now_ns)
{
	struct tx_record *r = tx_record(&s->tx, psn);

	if (r->state == TX_FLYING)
		path_lost(qp->veroce->pair, r->path, r->bytes, now_ns);
	tx_space_lose(&s->tx, psn);
	/* What may not go yet would keep it. */
	if (is_q(qp, s) && qp->veroce->w->refused && psn_diff(psn, qp->veroce->w->let_psn) <= 0)
		tx_space_hurry(&s->tx, psn);
	qp_activate(tp, qp);
}

/* ---- acknowledgements -------------------------------------------------------------------------- */

void recovery_wake(struct transport *tp, struct pair *pair)
{
	while (!list_empty(&pair->waiting)) {
		struct veroce_work *w =
			container_of(pair->waiting.next, struct veroce_work, waiting);

		list_remove(&w->waiting);
		w->woken = true;
		w->served = false;
		qp_activate(tp, w->qp);
		if (stand_in_line(tp))
			break;
	}
}

void recovery_end_turn(struct transport *tp, struct qp *qp, bool more)
{
	struct veroce_work *w = qp->veroce->w;

	if (!w || !w->woken || (more && !w->served))
		return;
	w->woken = false;
	w->served = false;
	if (stand_in_line(tp))
		recovery_wake(tp, qp->veroce->pair);
}

/* The four stamps of a round trip: TX1 and RX2 are ours, RX1 and TX2 the peer's (13.2). */
static struct path_echo read_echo(struct pair *pair, const struct tseeth *stamps, uint64_t now_ns)
{
	struct path_echo echo = {.path = PATHS_MAX};
	uint32_t there_and_back, remote;
	struct path *path;

	if (!stamps || stamps->path_id >= pair->path_count || !pair->begun)
		return echo;
	there_and_back = (uint32_t)now_ns - stamps->tx1;
	remote = stamps->tx2 - stamps->rx1;
	/* Stamps that cannot be: of a peer that makes them up. */
	if (remote > there_and_back || there_and_back > 1u << 31)
		return echo;
	path = &pair->path[stamps->path_id];
	echo.path = stamps->path_id;
	echo.rtt_ns = there_and_back - remote;
	echo.remote_ns = remote;
	echo.ce_packets = (stamps->path_ce - path->ce_seen) & PSN_MASK;
	if (echo.ce_packets > PSN_MASK / 2)
		echo.ce_packets = 0; /* an older acknowledgement, overtaken */
	else
		path->ce_seen = stamps->path_ce;
	return echo;
}

/* What was confirmed opens the paths' windows for every QP of the pair. */
static void account(struct transport *tp, struct qp *qp, const struct tx_news *news,
		    const struct acknowledgement *a, uint64_t now_ns)
{
	struct pair *pair = qp->veroce->pair;
	uint32_t paths = news->paths;
	struct path_echo echo = read_echo(pair, a->stamps, now_ns);

	tp->counters.spurious += news->spurious;
	if (a->stamps && a->stamps->has_share && qp->veroce->caps & CAPS_RXSHARE)
		rxshare_told(&qp->veroce->w->pace, a->stamps->share_kbps, now_ns);
	while (paths) {
		uint32_t i = (uint32_t)__builtin_ctz(paths);

		paths &= paths - 1;
		if (pair->local && news->path[i].newest_tx_ns)
			stall_read(tp, pair, news->path[i].newest_tx_ns, now_ns);
		path_acked(&tp->pairs, pair, i, &news->path[i], &echo, a->becn, now_ns);
	}
	for (uint32_t late = news->late_paths; late; late &= late - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(late);

		path_was_late(pair, i, pair->path[i].reo_ns, now_ns);
	}
	recovery_wake(tp, pair);
}

static void mark_blocks(struct sender *s, const uint64_t *min_rtt_ns,
			const struct acknowledgement *a, uint64_t now_ns, struct tx_news *news)
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
				/* Forged or stale bits name what is not outstanding. */
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

/* AETH.MSN: what is complete at the peer. Never beyond what was sent, never backwards (4.3). */
static void take_msn(struct transport *tp, struct qp *qp, const struct sender *s, uint32_t msn,
		     uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	if (!is_q(qp, s)) {
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

	news.paths = 0;
	news.packets = 0;
	news.spurious = 0;
	news.late_paths = 0;
	if (d > 0) {
		tx_space_ack_to(&s->tx, &tp->pool, psn, min_rtt_ns, now_ns, &news);
		moved(s, now_ns);
		if (is_q(qp, s) && vr->w->rnr_again)
			vr->w->rnr_again = 0;
		if (is_q(qp, s) && vr->w->refused)
			veroce_requester_let_more(tp, qp);
	}
	if (d >= 0)
		mark_blocks(s, min_rtt_ns, a, now_ns, &news);
	if (news.packets) {
		s->active_ns = now_ns;
		s->probes = 0;
	}
	account(tp, qp, &news, a, now_ns);
	if (!veroce_is_answered(vr))
		caps_unanswered(tp, qp, now_ns);
	if (d >= 0)
		take_msn(tp, qp, s, a->msn, now_ns);
	if (qp_get_state(qp) == QPS_ERR)
		return;
	if (tx_outstanding(&s->tx) && d >= 0) /* else it was overtaken by a newer one */
		tp->loss->acked(tp, qp, s, &news, a, now_ns);
	if (news.packets && veroce_has_more(qp))
		qp_activate(tp, qp);
}

void recovery_acked_to(struct transport *tp, struct qp *qp, struct sender *s, uint32_t psn, uint32_t msn,
		       uint64_t now_ns)
{
	const struct acknowledgement bare = {.msn = msn};

	assert(tx_is_outstanding(&s->tx, psn));
	take_ack(tp, qp, s, psn, &bare, now_ns);
}

/* ---- NAKs ---------------------------------------------------------------------------------------- */

/* The index of the WQE that PSN belongs to; -1: none that is not complete. */
static int64_t wqe_of(const struct qp *qp, uint32_t psn)
{
	for (uint32_t i = qp->sq.una; i != qp->sq.next; i++) {
		const struct send_wqe *w = sq_at(&qp->sq, i);

		if (((psn - w->psn_first) & PSN_MASK) < w->packets)
			return i;
	}
	return -1;
}

/* The connection is over, and no WQE is to blame. */
static void fail_qp(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	qp_raise(tp, qp, EVENT_QP_FATAL);
	qp_to_error(tp, qp, now_ns);
}

/*
 * The WQE that PSN belongs to fails, once everything before it is done. If it is complete already, the peer
 * has given up the connection for something that does not matter any more.
 */
static void fail_wqe(struct transport *tp, struct qp *qp, uint32_t psn, enum wc_status status,
		     uint64_t now_ns)
{
	int64_t index = wqe_of(qp, psn);

	if (index < 0) {
		fail_qp(tp, qp, now_ns);
		return;
	}
	while (qp->sq.una != (uint32_t)index && qp_get_state(qp) != QPS_ERR) {
		const struct send_wqe *w = sq_at(&qp->sq, qp->sq.una);

		/* Not answered yet, it never will be: then it is the first that failed (IBTA 10.3.1). */
		if (request_wants_response(w) && !w->done) {
			status = WC_RETRY_EXC_ERR;
			break;
		}
		complete_send(tp, qp, WC_SUCCESS, now_ns);
	}
	if (qp_get_state(qp) == QPS_ERR)
		return;
	complete_send(tp, qp, status, now_ns);
	qp_to_error(tp, qp, now_ns);
}

/*
 * At least what the peer asks for (IBTA 9.7.5.2.8). That may be microseconds, and a program that gets no processor
 * posts nothing for milliseconds, nor will it sooner for being asked: so when the same packet is refused again,
 * it waits twice as long, within limits (our choice).
 */
static uint64_t rnr_wait_ns(struct veroce_work *w, uint64_t asked_ns)
{
	uint64_t wait_ns = asked_ns << w->rnr_again;

	if (w->rnr_again < RNR_SHIFT_MAX)
		w->rnr_again++;
	if (wait_ns > rnr_ns_max)
		wait_ns = rnr_ns_max;
	return wait_ns > asked_ns ? wait_ns : asked_ns;
}

static void rnr_nak(struct transport *tp, struct qp *qp, struct sender *s, uint32_t psn,
		    uint8_t code, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	tp->counters.rnrs_received++;
	if (vr->w->rnr_until_ns || !tx_is_outstanding(&s->tx, psn))
		return;
	if (!vr->w->rnr_retries) {
		fail_wqe(tp, qp, psn, WC_RNR_RETRY_EXC_ERR, now_ns);
		return;
	}
	if (qp->rnr_retry != 7)
		vr->w->rnr_retries--;
	/* The receiver has it, but wants to be asked again (7.2). */
	if (tx_record(&s->tx, psn)->state == TX_ACKED)
		recovery_lose(tp, qp, s, psn, now_ns);
	vr->w->rnr_until_ns = now_ns + rnr_wait_ns(vr->w, aeth_rnr_ns(code));
}

static void error_nak(struct transport *tp, struct qp *qp, struct sender *s, uint32_t psn,
		      uint8_t code, uint64_t now_ns)
{
	static const enum wc_status status[] = {
		[NAK_INVALID_REQUEST] = WC_REM_INV_REQ_ERR,
		[NAK_REMOTE_ACCESS] = WC_REM_ACCESS_ERR,
		[NAK_REMOTE_OPERATIONAL] = WC_REM_OP_ERR,
	};

	tp->counters.naks_received++;
	if (!is_q(qp, s)) {
		/* The peer cannot use our responses (veRoCE 11): the connection is over. */
		fail_qp(tp, qp, now_ns);
		return;
	}
	fail_wqe(tp, qp, psn,
		 code < sizeof(status) / sizeof(status[0]) && status[code] ? status[code]
									   : WC_BAD_RESP_ERR,
		 now_ns);
}

/*
 * Whether a Packet Drop NAK is of the last copy of its packet, and not of the one before, of which a SACK told
 * sooner. Its time stamp is the copy's. Without one, of what has not been there and back nothing is told yet;
 * but what was trimmed stood in no queue, so no round trip that was measured is sure to be as short.
 */
static bool is_of_last_copy(const struct pair *pair, const struct veroce_packet *p,
			    const struct tx_record *r, uint64_t now_ns)
{
	uint64_t min_rtt_ns = pair->min_rtt_ns[r->path];

	if (p->bth.ts)
		return p->tse.tx1 == (uint32_t)r->tx_ns;
	return r->copies == 1 || min_rtt_ns == UINT64_MAX || now_ns - r->tx_ns >= min_rtt_ns / 2;
}

/* A switch cut its payload off: nothing else is lost, and nothing is acknowledged by it (5.2, 8). */
static void drop_nak(struct transport *tp, struct qp *qp, struct sender *s,
		     const struct veroce_packet *p, uint64_t now_ns)
{
	struct pair *pair = qp->veroce->pair;
	const struct tx_record *r;

	tp->counters.naks_received++;
	if (!tx_is_outstanding(&s->tx, p->bth.psn))
		return;
	r = tx_record(&s->tx, p->bth.psn);
	if (r->state != TX_FLYING || !is_of_last_copy(pair, p, r, now_ns))
		return;
	path_trimmed(pair, r->path, r->bytes, now_ns);
	recovery_lose(tp, qp, s, p->bth.psn, now_ns);
}

/*
 * Whether the message number can be right where that PSN is acknowledged: all of a message is received
 * with its last packet. Believed, a wrong one would leave nothing outstanding and a WQE that is not done.
 */
static bool msn_fits(const struct qp *qp, const struct sender *s, uint32_t psn, uint32_t msn)
{
	const struct send_wqe *w;

	if (!is_q(qp, s) || !tx_is_outstanding(&s->tx, psn))
		return true;
	w = sq_at(&qp->sq, tx_record(&s->tx, psn)->item);
	return psn_diff(msn, w->msn) == (psn == w->psn_last ? 0 : -1);
}

void recovery_input(struct transport *tp, struct qp *qp, struct sender *s,
		    const struct veroce_packet *p, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint8_t kind = aeth_kind(p->aeth.syndrome), value = aeth_value(p->aeth.syndrome);
	const struct acknowledgement a = {.sacks = p->sacks,
					  .stamps = p->bth.ts ? &p->tse : NULL,
					  .sack_count = p->sack_count,
					  .msn = p->aeth.msn,
					  .becn = p->bth.becn};
	bool ack = kind == AETH_ACK || p->sack_count;
	uint32_t psn = ack ? p->bth.psn : (p->bth.psn - 1) & PSN_MASK;
	int32_t ahead = psn_diff(psn_add(psn, 1), s->tx.nxt);

	if (kind == AETH_NAK && value == NAK_PSN_SEQUENCE && !p->sack_count) {
		drop_nak(tp, qp, s, p, now_ns);
		return;
	}
	/* Acknowledges what was never sent: forged, or of another life of the QP. */
	if (ahead > 0 || !msn_fits(qp, s, psn, p->aeth.msn) ||
	    (!ack && kind != AETH_RNR_NAK && kind != AETH_NAK) ||
	    (!ack && psn_diff(p->bth.psn, s->tx.nxt) >= 0) ||
	    (!ack && kind == AETH_RNR_NAK && !tx_is_outstanding(&s->tx, p->bth.psn))) {
		tp->counters.rx_dropped++;
		return;
	}
	if (ack)
		tp->counters.acks_received++;
	take_ack(tp, qp, s, psn, &a, now_ns);
	if (ack || qp_get_state(qp) == QPS_ERR)
		return;
	if (kind == AETH_RNR_NAK && is_q(qp, s))
		rnr_nak(tp, qp, s, p->bth.psn, value, now_ns);
	else if (kind == AETH_NAK)
		error_nak(tp, qp, s, p->bth.psn, value, now_ns);
	if (vr->w->rnr_until_ns)
		veroce_rearm(tp, qp, now_ns);
}

/* ---- time ------------------------------------------------------------------------------------------ */

static uint64_t rto_ns(const struct transport *tp, const struct qp *qp, const struct sender *s)
{
	uint64_t rto = qp->veroce->pair->rto_ns + tp->lazy_ack_ns;
	uint64_t most = local_ack_ns(qp);

	rto <<= s->retries < RTO_SHIFT_MAX ? s->retries : RTO_SHIFT_MAX;
	if (most && rto > most)
		rto = most;
	return rto > tp->config.veroce.rto_ns_min ? rto : tp->config.veroce.rto_ns_min;
}

/* Of the paths that something flies on; 0: none was measured. */
static uint64_t slowest_srtt_ns(const struct qp *qp, const struct sender *s)
{
	const struct pair *pair = qp->veroce->pair;
	uint64_t srtt = 0;

	for (uint32_t i = 0; s->tx.ring && i < pair->path_count; i++) {
		if (s->tx.ring->paths[i].head != TX_NIL && pair->path[i].srtt_ns > srtt)
			srtt = pair->path[i].srtt_ns;
	}
	return srtt ? srtt : pair->srtt_ns;
}

/* Since when the first packet that is unacknowledged has waited, or has again. */
static uint64_t rto_since(const struct transport *tp, const struct qp *qp, const struct sender *s)
{
	uint64_t since = tp->loss->since ? tp->loss->since(qp, s) : s->progress_ns;

	if (s->retries && s->timeout_ns > since)
		since = s->timeout_ns;
	return s->from_ns > since ? s->from_ns : since;
}

/* When that is too long. */
static uint64_t rto_deadline(const struct transport *tp, const struct qp *qp, const struct sender *s)
{
	uint64_t since = rto_since(tp, qp, s) + rto_ns(tp, qp, s);

	if (s->probes && !s->retries) { /* its answer comes first */
		uint64_t answer = s->active_ns + slowest_srtt_ns(qp, s) * 3 / 2 + tp->lazy_ack_ns;

		since = since > answer ? since : answer;
	}
	return since;
}

static bool may_probe(const struct transport *tp, const struct sender *s)
{
	return tp->loss->probes && s->probes < PROBES_MAX && !s->retries && !s->tx.lost;
}

/*
 * No timeout before the first probe, however old the oldest packet is: the last acknowledgement may be young,
 * and all that is left be on a path that died.
 */
static bool must_probe(const struct transport *tp, const struct sender *s)
{
	return may_probe(tp, s) && !s->probes;
}

/*
 * A probe is answered at once (5.3), so the next one waits for no acknowledgement that is delayed: two round
 * trips, as RFC 8985 7.2, and not the 6.2 of who may be answered late.
 */
static uint64_t pto_deadline(const struct transport *tp, const struct qp *qp, const struct sender *s)
{
	uint64_t srtt = slowest_srtt_ns(qp, s), pto = s->probes ? 2 * srtt : srtt + srtt / 2 + tp->lazy_ack_ns;

	if (!srtt)
		pto = qp->veroce->pair->rto_ns;
	else if (pto < tp->config.veroce.pto_ns_min)
		pto = tp->config.veroce.pto_ns_min;
	return s->active_ns + pto;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t recovery_deadline(const struct transport *tp, const struct qp *qp, const struct sender *s)
{
	uint64_t at = TIMER_NEVER;

	if (!tx_outstanding(&s->tx) || (is_q(qp, s) && qp->veroce->w->rnr_until_ns))
		return TIMER_NEVER;
	if (!must_probe(tp, s))
		at = stall_deadline(tp, qp, rto_since(tp, qp, s), rto_deadline(tp, qp, s));
	if (may_probe(tp, s))
		at = sooner(at, stall_deadline(tp, qp, s->active_ns, pto_deadline(tp, qp, s)));
	if (at < s->grace_ns)
		at = s->grace_ns;
	return s->reo_ns ? sooner(at, s->reo_ns) : at;
}

uint64_t recovery_deadline_of_both(const struct transport *tp, const struct qp *qp)
{
	return sooner(recovery_deadline(tp, qp, &qp->veroce->w->q), recovery_deadline(tp, qp, &qp->veroce->w->r));
}

static void resend_as_probe(struct transport *tp, struct qp *qp, struct sender *s, uint32_t psn,
			    uint64_t now_ns)
{
	recovery_lose(tp, qp, s, psn, now_ns);
	tx_record(&s->tx, psn)->probe = true;
	tx_record(&s->tx, psn)->timed_out = true;
}

/*
 * Resends the highest PSN that is unacknowledged, so that the answer tells what is missing (6.2), and the
 * lowest, which most likely is. If all were acknowledged selectively, the peer's last word was lost: any
 * PSN makes it say that again.
 */
static void probe(struct transport *tp, struct qp *qp, struct sender *s, uint64_t now_ns)
{
	uint32_t psn = s->tx.nxt;

	s->probes++;
	s->active_ns = now_ns;
	do {
		psn = (psn - 1) & PSN_MASK;
	} while (psn != s->tx.una && tx_record(&s->tx, psn)->state != TX_FLYING);
	tp->counters.tail_probes++;
	resend_as_probe(tp, qp, s, psn, now_ns);
	if (psn != s->tx.una && tx_record(&s->tx, s->tx.una)->state == TX_FLYING)
		resend_as_probe(tp, qp, s, s->tx.una, now_ns);
}

bool recovery_is_hopeless(struct transport *tp, const struct qp *qp, uint8_t tries, uint64_t since_ns,
			  uint64_t now_ns)
{
	uint64_t patience = (qp->retry_cnt + 1ull) * local_ack_ns(qp);

	if (tries >= qp->retry_cnt)
		patience_doubt(tp, qp);
	return tries > qp->retry_cnt && patience && now_ns - since_ns >= patience &&
	       !patience_keeps(tp, qp, since_ns, now_ns);
}

/* Paths that said nothing since something was sent on them that is unacknowledged. */
static void blame_paths(struct qp *qp, const struct sender *s, uint64_t now_ns)
{
	struct pair *pair = qp->veroce->pair;

	for (uint32_t i = 0; i < pair->path_count; i++) {
		uint32_t head = s->tx.ring->paths[i].head;

		if (head != TX_NIL && pair->path[i].heard_ns < tx_record(&s->tx, head)->tx_ns)
			path_silent(pair, i, SILENT_A_TIMEOUT, now_ns);
	}
}

/*
 * Whether what was due then waits still, since we come late to it ourselves. That time does not count, for the peer
 * may have had as little of the processor as we; but the next time it does.
 */
static bool grace(const struct transport *tp, const struct qp *qp, struct sender *s, uint64_t due_ns,
		  uint64_t now_ns)
{
	uint64_t late_ns = patience_late_ns(tp, due_ns, now_ns), most_ns = qp->veroce->pair->rto_ns;

	if (stall_matters(tp, qp))
		return false; /* what is known of its turns is more */
	s->graced = late_ns && !s->graced;
	if (s->graced) {
		s->grace_ns = now_ns + (late_ns < most_ns ? late_ns : most_ns);
		s->progress_ns = now_ns - s->progress_ns < late_ns ? now_ns : s->progress_ns + late_ns;
	}
	return s->graced;
}

void recovery_expire(struct transport *tp, struct qp *qp, struct sender *s, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	bool hopeless, proved;

	if (!tx_outstanding(&s->tx) || (is_q(qp, s) && vr->w->rnr_until_ns))
		return;
	if (s->reo_ns && s->reo_ns <= now_ns) {
		s->reo_ns = 0;
		tp->loss->late(tp, qp, s, now_ns);
	}
	if (now_ns < s->grace_ns)
		return;
	if (may_probe(tp, s) && !stall_holds(tp, qp, s->active_ns, pto_deadline(tp, qp, s), now_ns)) {
		if (!grace(tp, qp, s, pto_deadline(tp, qp, s), now_ns))
			probe(tp, qp, s, now_ns);
		return;
	}
	if (must_probe(tp, s))
		return;
	proved = stall_is_over(tp, qp, rto_since(tp, qp, s));
	if (stall_holds(tp, qp, rto_since(tp, qp, s), rto_deadline(tp, qp, s), now_ns) ||
	    grace(tp, qp, s, rto_deadline(tp, qp, s), now_ns))
		return;
	tp->counters.timeouts++;
	s->timeout_ns = now_ns;
	if (s->retries < UINT8_MAX)
		s->retries++;
	hopeless = recovery_is_hopeless(tp, qp, s->retries, s->progress_ns, now_ns);
	if ((hopeless || (!qp->timeout && s->retries > DOUBTS)) && caps_doubts(tp, qp, now_ns))
		return;
	if (hopeless) {
		pair_learn(vr->pair, PAIR_UNKNOWN, now_ns);
		if (is_q(qp, s)) {
			fail_wqe(tp, qp, s->tx.una, WC_RETRY_EXC_ERR, now_ns);
		} else {
			fail_qp(tp, qp, now_ns);
		}
		return;
	}
	blame_paths(qp, s, now_ns);
	/* Perhaps it never hears us because it speaks RoCEv2: its answer may have been lost. */
	if (vr->state == VEROCE_ASSUMED)
		vr->caps_ask = true;
	if (s->retries > 1) /* the first one may be chance */
		cc_on_loss(&vr->pair->path[tx_record(&s->tx, s->tx.una)->path].cc, now_ns,
			   CC_LOSS_RTO);
	if (proved)
		tp->loss->timeout(tp, qp, s, now_ns);
	/*
	 * What is lost may have to wait until the oldest is taken, after an RNR NAK. The peer may have taken it, and
	 * said so but for an acknowledgement that was lost: a copy has it said again.
	 */
	if (!s->tx.lost || (is_q(qp, s) && vr->w->refused &&
			    tx_record(&s->tx, s->tx.una)->state != TX_LOST))
		recovery_lose(tp, qp, s, s->tx.una, now_ns);
	/* One at least goes out, whatever is held to be in flight: else nothing might ever again. */
	if (tx_record(&s->tx, s->tx.una)->state == TX_LOST)
		tx_space_hurry(&s->tx, s->tx.una);
	if (s->tx.lost)
		tx_record(&s->tx, s->tx.again_head)->probe = true;
	qp_activate(tp, qp);
}
