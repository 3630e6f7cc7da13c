/* SPDX-License-Identifier: BSD-2-Clause */
#include "cc/fixed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/prng.h"

static void muldiv_keeps_the_whole_product(void **state)
{
	assert_int_equal(fx_muldiv(6, 7, 2), 21);
	assert_int_equal(fx_muldiv(UINT64_MAX, UINT64_MAX, UINT64_MAX), UINT64_MAX);
	assert_int_equal(fx_muldiv(UINT64_MAX, 3, 4), UINT64_C(0xbfffffffffffffff));
	assert_int_equal(fx_muldiv(UINT64_C(1) << 63, 6, 1 << 4), UINT64_C(3) << 60);
}

static void what_does_not_fit_saturates(void **state)
{
	assert_int_equal(fx_muldiv(UINT64_MAX, 2, 1), UINT64_MAX);
	assert_int_equal(fx_muldiv(1, 1, 0), UINT64_MAX);
	assert_int_equal(fx_add(UINT64_MAX, 1), UINT64_MAX);
	assert_int_equal(fx_sub(1, 2), 0);
	assert_int_equal(q32_mul(UINT64_MAX, 2 * Q32_ONE), UINT64_MAX);
	assert_int_equal(q32_mul(UINT64_MAX, Q32_ONE), UINT64_MAX);
}

static void a_share_times_its_whole_is_the_part(void **state)
{
	assert_int_equal(Q32_RATIO(1, 2), Q32_ONE / 2);
	assert_int_equal(Q32_RATIO(4, 5), 3435973837);
	assert_int_equal(q32_div(3, 4), 3 * (Q32_ONE / 4));
	assert_int_equal(q32_mul(1000, q32_div(3, 4)), 750);
}

static void isqrt_is_the_floor(void **state)
{
	struct prng p;

	prng_init(&p, 7);
	for (uint64_t x = 0; x < 70000; x++) {
		uint64_t r = fx_isqrt(x);

		assert_true(r * r <= x && (r + 1) * (r + 1) > x);
	}
	for (int i = 0; i < 100000; i++) {
		uint64_t x = prng_next(&p) >> prng_below(&p, 64), r = fx_isqrt(x);

		assert_true(r * r <= x);
		assert_true(r == UINT32_MAX || (r + 1) * (r + 1) > x);
	}
	assert_int_equal(fx_isqrt(UINT64_MAX), UINT32_MAX);
	assert_int_equal(fx_isqrt(UINT64_C(1) << 62), UINT64_C(1) << 31);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(muldiv_keeps_the_whole_product),
		cmocka_unit_test(what_does_not_fit_saturates),
		cmocka_unit_test(a_share_times_its_whole_is_the_part),
		cmocka_unit_test(isqrt_is_the_floor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
