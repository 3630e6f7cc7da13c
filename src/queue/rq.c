/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive queue's two rings. Every slot number is at one of four places: in `free`, in `posted`,
 * with the poster between rq_slot() and rq_post(), where it still is the oldest of `free`, or with
 * the nic between rq_take() and rq_release(). Neither ring can overflow, for there are no more slot
 * numbers than entries.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "queue/rq.h"

enum { SLOT_ALIGN = 64 };

static uint32_t entries_for(uint32_t max_wr)
{
	uint32_t n = 1;

	while (n < max_wr)
		n *= 2;
	return n;
}

static size_t rings_bytes(const struct rq *rq)
{
	return 2 * ((size_t)rq->mask + 1) * sizeof(uint32_t);
}

/* The entry of the ring of free slots with that free-running index. */
static uint32_t *free_at(const struct rq *rq, uint32_t index)
{
	return &rq->posted[(size_t)rq->mask + 1 + (index & rq->mask)];
}

static struct recv_wqe *slot_at(const struct rq *rq, uint32_t index)
{
	return (struct recv_wqe *)(rq->slots + (size_t)index * rq->stride);
}

int rq_init(struct rq *rq, const struct alloc *alloc, uint32_t max_wr, uint32_t max_sge)
{
	uint64_t stride = sizeof(struct recv_wqe) + (uint64_t)max_sge * sizeof(struct wqe_sge);

	stride = (stride + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
	if (max_wr > (uint32_t)1 << 31 || stride > UINT32_MAX)
		return -ENOMEM;

	struct rq q = {
		.mask = entries_for(max_wr) - 1,
		.stride = (uint32_t)stride,
		.capacity = max_wr,
		.max_sge = max_sge,
	};

	if (max_wr) {
		q.slots = alloc_get(alloc, (size_t)max_wr * stride);
		if (!q.slots)
			return -ENOMEM;
		q.posted = alloc_get(alloc, rings_bytes(&q));
		if (!q.posted) {
			alloc_put(alloc, q.slots, (size_t)max_wr * stride);
			return -ENOMEM;
		}
	}
	*rq = q;
	rq_reset(rq);
	return 0;
}

void rq_fini(struct rq *rq, const struct alloc *alloc)
{
	alloc_put(alloc, rq->posted, rings_bytes(rq));
	alloc_put(alloc, rq->slots, (size_t)rq->capacity * rq->stride);
	*rq = (struct rq){0};
}

struct rq *rq_create(const struct alloc *alloc, uint32_t max_wr, uint32_t max_sge)
{
	struct rq *rq = alloc_get(alloc, sizeof(*rq));

	if (rq && rq_init(rq, alloc, max_wr, max_sge)) {
		alloc_put(alloc, rq, sizeof(*rq));
		return NULL;
	}
	return rq;
}

void rq_destroy(struct rq *rq, const struct alloc *alloc)
{
	rq_fini(rq, alloc);
	alloc_put(alloc, rq, sizeof(*rq));
}

void rq_reset(struct rq *rq)
{
	for (uint32_t i = 0; i < rq->capacity; i++)
		*free_at(rq, i) = i;
	rq->free_tail = 0;
	rq->posted_tail = 0;
	atomic_store_explicit(&rq->free_head, rq->capacity, memory_order_relaxed);
	atomic_store_explicit(&rq->posted_head, 0, memory_order_relaxed);
}

/* Marks the slots that are posted or free; the nic has the others. */
static void mark(const struct rq *rq, uint8_t *is_here)
{
	uint32_t posted = atomic_load_explicit(&rq->posted_head, memory_order_acquire);
	uint32_t free_head = atomic_load_explicit(&rq->free_head, memory_order_acquire);

	for (uint32_t i = rq->posted_tail; i != posted; i++)
		is_here[rq->posted[i & rq->mask]] = 1;
	for (uint32_t i = rq->free_tail; i != free_head; i++)
		is_here[*free_at(rq, i)] = 1;
}

/* The WQEs that the nic has get the first numbers, those that are posted the next ones. */
static void move(struct rq *rq, struct rq *to, const uint8_t *is_here, uint32_t posted)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < rq->capacity; i++) {
		if (!is_here[i])
			slot_at(rq, i)->index = n++;
	}
	for (uint32_t i = 0; i < posted; i++, n++) {
		struct recv_wqe *w = slot_at(to, n);

		memcpy(w, slot_at(rq, rq->posted[(rq->posted_tail + i) & rq->mask]), rq->stride);
		w->index = n;
		to->posted[i] = n;
	}
	to->free_tail = n;
	atomic_store_explicit(&to->posted_head, posted, memory_order_relaxed);
}

int rq_resize(struct rq *rq, const struct alloc *alloc, uint32_t max_wr, struct rq_slots *before)
{
	uint32_t posted = rq_posted(rq);
	uint32_t idle = atomic_load_explicit(&rq->free_head, memory_order_acquire) - rq->free_tail;
	uint32_t capacity = rq->capacity, taken = capacity - posted - idle;
	uint8_t *is_here;
	struct rq to;
	int err;

	if (max_wr < posted + taken)
		return -EINVAL;
	if (taken && before->slots)
		return -EBUSY;
	is_here = alloc_get(alloc, capacity);
	err = is_here ? rq_init(&to, alloc, max_wr, rq->max_sge) : -ENOMEM;
	if (!err) {
		mark(rq, is_here);
		move(rq, &to, is_here, posted);
		rq_slots_free(before, alloc);
		*before = (struct rq_slots){rq->slots, (size_t)capacity * rq->stride};
		alloc_put(alloc, rq->posted, rings_bytes(rq));
		*rq = to;
		if (!taken)
			rq_slots_free(before, alloc);
	}
	alloc_put(alloc, is_here, capacity);
	return err;
}

void rq_slots_free(struct rq_slots *s, const struct alloc *alloc)
{
	alloc_put(alloc, s->slots, s->bytes);
	*s = (struct rq_slots){0};
}

struct recv_wqe *rq_slot(struct rq *rq)
{
	uint32_t head = atomic_load_explicit(&rq->free_head, memory_order_acquire);
	struct recv_wqe *w;

	if (head == rq->free_tail)
		return NULL;
	w = slot_at(rq, *free_at(rq, rq->free_tail));
	/*
	 * Set here and not when the queue is made, so that slots that are never used are never
	 * touched.
	 */
	w->index = *free_at(rq, rq->free_tail);
	return w;
}

void rq_post(struct rq *rq, struct recv_wqe *w)
{
	uint32_t head = atomic_load_explicit(&rq->posted_head, memory_order_relaxed);

	assert(w->index == *free_at(rq, rq->free_tail));
	rq->free_tail++;
	rq->posted[head & rq->mask] = w->index;
	atomic_store_explicit(&rq->posted_head, head + 1, memory_order_release);
}

const struct recv_wqe *rq_peek(const struct rq *rq)
{
	return rq_posted(rq) ? slot_at(rq, rq->posted[rq->posted_tail & rq->mask]) : NULL;
}

struct recv_wqe *rq_take(struct rq *rq)
{
	if (!rq_posted(rq))
		return NULL;
	return slot_at(rq, rq->posted[rq->posted_tail++ & rq->mask]);
}

void rq_release(struct rq *rq, struct recv_wqe *w)
{
	uint32_t head = atomic_load_explicit(&rq->free_head, memory_order_relaxed);

	assert(w->index < rq->capacity);
	*free_at(rq, head) = w->index;
	atomic_store_explicit(&rq->free_head, head + 1, memory_order_release);
}

uint32_t rq_posted(const struct rq *rq)
{
	return atomic_load_explicit(&rq->posted_head, memory_order_acquire) - rq->posted_tail;
}
