/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The completion ring's writing side, notification, and the calls that need both sides held off.
 *
 * No event is lost. The nic stores `head` and then loads `armed`; the poller stores `armed` and then
 * loads `head` (a program polls once more after arming). A sequentially consistent fence lies between
 * the two on either side, so at least one of the loads sees the other side's store (C11 7.17.4): the
 * poller finds the completion, or the nic finds the request and fires. Both may happen, which is a
 * spurious event and legal.
 *
 * Even so a completion raises one event at most: perftest's ib_send_lat -e takes an event without a completion
 * for a message, and then overruns its CQs. So requests are withdrawn by one atomic exchange, and a poller
 * withdraws none for a completion about which the nic has yet to decide (`settled`).
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "queue/cq.h"

static uint32_t entries_for(uint32_t cqe)
{
	uint32_t n = 1;

	while (n < cqe)
		n *= 2;
	return n;
}

static struct cqe *alloc_ring(const struct alloc *alloc, uint32_t cqe)
{
	if (cqe > (uint32_t)1 << 31)
		return NULL;
	return alloc_get(alloc, (size_t)entries_for(cqe) * sizeof(struct cqe));
}

int cq_init(struct cq *cq, const struct alloc *alloc, uint32_t cqe, void *owner)
{
	assert(cqe >= 1);
	struct cqe *ring = alloc_ring(alloc, cqe);

	if (!ring)
		return -ENOMEM;
	*cq = (struct cq){
		.ring = ring,
		.mask = entries_for(cqe) - 1,
		.capacity = entries_for(cqe),
		.armed = CQ_DISARMED,
		.owner = owner,
		.event.owner = owner,
	};
	list_init(&cq->fired);
	list_init(&cq->event.link);
	return 0;
}

void cq_fini(struct cq *cq, const struct alloc *alloc)
{
	alloc_put(alloc, cq->ring, (size_t)cq->capacity * sizeof(struct cqe));
	cq->ring = NULL;
}

bool cq_push(struct cq *cq, const struct cqe *e, bool *fire)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_acquire);

	/*
	 * After a loss no further completion is pushed: the program would take them for all there
	 * were.
	 */
	if (cq->overrun || head - tail >= cq->capacity) {
		cq->overrun = true;
		return false;
	}
	cq->ring[head & cq->mask] = *e;
	atomic_store_explicit(&cq->head, head + 1, memory_order_release);

	atomic_thread_fence(memory_order_seq_cst);
	int armed = atomic_load_explicit(&cq->armed, memory_order_relaxed);

	/* A request that arrives between the load and the exchange is answered by the same event. */
	if ((armed == CQ_ARMED_ANY ||
	     (armed == CQ_ARMED_SOLICITED && (e->solicited || e->status != WC_SUCCESS))) &&
	    atomic_exchange_explicit(&cq->armed, CQ_DISARMED, memory_order_relaxed) != CQ_DISARMED)
		*fire = true;
	atomic_store_explicit(&cq->settled, head + 1, memory_order_release);
	return true;
}

void cq_arm(struct cq *cq, bool solicited_only)
{
	int none = CQ_DISARMED;

	/* A pending request for any completion is not weakened by a later one (IBTA 11.4.2.2). */
	if (solicited_only)
		atomic_compare_exchange_strong(&cq->armed, &none, CQ_ARMED_SOLICITED);
	else
		atomic_store_explicit(&cq->armed, CQ_ARMED_ANY, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

bool cq_disarm_if_waiting(struct cq *cq)
{
	uint32_t settled = atomic_load_explicit(&cq->settled, memory_order_acquire);
	int any = CQ_ARMED_ANY;

	return settled != atomic_load_explicit(&cq->tail, memory_order_relaxed) &&
	       atomic_compare_exchange_strong(&cq->armed, &any, CQ_DISARMED);
}

void cq_purge(struct cq *cq, const void *qp_owner)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t keep = tail;

	for (uint32_t i = tail; i != head; i++) {
		const struct cqe *e = &cq->ring[i & cq->mask];

		if (e->qp_owner != qp_owner)
			cq->ring[keep++ & cq->mask] = *e;
	}
	atomic_store_explicit(&cq->head, keep, memory_order_release);
	atomic_store_explicit(&cq->settled, keep, memory_order_release);
}

int cq_resize(struct cq *cq, const struct alloc *alloc, uint32_t cqe)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	uint32_t depth = cq_depth(cq);

	assert(cqe >= 1);
	if (depth > cqe)
		return -EINVAL;

	struct cqe *ring = alloc_ring(alloc, cqe);

	if (!ring)
		return -ENOMEM;

	uint32_t mask = entries_for(cqe) - 1;

	for (uint32_t i = 0; i < depth; i++)
		ring[(tail + i) & mask] = cq->ring[(tail + i) & cq->mask];
	alloc_put(alloc, cq->ring, (size_t)cq->capacity * sizeof(struct cqe));
	cq->ring = ring;
	cq->mask = mask;
	cq->capacity = mask + 1;
	return 0;
}
