/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The four calls, and the doorbells between posters and the nic.
 *
 * A doorbell is one push onto a lock-free stack, made once until the nic collects it: `rung` is cleared
 * before the send queue's head is read, so a WQE posted after that rings again.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/siphash.h"
#include "nic/state.h"
#include "wire/aeth.h"
#include "wire/capseth.h"

static_assert((int)NIC_TX_ARENA_BYTES == (int)TX_ARENA_BYTES, "what is asked for is what is used");
static_assert((int)NIC_SLOTS == (int)PEER_SLOTS && (int)NIC_QPN_BITS == (int)PEER_SLOT_SHIFT, "a slot is one process");
static_assert((int)NIC_TX_ANSWERS == (int)TX_ANSWERS, "what is said is what is kept");

enum { HANG_LOOK_NS = 100000000 };

void nic_set_paths(struct nic *nic, uint32_t paths, const uint16_t *sport_ipv4, const uint16_t *sport_ipv6)
{
	assert(paths && paths <= PATHS_MAX);
	memcpy(nic->tp.config.sport_ipv4, sport_ipv4, paths * sizeof(*sport_ipv4));
	memcpy(nic->tp.config.sport_ipv6, sport_ipv6, paths * sizeof(*sport_ipv6));
	nic->tp.config.paths = paths;
}

static void free_arena(struct nic *nic)
{
	if (nic->own_arena)
		alloc_put(&nic->tp.alloc, nic->tp.tx.arena, TX_ARENA_BYTES);
}

struct nic *nic_create(const struct nic_config *c)
{
	struct nic *nic = alloc_get(&c->alloc, sizeof(*nic));
	uint64_t half[2];

	if (!nic)
		return NULL;
	transport_init(&nic->tp, &c->transport, &c->alloc, c->secret, c->no_payload ? NULL : &nic->icrc);
	gsi_init(&nic->gsi);
	list_init(&nic->pds);
	list_init(&nic->cqs);
	list_init(&nic->srqs);
	list_init(&nic->xrcds);
	list_init(&nic->groups);
	nic->qpn_base = c->qpn_slot << NIC_QPN_BITS;
	nic->qpn_bits = c->qpn_bits && c->qpn_bits < NIC_QPN_BITS ? c->qpn_bits : NIC_QPN_BITS;
	/* Keys must not reveal QPNs, or QPNs keys, so each has a secret of its own. */
	half[0] = siphash_u64(c->secret, 0);
	half[1] = siphash_u64(c->secret, 1);
	memcpy(nic->qpn_secret, half, sizeof(half));
	qp_table_init(nic);
	nic_set_gids(nic, c->gids, c->gid_count);
	nic_set_gid_map(nic, c->gid_map);
	memcpy(nic->pkeys, c->pkeys, sizeof(nic->pkeys));
	nic->pkey_count = c->pkey_count;
	if (!c->pkey_count)
		nic->pkeys[nic->pkey_count++] = NIC_PKEY_DEFAULT;
	nic->own_arena = !c->tx_arena;
	nic->tp.tx.arena = c->tx_arena ? c->tx_arena : alloc_get(&c->alloc, TX_ARENA_BYTES);
	if (!nic->tp.tx.arena)
		goto free_nic;
	if (mr_table_init(&nic->tp.mrs, &nic->tp.alloc, c->secret))
		goto free_arena;
	nic->tp.mrs.no_payload = nic->tp.mrs.copies_oddly = c->no_payload;
	nic->tp.mrs.lender = &nic->tp.lender;
	nic->tp.mrs.own = c->own;
	nic->tp.mrs.faults = &nic->tp.counters.memory_faults;
	return nic;

free_arena:
	free_arena(nic);
free_nic:
	alloc_put(&c->alloc, nic, sizeof(*nic));
	return NULL;
}

void nic_destroy(struct nic *nic)
{
	struct alloc alloc;

	if (!nic)
		return;
	alloc = nic->tp.alloc;
	qp_table_fini(nic);
	while (!list_empty(&nic->srqs))
		nic_srq_destroy(nic, &container_of(nic->srqs.next, struct nic_srq, link)->srq);
	while (!list_empty(&nic->xrcds))
		nic_xrcd_free(nic, &container_of(nic->xrcds.next, struct nic_xrcd, link)->xrcd);
	while (!list_empty(&nic->cqs))
		nic_cq_destroy(nic, &container_of(nic->cqs.next, struct nic_cq, link)->cq);
	mr_table_fini(&nic->tp.mrs);
	transport_fini(&nic->tp);
	while (!list_empty(&nic->pds)) {
		struct nic_pd *p = container_of(nic->pds.next, struct nic_pd, link);

		p->pd.users = 0;
		nic_pd_free(nic, &p->pd);
	}
	free_arena(nic);
	alloc_put(&alloc, nic, sizeof(*nic));
}

/* ---- packets in ------------------------------------------------------------------------------ */

/* IBTA 10.9.3: the numbers agree and at least one side is a full member (bit 15). */
static bool pkey_matches(uint16_t theirs, uint16_t ours)
{
	return !((theirs ^ ours) & 0x7fff) && (theirs | ours) & 0x8000 && theirs & 0x7fff;
}

static bool receives(const struct qp *qp)
{
	enum qp_state state = qp_get_state(qp);

	return state == QPS_RTR || state == QPS_RTS || state == QPS_SQD || state == QPS_SQE;
}

bool nic_has_pkey(const struct nic *nic, uint16_t pkey)
{
	bool has = false;

	for (uint32_t i = 0; i < nic->pkey_count; i++)
		has |= pkey_matches(pkey, nic->pkeys[i]);
	return has;
}

uint16_t nic_pkey(const struct nic *nic, uint32_t index)
{
	return nic->pkeys[index];
}

uint32_t nic_pkey_count(const struct nic *nic)
{
	return nic->pkey_count;
}

/* Two moves each: of two calls of memcmp() in a row the compiler leaves one. */
static inline bool is_same_gid(const uint8_t a[16], const uint8_t b[16])
{
	uint64_t left[2], right[2];

	memcpy(left, a, sizeof(left));
	memcpy(right, b, sizeof(right));
	return !((left[0] ^ right[0]) | (left[1] ^ right[1]));
}

/* A connected QP accepts packets of its peer's address alone (IBTA A17.4.2, 9.6.1.2). */
static inline bool is_from_peer(const struct qp *qp, const struct flow *flow)
{
	return qp->ops->datagram || (is_same_gid(flow->src, qp->flow.dst) && is_same_gid(flow->dst, qp->flow.src));
}

/* From the process that has the peer's QPN, through memory: nobody else can have written it, and nothing can have
 * changed it. */
static inline bool is_neighbours(const struct qp *qp, const struct rx *rx)
{
	uint32_t neighbour = rx->pkt->flow->neighbour;

	return neighbour && qp && !qp->ops->datagram && slot_of_qpn(qp->dest_qpn) == neighbour - 1;
}

/* The QP may be NULL: then only the plain ICRC counts. */
static inline bool is_intact(struct nic *nic, struct qp *qp, struct rx *rx)
{
	return qp_opens(&nic->tp, qp, rx, is_neighbours(qp, rx));
}

/* The QP does not take such a packet. */
static __attribute__((noinline)) void refuse(struct nic *nic, struct qp *qp, const struct rx *rx)
{
	if (!pkey_matches(rx->bth->pkey, qp->pkey))
		nic->tp.counters.rx_wrong_pkey++;
	else if (rx->service != qp->ops->service || !qp->ops->strange || !qp->ops->strange(&nic->tp, qp, rx))
		nic->tp.counters.rx_wrong_source++;
	else
		qp_find_peer(nic, qp);
}

void nic_deliver(struct nic *nic, struct qp *qp, struct rx *rx)
{
	if (!receives(qp))
		return;
	if (rx->service != qp->ops->service || !pkey_matches(rx->bth->pkey, qp->pkey)) {
		refuse(nic, qp, rx);
		return;
	}
	qp->ops->input(&nic->tp, qp, rx);
	qp_checked(&nic->tp, qp);
}

/* Whether the QP, which receives, takes such a packet. */
static inline __attribute__((always_inline)) bool takes(const struct qp *qp, const struct rx *rx)
{
	return rx->service == qp->ops->service && pkey_matches(rx->bth->pkey, qp->pkey) &&
	       is_from_peer(qp, rx->pkt->flow);
}

/* Where the bytes belong that the packet lacks, if they are its payload; NULL: that is not known. */
static uint8_t *spot_of(struct nic *nic, const struct pkt *pkt)
{
	struct qp *qp;
	struct rx rx;

	if (!rx_decode(&nic->tp.decoder, pkt, 0, &rx))
		return NULL;
	qp = qp_table_find(nic, rx.bth->dqpn);
	if (!qp || !qp->ops->place || !is_neighbours(qp, &rx) || !receives(qp) || !takes(qp, &rx) ||
	    rx.payload != pkt->data + pkt->far_at || rx.payload_len != pkt->far_bytes)
		return NULL;
	return qp->ops->place(&nic->tp, qp, &rx, &nic->row);
}

/* Nothing that was judged depends on it. */
static bool is_bare_ack(struct nic *nic, const struct pkt *pkt)
{
	struct rx rx;

	return rx_decode(&nic->tp.decoder, pkt, 0, &rx) && rx.veroce && rx.veroce->info->flags & F_ACK &&
	       aeth_kind(rx.veroce->aeth.syndrome) == AETH_ACK;
}

size_t nic_place(struct nic *nic, const struct pkt *pkts, size_t n, bool begins, uint8_t **spots)
{
	size_t known = 0;

	if (begins)
		nic->row.qp = NULL;
	for (; known < n; known++) {
		spots[known] = pkts[known].far_bytes ? spot_of(nic, &pkts[known]) : NULL;
		if (!spots[known] && (pkts[known].far_bytes || !is_bare_ack(nic, &pkts[known])))
			break;
	}
	return known;
}

/* For a QP that there is not, or that receives nothing. */
static __attribute__((noinline)) void input_elsewhere(struct nic *nic, struct rx *rx)
{
	if (rx->bth->dqpn == GSI_QPN)
		gsi_input(nic, rx);
	else if (rx->bth->dqpn == NIC_MCAST_QPN)
		mcast_input(nic, rx);
	else
		nic->tp.counters.rx_no_qp++;
}

/* False: it is not whole. */
static bool input(struct nic *nic, const struct pkt *pkt, uint64_t now_ns)
{
	struct nic_counters *n = &nic->tp.counters;
	struct qp *qp;
	struct rx rx;

	if (!rx_decode(&nic->tp.decoder, pkt, now_ns, &rx)) {
		n->rx_malformed++;
		return false;
	}
	qp = qp_table_find(nic, rx.bth->dqpn);
	if (!is_intact(nic, qp, &rx))
		return false;
	n->rx_packets++;
	n->rx_bytes += pkt->len;
	n->rx_marked += rx_is_marked(pkt);
	if (!qp || !receives(qp)) {
		input_elsewhere(nic, &rx);
	} else if (!takes(qp, &rx)) {
		refuse(nic, qp, &rx);
	} else {
		qp->rx_words += pkt->len / 4;
		qp->ops->input(&nic->tp, qp, &rx);
		qp_checked(&nic->tp, qp);
	}
	return true;
}

/* Its payload lies where nic_place() said. */
static __attribute__((noinline)) void note_placed(struct nic *nic, const struct pkt *pkt)
{
	struct pkt_far far;

	memcpy(&far, pkt->data + pkt->far_at, sizeof(far));
	nic->tp.mrs.placed = (struct mr_placed){.payload = pkt->data + pkt->far_at, .at = far.from};
}

size_t nic_input(struct nic *nic, const struct pkt *pkts, size_t n, uint64_t now_ns)
{
	size_t whole = 0;

	for (const struct pkt *p = pkts; p < pkts + n; p++) {
		if (__builtin_expect(p->far_bytes, 0))
			note_placed(nic, p);
		whole += input(nic, p, now_ns);
		if (__builtin_expect(p->far_bytes, 0))
			nic->tp.mrs.placed.payload = NULL;
	}
	return whole;
}

/* ---- packets out ----------------------------------------------------------------------------- */

void nic_doorbell(struct nic *nic, struct qp *qp)
{
	if (atomic_exchange_explicit(&qp->rung, true, memory_order_seq_cst))
		return;
	qp->rung_next = atomic_load_explicit(&nic->rung, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&nic->rung, &qp->rung_next, qp, memory_order_seq_cst,
						      memory_order_relaxed))
		;
}

void nic_posted(struct nic *nic, struct qp *qp)
{
	qp_activate(&nic->tp, qp);
}

bool nic_has_doorbells(const struct nic *nic)
{
	return atomic_load_explicit(&nic->rung, memory_order_seq_cst);
}

void nic_hear_doorbells(struct nic *nic)
{
	struct qp *qp, *oldest_first = NULL;

	if (!atomic_load_explicit(&nic->rung, memory_order_relaxed))
		return;
	qp = atomic_exchange_explicit(&nic->rung, NULL, memory_order_seq_cst);
	while (qp) {
		struct qp *next = qp->rung_next;

		qp->rung_next = oldest_first;
		oldest_first = qp;
		qp = next;
	}
	while (oldest_first) {
		qp = oldest_first;
		oldest_first = qp->rung_next;
		atomic_store_explicit(&qp->rung, false, memory_order_seq_cst);
		qp_activate(&nic->tp, qp);
	}
}

/* When the first of the waiting ACKs of a list is due; UINT64_MAX: there is none. */
static uint64_t acks_due(const struct ack_list *l)
{
	return list_empty(&l->qps) ? UINT64_MAX
				   : container_of(l->qps.next, struct qp, held)->ack_since_ns + l->delay_ns;
}

static void release_ack(struct nic *nic, struct qp *qp)
{
	list_remove(&qp->held);
	qp_activate_to_answer(&nic->tp, qp);
}

static inline void release_acks(struct nic *nic, uint64_t now_ns)
{
#pragma GCC unroll 4
	for (int i = ACK_HELD; i < ACK_WAITS; i++) {
		const struct ack_list *l = &nic->tp.acks[i];

		while (__builtin_expect(acks_due(l) <= now_ns, false))
			release_ack(nic, container_of(l->qps.next, struct qp, held));
	}
}

/* Whether a QP waits for its turn, or one did whose service level was changed since. */
static bool has_turns(const struct transport *tp)
{
	return !list_empty(&tp->answering) || tp->active_sls;
}

/* Takes the QP whose turn it is from its list; NULL: none has anything to send. */
static struct qp *take_turn(struct transport *tp)
{
	struct qp *qp;

	if (!list_empty(&tp->answering)) {
		qp = container_of(tp->answering.next, struct qp, active);
		list_remove(&qp->active);
		qp->answering = false;
		return qp;
	}
	while (tp->active_sls) {
		uint32_t later = tp->active_sls & ~((2u << tp->turn) - 1);
		unsigned sl = (unsigned)__builtin_ctz(later ? later : tp->active_sls);
		struct list *active = &tp->active[sl];

		if (list_empty(active)) {
			tp->active_sls &= (uint16_t) ~(1u << sl);
			continue;
		}
		qp = container_of(active->next, struct qp, active);
		list_remove(&qp->active);
		if (list_empty(active))
			tp->active_sls &= (uint16_t) ~(1u << sl);
		tp->turn = (uint8_t)sl;
		return qp;
	}
	return NULL;
}

void nic_set_peer(struct nic *nic, uint32_t slot, const struct nic_peer *n)
{
	struct transport *tp = &nic->tp;
	struct peer *p = peer_at(tp, slot);

	if (peer_is_near(p) != n->near)
		tp->qp_changes++;
	atomic_store_explicit(&p->near, n->near, memory_order_relaxed);
	p->reads = n->reads;
	p->full = n->full;
	p->borrower.loan = n->loan;
	if (!p->full)
		qps_resume(tp, &p->held_up);
}

bool nic_lends(struct nic *nic)
{
	return lender_lends_responses(&nic->tp.lender);
}

/* In a state in which a QP only flushes it sends nothing. */
static bool is_held_up(struct qp *qp)
{
	bool last_turn;

	if (__builtin_expect(!qp->peer->full, true))
		return false;
	last_turn = qp->last_turn;
	qp->last_turn = false;
	return !last_turn && receives(qp) && qp_get_state(qp) != QPS_SQE;
}

void nic_take_last_turns(struct nic *nic)
{
	for (uint32_t slot = 0; slot < PEER_SLOTS; slot++) {
		struct peer *p = &nic->tp.peers[slot];

		if (!p->local)
			continue;
		for (struct list *at = p->held_up.next; at != &p->held_up; at = at->next)
			container_of(at, struct qp, active)->last_turn = true;
		qps_resume(&nic->tp, &p->held_up);
	}
}

/* The packets of the turn that begins go to the QP's peer: whether they are sealed, and whole. */
static void aim(struct transport *tp, struct qp *qp)
{
	struct peer *peer = qp->peer;
	bool near = peer_is_near(peer), reads = near && peer->reads && qp->ops->reliable;

	tp->tx.seal = qp_seal(tp, qp, near);
	tp->mrs.lends = reads && !tp->mrs.nothings;
	if (reads)
		lender_begin(&tp->lender, &peer->borrower, &qp->lot);
	tp->tx.far = reads ? &tp->lender.far : NULL;
}

/* As outside of turns. */
static void aim_nowhere(struct transport *tp)
{
	tp->tx.seal = qp_seal(tp, NULL, false);
	tp->mrs.lends = false;
	tp->tx.far = NULL;
}

/* After the doorbells were heard. */
static bool has_output(const struct nic *nic)
{
	return has_turns(&nic->tp) || !list_empty(&nic->gsi.out);
}

bool nic_has_output(const struct nic *nic)
{
	return has_output(nic) || nic_has_doorbells(nic);
}

size_t nic_output(struct nic *nic, struct pkt *burst, size_t max, uint64_t now_ns)
{
	struct transport *tp = &nic->tp;
	uint32_t room = (tp->caps_flags & CAPS_LARGE ? CAPS_LARGE_BYTES : NIC_MTU_BYTES_MAX) + TX_HEADROOM_MAX;
	struct qp *qp;
	uint64_t laid;
	size_t count;

	nic_hear_doorbells(nic);
	release_acks(nic, now_ns);
	if (!has_output(nic))
		return 0;
	tx_start(&tp->tx, burst, max);
	if (!list_empty(&nic->gsi.out))
		gsi_output(nic);
	/* A QP whose turn finds no room would lose its place, and delay its answers, for nothing. */
	while (has_turns(tp) && tx_room(&tp->tx, room)) {
		qp = take_turn(tp);
		if (!qp)
			break;
		if (__builtin_expect(is_held_up(qp), false)) {
			list_append(&qp->peer->held_up, &qp->active);
			continue;
		}
		aim(tp, qp);
		laid = tp->tx.bytes;
		if (qp->ops->output(tp, qp, now_ns))
			qp_activate(tp, qp);
		else if (tp->paused_sls && list_empty(&qp->active))
			list_append(&tp->paused, &qp->active);
		qp->tx_words += (uint32_t)((tp->tx.bytes - laid) / 4);
		qp_checked(tp, qp);
	}
	aim_nowhere(tp);
	count = tx_finish(&tp->tx);
	tp->counters.tx_packets += count;
	tp->counters.tx_bytes += tp->tx.bytes;
	return count;
}

void nic_pause(struct nic *nic, uint16_t sls)
{
	struct transport *tp = &nic->tp;
	bool resumes = tp->paused_sls & ~sls;

	tp->paused_sls = sls;
	if (resumes)
		qps_resume(tp, &tp->paused);
}

void nic_hold_acks(struct nic *nic, bool hold)
{
	nic->tp.hold_acks = hold;
	nic->tp.acks[ACK_HELD].delay_ns = hold ? nic->tp.config.ack_delay_ns : 0;
}

/* ---- time ------------------------------------------------------------------------------------ */

uint64_t nic_deadline(const struct nic *nic)
{
	return nic_has_output(nic) ? 0 : nic_timer_deadline(nic);
}

uint64_t nic_timer_deadline(const struct nic *nic)
{
	uint64_t deadline = timers_deadline(&nic->tp.timers);

#pragma GCC unroll 4
	for (int i = ACK_HELD; i < ACK_WAITS; i++) {
		uint64_t due = acks_due(&nic->tp.acks[i]);

		if (due < deadline)
			deadline = due;
	}
	return deadline;
}

void nic_expire(struct nic *nic, uint64_t now_ns)
{
	struct timer *t;

	if (timers_deadline(&nic->tp.timers) <= now_ns)
		patience_woke(&nic->tp, timers_deadline(&nic->tp.timers), now_ns);
	while (timers_deadline(&nic->tp.timers) <= now_ns && (t = timers_take_due(&nic->tp.timers, now_ns))) {
		struct qp *qp = container_of(t, struct qp, timer);

		if (__builtin_expect(qp->hangs, 0)) {
			timer_set(&nic->tp.timers, &qp->timer, now_ns + HANG_LOOK_NS);
			continue;
		}
		qp->ops->expire(&nic->tp, qp, now_ns);
		qp_checked(&nic->tp, qp);
	}
}

/* ---- events --------------------------------------------------------------------------- */

struct cq *nic_next_cq_event(struct nic *nic)
{
	struct list *fired = &nic->tp.fired_cqs;
	struct cq *cq;

	if (list_empty(fired))
		return NULL;
	cq = container_of(fired->next, struct cq, fired);
	list_remove(&cq->fired);
	return cq;
}

bool nic_next_async_event(struct nic *nic, struct async_event *event)
{
	struct list *events = &nic->tp.events;
	struct event_source *s;
	uint32_t type;

	if (list_empty(events))
		return false;
	s = container_of(events->next, struct event_source, link);
	type = (uint32_t)__builtin_ctz(s->pending);
	s->pending &= ~(1u << type);
	if (!s->pending)
		list_remove(&s->link);
	*event = (struct async_event){.type = (enum event_type)type, .owner = s->owner};
	return true;
}

int nic_next_doubt(struct nic *nic)
{
	return patience_next(&nic->tp);
}

void nic_peer_gone(struct nic *nic, uint32_t slot, uint64_t now_ns)
{
	patience_gone(&nic->tp, slot, now_ns);
}

void nic_peer_lives(struct nic *nic, uint32_t slot, bool ran, uint64_t now_ns)
{
	patience_lives(&nic->tp, slot, ran, now_ns);
}

const struct nic_counters *nic_counters(const struct nic *nic)
{
	return &nic->tp.counters;
}

bool nic_ip_id(struct nic *nic, const struct pkt *pkt, uint16_t *ip_id)
{
	const struct qp *qp;
	uint32_t secret = 0;
	bool sure = false;
	struct rx rx;

	if (rx_decode(&nic->tp.decoder, pkt, 0, &rx)) {
		qp = qp_table_find(nic, rx.bth->dqpn);
		if (qp && qp->ops->seal->secret)
			secret = qp->ops->seal->secret(qp, &rx, &sure);
	}
	return (sure && icrc_check(&nic->icrc, pkt, secret, ip_id)) || icrc_check(&nic->icrc, pkt, 0, ip_id) ||
	       (secret && icrc_check(&nic->icrc, pkt, secret, ip_id));
}
