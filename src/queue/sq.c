/* SPDX-License-Identifier: BSD-2-Clause */
/* Making and emptying the send ring; its traffic is inline in the header. */
#include <errno.h>
#include <stddef.h>

#include "queue/sq.h"

/* Slots start on cache lines, so the poster's and the nic's writes to neighbours do not collide. */
enum { SLOT_ALIGN = 64 };

static uint32_t slots_for(uint32_t max_wr)
{
	uint32_t n = 1;

	while (n < max_wr)
		n *= 2;
	return max_wr ? n : 0;
}

static size_t ring_bytes(const struct sq *sq)
{
	return sq->ring ? ((size_t)sq->mask + 1) * sq->stride : 0;
}

int sq_init(struct sq *sq, const struct alloc *alloc, uint32_t max_wr, uint32_t max_sge, uint32_t max_inline)
{
	uint64_t tail = (uint64_t)max_sge * sizeof(struct wqe_sge);
	uint64_t stride = sizeof(struct send_wqe);

	if (tail < max_inline)
		tail = max_inline;
	stride += tail > ATOMIC_WRITE_BYTES ? tail : ATOMIC_WRITE_BYTES;
	stride = (stride + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
	if (max_wr > (uint32_t)1 << 31 || stride > UINT16_MAX)
		return -ENOMEM;

	uint32_t slots = slots_for(max_wr);
	uint8_t *ring = NULL;

	if (slots) {
		ring = alloc_get(alloc, (size_t)slots * stride);
		if (!ring)
			return -ENOMEM;
	}
	*sq = (struct sq){
		.ring = ring,
		.mask = slots ? slots - 1 : 0,
		.stride = (uint16_t)stride,
		.capacity = max_wr,
		.max_sge = (uint16_t)max_sge,
		.max_inline = (uint16_t)max_inline,
	};
	return 0;
}

void sq_fini(struct sq *sq, const struct alloc *alloc)
{
	alloc_put(alloc, sq->ring, ring_bytes(sq));
	*sq = (struct sq){0};
}

void sq_reset(struct sq *sq)
{
	atomic_store_explicit(&sq->head, 0, memory_order_relaxed);
	atomic_store_explicit(&sq->released, 0, memory_order_relaxed);
	sq->una = 0;
	sq->next = 0;
}
