/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/prng.h"
#include "sim/key_map.h"
#include "support/test.h"

TEST(an_empty_map_has_nothing)
{
	struct key_map m = {0};

	assert_int_equal(key_map_get(&m, 7), KEY_MAP_NONE);
	key_map_remove(&m, 7);
	key_map_fini(&m);
}

TEST(a_key_has_its_last_value)
{
	struct key_map m = {0};

	assert_true(key_map_set(&m, 7, 1));
	assert_true(key_map_set(&m, 7, 2));
	assert_int_equal(key_map_get(&m, 7), 2);
	assert_int_equal(m.count, 1);
	key_map_fini(&m);
}

/* Few keys, so that they come and go in each other's runs. */
TEST(a_map_agrees_with_an_array)
{
	enum { KEYS = 700 };
	uint64_t model[KEYS];
	struct key_map m = {0};
	struct prng r;

	prng_init(&r, 1);
	for (int i = 0; i < KEYS; i++)
		model[i] = KEY_MAP_NONE;
	for (int step = 0; step < 200000; step++) {
		uint64_t key = prng_below(&r, KEYS), value = prng_below(&r, 1000);

		if (prng_below(&r, 2)) {
			assert_true(key_map_set(&m, key << 20, value));
			model[key] = value;
		} else {
			key_map_remove(&m, key << 20);
			model[key] = KEY_MAP_NONE;
		}
		key = prng_below(&r, KEYS);
		assert_int_equal(key_map_get(&m, key << 20), model[key]);
	}
	for (uint64_t i = 0; i < KEYS; i++)
		assert_int_equal(key_map_get(&m, i << 20), model[i]);
	key_map_fini(&m);
}
