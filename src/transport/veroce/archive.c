/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection as bytes (transport/archive.h), with RoCEv2's part if the QP has one. An early packet is kept as it would
 * come from a wire, and decoded when it is loaded; so it is judged by whoever judges packets.
 */
#include "transport/archive.h"

#include <errno.h>
#include <string.h>

#include "transport/veroce/acks.h"
#include "transport/veroce/early.h"
#include "transport/message.h"
#include "transport/request.h"
#include "transport/veroce/roam.h"
#include "transport/veroce/veroce.h"
#include "wire/capseth.h"

static bool is_ring_size(uint32_t size, uint32_t max)
{
	return !(size & (size - 1)) && size <= max;
}

/* Memory of the pool; NULL, too, for no bytes. */
static void *take(struct archive *a, struct transport *tp, size_t bytes)
{
	void *mem = bytes && !a->err ? pool_get(&tp->pool, bytes) : NULL;

	if (mem)
		memset(mem, 0, bytes);
	else if (bytes)
		archive_fail(a, -ENOMEM);
	return mem;
}

/* ---- a sender ------------------------------------------------------------------------------------- */

static void sender_archive(struct archive *a, struct transport *tp, const struct veroce *vr, struct sender *s)
{
	uint32_t path_count = vr->pair->path_count;

	/* Packets leave when the pair has paths of its own. */
	tx_space_archive(a, &s->tx, &tp->pool, vr->pair->own ? path_count : 0);
	ARCHIVE(a, &s->flowlet, path, left, train_max, open);
	ARCHIVE_TIMES(a, &s->flowlet, sent_ns);
	ARCHIVE(a, s, peer_window, ackreq_packets, ackreq_now, calm, graced, retries, probes, recovering, recover_psn,
		rxt_psn, rxt_una);
	ARCHIVE_TIMES(a, s, progress_ns, active_ns, timeout_ns, from_ns, grace_ns, reo_ns, rxt_ns);
	archive_judge(a, s->flowlet.path < path_count && s->peer_window <= TX_WINDOW_MAX &&
				 is_ring_size(s->ackreq_packets, TX_WINDOW_MAX) &&
				 is_ring_size(s->ackreq_now, TX_WINDOW_MAX) && s->ackreq_packets && s->ackreq_now);
}

/* ---- a receiver ------------------------------------------------------------------------------------ */

static void meta_archive(struct archive *a, struct rx_meta *m)
{
	ARCHIVE(a, m, opcode, se, payload_len, msn, po, rkey, len, va, swap_add, compare);
}

/* An early packet of that PSN. */
static void early_archive(struct archive *a, struct transport *tp, struct receiver *in, uint32_t psn,
			  struct early_packet *k)
{
	uint8_t headers[VEROCE_HEADERS_MAX] = {0};
	uint32_t head = k ? veroce_encode_headers(headers, &k->p) : 0, bytes = k ? k->p.payload_len : 0;
	uint8_t pad = k ? k->p.bth.pad : 0;
	struct veroce_packet p;
	uint8_t *packet;

	head = archive_count(a, head, VEROCE_HEADERS_MAX);
	bytes = archive_count(a, bytes, CAPS_LARGE_BYTES);
	ARCHIVE_CALL(pad)(a, &pad, sizeof(pad));
	if (k && !a->loads) {
		archive_bytes(a, headers, head);
		if (k->payload)
			archive_bytes(a, k->payload, bytes);
		return;
	}
	packet = take(a, tp, head + bytes + 3 + ICRC_LEN);
	if (!packet)
		return;
	archive_bytes(a, packet, head);
	if (!tp->mrs.no_payload)
		archive_bytes(a, packet + head, bytes);
	if (archive_judge(a, pad <= 3 && veroce_decode(&p, packet, head + bytes + pad + ICRC_LEN)) &&
	    archive_judge(a, p.bth.psn == psn && p.payload_len == bytes && p.info->flags & (F_REQUEST | F_RESPONSE) &&
				     !(p.info->flags & F_ACK) &&
				     tp->early_bytes <= tp->config.veroce.early_bytes_max) &&
	    !early_put(tp, in, &p))
		archive_fail(a, -ENOMEM);
	pool_put(&tp->pool, packet, head + bytes + 3 + ICRC_LEN);
}

/* How the record of a PSN is kept. */
enum record { RECORD_BARE, RECORD_META, RECORD_EARLY, RECORDS };

static void record_archive(struct archive *a, struct transport *tp, struct receiver *in, uint32_t psn)
{
	struct rx_meta *m = a->loads ? NULL : rx_meta_at(&in->rx, psn), loaded = {0};
	uint8_t how = !m ? RECORD_BARE : m->early ? RECORD_EARLY : RECORD_META;

	ARCHIVE_CALL(how)(a, &how, sizeof(how));
	if (!archive_judge(a, how < RECORDS))
		return;
	if (how == RECORD_EARLY) {
		early_archive(a, tp, in, psn, m ? m->early : NULL);
		return;
	}
	if (how == RECORD_META)
		meta_archive(a, m ? m : &loaded);
	if (a->loads && !a->err && !rx_record(&in->rx, &tp->pool, psn, how == RECORD_META ? &loaded : NULL))
		archive_fail(a, -ENOMEM);
}

static void rx_space_archive(struct archive *a, struct transport *tp, struct receiver *in)
{
	uint32_t epsn = in->rx.epsn, at = 0, count;

	archive_bytes(a, &epsn, sizeof(epsn));
	if (a->loads && archive_judge(a, epsn <= PSN_MASK))
		rx_space_init(&in->rx, epsn);
	count = archive_count(a, a->loads ? 0 : rx_early(&in->rx), RX_WINDOW_MAX);
	for (uint32_t i = 0; i < count && !a->err; i++, at++) {
		while (!a->loads && !bitring_test(&in->rx.window->arrived, epsn + at))
			at++;
		archive_bytes(a, &at, sizeof(at));
		if (archive_judge(a, at < RX_WINDOW_MAX && (!a->loads || rx_judge(&in->rx, psn_add(epsn, at),
										  RX_WINDOW_MAX) == RX_NEW)))
			record_archive(a, tp, in, psn_add(epsn, at));
	}
	if (in->rx.window)
		ARCHIVE_ARRAYS(a, in->rx.window, fresh);
}

static void trims_archive(struct archive *a, struct transport *tp, struct receiver *in)
{
	uint32_t size = archive_count(a, in->trims_size, tp->config.veroce.rx_window);

	if (a->loads) {
		in->trims = take(a, tp, size * sizeof(*in->trims));
		in->trims_size = in->trims ? size : 0;
	}
	in->trims_count = archive_count(a, in->trims_count, in->trims_size);
	in->trims_sent = archive_count(a, in->trims_sent, in->trims_count);
	for (uint32_t i = 0; i < in->trims_count; i++) {
		struct trimmed *t = &in->trims[i];

		ARCHIVE(a, t, psn, tx1, path);
		archive_time32(a, &t->rx1);
		archive_judge(a, t->path < PATHS_MAX);
	}
}

static void receiver_archive(struct archive *a, struct transport *tp, struct receiver *in)
{
	rx_space_archive(a, tp, in);
	ARCHIVE(a, in, amsn, po, message, unacked, ack_packets, ack_due, asked, ce, ce_path, stalled, path, echo_tx1,
		dups, nak_due, nak_syndrome, nak_psn, ext, sack_hpsn, sack_turn, hole_due, hole_tries);
	archive_time32(a, &in->echo_rx1);
	ARCHIVE_TIMES(a, in, hole_ns, ext_ns);
	trims_archive(a, tp, in);
	archive_judge(a, in->path < PATHS_MAX && in->ce_path < PATHS_MAX && (in->amsn | in->po) <= PSN_MASK);
}

/* ---- rings of both directions of work ---------------------------------------------------------------- */

/* SQ indices of READs and atomics without a whole answer. */
static void reads_archive(struct archive *a, struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;
	struct veroce_work *w = vr->w;
	uint32_t size = archive_count(a, w->reads_size, UINT8_MAX + 1), count = (vr->reads - w->reads_done) & PSN_MASK;

	archive_judge(a, is_ring_size(size, UINT8_MAX + 1) && count <= size);
	if (a->loads) {
		w->reads = take(a, tp, size * sizeof(*w->reads));
		w->reads_size = w->reads ? size : 0;
	}
	for (uint32_t r = w->reads_done; !a->err && r != vr->reads;) {
		uint32_t *index;

		r = psn_add(r, 1);
		index = veroce_read(vr, r);
		archive_bytes(a, index, sizeof(*index));
		/* A QP in ERR asks for none of them any more. */
		archive_judge(a, qp_get_state(qp) == QPS_ERR || (*index - qp->sq.una < qp->sq.next - qp->sq.una &&
								 request_has_response(sq_at(&qp->sq, *index))));
	}
}

static bool slot_is_possible(const struct rd_resource *res, uint32_t mtu, bool begun)
{
	uint32_t packets = res->kind == F_ATOMIC ? 1 : request_packets(res->len, mtu);

	return res->len <= NIC_READ_BYTES_MAX &&
	       (begun ? ((res->psn_last - res->psn_first) & PSN_MASK) == packets - 1 && res->psn_first <= PSN_MASK
		      : res->psn_first == UINT32_MAX);
}

/* READs and atomics that were executed and are not released. */
static void slots_archive(struct archive *a, struct transport *tp, struct veroce *vr)
{
	struct veroce_work *w = vr->w;
	uint32_t size = archive_count(a, w->slots_size, UINT8_MAX + 1), count = (vr->executed - w->released) & PSN_MASK;

	archive_judge(a, is_ring_size(size, UINT8_MAX + 1) && count <= size);
	/* released <= emit - 1 <= executed */
	archive_judge(a, ((w->emit - 1 - w->released) & PSN_MASK) <= count);
	if (a->loads) {
		w->slots = take(a, tp, size * sizeof(*w->slots));
		w->slots_size = w->slots ? size : 0;
	}
	for (uint32_t r = w->released; !a->err && r != vr->executed;) {
		struct rd_resource *res;

		r = psn_add(r, 1);
		res = &w->slots[r & (size - 1)];
		rd_resource_archive(a, res);
		archive_judge(a, slot_is_possible(res, vr->mtu, psn_diff(r, w->emit) < 0) ||
					 (r == w->emit && slot_is_possible(res, vr->mtu, true)));
	}
}

/* Receive WQEs of messages that are not complete. */
static void bound_archive(struct archive *a, struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;
	struct veroce_work *w = vr->w;
	uint32_t size = archive_count(a, w->bound_size, RX_WINDOW_MAX), count = (w->rq_bound - vr->rq_done) & PSN_MASK;

	archive_judge(a, is_ring_size(size, RX_WINDOW_MAX) && count <= size);
	if (a->loads) {
		w->bound = take(a, tp, size * sizeof(struct recv_wqe *));
		w->bound_size = w->bound ? size : 0;
		w->rq_bound = vr->rq_done;
	}
	for (uint32_t n = vr->rq_done; count && !a->err; count--, n = psn_add(n, 1)) {
		struct recv_wqe **bound = &w->bound[n & (size - 1)];

		*bound = rq_archive_held(a, qp->rq, *bound);
		if (archive_judge(a, *bound != NULL))
			w->rq_bound = psn_add(n, 1);
	}
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

/* Each packet of a space is one of the message that its item names. */
static void items_judge(struct archive *a, const struct qp *qp)
{
	const struct veroce *vr = qp->veroce;
	const struct veroce_work *w = vr->w;

	for (uint32_t psn = w->q.tx.una; psn != w->q.tx.nxt && !a->err; psn = psn_add(psn, 1)) {
		uint32_t item = tx_record(&w->q.tx, psn)->item;
		const struct send_wqe *wqe = sq_at(&qp->sq, item);

		archive_judge(a, tx_record(&w->q.tx, psn)->state == TX_ACKED ||
					 (item - qp->sq.una < qp->sq.next - qp->sq.una &&
					  ((psn - wqe->psn_first) & PSN_MASK) < wqe->packets));
	}
	for (uint32_t psn = w->r.tx.una; psn != w->r.tx.nxt && !a->err; psn = psn_add(psn, 1)) {
		uint32_t item = tx_record(&w->r.tx, psn)->item;
		const struct rd_resource *res = w->slots ? &w->slots[item & (w->slots_size - 1)] : NULL;

		archive_judge(
			a,
			res && ((item - 1 - w->released) & PSN_MASK) < ((vr->executed - w->released) & PSN_MASK) &&
				((psn - res->psn_first) & PSN_MASK) <= ((res->psn_last - res->psn_first) & PSN_MASK));
	}
}

static void work_archive(struct archive *a, struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;
	struct veroce_work *w = vr->w;

	ARCHIVE(a, w, woken, served, near_bytes);
	sender_archive(a, tp, vr, &w->q);
	sender_archive(a, tp, vr, &w->r);
	receiver_archive(a, tp, &w->q_in);
	receiver_archive(a, tp, &w->r_in);
	ARCHIVE(a, &w->arrived, round, full, bytes);
	ARCHIVE(a, &w->pace, share_kbps, waits, packet_ns);
	ARCHIVE_TIMES(a, &w->pace, until_ns, next_ns);
	ARCHIVE(a, w, wqe, overlaps, overlapped, rnr_retries, rnr_again, refused, idles, let_psn, let_wqes, watch_tries,
		ask_again, ask_again_wqe, reads_done, rq_bound, released, emit);
	ARCHIVE_TIMES(a, w, rnr_until_ns, watch_ns, watch_since_ns, asked_ns, slow_ns, cnp_ns, rest_ns, hold_ns);
	ARCHIVE(a, w, asked_psn, unheard, fatal, cut_short, rtt_reply, stall_ask, slow_due, slow_psn, starved,
		hold_probe);
	ARCHIVE(a, &w->rtt, context, tx1, tx2, rx2);
	archive_time32(a, &w->rtt.rx1);
	archive_judge(a, w->fatal < RX_VERDICTS && (w->reads_done | w->rq_bound | w->released | w->emit) <= PSN_MASK);
	reads_archive(a, tp, qp);
	slots_archive(a, tp, vr);
	bound_archive(a, tp, qp);
	if (!a->loads || a->err || qp_get_state(qp) == QPS_ERR)
		return;
	archive_judge(a, qp_has_begun(qp, vr->psn_new, vr->mtu, true));
	archive_judge(a, qp_is_cursor(qp, w->wqe, w->q.tx.nxt, vr->psn_new));
	items_judge(a, qp);
}

static void connection_archive(struct archive *a, struct transport *tp, struct qp *qp)
{
	struct veroce *vr = qp->veroce;
	uint32_t ms = (uint32_t)(a->now_ns / 1000000), starved_ms = vr->starved_ms ? ms - vr->starved_ms : UINT32_MAX;
	uint64_t decide_ns = veroce_decide_ns(vr);
	bool has_work = vr->w;
	uint8_t state = vr->state;

	ARCHIVE(a, vr, psn_new, msn, rqmsn, reads, acked_msn, rq_done, executed, q_window, r_window);
	ARCHIVE(a, &vr->quiet, r_psn, q_epsn, r_epsn, q_amsn, r_amsn, q_ext, r_ext, q_calm, r_calm);
	ARCHIVE_BITS(a, vr, caps_reply, caps_ask, caps_told, caps_seals, caps_silent, cut_open, acks_rarely, cut_asked,
		     guesses, ids_kept, hold_awaits, hold_reply, holds, held, roams, roam_reply);
	ARCHIVE(a, vr, caps_tries, caps_hurries, caps, mtu, nonce, peer_nonce, hold_left, held_for_ms, held_number);
	archive_period(a, &vr->held_ms, 1000000);
	ARCHIVE_TIMES(a, vr, ask_ns);
	archive_time(a, &decide_ns);
	archive_bytes(a, &starved_ms, sizeof(starved_ms));
	if (a->loads)
		vr->starved_ms = starved_ms == UINT32_MAX ? 0 : (ms - starved_ms) | 1;
	archive_bytes(a, &state, sizeof(state));
	archive_flag(a, &has_work, sizeof(has_work));
	if (!archive_judge(a, state > VEROCE_NONE && state < VEROCE_STATES && (state == VEROCE_ROCEV2 || !qp->gbn)) ||
	    !archive_judge(a,
			   (vr->psn_new | vr->msn | vr->rqmsn | vr->reads | vr->rq_done | vr->executed) <= PSN_MASK) ||
	    !archive_judge(a, vr->mtu == qp->mtu || vr->mtu == CAPS_LARGE_BYTES))
		return;
	if (a->loads) {
		veroce_enter(qp, (enum veroce_state)state);
		if (!veroce_is_answered(vr))
			vr->decide_ns = decide_ns;
		if (has_work && !veroce_take_work(tp, qp))
			archive_fail(a, -ENOMEM);
	}
	roam_archive(a, tp, vr);
	if (!has_work || a->err)
		return;
	archive_define(a, vr->w, KIND_WORK);
	work_archive(a, tp, qp);
}

void veroce_archive(struct archive *a, struct transport *tp, struct qp *qp)
{
	struct pair *pair = archive_refer(a, qp->veroce ? qp->veroce->pair : NULL, KIND_PAIR);

	if (!pair || a->err)
		return;
	if (a->loads) {
		qp->veroce = alloc_get(&tp->alloc, sizeof(*qp->veroce));
		if (!qp->veroce) {
			archive_fail(a, -ENOMEM);
			return;
		}
		qp->veroce->pair = pair;
		pair_hold(&tp->pairs, pair);
		qp->veroce->mtu = qp->mtu;
		veroce_enter(qp, VEROCE_ROCEV2); /* which lets go of either */
	}
	gbn_archive(a, tp, qp);
	connection_archive(a, tp, qp);
}

void veroce_archive_waiting(struct archive *a, struct transport *tp)
{
	for (uint32_t i = 0; i < tp->pairs.bucket_count; i++) {
		struct list *bucket = &pair_table_buckets(&tp->pairs)[i];

		for (struct list *l = bucket->next; l != bucket; l = l->next)
			archive_list(a, &container_of(l, struct pair, link)->waiting, KIND_WORK,
				     offsetof(struct veroce_work, waiting));
	}
}
