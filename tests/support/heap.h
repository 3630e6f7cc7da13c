/* SPDX-License-Identifier: BSD-2-Clause */
/* A struct alloc for tests: knows what is still out, and can run dry on purpose. */
#ifndef SUPPORT_HEAP_H
#define SUPPORT_HEAP_H

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct heap {
	int64_t blocks; /* out now */
	int64_t bytes;
	int64_t gets_left; /* negative: no limit; 0: get() fails */
};

static inline void *heap_get(void *ctx, size_t bytes)
{
	struct heap *h = ctx;

	if (h->gets_left == 0)
		return NULL;
	if (h->gets_left > 0)
		h->gets_left--;

	size_t rounded = (bytes + 63) / 64 * 64;
	void *p = aligned_alloc(64, rounded ? rounded : 64);

	if (!p)
		return NULL;
	h->blocks++;
	h->bytes += (int64_t)bytes;
	return memset(p, 0, rounded);
}

static inline void heap_put(void *ctx, void *p, size_t bytes)
{
	struct heap *h = ctx;

	h->blocks--;
	h->bytes -= (int64_t)bytes;
	assert(h->blocks >= 0 && h->bytes >= 0);
	free(p);
}

#define HEAP_INIT {.gets_left = -1}

/* Borrows h for the life of the result. */
static inline struct alloc heap_alloc(struct heap *h)
{
	return (struct alloc){.get = heap_get, .put = heap_put, .ctx = h};
}

#endif
