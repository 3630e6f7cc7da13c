/* SPDX-License-Identifier: BSD-2-Clause */
/* See archive.h. Settings come from the nic that loads, but for the source ports, which the back end may have chosen. */
#include "transport/archive.h"

#include "transport/request.h"

enum { TIMEOUT_MAX = 31, EVENT_TYPES = 32 };

/* Loading, what is alive has been counted. */
static void counters_archive(struct archive *a, struct nic_counters *n)
{
	struct nic_counters all = *n;

	archive_bytes(a, &all, sizeof(all));
	if (!a->loads || a->err)
		return;
	all.qps = n->qps;
	all.cqs = n->cqs;
	all.mrs = n->mrs;
	all.mws = n->mws;
	all.pds = n->pds;
	all.srqs = n->srqs;
	*n = all;
}

static void rxshare_archive(struct archive *a, struct rxshare *s)
{
	ARCHIVE_TIMES(a, s, round_ns, told_ns);
	ARCHIVE(a, s, length_ns, round, share_kbps, packet_ns, full_at, bytes, full_bytes, top_bytes, senders, full,
		crowd, hosts, left_ns, came_ns);
	archive_judge(a, !s->line_kbps || (s->length_ns && s->round));
}

/* A process of this host. What it was lent is back. */
static void peer_archive(struct archive *a, struct transport *tp, uint32_t slot)
{
	bool local = tp->peers[slot].local;
	struct peer *p;

	archive_flag(a, &local, sizeof(local));
	if (!local || a->err)
		return;
	p = peer_at(tp, slot);
	ARCHIVE_ATOMICS(a, p, near);
	ARCHIVE(a, p, full);
	ARCHIVE_TIMES(a, p, gone_ns, waits_ns, ran_ns);
}

void transport_archive(struct archive *a, struct transport *tp)
{
	bool hold_acks = tp->hold_acks;

	ARCHIVE(a, &tp->config, paths);
	ARCHIVE_ARRAYS(a, &tp->config, sport_ipv4, sport_ipv6);
	if (!archive_judge(a, tp->config.paths && tp->config.paths <= PATHS_MAX))
		tp->config.paths = 1;
	ARCHIVE(a, tp, active_sls, turn, paused_sls, secret_serial, streams_ended, hold_ms, hold_number, hold_awaited,
		roam_number);
	ARCHIVE_ARRAYS(a, tp, secret);
	ARCHIVE_TIMES(a, tp, back_ns);
	ARCHIVE(a, &tp->tx, turn);
	ARCHIVE(a, &tp->lender, lot);
	archive_judge(a, tp->turn < QP_SLS);
	archive_flag(a, &hold_acks, sizeof(hold_acks));
	tp->hold_acks = hold_acks;
	tp->acks[ACK_HELD].delay_ns = hold_acks ? tp->config.ack_delay_ns : 0;
	rxshare_archive(a, &tp->rxshare);
	for (uint32_t slot = 0; slot < PEER_SLOTS; slot++)
		peer_archive(a, tp, slot);
	pair_table_archive(a, &tp->pairs);
}

void transport_archive_pairs(struct archive *a, struct transport *tp, uint16_t type)
{
	pair_archive_all(a, &tp->pairs, type, KIND_PAIR);
}

/* ---- what waits ---------------------------------------------------------------------------------- */

static void events_archive(struct archive *a, struct list *events)
{
	archive_list(a, events, KIND_EVENTS, offsetof(struct event_source, link));
	for (struct list *l = events->next; l != events; l = l->next)
		archive_judge(a, container_of(l, struct event_source, link)->pending != 0);
}

/* The peers whose owners are to be asked about them, by slot. */
static void doubted_archive(struct archive *a, struct transport *tp)
{
	struct list *l = &tp->doubted;
	uint32_t count = 0;

	for (struct list *i = l->next; !a->loads && i != l; i = i->next)
		count++;
	for (count = archive_count(a, count, PEER_SLOTS); count && !a->err; count--) {
		uint8_t slot = 0;

		l = l->next;
		if (!a->loads)
			slot = container_of(l, struct peer, doubted)->slot;
		archive_bytes(a, &slot, sizeof(slot));
		if (!archive_judge(a, slot < PEER_SLOTS) || !a->loads)
			continue;
		if (archive_judge(a, tp->peers[slot].local && list_empty(&tp->peers[slot].doubted)))
			list_append(&tp->doubted, &tp->peers[slot].doubted);
		l = &tp->doubted;
	}
}

void transport_archive_waiting(struct archive *a, struct transport *tp)
{
	veroce_archive_waiting(a, tp);
	archive_list(a, &tp->answering, KIND_QP, offsetof(struct qp, active));
	for (struct list *l = tp->answering.next; a->loads && l != &tp->answering; l = l->next)
		container_of(l, struct qp, active)->answering = true;
	for (int sl = 0; sl < QP_SLS; sl++) {
		archive_list(a, &tp->active[sl], KIND_QP, offsetof(struct qp, active));
		archive_judge(a, list_empty(&tp->active[sl]) || tp->active_sls >> sl & 1);
	}
	archive_list(a, &tp->paused, KIND_QP, offsetof(struct qp, active));
	for (int i = ACK_HELD; i < ACK_WAITS; i++)
		archive_list(a, &tp->acks[i].qps, KIND_QP, offsetof(struct qp, held));
	for (uint32_t slot = 0; slot < PEER_SLOTS; slot++) {
		if (tp->peers[slot].local)
			archive_list(a, &tp->peers[slot].held_up, KIND_QP, offsetof(struct qp, active));
	}
	doubted_archive(a, tp);
	archive_list(a, &tp->fired_cqs, KIND_CQ, offsetof(struct cq, fired));
	events_archive(a, &tp->events);
	timers_archive(a, &tp->timers, KIND_QP, offsetof(struct qp, timer));
	ARCHIVE(a, tp, qp_changes);
	counters_archive(a, &tp->counters);
}

/* ---- a QP -------------------------------------------------------------------------------------------- */

/* The caller has the objects that it uses, its number, and the queues' sizes. */
void qp_archive(struct archive *a, struct qp *qp)
{
	uint8_t state = (uint8_t)qp_get_state(qp);

	archive_bytes(a, &state, sizeof(state));
	if (archive_judge(a, state < QPS_COUNT) && a->loads)
		atomic_store_explicit(&qp->state, state, memory_order_relaxed);
	ARCHIVE(a, qp, dest_qpn, mtu, pkey, failed_wqe, failed, ack_wait, locals_wait, secret, qkey, access, rq_psn,
		sq_psn, rx_words, tx_words, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, timeout, retry_cnt,
		rnr_retry, port);
	ARCHIVE_ATOMICS(a, qp, in_flight);
	ARCHIVE_BITS(a, qp, sq_draining, sqd_notify, comm_est, muted, last_turn, hangs);
	ARCHIVE_TIMES(a, qp, ack_since_ns);
	ARCHIVE_ARRAYS(a, &qp->flow, src, dst);
	ARCHIVE(a, &qp->flow, flow_label, ifindex, sport, dport, tos, ttl, sl, neighbour);
	ARCHIVE(a, &qp->av, dlid, sgid_index, hop_limit, port, is_global, static_rate, src_path_bits, traffic_class);
	ARCHIVE(a, &qp->event, pending);
	archive_owner(a, &qp->event.owner);
	if (!archive_judge(a, qp->ack_wait < ACK_WAITS && qp->flow.sl < QP_SLS && qp->timeout <= TIMEOUT_MAX)) {
		qp->flow.sl = 0;
		qp->timeout = 0;
	}
	sq_archive(a, &qp->sq);
}

bool qp_has_begun(const struct qp *qp, uint32_t end, uint32_t mtu, bool read_is_one)
{
	uint32_t psn = end;

	for (uint32_t i = qp->sq.una; i != qp->sq.next; i++) {
		const struct send_wqe *w = sq_at(&qp->sq, i);
		bool is_one = request_has_response(w) && (read_is_one || !request_is_read(w));
		uint32_t packets = request_is_local(w) ? 0 : is_one ? 1 : request_packets(w->length, mtu);

		if (i == qp->sq.una)
			psn = w->psn_first;
		if (w->psn_first != psn || w->packets != packets || w->psn_last != ((psn + packets - 1) & PSN_MASK))
			return false;
		psn = psn_add(psn, packets);
	}
	return psn == end;
}

bool qp_is_cursor(const struct qp *qp, uint32_t index, uint32_t psn, uint32_t end)
{
	const struct send_wqe *w = sq_at(&qp->sq, index);

	if (index == qp->sq.next)
		return psn == end;
	return qp->sq.next - index <= qp->sq.next - qp->sq.una && ((psn - w->psn_first) & PSN_MASK) < w->packets;
}
