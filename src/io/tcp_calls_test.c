/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that the kernel has done with, beside a model that has a flag for each. */

#include "base/prng.h"
#include "io/tcp_calls.h"
#include "support/test.h"

enum { CALLS = 5000 };

/* Notices about random runs of calls, in any order, and about calls that were never made. */
TEST(notices_in_any_order_advance_as_in_the_model)
{
	for (uint64_t seed = 1; seed <= 50; seed++) {
		uint32_t start = seed % 2 ? 0 : UINT32_MAX - CALLS / 2; /* the numbers wrap */
		struct tcp_calls c = {.made = start, .done = start};
		bool done[CALLS] = {false};
		uint32_t made = 0, first_open = 0;
		struct prng rng;

		prng_init(&rng, seed);
		while (first_open < CALLS) {
			uint32_t at = first_open + (uint32_t)prng_below(&rng, made - first_open + 1);
			uint32_t len = 1 + (uint32_t)prng_below(&rng, 5);

			while (made < CALLS && made - first_open < TCP_CALLS_MAX && prng_below(&rng, 8)) {
				c.made++;
				made++;
			}
			if (prng_below(&rng, 50) == 0)
				tcp_calls_note(&c, start + made, start + made + 70000);
			tcp_calls_note(&c, start + at, start + at + len - 1);
			for (uint32_t i = at; i < at + len && i < made; i++)
				done[i] = true;
			while (first_open < made && done[first_open])
				first_open++;
			assert_int_equal(c.done - start, first_open);
		}
		for (size_t i = 0; i < TCP_CALLS_MAX / 64; i++)
			assert_int_equal(c.late[i], 0);
	}
}
