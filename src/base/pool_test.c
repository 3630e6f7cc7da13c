/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/pool.h"
#include "base/prng.h"
#include "support/test.h"

/* An alloc that counts and has only so much. */
struct budget {
	struct alloc alloc;
	size_t held_bytes, limit_bytes;
	size_t refused_bytes; /* a get() of exactly so much fails; 0: none */
	int gets;
};

static void *budget_get(void *ctx, size_t bytes)
{
	struct budget *b = ctx;
	size_t whole = (bytes + 63) & ~(size_t)63;
	void *mem;

	if (bytes > b->limit_bytes - b->held_bytes || bytes == b->refused_bytes)
		return NULL;
	mem = aligned_alloc(64, whole);
	assert_non_null(mem);
	memset(mem, 0, whole);
	b->held_bytes += bytes;
	b->gets++;
	return mem;
}

static void budget_put(void *ctx, void *mem, size_t bytes)
{
	struct budget *b = ctx;

	assert_true(bytes <= b->held_bytes);
	b->held_bytes -= bytes;
	free(mem);
}

static void budget_init(struct budget *b, struct pool *p, size_t limit_bytes)
{
	*b = (struct budget){.alloc = {budget_get, budget_put, b}, .limit_bytes = limit_bytes};
	pool_init(p, &b->alloc);
}

static size_t rounded(size_t bytes)
{
	size_t whole = POOL_MIN_BYTES;

	while (whole < bytes)
		whole *= 2;
	return whole;
}

TEST(every_size_is_aligned_and_usable_to_its_last_byte)
{
	struct budget b;
	struct pool p;

	budget_init(&b, &p, SIZE_MAX);
	for (size_t whole = POOL_MIN_BYTES; whole <= POOL_MAX_BYTES; whole *= 2) {
		const size_t sizes[] = {whole / 2 + 1, whole - 1, whole};

		for (int i = 0; i < 3; i++) {
			uint8_t *a = pool_get(&p, sizes[i]), *c = pool_get(&p, sizes[i]);

			assert_non_null(a);
			assert_non_null(c);
			assert_int_equal((uintptr_t)a % 64, 0);
			assert_int_equal((uintptr_t)c % 64, 0);
			assert_int_equal(pool_lent_bytes(&p), 2 * whole);
			memset(a, 0x11, sizes[i]);
			memset(c, 0x22, sizes[i]);
			assert_int_equal(a[0], 0x11);
			assert_int_equal(a[sizes[i] - 1], 0x11);
			pool_put(&p, a, sizes[i]);
			pool_put(&p, c, sizes[i]);
			assert_int_equal(pool_lent_bytes(&p), 0);
		}
	}
	pool_fini(&p);
	assert_int_equal(b.held_bytes, 0);
}

TEST(no_bytes_and_too_many_are_refused)
{
	struct budget b;
	struct pool p;

	budget_init(&b, &p, SIZE_MAX);
	assert_null(pool_get(&p, 0));
	assert_null(pool_get(&p, POOL_MAX_BYTES + 1));
	assert_null(pool_get(&p, SIZE_MAX));
	pool_put(&p, NULL, 0);
	pool_put(&p, NULL, 100);
	assert_int_equal(b.gets, 0);
	assert_int_equal(pool_bytes(&p), 0);
	pool_fini(&p);
}

TEST(small_pieces_share_a_slab)
{
	enum { N = POOL_SLAB_BYTES / 1024 };
	struct budget b;
	struct pool p;
	void *piece[N], *more;
	size_t slab;

	budget_init(&b, &p, SIZE_MAX);
	for (int i = 0; i < N; i++)
		assert_non_null(piece[i] = pool_get(&p, 1024));
	assert_int_equal(b.gets, 1);
	slab = pool_bytes(&p);
	assert_non_null(more = pool_get(&p, 1024));
	assert_int_equal(b.gets, 2);
	assert_int_equal(pool_bytes(&p), 2 * slab);

	/* One that is empty is kept for the next in need. */
	pool_put(&p, more, 1024);
	assert_int_equal(pool_bytes(&p), 2 * slab);
	assert_non_null(more = pool_get(&p, 1024));
	assert_int_equal(b.gets, 2);
	pool_put(&p, more, 1024);
	for (int i = 0; i < N; i++)
		pool_put(&p, piece[i], 1024);
	assert_int_equal(pool_bytes(&p), slab);
	pool_fini(&p);
	assert_int_equal(b.held_bytes, 0);
}

/* Put in the order they were lent, the other way round, and one slab's after another's by turns. */
TEST(a_peak_of_small_pieces_is_given_back)
{
	enum { A_SLAB = POOL_SLAB_BYTES / 4096, SLABS = 200, N = SLABS * A_SLAB };
	static void *piece[N];
	struct budget b;
	struct pool p;

	budget_init(&b, &p, SIZE_MAX);
	for (int order = 0; order < 3; order++) {
		size_t peak, table;

		for (int i = 0; i < N; i++)
			assert_non_null(piece[i] = pool_get(&p, 4096));
		peak = pool_bytes(&p);
		assert_true(peak >= (size_t)N * 4096);
		assert_true(peak <= (size_t)N * 4096 + SLABS * 128);
		for (int i = 0; i < N; i++) {
			int k = order == 0 ? i : order == 1 ? N - 1 - i : i % SLABS * A_SLAB + i / SLABS;

			pool_put(&p, piece[k], 4096);
		}
		table = (size_t)p.bucket_count * sizeof(void *);
		assert_int_equal(pool_bytes(&p), b.held_bytes);
		assert_true(b.held_bytes <= POOL_SLAB_BYTES + 64 + table);
	}
	pool_fini(&p);
	assert_int_equal(b.held_bytes, 0);
}

/* A load that goes up and down by a fifth takes and gives back nothing. */
TEST(empty_slabs_are_kept_in_proportion)
{
	enum { A_SLAB = POOL_SLAB_BYTES / 32768, SLABS = 40, N = SLABS * A_SLAB };
	void *piece[N];
	struct budget b;
	struct pool p;
	int gets;

	budget_init(&b, &p, SIZE_MAX);
	for (int i = 0; i < N; i++)
		assert_non_null(piece[i] = pool_get(&p, 32768));
	gets = b.gets;
	assert_int_equal(gets, SLABS);
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 8 * A_SLAB; i++)
			pool_put(&p, piece[i], 32768);
		for (int i = 0; i < 8 * A_SLAB; i++)
			assert_non_null(piece[i] = pool_get(&p, 32768));
	}
	assert_int_equal(b.gets, gets);
	for (int i = 0; i < N; i++)
		pool_put(&p, piece[i], 32768);
	assert_int_equal(b.held_bytes, POOL_SLAB_BYTES + 64);
	pool_fini(&p);
	assert_int_equal(b.held_bytes, 0);
}

TEST(an_owner_may_have_more_empty_slabs_kept)
{
	enum { A_SLAB = POOL_SLAB_BYTES / 32768, SLABS = 10, KEPT = 5, N = SLABS * A_SLAB };
	void *piece[N];
	struct budget b;
	struct pool p;

	budget_init(&b, &p, SIZE_MAX);
	p.empty_min = KEPT;
	for (int i = 0; i < N; i++)
		assert_non_null(piece[i] = pool_get(&p, 32768));
	for (int i = 0; i < N; i++)
		pool_put(&p, piece[i], 32768);
	assert_int_equal(b.held_bytes, KEPT * (POOL_SLAB_BYTES + 64));
	pool_fini(&p);
	assert_int_equal(b.held_bytes, 0);
}

TEST(empty_slabs_of_one_class_do_not_starve_another)
{
	struct budget b;
	struct pool p;
	void *a;

	budget_init(&b, &p, POOL_SLAB_BYTES + 64);
	a = pool_get(&p, 64);
	assert_null(pool_get(&p, 128));
	pool_put(&p, a, 64);
	assert_int_equal(b.held_bytes, POOL_SLAB_BYTES + 64);
	assert_non_null(a = pool_get(&p, 128));
	pool_put(&p, a, 128);
	pool_fini(&p);
	assert_int_equal(b.held_bytes, 0);
}

/* A table that finds no memory to grow finds its slabs all the same. */
TEST(a_table_that_cannot_grow_serves_on)
{
	enum { A_SLAB = POOL_SLAB_BYTES / 32768, SLABS = 3 * POOL_BUCKETS_MIN, N = SLABS * A_SLAB };
	static void *piece[N];
	struct budget b;
	struct pool p;

	budget_init(&b, &p, (size_t)SLABS * (POOL_SLAB_BYTES + 64));
	for (int i = 0; i < N; i++) {
		if (i == POOL_BUCKETS_MIN * A_SLAB) /* the next one is that for which it would */
			b.refused_bytes = 2 * POOL_BUCKETS_MIN * sizeof(void *);
		assert_non_null(piece[i] = pool_get(&p, 32768));
	}
	assert_int_equal(p.bucket_count, POOL_BUCKETS_MIN);
	assert_null(pool_get(&p, 32768));
	for (int i = 0; i < N; i++)
		pool_put(&p, piece[i], 32768);
	assert_int_equal(b.held_bytes, POOL_SLAB_BYTES + 64);
	pool_fini(&p);
	assert_int_equal(b.held_bytes, 0);
}

TEST(a_put_piece_is_the_next_one_lent)
{
	static const size_t sizes[] = {64, 4096, 32768, 65536, POOL_MAX_BYTES};
	struct budget b;
	struct pool p;

	budget_init(&b, &p, SIZE_MAX);
	for (int i = 0; i < 5; i++) {
		void *first = pool_get(&p, sizes[i]);

		pool_put(&p, first, sizes[i]);
		assert_ptr_equal(pool_get(&p, sizes[i]), first);
		pool_put(&p, first, sizes[i]);
	}
	pool_fini(&p);
}

TEST(a_burst_of_large_pieces_leaves_only_a_few_behind)
{
	enum { N = 20 };
	struct budget b;
	struct pool p;
	void *piece[N];

	budget_init(&b, &p, SIZE_MAX);
	for (int i = 0; i < N; i++)
		assert_non_null(piece[i] = pool_get(&p, 1 << 20));
	assert_int_equal(pool_bytes(&p), (size_t)N << 20);
	for (int i = 0; i < N; i++)
		pool_put(&p, piece[i], 1 << 20);
	assert_int_equal(pool_bytes(&p), (size_t)POOL_SPARES_MAX << 20);
	assert_int_equal(b.held_bytes, (size_t)POOL_SPARES_MAX << 20);
	for (int i = 0; i < POOL_SPARES_MAX; i++)
		assert_non_null(piece[i] = pool_get(&p, 1 << 20));
	assert_int_equal(b.gets, N);
	for (int i = 0; i < POOL_SPARES_MAX; i++)
		pool_put(&p, piece[i], 1 << 20);
	assert_int_equal(b.held_bytes, (size_t)POOL_SPARES_MAX << 20);
	pool_fini(&p);
	assert_int_equal(b.held_bytes, 0);
}

TEST(running_out_is_null_and_passes)
{
	struct budget b;
	struct pool p;
	void *mem, *small[32];
	int n = 0;

	budget_init(&b, &p, 3 << 16);
	assert_null(pool_get(&p, 1 << 18));
	while ((mem = pool_get(&p, 8192)))
		small[n++] = mem;
	assert_int_equal(n, 2 * POOL_SLAB_BYTES / 8192);
	assert_int_equal(pool_lent_bytes(&p), 2 * POOL_SLAB_BYTES);
	pool_put(&p, small[--n], 8192);
	assert_non_null(small[n++] = pool_get(&p, 8192));
	while (n)
		pool_put(&p, small[--n], 8192);
	assert_int_equal(pool_lent_bytes(&p), 0);
	pool_fini(&p);
	assert_int_equal(b.held_bytes, 0);
}

TEST(spares_of_one_class_do_not_starve_another)
{
	struct budget b;
	struct pool p;
	void *a, *c;

	budget_init(&b, &p, 4 << 20);
	a = pool_get(&p, 2 << 20);
	c = pool_get(&p, 2 << 20);
	assert_null(pool_get(&p, 64));
	pool_put(&p, a, 2 << 20);
	pool_put(&p, c, 2 << 20);
	assert_int_equal(b.held_bytes, 4 << 20);
	assert_non_null(a = pool_get(&p, 64));
	pool_put(&p, a, 64);
	pool_fini(&p);
	assert_int_equal(b.held_bytes, 0);
}

TEST(fini_takes_small_leaks_along_and_leaves_large_ones)
{
	struct budget b;
	struct pool p;
	void *large;

	budget_init(&b, &p, SIZE_MAX);
	assert_non_null(pool_get(&p, 64));
	assert_non_null(pool_get(&p, 32768));
	assert_non_null(large = pool_get(&p, 65536));
	pool_fini(&p);
	assert_int_equal(b.held_bytes, 65536);
	memset(large, 0x33, 65536);
	budget_put(&b, large, 65536);
	assert_int_equal(pool_bytes(&p), 0);
	assert_int_equal(pool_lent_bytes(&p), 0);

	/* As new: used and ended a second time. */
	assert_non_null(large = pool_get(&p, 64));
	pool_put(&p, large, 64);
	pool_fini(&p);
	pool_fini(&p);
	assert_int_equal(b.held_bytes, 0);
}

/* Each lent piece is filled with its own pattern, so that two that overlap show. */
static void lent_pieces_never_overlap(int steps)
{
	enum { SLOTS = 200 };
	static struct {
		uint8_t *mem;
		size_t bytes;
		uint8_t fill;
	} slot[SLOTS];
	struct budget b;
	struct pool p;
	struct prng r;
	size_t lent = 0;

	budget_init(&b, &p, 64 << 20);
	prng_init(&r, 9);
	for (int step = 0; step < steps; step++) {
		uint64_t k = prng_below(&r, SLOTS);

		if (slot[k].mem) {
			assert_int_equal(slot[k].mem[0], slot[k].fill);
			assert_int_equal(slot[k].mem[slot[k].bytes / 2], slot[k].fill);
			assert_int_equal(slot[k].mem[slot[k].bytes - 1], slot[k].fill);
			pool_put(&p, slot[k].mem, slot[k].bytes);
			slot[k].mem = NULL;
			lent -= rounded(slot[k].bytes);
		} else {
			/* Small sizes are the common ones. */
			slot[k].bytes = 1 + prng_below(&r, UINT64_C(1) << prng_below(&r, 23));
			slot[k].fill = (uint8_t)step;
			slot[k].mem = pool_get(&p, slot[k].bytes);
			if (slot[k].mem) {
				assert_int_equal((uintptr_t)slot[k].mem % 64, 0);
				slot[k].mem[0] = slot[k].fill;
				slot[k].mem[slot[k].bytes / 2] = slot[k].fill;
				slot[k].mem[slot[k].bytes - 1] = slot[k].fill;
				lent += rounded(slot[k].bytes);
			}
		}
		assert_int_equal(pool_lent_bytes(&p), lent);
		assert_int_equal(pool_bytes(&p), b.held_bytes);
		assert_true(lent <= b.held_bytes);
	}
	for (int k = 0; k < SLOTS; k++)
		pool_put(&p, slot[k].mem, slot[k].bytes);
	assert_int_equal(pool_lent_bytes(&p), 0);
	pool_fini(&p);
	assert_int_equal(b.held_bytes, 0);
}

TEST(lent_pieces_never_overlap_at_random)
{
	lent_pieces_never_overlap(10000);
}

TEST_MANY(nor_do_they_after_long)
{
	lent_pieces_never_overlap(50000);
}
