/* SPDX-License-Identifier: BSD-2-Clause */
/* Wide codes: which losses the parities there give back, and that they do. */
#include <errno.h>

#include "base/prng.h"
#include "sdr/ec/kernel.h"
#include "sdr/ec/repair.h"
#include "support/heap.h"
#include "support/test.h"

enum { SEED = 20260101, LENGTH = 40, PERIOD = 224 };

static struct heap memory = HEAP_INIT;
static const struct alloc heap = {heap_get, heap_put, &memory};

/* By hand: row 1 is 1 / (225 ^ j), doubled once from column 224 on; row 0 is not. 1 / 225 = 0xf9
 * modulo 0x11d. */
TEST(golden_elements)
{
	uint8_t row[300], first[300];

	ec_wide_row(row, 1, 300);
	ec_wide_row(first, 0, 300);
	assert_int_equal(gf256_mul(row[0], 225), 1);
	assert_int_equal(gf256_mul(row[5], 225 ^ 5), 1);
	assert_int_equal(row[PERIOD], gf256_mul(row[0], 2));
	assert_int_equal(row[PERIOD + 7], gf256_mul(row[7], 2));
	assert_int_equal(first[PERIOD + 7], first[7]);
}

TEST(no_element_is_zero)
{
	uint8_t row[EC_WIDE_DATA_MAX];

	for (unsigned i = 0; i < EC_WIDE_PARITY_MAX; i++) {
		ec_wide_row(row, i, EC_WIDE_DATA_MAX);
		assert_null(memchr(row, 0, sizeof(row)));
	}
}

static bool is_among(const uint16_t *lost, unsigned n, uint16_t j)
{
	for (unsigned i = 0; i < n; i++) {
		if (lost[i] == j)
			return true;
	}
	return false;
}

/* Draws n different columns below `of`. */
static void draw(struct prng *prng, uint16_t *lost, unsigned n, unsigned of)
{
	for (unsigned k = 0; k < n;) {
		uint16_t j = (uint16_t)prng_below(prng, of);

		if (!is_among(lost, k, j))
			lost[k++] = j;
	}
}

static unsigned unsolved(unsigned n_lost, unsigned n_rows, unsigned of, unsigned draws)
{
	unsigned failed = 0;
	uint16_t lost[EC_WIDE_PARITY_MAX], taken[EC_WIDE_PARITY_MAX];
	uint8_t rows[EC_WIDE_PARITY_MAX];
	struct prng prng;

	prng_init(&prng, SEED);
	for (unsigned i = 0; i < draws; i++) {
		draw(&prng, lost, n_lost, of);
		draw(&prng, taken, n_rows, EC_WIDE_PARITY_MAX);
		for (unsigned k = 0; k < n_rows; k++)
			rows[k] = (uint8_t)taken[k];
		failed += !ec_wide_solve(lost, n_lost, rows, n_rows, NULL, NULL);
	}
	return failed;
}

/* coded_plan.c reckons with less than one in 128. */
TEST(as_many_parities_as_losses_nearly_always_do)
{
	for (unsigned lost = 2; lost <= 8; lost++)
		assert_in_range(unsolved(lost, lost, EC_WIDE_DATA_MAX, 4000), 0, 4000 / 128);
	assert_in_range(unsolved(5, 6, EC_WIDE_DATA_MAX, 4000), 0, 2);
	assert_int_equal(unsolved(1, 1, EC_WIDE_DATA_MAX, 1000), 0);
	assert_int_equal(unsolved(6, 6, PERIOD, 1000), 0);
	assert_int_equal(unsolved(6, 5, EC_WIDE_DATA_MAX, 100), 100);
}

struct group {
	uint8_t bytes[EC_ANY_PIECES_MAX][LENGTH];
	uint8_t *piece[EC_ANY_PIECES_MAX];
	bool present[EC_ANY_PIECES_MAX];
};

/* Loses pieces at random, and gets the data back where that can be; whether it could. */
static bool loses_and_repairs(const struct ec_code *code, const struct group *g, unsigned n_lost, struct prng *prng)
{
	struct group *left = malloc(sizeof(*left));
	struct ec_repair repair;
	int err;

	assert_non_null(left);
	*left = *g;
	for (unsigned i = 0; i < code->data + code->parity; i++)
		left->piece[i] = left->bytes[i];
	while (n_lost) {
		unsigned i = (unsigned)prng_below(prng, code->data + code->parity);

		n_lost -= left->present[i];
		left->present[i] = false;
		memset(left->bytes[i], 0x5a, LENGTH);
	}
	err = ec_repair_init(&repair, code, left->present);
	assert_int_equal(ec_repairable(code, left->present), err == 0);
	if (err) {
		assert_int_equal(err, -ENODATA);
	} else {
		ec_repair_run(&repair, left->piece, LENGTH);
		assert_memory_equal(left->bytes, g->bytes, (size_t)code->data * LENGTH);
		ec_repair_fini(&repair);
	}
	free(left);
	return !err;
}

TEST(lost_data_is_as_it_was)
{
	static const unsigned shapes[][2] = {{1, 1}, {256, 4}, {315, 5}, {700, 12}, {992, 32}};
	struct group *g = malloc(sizeof(*g));
	struct prng prng;

	assert_non_null(g);
	prng_init(&prng, SEED);
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		unsigned k = shapes[s][0], m = shapes[s][1], repaired = 0;
		struct ec_code code;

		assert_int_equal(ec_code_init(&code, EC_WIDE, k, m, ec_kernel_best(), &heap), 0);
		for (unsigned i = 0; i < k + m; i++) {
			g->piece[i] = g->bytes[i];
			g->present[i] = true;
			for (unsigned b = 0; b < LENGTH; b++)
				g->bytes[i][b] = (uint8_t)prng_next(&prng);
		}
		ec_encode(&code, (const uint8_t *const *)g->piece, g->piece + k, LENGTH);
		for (unsigned round = 0; round < 30; round++)
			repaired += loses_and_repairs(&code, g, 1 + (unsigned)prng_below(&prng, m), &prng);
		assert_in_range(repaired, 28, 30);
		assert_false(loses_and_repairs(&code, g, m + 1, &prng) && k > 200);
		ec_code_fini(&code);
	}
	free(g);
	assert_int_equal(memory.blocks, 0);
}

TEST(numbers_out_of_range_are_refused)
{
	struct ec_code code;

	assert_int_equal(ec_code_init(&code, EC_WIDE, EC_WIDE_DATA_MAX + 1, 1, ec_kernels[0], &heap), -EINVAL);
	assert_int_equal(ec_code_init(&code, EC_WIDE, 300, EC_WIDE_PARITY_MAX + 1, ec_kernels[0], &heap), -EINVAL);
	assert_int_equal(ec_code_init(&code, EC_WIDE, 0, 1, ec_kernels[0], &heap), -EINVAL);
	assert_int_equal(ec_code_init(&code, EC_WIDE, 300, 0, ec_kernels[0], &heap), -EINVAL);
	assert_int_equal(memory.blocks, 0);
}
