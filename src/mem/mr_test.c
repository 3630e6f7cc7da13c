/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "base/pkt.h"
#include "base/prng.h"
#include "mem/mr.h"
#include "support/heap.h"
#include "support/test.h"

static const uint8_t secret[16] = {1, 2, 3};

struct world {
	struct heap heap;
	struct alloc alloc;
	struct mr_table table;
	struct pd pd, other_pd;
};

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));

	w->heap.gets_left = -1;
	w->alloc = heap_alloc(&w->heap);
	assert_int_equal(mr_table_init(&w->table, &w->alloc, secret), 0);
	return w;
}

static void world_free(struct world *w)
{
	mr_table_fini(&w->table);
	assert_int_equal(w->heap.blocks, 0);
	assert_int_equal(w->heap.bytes, 0);
	free(w);
}

#define CASE(name) TEST_OF(name, struct world *, w, world_new(), world_free(w))

CASE(check_opens_exactly_the_range)
{
	static uint8_t mem[4096];
	const uint64_t high = UINT64_MAX - 99; /* 100 bytes up to the end of the address space */
	static const uint64_t huge = UINT64_MAX;
	const struct {
		uint64_t iova, length, va, len;
		bool opens;
	} rows[] = {
		{1000, 100, 1000, 100, true},    {1000, 100, 1000, 1, true},
		{1000, 100, 1099, 1, true},      {1000, 100, 1099, 2, false},
		{1000, 100, 1100, 1, false},     {1000, 100, 999, 1, false},
		{1000, 100, 999, 2, false},      {1000, 100, 1000, 101, false},
		{1000, 100, 1001, huge, false},  {1000, 100, 1001, huge - 1000, false},
		{1000, 100, huge, 2, false},     {1000, 100, 0, huge, false},
		{1000, 0, 1000, 1, false},       {0, 100, 0, 100, true},
		{0, 100, huge, 1, false},        {high, 100, high, 100, true},
		{high, 100, high + 99, 1, true}, {high, 100, high + 99, 2, false},
		{high, 100, 0, 1, false},        {high, 100, high - 1, 1, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mr *mr;

		assert_int_equal(
			mr_create(&w->table, &w->pd, (struct mr_range){mem, rows[i].length, rows[i].iova}, 0, &mr), 0);
		uint8_t *p = mr_check(&w->table, mr->key, &w->pd, rows[i].va, rows[i].len, 0);

		if (rows[i].opens)
			assert_ptr_equal(p, mem + (rows[i].va - rows[i].iova));
		else
			assert_null(p);
		mr_destroy(&w->table, mr);
	}
}

CASE(check_wants_every_access_bit_and_the_pd)
{
	static uint8_t mem[64];

	for (uint32_t granted = 0; granted <= MR_ACCESS_KNOWN; granted++) {
		struct mr *mr;

		if (mr_create(&w->table, &w->pd, (struct mr_range){mem, sizeof(mem), 0}, granted, &mr))
			continue;
		for (uint32_t asked = 0; asked < MR_MW_BIND; asked++) {
			bool want = (asked & granted) == asked;

			assert_int_equal(!!mr_check(&w->table, mr->key, &w->pd, 0, 1, asked), want);
			assert_null(mr_check(&w->table, mr->key, &w->other_pd, 0, 1, asked));
		}
		mr_destroy(&w->table, mr);
	}
}

CASE(validate_refuses_what_no_region_may_be)
{
	uint8_t *const base = (uint8_t *)4096;
	uint8_t *const last = (uint8_t *)UINTPTR_MAX;
	const struct {
		void *addr;
		uint64_t length, iova;
		uint32_t access;
		int result;
	} rows[] = {
		{base, 10, 0, 0, 0},
		{base, 0, UINT64_MAX, 0, 0},
		{NULL, 0, 0, 0, 0},
		{base, 10, 0, MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC, 0},
		{base, 10, 0, MR_REMOTE_READ, 0},
		{base, 10, 0, MR_MW_BIND, 0},
		{base, 10, 0, MR_REMOTE_WRITE, -EINVAL},
		{base, 10, 0, MR_REMOTE_ATOMIC, -EINVAL},
		{base, 10, 0, MR_FLUSH_GLOBAL, 0},
		{base, 10, 0, MR_FLUSH_PERSISTENT, -EINVAL},
		{base, 10, 0, MR_FLUSH_GLOBAL | MR_FLUSH_PERSISTENT, -EINVAL},
		{base, 10, 0, 1u << 7, -EINVAL},
		{base, 10, 0, 1u << 31, -EINVAL},
		{base, 10, UINT64_MAX - 9, 0, 0},
		{base, 10, UINT64_MAX - 8, 0, -EINVAL},
		{base, 10, UINT64_MAX - 8, MR_ZERO_BASED, 0},
		{last, 1, 0, 0, 0},
		{last, 2, 0, 0, -EINVAL},
		{base, UINT64_MAX, 0, 0, -EINVAL},
		{NULL, UINT64_MAX, 0, MR_ON_DEMAND, 0},
		{NULL, UINT64_MAX, 1, MR_ON_DEMAND, -EINVAL},
		{NULL, UINT64_MAX, 0, MR_ON_DEMAND | MR_REMOTE_WRITE, -EINVAL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mr *mr;

		assert_int_equal(mr_validate(rows[i].addr, rows[i].length, rows[i].iova, rows[i].access),
				 rows[i].result);
		assert_int_equal(mr_create(&w->table, &w->pd,
					   (struct mr_range){rows[i].addr, rows[i].length, rows[i].iova},
					   rows[i].access, &mr),
				 rows[i].result);
		if (!rows[i].result)
			mr_destroy(&w->table, mr);
	}
	assert_int_equal(w->pd.users, 0);
}

/* All but two ranges, and what they hold is found however it is asked for. */
CASE(whole_address_space_opens_what_is_not_the_device_s)
{
	struct own own = {{{4096, 8192}, {UINTPTR_MAX - 100, UINTPTR_MAX}}};
	const struct {
		uint64_t va, len;
		bool opens;
	} rows[] = {
		{4095, 1, true},
		{4095, 2, false},
		{4096, 1, false},
		{1, UINT64_MAX - 1, false},
		{8191, 1, false},
		{8192, 1, true},
		{8192, UINT64_MAX - 8192, false},
		{8192, UINT64_MAX, false},
		{UINT64_MAX - 200, 100, true},
		{UINT64_MAX - 200, 101, false},
		{UINT64_MAX - 200, 300, false},
		{0, 8, false},
	};
	struct mr *mr;

	w->table.own = &own;
	assert_int_equal(mr_create(&w->table, &w->pd, (struct mr_range){NULL, UINT64_MAX, 0},
				   MR_ON_DEMAND | MR_REMOTE_READ, &mr),
			 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t *want = rows[i].opens ? (uint8_t *)(uintptr_t)rows[i].va : NULL;

		assert_ptr_equal(mr_check(&w->table, mr->key, &w->pd, rows[i].va, rows[i].len, MR_REMOTE_READ), want);
		assert_null(mr_check(&w->table, mr->key, &w->pd, rows[i].va, rows[i].len, MR_LOCAL_WRITE));
		assert_null(mr_check(&w->table, mr->key, &w->other_pd, rows[i].va, rows[i].len, 0));
	}
	mr_destroy(&w->table, mr);
}

/* To local keys alone, while others are as they were. */
CASE(region_of_nothing_has_zeros_at_every_address)
{
	uint8_t bytes[64], other[64];
	struct mr *nothing, *more, *mr;

	assert_int_equal(mr_create(&w->table, &w->pd, (struct mr_range){other, sizeof(other), 0}, MR_LOCAL_WRITE, &mr),
			 0);
	assert_int_equal(mr_create_nothing(&w->table, &w->pd, &nothing), 0);
	assert_int_equal(mr_create_nothing(&w->table, &w->pd, &more), 0);
	mr_destroy(&w->table, more);
	for (uint64_t va = 0; va < 3; va++) {
		uint8_t *p = mr_check(&w->table, nothing->key, &w->pd, va - 1, UINT32_MAX, MR_LOCAL_WRITE);

		assert_non_null(p);
		assert_null(mr_check(&w->table, nothing->key, &w->other_pd, va - 1, 1, 0));
		assert_null(mr_check_remote(&w->table, nothing->key, &(struct mr_user){.pd = &w->pd}, va, 1,
					    MR_REMOTE_READ));
		memset(bytes, 7, sizeof(bytes));
		assert_true(mr_write(&w->table, p, bytes, sizeof(bytes)));
		assert_true(mr_read(&w->table, bytes, p, sizeof(bytes) - 1));
		for (size_t i = 0; i < sizeof(bytes); i++)
			assert_int_equal(bytes[i], i + 1 < sizeof(bytes) ? 0 : 7);
	}
	memset(bytes, 9, sizeof(bytes));
	assert_true(mr_write(&w->table, other, bytes, sizeof(other)));
	memset(bytes, 0, sizeof(bytes));
	assert_true(mr_read(&w->table, bytes, other, sizeof(other)));
	assert_true(bytes[0] == 9 && bytes[63] == 9);
	assert_true(w->table.copies_oddly);
	mr_destroy(&w->table, nothing);
	assert_false(w->table.copies_oddly);
	mr_destroy(&w->table, mr);
}

CASE(zero_based_region_starts_at_0)
{
	static uint8_t mem[64];
	struct mr *mr;

	assert_int_equal(
		mr_create(&w->table, &w->pd, (struct mr_range){mem, sizeof(mem), (uintptr_t)mem}, MR_ZERO_BASED, &mr),
		0);
	assert_ptr_equal(mr_check(&w->table, mr->key, &w->pd, 3, 61, 0), mem + 3);
	assert_null(mr_check(&w->table, mr->key, &w->pd, (uintptr_t)mem, 1, 0));
}

CASE(pd_counts_its_regions)
{
	static uint8_t mem[64];
	struct mr *a, *b;

	assert_int_equal(mr_create(&w->table, &w->pd, (struct mr_range){mem, 8, 0}, 0, &a), 0);
	assert_int_equal(mr_create(&w->table, &w->pd, (struct mr_range){mem, 8, 0}, 0, &b), 0);
	assert_int_equal(w->pd.users, 2);
	mr_rekey(&w->table, a);
	assert_int_equal(w->pd.users, 2);
	mr_destroy(&w->table, a);
	mr_destroy(&w->table, b);
	assert_int_equal(w->pd.users, 0);
}

CASE(rekey_closes_the_old_key)
{
	static uint8_t mem[64];
	struct mr *mr;

	assert_int_equal(mr_create(&w->table, &w->pd, (struct mr_range){mem, 8, 0}, 0, &mr), 0);
	for (int i = 0; i < 100; i++) {
		uint32_t old = mr->key;

		mr_rekey(&w->table, mr);
		assert_int_not_equal(mr->key, old);
		assert_null(mr_find(&w->table, old));
		assert_ptr_equal(mr_find(&w->table, mr->key), mr);
	}
	assert_int_equal(w->table.count, 1);
}

CASE(keys_0_and_all_ones_open_nothing)
{
	static uint8_t mem[64];
	struct mr *mr;

	for (int i = 0; i < 40; i++)
		assert_int_equal(mr_create(&w->table, &w->pd, (struct mr_range){mem, 8, 0}, 0, &mr), 0);
	assert_null(mr_find(&w->table, 0));
	assert_null(mr_find(&w->table, UINT32_MAX));
}

/* The same secret gives the same keys, another one others. */
CASE(keys_depend_on_the_secret)
{
	static uint8_t mem[64];
	static const uint8_t other[16] = {1, 2, 4};
	struct mr_table same, different;
	struct mr *a, *b, *c;

	assert_int_equal(mr_table_init(&same, &w->alloc, secret), 0);
	assert_int_equal(mr_table_init(&different, &w->alloc, other), 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(mr_create(&w->table, &w->pd, (struct mr_range){mem, 8, 0}, 0, &a), 0);
		assert_int_equal(mr_create(&same, &w->pd, (struct mr_range){mem, 8, 0}, 0, &b), 0);
		assert_int_equal(mr_create(&different, &w->pd, (struct mr_range){mem, 8, 0}, 0, &c), 0);
		assert_int_equal(a->key, b->key);
		assert_int_not_equal(a->key, c->key);
	}
	mr_table_fini(&same);
	mr_table_fini(&different);
}

CASE(create_without_memory_changes_nothing)
{
	static uint8_t mem[64];
	struct mr *mr = NULL;
	int failures = 0;

	for (int i = 0; i < 200; i++) {
		uint32_t count = w->table.count;

		w->heap.gets_left = i % 3;
		if (mr_create(&w->table, &w->pd, (struct mr_range){mem, 8, 0}, 0, &mr)) {
			assert_int_equal(w->table.count, count);
			assert_int_equal(w->pd.users, count);
			failures++;
		}
	}
	assert_true(failures >= 66 && failures < 150);
	w->heap.gets_left = -1;
}

/* Random creations, deletions and re-keyings against a plain array. */
CASE(table_agrees_with_a_naive_model)
{
	enum { LIVE_MAX = 3000, STEPS = 60000 };
	static uint8_t mem[64];
	static struct mr *live[LIVE_MAX];
	static uint32_t dead[256];
	struct prng r;
	uint32_t n = 0, d = 0;

	prng_init(&r, 7);
	for (int step = 0; step < STEPS; step++) {
		bool growing = step / 10000 % 2 == 0;
		uint32_t dice = (uint32_t)prng_below(&r, 10);

		if (dice < (growing ? 6u : 3u) && n < LIVE_MAX) {
			assert_int_equal(mr_create(&w->table, &w->pd, (struct mr_range){mem, 8, n}, 0, &live[n]), 0);
			n++;
		} else if (dice < 9 && n) {
			uint32_t k = (uint32_t)prng_below(&r, n);

			dead[d++ % 256] = live[k]->key;
			mr_destroy(&w->table, live[k]);
			live[k] = live[--n];
		} else if (n) {
			struct mr *mr = live[prng_below(&r, n)];

			dead[d++ % 256] = mr->key;
			mr_rekey(&w->table, mr);
		}
		assert_int_equal(w->table.count, n);
		assert_true((uint64_t)n * 2 <= (uint64_t)w->table.mask + 1);
		if (step % 500)
			continue;
		for (uint32_t i = 0; i < n; i++)
			assert_ptr_equal(mr_find(&w->table, live[i]->key), live[i]);
		for (uint32_t i = 0; i < d && i < 256; i++)
			assert_null(mr_find(&w->table, dead[i]));
	}
}

/* What a READ's response lends comes back when its region or its key closes, and only what is of that region. */
CASE(what_a_response_lends_comes_back_with_its_region)
{
	static uint8_t region[2][PKT_FAR_BYTES_MIN], packet[PKT_FAR_BYTES_MIN];
	_Atomic uint64_t told = 0, given_back = 0;
	struct loan loan = {.told = &told, .given_back = &given_back};
	struct borrower peer = {0};
	struct lender lender = {.lot = 40};
	struct mr *mr[2];
	uint64_t requests = 0;

	lender_init(&lender);
	borrower_init(&peer, &loan);
	w->table.lender = &lender;
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(mr_create(&w->table, &w->pd, (struct mr_range){region[i], sizeof(region[i]), 0},
					   MR_REMOTE_READ, &mr[i]),
				 0);
	assert_true(mr_read_response(&w->table, mr[0]->key, packet, region[0], sizeof(region[0])));
	assert_int_equal(mr[0]->lot, 0); /* it was copied */
	w->table.lends = true;
	for (size_t i = 0; i < 2; i++) {
		lender_begin(&lender, &peer, &requests);
		assert_true(mr_read_response(&w->table, mr[i]->key, packet, region[i], sizeof(region[i])));
		assert_int_equal(mr[i]->lot, 41 + i);
	}
	assert_int_equal(requests, 0);
	mr_rekey(&w->table, mr[0]);
	assert_int_equal(told, 41);
	assert_true(lender_lends_responses(&lender));
	mr_destroy(&w->table, mr[0]);
	assert_int_equal(told, 41);
	mr_destroy(&w->table, mr[1]);
	assert_int_equal(told, 42);
	assert_false(lender_lends_responses(&lender));
}
