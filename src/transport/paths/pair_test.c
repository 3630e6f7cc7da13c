/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of pairs. */
#include "support/pair_fixture.h"
#include "support/test.h"

FIXTURE_TEST(two_addresses_are_one_pair_a_direction, 4, CC_NONE)
{
	struct pair *again, *back;

	again = pair_get(&f->table, here, there, false, MTU, start_ns);
	back = pair_get(&f->table, there, here, false, MTU, start_ns);
	assert_ptr_equal(again, f->pair);
	assert_ptr_not_equal(back, f->pair);
	assert_int_equal(f->pair->users, 2);
	assert_int_equal(f->pair->path_count, 4);
	pair_put(&f->table, back);
	pair_put(&f->table, again);
}

FIXTURE_TEST(a_pair_of_one_user_is_nobody_elses, 4, CC_NONE)
{
	struct pair *other;

	f->config.veroce.scope = SCOPE_PATH;
	other = pair_get(&f->table, here, there, false, MTU, start_ns);
	assert_non_null(other);
	assert_ptr_not_equal(other, f->pair);
	pair_put(&f->table, other);
	assert_int_equal(f->table.unused, 0);
}

FIXTURE_TEST(our_own_host_needs_one_path, 16, CC_SWIFT)
{
	pair_put(&f->table, f->pair);
	f->pair = pair_get(&f->table, here, here, true, MTU, start_ns);
	assert_int_equal(f->pair->path_count, 1);
}

FIXTURE_TEST(what_is_known_outlives_the_last_user, 2, CC_NONE)
{
	pair_learn(f->pair, PAIR_VEROCE, start_ns);
	pair_put(&f->table, f->pair);
	assert_ptr_equal(pair_get(&f->table, here, there, false, MTU, start_ns), f->pair);
	assert_int_equal(pair_speaks(f->pair, start_ns + 1), PAIR_VEROCE);
}

FIXTURE_TEST(strangers_without_users_are_forgotten_before_they_are_too_many, 1, CC_NONE)
{
	for (uint32_t i = 0; i < 3 * PAIR_UNUSED_MAX; i++) {
		uint8_t stranger[16] = {3, (uint8_t)i, (uint8_t)(i >> 8)};

		pair_put(&f->table, pair_get(&f->table, here, stranger, false, MTU, start_ns));
		assert_true(f->table.unused <= PAIR_UNUSED_MAX);
		assert_true(blocks <= PAIR_UNUSED_MAX + 3); /* the buckets are one, and so are the other's paths */
	}
	/* The one in use is still there. */
	assert_ptr_equal(pair_get(&f->table, here, there, false, MTU, start_ns), f->pair);
	pair_put(&f->table, f->pair);
}

FIXTURE_TEST(pairs_are_found_however_many_there_are, 1, CC_NONE)
{
	enum { PEERS = 500 };
	struct pair *pairs[PEERS];

	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < PEERS; i++) {
			uint8_t peer[16] = {3, (uint8_t)i, (uint8_t)(i >> 8)};
			struct pair *p = pair_get(&f->table, here, peer, false, MTU, start_ns);

			assert_non_null(p);
			assert_true(!round || p == pairs[i]);
			pairs[i] = p;
		}
	}
	for (uint32_t i = 0; i < 2 * PEERS; i++)
		pair_put(&f->table, pairs[i / 2]);
}

/* docs/veroce.md has these: who only receives knows of no path, and of one path there is no more than that. */
TEST(a_pair_takes_memory_for_the_paths_that_it_sends_on)
{
	static const struct {
		uint32_t paths;
		bool local;
		size_t received_bytes_max, sent_bytes_max;
	} rows[] = {{1, false, 680, 1184}, {16, false, 680, 8232}, {16, true, 680, 1184}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static const uint8_t other[16] = {4};
		struct fixture f;
		struct pair *p;
		size_t before;

		start(&f, rows[i].paths, CC_SWIFT);
		before = taken_bytes;
		p = pair_get(&f.table, here, other, rows[i].local, MTU, start_ns);
		assert_true(taken_bytes - before <= rows[i].received_bytes_max);
		assert_true(pair_begin(&f.table, p));
		assert_true(taken_bytes - before <= rows[i].sent_bytes_max);
		before = taken_bytes;
		assert_true(pair_begin(&f.table, p));
		assert_int_equal(taken_bytes, before);
		pair_put(&f.table, p);
		end(&f);
		assert_int_equal(taken_bytes, 0);
	}
}

/* A peer may say what it likes: nothing was sent that it could be about. */
FIXTURE_TEST(what_comes_before_anything_was_sent_changes_no_path, 16, CC_DCQCN)
{
	static const uint8_t other[16] = {4};
	struct cc fresh;
	struct pair *p = pair_get(&f->table, here, other, false, MTU, start_ns);

	pair_cnp(p, 3, start_ns);
	pair_cnp(p, PATHS_MAX, start_ns);
	pair_expire(p, start_ns);
	path_probe_answered(&f->table, p, 3, start_ns);
	assert_int_equal(p->cc_due_ns, CC_NO_DEADLINE);
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(pair_cc(&f->table, p, i, &fresh)->rate_bps, f->pair->path[i].cc.rate_bps);
		assert_true(pair_pick_any(p, (uint8_t)i) != (int)i);
	}
	assert_true(pair_begin(&f->table, p));
	for (uint32_t i = 0; i < 16; i++) {
		assert_ptr_equal(pair_cc(&f->table, p, i, &fresh), &p->path[i].cc);
		assert_int_equal(p->path[i].cc.rate_bps, f->pair->path[i].cc.rate_bps);
		assert_int_equal(p->path[i].cc.cwnd_bytes, f->pair->path[i].cc.cwnd_bytes);
	}
	pair_put(&f->table, p);
}

FIXTURE_TEST(without_memory_a_pair_begins_later, 16, CC_SWIFT)
{
	static const uint8_t other[16] = {4};
	struct pair *p = pair_get(&f->table, here, other, false, MTU, start_ns);

	dry = true;
	assert_false(pair_begin(&f->table, p));
	dry = false;
	pair_cnp(p, 0, start_ns);
	assert_true(pair_begin(&f->table, p));
	pair_put(&f->table, p);
}

FIXTURE_TEST(what_a_peer_speaks_is_believed_for_a_while, 1, CC_NONE)
{
	static const uint64_t minute_ns = 60000000000ull;

	assert_int_equal(pair_speaks(f->pair, start_ns), PAIR_UNKNOWN);
	pair_learn(f->pair, PAIR_ROCEV2, start_ns);
	assert_int_equal(pair_speaks(f->pair, start_ns + minute_ns - 1), PAIR_ROCEV2);
	assert_int_equal(pair_speaks(f->pair, start_ns + minute_ns), PAIR_UNKNOWN);
}
