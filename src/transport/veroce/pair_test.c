/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of pairs. */
#include "support/pair_fixture.h"

static void two_addresses_are_one_pair_a_direction(void **state)
{
	struct fixture f;
	struct pair *again, *back;

	start(&f, 4, CC_NONE);
	again = pair_get(&f.table, here, there, false, MTU, start_ns);
	back = pair_get(&f.table, there, here, false, MTU, start_ns);
	assert_ptr_equal(again, f.pair);
	assert_ptr_not_equal(back, f.pair);
	assert_int_equal(f.pair->users, 2);
	assert_int_equal(f.pair->path_count, 4);
	pair_put(&f.table, back);
	pair_put(&f.table, again);
	end(&f);
}

static void a_pair_of_one_user_is_nobody_elses(void **state)
{
	struct fixture f;
	struct pair *other;

	start(&f, 4, CC_NONE);
	f.table.config.one_user = true;
	other = pair_get(&f.table, here, there, false, MTU, start_ns);
	assert_non_null(other);
	assert_ptr_not_equal(other, f.pair);
	pair_put(&f.table, other);
	assert_int_equal(f.table.unused, 0);
	end(&f);
}

static void our_own_host_needs_one_path(void **state)
{
	struct fixture f;

	start(&f, 16, CC_SWIFT);
	pair_put(&f.table, f.pair);
	f.pair = pair_get(&f.table, here, here, true, MTU, start_ns);
	assert_int_equal(f.pair->path_count, 1);
	end(&f);
}

static void what_is_known_outlives_the_last_user(void **state)
{
	struct fixture f;

	start(&f, 2, CC_NONE);
	pair_learn(f.pair, PAIR_VEROCE, start_ns);
	pair_put(&f.table, f.pair);
	assert_ptr_equal(pair_get(&f.table, here, there, false, MTU, start_ns), f.pair);
	assert_int_equal(pair_speaks(f.pair, start_ns + 1), PAIR_VEROCE);
	end(&f);
}

static void strangers_without_users_are_forgotten_before_they_are_too_many(void **state)
{
	struct fixture f;

	start(&f, 1, CC_NONE);
	for (uint32_t i = 0; i < 3 * PAIR_UNUSED_MAX; i++) {
		uint8_t stranger[16] = {3, (uint8_t)i, (uint8_t)(i >> 8)};

		pair_put(&f.table, pair_get(&f.table, here, stranger, false, MTU, start_ns));
		assert_true(f.table.unused <= PAIR_UNUSED_MAX);
		assert_true(blocks <= PAIR_UNUSED_MAX + 2); /* the buckets are one */
	}
	/* The one in use is still there. */
	assert_ptr_equal(pair_get(&f.table, here, there, false, MTU, start_ns), f.pair);
	pair_put(&f.table, f.pair);
	end(&f);
}

static void pairs_are_found_however_many_there_are(void **state)
{
	enum { PEERS = 500 };
	struct pair *pairs[PEERS];
	struct fixture f;

	start(&f, 1, CC_NONE);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < PEERS; i++) {
			uint8_t peer[16] = {3, (uint8_t)i, (uint8_t)(i >> 8)};
			struct pair *p = pair_get(&f.table, here, peer, false, MTU, start_ns);

			assert_non_null(p);
			assert_true(!round || p == pairs[i]);
			pairs[i] = p;
		}
	}
	for (uint32_t i = 0; i < 2 * PEERS; i++)
		pair_put(&f.table, pairs[i / 2]);
	end(&f);
}

static void a_pair_of_one_path_has_no_room_for_others(void **state)
{
	struct fixture f;

	start(&f, 1, CC_SWIFT);
	assert_true(last_bytes < sizeof(struct pair) + 2 * sizeof(struct path));
	end(&f);
	start(&f, 3, CC_SWIFT);
	assert_true(last_bytes >= sizeof(struct pair) + 3 * sizeof(struct path));
	assert_non_null(pair_get(&f.table, here, here, true, MTU, start_ns));
	assert_true(last_bytes < sizeof(struct pair) + 2 * sizeof(struct path));
	end(&f);
}

static void what_a_peer_speaks_is_believed_for_a_while(void **state)
{
	static const uint64_t minute_ns = 60000000000ull;
	struct fixture f;

	start(&f, 1, CC_NONE);
	assert_int_equal(pair_speaks(f.pair, start_ns), PAIR_UNKNOWN);
	pair_learn(f.pair, PAIR_ROCEV2, start_ns);
	assert_int_equal(pair_speaks(f.pair, start_ns + minute_ns - 1), PAIR_ROCEV2);
	assert_int_equal(pair_speaks(f.pair, start_ns + minute_ns), PAIR_UNKNOWN);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_addresses_are_one_pair_a_direction),
		cmocka_unit_test(a_pair_of_one_user_is_nobody_elses),
		cmocka_unit_test(our_own_host_needs_one_path),
		cmocka_unit_test(what_is_known_outlives_the_last_user),
		cmocka_unit_test(strangers_without_users_are_forgotten_before_they_are_too_many),
		cmocka_unit_test(pairs_are_found_however_many_there_are),
		cmocka_unit_test(a_pair_of_one_path_has_no_room_for_others),
		cmocka_unit_test(what_a_peer_speaks_is_believed_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
