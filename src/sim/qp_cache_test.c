/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/prng.h"
#include "sim/qp_cache.h"
#include "support/test.h"

TEST(what_was_used_last_is_at_hand)
{
	struct qp_cache *c = qp_cache_create(2, 100);

	assert_int_equal(qp_cache_use(c, 1, 1000), 1100);
	assert_int_equal(qp_cache_use(c, 2, 2000), 2100);
	assert_int_equal(qp_cache_use(c, 1, 3000), 3000);
	/* 3 takes the place of 2. */
	assert_int_equal(qp_cache_use(c, 3, 4000), 4100);
	assert_int_equal(qp_cache_use(c, 1, 5000), 5000);
	assert_int_equal(qp_cache_use(c, 2, 6000), 6100);
	assert_int_equal(qp_cache_misses(c), 4);
	qp_cache_destroy(c);
}

TEST(fetches_wait_for_each_other)
{
	struct qp_cache *c = qp_cache_create(8, 100);

	assert_int_equal(qp_cache_use(c, 1, 1000), 1100);
	assert_int_equal(qp_cache_use(c, 2, 1010), 1200);
	/* It is on its way. */
	assert_int_equal(qp_cache_use(c, 1, 1020), 1100);
	assert_int_equal(qp_cache_use(c, 3, 1500), 1600);
	qp_cache_destroy(c);
}

TEST(a_cache_agrees_with_a_list)
{
	static const uint32_t rooms[] = {1, 2, 3, 64, 65, 200};

	for (size_t k = 0; k < sizeof(rooms) / sizeof(rooms[0]); k++) {
		struct qp_cache *c = qp_cache_create(rooms[k], 1);
		uint64_t list[200], misses = 0; /* the newest first */
		uint32_t count = 0;
		struct prng r;

		prng_init(&r, k);
		for (uint64_t now = 10; now < 200000; now += 10) {
			uint64_t key = prng_below(&r, 2 + rooms[k] * 3 / 2);
			uint32_t i = 0;

			while (i < count && list[i] != key)
				i++;
			misses += i == count;
			if (i == count && count < rooms[k])
				count++;
			i = i < count ? i : count - 1;
			memmove(list + 1, list, i * sizeof(list[0]));
			list[0] = key;
			qp_cache_use(c, key, now);
			assert_int_equal(qp_cache_misses(c), misses);
		}
		assert_true(misses > rooms[k]);
		qp_cache_destroy(c);
	}
}
