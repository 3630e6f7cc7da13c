/* SPDX-License-Identifier: BSD-2-Clause */
/* PSN arithmetic is modulo 2^24 and its order is that of the shorter way round. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/psn.h"

TEST(psn_add_wraps_at_24_bits)
{
	assert_int_equal(psn_add(0, 1), 1);
	assert_int_equal(psn_add(PSN_MASK, 1), 0);
	assert_int_equal(psn_add(PSN_MASK, 2), 1);
	assert_int_equal(psn_add(5, (uint32_t)-6), PSN_MASK);
	assert_int_equal(psn_add(7, 1u << 24), 7);
}

TEST(psn_diff_wraps_at_24_bits)
{
	static const struct {
		uint32_t a, b;
		int32_t diff;
	} row[] = {
		{0, 0, 0},
		{1, 0, 1},
		{0, 1, -1},
		{0, PSN_MASK, 1},
		{PSN_MASK, 0, -1},
		{0x7fffff, 0, 0x7fffff},
		{0x800000, 0, -0x800000}, /* exactly opposite counts as before, from both sides */
		{0, 0x800000, -0x800000},
		{0x123456, 0x923457, 0x7fffff},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		assert_int_equal(psn_diff(row[i].a, row[i].b), row[i].diff);
}

TEST(psn_diff_ignores_bits_above_24)
{
	assert_int_equal(psn_diff(0xff000003, 0x12000001), 2);
}

TEST(psn_diff_undoes_psn_add)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 100000; i++) {
		uint32_t a = (uint32_t)prng_next(&rng) & PSN_MASK;
		uint32_t n = (uint32_t)prng_next(&rng) & 0x7fffff;

		assert_int_equal(psn_diff(psn_add(a, n), a), n);
		assert_int_equal(psn_diff(a, psn_add(a, n)), -(int32_t)n);
	}
}
