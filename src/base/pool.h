/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for what exists only while data is outstanding: powers of two from POOL_MIN_BYTES to
 * POOL_MAX_BYTES, the small ones carved out of slabs. A piece costs O(1) to get and to put. The
 * pool holds little more than it lends: an empty slab goes back to the alloc unless it is one of
 * the few that its class may keep (empty_min, and one for each four in use), and large pieces go back
 * when a few lie free. One thread at a time.
 *
 * Under AddressSanitizer a piece that is not lent, and what lies beyond the bytes that were asked
 * for, is poisoned: a use after pool_put() is reported as one after free() would be.
 */
#pragma once

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
	POOL_BUCKETS_MIN = 64
};

struct pool_slab;

/* Open for its size only; the fields are the pool's own, but empty_min, which may be raised after pool_init(). */
struct pool {
	const struct alloc *alloc;
	uint32_t empty_min; /* 1 */
	size_t held_bytes, lent_bytes;
	/* Slabs by address; `grown` is the table once there are more than POOL_BUCKETS_MIN of them. */
	struct pool_slab **grown;
	uint32_t bucket_count, slab_count;
	struct pool_slab *buckets[POOL_BUCKETS_MIN];
	struct pool_class {
		/* small */
		struct pool_slab *partial; /* some of their pieces are lent */
		struct pool_slab *empty;   /* none is */
		uint32_t used_count;       /* slabs that are not empty */
		uint32_t empty_count;
		/* large */
		struct pool_piece *spare;
		uint32_t spare_count;
	} classes[POOL_CLASSES];
};

/* Borrows the alloc until pool_fini(); takes nothing from it yet. */
void pool_init(struct pool *, const struct alloc *);
/*
 * Gives back all slabs and spare pieces. All pieces should have been put. Of those that were not, a
 * small piece goes with its slab and must not be touched any more; a large piece stays with its
 * user and never returns to the alloc. The pool is as after pool_init().
 */
void pool_fini(struct pool *);
/*
 * Lends at least `bytes` of uninitialised memory aligned to 64 bytes until pool_put(). NULL when
 * memory runs out, or when bytes is 0 or above POOL_MAX_BYTES.
 */
void *pool_get(struct pool *, size_t bytes);
/* Takes back what pool_get() lent; `bytes` is what was asked for. Harmless on NULL. */
void pool_put(struct pool *, void *, size_t bytes);

/* The bytes that the pool has from its alloc now: lent, free, and its own overhead. */
size_t pool_bytes(const struct pool *);
/* The bytes lent now; each piece counts as its whole size class. */
size_t pool_lent_bytes(const struct pool *);
