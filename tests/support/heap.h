/* SPDX-License-Identifier: BSD-2-Clause */
/* A struct alloc for tests: it counts what is allocated, and can run out on purpose. */
#pragma once

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct heap {
	int64_t blocks;     /* out now */
	int64_t bytes;      /* as asked for */
	int64_t line_bytes; /* with what alignment adds */
	int64_t gets_left;  /* negative: no limit; 0: get() fails */
};

enum { HEAP_LINE_BYTES = 64 }; /* what struct alloc aligns to */

static inline size_t heap_lines(size_t bytes)
{
	return (bytes + HEAP_LINE_BYTES - 1) / HEAP_LINE_BYTES * HEAP_LINE_BYTES;
}

static inline void *heap_get(void *ctx, size_t bytes)
{
	struct heap *h = ctx;

	if (h->gets_left == 0)
		return NULL;
	if (h->gets_left > 0)
		h->gets_left--;

	size_t rounded = heap_lines(bytes);
	void *p = aligned_alloc(HEAP_LINE_BYTES, rounded ? rounded : HEAP_LINE_BYTES);

	if (!p)
		return NULL;
	h->blocks++;
	h->bytes += (int64_t)bytes;
	h->line_bytes += (int64_t)rounded;
	return memset(p, 0, rounded);
}

static inline void heap_put(void *ctx, void *p, size_t bytes)
{
	struct heap *h = ctx;

	h->blocks--;
	h->bytes -= (int64_t)bytes;
	h->line_bytes -= (int64_t)heap_lines(bytes);
	assert(h->blocks >= 0 && h->bytes >= 0);
	free(p);
}

#define HEAP_INIT               \
	{                       \
		.gets_left = -1 \
	}

/* Borrows h for the life of the result. */
static inline struct alloc heap_alloc(struct heap *h)
{
	return (struct alloc){.get = heap_get, .put = heap_put, .ctx = h};
}

/* A test (support/test.h) with memory from `a`, all of which it must give back. */
#define HEAP_TEST(name)                           \
	static void name##_on(struct alloc a);    \
	TEST(name)                                \
	{                                         \
		struct heap heap = HEAP_INIT;     \
                                                  \
		name##_on(heap_alloc(&heap));     \
		assert_int_equal(heap.blocks, 0); \
		assert_int_equal(heap.bytes, 0);  \
	}                                         \
	static void name##_on(struct alloc a)
