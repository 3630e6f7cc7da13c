/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "support/test.h"
#include "workload/workload_draw.h"

TEST(the_logarithm_is_libms_to_nine_digits)
{
	struct prng r;

	prng_init(&r, 1);
	for (int i = 0; i < 100000; i++) {
		/* Small ones too: every power of two is visited. */
		uint64_t u = prng_next(&r) >> i % 64;
		double want = -log(((double)u + 1) / 18446744073709551616.0);
		double got = (double)draw_exponential_q32(u) / 4294967296.0;

		assert_true(fabs(got - want) < 1e-9);
	}
}

TEST(the_logarithm_s_ends)
{
	static const struct {
		uint64_t u, q32;
	} rows[] = {
		{UINT64_MAX, 0},              /* ln 1 */
		{0, 190530846196},            /* 64 ln 2 = 44.3614.. */
		{UINT64_MAX / 2, 2977044471}, /* ln 2 */
		{UINT64_MAX / 4, 5954088943},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_in_range(draw_exponential_q32(rows[i].u), rows[i].q32 - (rows[i].q32 > 0), rows[i].q32 + 1);
}

TEST(the_logarithm_never_rises)
{
	uint64_t last = UINT64_MAX;

	for (uint64_t i = 0; i < 65536; i++) {
		uint64_t e = draw_exponential_q32(i << 48);

		assert_true(e <= last);
		last = e;
	}
}

TEST(gaps_have_their_mean_and_variance)
{
	enum { COUNT = 200000 };
	double sum = 0, squares = 0, mean = 123456.75;
	struct prng r;

	prng_init(&r, 3);
	for (int i = 0; i < COUNT; i++) {
		double gap = (double)draw_gap_ps(&r, (uint64_t)(mean * 65536));

		sum += gap;
		squares += gap * gap;
	}
	assert_true(fabs(sum / COUNT / mean - 1) < 0.01);
	assert_true(fabs(squares / COUNT / (2 * mean * mean) - 1) < 0.03);
}

TEST(a_gap_too_long_is_cut)
{
	struct prng r;

	prng_init(&r, 3);
	for (int i = 0; i < 1000; i++)
		assert_true(draw_gap_ps(&r, UINT64_MAX) <= UINT64_MAX / 4);
}

TEST(zipf_weights_are_powers)
{
	for (uint32_t milli = 0; milli <= 8000; milli += 125)
		for (uint32_t rank = 1; rank < 100000; rank += rank / 7 + 1) {
			double want = pow(rank, -(double)milli / 1000);
			double got = (double)draw_zipf_weight_q60(rank, milli) / 1152921504606846976.0;

			assert_true(fabs(got - want) < 1e-7 * want + 1e-17);
		}
}

TEST(objects_have_seeds_of_their_own)
{
	/* SipHash-2-4 of the object under the key seed, ~seed. */
	assert_int_equal(draw_seed(1, 2), draw_seed(1, 2));
	assert_int_not_equal(draw_seed(1, 2), draw_seed(2, 1));
	assert_int_not_equal(draw_seed(0, 0), draw_seed(0, 1));
	assert_int_not_equal(draw_seed(0, 0), draw_seed(1, 0));
}

TEST(a_shuffle_keeps_every_item)
{
	uint32_t items[100];
	uint64_t first = 0;

	for (uint64_t seed = 0; seed < 2000; seed++) {
		uint8_t seen[100] = {0};
		struct prng r;

		prng_init(&r, seed);
		draw_shuffle(&r, items, 100);
		for (int i = 0; i < 100; i++)
			seen[items[i]]++;
		for (int i = 0; i < 100; i++)
			assert_int_equal(seen[i], 1);
		first += items[0];
	}
	/* Its mean is 49.5, and its standard error here 0.65. */
	assert_in_range(first, 2000 * 47, 2000 * 52);
}
