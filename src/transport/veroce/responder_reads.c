/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READs, atomics, FLUSHes and ATOMIC WRITEs at the responder (veRoCE 7.4, 7.5, 7.8): executed when their turn comes,
 * answered in
 * space R, which has acknowledgements and a retransmission of its own.
 *
 * Response MSN r answers the r-th READ or atomic; its slot is r modulo the ring. A slot is live from the
 * execution to the release, by ACK_Rsp or, when those are lost, by a request that the peer could not have
 * sent while the slot was live. An atomic's result stays in the slot, so a response that is sent again is
 * the same.
 *
 *     released <= emit - 1 <= executed
 */
#include <assert.h>
#include <string.h>

#include "transport/veroce/responder_reads.h"

#include "transport/mpe.h"
#include "transport/request.h"
#include "transport/veroce/ackreq.h"
#include "transport/veroce/acks.h"
#include "transport/veroce/recovery.h"
#include "transport/veroce/veroce.h"
#include "wire/aeth.h"

static struct rd_resource *slot(const struct qp *qp, uint32_t r)
{
	const struct veroce_work *w = qp->veroce->w;

	return &w->slots[r & (w->slots_size - 1)];
}

static uint32_t slot_packets(const struct qp *qp, const struct rd_resource *res)
{
	return res->kind == F_ATOMIC ? 1 : request_packets(res->len, qp->veroce->mtu);
}

void responder_reads_release(struct qp *qp, uint32_t r)
{
	struct veroce_work *w = qp->veroce->w;

	/* A slot stays live until its response was sent completely: a forged MSN does not free it. */
	while (psn_diff(r, w->released) > 0 && psn_diff(psn_add(w->released, 1), w->emit) < 0) {
		const struct rd_resource *res = slot(qp, psn_add(w->released, 1));

		if (psn_diff(res->psn_last, w->r.tx.una) >= 0)
			return;
		w->released = psn_add(w->released, 1);
	}
}

/*
 * Request k has arrived, so the peer has the response to request k - max_dest_rd_atomic: it would not have sent this
 * one before (implicit release, 7.4). The packets of that response count as acknowledged.
 */
static bool make_room(struct transport *tp, struct qp *qp, uint32_t k, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	while (((k - vr->w->released) & PSN_MASK) > qp->max_dest_rd_atomic) {
		uint32_t r = psn_add(vr->w->released, 1);
		const struct rd_resource *res = slot(qp, r);

		if (psn_diff(r, vr->w->emit) >= 0)
			return false; /* its response was not sent yet: more are outstanding than max_dest_rd_atomic */
		if (psn_diff(res->psn_last, vr->w->r.tx.una) >= 0)
			recovery_acked_to(tp, qp, &vr->w->r, res->psn_last, r, now_ns);
		vr->w->released = r;
	}
	return true;
}

/* *word gets the address of the operand. */
static enum rx_verdict judge_atomic(const struct transport *tp, const struct qp *qp, const struct rx_meta *m,
				    uint64_t **word)
{
	if (!(qp->access & MR_REMOTE_ATOMIC) || m->va & 7)
		return RX_INVALID; /* IBTA 9.4.5 */
	*word = (uint64_t *)mr_check_remote(&tp->mrs, m->rkey, &qp->user, m->va, 8, MR_REMOTE_ATOMIC);
	return *word && !((uintptr_t)*word & 7) ? RX_EXECUTE : RX_ACCESS;
}

static enum rx_verdict execute_atomic(struct transport *tp, struct qp *qp, const struct rx_meta *m,
				      struct rd_resource *res)
{
	uint64_t *word;
	enum rx_verdict v = judge_atomic(tp, qp, m, &word);

	if (v != RX_EXECUTE)
		return v;
	if (!mr_atomic(&tp->mrs, word, m->opcode == OP_RC_CMP_SWAP, m->swap_add, m->compare, &res->orig))
		return RX_ACCESS;
	res->kind = F_ATOMIC;
	return RX_EXECUTE;
}

static enum rx_verdict judge_read(const struct transport *tp, const struct qp *qp, const struct rx_meta *m)
{
	if (!(qp->access & MR_REMOTE_READ) || m->len > NIC_READ_BYTES_MAX)
		return RX_INVALID;
	if (m->len && !mr_check_remote(&tp->mrs, m->rkey, &qp->user, m->va, m->len, MR_REMOTE_READ))
		return RX_ACCESS;
	return RX_EXECUTE;
}

static bool is_mpe(const struct rx_meta *m)
{
	return m->opcode == OP_RC_FLUSH || m->opcode == OP_RC_ATOMIC_WRITE;
}

static struct mpe_request mpe_of(const struct rx_meta *m)
{
	struct mpe_request r = {
		.flush = m->opcode == OP_RC_FLUSH,
		.rkey = m->rkey,
		.len = m->len,
		.va = m->va,
		.payload_len = m->payload_len,
		.value = m->swap_add,
	};

	if (r.flush)
		r.feth = m->feth;
	return r;
}

/* Its answer is that of a READ of no bytes. */
static enum rx_verdict execute_mpe(const struct transport *tp, const struct qp *qp, const struct rx_meta *m,
				   struct rd_resource *res)
{
	const struct mpe_request r = mpe_of(m);

	res->len = 0;
	res->kind = F_MPE;
	return mpe_execute(tp, qp, &r);
}

enum rx_verdict responder_reads_judge(const struct transport *tp, const struct qp *qp, const struct rx_meta *m)
{
	uint64_t *word;

	if (!qp->max_dest_rd_atomic)
		return RX_INVALID;
	if (m->opcode == OP_RC_READ_REQUEST)
		return judge_read(tp, qp, m);
	if (is_mpe(m)) {
		const struct mpe_request request = mpe_of(m);

		return mpe_judge(tp, qp, &request);
	}
	return judge_atomic(tp, qp, m, &word);
}

/* Makes slots for as many READs and atomics as may be outstanding. */
static bool fit_slots(struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;
	struct veroce_work *w = vr->w;
	struct rd_resource *ring;
	uint32_t size = 1;

	while (size < qp->max_dest_rd_atomic)
		size *= 2;
	if (size <= w->slots_size)
		return true;
	ring = pool_get(&tp->pool, size * sizeof(*ring));
	if (!ring)
		return false;
	for (uint32_t r = vr->w->released; r != vr->executed; r = psn_add(r, 1))
		ring[psn_add(r, 1) & (size - 1)] = *slot(qp, psn_add(r, 1));
	pool_put(&tp->pool, w->slots, w->slots_size * sizeof(*ring));
	w->slots = ring;
	w->slots_size = size;
	return true;
}

enum rx_verdict responder_reads_execute(struct transport *tp, struct qp *qp, const struct rx_meta *m, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	uint32_t r = psn_add(vr->executed, 1);
	struct rd_resource res = {.va = m->va,
				  .rkey = m->rkey,
				  .len = m->len,
				  .msn = m->msn,
				  .kind = F_READ,
				  .psn_start = vr->w->q_in.rx.epsn};
	enum rx_verdict v;

	if (!qp->max_dest_rd_atomic || !make_room(tp, qp, r, now_ns))
		return RX_INVALID;
	if (!fit_slots(tp, qp))
		return RX_LOCAL_FAULT;
	if (m->opcode == OP_RC_READ_REQUEST)
		v = judge_read(tp, qp, m);
	else if (is_mpe(m))
		v = execute_mpe(tp, qp, m, &res);
	else
		v = execute_atomic(tp, qp, m, &res);
	if (v != RX_EXECUTE)
		return v;
	res.psn_first = UINT32_MAX; /* set when its first packet is sent */
	*slot(qp, r) = res;
	vr->executed = r;
	tp->counters.rx_read_requests += m->opcode == OP_RC_READ_REQUEST;
	tp->counters.rx_atomic_requests += res.kind == F_ATOMIC;
	qp_activate(tp, qp);
	return RX_EXECUTE;
}

/* ---- packets ------------------------------------------------------------------------------------ */

static uint8_t response_opcode(const struct qp *qp, const struct rd_resource *res, uint32_t po, uint32_t packets)
{
	static const uint8_t read[REQUEST_PLACES] = {
		[REQUEST_FIRST] = OP_RC_READ_RESPONSE_FIRST,
		[REQUEST_MIDDLE] = OP_RC_READ_RESPONSE_MIDDLE,
		[REQUEST_LAST] = OP_RC_READ_RESPONSE_LAST,
		[REQUEST_ONLY] = OP_RC_READ_RESPONSE_ONLY,
	};

	return res->kind == F_ATOMIC ? OP_RC_ATOMIC_ACK : read[veroce_place(qp, po == 0, po + 1 == packets)];
}

static uint32_t payload_of(const struct qp *qp, const struct rd_resource *res, uint32_t po)
{
	uint32_t left = res->len - po * qp->veroce->mtu;

	if (res->kind == F_ATOMIC)
		return 0;
	return left < qp->veroce->mtu ? left : qp->veroce->mtu;
}

/* A packet to be laid out: its response, its place in it, its path and its flags. */
struct response {
	uint32_t msn; /* the response's */
	uint32_t psn;
	uint32_t po;
	int path;
	bool again; /* a copy */
	bool probe; /* ... that is a probe */
	bool twin;  /* ... right behind another one */
};

static enum ackreq_packet kind_of(const struct response *r, uint32_t packets)
{
	if (r->probe || r->po + 1 == packets)
		return ACKREQ_AWAITED;
	return r->twin ? ACKREQ_TWIN : ACKREQ_ANY;
}

/* Returns its length; 0: no room in this turn; -1: the region or its memory is gone. */
static int32_t lay_out(struct transport *tp, struct qp *qp, const struct response *r, uint64_t now_ns)
{
	const struct rd_resource *res = slot(qp, r->msn);
	uint32_t po = r->po, payload = payload_of(qp, res, po), packets = slot_packets(qp, res), at;
	const struct flow *flow = veroce_flow(tp, qp, (uint32_t)r->path, true);
	uint8_t *out = flow ? tx_room(&tp->tx, payload + TX_HEADROOM_MAX) : NULL;
	const uint8_t *from = NULL;
	struct veroce_packet p;

	if (!out)
		return 0;
	if (payload) {
		/* Checked for each packet: the region may be gone since the READ began. */
		from = mr_check_remote(&tp->mrs, res->rkey, &qp->user, res->va + (uint64_t)po * qp->veroce->mtu,
				       payload, MR_REMOTE_READ);
		if (!from)
			return -1;
	}
	p.bth = (struct bth){
		.opcode = response_opcode(qp, res, po, packets),
		.migreq = true,
		.pad = (uint8_t)(-payload & 3),
		.pkey = qp->pkey,
		.ackreq = ackreq_is_set(qp, &qp->veroce->w->r, r->psn, kind_of(r, packets)),
		.retrans = r->again,
		.dqpn = qp->dest_qpn,
		.psn = r->psn,
	};
	p.msn = r->msn;
	p.po = po;
	p.aeth = (struct aeth){.syndrome = AETH_ACK | AETH_CREDIT_INVALID, .msn = res->msn};
	p.orig = res->orig;
	veroce_stamp(qp, &p, (uint32_t)r->path, now_ns);
	at = veroce_encode_headers(out, &p);
	mr_set_copies(&tp->mrs, res->len <= MR_READ_COPIED_MAX);
	if (payload && !mr_read_response(&tp->mrs, res->rkey, out + at, from, payload))
		return -1;
	if (p.bth.pad)
		memset(out + at + payload, 0, p.bth.pad);
	tx_commit(&tp->tx, flow, qp->dest_qpn, at + payload + p.bth.pad);
	return (int32_t)tx_last_len(&tp->tx);
}

/* A NAK reports that the READ cannot be answered; the connection ends (IBTA 9.9.3). */
static void region_gone(struct transport *tp, struct qp *qp, uint32_t r)
{
	struct veroce *vr = qp->veroce;

	tp->counters.rx_access_refused++;
	vr->w->fatal = RX_ACCESS;
	vr->w->cut_short = true;
	acks_nak(tp, qp, &vr->w->q_in, slot(qp, r)->psn_start, AETH_NAK | NAK_REMOTE_ACCESS);
}

/*
 * The region of a lost packet is gone. Most likely the READ was complete, and only its acknowledgement was lost. The
 * requester answers a duplicate PSN at once, whatever its payload (7.7): so an empty response with the last PSN that it
 * acknowledged makes it acknowledge again, and counts as the copy (our choice).
 */
static int32_t ask(struct transport *tp, struct qp *qp, uint32_t psn, uint32_t path, uint64_t now_ns)
{
	struct veroce_work *w = qp->veroce->w;
	const struct flow *flow = veroce_flow(tp, qp, path, false);
	uint8_t *out = flow ? tx_room(&tp->tx, TX_HEADROOM_MAX) : NULL;
	struct veroce_packet p = {
		.bth = {.opcode = OP_RC_READ_RESPONSE_ONLY,
			.migreq = true,
			.pkey = qp->pkey,
			.ackreq = true,
			.retrans = true,
			.dqpn = qp->dest_qpn,
			.psn = (w->r.tx.una - 1) & PSN_MASK},
		.msn = w->released,
		.aeth = {.syndrome = AETH_ACK | AETH_CREDIT_INVALID},
	};

	if (!out)
		return 0;
	veroce_stamp(qp, &p, path, now_ns);
	tx_commit(&tp->tx, flow, qp->dest_qpn, veroce_encode_headers(out, &p));
	/* The oldest: a probe may have been for a later one. */
	if (!w->asked_ns || psn_diff(psn, w->asked_psn) < 0) {
		w->asked_ns = now_ns;
		w->asked_psn = psn;
	}
	return (int32_t)tx_last_len(&tp->tx);
}

/* Whether that acknowledgement was sent after the question had arrived. */
static bool is_answer(const struct qp *qp, const struct veroce_packet *p, uint64_t now_ns)
{
	const struct veroce *vr = qp->veroce;

	if ((aeth_kind(p->aeth.syndrome) != AETH_ACK && !p->sack_count) || psn_add(p->bth.psn, 1) != vr->w->r.tx.una)
		return false;
	if (p->bth.ts)
		return (int32_t)(p->tse.tx1 - (uint32_t)vr->w->asked_ns) >= 0;
	/* Without stamps: after an RTO the acknowledgements that were under way have arrived or are lost. */
	return now_ns - vr->w->asked_ns >= vr->pair->rto_ns;
}

void responder_reads_answered(struct transport *tp, struct qp *qp, const struct veroce_packet *p, uint64_t now_ns)
{
	struct veroce_work *w = qp->veroce->w;
	const struct tx_space *tx = &w->r.tx;

	if (qp_get_state(qp) == QPS_ERR || w->fatal)
		return;
	if (!tx_is_outstanding(tx, w->asked_psn) || tx_record(tx, w->asked_psn)->state == TX_ACKED)
		w->asked_ns = 0; /* the requester has it */
	else if (w->asked_psn == tx->una && is_answer(qp, p, now_ns))
		region_gone(tp, qp, tx_record(tx, w->asked_psn)->item);
}

/* Lays out Middle packet `po` of a READ's response behind the one before it. False: no room, or the region is gone. */
static bool follow(struct transport *tp, struct qp *qp, const struct rd_resource *res, uint32_t po, int path,
		   uint32_t psn)
{
	const struct sender *s = &qp->veroce->w->r;
	const uint8_t *from = mr_check_remote(&tp->mrs, res->rkey, &qp->user, res->va + (uint64_t)po * qp->veroce->mtu,
					      qp->veroce->mtu, MR_REMOTE_READ);
	uint32_t at;
	uint8_t *out = from ? veroce_next(tp, qp, (uint32_t)path, ackreq_is_set(qp, s, psn, ACKREQ_ANY), &at) : NULL;

	if (!out || !mr_read_response(&tp->mrs, res->rkey, out + at, from, qp->veroce->mtu))
		return false;
	veroce_commit_next(tp, qp, at);
	return true;
}

/* Sends one packet, or a run, which *budget counts. 1: sent; 0: no room in this turn; -1: not now. */
static int send_some(struct transport *tp, struct qp *qp, uint32_t *budget, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;
	struct sender *s = &vr->w->r;
	bool again = s->tx.lost;
	uint32_t psn = again ? s->tx.again_head : s->tx.nxt;
	const struct tx_record *rec = again ? tx_record(&s->tx, psn) : NULL;
	uint32_t r = again ? rec->item : vr->w->emit, po, bytes, packets, count = 1, max = *budget;
	struct rd_resource *res = slot(qp, r);
	struct response packet;
	int path;
	int32_t len;

	if (!again) {
		if (tx_outstanding(&s->tx) >= s->peer_window || !veroce_reserve(tp, vr->w, s))
			return -1;
		if (res->psn_first == UINT32_MAX) {
			res->psn_first = psn;
			res->psn_last = psn_add(psn, slot_packets(qp, res) - 1);
		}
	}
	po = (psn - res->psn_first) & PSN_MASK;
	bytes = again ? rec->bytes : payload_of(qp, res, po) + TX_HEADROOM_MAX;
	path = recovery_pick(tp, qp, s, bytes, rec, now_ns);
	if (path == PAIR_NO_PATH)
		return -1;
	packet = (struct response){
		.msn = r,
		.psn = psn,
		.po = po,
		.path = path,
		.again = again,
		.probe = again && rec->probe,
	};
	len = lay_out(tp, qp, &packet, now_ns);
	if (len < 0 && again)
		len = ask(tp, qp, psn, (uint32_t)path, now_ns);
	if (len < 0) {
		/* Those before it come first: the NAK ends the connection (veRoCE 11). */
		if (!tx_outstanding(&s->tx))
			region_gone(tp, qp, r);
		return -1;
	}
	if (!len)
		return 0;
	if (again) {
		packet.probe = false;
		packet.twin = true;
		if (recovery_doubles(s, psn) && lay_out(tp, qp, &packet, now_ns) > 0)
			tp->counters.retransmits++;
		recovery_resent(tp, qp, s, psn, path, now_ns);
		--*budget;
		return 1;
	}
	packets = slot_packets(qp, res);
	if (po + 2 < packets && (po || veroce_starts_alike(qp))) {
		if (max > packets - 1 - po)
			max = packets - 1 - po;
		max = recovery_run(qp, s, path, bytes, (uint32_t)len, max);
		while (count < max && follow(tp, qp, res, po + count, path, psn_add(psn, count)))
			count++;
	}
	recovery_sent(tp, qp, s,
		      &(struct tx_run){.item = r, .count = count, .bytes = (uint16_t)len, .path = (uint8_t)path},
		      now_ns);
	if (po + count == packets)
		vr->w->emit = psn_add(vr->w->emit, 1);
	*budget -= count;
	return 1;
}

/*
 * A responder has no timer in the standard: a requester that misses a response asks again, and fails if that does not
 * help. So a peer that is silent is no error of this queue pair. What was lost stays in the retransmit queue.
 */
void responder_reads_hush(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce_work *w = qp->veroce->w;

	for (uint32_t psn = w->r.tx.una; psn != w->r.tx.nxt; psn = psn_add(psn, 1)) {
		if (tx_record(&w->r.tx, psn)->state == TX_FLYING)
			recovery_lose(tp, qp, &w->r, psn, now_ns);
	}
	w->unheard = true;
	w->cut_short = w->fatal;
	recovery_wake(tp, qp->veroce->pair);
}

void responder_reads_heard(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct sender *s = &qp->veroce->w->r;

	qp->veroce->w->unheard = false;
	s->retries = 0;
	s->progress_ns = now_ns;
	qp_activate(tp, qp);
}

bool responder_reads_pending(const struct qp *qp)
{
	const struct veroce *vr = qp->veroce;

	return psn_diff(vr->w->emit, vr->executed) <= 0 || tx_outstanding(&vr->w->r.tx);
}

bool responder_reads_send(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct veroce *vr = qp->veroce;

	for (uint32_t budget = QP_OUTPUT_QUANTUM; budget;) {
		int sent;

		if (vr->w->cut_short)
			return false;
		if (!responder_reads_due(qp))
			return false;
		sent = send_some(tp, qp, &budget, now_ns);
		if (sent <= 0)
			return !sent;
	}
	return true;
}
