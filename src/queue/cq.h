/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queue: a ring the nic fills and one poller at a time empties, without a lock between
 * them, and the notification state of IBTA 11.4.2.2.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/list.h"
#include "queue/event.h"
#include "queue/sq.h"

/* The numbers of enum ibv_wc_status. */
enum wc_status {
	WC_SUCCESS = 0,
	WC_LOC_LEN_ERR = 1,
	WC_LOC_QP_OP_ERR = 2,
	WC_LOC_PROT_ERR = 4,
	WC_WR_FLUSH_ERR = 5,
	WC_MW_BIND_ERR = 6,
	WC_BAD_RESP_ERR = 7,
	WC_LOC_ACCESS_ERR = 8,
	WC_REM_INV_REQ_ERR = 9,
	WC_REM_ACCESS_ERR = 10,
	WC_REM_OP_ERR = 11,
	WC_RETRY_EXC_ERR = 12,
	WC_RNR_RETRY_EXC_ERR = 13,
	WC_GENERAL_ERR = 21
};

/* The numbers of enum ibv_wc_opcode. */
enum wc_opcode {
	WC_SEND = 0,
	WC_WRITE = 1,
	WC_READ = 2,
	WC_CMP_SWAP = 3,
	WC_FETCH_ADD = 4,
	WC_BIND_MW = 5,
	WC_LOCAL_INV = 6,
	WC_FLUSH = 8,
	WC_ATOMIC_WRITE = 9,
	WC_RECV = 128,
	WC_RECV_RDMA_WITH_IMM = 129
};

/* The numbers of enum ibv_wc_flags. */
enum wc_flags { WC_GRH = 1 << 0, WC_WITH_IMM = 1 << 1, WC_WITH_INV = 1 << 3 };

struct cqe {
	uint64_t wr_id;
	void *qp_owner; /* the owner pointer given when the QP was created */
	struct sq *sq;  /* send completions: slots up to sq_end are the program's again once polled */
	uint32_t sq_end;
	uint32_t status; /* enum wc_status */
	uint32_t opcode; /* enum wc_opcode */
	uint32_t vendor_err;
	uint32_t byte_len;
	uint32_t imm_or_key; /* host order of the wire's 32 bits */
	uint32_t qpn;
	uint32_t src_qp;
	uint32_t flags; /* enum wc_flags */
	uint16_t pkey_index;
	uint8_t sl;
	uint8_t solicited;
	uint64_t timestamp_ns; /* the nic's time when the completion was made */
};

/* What is beside the head in cq.state: which requests for an event are pending, */
enum {
	CQ_ARMED_SOLICITED = 1 << 0,
	CQ_ARMED_ANY = 1 << 1,
	CQ_ARMED = CQ_ARMED_SOLICITED | CQ_ARMED_ANY,
	CQ_TOLD = 1 << 2, /* and whether the newest completion was alone in the CQ when it raised an event. */
	CQ_HEAD_SHIFT = 32
};

struct cq {
	struct cqe *ring;
	uint32_t mask;
	uint32_t capacity;
	_Atomic uint64_t state;         /* the head, which the nic writes, and the bits above, which both sides do */
	_Atomic uint32_t tail;          /* poller writes */
	_Atomic uint32_t solicited_end; /* nic writes: behind the newest completion that counts as solicited */
	bool overrun;                   /* nic: a completion was lost; the CQ is dead (IBTA C11-39) */
	uint32_t users;                 /* QPs that complete here */
	void *owner;                    /* the verbs object */
	struct list fired;              /* nic: in the list of CQs that have an event to deliver */
	struct event_source event;      /* nic: CQ_ERR */
};

/* Room for at least `cqe` completions, 1 <= cqe. 0 or -ENOMEM. */
int cq_init(struct cq *, const struct alloc *, uint32_t cqe, void *owner);
void cq_fini(struct cq *, const struct alloc *);

static inline uint32_t cq_head(const struct cq *cq, memory_order order)
{
	return (uint32_t)(atomic_load_explicit(&cq->state, order) >> CQ_HEAD_SHIFT);
}

/*
 * Nic: appends a completion. False when the ring is full: then `overrun` is set and the completion
 * is lost. *fire becomes true when the program asked for an event and this completion raises it;
 * that disarms the CQ.
 */
bool cq_push(struct cq *, const struct cqe *, bool *fire);

/*
 * Poller: the n-th oldest completion (0 first), or NULL; stays valid until consumed.
 * cq_consume() frees the `n` oldest and returns the send queue slots that they covered.
 */
static inline const struct cqe *cq_peek(const struct cq *cq, uint32_t n)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	return cq_head(cq, memory_order_acquire) - tail > n ? &cq->ring[(tail + n) & cq->mask] : NULL;
}

static inline void cq_consume(struct cq *cq, uint32_t n)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	for (uint32_t i = 0; i < n; i++) {
		const struct cqe *e = &cq->ring[(tail + i) & cq->mask];

		if (e->sq)
			atomic_store_explicit(&e->sq->released, e->sq_end, memory_order_release);
	}
	atomic_store_explicit(&cq->tail, tail + n, memory_order_release);
}

static inline uint32_t cq_depth(const struct cq *cq)
{
	return cq_head(cq, memory_order_relaxed) - atomic_load_explicit(&cq->tail, memory_order_relaxed);
}

/*
 * Any thread of the program: asks for an event (IBTA 11.4.2.2), for solicited and failed completions alone if that is
 * wanted. True: there is one at once, because such a completion waits in the CQ, and the request is over. False: the
 * next completion of that kind raises it. A single completion that has raised an event already does not raise another
 * here.
 */
bool cq_arm(struct cq *, bool solicited_only);

/* Both sides held off: drops the completions of one QP; resizes, or -EINVAL if they do not fit, -ENOMEM. */
void cq_purge(struct cq *, const void *qp_owner);
int cq_resize(struct cq *, const struct alloc *, uint32_t cqe);

struct archive;
/*
 * Both sides held off: a CQ (base/archive.h), as cq_init() made it; then, when the send queues are defined, the
 * completions in it.
 */
void cq_archive(struct archive *, struct cq *);
void cq_archive_entries(struct archive *, struct cq *, uint32_t sq_kind);
