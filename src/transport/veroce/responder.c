/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder: packets of space Q in any order (veRoCE 7, out-of-order R1 to R12). A packet is judged
 * and placed by itself, when it arrives or, where memory is written in some order, when its turn
 * comes (early_lands()). Effects that depend on order wait until all packets before have arrived: receive
 * completions, immediate data, invalidation, READs, atomics, FLUSHes, ATOMIC WRITEs and every error.
 *
 * Invariants: a PSN is placed once, as it is checked before memory is written; the receive WQE of RQMSN n is
 * the n-th that was taken; `bound` holds those of messages that are not complete.
 */
#include <assert.h>

#include "transport/veroce/responder.h"

#include "mem/mw.h"
#include "transport/message.h"
#include "transport/mpe.h"
#include "transport/veroce/acks.h"
#include "transport/veroce/caps.h"
#include "transport/veroce/early.h"
#include "transport/veroce/responder_reads.h"
#include "transport/veroce/veroce.h"
#include "wire/aeth.h"

enum { BOUND_MIN = 16, BOUND_MAX = RX_WINDOW_MAX };

/* ---- receive WQEs ------------------------------------------------------------------------------ */

static size_t bound_bytes(uint32_t size)
{
	return size * sizeof(struct recv_wqe *);
}

static struct recv_wqe **bound_slot(const struct veroce *vr, uint32_t rqmsn)
{
	return &vr->w->bound[rqmsn & (vr->w->bound_size - 1)];
}

static bool grow_bound(struct transport *tp, struct veroce *vr, uint32_t count)
{
	uint32_t size = vr->w->bound_size ? vr->w->bound_size : BOUND_MIN;
	struct recv_wqe **ring;

	while (size < count)
		size *= 2;
	if (size == vr->w->bound_size)
		return true;
	ring = size <= BOUND_MAX ? pool_get(&tp->pool, bound_bytes(size)) : NULL;
	if (!ring)
		return false;
	for (uint32_t n = vr->rq_done; n != vr->w->rq_bound; n = psn_add(n, 1))
		ring[n & (size - 1)] = *bound_slot(vr, n);
	pool_put(&tp->pool, vr->w->bound, bound_bytes(vr->w->bound_size));
	vr->w->bound = ring;
	vr->w->bound_size = size;
	return true;
}

/*
 * The receive WQE of that RQMSN. Takes those before it first, in order (4.4, out-of-order R7). NULL: too few are
 * posted.
 */
static struct recv_wqe *bind(struct transport *tp, struct qp *qp, uint32_t rqmsn)
{
	struct veroce *vr = qp->veroce;
	int32_t more = psn_diff(rqmsn, vr->w->rq_bound) + 1;

	if (more > 0) {
		if ((uint32_t)more > rq_posted(qp->rq) || !grow_bound(tp, vr, ((rqmsn - vr->rq_done) & PSN_MASK) + 1))
			return NULL;
		for (; more; more--) {
			*bound_slot(vr, vr->w->rq_bound) = qp_take_recv(tp, qp);
			vr->w->rq_bound = psn_add(vr->w->rq_bound, 1);
		}
	}
	return *bound_slot(vr, rqmsn);
}

void veroce_responder_rest(struct transport *tp, struct veroce_work *w)
{
	pool_put(&tp->pool, w->bound, bound_bytes(w->bound_size));
	w->bound = NULL;
	w->bound_size = 0;
}

static struct recv_wqe *unbind(struct transport *tp, struct veroce *vr)
{
	struct recv_wqe *w = *bound_slot(vr, vr->rq_done);

	vr->rq_done = psn_add(vr->rq_done, 1);
	/* A ring of the smallest size stays for the messages to come, until the QP rests. */
	if (vr->rq_done == vr->w->rq_bound && vr->w->bound_size > BOUND_MIN)
		veroce_responder_rest(tp, vr->w);
	return w;
}

void veroce_responder_flush(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	while (vr->rq_done != vr->w->rq_bound) {
		struct cqe cqe = {.status = WC_WR_FLUSH_ERR, .opcode = WC_RECV};

		complete_recv(tp, qp, unbind(tp, vr), &cqe, now_ns);
	}
}

void veroce_responder_drop(struct transport *tp, struct qp *qp)
{
	while (qp->veroce->rq_done != qp->veroce->w->rq_bound)
		rq_release(qp->rq, unbind(tp, qp->veroce));
}

/* ---- verdicts on one packet ---------------------------------------------------------------------- */

static bool fits_mtu(const struct qp *qp, const struct veroce_packet *p)
{
	if (p->info->flags & F_FULL)
		return p->payload_len == qp->veroce->mtu;
	if (p->info->flags & F_LAST && !p->payload_len)
		return false;
	return p->payload_len <= qp->veroce->mtu;
}

/* Judges a SEND's place in its message; *w gets the receive WQE. */
static enum rx_verdict judge_send(struct transport *tp, struct qp *qp, const struct veroce_packet *p,
				  struct recv_wqe **w)
{
	struct veroce *vr = qp->veroce;

	if (psn_diff(p->rqmsn, vr->rq_done) < 0)
		return RX_INVALID; /* that message is complete */
	*w = bind(tp, qp, p->rqmsn);
	if (!*w)
		return RX_NOT_READY;
	if ((uint64_t)p->po * qp->veroce->mtu + p->payload_len > (*w)->length)
		return RX_TOO_LONG;
	return RX_EXECUTE;
}

static inline __attribute__((always_inline)) enum rx_verdict
judge_write(const struct transport *tp, const struct qp *qp, const struct veroce_packet *p, uint8_t **to)
{
	*to = NULL;
	if (!(qp->access & MR_REMOTE_WRITE))
		return RX_INVALID;
	/* IBTA C9-88: the R_Key of a zero-length WRITE is not checked. */
	if (!p->payload_len)
		return RX_EXECUTE;
	/* The payload's length at the packet's address counts, never DMALen (veRoCE 3). */
	*to = mr_check_remote(&tp->mrs, p->reth.rkey, &qp->user, p->reth.va, p->payload_len, MR_REMOTE_WRITE);
	return *to ? RX_EXECUTE : RX_ACCESS;
}

/* Only judges a SEND or WRITE packet, and places it, or keeps it until its turn if it could be placed. */
static enum rx_verdict place(struct transport *tp, struct qp *qp, const struct veroce_packet *p, bool waits)
{
	struct recv_wqe *w = NULL;
	enum rx_verdict v;
	uint8_t *to = NULL;

	if (!fits_mtu(qp, p))
		return RX_INVALID;
	v = p->info->flags & F_WRITE ? judge_write(tp, qp, p, &to) : judge_send(tp, qp, p, &w);
	if (v != RX_EXECUTE)
		return v;
	if (waits)
		return early_keep(tp, &qp->veroce->w->q_in, p) ? RX_EXECUTE : RX_NOT_READY;
	if (to)
		return mr_write(&tp->mrs, to, p->payload, p->payload_len) ? RX_EXECUTE : RX_ACCESS;
	if (w && p->payload_len &&
	    !sge_scatter(&tp->mrs, qp_source_pd(qp), recv_wqe_sges(w), (uint64_t)p->po * qp->veroce->mtu, p->payload,
			 p->payload_len))
		return RX_LOCAL_FAULT;
	return RX_EXECUTE;
}

/* Whether the packet at epsn continues the message of the packet before it (veRoCE 11). */
static bool follows(const struct veroce *vr, const struct veroce_packet *p)
{
	const struct receiver *in = &vr->w->q_in;
	uint32_t flags = p->info->flags;

	if (p->msn != psn_add(in->amsn, 1) || p->po != in->po)
		return false;
	if (flags & F_SEND && p->rqmsn != vr->rq_done)
		return false;
	if (veroce_starts_message(p))
		return !in->message;
	return in->message & flags & (F_SEND | F_WRITE);
}

/* ---- in order -------------------------------------------------------------------------------------- */

/*
 * The QP sends one last answer, to a packet with those flags, and goes to ERR (IBTA 9.9.3). The program hears of it
 * then: it may destroy the QP at once, and the answer is still owed.
 */
static void fatal(struct transport *tp, struct qp *qp, uint32_t flags, enum rx_verdict v, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct receiver *in = &vr->w->q_in;
	const struct rx_consequence *c = &rx_consequences[v];

	/* The WQE of its message. Later ones may be bound too: they are flushed. */
	if (c->recv_status != WC_WR_FLUSH_ERR && flags & (F_SEND | F_IMM) && bind(tp, qp, vr->rq_done)) {
		struct cqe cqe = {.status = c->recv_status, .opcode = WC_RECV};

		complete_recv(tp, qp, unbind(tp, vr), &cqe, now_ns);
	}
	tp->counters.rx_access_refused += v == RX_ACCESS;
	if (qp_get_state(qp) == QPS_ERR)
		return;
	vr->w->fatal = (uint8_t)v;
	acks_nak(tp, qp, in, in->rx.epsn, c->syndrome);
	if (aeth_kind(c->syndrome) == AETH_ACK) {
		in->amsn = psn_add(in->amsn, 1);
		rx_step(&in->rx, &tp->pool);
	}
}

static void not_ready(struct transport *tp, struct qp *qp)
{
	struct receiver *in = &qp->veroce->w->q_in;

	acks_nak(tp, qp, in, in->rx.epsn, AETH_RNR_NAK | qp->min_rnr_timer);
}

/* The end of a message that takes a receive WQE, from its last packet. */
struct message_end {
	uint32_t flags; /* the opcode's */
	uint32_t byte_len;
	uint32_t imm_or_key;
	bool solicited;
};

static inline void complete_message(struct transport *tp, struct qp *qp, const struct message_end *m, uint64_t now_ns)
{
	uint32_t flags = m->flags;
	struct cqe cqe = {
		.status = WC_SUCCESS,
		.opcode = flags & F_WRITE ? WC_RECV_RDMA_WITH_IMM : WC_RECV,
		.byte_len = m->byte_len,
		.src_qp = qp->dest_qpn,
		.sl = qp->flow.sl,
		.solicited = m->solicited,
		.imm_or_key = m->imm_or_key,
		.flags = flags & F_IMM   ? WC_WITH_IMM
			 : flags & F_INV ? WC_WITH_INV
					 : 0,
	};

	if (flags & F_INV)
		mw_invalidate(&tp->mrs, m->imm_or_key, &qp->user);
	complete_recv(tp, qp, unbind(tp, qp->veroce), &cqe, now_ns);
}

/* The end of a SEND that does nothing but complete a receive WQE. */
static bool ends_plainly(uint32_t flags)
{
	return flags & F_SEND && !(flags & F_INV);
}

/* The responder's program gets no completion for such a message. */
static bool ends_silently(uint32_t flags)
{
	return flags & F_WRITE && !(flags & F_IMM);
}

/* Finishes a message that has arrived completely. RX_NOT_READY: only a receive WQE is missing. */
static enum rx_verdict finish(struct transport *tp, struct qp *qp, const struct rx_meta *m, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	const struct opcode_info *info = &veroce_opcode_table[m->opcode];

	if (info->flags & F_ANSWERED)
		return responder_reads_execute(tp, qp, m, now_ns);
	if (ends_silently(info->flags)) {
		tp->counters.rx_write_requests++;
		return RX_EXECUTE;
	}
	/* Receive WQEs are used in the order of their messages. */
	if (m->rqmsn != vr->rq_done)
		return RX_INVALID;
	if (!bind(tp, qp, m->rqmsn))
		return RX_NOT_READY;
	if (info->flags & F_INV && !mw_may_invalidate(&tp->mrs, m->imm_or_key, &qp->user))
		return RX_KEY_STAYS;
	complete_message(tp, qp,
			 &(struct message_end){.flags = info->flags,
					       .byte_len = m->po * qp->veroce->mtu + m->payload_len,
					       .imm_or_key = m->imm_or_key,
					       .solicited = m->se},
			 now_ns);
	tp->counters.rx_write_requests += (info->flags & F_WRITE) != 0;
	return RX_EXECUTE;
}

/* The packet that an RNR NAK named has arrived. */
static void forget_rnr(struct receiver *in)
{
	in->stalled = false;
	if (aeth_kind(in->nak_syndrome) == AETH_RNR_NAK)
		in->nak_due = false;
}

/* Steps over the packet at epsn, which ends no message. */
static void step_inside(struct transport *tp, struct receiver *in, uint32_t flags)
{
	if (!in->po)
		in->message = flags & (F_SEND | F_WRITE);
	in->po = psn_add(in->po, 1);
	forget_rnr(in);
	rx_step(&in->rx, &tp->pool);
}

static void step_over_end(struct transport *tp, struct receiver *in)
{
	in->message = 0;
	in->po = 0;
	in->amsn = psn_add(in->amsn, 1);
	forget_rnr(in);
	rx_step(&in->rx, &tp->pool);
}

/*
 * The packet recorded at epsn cannot be the one that the peer sent. If only its PSN had proved its origin, a stranger
 * may have sent it: its record is dropped, and the peer's own packet arrives again, to be judged in its turn.
 */
static void disbelieve(struct transport *tp, struct qp *qp, uint32_t flags, enum rx_verdict v, uint64_t now_ns)
{
	struct receiver *in = &qp->veroce->w->q_in;

	if (qp->veroce->state == VEROCE_SEALED) {
		fatal(tp, qp, flags, v, now_ns);
		return;
	}
	tp->counters.rx_dropped++;
	rx_forget(&in->rx, &tp->pool);
	acks_note(tp, qp, in, true, now_ns);
}

/* The packet at epsn, just arrived or `kept`, ends a message. False: it cannot be finished, now or ever. */
static bool pass_end(struct transport *tp, struct qp *qp, const struct rx_meta *m, bool kept, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct receiver *in = &vr->w->q_in;
	enum rx_verdict v = finish(tp, qp, m, now_ns);

	if (qp_get_state(qp) == QPS_ERR)
		return false; /* a CQ overran */
	if (v == RX_EXECUTE) {
		step_over_end(tp, in);
		return true;
	}
	if (v != RX_NOT_READY) {
		(kept ? disbelieve : fatal)(tp, qp, veroce_opcode_table[m->opcode].flags, v, now_ns);
		return false;
	}
	if (!in->stalled) {
		in->stalled = true;
		not_ready(tp, qp);
	}
	return false;
}

static struct rx_meta meta_of(const struct transport *tp, const struct veroce_packet *p)
{
	struct rx_meta m = {
		.opcode = p->bth.opcode,
		.se = p->bth.se,
		.payload_len = (uint16_t)p->payload_len,
		.msn = p->msn,
		.po = p->po,
	};

	if (p->info->flags & F_ATOMIC) {
		m.va = p->atomic.va;
		m.rkey = p->atomic.rkey;
		m.swap_add = p->atomic.swap_add;
		m.compare = p->atomic.compare;
	} else if (p->info->flags & F_ANSWERED) {
		m.va = p->reth.va;
		m.rkey = p->reth.rkey;
		m.len = p->reth.len;
		if (p->info->headers & H_FETH)
			m.feth = p->feth;
		else if (p->info->flags & F_MPE)
			m.swap_add = mpe_value(tp, p->payload, p->payload_len);
	} else {
		m.rqmsn = p->rqmsn;
		m.imm_or_key = p->imm_or_key;
	}
	return m;
}

/* Handles the packet that was due, just arrived or `kept`, completely. False: it is not finished. */
static bool take(struct transport *tp, struct qp *qp, const struct veroce_packet *p, bool kept, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct receiver *in = &vr->w->q_in;
	uint32_t flags = p->info->flags;
	enum rx_verdict v = RX_EXECUTE;
	struct rx_meta m;

	if (!follows(vr, p))
		v = RX_INVALID;
	else if (flags & (F_SEND | F_WRITE))
		v = place(tp, qp, p, false);
	if (v == RX_NOT_READY) {
		not_ready(tp, qp);
		return false;
	}
	if (v != RX_EXECUTE) {
		(kept ? disbelieve : fatal)(tp, qp, flags, v, now_ns);
		return false;
	}
	if (!(flags & F_END)) {
		step_inside(tp, in, flags);
		return true;
	}
	if (ends_silently(flags)) {
		tp->counters.rx_write_requests++;
		step_over_end(tp, in);
		return true;
	}
	if (ends_plainly(flags)) {
		/* place() has judged its place and its receive WQE. */
		complete_message(tp, qp,
				 &(struct message_end){.flags = flags,
						       .byte_len = p->po * qp->veroce->mtu + p->payload_len,
						       .imm_or_key = p->imm_or_key,
						       .solicited = p->bth.se},
				 now_ns);
		if (qp_get_state(qp) == QPS_ERR)
			return false; /* a CQ overran */
		step_over_end(tp, in);
		return true;
	}
	m = meta_of(tp, p);
	if (pass_end(tp, qp, &m, kept, now_ns))
		return true;
	/* It is placed, but not finished: the record prevents that it is placed again (7.2). */
	if (in->stalled && !rx_record(&in->rx, &tp->pool, p->bth.psn, &m))
		in->stalled = false;
	return false;
}

/* Handles the packet at epsn, which was kept whole. False: it cannot be finished. */
static bool take_kept(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct receiver *in = &qp->veroce->w->q_in;
	struct early_packet *k = early_take(tp, in, rx_meta_at(&in->rx, in->rx.epsn));
	bool taken = take(tp, qp, &k->p, true, now_ns);

	/* A SEND got its receive WQE when it arrived: one that stalls is placed, and recorded anew as an end. */
	early_free(tp, k);
	return taken;
}

/* Handles the packets that have arrived, up to the next hole. */
static void advance(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct receiver *in = &qp->veroce->w->q_in;
	const struct rx_meta *kept;

	while (!qp->veroce->w->fatal && rx_epsn_arrived(&in->rx, &kept)) {
		struct rx_meta m;
		uint32_t flags;

		if (!kept) {
			/* It was placed before its turn and ends no message: only its arrival is recorded. */
			step_inside(tp, in, F_SEND | F_WRITE);
			continue;
		}
		if (kept->early) {
			if (!take_kept(tp, qp, now_ns))
				return;
			continue;
		}
		m = *kept; /* finishing may move the window */
		flags = veroce_opcode_table[m.opcode].flags;
		if (m.msn != psn_add(in->amsn, 1) || m.po != in->po || !(flags & F_START) != (m.po > 0)) {
			disbelieve(tp, qp, flags, RX_INVALID, now_ns);
			return;
		}
		if (!pass_end(tp, qp, &m, true, now_ns))
			return;
	}
}

/* Its message is one packet, and so is the answer, whatever messages are cut into. */
static bool is_whole(const struct qp *qp, const struct veroce_packet *p)
{
	if (!(p->info->flags & (F_SEND | F_WRITE)))
		return !(p->info->flags & F_READ) || p->reth.len <= qp->mtu;
	return p->info->flags & F_END && !p->po && p->payload_len <= qp->mtu;
}

/* Whether it is known into what the message of this packet was cut, and so where it belongs. */
static bool has_known_place(const struct transport *tp, struct qp *qp, const struct veroce_packet *p)
{
	return !qp->veroce->cut_open || is_whole(qp, p) || caps_cut_settled(tp, qp);
}

/* A packet before its turn: places or keeps it, and records it; no error yet (out-of-order R11). False: dropped. */
static bool early(struct transport *tp, struct qp *qp, const struct veroce_packet *p)
{
	struct receiver *in = &qp->veroce->w->q_in;
	uint32_t flags = p->info->flags;
	struct rx_meta m;

	if (flags & (F_SEND | F_WRITE)) {
		bool waits = !early_lands(tp, in, p);

		if (place(tp, qp, p, waits) != RX_EXECUTE)
			return false;
		if (waits)
			return true;
	}
	if (!(flags & F_END))
		return rx_record(&in->rx, &tp->pool, p->bth.psn, NULL);
	m = meta_of(tp, p);
	if (flags & F_ANSWERED && responder_reads_judge(tp, qp, &m) != RX_EXECUTE)
		return false;
	return rx_record(&in->rx, &tp->pool, p->bth.psn, &m);
}

bool veroce_responder_middle(struct transport *tp, struct qp *qp, const struct pkt *pkt, const struct veroce_packet *p,
			     uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct receiver *in = &vr->w->q_in;
	const struct receiver before = *in; /* for the debug build */

	if (!acks_counts_only(tp, qp, in, pkt, p) || vr->w->fatal || !follows(vr, p))
		return false;
	if (tp->caps_flags & CAPS_LARGE && !has_known_place(tp, qp, p))
		return false;
	if (place(tp, qp, p, false) != RX_EXECUTE)
		return false;
	veroce_arrival(qp, in, pkt, p, now_ns);
	step_inside(tp, in, p->info->flags);
	in->unacked++;
	acks_counted(tp, qp, &before, in, p);
	return true;
}

/* The receive WQE of a SEND whose turn it is, or its first packet's, when it is taken; NULL: there is none. */
static const struct recv_wqe *recv_wqe_due(const struct qp *qp, const struct veroce_packet *p)
{
	const struct veroce *vr = qp->veroce;

	if (p->rqmsn != vr->rq_done)
		return NULL;
	return vr->rq_done == vr->w->rq_bound ? rq_peek(qp->rq) : *bound_slot(vr, p->rqmsn);
}

uint8_t *veroce_responder_place(const struct transport *tp, const struct qp *qp, const struct veroce_packet *p,
				bool is_next)
{
	uint64_t off = (uint64_t)p->po * qp->veroce->mtu;
	const struct recv_wqe *w;
	uint8_t *to;

	if ((is_next && !follows(qp->veroce, p)) || !fits_mtu(qp, p) || !p->payload_len)
		return NULL;
	if (p->info->flags & F_WRITE)
		return judge_write(tp, qp, p, &to) == RX_EXECUTE ? to : NULL;
	w = recv_wqe_due(qp, p);
	if (!w || off + p->payload_len > w->length)
		return NULL;
	return sge_place(&tp->mrs, qp_source_pd(qp), recv_wqe_sges(w), off, p->payload_len, MR_LOCAL_WRITE);
}

void veroce_responder_input(struct transport *tp, struct qp *qp, const struct pkt *pkt, const struct veroce_packet *p,
			    uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct receiver *in = &vr->w->q_in;
	struct acks_before before = acks_before(in);

	veroce_arrival(qp, in, pkt, p, now_ns);
	if (vr->w->fatal) {
		tp->counters.rx_dropped++;
		return;
	}
	switch (rx_judge(&in->rx, p->bth.psn, caps_rx_window(tp, vr))) {
	case RX_BEYOND: tp->counters.rx_beyond_window++; return;
	case RX_OLD:
		/* A duplicate is neither placed nor executed again, and acknowledged at once (7.7). */
		tp->counters.rx_duplicates++;
		in->dups++;
		if (in->stalled && p->bth.psn == in->rx.epsn) {
			in->stalled = false;
			advance(tp, qp, now_ns);
			if (in->stalled)
				return;
		}
		acks_note(tp, qp, in, true, now_ns);
		return;
	case RX_NEW: break;
	}
	if (veroce_is_trimmed(qp, pkt)) {
		acks_trimmed(tp, qp, in, p->bth.psn);
		return;
	}
	if (tp->caps_flags & CAPS_LARGE && !has_known_place(tp, qp, p)) {
		/* Dropped as if it were lost: it is sent again. */
		tp->counters.rx_dropped++;
		caps_unanswered(tp, qp, now_ns);
		return;
	}
	if (p->bth.psn == in->rx.epsn) {
		if (take(tp, qp, p, false, now_ns) && rx_has_holes(&in->rx))
			advance(tp, qp, now_ns);
	} else {
		tp->counters.rx_out_of_sequence++;
		/* A packet before it was not taken. It cannot be kept: its payload lies at its place, and not in the
		 * packet. */
		if (pkt->far_bytes || !early(tp, qp, p)) {
			tp->counters.rx_dropped++;
			return;
		}
	}
	if (qp_get_state(qp) == QPS_ERR || vr->w->fatal)
		return;
	acks_arrived(tp, qp, in, p, before, now_ns);
}

void veroce_responder_retry_stalled(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct receiver *in = &qp->veroce->w->q_in;
	uint32_t epsn = in->rx.epsn;

	/* Only with a receive WQE, and memory to list it: otherwise the message would be refused again at once. */
	if (!bind(tp, qp, qp->veroce->rq_done))
		return;
	in->stalled = false;
	advance(tp, qp, now_ns);
	if (in->rx.epsn != epsn)
		acks_note(tp, qp, in, true, now_ns);
}
