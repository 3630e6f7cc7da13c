/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "base/pkt.h"
#include "base/prng.h"
#include "mem/mw.h"
#include "support/heap.h"
#include "support/test.h"

static const uint8_t secret[16] = {4, 5, 6};

enum { BYTES = 4096, IOVA = 0x10000, WRITABLE = MR_LOCAL_WRITE | MR_MW_BIND };

struct world {
	struct heap heap;
	struct alloc alloc;
	struct mr_table table;
	struct pd pd, other_pd;
	struct mr_user qp, same_pd, stranger;
	struct mr *mr, *read_only, *unbindable, *zero_based, *foreign;
	struct mw *type_1, *type_2;
	uint8_t mem[BYTES];
};

static struct mr *region(struct world *w, struct pd *pd, uint32_t access)
{
	struct mr *mr;

	assert_int_equal(mr_create(&w->table, pd, (struct mr_range){w->mem, BYTES, IOVA}, access, &mr), 0);
	return mr;
}

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));

	w->heap.gets_left = -1;
	w->alloc = heap_alloc(&w->heap);
	assert_int_equal(mr_table_init(&w->table, &w->alloc, secret), 0);
	w->qp.pd = &w->pd;
	w->same_pd.pd = &w->pd;
	w->stranger.pd = &w->other_pd;
	w->mr = region(w, &w->pd, WRITABLE);
	w->read_only = region(w, &w->pd, MR_MW_BIND);
	w->unbindable = region(w, &w->pd, MR_LOCAL_WRITE);
	w->zero_based = region(w, &w->pd, WRITABLE | MR_ZERO_BASED);
	w->foreign = region(w, &w->other_pd, WRITABLE);
	assert_int_equal(mw_create(&w->table, &w->pd, MW_TYPE_1, &w->type_1), 0);
	assert_int_equal(mw_create(&w->table, &w->pd, MW_TYPE_2, &w->type_2), 0);
	return w;
}

/* The table frees those that are left. */
static void world_free(struct world *w)
{
	mr_table_fini(&w->table);
	assert_int_equal(w->heap.blocks, 0);
	assert_int_equal(w->heap.bytes, 0);
	free(w);
}

static struct mw_binding binding(const struct mw *mw, uint32_t rkey, const struct mr *mr)
{
	return (struct mw_binding){
		.addr = IOVA + 100,
		.length = 200,
		.handle = mw->anchor.key,
		.rkey = rkey,
		.lkey = mr->key,
		.access = MR_REMOTE_READ | MR_REMOTE_WRITE,
	};
}

static uint32_t next_key(uint32_t key)
{
	return (key & ~0xffu) | ((key + 1) & 0xff);
}

/* One that is allowed; returns the key. */
static uint32_t bind_2(struct world *w, struct mr_user *user)
{
	struct mw_binding b = binding(w->type_2, next_key(w->type_2->opened.key), w->mr);

	assert_true(mw_bind(&w->table, &b, user));
	return b.rkey;
}

static bool opens(const struct world *w, uint32_t key, const struct mr_user *user, uint64_t va, uint64_t len,
		  uint32_t access)
{
	const uint8_t *p = mr_check_remote(&w->table, key, user, va, len, access);

	if (p)
		assert_in_range((uintptr_t)p, (uintptr_t)w->mem, (uintptr_t)w->mem + BYTES - len);
	return p;
}

static const enum mw_type T1 = MW_TYPE_1, T2 = MW_TYPE_2;

enum { R = MR_REMOTE_READ, W = MR_REMOTE_WRITE, A = MR_REMOTE_ATOMIC };

#define CASE(name) TEST_OF(name, struct world *, w, world_new(), world_free(w))

CASE(bind_keeps_what_ibta_demands)
{
	const struct {
		const char *what;
		enum mw_type type;
		const struct mr *mr;
		uint64_t addr, length;
		uint32_t access;
		struct mr_user *user;
		bool allowed;
	} rows[] = {
		{"type 1", T1, w->mr, IOVA, BYTES, R, &w->qp, true},
		{"type 2", T2, w->mr, IOVA, BYTES, R, &w->qp, true},
		{"another QP of the PD", T2, w->mr, IOVA, 1, R, &w->same_pd, true},
		{"QP of another PD", T1, w->mr, IOVA, 1, R, &w->stranger, false},
		{"C10-72", T2, w->mr, IOVA, 1, R, &w->stranger, false},
		{"region of another PD", T2, w->foreign, IOVA, 1, R, &w->qp, false},
		{"C10-73", T2, w->unbindable, IOVA, 1, R, &w->qp, false},
		{"zero-based region", T2, w->zero_based, 0, 1, R, &w->qp, false},
		{"C10-74 read", T2, w->read_only, IOVA, 1, R, &w->qp, true},
		{"C10-74 write", T2, w->read_only, IOVA, 1, W, &w->qp, false},
		{"C10-74 atomic", T2, w->read_only, IOVA, 8, A, &w->qp, false},
		{"no access", T2, w->mr, IOVA, 1, 0, &w->qp, true},
		{"local write", T2, w->mr, IOVA, 1, MR_LOCAL_WRITE, &w->qp, false},
		{"right to bind", T2, w->mr, IOVA, 1, MR_MW_BIND, &w->qp, false},
		{"unknown access", T2, w->mr, IOVA, 1, 1u << 6, &w->qp, false},
		{"C10-75 end", T2, w->mr, IOVA + 1, BYTES, R, &w->qp, false},
		{"C10-75 begin", T2, w->mr, IOVA - 1, 2, R, &w->qp, false},
		{"C10-75 wraps", T2, w->mr, IOVA + 1, UINT64_MAX, R, &w->qp, false},
		{"C10-75 wraps back", T2, w->mr, UINT64_MAX, 2, R, &w->qp, false},
		{"last byte", T2, w->mr, IOVA + BYTES - 1, 1, R, &w->qp, true},
		{"zero-based", T2, w->mr, IOVA, 1, R | MR_ZERO_BASED, &w->qp, true},
		{"o10-36.2.2", T1, w->mr, IOVA, 1, R | MR_ZERO_BASED, &w->qp, false},
		{"o10-37.2.40", T2, w->mr, IOVA, 0, R, &w->qp, false},
		{"type 1 without bytes", T1, w->mr, 0, 0, 0, &w->qp, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mw *mw = rows[i].type == T1 ? w->type_1 : w->type_2;
		const struct mw before = *mw;
		struct mw_binding b =
			binding(mw, rows[i].type == T1 ? mw_draw_key(&w->table) : next_key(mw->opened.key), rows[i].mr);

		b.addr = rows[i].addr;
		b.length = rows[i].length;
		b.access = rows[i].access;
		if (mw_bind(&w->table, &b, rows[i].user) != rows[i].allowed)
			fail_msg("%s", rows[i].what);
		if (!rows[i].allowed)
			assert_memory_equal(&before, mw, sizeof(before));
		mw_invalidate(&w->table, mw->opened.key, rows[i].user);
		assert_int_equal(w->mr->windows, w->type_1->region == w->mr);
	}
}

CASE(bind_refuses_keys_that_are_not_the_windows)
{
	struct mw *other;
	struct mw_binding b;

	assert_int_equal(mw_create(&w->table, &w->pd, MW_TYPE_2, &other), 0);
	const uint32_t family = w->type_2->opened.key,
		       taken[] = {
			       w->mr->key, w->type_2->anchor.key, family, next_key(family), other->opened.key,
		       };

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		b = binding(w->type_1, taken[i], w->mr);
		assert_false(mw_bind(&w->table, &b, &w->qp));
	}
	for (uint32_t bit = 8; bit < 32; bit++) {
		b = binding(w->type_2, family ^ 1u << bit, w->mr);
		assert_false(mw_bind(&w->table, &b, &w->qp));
	}
	b = binding(w->type_2, other->opened.key, w->mr);
	assert_false(mw_bind(&w->table, &b, &w->qp));
	/* The low byte is the program's; the same one again too. */
	for (uint32_t low = 0; low < 512; low++) {
		b = binding(w->type_2, (family & ~0xffu) | (low & 0xff), w->mr);
		assert_true(mw_bind(&w->table, &b, &w->qp));
		assert_true(opens(w, b.rkey, &w->qp, b.addr, 1, R));
		mw_invalidate(&w->table, b.rkey, &w->qp);
		assert_false(opens(w, b.rkey, &w->qp, b.addr, 1, R));
	}
}

CASE(handle_of_a_window_that_is_gone_binds_nothing)
{
	struct mw_binding b = binding(w->type_2, w->type_2->opened.key, w->mr);

	mw_destroy(&w->table, w->type_2);
	assert_false(mw_bind(&w->table, &b, &w->qp));
	b.handle = w->mr->key;
	assert_false(mw_bind(&w->table, &b, &w->qp));
	b.handle = w->type_1->opened.key;
	assert_false(mw_bind(&w->table, &b, &w->qp));
}

CASE(window_opens_its_range_and_access_alone)
{
	struct mw_binding b = binding(w->type_2, w->type_2->opened.key, w->mr);

	for (int zero = 0; zero < 2; zero++) {
		const uint64_t at = zero ? 0 : b.addr;

		b.access = R | (zero ? MR_ZERO_BASED : 0);
		assert_true(mw_bind(&w->table, &b, &w->qp));
		assert_ptr_equal(mr_check_remote(&w->table, b.rkey, &w->qp, at, b.length, R), w->mem + 100);
		assert_false(opens(w, b.rkey, &w->qp, at - 1, 1, R));
		assert_false(opens(w, b.rkey, &w->qp, at - 1, 2, R));
		assert_false(opens(w, b.rkey, &w->qp, at, b.length + 1, R));
		assert_false(opens(w, b.rkey, &w->qp, at + b.length, 1, R));
		assert_false(opens(w, b.rkey, &w->qp, at + 1, UINT64_MAX, R));
		assert_false(opens(w, b.rkey, &w->qp, at, 1, W));
		assert_false(opens(w, b.rkey, &w->qp, at, 8, A));
		/* An R_Key of a window is no L_Key, nor is its handle any key. */
		assert_null(mr_check(&w->table, b.rkey, &w->pd, at, 1, 0));
		assert_null(mr_check(&w->table, b.handle, &w->pd, 0, 1, 0));
		assert_false(opens(w, b.handle, &w->qp, 0, 1, R));
		mw_invalidate(&w->table, b.rkey, &w->qp);
	}
}

CASE(type_2_opens_for_the_qp_that_bound_it)
{
	uint32_t key = bind_2(w, &w->qp);

	assert_true(opens(w, key, &w->qp, IOVA + 100, 1, R));
	assert_false(opens(w, key, &w->same_pd, IOVA + 100, 1, R));
	assert_false(opens(w, key, &w->stranger, IOVA + 100, 1, R));
	assert_false(mw_may_invalidate(&w->table, key, &w->same_pd));
	mw_invalidate(&w->table, key, &w->same_pd);
	assert_true(opens(w, key, &w->qp, IOVA + 100, 1, R));
	mw_forget_user(&w->table, &w->qp);
	assert_false(opens(w, key, &w->qp, IOVA + 100, 1, R));
	assert_int_equal(w->mr->windows, 0);
	key = bind_2(w, &w->same_pd);
	assert_true(opens(w, key, &w->same_pd, IOVA + 100, 1, R));
}

/* A window takes back what was lent from it, whether a peer invalidates it or the queue pair that bound it ends. */
CASE(what_a_response_lends_comes_back_with_its_window)
{
	static uint8_t packet[PKT_FAR_BYTES_MIN];
	_Atomic uint64_t told = 0, given_back = 0;
	struct loan loan = {.told = &told, .given_back = &given_back};
	struct borrower peer = {0};
	struct lender lender = {0};
	uint64_t requests;

	lender_init(&lender);
	borrower_init(&peer, &loan);
	w->table.lender = &lender;
	w->table.lends = true;
	for (uint64_t lot = 1; lot <= 2; lot++) {
		uint32_t key = bind_2(w, &w->qp);

		lender_begin(&lender, &peer, &requests);
		assert_true(mr_read_response(&w->table, key, packet, w->mr->addr, sizeof(packet)));
		assert_int_equal(told, lot - 1);
		if (lot == 1)
			mw_invalidate(&w->table, key, &w->qp);
		else
			mw_forget_user(&w->table, &w->qp);
		assert_int_equal(told, lot);
	}
	w->table.lends = false;
}

CASE(type_1_opens_for_every_qp_of_its_pd_until_bound_anew)
{
	struct mw_binding b = binding(w->type_1, mw_draw_key(&w->table), w->mr);
	uint32_t old = b.rkey;

	assert_false(opens(w, w->type_1->opened.key, &w->qp, b.addr, 1, R));
	assert_true(mw_bind(&w->table, &b, &w->qp));
	assert_true(opens(w, old, &w->qp, b.addr, 1, R));
	assert_true(opens(w, old, &w->same_pd, b.addr, 1, W));
	assert_false(opens(w, old, &w->stranger, b.addr, 1, R));
	assert_false(mw_may_invalidate(&w->table, old, &w->qp)); /* o10-37.2.26 */
	b.rkey = mw_draw_key(&w->table);
	b.lkey = w->read_only->key;
	b.access = R;
	assert_true(mw_bind(&w->table, &b, &w->qp));
	assert_false(opens(w, old, &w->qp, b.addr, 1, R));
	assert_true(opens(w, b.rkey, &w->qp, b.addr, 1, R));
	assert_int_equal(w->mr->windows, 0);
	assert_int_equal(w->read_only->windows, 1);
	old = b.rkey;
	b.rkey = mw_draw_key(&w->table);
	b.length = 0;
	assert_true(mw_bind(&w->table, &b, &w->qp));
	assert_false(opens(w, old, &w->qp, b.addr, 1, R));
	assert_false(opens(w, b.rkey, &w->qp, b.addr, 1, R));
	assert_int_equal(w->read_only->windows, 0);
}

CASE(type_2_is_bound_when_it_is_free)
{
	uint32_t key = bind_2(w, &w->qp);
	struct mw_binding again = binding(w->type_2, next_key(key), w->mr);

	assert_false(mw_bind(&w->table, &again, &w->qp)); /* o10-37.2.30 */
	assert_true(opens(w, key, &w->qp, again.addr, 1, R));
	mw_invalidate(&w->table, key, &w->qp);
	assert_false(mw_may_invalidate(&w->table, key, &w->qp));
	assert_true(mw_bind(&w->table, &again, &w->qp));
	assert_false(opens(w, key, &w->qp, again.addr, 1, R));
}

CASE(invalidated_region_keeps_its_l_key)
{
	struct mr *mr = region(w, &w->pd, MR_LOCAL_WRITE | R | W | A);

	assert_false(mw_may_invalidate(&w->table, mr->key, &w->stranger));
	mw_invalidate(&w->table, mr->key, &w->stranger);
	assert_true(opens(w, mr->key, &w->qp, IOVA, 8, R | W | A));
	mw_invalidate(&w->table, mr->key, &w->qp);
	assert_false(opens(w, mr->key, &w->qp, IOVA, 1, R));
	assert_non_null(mr_check(&w->table, mr->key, &w->pd, IOVA, 1, MR_LOCAL_WRITE));
}

CASE(region_that_goes_unbinds_its_windows)
{
	uint32_t key = bind_2(w, &w->qp);
	struct mw_binding b = binding(w->type_1, mw_draw_key(&w->table), w->mr);

	assert_true(mw_bind(&w->table, &b, &w->qp));
	assert_int_equal(w->mr->windows, 2);
	mw_unbind_all(&w->table, w->mr);
	assert_int_equal(w->mr->windows, 0);
	mr_destroy(&w->table, w->mr);
	assert_false(opens(w, key, &w->qp, b.addr, 1, R));
	assert_false(opens(w, b.rkey, &w->qp, b.addr, 1, R));
}

/* Thousands of windows and regions come and go; a model says what each key opens. */
CASE(table_finds_what_a_model_says)
{
	enum { COUNT = 600, STEPS = 30000 };
	static struct {
		struct mw *mw;
		struct mr *mr;
		uint32_t key;
		bool bound;
	} model[COUNT];
	struct prng prng;

	memset(model, 0, sizeof(model));
	prng_init(&prng, 42);
	for (int step = 0; step < STEPS; step++) {
		size_t i = prng_below(&prng, COUNT);

		if (!model[i].mw && !model[i].mr) {
			if (prng_below(&prng, 2)) {
				model[i].mr = region(w, &w->pd, R);
				model[i].key = model[i].mr->key;
				model[i].bound = true;
			} else {
				assert_int_equal(mw_create(&w->table, &w->pd, T2, &model[i].mw), 0);
				model[i].key = model[i].mw->opened.key;
				model[i].bound = false;
			}
		} else if (model[i].mr || !prng_below(&prng, 4)) {
			if (model[i].mr)
				mr_destroy(&w->table, model[i].mr);
			else
				mw_destroy(&w->table, model[i].mw);
			model[i].mr = NULL;
			model[i].mw = NULL;
			model[i].bound = false;
		} else if (!model[i].bound) {
			struct mw_binding b = binding(model[i].mw, (model[i].key & ~0xffu) | (step & 3), w->mr);

			assert_true(mw_bind(&w->table, &b, &w->qp));
			model[i].key = b.rkey;
			model[i].bound = true;
		} else {
			mw_invalidate(&w->table, model[i].key, &w->qp);
			model[i].bound = false;
		}
		i = prng_below(&prng, COUNT);
		if (model[i].key)
			assert_int_equal(opens(w, model[i].key, &w->qp, IOVA + 100, 1, R), model[i].bound);
	}
}

CASE(window_is_a_user_of_its_pd)
{
	uint32_t before = w->other_pd.users;
	struct mw *mw;

	assert_int_equal(mw_create(&w->table, &w->other_pd, (enum mw_type)3, &mw), -EINVAL);
	w->heap.gets_left = 0;
	assert_int_equal(mw_create(&w->table, &w->other_pd, T2, &mw), -ENOMEM);
	w->heap.gets_left = -1;
	assert_int_equal(w->other_pd.users, before);
	assert_int_equal(mw_create(&w->table, &w->other_pd, T2, &mw), 0);
	assert_int_equal(w->other_pd.users, before + 1);
	mw_destroy(&w->table, mw);
	assert_int_equal(w->other_pd.users, before);
}
