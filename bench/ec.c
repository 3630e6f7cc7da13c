/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Erasure coding by the clock, one processor: encoding and repair by each kernel that this
 * processor has, beside ISA-L in the same run. Rates are of data, in Gbit/s: medians of ROUNDS
 * rounds in which all take turns.
 *
 *   build/bench/ec [piece-bytes [working-set-MiB]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>

#include "base/prng.h"
#include "sdr/ec/code.h"
#include "sdr/ec/kernel.h"
#include "sdr/ec/repair.h"

enum { ROUNDS = 9, KERNELS_MAX = 8, SEED = 1 };

struct shape {
	enum ec_kind kind;
	unsigned data, parity;
};

static const struct shape shapes[] = {
	{EC_CAUCHY, 4, 2},   {EC_CAUCHY, 10, 4},  {EC_CAUCHY, 32, 2},  {EC_CAUCHY, 32, 4},   {EC_CAUCHY, 32, 8},
	{EC_CAUCHY, 64, 16}, {EC_CAUCHY, 243, 4}, {EC_CAUCHY, 243, 8}, {EC_CAUCHY, 223, 32}, {EC_XOR, 32, 8},
};

/* Groups of one shape that fill the working set, so that data comes from memory and not from a
 * cache. */
struct groups {
	struct shape shape;
	size_t piece, n;
	uint8_t *memory;
	uint8_t ***pieces; /* [group][piece] */
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *must(void *p)
{
	if (p == NULL) {
		fprintf(stderr, "ec: no memory\n");
		exit(1);
	}
	return p;
}

static void *heap_get(void *ctx, size_t bytes)
{
	return must(calloc(1, bytes));
}

static void heap_put(void *ctx, void *p, size_t bytes)
{
	free(p);
}

static const struct alloc heap = {heap_get, heap_put, NULL};

static void groups_make(struct groups *g, struct shape shape, size_t piece, size_t working_set)
{
	size_t in_group = shape.data + shape.parity;
	struct prng prng;

	*g = (struct groups){.shape = shape, .piece = piece, .n = working_set / (piece * in_group)};
	if (g->n == 0)
		g->n = 1;
	g->memory = must(aligned_alloc(4096, (g->n * in_group * piece + 4095) & ~(size_t)4095));
	g->pieces = must(calloc(g->n, sizeof(*g->pieces)));
	prng_init(&prng, SEED);
	for (size_t i = 0; i < g->n * in_group * piece; i++)
		g->memory[i] = (uint8_t)prng_next(&prng);
	for (size_t i = 0; i < g->n; i++) {
		g->pieces[i] = must(calloc(in_group, sizeof(*g->pieces[i])));
		for (size_t j = 0; j < in_group; j++)
			g->pieces[i][j] = g->memory + (i * in_group + j) * piece;
	}
}

static void groups_free(struct groups *g)
{
	for (size_t i = 0; i < g->n; i++)
		free(g->pieces[i]);
	free(g->pieces);
	free(g->memory);
}

static double gbps(const struct groups *g, double seconds)
{
	return (double)g->n * g->shape.data * (double)g->piece * 8 / seconds / 1e9;
}

static double ours_encode(const struct groups *g, const struct ec_code *code)
{
	double start = now_s();

	for (size_t i = 0; i < g->n; i++)
		ec_encode(code, (const uint8_t *const *)g->pieces[i], g->pieces[i] + code->data, g->piece);
	return gbps(g, now_s() - start);
}

/* Pieces one by one, in the order in which a sender has them. */
static double ours_encode_add(const struct groups *g, const struct ec_code *code)
{
	double start = now_s();

	for (size_t i = 0; i < g->n; i++) {
		uint8_t **parity = g->pieces[i] + code->data;

		for (unsigned p = 0; p < code->parity; p++)
			memset(parity[p], 0, g->piece);
		for (unsigned j = 0; j < code->data; j++)
			ec_encode_add(code, j, 1, (const uint8_t *const *)&g->pieces[i][j], parity, g->piece);
	}
	return gbps(g, now_s() - start);
}

static double ours_repair(const struct groups *g, const struct ec_code *code, unsigned lost)
{
	bool present[EC_PIECES_MAX];
	struct ec_repair repair;
	double start;

	memset(present, true, sizeof(present));
	for (unsigned i = 0; i < lost; i++)
		present[i * (code->data / lost) + (code->kind == EC_XOR ? i : 0)] = false;
	if (ec_repair_init(&repair, code, present) != 0)
		return 0;
	start = now_s();
	for (size_t i = 0; i < g->n; i++)
		ec_repair_run(&repair, g->pieces[i], g->piece);
	start = gbps(g, now_s() - start);
	ec_repair_fini(&repair);
	return start;
}

static double isal_encode(const struct groups *g)
{
	unsigned k = g->shape.data, m = g->shape.parity;
	uint8_t *matrix = must(malloc((k + m) * k)), *tables = must(malloc(32 * k * m));
	double start, rate;

	gf_gen_cauchy1_matrix(matrix, (int)(k + m), (int)k);
	ec_init_tables((int)k, (int)m, matrix + k * k, tables);
	start = now_s();
	for (size_t i = 0; i < g->n; i++)
		ec_encode_data((int)g->piece, (int)k, (int)m, tables, g->pieces[i], g->pieces[i] + k);
	rate = gbps(g, now_s() - start);
	free(matrix);
	free(tables);
	return rate;
}

static double isal_xor(const struct groups *g)
{
	unsigned k = g->shape.data, m = g->shape.parity;
	double start = now_s();

	for (size_t i = 0; i < g->n; i++) {
		for (unsigned p = 0; p < m; p++) {
			void *pieces[EC_PIECES_MAX + 1];
			int n = 0;

			for (unsigned j = p; j < k; j += m)
				pieces[n++] = g->pieces[i][j];
			pieces[n++] = g->pieces[i][k + p];
			xor_gen(n, (int)g->piece, pieces);
		}
	}
	return gbps(g, now_s() - start);
}

static int by_size(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), by_size);
	return v[ROUNDS / 2];
}

static void measure(const struct groups *g)
{
	double isal[ROUNDS], all[KERNELS_MAX][ROUNDS], one[KERNELS_MAX][ROUNDS], repair[KERNELS_MAX][ROUNDS], peer;
	unsigned lost = g->shape.parity < 8 ? g->shape.parity : 8;

	for (int round = 0; round < ROUNDS; round++) {
		isal[round] = g->shape.kind == EC_XOR ? isal_xor(g) : isal_encode(g);
		for (unsigned n = 0; ec_kernels[n] != NULL; n++) {
			struct ec_code code;

			if (!ec_kernels[n]->usable())
				continue;
			if (ec_code_init(&code, g->shape.kind, g->shape.data, g->shape.parity, ec_kernels[n], &heap) !=
			    0)
				exit(1);
			all[n][round] = ours_encode(g, &code);
			one[n][round] = ours_encode_add(g, &code);
			repair[n][round] = ours_repair(g, &code, lost);
			ec_code_fini(&code);
		}
	}
	peer = median(isal);
	for (unsigned n = 0; ec_kernels[n] != NULL; n++) {
		double rate;

		if (!ec_kernels[n]->usable())
			continue;
		rate = median(all[n]);
		printf("%-6s (%3u,%2u) %-7s %8.1f %10.1f %8.1f %8.2f %12.1f\n",
		       g->shape.kind == EC_XOR ? "xor" : "cauchy", g->shape.data, g->shape.parity, ec_kernels[n]->name,
		       rate, median(one[n]), peer, rate / peer, median(repair[n]));
	}
}

int main(int argc, char **argv)
{
	long piece = argc > 1 ? atol(argv[1]) : 4096, mib = argc > 2 ? atol(argv[2]) : 64;

	if (piece < 1 || piece > 1 << 20 || mib < 1 || mib > 4096) {
		fprintf(stderr, "usage: ec [piece-bytes (1..1048576; 4096) [working-set-MiB "
				"(1..4096; 64)]]\n");
		return 2;
	}
	printf("pieces of %ld bytes, working set %ld MiB, seed %d, medians of %d rounds, Gbit/s of "
	       "data a processor\n",
	       piece, mib, SEED, ROUNDS);
	printf("%-6s %-8s %-7s %8s %10s %8s %8s %12s\n", "code", "(k,m)", "kernel", "encode", "by piece", "ISA-L",
	       "ratio", "repair of m");
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		struct groups g;

		groups_make(&g, shapes[s], (size_t)piece, (size_t)mib << 20);
		measure(&g);
		groups_free(&g);
	}
	return 0;
}
