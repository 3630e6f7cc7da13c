/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The effect of time on a sender: tail probes, retransmission timeouts, failure (veRoCE 6.2, 12.3). Where a peer
 * process may only be waiting for a processor, the timers wait for it (stall.h).
 */
#include "transport/veroce/timeouts.h"

#include "transport/paths/path_rtt.h"
#include "transport/veroce/caps.h"
#include "transport/veroce/loss.h"
#include "transport/veroce/nak.h"
#include "transport/veroce/recovery.h"
#include "transport/veroce/responder_reads.h"
#include "transport/veroce/stall.h"
#include "transport/veroce/veroce.h"

enum {
	RTO_SHIFT_MAX = 6,
	PROBES_MAX = 3, /* before a timeout; each may be lost, or its answer */
	DOUBTS = 7,     /* timeouts in a row after which a peer is doubted, if the program's timeout is unlimited */
	SILENT_A_TIMEOUT = 4 /* lost packets that a timeout on a path counts as */
};

uint64_t timeouts_program_ns(const struct qp *qp)
{
	return qp->timeout ? 4096ull << qp->timeout : 0;
}

static uint64_t rto_ns(const struct transport *tp, const struct qp *qp, const struct sender *s)
{
	uint64_t rto = qp->veroce->pair->rto_ns + tp->acks[ACK_LAZY].delay_ns;
	uint64_t most = timeouts_program_ns(qp);

	rto <<= s->retries < RTO_SHIFT_MAX ? s->retries : RTO_SHIFT_MAX;
	if (most && rto > most)
		rto = most;
	return rto > tp->config.veroce.rto_ns_min ? rto : tp->config.veroce.rto_ns_min;
}

/* The longest smoothed round trip of the paths with packets in flight; 0: none was measured. */
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

/* Since when the timeout counts. */
static uint64_t rto_since(const struct transport *tp, const struct qp *qp, const struct sender *s)
{
	uint64_t since = tp->loss->since ? tp->loss->since(qp, s) : s->progress_ns;

	if (s->retries && s->timeout_ns > since)
		since = s->timeout_ns;
	return s->from_ns > since ? s->from_ns : since;
}

/* When the retransmission timeout is due. */
static uint64_t rto_deadline(const struct transport *tp, const struct qp *qp, const struct sender *s)
{
	uint64_t since = rto_since(tp, qp, s) + rto_ns(tp, qp, s);

	if (s->probes && !s->retries) { /* the probe's answer may still arrive */
		uint64_t srtt = slowest_srtt_ns(qp, s);
		uint64_t answer =
			s->active_ns + (srtt ? srtt * 3 / 2 : qp->veroce->pair->rto_ns) + tp->acks[ACK_LAZY].delay_ns;

		since = since > answer ? since : answer;
	}
	return since;
}

static bool may_probe(const struct transport *tp, const struct sender *s)
{
	return tp->loss->probes && s->probes < PROBES_MAX && !s->retries && !s->tx.lost;
}

/*
 * A probe comes before any timeout, however old the oldest packet is: the last acknowledgement may be recent, and
 * all remaining packets on a path that died.
 */
static bool must_probe(const struct transport *tp, const struct sender *s)
{
	return may_probe(tp, s) && !s->probes;
}

/*
 * A probe is answered at once (5.3), so the next probe need not allow for a delayed acknowledgement: it leaves after
 * two round trips (RFC 8985 7.2), and only the first waits as long as 6.2 says.
 */
static uint64_t pto_deadline(const struct transport *tp, const struct qp *qp, const struct sender *s)
{
	uint64_t srtt = slowest_srtt_ns(qp, s),
		 pto = s->probes ? 2 * srtt : srtt + srtt / 2 + tp->acks[ACK_LAZY].delay_ns;

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

/* Whether time has no effect on a sender now. */
static bool is_timeless(const struct qp *qp, const struct sender *s)
{
	const struct veroce_work *w = qp->veroce->w;

	return !tx_outstanding(&s->tx) || qp->veroce->held || (veroce_is_q(qp, s) ? w->rnr_until_ns != 0 : w->unheard);
}

uint64_t timeouts_deadline(const struct transport *tp, const struct qp *qp, const struct sender *s)
{
	uint64_t at = TIMER_NEVER;

	if (is_timeless(qp, s))
		return TIMER_NEVER;
	if (!must_probe(tp, s))
		at = stall_deadline(tp, qp, rto_since(tp, qp, s), rto_deadline(tp, qp, s));
	if (may_probe(tp, s))
		at = sooner(at, stall_deadline(tp, qp, s->active_ns, pto_deadline(tp, qp, s)));
	if (at < s->grace_ns)
		at = s->grace_ns;
	return s->reo_ns ? sooner(at, s->reo_ns) : at;
}

uint64_t timeouts_deadline_of_both(const struct transport *tp, const struct qp *qp)
{
	return sooner(timeouts_deadline(tp, qp, &qp->veroce->w->q), timeouts_deadline(tp, qp, &qp->veroce->w->r));
}

static void resend_as_probe(struct transport *tp, struct qp *qp, struct sender *s, uint32_t psn, uint64_t now_ns)
{
	recovery_lose(tp, qp, s, psn, now_ns);
	tx_record(&s->tx, psn)->probe = true;
	tx_record(&s->tx, psn)->timed_out = true;
}

/*
 * Resends the highest unacknowledged PSN, so that the answer shows which ones are missing (6.2), and the lowest, which
 * most likely is. If all were acknowledged selectively, the last acknowledgement was lost: any PSN makes the peer send
 * it again.
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

static void begin_anew(struct transport *tp, struct qp *qp, struct sender *s, uint64_t now_ns)
{
	s->progress_ns = s->active_ns = s->from_ns = now_ns;
	s->grace_ns = 0;
	s->graced = false;
	s->retries = 0;
	s->probes = 0;
	if (!is_timeless(qp, s) && may_probe(tp, s))
		probe(tp, qp, s, now_ns);
}

/* The peer has had no time yet: everything that time does to a QP begins anew. */
void timeouts_restart(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce_work *w = qp->veroce->w;

	begin_anew(tp, qp, &w->q, now_ns);
	begin_anew(tp, qp, &w->r, now_ns);
	if (!w->watch_ns)
		return;
	w->watch_tries = 0;
	w->watch_since_ns = now_ns;
	w->watch_ns = now_ns + VEROCE_WATCH_RTOS * qp->veroce->pair->rto_ns;
}

bool timeouts_is_hopeless(struct transport *tp, const struct qp *qp, uint8_t tries, uint64_t since_ns, uint64_t now_ns)
{
	if (tries >= qp->retry_cnt)
		patience_doubt(tp, qp);
	return tries > qp->retry_cnt && now_ns - since_ns >= qp_patience_ns(qp) &&
	       !patience_keeps(tp, qp, since_ns, now_ns);
}

/* Counts a timeout against each path with unacknowledged packets and no acknowledgement since they were sent. */
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
 * Whether a timer that was due at due_ns waits longer because this process is late. The delay does not count, since
 * the peer may have had as little of the processor as we had; the next time it does.
 */
static bool grace(const struct transport *tp, const struct qp *qp, struct sender *s, uint64_t due_ns, uint64_t now_ns)
{
	uint64_t late_ns = patience_late_ns(tp, due_ns, now_ns), most_ns = qp->veroce->pair->rto_ns;

	if (stall_matters(tp, qp))
		return false; /* stall.h knows more of the peer */
	s->graced = late_ns && !s->graced;
	if (s->graced) {
		s->grace_ns = now_ns + (late_ns < most_ns ? late_ns : most_ns);
		s->progress_ns = now_ns - s->progress_ns < late_ns ? now_ns : s->progress_ns + late_ns;
	}
	return s->graced;
}

/* Whether that was the last timeout: the QP speaks RoCEv2 now, or the connection has ended, or its responses wait. */
static bool gives_up(struct transport *tp, struct qp *qp, struct sender *s, uint64_t now_ns)
{
	bool hopeless = timeouts_is_hopeless(tp, qp, s->retries, s->progress_ns, now_ns);
	bool doubtful = hopeless || (!qp->timeout && s->retries > DOUBTS);

	if (doubtful && caps_doubts(tp, qp, now_ns))
		return true;
	if (doubtful && !veroce_is_q(qp, s)) {
		responder_reads_hush(tp, qp, now_ns);
		return true;
	}
	if (!hopeless)
		return false;
	pair_learn(qp->veroce->pair, PAIR_UNKNOWN, now_ns);
	tp->counters.veroce_unanswered += tp->config.protocol == PROTOCOL_VEROCE && !veroce_is_confirmed(qp->veroce);
	veroce_fail_wqe(tp, qp, s->tx.una, WC_RETRY_EXC_ERR, now_ns);
	return true;
}

/*
 * Whether the oldest packet is sent again although others are lost. After an RNR NAK those wait until it is accepted.
 * The peer may have accepted it, and only the acknowledgement was lost: a copy is acknowledged again.
 *
 * The same goes for one that has flown all the time that this timeout waited, which the program may have made shorter
 * than the loss detection waits: nothing else ends the stall, and others that are sent instead may have no place at the
 * peer before it.
 */
static bool goes_before_others(const struct qp *qp, const struct sender *s, uint64_t since_ns)
{
	const struct tx_record *oldest = tx_record(&s->tx, s->tx.una);

	return oldest->state != TX_LOST &&
	       ((veroce_is_q(qp, s) && qp->veroce->w->refused) || oldest->tx_ns <= since_ns);
}

/* `proved`: the peer had its turn at a processor, so that the loss detection may judge. It waited since since_ns. */
static void time_out(struct transport *tp, struct qp *qp, struct sender *s, bool proved, uint64_t since_ns,
		     uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint32_t una = s->tx.una;

	blame_paths(qp, s, now_ns);
	/* The peer may speak RoCEv2, and drop our packets: its answer to CAPS may have been lost. */
	if (vr->state == VEROCE_ASSUMED)
		vr->caps_ask = true;
	/* The first timeout may be accidental. A host that waits for a processor has several in a row, and nothing was
	 * lost. */
	if (s->retries > 1 && !pair_is_starved(vr->pair, now_ns))
		cc_on_loss(&vr->pair->own[tx_record(&s->tx, una)->path].cc, now_ns, CC_LOSS_RTO);
	if (proved)
		tp->loss->timeout(tp, qp, s, now_ns);
	if (!s->tx.lost || goes_before_others(qp, s, since_ns))
		recovery_lose(tp, qp, s, una, now_ns);
	/* At least one packet leaves, however many count as in flight: otherwise none might ever leave again. */
	if (tx_record(&s->tx, una)->state == TX_LOST)
		tx_space_hurry(&s->tx, una);
	if (s->tx.lost)
		tx_record(&s->tx, s->tx.again_head)->probe = true;
	qp_activate(tp, qp);
}

void timeouts_expire(struct transport *tp, struct qp *qp, struct sender *s, uint64_t now_ns)
{
	uint64_t since_ns;
	bool proved;

	if (is_timeless(qp, s))
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
	since_ns = rto_since(tp, qp, s);
	proved = stall_is_over(tp, qp, since_ns);
	if (stall_holds(tp, qp, since_ns, rto_deadline(tp, qp, s), now_ns) ||
	    grace(tp, qp, s, rto_deadline(tp, qp, s), now_ns))
		return;
	tp->counters.timeouts++;
	s->timeout_ns = now_ns;
	if (s->retries < UINT8_MAX)
		s->retries++;
	if (!gives_up(tp, qp, s, now_ns))
		time_out(tp, qp, s, proved, since_ns, now_ns);
}
