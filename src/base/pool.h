/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for what exists only while data is outstanding: powers of two from POOL_MIN_BYTES to
 * POOL_MAX_BYTES, each with a free list of its own that runs through the free pieces. A piece costs
 * O(1) to get and to put; what is held follows the peak of the small pieces, and of the large ones
 * only what is lent plus a few. One thread at a time.
 *
 * Under AddressSanitizer a piece that is not lent, and what lies beyond the bytes that were asked
 * for, is poisoned: a use after pool_put() is reported as one after free() would be.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

enum {
	POOL_MIN_BYTES = 64,
	POOL_MAX_BYTES = 4 << 20,
	POOL_CLASSES = 17,          /* 64 B << 0 .. 64 B << 16 */
	POOL_SMALL_CLASSES = 10,    /* below POOL_SLAB_BYTES, carved out of slabs */
	POOL_SLAB_BYTES = 64 << 10, /* the pieces of one slab together */
	POOL_SPARES_MAX = 4,        /* large pieces of one class that may lie free */
};

/* Open for its size only; the fields are the pool's own. */
struct pool {
	const struct alloc *alloc;
	size_t held_bytes, lent_bytes;
	struct pool_slab *slabs;
	struct pool_class {
		struct pool_piece *free;
		uint8_t *fresh;       /* small: the newest slab's pieces that were never lent, */
		uint32_t fresh_count; /* so many of them */
		uint32_t spare_count; /* large: length of `free` */
	} classes[POOL_CLASSES];
};

/* Borrows the alloc until pool_fini(); takes nothing from it yet. */
void pool_init(struct pool *, const struct alloc *);
/*
 * Gives back all slabs and spare pieces. All pieces should have been put: of those that were not,
 * the small ones go with their slab and must not be touched any more, the large ones stay with
 * whoever has them and are lost to the alloc. The pool is as after pool_init().
 */
void pool_fini(struct pool *);
/*
 * Lends at least `bytes` of uninitialised memory aligned to 64 bytes until pool_put(). NULL when
 * memory runs out, or when bytes is 0 or above POOL_MAX_BYTES.
 */
void *pool_get(struct pool *, size_t bytes);
/* Takes back what pool_get() lent; `bytes` is what was asked for. Harmless on NULL. */
void pool_put(struct pool *, void *, size_t bytes);

/* What the pool has from its alloc now: lent, free and its own overhead. */
size_t pool_bytes(const struct pool *);
/* What is lent now, each piece counted as its whole size class. */
size_t pool_lent_bytes(const struct pool *);

#endif
