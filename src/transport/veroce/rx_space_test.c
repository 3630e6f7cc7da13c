/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/test.h"
#include "transport/veroce/rx_space.h"

/* Just before the wrap, so that every test goes over it. */
static const uint32_t first = 0xfffffd;

static int gets_left;

static void *get(void *ctx, size_t bytes)
{
	void *p = gets_left ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;

	if (gets_left > 0)
		gets_left--;
	return p ? memset(p, 0, bytes) : NULL;
}

static void put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

struct fixture {
	struct pool pool;
	struct rx_space s;
};

static struct fixture *start(struct fixture *f)
{
	static const struct alloc alloc = {get, put, NULL};

	gets_left = -1;
	pool_init(&f->pool, &alloc);
	rx_space_init(&f->s, first);
	return f;
}

static void end(struct fixture *f)
{
	rx_space_drop(&f->s, &f->pool);
	assert_false(rx_has_holes(&f->s));
	assert_int_equal(rx_distance(&f->s), 0);
	assert_int_equal(pool_lent_bytes(&f->pool), 0);
	pool_fini(&f->pool);
}

/* A test of `f`. */
#define FIXTURE_TEST(name) TEST_OF(name, struct fixture *, f, start(&(struct fixture){0}), end(f))

static uint32_t nth(uint32_t i)
{
	return psn_add(first, i);
}

static enum rx_place judge(const struct fixture *f, uint32_t i)
{
	return rx_judge(&f->s, nth(i), RX_WINDOW_MAX);
}

static bool record(struct fixture *f, uint32_t i)
{
	return rx_record(&f->s, &f->pool, nth(i), NULL);
}

static bool record_end(struct fixture *f, uint32_t i)
{
	struct rx_meta m = {.msn = i, .va = UINT64_C(0x1000000000) + i, .payload_len = 7};

	return rx_record(&f->s, &f->pool, nth(i), &m);
}

static void step(struct fixture *f, uint32_t count)
{
	while (count--)
		rx_step(&f->s, &f->pool);
}

FIXTURE_TEST(in_order_packets_cost_no_memory)
{
	const struct rx_meta *m;

	for (uint32_t i = 0; i < 1000; i++) {
		assert_int_equal(judge(f, i), RX_NEW);
		assert_false(rx_epsn_arrived(&f->s, &m));
		step(f, 1);
		assert_int_equal(judge(f, i), RX_OLD);
	}
	assert_int_equal(f->s.epsn, nth(1000));
	assert_int_equal(rx_distance(&f->s), 0);
	assert_int_equal(pool_bytes(&f->pool), 0);
}

FIXTURE_TEST(an_early_packet_is_remembered_until_its_turn)
{
	const struct rx_meta *m = NULL;

	assert_true(record(f, 2));
	assert_true(rx_has_holes(&f->s));
	assert_int_equal(rx_distance(&f->s), 3);
	assert_int_equal(f->s.hpsn, nth(2));
	assert_int_equal(judge(f, 2), RX_OLD);
	assert_int_equal(judge(f, 1), RX_NEW);
	assert_false(rx_epsn_arrived(&f->s, &m));
	step(f, 2);
	assert_true(rx_epsn_arrived(&f->s, &m));
	assert_null(m);
	assert_int_equal(rx_distance(&f->s), 1);
	step(f, 1);
	assert_int_equal(pool_lent_bytes(&f->pool), 0);
	assert_int_equal(f->s.epsn, nth(3));
	assert_int_equal(f->s.hpsn, nth(2));
}

TEST(a_psn_is_old_new_or_beyond_reach)
{
	static const struct {
		uint32_t distance;
		uint32_t limit;
		enum rx_place place;
	} rows[] = {
		{0, 128, RX_NEW},
		{127, 128, RX_NEW},
		{128, 128, RX_BEYOND},
		{128, 4096, RX_NEW},
		{65535, 65536, RX_NEW},
		{65536, 65536, RX_BEYOND},
		{(1u << 23) - 1, 65536, RX_BEYOND},
		{1u << 23, 65536, RX_OLD},
		{0xffffff, 65536, RX_OLD},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f;

		start(&f);
		assert_int_equal(rx_judge(&f.s, nth(rows[i].distance), rows[i].limit), rows[i].place);
		assert_true(record(&f, 3)); /* holes make no difference */
		assert_int_equal(rx_judge(&f.s, nth(rows[i].distance), rows[i].limit), rows[i].place);
		end(&f);
	}
}

FIXTURE_TEST(the_window_grows_and_keeps_what_it_knew)
{
	static const uint32_t early[] = {1, 5, 64, 127, 128, 300, 1000, 4095, 40000, 65535};
	enum { N = sizeof(early) / sizeof(early[0]) };
	const struct rx_meta *m;

	for (int i = 0; i < N; i++) {
		assert_true(i % 2 ? record_end(f, early[i]) : record(f, early[i]));
		assert_int_equal(rx_distance(&f->s), early[i] + 1);
		for (int k = 0; k < N; k++)
			assert_int_equal(judge(f, early[k]), k <= i ? RX_OLD : RX_NEW);
	}
	for (uint32_t at = 0, i = 0; at <= early[N - 1]; at++) {
		bool there = rx_epsn_arrived(&f->s, &m);

		assert_int_equal(there, at == early[i]);
		if (there) {
			assert_int_equal(m != NULL, i % 2);
			if (m) {
				assert_int_equal(m->msn, at);
				assert_int_equal(m->va, UINT64_C(0x1000000000) + at);
				assert_int_equal(m->payload_len, 7);
			}
			i++;
		}
		step(f, 1);
	}
	assert_int_equal(pool_lent_bytes(&f->pool), 0);
}

/* Out-of-order R19: bits for 4096 PSNs, and the spare ones for the blocks of metas. */
FIXTURE_TEST(a_window_of_4096_packets_takes_2_kb)
{
	assert_true(record(f, 1));
	assert_true(pool_lent_bytes(&f->pool) <= 512);
	assert_true(record(f, 4096 - 65));
	assert_true(pool_lent_bytes(&f->pool) <= 2048);
}

/* Out-of-order R2: what is kept follows what is early, however many PSNs go by. */
FIXTURE_TEST(metas_are_given_back_as_they_are_passed)
{
	const struct rx_meta *m;
	size_t most = 0;

	for (uint32_t i = 1; i < 20000; i++) {
		assert_true(record_end(f, i));
		if (i < 100)
			continue;
		if (i == 100)
			step(f, 1); /* the hole at the front, once */
		while (rx_epsn_arrived(&f->s, &m) && rx_distance(&f->s) > 50) {
			assert_non_null(m);
			assert_int_equal(m->msn, (f->s.epsn - first) & PSN_MASK);
			step(f, 1);
		}
		if (!most)
			most = pool_lent_bytes(&f->pool);
		assert_true(pool_lent_bytes(&f->pool) <= 2 * most);
	}
}

/* A message that is complete waits for a receive WQE (veRoCE 7.2). */
FIXTURE_TEST(the_packet_that_is_due_can_be_recorded_too)
{
	const struct rx_meta *m = NULL;

	assert_true(record_end(f, 0));
	assert_int_equal(rx_distance(&f->s), 1);
	assert_int_equal(judge(f, 0), RX_OLD);
	assert_true(rx_epsn_arrived(&f->s, &m));
	assert_int_equal(m->msn, 0);
	assert_true(record(f, 1));
	step(f, 1);
	assert_true(rx_epsn_arrived(&f->s, &m));
	assert_null(m);
	step(f, 1);
	assert_int_equal(pool_lent_bytes(&f->pool), 0);
}

FIXTURE_TEST(bits_are_told_from_anywhere_and_end_at_the_highest_psn)
{
	uint64_t bits[2];

	rx_arrived128(&f->s, f->s.epsn, bits);
	assert_int_equal(bits[0] | bits[1], 0);
	step(f, 100); /* so that the window's bits begin in the middle of its ring */
	assert_true(record(f, 101));
	assert_true(record(f, 103));
	assert_true(record(f, 100 + 64));
	assert_true(record(f, 100 + 127));
	rx_arrived128(&f->s, nth(100), bits);
	assert_int_equal(bits[0], 1u << 1 | 1u << 3);
	assert_true(bits[1] == (1 | UINT64_C(1) << 63));
	rx_arrived128(&f->s, nth(103), bits);
	assert_true(bits[0] == (1 | UINT64_C(1) << 61));
	assert_true(bits[1] == UINT64_C(1) << 60);
	rx_arrived128(&f->s, nth(227), bits);
	assert_int_equal(bits[0], 1);
	assert_int_equal(bits[1], 0);
	rx_arrived128(&f->s, nth(228), bits); /* just above: nothing, not the ring's other end */
	assert_int_equal(bits[0] | bits[1], 0);
}

TEST(a_dry_pool_records_nothing_and_leaves_what_is_recorded)
{
	const struct rx_meta *m;

	/* Of the window, of the first metas, of the larger window, of its metas. */
	for (int gets = 0; gets < 4; gets++) {
		struct fixture f;

		start(&f);
		gets_left = gets;
		if (!record_end(&f, 5)) {
			assert_false(rx_has_holes(&f.s));
			assert_int_equal(rx_distance(&f.s), 0);
			assert_int_equal(judge(&f, 5), RX_NEW);
			assert_int_equal(pool_lent_bytes(&f.pool), 0);
		} else if (!record_end(&f, 60000)) {
			assert_int_equal(rx_distance(&f.s), 6);
			assert_int_equal(judge(&f, 60000), RX_NEW);
			assert_int_equal(judge(&f, 5), RX_OLD);
			step(&f, 5);
			assert_true(rx_epsn_arrived(&f.s, &m));
			assert_int_equal(m->msn, 5);
		}
		gets_left = -1;
		assert_true(record_end(&f, 60000));
		end(&f);
	}
}

FIXTURE_TEST(dropping_forgets_what_was_early)
{
	for (uint32_t i = 1; i < 3000; i += 3)
		assert_true(record_end(f, i));
	rx_space_drop(&f->s, &f->pool);
	assert_int_equal(pool_lent_bytes(&f->pool), 0);
	assert_int_equal(f->s.epsn, first);
	for (uint32_t i = 1; i < 3000; i += 3)
		assert_int_equal(judge(f, i), RX_NEW);
}
