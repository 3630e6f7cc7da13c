/* SPDX-License-Identifier: BSD-2-Clause */
#include "sdr/ec/code.h"

#include <errno.h>
#include <stdio.h>

#include <isa-l/erasure_code.h>

#include "base/prng.h"
#include "sdr/ec/kernel.h"
#include "sdr/ec/repair.h"
#include "support/heap.h"
#include "support/test.h"

enum { SEED = 20260101, LENGTH_MAX = 700 };

/* One group with room around each piece, so that a kernel that writes beside one is seen. */
struct group {
	unsigned n;
	size_t length;
	uint8_t *memory[EC_PIECES_MAX], *piece[EC_PIECES_MAX];
};

enum { MARGIN = 64, MARGIN_BYTE = 0xa5 };

static struct heap memory = HEAP_INIT;
static struct alloc heap = {heap_get, heap_put, &memory};

static void group_make(struct group *g, unsigned n, size_t length, unsigned misalign, struct prng *prng)
{
	*g = (struct group){.n = n, .length = length};
	for (unsigned i = 0; i < n; i++) {
		g->memory[i] = malloc(length + 2 * MARGIN + misalign);
		assert_non_null(g->memory[i]);
		memset(g->memory[i], MARGIN_BYTE, length + 2 * MARGIN + misalign);
		g->piece[i] = g->memory[i] + MARGIN + misalign;
		for (size_t b = 0; b < length; b++)
			g->piece[i][b] = (uint8_t)prng_next(prng);
	}
}

static void group_free(struct group *g)
{
	for (unsigned i = 0; i < g->n; i++) {
		for (unsigned b = 0; b < MARGIN; b++) {
			assert_int_equal(g->piece[i][(long)b - MARGIN], MARGIN_BYTE);
			assert_int_equal(g->piece[i][g->length + b], MARGIN_BYTE);
		}
		free(g->memory[i]);
	}
}

static void encode_group(const struct ec_code *code, struct group *g)
{
	ec_encode(code, (const uint8_t *const *)g->piece, g->piece + code->data, g->length);
}

TEST(the_field_is_that_of_isal)
{
	for (unsigned a = 0; a < 256; a++) {
		assert_int_equal(gf256_inv((uint8_t)a), gf_inv((unsigned char)a));
		for (unsigned b = 0; b < 256; b++)
			assert_int_equal(gf256_mul((uint8_t)a, (uint8_t)b), gf_mul((unsigned char)a, (unsigned char)b));
	}
}

/* By hand: k = 2, m = 1, so parity = data[0] / 2 + data[1] / 3; 1 / 2 = 0x8e and 1 / 3 = 0xf4
 * modulo 0x11d. */
TEST(golden_bytes_of_a_group_of_two)
{
	static const uint8_t first[2] = {1, 2}, second[2] = {1, 3};
	const uint8_t *data[2] = {first, second};
	uint8_t parity[2], *parities[1] = {parity};
	struct ec_code code;

	assert_int_equal(ec_code_init(&code, EC_CAUCHY, 2, 1, ec_kernels[0], &heap), 0);
	ec_encode(&code, data, parities, 2);
	assert_int_equal(parity[0], 0x8e ^ 0xf4);
	assert_int_equal(parity[1], 1 ^ 1);
	ec_code_fini(&code);
}

TEST(cauchy_parities_are_those_of_isal)
{
	static const unsigned shapes[][2] = {{1, 1}, {4, 2}, {10, 4}, {32, 8}, {17, 5}, {200, 55}, {243, 8}, {254, 1}};
	struct prng prng;

	prng_init(&prng, SEED);
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		unsigned k = shapes[s][0], m = shapes[s][1];
		uint8_t *matrix = malloc((size_t)(k + m) * k), *tables = malloc((size_t)32 * k * m);
		struct ec_code code;
		struct group g, theirs;

		assert_int_equal(ec_code_init(&code, EC_CAUCHY, k, m, ec_kernel_best(), &heap), 0);
		group_make(&g, k + m, 333, 1, &prng);
		group_make(&theirs, m, 333, 0, &prng);
		gf_gen_cauchy1_matrix(matrix, (int)(k + m), (int)k);
		ec_init_tables((int)k, (int)m, matrix + (size_t)k * k, tables);
		ec_encode_data(333, (int)k, (int)m, tables, g.piece, theirs.piece);
		encode_group(&code, &g);
		for (unsigned i = 0; i < m; i++)
			assert_memory_equal(g.piece[k + i], theirs.piece[i], 333);
		group_free(&g);
		group_free(&theirs);
		ec_code_fini(&code);
		free(matrix);
		free(tables);
	}
}

static void kernel_equals_the_portable_one(const struct ec_kernel *kernel, struct prng *prng)
{
	for (unsigned round = 0; round < 300; round++) {
		unsigned k = 1 + (unsigned)prng_below(prng, 11), m = 1 + (unsigned)prng_below(prng, k < 9 ? k : 9);
		enum ec_kind kind = round % 3 == 0 ? EC_XOR : EC_CAUCHY;
		unsigned first = (unsigned)prng_below(prng, k + 1), count = (unsigned)prng_below(prng, k - first + 1);
		size_t length = (size_t)prng_below(prng, LENGTH_MAX);
		struct ec_code code, portable;
		struct group g, plain;

		assert_int_equal(ec_code_init(&code, kind, k, m, kernel, &heap), 0);
		assert_int_equal(ec_code_init(&portable, kind, k, m, ec_kernels[0], &heap), 0);
		group_make(&g, k + m, length, (unsigned)prng_below(prng, 64), prng);
		group_make(&plain, m, length, 0, prng);
		encode_group(&code, &g);
		ec_encode(&portable, (const uint8_t *const *)g.piece, plain.piece, length);
		for (unsigned i = 0; i < m; i++)
			assert_memory_equal(g.piece[k + i], plain.piece[i], length);
		ec_encode_add(&code, first, count, (const uint8_t *const *)g.piece + first, g.piece + k, length);
		ec_encode_add(&portable, first, count, (const uint8_t *const *)g.piece + first, plain.piece, length);
		for (unsigned i = 0; i < m; i++)
			assert_memory_equal(g.piece[k + i], plain.piece[i], length);
		group_free(&g);
		group_free(&plain);
		ec_code_fini(&code);
		ec_code_fini(&portable);
	}
}

TEST(every_kernel_equals_the_portable_one)
{
	struct prng prng;

	prng_init(&prng, SEED);
	for (const struct ec_kernel *const *k = ec_kernels; *k != NULL; k++) {
		print_message("%s: %s\n", (*k)->name, (*k)->usable() ? "compared" : "not on this processor");
		if ((*k)->usable())
			kernel_equals_the_portable_one(*k, &prng);
	}
}

TEST(portions_in_any_order_give_the_same_parities)
{
	struct prng prng;

	prng_init(&prng, SEED);
	for (int kind = EC_CAUCHY; kind <= EC_XOR; kind++) {
		struct ec_code code;
		struct group g, portions;

		assert_int_equal(ec_code_init(&code, (enum ec_kind)kind, 32, 8, ec_kernel_best(), &heap), 0);
		group_make(&g, 40, 500, 0, &prng);
		group_make(&portions, 8, 500, 0, &prng);
		encode_group(&code, &g);
		for (unsigned i = 0; i < 8; i++)
			memset(portions.piece[i], 0, 500);
		for (unsigned left = 32, count; left > 0; left -= count) {
			count = 1 + (unsigned)prng_below(&prng, left < 5 ? left : 5);
			ec_encode_add(&code, left - count, count, (const uint8_t *const *)g.piece + left - count,
				      portions.piece, 500);
		}
		for (unsigned i = 0; i < 8; i++)
			assert_memory_equal(portions.piece[i], g.piece[32 + i], 500);
		group_free(&g);
		group_free(&portions);
		ec_code_fini(&code);
	}
}

/* Spoils what is lost, repairs it, and compares all data with what it was. */
static void must_repair(const struct ec_code *code, const struct group *g, const bool *present)
{
	struct group copy;
	struct prng prng;
	struct ec_repair repair;

	prng_init(&prng, SEED);
	group_make(&copy, g->n, g->length, 0, &prng);
	for (unsigned i = 0; i < g->n; i++) {
		if (present[i])
			memcpy(copy.piece[i], g->piece[i], g->length);
	}
	assert_int_equal(ec_repair_init(&repair, code, present), 0);
	ec_repair_run(&repair, copy.piece, g->length);
	for (unsigned i = 0; i < code->data; i++)
		assert_memory_equal(copy.piece[i], g->piece[i], g->length);
	ec_repair_fini(&repair);
	group_free(&copy);
}

TEST(any_k_pieces_of_a_cauchy_code_give_the_rest)
{
	enum { K = 6, M = 4 };
	struct ec_code code;
	struct group g;
	struct prng prng;

	prng_init(&prng, SEED);
	assert_int_equal(ec_code_init(&code, EC_CAUCHY, K, M, ec_kernel_best(), &heap), 0);
	group_make(&g, K + M, 70, 0, &prng);
	encode_group(&code, &g);
	for (unsigned mask = 0; mask < 1u << (K + M); mask++) {
		bool present[K + M];
		struct ec_repair repair;

		for (unsigned i = 0; i < K + M; i++)
			present[i] = mask >> i & 1;
		assert_int_equal(ec_repairable(&code, present), __builtin_popcount(mask) >= K);
		if (__builtin_popcount(mask) >= K)
			must_repair(&code, &g, present);
		else
			assert_int_equal(ec_repair_init(&repair, &code, present), -ENODATA);
	}
	group_free(&g);
	ec_code_fini(&code);
}

TEST(large_codes_repair_as_many_as_they_have_parities)
{
	static const unsigned shapes[][2] = {{32, 8}, {243, 8}, {223, 32}, {128, 127}, {1, 254}};
	struct prng prng;

	prng_init(&prng, SEED);
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		unsigned k = shapes[s][0], m = shapes[s][1];
		bool present[EC_PIECES_MAX];
		struct ec_code code;
		struct group g;

		assert_int_equal(ec_code_init(&code, EC_CAUCHY, k, m, ec_kernel_best(), &heap), 0);
		group_make(&g, k + m, 129, 0, &prng);
		encode_group(&code, &g);
		for (unsigned round = 0; round < 4; round++) {
			memset(present, true, sizeof(present));
			for (unsigned lost = 0; lost < m;) {
				unsigned i = (unsigned)prng_below(&prng, k + m);

				lost += present[i];
				present[i] = false;
			}
			must_repair(&code, &g, present);
		}
		group_free(&g);
		ec_code_fini(&code);
	}
}

TEST(xor_repairs_one_loss_a_class)
{
	enum { K = 7, M = 3 };
	struct ec_code code;
	struct group g;
	struct prng prng;

	prng_init(&prng, SEED);
	assert_int_equal(ec_code_init(&code, EC_XOR, K, M, ec_kernel_best(), &heap), 0);
	group_make(&g, K + M, 70, 3, &prng);
	encode_group(&code, &g);
	for (unsigned mask = 0; mask < 1u << (K + M); mask++) {
		bool present[K + M], repairable = true;
		unsigned lost[M] = {0};

		for (unsigned i = 0; i < K + M; i++)
			present[i] = mask >> i & 1;
		for (unsigned j = 0; j < K; j++)
			lost[j % M] += !present[j];
		for (unsigned i = 0; i < M; i++)
			repairable &= lost[i] == 0 || (lost[i] == 1 && present[K + i]);
		assert_int_equal(ec_repairable(&code, present), repairable);
		if (repairable)
			must_repair(&code, &g, present);
	}
	group_free(&g);
	ec_code_fini(&code);
}

TEST(numbers_out_of_range_are_refused)
{
	static const struct {
		enum ec_kind kind;
		unsigned data, parity;
		int result;
	} cases[] = {
		{EC_CAUCHY, 0, 1, -EINVAL},       {EC_CAUCHY, 1, 0, -EINVAL},    {EC_CAUCHY, 254, 1, 0},
		{EC_CAUCHY, 255, 1, -EINVAL},     {EC_CAUCHY, 200, 56, -EINVAL}, {EC_CAUCHY, 1, UINT32_MAX, -EINVAL},
		{EC_XOR, 0, 0, -EINVAL},          {EC_XOR, 4, 5, -EINVAL},       {EC_XOR, 4, 4, 0},
		{EC_XOR, UINT32_MAX, 1, -EINVAL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ec_code code = {.data = 77};

		assert_int_equal(
			ec_code_init(&code, cases[i].kind, cases[i].data, cases[i].parity, ec_kernels[0], &heap),
			cases[i].result);
		if (cases[i].result == 0)
			ec_code_fini(&code);
		else
			assert_int_equal(code.data, 77);
	}
}

TEST(no_memory_is_an_error_and_nothing_else)
{
	bool present[3] = {false, true, true};
	struct ec_code code = {.data = 77}, made;
	struct ec_repair repair = {.lost = 77};

	memory.gets_left = 0;
	assert_int_equal(ec_code_init(&code, EC_CAUCHY, 2, 1, ec_kernels[0], &heap), -ENOMEM);
	assert_int_equal(code.data, 77);
	memory.gets_left = 1;
	assert_int_equal(ec_code_init(&made, EC_CAUCHY, 2, 1, ec_kernels[0], &heap), 0);
	assert_int_equal(ec_repair_init(&repair, &made, present), -ENOMEM);
	assert_int_equal(repair.lost, 77);
	memory.gets_left = -1;
	ec_code_fini(&made);
	assert_int_equal(memory.blocks, 0);
}
