/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC responder: requests in PSN order, each executed once, each answered (IBTA 9.7.4, 9.7.5).
 *
 * Answers leave in PSN order too: READ and atomic responses from the ring of resources, then one ACK
 * for everything executed so far. The ring keeps what was answered, so that a duplicate READ is read
 * again and a duplicate atomic gets its first result.
 */
#include <assert.h>
#include <string.h>

#include "transport/rocev2/congestion.h"
#include "transport/message.h"
#include "transport/mpe.h"
#include "transport/xrc.h"
#include "wire/aeth.h"
#include "wire/atomicacketh.h"
#include "wire/atomiceth.h"
#include "wire/feth.h"
#include "wire/icrc.h"
#include "wire/psn.h"
#include "wire/reth.h"

enum { RNR_LONGEST = 0 }; /* the timer code of 655.36 ms */

static struct rd_resource *resource(const struct qp *qp, uint8_t index)
{
	return &qp->gbn->rsp.res[index % qp->gbn->rsp.res_entries];
}

static bool answered(const struct rd_resource *r)
{
	return r->psn_next == psn_add(r->psn_end, 1);
}

static void schedule_nak(struct transport *tp, struct qp *qp, uint8_t syndrome)
{
	qp->gbn->rsp.nak_pending = true;
	qp->gbn->rsp.nak_syndrome = syndrome;
	qp_activate_to_answer(tp, qp);
}

static void schedule_ack(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct responder *rsp = &qp->gbn->rsp;

	rsp->ack_pending = true;
	ack_schedule(tp, qp, rsp->unacked >= QP_ACK_NOW_PACKETS ? ACK_NOW : ACK_HELD, now_ns);
}

/*
 * The QP sends one last answer and goes to ERR (IBTA 9.9.3: class B, C and J). The program hears of it then: it may
 * destroy the QP at once, and the answer is still owed.
 */
static void fatal(struct transport *tp, struct qp *qp, enum rx_verdict v, uint64_t now_ns)
{
	const struct rx_consequence *c = &rx_consequences[v];

	if (c->recv_status != WC_WR_FLUSH_ERR)
		message_fail(tp, qp, c->recv_status, now_ns);
	tp->counters.rx_access_refused += v == RX_ACCESS;
	if (qp_get_state(qp) == QPS_ERR)
		return;
	qp->gbn->rsp.fatal = (uint8_t)v;
	schedule_nak(tp, qp, c->syndrome);
}

static void not_ready(struct transport *tp, struct qp *qp, uint8_t timer)
{
	qp->gbn->rsp.nak_sent = true;
	schedule_nak(tp, qp, AETH_RNR_NAK | timer);
}

static void executed(struct transport *tp, struct qp *qp, const struct rx *rx, uint32_t packets)
{
	struct responder *rsp = &qp->gbn->rsp;
	uint32_t flags = rx->info->flags;

	rsp->epsn = psn_add(rsp->epsn, packets);
	rsp->nak_sent = false;
	if (flags & (F_END | F_ANSWERED))
		rsp->msn = (rsp->msn + 1) & PSN_MASK;
	if (rsp->unacked < UINT16_MAX)
		rsp->unacked++;
	if (flags & (F_SEND | F_WRITE)) {
		if (rx->bth->ackreq)
			schedule_ack(tp, qp, rx->now_ns);
	} else {
		qp_activate(tp, qp);
	}
}

static enum rx_verdict message_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	enum rx_verdict v = message_judge(tp, qp, rx);

	if (v == RX_EXECUTE)
		v = message_execute(tp, qp, rx);
	if (v == RX_EXECUTE || v == RX_KEY_STAYS)
		executed(tp, qp, rx, 1);
	if (v == RX_KEY_STAYS) { /* the last answer acknowledges it */
		qp->gbn->rsp.nak_psn = rx->bth->psn;
		qp->gbn->rsp.ack_pending = false;
	}
	return v;
}

/* A free entry for a new request, or NULL: more are outstanding than max_dest_rd_atomic. */
static struct rd_resource *take_resource(struct qp *qp)
{
	struct responder *rsp = &qp->gbn->rsp;

	while (rsp->res_emit != rsp->res_head && answered(resource(qp, rsp->res_emit)))
		rsp->res_emit++;
	while ((uint8_t)(rsp->res_head - rsp->res_emit) >= qp->max_dest_rd_atomic) {
		/* A repeated answer gives up its entry; a first answer never does. */
		if (rsp->res_emit == rsp->res_head || !resource(qp, rsp->res_emit)->again)
			return NULL;
		rsp->res_emit++;
	}
	if (rsp->res_count < qp->max_dest_rd_atomic)
		rsp->res_count++;
	return resource(qp, rsp->res_head++);
}

static void answer_from(struct rd_resource *r, uint32_t psn, uint32_t end, bool again)
{
	r->psn_start = psn;
	r->psn_next = psn;
	r->psn_end = end;
	r->again = again;
}

static uint32_t read_packets(const struct qp *qp, uint32_t len)
{
	return len > qp->mtu ? (len - 1) / qp->mtu + 1 : 1;
}

static enum rx_verdict read_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	struct rd_resource *r;
	struct reth reth;
	uint32_t packets;

	if (qp->gbn->rsp.message || !(qp->access & MR_REMOTE_READ))
		return RX_INVALID;
	reth_decode(&reth, rx_header(rx, H_RETH));
	if (reth.len > NIC_READ_BYTES_MAX)
		return RX_INVALID;
	if (reth.len && !mr_check_remote(&tp->mrs, reth.rkey, &qp->user, reth.va, reth.len, MR_REMOTE_READ))
		return RX_ACCESS;
	r = take_resource(qp);
	if (!r)
		return RX_INVALID;
	packets = read_packets(qp, reth.len);
	*r = (struct rd_resource){
		.va = reth.va,
		.rkey = reth.rkey,
		.len = reth.len,
		.psn_first = rx->bth->psn,
		.psn_last = psn_add(rx->bth->psn, packets - 1),
		.kind = F_READ,
		.srqn = qp->type == QPT_XRC_RECV ? qp->srq->number : 0,
	};
	tp->counters.rx_read_requests++;
	answer_from(r, r->psn_first, r->psn_last, false);
	executed(tp, qp, rx, packets);
	r->msn = qp->gbn->rsp.msn;
	return RX_EXECUTE;
}

static enum rx_verdict atomic_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	struct rd_resource *r;
	struct atomiceth h;
	uint64_t *word, found = 0;

	if (qp->gbn->rsp.message || !(qp->access & MR_REMOTE_ATOMIC))
		return RX_INVALID;
	atomiceth_decode(&h, rx_header(rx, H_ATOMICETH));
	if (h.va & 7)
		return RX_INVALID; /* IBTA 9.4.5 */
	word = (uint64_t *)mr_check_remote(&tp->mrs, h.rkey, &qp->user, h.va, 8, MR_REMOTE_ATOMIC);
	/* An iova may be aligned although the memory behind it is not. */
	if (!word || (uintptr_t)word & 7)
		return RX_ACCESS;
	r = take_resource(qp);
	if (!r)
		return RX_INVALID;
	if (!mr_atomic(&tp->mrs, word, (rx->bth->opcode & 0x1f) == OP_RC_CMP_SWAP, h.swap_add, h.compare, &found)) {
		qp->gbn->rsp.res_head--; /* it gets no answer */
		return RX_ACCESS;
	}
	*r = (struct rd_resource){
		.va = h.va,
		.rkey = h.rkey,
		.orig = found,
		.psn_first = rx->bth->psn,
		.psn_last = rx->bth->psn,
		.kind = F_ATOMIC,
	};
	tp->counters.rx_atomic_requests++;
	answer_from(r, r->psn_first, r->psn_last, false);
	executed(tp, qp, rx, 1);
	r->msn = qp->gbn->rsp.msn;
	return RX_EXECUTE;
}

static struct mpe_request mpe_decode(const struct transport *tp, const struct rx *rx)
{
	struct mpe_request m = {.flush = rx->info->headers & H_FETH, .payload_len = rx->payload_len};
	struct reth reth;

	reth_decode(&reth, rx_header(rx, H_RETH));
	m.va = reth.va;
	m.rkey = reth.rkey;
	m.len = reth.len;
	if (m.flush)
		feth_decode(&m.feth, rx_header(rx, H_FETH));
	else
		m.value = mpe_value(tp, rx->payload, rx->payload_len);
	return m;
}

static enum rx_verdict mpe_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	const struct mpe_request m = mpe_decode(tp, rx);
	struct rd_resource *r;
	enum rx_verdict v;

	if (qp->gbn->rsp.message)
		return RX_INVALID;
	v = mpe_judge(tp, qp, &m);
	if (v != RX_EXECUTE)
		return v;
	r = take_resource(qp);
	if (!r)
		return RX_INVALID;
	v = mpe_execute(tp, qp, &m);
	if (v != RX_EXECUTE) {
		qp->gbn->rsp.res_head--; /* it gets no answer */
		return v;
	}
	*r = (struct rd_resource){.psn_first = rx->bth->psn, .psn_last = rx->bth->psn, .kind = F_MPE};
	answer_from(r, r->psn_first, r->psn_last, false);
	executed(tp, qp, rx, 1);
	r->msn = qp->gbn->rsp.msn;
	return RX_EXECUTE;
}

/* The entry that covers psn; the ring is small. *index gets its free-running number. */
static struct rd_resource *find_resource(const struct qp *qp, uint32_t psn, uint8_t *index)
{
	const struct responder *rsp = &qp->gbn->rsp;

	for (uint8_t n = 1; n <= rsp->res_count; n++) {
		struct rd_resource *r = resource(qp, (uint8_t)(rsp->res_head - n));

		if (((psn - r->psn_first) & PSN_MASK) <= ((r->psn_last - r->psn_first) & PSN_MASK)) {
			*index = (uint8_t)(rsp->res_head - n);
			return r;
		}
	}
	return NULL;
}

/* Whether a duplicate READ requests the tail of the original's bytes. */
static bool is_same_read(const struct qp *qp, const struct rd_resource *r, const struct reth *reth, uint32_t psn)
{
	uint64_t skipped = (uint64_t)((psn - r->psn_first) & PSN_MASK) * qp->mtu;

	return r->kind == F_READ && reth->rkey == r->rkey && reth->va == r->va + skipped &&
	       skipped + reth->len <= r->len;
}

/*
 * A duplicate request (IBTA 9.7.4.5.1). A SEND or WRITE is acknowledged again, a READ is read again, an
 * atomic gets its first result again, a FLUSH or ATOMIC WRITE its empty answer. One that the ring no longer holds is dropped silently.
 */
static void duplicate_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	struct responder *rsp = &qp->gbn->rsp;
	uint32_t flags = rx->info->flags, psn = rx->bth->psn, end = psn;
	struct rd_resource *r;
	uint8_t index;

	tp->counters.rx_duplicates++;
	if (!(flags & F_ANSWERED)) {
		schedule_ack(tp, qp, rx->now_ns);
		return;
	}
	r = find_resource(qp, psn, &index);
	if (!r)
		return;
	if (flags & F_READ) {
		struct reth reth;

		reth_decode(&reth, rx_header(rx, H_RETH));
		if (!is_same_read(qp, r, &reth, psn))
			return;
		end = psn_add(psn, read_packets(qp, reth.len) - 1);
	} else if (!(flags & r->kind)) {
		return;
	}
	if (!answered(r) && !r->again && r->psn_next == r->psn_first)
		return; /* its first answer is still being sent */
	answer_from(r, psn, end, true);
	if ((uint8_t)(rsp->res_head - index) > (uint8_t)(rsp->res_head - rsp->res_emit))
		rsp->res_emit = index;
	qp_activate(tp, qp);
}

/* Executes the request that is due. */
static enum rx_verdict request_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	if (rx->info->headers & H_XRCETH && !xrc_take_on(tp, qp, rx))
		return RX_NO_SRQ;
	if (!(rx->info->flags & F_ANSWERED))
		return message_input(tp, qp, rx);
	if (rx->info->flags & F_READ)
		return read_input(tp, qp, rx);
	if (rx->info->flags & F_ATOMIC)
		return atomic_input(tp, qp, rx);
	return mpe_input(tp, qp, rx);
}

/*
 * Instead of being acknowledged by nobody for a while: after an RNR NAK the requester waits as long as the protocol lets
 * one ask for (IBTA 9.7.5.2.8), and its retries begin only then.
 */
bool responder_hold(struct transport *tp, struct qp *qp, uint32_t expected_ms)
{
	struct responder *rsp = &qp->gbn->rsp;

	rsp->refuses = tp->hold_ms && !qp->peer->local && qp_peer_patience_ns(qp) < 2 * (uint64_t)expected_ms * 1000000;
	rsp->refusal_due = rsp->refuses;
	return rsp->refuses;
}

static void refuse(struct transport *tp, struct qp *qp)
{
	struct responder *rsp = &qp->gbn->rsp;

	not_ready(tp, qp, RNR_LONGEST);
	if (rsp->refusal_due && tp->hold_awaited)
		tp->hold_awaited--;
	rsp->refusal_due = false;
}

void responder_input(struct transport *tp, struct qp *qp, const struct rx *rx)
{
	struct responder *rsp = &qp->gbn->rsp;
	int32_t gap = psn_diff(rx->bth->psn, rsp->epsn);
	enum rx_verdict v;

	if (rsp->fatal) {
		tp->counters.rx_dropped++;
		return;
	}
	congestion_arrival(tp, qp, rx);
	if (gap < 0) {
		duplicate_input(tp, qp, rx);
		return;
	}
	if (gap > 0) {
		tp->counters.rx_out_of_sequence++;
		if (!rsp->nak_sent) { /* IBTA 9.7.5.2.8: once for each gap */
			rsp->nak_sent = true;
			schedule_nak(tp, qp, AETH_NAK | NAK_PSN_SEQUENCE);
		}
		return;
	}
	if (rsp->refuses) {
		refuse(tp, qp);
		return;
	}
	v = request_input(tp, qp, rx);
	if (v == RX_NOT_READY)
		not_ready(tp, qp, qp->min_rnr_timer);
	else if (v != RX_EXECUTE)
		fatal(tp, qp, v, rx->now_ns);
}

/* ---- what goes back ------------------------------------------------------------------------- */

static inline struct bth response_bth(const struct qp *qp, uint8_t opcode, uint32_t psn)
{
	return (struct bth){
		.opcode = qp->type == QPT_XRC_RECV ? (uint8_t)(opcode + XRC_OPCODES) : opcode,
		.migreq = true,
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
		.psn = psn,
	};
}

/* Writes the headers of the next response; a MIDDLE one has no AETH. Returns their length. */
static uint32_t encode_response(uint8_t *p, const struct qp *qp, const struct rd_resource *r, uint8_t opcode,
				uint32_t pad)
{
	struct bth bth = response_bth(qp, opcode, r->psn_next);

	bth.pad = (uint8_t)pad;
	bth_encode(p, &bth);
	if (!(opcode_table[opcode].headers & H_AETH))
		return BTH_LEN;
	aeth_encode(p + BTH_LEN, &(struct aeth){.syndrome = AETH_ACK | AETH_CREDIT_INVALID, .msn = r->msn});
	return BTH_LEN + AETH_LEN;
}

static bool send_ack(struct transport *tp, struct qp *qp, uint32_t psn, uint8_t syndrome)
{
	struct congestion *g = qp->gbn->congestion;
	struct bth bth = response_bth(qp, OP_RC_ACK, psn);
	uint8_t *p = tx_room_for_answer(&tp->tx, BTH_LEN + AETH_LEN + tp->tx.seal->overhead);

	if (!p)
		return false;
	bth.becn = g && g->ce && tp->config.rocev2.ce_echo;
	bth_encode(p, &bth);
	aeth_encode(p + BTH_LEN, &(struct aeth){.syndrome = syndrome, .msn = qp->gbn->rsp.msn});
	if (g) {
		tx_telemetry(&tp->tx, g->telemetry ? &g->int_stack : NULL);
		g->telemetry = false;
		g->ce = false;
	}
	tx_commit_answer(&tp->tx, &qp->flow, qp->dest_qpn, BTH_LEN + AETH_LEN);
	return true;
}

static bool send_atomic_result(struct transport *tp, struct qp *qp, struct rd_resource *r)
{
	uint8_t *p = tx_room(&tp->tx, TX_HEADROOM_MAX);
	uint32_t at;

	if (!p)
		return false;
	at = encode_response(p, qp, r, OP_RC_ATOMIC_ACK, 0);
	atomicacketh_encode(p + at, &(struct atomicacketh){.orig = r->orig});
	tx_commit(&tp->tx, &qp->flow, qp->dest_qpn, at + ATOMICACKETH_LEN);
	r->psn_next = psn_add(r->psn_next, 1);
	return true;
}

static uint8_t read_response_opcode(const struct rd_resource *r)
{
	bool first = r->psn_next == r->psn_start, last = r->psn_next == r->psn_end;

	if (first)
		return last ? OP_RC_READ_RESPONSE_ONLY : OP_RC_READ_RESPONSE_FIRST;
	return last ? OP_RC_READ_RESPONSE_LAST : OP_RC_READ_RESPONSE_MIDDLE;
}

/* False: no room. If the region or the memory behind it is gone, ends the QP with a NAK instead. */
static bool send_read_response(struct transport *tp, struct qp *qp, struct rd_resource *r, uint64_t now_ns)
{
	uint32_t done = ((r->psn_next - r->psn_first) & PSN_MASK) * qp->mtu;
	uint32_t left = r->len - done, len = left < qp->mtu ? left : qp->mtu, pad = -len & 3, at;
	uint8_t *p = tx_room(&tp->tx, qp->mtu + TX_HEADROOM_MAX);
	const struct mr_user *user = &qp->user;
	struct mr_user owner;
	const uint8_t *from;

	if (!p)
		return false;
	if (r->srqn)
		user = xrc_user(tp, r->srqn, &owner);
	at = encode_response(p, qp, r, read_response_opcode(r), pad);
	if (len) {
		from = user ? mr_check_remote(&tp->mrs, r->rkey, user, r->va + done, len, MR_REMOTE_READ) : NULL;
		mr_set_copies(&tp->mrs, r->len <= MR_READ_COPIED_MAX);
		if (!from || !mr_read_response(&tp->mrs, r->rkey, p + at, from, len)) {
			qp->gbn->rsp.nak_psn = r->psn_next;
			fatal(tp, qp, RX_ACCESS, now_ns);
			qp->gbn->rsp.res_emit = qp->gbn->rsp.res_head;
			return true;
		}
	}
	if (pad)
		memset(p + at + len, 0, pad);
	tx_commit(&tp->tx, &qp->flow, qp->dest_qpn, at + len + pad);
	r->psn_next = psn_add(r->psn_next, 1);
	return true;
}

static bool send_pending_nak(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct responder *rsp = &qp->gbn->rsp;
	uint32_t psn = rsp->nak_psn == NAK_AT_EPSN ? rsp->epsn : rsp->nak_psn;

	if (!send_ack(tp, qp, psn, rsp->nak_syndrome))
		return false;
	message_answered(tp, rsp->nak_syndrome);
	rsp->nak_pending = false;
	rsp->ack_pending = false; /* a NAK acknowledges everything before it */
	rsp->unacked = 0;
	list_remove(&qp->held);
	if (rsp->fatal) {
		qp_raise(tp, qp, rx_consequences[rsp->fatal].event);
		qp_to_error(tp, qp, now_ns);
	}
	return true;
}

/* Sends READ and atomic responses, in PSN order. True: there are more. */
static bool send_responses(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	struct responder *rsp = &qp->gbn->rsp;
	uint32_t budget = QP_OUTPUT_QUANTUM;

	while (rsp->res_emit != rsp->res_head) {
		struct rd_resource *r = resource(qp, rsp->res_emit);

		if (answered(r)) {
			rsp->res_emit++;
			continue;
		}
		if (!budget--)
			return true;
		if (!(r->kind == F_ATOMIC ? send_atomic_result(tp, qp, r) : send_read_response(tp, qp, r, now_ns)))
			return true;
		rsp->unacked = 0;
	}
	return false;
}

bool responder_output(struct transport *tp, struct qp *qp, uint64_t now_ns)
{
	enum qp_state state = qp_get_state(qp);

	if (state != QPS_RTR && state != QPS_RTS && state != QPS_SQD && state != QPS_SQE)
		return false;
	if (!qp_is_paused(tp, qp) && send_responses(tp, qp, now_ns))
		return true;
	return qp->gbn->rsp.nak_pending && !send_pending_nak(tp, qp, now_ns);
}

/* A NAK or ACK behind READ responses leaves after them. */
bool responder_has_answer(const struct qp *qp)
{
	const struct responder *rsp = &qp->gbn->rsp;

	return rsp->res_emit == rsp->res_head && (rsp->nak_pending || (rsp->ack_pending && list_empty(&qp->held)));
}

bool responder_output_ack(struct transport *tp, struct qp *qp)
{
	struct responder *rsp = &qp->gbn->rsp;

	if (!rsp->ack_pending || rsp->res_emit != rsp->res_head)
		return false;
	if (!send_ack(tp, qp, (rsp->epsn - 1) & PSN_MASK, AETH_ACK | AETH_CREDIT_INVALID))
		return true;
	tp->counters.acks_sent++;
	rsp->ack_pending = false;
	rsp->unacked = 0;
	list_remove(&qp->held);
	return false;
}
