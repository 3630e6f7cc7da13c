/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Size classes over an alloc. A small class takes slabs and keeps them until the end; a slab's
 * pieces are lent the first time straight from its untouched end, so that taking a slab does not
 * walk it, and come from the class's free list after that. A large class takes each piece from the
 * alloc and lets up to POOL_SPARES_MAX lie free. Invariants: fresh pieces lie in one slab a class,
 * the next slab being taken only when there are neither fresh nor free ones; held_bytes is the sum
 * of what was asked of the alloc and not given back.
 */
#include <assert.h>
#include <stdbool.h>

#include "base/pool.h"

/* At the front of each slab, padded so that the pieces keep the alloc's alignment. */
struct pool_slab {
	_Alignas(64) struct pool_slab *next;
};

/* What a free piece holds. */
struct pool_piece {
	struct pool_piece *next;
};

enum { SLAB_TOTAL_BYTES = sizeof(struct pool_slab) + POOL_SLAB_BYTES };

static_assert(POOL_MIN_BYTES << (POOL_CLASSES - 1) == POOL_MAX_BYTES, "the classes end at the top");
static_assert(POOL_MIN_BYTES << POOL_SMALL_CLASSES == POOL_SLAB_BYTES, "small is below a slab");
static_assert(sizeof(struct pool_slab) == 64, "pieces are aligned to 64 bytes");
static_assert(sizeof(struct pool_piece) <= POOL_MIN_BYTES, "a free piece holds its link");

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#ifdef __SANITIZE_ADDRESS__
void __asan_poison_memory_region(void const volatile *, size_t);
void __asan_unpoison_memory_region(void const volatile *, size_t);

static void poison(void *p, size_t bytes)
{
	__asan_poison_memory_region(p, bytes);
}

static void unpoison(void *p, size_t bytes)
{
	__asan_unpoison_memory_region(p, bytes);
}
#else
static inline void poison(void *p, size_t bytes)
{
}

static inline void unpoison(void *p, size_t bytes)
{
}
#endif

static inline size_t class_bytes(uint32_t c)
{
	return (size_t)POOL_MIN_BYTES << c;
}

/* bytes is in 1 .. POOL_MAX_BYTES. */
static inline uint32_t class_of(size_t bytes)
{
	if (bytes <= POOL_MIN_BYTES)
		return 0;
	return (uint32_t)(64 - __builtin_clzll(bytes - 1) - __builtin_ctz(POOL_MIN_BYTES));
}

static inline bool is_small(uint32_t c)
{
	return c < POOL_SMALL_CLASSES;
}

static void give_back(struct pool *p, void *mem, size_t bytes)
{
	unpoison(mem, bytes);
	p->held_bytes -= bytes;
	alloc_put(p->alloc, mem, bytes);
}

/* Free pieces are poisoned but for their links. */
static struct pool_piece *pop(struct pool_class *cl)
{
	struct pool_piece *piece = cl->free;

	cl->free = piece->next;
	return piece;
}

static void give_spares_back(struct pool *p)
{
	for (uint32_t c = POOL_SMALL_CLASSES; c < POOL_CLASSES; c++) {
		struct pool_class *cl = &p->classes[c];

		while (cl->free)
			give_back(p, pop(cl), class_bytes(c));
		cl->spare_count = 0;
	}
}

/* The spares of other classes are worth nothing once the alloc has no more. */
static void *take(struct pool *p, size_t bytes)
{
	void *mem = alloc_get(p->alloc, bytes);

	if (!mem) {
		give_spares_back(p);
		mem = alloc_get(p->alloc, bytes);
	}
	if (mem)
		p->held_bytes += bytes;
	return mem;
}

void pool_init(struct pool *p, const struct alloc *alloc)
{
	*p = (struct pool){.alloc = alloc};
}

void pool_fini(struct pool *p)
{
	give_spares_back(p);
	while (p->slabs) {
		struct pool_slab *slab = p->slabs;

		p->slabs = slab->next;
		give_back(p, slab, SLAB_TOTAL_BYTES);
	}
	pool_init(p, p->alloc);
}

static bool take_slab(struct pool *p, uint32_t c)
{
	struct pool_class *cl = &p->classes[c];
	struct pool_slab *slab = take(p, SLAB_TOTAL_BYTES);

	if (!slab)
		return false;
	slab->next = p->slabs;
	p->slabs = slab;
	cl->fresh = (uint8_t *)(slab + 1);
	cl->fresh_count = (uint32_t)(POOL_SLAB_BYTES / class_bytes(c));
	poison(cl->fresh, POOL_SLAB_BYTES);
	return true;
}

static void *get_small(struct pool *p, uint32_t c)
{
	struct pool_class *cl = &p->classes[c];
	void *mem;

	if (cl->free)
		return pop(cl);
	if (!cl->fresh_count && !take_slab(p, c))
		return NULL;
	mem = cl->fresh;
	cl->fresh += class_bytes(c);
	cl->fresh_count--;
	return mem;
}

static void *get_large(struct pool *p, uint32_t c)
{
	struct pool_class *cl = &p->classes[c];

	if (!cl->free)
		return take(p, class_bytes(c));
	cl->spare_count--;
	return pop(cl);
}

void *pool_get(struct pool *p, size_t bytes)
{
	uint32_t c;
	void *mem;

	if (!bytes || bytes > POOL_MAX_BYTES)
		return NULL;
	c = class_of(bytes);
	mem = is_small(c) ? get_small(p, c) : get_large(p, c);
	if (!mem)
		return NULL;
	p->lent_bytes += class_bytes(c);
	unpoison(mem, bytes);
	poison((uint8_t *)mem + bytes, class_bytes(c) - bytes);
	return mem;
}

void pool_put(struct pool *p, void *mem, size_t bytes)
{
	struct pool_class *cl;
	struct pool_piece *piece = mem;
	uint32_t c;

	if (!mem)
		return;
	assert(bytes > 0);
	assert(bytes <= POOL_MAX_BYTES);
	c = class_of(bytes);
	cl = &p->classes[c];
	assert(p->lent_bytes >= class_bytes(c));
	p->lent_bytes -= class_bytes(c);
	if (!is_small(c)) {
		if (cl->spare_count == POOL_SPARES_MAX) {
			give_back(p, mem, class_bytes(c));
			return;
		}
		cl->spare_count++;
	}
	unpoison(piece, sizeof(*piece));
	piece->next = cl->free;
	cl->free = piece;
	poison(piece + 1, class_bytes(c) - sizeof(*piece));
}

size_t pool_bytes(const struct pool *p)
{
	return p->held_bytes;
}

size_t pool_lent_bytes(const struct pool *p)
{
	return p->lent_bytes;
}
