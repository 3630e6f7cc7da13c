/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The completion ring's writing side, notification, and the calls that need both sides held off.
 *
 * No event is lost, and none is raised twice, because the head and the requests for an event are one word: the nic
 * moves the head and answers a request in the same exchange, and who arms sees in the same exchange which completions
 * there are.
 *
 * IBTA 11.4.2.2 promises an event only for completions that are added after the request. Common adapters are told the
 * consumer's index when they are armed, and raise an event for what lies beyond it; programs that arm and then sleep,
 * without another poll, rely on that. So do we, but for one case: perftest's ib_send_lat -e takes an event, arms, and
 * polls the one completion whose event that was. It takes an event without a completion for a message, sends once more
 * than it has received, and loses a completion of its CQ of one entry. Nobody needs the second event: who does not poll
 * at all after an event knows that a completion is there.
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

static bool is_solicited(const struct cqe *e)
{
	return e->solicited || e->status != WC_SUCCESS;
}

bool cq_push(struct cq *cq, const struct cqe *e, bool *fire)
{
	uint64_t state = atomic_load_explicit(&cq->state, memory_order_relaxed), next;
	uint32_t head = (uint32_t)(state >> CQ_HEAD_SHIFT);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_acquire);
	bool fires;

	/*
	 * After a loss no further completion is pushed: the program would take them for all there
	 * were.
	 */
	if (cq->overrun || head - tail >= cq->capacity) {
		cq->overrun = true;
		return false;
	}
	cq->ring[head & cq->mask] = *e;
	if (is_solicited(e))
		atomic_store_explicit(&cq->solicited_end, head + 1, memory_order_relaxed);
	do {
		fires = state & CQ_ARMED && (state & CQ_ARMED_ANY || is_solicited(e));
		next = (state & ~(uint64_t)CQ_TOLD) + ((uint64_t)1 << CQ_HEAD_SHIFT);
		if (fires)
			next = (next & ~(uint64_t)CQ_ARMED) | (head == tail ? CQ_TOLD : 0);
	} while (!atomic_compare_exchange_weak_explicit(&cq->state, &state, next, memory_order_release,
							memory_order_relaxed));
	if (fires)
		*fire = true;
	return true;
}

bool cq_arm(struct cq *cq, bool solicited_only)
{
	uint64_t state = atomic_load_explicit(&cq->state, memory_order_acquire), next;
	bool fire;

	do {
		uint32_t head = (uint32_t)(state >> CQ_HEAD_SHIFT);
		uint32_t depth = head - atomic_load_explicit(&cq->tail, memory_order_relaxed);
		/*
		 * The number of newest completions that are not solicited. The nic writes solicited_end before it adds
		 * the completion: seen in between, none counts, and the completion then finds the request.
		 */
		uint32_t others =
			solicited_only ? head - atomic_load_explicit(&cq->solicited_end, memory_order_relaxed) : 0;

		fire = depth > others && !(state & CQ_TOLD);
		if (fire)
			next = (state & ~(uint64_t)CQ_ARMED) | (depth == 1 ? CQ_TOLD : 0);
		else /* a pending request for any completion is not weakened by a later one */
			next = state | (solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED_ANY);
	} while (!atomic_compare_exchange_weak_explicit(&cq->state, &state, next, memory_order_acquire,
							memory_order_acquire));
	return fire;
}

void cq_purge(struct cq *cq, const void *qp_owner)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	uint32_t head = cq_head(cq, memory_order_relaxed);
	uint32_t keep = tail, solicited_end = tail;

	for (uint32_t i = tail; i != head; i++) {
		const struct cqe *e = &cq->ring[i & cq->mask];

		if (e->qp_owner == qp_owner)
			continue;
		cq->ring[keep++ & cq->mask] = *e;
		if (is_solicited(e))
			solicited_end = keep;
	}
	if (keep == head)
		return;
	atomic_store_explicit(&cq->solicited_end, solicited_end, memory_order_relaxed);
	/* Two steps, because another thread may arm meanwhile. The one that is the newest now may not have raised an
	 * event. */
	atomic_fetch_and_explicit(&cq->state, ~(uint64_t)CQ_TOLD, memory_order_relaxed);
	atomic_fetch_sub_explicit(&cq->state, (uint64_t)(head - keep) << CQ_HEAD_SHIFT, memory_order_release);
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
