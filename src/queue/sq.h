/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Send queue: a ring that one poster at a time fills and the nic empties, without a lock between
 * them.
 *
 * Indices run freely over 32 bits. [una, head) are posted and not completed; `released` follows the
 * completions that the program has polled, so a program that posts until the queue is full never
 * overruns a CQ as large as the queue, as with hardware.
 *
 *     released <= una <= next <= head <= released + capacity
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/alloc.h"
#include "queue/wqe.h"

struct sq {
	uint8_t *ring;
	uint32_t mask;     /* slots - 1 */
	uint32_t capacity; /* WRs that fit, <= slots */
	uint16_t stride;   /* bytes a slot */
	uint16_t max_sge;
	uint16_t max_inline;

	_Atomic uint32_t head;     /* poster writes */
	_Atomic uint32_t released; /* poller writes */
	uint32_t una;              /* nic only: oldest not completed */
	uint32_t next;             /* nic only: first whose sending has not started */
};

/*
 * Nobody uses it yet. max_sge, max_inline: what a slot must hold (inline bytes and SGEs share the space). 0 or -ENOMEM.
 * max_wr 0 makes a queue that is always full.
 */
int sq_init(struct sq *, const struct alloc *, uint32_t max_wr, uint32_t max_sge, uint32_t max_inline);
/* Nobody uses it any more. */
void sq_fini(struct sq *, const struct alloc *);
/* Poster, nic and poller held off: empties the ring. */
void sq_reset(struct sq *);

struct archive;
/* Poster, nic and poller held off: what is posted and not complete (base/archive.h), of a queue as sq_init() made it. */
void sq_archive(struct archive *, struct sq *);

/* Poster or nic: the slot with that index, which is theirs: the poster's from head on, the nic's before it. */
static inline struct send_wqe *sq_at(const struct sq *sq, uint32_t index)
{
	return (struct send_wqe *)(sq->ring + (size_t)(index & sq->mask) * sq->stride);
}

/* Poster: the slot of the n-th WR of a chain being built (0 first), or NULL when the queue is full. */
static inline struct send_wqe *sq_slot(struct sq *sq, uint32_t n)
{
	uint32_t head = atomic_load_explicit(&sq->head, memory_order_relaxed) + n;
	uint32_t used = head - atomic_load_explicit(&sq->released, memory_order_acquire);

	return used < sq->capacity ? sq_at(sq, head) : NULL;
}

/* Poster: makes n filled slots visible to the nic at once. */
static inline void sq_post(struct sq *sq, uint32_t n)
{
	uint32_t head = atomic_load_explicit(&sq->head, memory_order_relaxed);

	atomic_store_explicit(&sq->head, head + n, memory_order_release);
}

/* Nic: behind the newest WQE that was posted, whose bytes can be read. */
static inline uint32_t sq_head(const struct sq *sq)
{
	return atomic_load_explicit(&sq->head, memory_order_acquire);
}
