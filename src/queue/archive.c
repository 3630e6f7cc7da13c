/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues as bytes, with what is in them. A slot of a receive queue that was loaded has been marked with its own number:
 * each slot is free, posted or with the nic, and nowhere twice.
 */
#include <assert.h>
#include <stddef.h>

#include "base/archive.h"
#include "queue/cq.h"
#include "queue/rq.h"
#include "queue/sq.h"

static_assert(sizeof(((struct send_wqe *)0)->ud) >= sizeof(struct wqe_bind), "it is the whole union");

enum { UNMARKED = UINT32_MAX };

/* The elements that fill a slot of room for max_sge, and their bytes. */
static uint64_t elements(struct archive *a, struct wqe_sge *sge, uint32_t count, uint32_t max_sge)
{
	uint64_t bytes = 0;

	if (!archive_judge(a, count <= max_sge))
		return 0;
	archive_bytes(a, sge, count * sizeof(*sge));
	for (uint32_t i = 0; i < count; i++)
		bytes += sge[i].len;
	return bytes;
}

/* ---- the send queue ------------------------------------------------------------------------------- */

static void send_wqe_archive(struct archive *a, const struct sq *sq, struct send_wqe *w)
{
	ARCHIVE(a, w, wr_id, opcode, flags, num_sge, length, imm_or_key, rkey, remote_va);
	ARCHIVE(a, w, psn_first, psn_last, packets, msn, number, done);
	archive_bytes(a, &w->ud, sizeof(w->ud));
	if (!archive_judge(a, w->opcode < WR_OPCODE_COUNT))
		return;
	if (!(w->flags & WR_INLINE))
		archive_judge(a, elements(a, w->sge, w->num_sge, sq->max_sge) == w->length);
	else if (archive_judge(a, w->length <= sq->max_inline))
		archive_bytes(a, send_wqe_inline(w), w->length);
}

void sq_archive(struct archive *a, struct sq *sq)
{
	struct sq from = {.una = sq->una, .next = sq->next, .head = sq_head(sq)};
	uint32_t released = atomic_load_explicit(&sq->released, memory_order_relaxed), head = from.head;

	ARCHIVE(a, &from, una, next);
	archive_bytes(a, &head, sizeof(head));
	archive_bytes(a, &released, sizeof(released));
	if (!archive_judge(a, head - released <= sq->capacity && head - from.una <= head - released &&
				      head - from.next <= head - from.una))
		return;
	for (uint32_t i = from.una; i != head; i++)
		send_wqe_archive(a, sq, sq_at(sq, i));
	if (a->err)
		return;
	sq->una = from.una;
	sq->next = from.next;
	atomic_store_explicit(&sq->head, head, memory_order_relaxed);
	atomic_store_explicit(&sq->released, released, memory_order_relaxed);
}

/* ---- a receive queue ------------------------------------------------------------------------------- */

static struct recv_wqe *slot_at(const struct rq *rq, uint32_t index)
{
	return (struct recv_wqe *)(rq->slots + (size_t)index * rq->stride);
}

/* The number of a slot that has none yet. */
static struct recv_wqe *take(struct archive *a, const struct rq *rq, uint32_t *index)
{
	struct recv_wqe *w;

	archive_bytes(a, index, sizeof(*index));
	if (!archive_judge(a, *index < rq->capacity) || a->err)
		return NULL;
	w = slot_at(rq, *index);
	if (!archive_judge(a, w->index == UNMARKED))
		return NULL;
	if (a->loads)
		w->index = *index;
	return w;
}

static void fill(struct archive *a, const struct rq *rq, struct recv_wqe *w)
{
	ARCHIVE(a, w, wr_id, num_sge, length);
	archive_judge(a, elements(a, w->sge, w->num_sge, rq->max_sge) == w->length);
}

void rq_archive(struct archive *a, struct rq *rq)
{
	uint32_t posted = archive_count(a, rq_posted(rq), rq->capacity);
	uint32_t unused = archive_count(a, atomic_load_explicit(&rq->free_head, memory_order_relaxed) - rq->free_tail,
					rq->capacity);

	for (uint32_t i = 0; a->loads && i < rq->capacity; i++)
		slot_at(rq, i)->index = UNMARKED;
	ARCHIVE(a, rq, posted_tail, free_tail);
	for (uint32_t i = rq->posted_tail; i != rq->posted_tail + posted; i++) {
		struct recv_wqe *w = take(a, rq, &rq->posted[i & rq->mask]);

		if (w)
			fill(a, rq, w);
	}
	for (uint32_t i = rq->free_tail; i != rq->free_tail + unused && !a->err; i++)
		take(a, rq, &rq->posted[(size_t)rq->mask + 1 + (i & rq->mask)]);
	if (!a->loads)
		return;
	/* After an error it is empty. */
	atomic_store_explicit(&rq->posted_head, rq->posted_tail + (a->err ? 0 : posted), memory_order_relaxed);
	atomic_store_explicit(&rq->free_head, rq->free_tail + (a->err ? 0 : unused), memory_order_relaxed);
}

struct recv_wqe *rq_archive_held(struct archive *a, struct rq *rq, struct recv_wqe *held)
{
	bool is_held = held;
	uint32_t index = is_held ? held->index : 0;
	struct recv_wqe *w;

	archive_flag(a, &is_held, sizeof(is_held));
	if (!is_held || a->err)
		return NULL;
	w = take(a, rq, &index);
	if (w)
		fill(a, rq, w);
	return w;
}

/* ---- a completion queue ---------------------------------------------------------------------------- */

void cq_archive(struct archive *a, struct cq *cq)
{
	ARCHIVE_ATOMICS(a, cq, state, tail, solicited_end);
	ARCHIVE(a, cq, overrun);
	archive_owner(a, &cq->owner);
	ARCHIVE(a, &cq->event, pending);
	archive_owner(a, &cq->event.owner);
	if (archive_judge(a, cq_depth(cq) <= cq->capacity && (uint32_t)atomic_load(&cq->state) <= (CQ_ARMED | CQ_TOLD)))
		return;
	atomic_store_explicit(&cq->state, 0, memory_order_relaxed);
	atomic_store_explicit(&cq->tail, 0, memory_order_relaxed);
}

/* Whether polling a completion up to there releases slots of complete WQEs alone. */
static bool is_behind(const struct sq *sq, uint32_t end)
{
	return sq->una - end <= sq->una - atomic_load_explicit(&sq->released, memory_order_relaxed);
}

void cq_archive_entries(struct archive *a, struct cq *cq, uint32_t sq_kind)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed), depth = cq_depth(cq);

	for (uint32_t i = tail; i != tail + depth && !a->err; i++) {
		struct cqe *e = &cq->ring[i & cq->mask];

		ARCHIVE(a, e, wr_id, sq_end, status, opcode, vendor_err, byte_len, imm_or_key, qpn, src_qp, flags,
			pkey_index, sl, solicited);
		ARCHIVE_TIMES(a, e, timestamp_ns);
		archive_owner(a, &e->qp_owner);
		ARCHIVE_REF(a, e->sq, sq_kind);
		archive_judge(a, !e->sq || is_behind(e->sq, e->sq_end));
	}
}
