/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Size classes over an alloc. A small class takes slabs; a slab lends its pieces the first time straight
 * from its untouched end, so that taking one does not walk it, and from its free list after that.
 * A piece finds its slab through a table by address, since an alloc aligns to no more than 64 bytes.
 * A large class takes each piece from the alloc. Invariants: a slab is in one of its class's lists
 * unless all of its pieces are lent, and in the table always; held_bytes is the sum of the pieces that
 * the alloc gave and has not got back.
 */
#include <assert.h>
#include <stdbool.h>

#include "base/pool.h"

/* At the front of each slab, padded so that the pieces keep the alloc's alignment. */
struct pool_slab {
	_Alignas(64) struct pool_piece *free; /* that were lent before */
	uint32_t fresh;                       /* pieces at the end that were not */
	uint32_t lent;
	uint32_t class;
	struct pool_slab *next, *prev; /* in the class's list */
	struct pool_slab *chain;       /* in the bucket */
};

/* A free piece. */
struct pool_piece {
	struct pool_piece *next;
};

enum { SLAB_TOTAL_BYTES = sizeof(struct pool_slab) + POOL_SLAB_BYTES };

static_assert(POOL_MIN_BYTES << (POOL_CLASSES - 1) == POOL_MAX_BYTES, "the classes end at the top");
static_assert(POOL_MIN_BYTES << POOL_SMALL_CLASSES == POOL_SLAB_BYTES, "small is below a slab");
static_assert(sizeof(struct pool_slab) == 64, "pieces are aligned to 64 bytes");
static_assert(SLAB_TOTAL_BYTES <= 2 * POOL_SLAB_BYTES - 64, "a slab spans two windows at most");
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

/* ---- slabs by address ------------------------------------------------------------------------ */

/*
 * A slab is entered under the window of POOL_SLAB_BYTES that it begins in, where no other can begin. A
 * piece lies in that window or in the next one.
 */
static inline struct pool_slab **bucket_of(struct pool *p, uintptr_t window)
{
	return &(p->grown ? p->grown : p->buckets)[window & (p->bucket_count - 1)];
}

static inline uintptr_t window_of(const void *mem)
{
	return (uintptr_t)mem / POOL_SLAB_BYTES;
}

static inline struct pool_slab *slab_of(struct pool *p, const void *mem)
{
	for (uintptr_t window = window_of(mem);; window--) {
		struct pool_slab *s = *bucket_of(p, window);

		while (s && (uintptr_t)mem - (uintptr_t)s >= SLAB_TOTAL_BYTES)
			s = s->chain;
		if (s)
			return s;
		assert(window == window_of(mem));
	}
}

/* Makes the table twice as long. If there is no memory for it, the chains become longer. */
static void grow_table(struct pool *p)
{
	uint32_t count = p->bucket_count;
	struct pool_slab **old = p->grown ? p->grown : p->buckets;
	struct pool_slab **grown = alloc_get(p->alloc, 2 * count * sizeof(*grown));

	if (!grown)
		return;
	p->held_bytes += 2 * count * sizeof(*grown);
	for (uint32_t i = 0; i < count; i++) {
		while (old[i]) {
			struct pool_slab *s = old[i];
			struct pool_slab **to = &grown[window_of(s) & (2 * count - 1)];

			old[i] = s->chain;
			s->chain = *to;
			*to = s;
		}
	}
	if (p->grown)
		give_back(p, p->grown, count * sizeof(*grown));
	p->grown = grown;
	p->bucket_count = 2 * count;
}

static void enter(struct pool *p, struct pool_slab *slab)
{
	struct pool_slab **bucket;

	if (p->slab_count++ == p->bucket_count)
		grow_table(p);
	bucket = bucket_of(p, window_of(slab));
	slab->chain = *bucket;
	*bucket = slab;
}

static void leave(struct pool *p, struct pool_slab *slab)
{
	struct pool_slab **at = bucket_of(p, window_of(slab));

	while (*at != slab)
		at = &(*at)->chain;
	*at = slab->chain;
	p->slab_count--;
}

/* ---- slabs of a class ------------------------------------------------------------------------- */

static inline void link_slab(struct pool_slab **list, struct pool_slab *slab)
{
	slab->prev = NULL;
	slab->next = *list;
	if (slab->next)
		slab->next->prev = slab;
	*list = slab;
}

static inline void unlink_slab(struct pool_slab **list, struct pool_slab *slab)
{
	if (slab->prev)
		slab->prev->next = slab->next;
	else
		*list = slab->next;
	if (slab->next)
		slab->next->prev = slab->prev;
}

/* The number of empty slabs that a class may keep. */
static inline uint32_t empty_max(const struct pool *p, const struct pool_class *cl)
{
	return p->empty_min + cl->used_count / 4;
}

static void drop_empty(struct pool *p, struct pool_class *cl)
{
	struct pool_slab *slab = cl->empty;

	unlink_slab(&cl->empty, slab);
	cl->empty_count--;
	leave(p, slab);
	give_back(p, slab, SLAB_TOTAL_BYTES);
}

/* ---- spares ------------------------------------------------------------------------------------ */

/* Free pieces are poisoned but for their links. */
static inline struct pool_piece *pop(struct pool_piece **free)
{
	struct pool_piece *piece = *free;

	*free = piece->next;
	return piece;
}

static inline void push(struct pool_piece **free, void *mem, uint32_t c)
{
	struct pool_piece *piece = mem;

	unpoison(piece, sizeof(*piece));
	piece->next = *free;
	*free = piece;
	poison(piece + 1, class_bytes(c) - sizeof(*piece));
}

static void give_spares_back(struct pool *p)
{
	for (uint32_t c = 0; c < POOL_CLASSES; c++) {
		struct pool_class *cl = &p->classes[c];

		while (cl->empty)
			drop_empty(p, cl);
		while (cl->spare) {
			give_back(p, pop(&cl->spare), class_bytes(c));
			cl->spare_count--;
		}
	}
}

/* Once the alloc has no more memory, the spares of other classes are given back to it. */
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

/* ---- the calls --------------------------------------------------------------------------------- */

void pool_init(struct pool *p, const struct alloc *alloc)
{
	*p = (struct pool){.alloc = alloc, .empty_min = 1, .bucket_count = POOL_BUCKETS_MIN};
}

void pool_fini(struct pool *p)
{
	give_spares_back(p);
	for (uint32_t i = 0; i < p->bucket_count; i++) {
		struct pool_slab **bucket = bucket_of(p, i);

		while (*bucket) {
			struct pool_slab *slab = *bucket;

			*bucket = slab->chain;
			give_back(p, slab, SLAB_TOTAL_BYTES);
		}
	}
	if (p->grown)
		give_back(p, p->grown, p->bucket_count * sizeof(struct pool_slab *));
	pool_init(p, p->alloc);
}

static bool take_slab(struct pool *p, uint32_t c)
{
	struct pool_class *cl = &p->classes[c];
	struct pool_slab *slab = take(p, SLAB_TOTAL_BYTES);

	if (!slab)
		return false;
	*slab = (struct pool_slab){
		.fresh = (uint32_t)(POOL_SLAB_BYTES / class_bytes(c)),
		.class = c,
	};
	enter(p, slab);
	link_slab(&cl->empty, slab);
	cl->empty_count++;
	poison(slab + 1, POOL_SLAB_BYTES);
	return true;
}

/* The slab was empty until now. */
static bool use_slab(struct pool *p, uint32_t c)
{
	struct pool_class *cl = &p->classes[c];
	struct pool_slab *slab;

	if (!cl->empty && !take_slab(p, c))
		return false;
	slab = cl->empty;
	unlink_slab(&cl->empty, slab);
	cl->empty_count--;
	link_slab(&cl->partial, slab);
	cl->used_count++;
	return true;
}

static void *get_small(struct pool *p, uint32_t c)
{
	struct pool_class *cl = &p->classes[c];
	struct pool_slab *slab;
	void *mem;

	if (!cl->partial && !use_slab(p, c))
		return NULL;
	slab = cl->partial;
	if (slab->free)
		mem = pop(&slab->free);
	else
		mem = (uint8_t *)(slab + 1) + POOL_SLAB_BYTES - slab->fresh-- * class_bytes(c);
	slab->lent++;
	if (!slab->free && !slab->fresh)
		unlink_slab(&cl->partial, slab);
	return mem;
}

static void put_small(struct pool *p, uint32_t c, void *mem)
{
	struct pool_class *cl = &p->classes[c];
	struct pool_slab *slab = slab_of(p, mem);

	assert(slab->class == c);
	assert(slab->lent > 0);
	if (!slab->free && !slab->fresh)
		link_slab(&cl->partial, slab);
	push(&slab->free, mem, c);
	if (--slab->lent)
		return;
	unlink_slab(&cl->partial, slab);
	cl->used_count--;
	link_slab(&cl->empty, slab);
	cl->empty_count++;
	while (cl->empty_count > empty_max(p, cl)) /* twice at most */
		drop_empty(p, cl);
}

static void *get_large(struct pool *p, uint32_t c)
{
	struct pool_class *cl = &p->classes[c];

	if (!cl->spare)
		return take(p, class_bytes(c));
	cl->spare_count--;
	return pop(&cl->spare);
}

static void put_large(struct pool *p, uint32_t c, void *mem)
{
	struct pool_class *cl = &p->classes[c];

	if (cl->spare_count == POOL_SPARES_MAX) {
		give_back(p, mem, class_bytes(c));
		return;
	}
	cl->spare_count++;
	push(&cl->spare, mem, c);
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
	uint32_t c;

	if (!mem)
		return;
	assert(bytes > 0);
	assert(bytes <= POOL_MAX_BYTES);
	c = class_of(bytes);
	assert(p->lent_bytes >= class_bytes(c));
	p->lent_bytes -= class_bytes(c);
	if (is_small(c))
		put_small(p, c, mem);
	else
		put_large(p, c, mem);
}

size_t pool_bytes(const struct pool *p)
{
	return p->held_bytes;
}

size_t pool_lent_bytes(const struct pool *p)
{
	return p->lent_bytes;
}
