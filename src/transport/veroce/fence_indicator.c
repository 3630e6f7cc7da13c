/* SPDX-License-Identifier: BSD-2-Clause */
/* Which two work requests may not be under way together: their places, their accesses, and which pairs overlap. */
#include "transport/veroce/fence_indicator.h"

#include <stdint.h>

enum { ATOMIC_BYTES = 8 };

static bool is_read(const struct send_wqe *w)
{
	return w->opcode == WR_READ;
}

static bool is_atomic(const struct send_wqe *w)
{
	return w->opcode == WR_CMP_SWAP || w->opcode == WR_FETCH_ADD;
}

static bool is_atomic_write(const struct send_wqe *w)
{
	return w->opcode == WR_ATOMIC_WRITE;
}

static bool is_write(const struct send_wqe *w)
{
	return w->opcode == WR_WRITE || w->opcode == WR_WRITE_IMM;
}

/* Neither range is empty, and they have a byte in common; a range may end at 2^64. */
static bool meet(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len)
{
	return a_len && b_len && (b - a < a_len || a - b < b_len);
}

static uint64_t remote_len(const struct send_wqe *w)
{
	return is_atomic(w) ? ATOMIC_BYTES : w->length;
}

static bool meet_remotely(const struct send_wqe *a, const struct send_wqe *b)
{
	return meet(a->remote_va, remote_len(a), b->remote_va, remote_len(b));
}

/* Inline bytes were copied when they were posted, so their memory does not count. */
static uint32_t elements(const struct send_wqe *w)
{
	return w->flags & WR_INLINE ? 0 : w->num_sge;
}

static bool meet_locally(const struct send_wqe *a, const struct send_wqe *b)
{
	for (uint32_t i = 0; i < elements(a); i++) {
		for (uint32_t k = 0; k < elements(b); k++) {
			if (meet(a->sge[i].addr, a->sge[i].len, b->sge[k].addr, b->sge[k].len))
				return true;
		}
	}
	return false;
}

bool fence_indicated(const struct send_wqe *older, const struct send_wqe *newer)
{
	bool brings = is_read(older) || is_atomic(older);

	if (brings && meet_locally(older, newer))
		return true;
	if (is_write(newer))
		return (brings || is_write(older) || is_atomic_write(older)) && meet_remotely(older, newer);
	return (is_atomic(newer) || is_atomic_write(newer)) && is_read(older) && meet_remotely(older, newer);
}
