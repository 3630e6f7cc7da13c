/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the core's memory comes from: the owner of a nic hands one of these over at creation. It is
 * used when objects are created and destroyed and when a pool (base/pool.h) grows or shrinks, never
 * for a packet.
 */
#pragma once

#include <stddef.h>

struct alloc {
	/* Returns zeroed memory aligned to 64 bytes, or NULL. */
	void *(*get)(void *ctx, size_t bytes);
	/* Takes back what get() gave; `bytes` is the size that get() was called with. */
	void (*put)(void *ctx, void *p, size_t bytes);
	void *ctx;
};

static inline void *alloc_get(const struct alloc *a, size_t bytes)
{
	return a->get(a->ctx, bytes);
}

static inline void alloc_put(const struct alloc *a, void *p, size_t bytes)
{
	if (p)
		a->put(a->ctx, p, bytes);
}
