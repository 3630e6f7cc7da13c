/* SPDX-License-Identifier: BSD-2-Clause */
#include "cc/fixed.h"

#include "base/prng.h"
#include "support/test.h"

TEST(muldiv_keeps_the_whole_product)
{
	assert_int_equal(fx_muldiv(6, 7, 2), 21);
	assert_int_equal(fx_muldiv(UINT64_MAX, UINT64_MAX, UINT64_MAX), UINT64_MAX);
	assert_int_equal(fx_muldiv(UINT64_MAX, 3, 4), UINT64_C(0xbfffffffffffffff));
	assert_int_equal(fx_muldiv(UINT64_C(1) << 63, 6, 1 << 4), UINT64_C(3) << 60);
}

TEST(what_does_not_fit_saturates)
{
	assert_int_equal(fx_muldiv(UINT64_MAX, 2, 1), UINT64_MAX);
	assert_int_equal(fx_muldiv(1, 1, 0), UINT64_MAX);
	assert_int_equal(fx_add(UINT64_MAX, 1), UINT64_MAX);
	assert_int_equal(fx_sub(1, 2), 0);
	assert_int_equal(q32_mul(UINT64_MAX, 2 * Q32_ONE), UINT64_MAX);
	assert_int_equal(q32_mul(UINT64_MAX, Q32_ONE), UINT64_MAX);
}

TEST(a_share_times_its_whole_is_the_part)
{
	assert_int_equal(Q32_RATIO(1, 2), Q32_ONE / 2);
	assert_int_equal(Q32_RATIO(4, 5), 3435973837);
	assert_int_equal(q32_div(3, 4), 3 * (Q32_ONE / 4));
	assert_int_equal(q32_mul(1000, q32_div(3, 4)), 750);
}

TEST(isqrt_is_the_floor)
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
