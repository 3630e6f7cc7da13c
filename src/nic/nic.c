/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The four calls, and the doorbells between posters and the nic.
 *
 * A doorbell is one push onto a lock-free stack, made once until it is heard: `rung` is cleared
 * before the send queue's head is read, so a WQE posted after that rings again.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/siphash.h"
#include "nic/state.h"
#include "wire/packet.h"
#include "wire/rocev2.h"

struct nic *nic_create(const struct nic_config *c)
{
	struct nic *nic = alloc_get(&c->alloc, sizeof(*nic));
	uint64_t half[2];

	if (!nic)
		return NULL;
	nic->tp.alloc = c->alloc;
	list_init(&nic->tp.active);
	list_init(&nic->tp.held_acks);
	list_init(&nic->tp.fired_cqs);
	list_init(&nic->tp.events);
	list_init(&nic->pds);
	list_init(&nic->cqs);
	list_init(&nic->srqs);
	nic->tp.window_bytes = c->window_bytes;
	nic->tp.ack_delay_ns = c->ack_delay_ns;
	nic->tp.tx.train_max = c->train_max && c->train_max < PKT_TRAIN_MAX ? c->train_max
									    : PKT_TRAIN_MAX;
	nic->qpn_base = c->qpn_slot << NIC_QPN_BITS;
	/* Keys and QPNs must not tell of each other, so each has a secret of its own. */
	half[0] = siphash_u64(c->secret, 0);
	half[1] = siphash_u64(c->secret, 1);
	memcpy(nic->qpn_secret, half, sizeof(half));
	nic->udp_port = c->udp_port ? c->udp_port : ROCEV2_UDP_PORT;
	nic->sport_ipv4 = c->sport_ipv4;
	nic->sport_ipv6 = c->sport_ipv6;
	nic->gid_count = c->gid_count < NIC_GIDS_MAX ? c->gid_count : NIC_GIDS_MAX;
	memcpy(nic->gids, c->gids, nic->gid_count * sizeof(nic->gids[0]));
	nic->qps = alloc_get(&c->alloc, sizeof(nic->qps[0]) << NIC_QPN_BITS);
	if (!nic->qps)
		goto free_nic;
	nic->tp.tx.arena = alloc_get(&c->alloc, TX_ARENA_BYTES);
	if (!nic->tp.tx.arena)
		goto free_qps;
	if (mr_table_init(&nic->tp.mrs, &nic->tp.alloc, c->secret))
		goto free_arena;
	return nic;

free_arena:
	alloc_put(&c->alloc, nic->tp.tx.arena, TX_ARENA_BYTES);
free_qps:
	alloc_put(&c->alloc, nic->qps, sizeof(nic->qps[0]) << NIC_QPN_BITS);
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
	for (uint32_t i = 0; nic->tp.counters.qps && i < NIC_MAX_QP; i++) {
		if (nic->qps[i])
			nic_qp_destroy(nic, nic->qps[i]);
	}
	while (!list_empty(&nic->srqs))
		nic_srq_destroy(nic, &container_of(nic->srqs.next, struct nic_srq, link)->srq);
	while (!list_empty(&nic->cqs))
		nic_cq_destroy(nic, &container_of(nic->cqs.next, struct nic_cq, link)->cq);
	mr_table_fini(&nic->tp.mrs);
	while (!list_empty(&nic->pds)) {
		struct nic_pd *p = container_of(nic->pds.next, struct nic_pd, link);

		p->pd.users = 0;
		nic_pd_free(nic, &p->pd);
	}
	alloc_put(&alloc, nic->tp.tx.arena, TX_ARENA_BYTES);
	alloc_put(&alloc, nic->qps, sizeof(nic->qps[0]) << NIC_QPN_BITS);
	alloc_put(&alloc, nic, sizeof(*nic));
}

/* ---- packets in ------------------------------------------------------------------------------ */

static const uint8_t service_of_type[] = {[QPT_RC] = SVC_RC, [QPT_UC] = SVC_UC, [QPT_UD] = SVC_UD};

/* IBTA 10.9.3: the numbers agree and at least one side is a full member (bit 15). */
static bool pkey_matches(uint16_t theirs, uint16_t ours)
{
	return !((theirs ^ ours) & 0x7fff) && (theirs | ours) & 0x8000 && theirs & 0x7fff;
}

static bool receives(enum qp_state state)
{
	return state == QPS_RTR || state == QPS_RTS || state == QPS_SQD || state == QPS_SQE;
}

/* A connected QP hears its peer alone, at the address it was told (IBTA A17.4.2, 9.6.1.2). */
static bool is_from_peer(const struct qp *qp, const struct flow *flow)
{
	return qp->type == QPT_UD || (!memcmp(flow->src, qp->flow.dst, sizeof(flow->src)) &&
				      !memcmp(flow->dst, qp->flow.src, sizeof(flow->dst)));
}

int nic_input(struct nic *nic, const struct pkt *pkt, uint64_t now_ns)
{
	struct nic_counters *n = &nic->tp.counters;
	const struct opcode_info *info;
	uint32_t header_len, payload_len;
	struct bth bth;
	struct qp *qp;
	uint16_t ip_id;

	if (!opcode_judge_length(pkt->data, pkt->len, &info, &bth, &header_len, &payload_len) ||
	    bth.tver) {
		n->rx_malformed++;
		return -EBADMSG;
	}
	if (!icrc_check(&nic->icrc, pkt, &ip_id)) {
		n->rx_icrc_errors++;
		return -EBADMSG;
	}
	n->rx_packets++;
	n->rx_bytes += pkt->len;
	if (opcode_service(bth.opcode) == SVC_CNP)
		return 0; /* nothing here reacts to congestion notification yet */
	qp = qp_table_find(nic, bth.dqpn);
	if (!qp || !receives(qp_get_state(qp))) {
		n->rx_no_qp++;
		return 0;
	}
	if (opcode_service(bth.opcode) != service_of_type[qp->type] ||
	    !pkey_matches(bth.pkey, qp->pkey) || !is_from_peer(qp, pkt->flow)) {
		n->rx_wrong_source++;
		return 0;
	}
	qp->ops->input(&nic->tp, qp, pkt, &bth, info, pkt->data, pkt->data + header_len,
		       payload_len, now_ns);
	return 0;
}

/* ---- packets out ----------------------------------------------------------------------------- */

void nic_doorbell(struct nic *nic, struct qp *qp)
{
	if (atomic_exchange_explicit(&qp->rung, true, memory_order_seq_cst))
		return;
	qp->rung_next = atomic_load_explicit(&nic->rung, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&nic->rung, &qp->rung_next, qp,
						      memory_order_seq_cst, memory_order_relaxed))
		;
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

/* ACKs that have waited long enough, or need not wait. */
static void release_held_acks(struct nic *nic, uint64_t now_ns)
{
	struct list *held = &nic->tp.held_acks;

	while (!list_empty(held)) {
		struct qp *qp = container_of(held->next, struct qp, held);

		if (nic->tp.hold_acks && qp->rsp.ack_since_ns + nic->tp.ack_delay_ns > now_ns)
			return;
		list_remove(&qp->held);
		qp_activate(&nic->tp, qp);
	}
}

size_t nic_output(struct nic *nic, struct pkt *burst, size_t max, uint64_t now_ns)
{
	struct transport *tp = &nic->tp;
	size_t count;

	nic_hear_doorbells(nic);
	release_held_acks(nic, now_ns);
	if (list_empty(&tp->active))
		return 0;
	tx_start(&tp->tx, burst, max);
	while (!list_empty(&tp->active)) {
		struct qp *qp = container_of(tp->active.next, struct qp, active);

		list_remove(&qp->active);
		if (!qp->ops->output(tp, qp, now_ns))
			continue;
		qp_activate(tp, qp);
		if (!tx_room(&tp->tx, NIC_MTU_BYTES_MAX + TX_HEADROOM_MAX))
			break;
	}
	count = tx_finish(&tp->tx);
	tp->counters.tx_packets += count;
	tp->counters.tx_bytes += tp->tx.bytes;
	return count;
}

void nic_hold_acks(struct nic *nic, bool hold)
{
	nic->tp.hold_acks = hold;
}

/* ---- time ------------------------------------------------------------------------------------ */

uint64_t nic_deadline(const struct nic *nic)
{
	uint64_t deadline = timers_deadline(&nic->tp.timers);

	if (!list_empty(&nic->tp.active) || nic_has_doorbells(nic))
		return 0;
	if (!list_empty(&nic->tp.held_acks)) {
		const struct qp *qp = container_of(nic->tp.held_acks.next, struct qp, held);
		uint64_t due = qp->rsp.ack_since_ns +
			       (nic->tp.hold_acks ? nic->tp.ack_delay_ns : 0);

		if (due < deadline)
			deadline = due;
	}
	return deadline;
}

void nic_expire(struct nic *nic, uint64_t now_ns)
{
	struct timer *t;

	while ((t = timers_take_due(&nic->tp.timers, now_ns))) {
		struct qp *qp = container_of(t, struct qp, timer);

		qp->ops->expire(&nic->tp, qp, now_ns);
	}
}

/* ---- what happened --------------------------------------------------------------------------- */

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

const struct nic_counters *nic_counters(const struct nic *nic)
{
	return &nic->tp.counters;
}

bool nic_ip_id(struct nic *nic, const struct pkt *pkt, uint16_t *ip_id)
{
	return icrc_check(&nic->icrc, pkt, ip_id);
}
