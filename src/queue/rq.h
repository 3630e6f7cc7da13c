/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive queue, a QP's own or shared (SRQ): slots handed back and forth through two rings of slot
 * numbers, posted (program -> nic) and free (nic -> program), so WQEs may be completed in another
 * order than they were taken, which an SRQ needs. One poster at a time, one nic, no lock.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/alloc.h"
#include "queue/wqe.h"

struct rq {
	uint8_t *slots;
	uint32_t *posted; /* and behind it the ring of free slots, as long */
	uint32_t mask;    /* of both rings */
	uint32_t stride;
	uint32_t capacity;
	uint32_t max_sge;

	_Atomic uint32_t posted_head; /* poster writes */
	uint32_t posted_tail;         /* nic only, but see rq_posted() */
	_Atomic uint32_t free_head;   /* nic writes */
	uint32_t free_tail;           /* poster only */
};

/* The slots of a queue that was resized. */
struct rq_slots {
	uint8_t *slots; /* NULL: none */
	size_t bytes;
};

/* Room for so many WQEs, each with so many SGEs. 0, or -ENOMEM with nothing to free. */
int rq_init(struct rq *, const struct alloc *, uint32_t max_wr, uint32_t max_sge);
void rq_fini(struct rq *, const struct alloc *);
/* One in memory of its own, or NULL. */
struct rq *rq_create(const struct alloc *, uint32_t max_wr, uint32_t max_sge);
void rq_destroy(struct rq *, const struct alloc *);
/* Every slot is free again; neither side may be using the queue, no WQE may be held. */
void rq_reset(struct rq *);

/*
 * Another capacity. Neither side may be using the queue. WQEs that are posted stay so, in their order; those that the
 * nic has taken stay where they are, in memory that goes to *before. -EINVAL: there are more than max_wr of both;
 * -EBUSY: *before still has WQEs that are taken; -ENOMEM.
 */
int rq_resize(struct rq *, const struct alloc *, uint32_t max_wr, struct rq_slots *before);
void rq_slots_free(struct rq_slots *, const struct alloc *);

/*
 * Poster: rq_slot() is a free slot to fill or NULL when the queue is full; rq_post() gives it to the
 * nic (visible at once). A slot that was not posted is given again by the next rq_slot().
 */
struct recv_wqe *rq_slot(struct rq *);
void rq_post(struct rq *, struct recv_wqe *);

/* Nic: the oldest posted WQE, taken out, or NULL; and back when it is completed. */
struct recv_wqe *rq_take(struct rq *);
/* Nic: the WQE that rq_take() would give; it stays in the queue. */
const struct recv_wqe *rq_peek(const struct rq *);
void rq_release(struct rq *, struct recv_wqe *);

struct archive;
/*
 * Poster and nic held off: which slots are posted, with their WQEs, and which are free (base/archive.h), of a queue as
 * rq_init() made it. Then each WQE that the nic holds, or NULL; loading, NULL too after an error.
 */
void rq_archive(struct archive *, struct rq *);
struct recv_wqe *rq_archive_held(struct archive *, struct rq *, struct recv_wqe *);
/* WQEs posted and not taken. Nic only. */
uint32_t rq_posted(const struct rq *);
