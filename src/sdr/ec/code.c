/* SPDX-License-Identifier: BSD-2-Clause */
#include "sdr/ec/code.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "sdr/ec/kernel.h"

static bool numbers_allowed(enum ec_kind kind, unsigned data, unsigned parity)
{
	if (data == 0 || parity == 0)
		return false;
	if (kind == EC_WIDE)
		return data <= EC_WIDE_DATA_MAX && parity <= EC_WIDE_PARITY_MAX;
	if (data > EC_PIECES_MAX || parity > EC_PIECES_MAX - data)
		return false;
	return kind == EC_CAUCHY || parity <= data;
}

/* Behind the factors lie the pointers to the rows, behind these the rows. */
static size_t memory_bytes(const struct ec_code *code)
{
	return GF256_ELEMENTS * sizeof(*code->factors) +
	       code->parity * (sizeof(*code->rows) + (size_t)code->data * sizeof(**code->rows));
}

/* Element j is 1 / ((k + i) ^ j). k + i and j differ, so this never divides by 0. */
static void cauchy_row(uint8_t *row, unsigned i, unsigned data)
{
	for (unsigned j = 0; j < data; j++)
		row[j] = gf256_inv((uint8_t)((data + i) ^ j));
}

/* Row i is of parity i. */
static void make_rows(struct ec_code *code)
{
	uint8_t *row = (uint8_t *)(code->rows + code->parity);

	for (unsigned i = 0; i < code->parity; i++, row += code->data) {
		code->rows[i] = row;
		if (code->kind == EC_WIDE)
			ec_wide_row(row, i, code->data);
		else
			cauchy_row(row, i, code->data);
	}
}

int ec_code_init(struct ec_code *code, enum ec_kind kind, unsigned data, unsigned parity,
		 const struct ec_kernel *kernel, const struct alloc *alloc)
{
	struct ec_code made = {.kind = kind, .data = data, .parity = parity, .kernel = kernel, .alloc = alloc};

	if (!numbers_allowed(kind, data, parity))
		return -EINVAL;
	if (kind != EC_XOR) {
		made.factors = alloc_get(alloc, memory_bytes(&made));
		if (made.factors == NULL)
			return -ENOMEM;
		for (unsigned a = 0; a < GF256_ELEMENTS; a++)
			gf256_factor_init(&made.factors[a], (uint8_t)a);
		made.rows = (const uint8_t **)(made.factors + GF256_ELEMENTS);
		make_rows(&made);
	}
	*code = made;
	return 0;
}

void ec_code_fini(struct ec_code *code)
{
	alloc_put(code->alloc, code->factors, memory_bytes(code));
	code->factors = NULL;
}

/* Parity i gets the sources of its class; source 0 is the data piece number column. A portion may
 * have none of it. */
static void xor_encode(const struct ec_code *code, const struct ec_portion *p, unsigned i)
{
	const uint8_t *of_class[EC_PIECES_MAX];
	unsigned n = 0;

	for (unsigned s = (i + code->parity - p->column % code->parity) % code->parity; s < p->n_sources;
	     s += code->parity)
		of_class[n++] = p->sources[s];
	if (n > 0)
		code->kernel->add(p->targets[i], of_class, n, p->length, p->set);
	else if (p->set)
		memset(p->targets[i], 0, p->length);
}

void ec_encode_portion(const struct ec_code *code, const struct ec_portion *p)
{
	assert(p->column <= code->data && p->n_sources <= code->data - p->column);
	assert(p->row <= code->parity && p->n_targets <= code->parity - p->row);
	if (code->kind != EC_XOR) {
		const struct ec_fold fold = {.factors = code->factors,
					     .rows = code->rows + p->row,
					     .column = p->column,
					     .targets = p->targets,
					     .sources = p->sources,
					     .n_targets = p->n_targets,
					     .n_sources = p->n_sources,
					     .length = p->length,
					     .set = p->set};

		code->kernel->fold(&fold);
		return;
	}
	assert(p->row == 0 && p->n_targets == code->parity);
	for (unsigned i = 0; i < code->parity; i++)
		xor_encode(code, p, i);
}

void ec_encode(const struct ec_code *code, const uint8_t *const *data, uint8_t *const *parity, size_t length)
{
	const struct ec_portion all = {.n_sources = code->data,
				       .sources = data,
				       .n_targets = code->parity,
				       .targets = parity,
				       .length = length,
				       .set = true};

	ec_encode_portion(code, &all);
}

void ec_encode_add(const struct ec_code *code, unsigned first, unsigned count, const uint8_t *const *sources,
		   uint8_t *const *parity, size_t length)
{
	const struct ec_portion some = {.column = first,
					.n_sources = count,
					.sources = sources,
					.n_targets = code->parity,
					.targets = parity,
					.length = length};

	ec_encode_portion(code, &some);
}
