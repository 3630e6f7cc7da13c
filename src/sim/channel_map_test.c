/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/prng.h"
#include "sim/channel_map.h"

enum { HOSTS = 4, QPNS = 64, STEPS = 20000 };

static char names[HOSTS * QPNS]; /* stand for channels */

static struct channel *channel_at(uint32_t i)
{
	return (struct channel *)&names[i];
}

/* Few keys, so that places are taken and left in every order. */
static void what_is_entered_is_found_until_it_is_removed(void **state)
{
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct channel_map *m = channel_map_create();
		struct channel *model[HOSTS * QPNS] = {0};
		struct prng r;

		print_message("seed %llu\n", (unsigned long long)seed);
		prng_init(&r, seed);
		assert_non_null(m);
		for (int step = 0; step < STEPS; step++) {
			uint32_t i = (uint32_t)prng_below(&r, HOSTS * QPNS), host = i / QPNS, qpn = i % QPNS;

			if (!model[i] && prng_below(&r, 2 * QPNS) < seed * 16) {
				model[i] = channel_at(i);
				assert_true(channel_map_add(m, host, qpn, model[i]));
			} else {
				model[i] = NULL;
				channel_map_remove(m, host, qpn);
			}
			i = (uint32_t)prng_below(&r, HOSTS * QPNS);
			assert_ptr_equal(channel_map_find(m, i / QPNS, i % QPNS), model[i]);
		}
		for (uint32_t i = 0; i < HOSTS * QPNS; i++)
			assert_ptr_equal(channel_map_find(m, i / QPNS, i % QPNS), model[i]);
		channel_map_destroy(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_entered_is_found_until_it_is_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
