/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first bytes choose a kernel, a code and which pieces are there, the others are the data. What
 * a group's pieces can give is judged by the rank of the generator's rows that are there, by
 * elimination; a repair must give the data again.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sdr/ec/code.h"
#include "sdr/ec/kernel.h"
#include "sdr/ec/repair.h"
#include "support/heap.h"

enum { PIECES_MAX = 24, HEADER = 7 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int claim)
{
	if (!claim)
		abort();
}

static struct heap memory = HEAP_INIT;
static const struct alloc heap = {heap_get, heap_put, &memory};

static void generator_row(const struct ec_code *code, unsigned piece, uint8_t *row)
{
	if (piece >= code->data && code->kind == EC_WIDE)
		ec_wide_row(row, piece - code->data, code->data);
	for (unsigned j = 0; j < code->data; j++) {
		if (piece < code->data)
			row[j] = piece == j;
		else if (code->kind == EC_XOR)
			row[j] = j % code->parity == piece - code->data;
		else if (code->kind == EC_CAUCHY)
			row[j] = gf256_inv((uint8_t)(piece ^ j));
	}
}

static unsigned rank(uint8_t matrix[][PIECES_MAX], unsigned rows, unsigned columns)
{
	unsigned done = 0;

	for (unsigned c = 0; c < columns; c++) {
		unsigned pivot = done;
		uint8_t swap[PIECES_MAX];

		while (pivot < rows && matrix[pivot][c] == 0)
			pivot++;
		if (pivot == rows)
			continue;
		memcpy(swap, matrix[pivot], sizeof(swap));
		memcpy(matrix[pivot], matrix[done], sizeof(swap));
		memcpy(matrix[done], swap, sizeof(swap));
		for (unsigned r = done + 1; r < rows; r++) {
			uint8_t times = gf256_mul(matrix[r][c], gf256_inv(matrix[done][c]));

			for (unsigned j = 0; j < columns; j++)
				matrix[r][j] ^= gf256_mul(times, matrix[done][j]);
		}
		done++;
	}
	return done;
}

static bool rank_is_full(const struct ec_code *code, const bool *present)
{
	uint8_t matrix[PIECES_MAX][PIECES_MAX] = {{0}};
	unsigned rows = 0;

	for (unsigned i = 0; i < code->data + code->parity; i++) {
		if (present[i])
			generator_row(code, i, matrix[rows++]);
	}
	return rank(matrix, rows, code->data) == code->data;
}

static const struct ec_kernel *kernel_chosen(unsigned byte)
{
	const struct ec_kernel *usable[8];
	unsigned n = 0;

	for (const struct ec_kernel *const *k = ec_kernels; *k != NULL; k++) {
		if ((*k)->usable())
			usable[n++] = *k;
	}
	return usable[byte % n];
}

static void repair_and_compare(const struct ec_code *code, const bool *present, uint8_t *const *pieces, size_t length)
{
	unsigned n = code->data + code->parity;
	uint8_t *copy[PIECES_MAX];
	struct ec_repair repair;
	int error = ec_repair_init(&repair, code, present);

	must((error == 0) == rank_is_full(code, present));
	must((error == 0) == ec_repairable(code, present));
	if (error != 0) {
		must(error == -ENODATA);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		copy[i] = malloc(length);
		must(copy[i] != NULL || length == 0);
		if (length > 0 && present[i])
			memcpy(copy[i], pieces[i], length);
		else if (length > 0)
			memset(copy[i], 0x5a, length);
	}
	ec_repair_run(&repair, copy, length);
	for (unsigned i = 0; i < n; i++) {
		if (i < code->data && length > 0)
			must(memcmp(copy[i], pieces[i], length) == 0);
		free(copy[i]);
	}
	ec_repair_fini(&repair);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *pieces[PIECES_MAX];
	bool present[PIECES_MAX];
	static const enum ec_kind kinds[] = {EC_CAUCHY, EC_XOR, EC_CAUCHY, EC_WIDE};
	struct ec_code code;
	size_t length;
	uint32_t mask;

	if (size < HEADER)
		return 0;
	if (ec_code_init(&code, kinds[data[0] & 3], data[1] % (PIECES_MAX / 2 + 1), data[2] % (PIECES_MAX / 2 + 1),
			 kernel_chosen(data[0] >> 1), &heap) != 0)
		return 0;
	memcpy(&mask, data + 3, sizeof(mask));
	length = (size - HEADER) / code.data;
	for (unsigned i = 0; i < code.data + code.parity; i++) {
		present[i] = mask >> i & 1;
		pieces[i] = malloc(length);
		must(pieces[i] != NULL || length == 0);
		if (i < code.data && length > 0)
			memcpy(pieces[i], data + HEADER + i * length, length);
	}
	ec_encode(&code, (const uint8_t *const *)pieces, pieces + code.data, length);
	repair_and_compare(&code, present, pieces, length);
	for (unsigned i = 0; i < code.data + code.parity; i++)
		free(pieces[i]);
	ec_code_fini(&code);
	must(memory.blocks == 0);
	return 0;
}
