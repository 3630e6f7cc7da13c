/* SPDX-License-Identifier: BSD-2-Clause */
#include "sdr/ec/code.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>

#include "sdr/ec/kernel.h"

static bool numbers_allowed(enum ec_kind kind, unsigned data, unsigned parity)
{
	if (data == 0 || parity == 0 || data > EC_PIECES_MAX || parity > EC_PIECES_MAX - data)
		return false;
	return kind == EC_CAUCHY || parity <= data;
}

/* Behind the factors lie the pointers to the rows, behind these the rows. */
static size_t memory_bytes(const struct ec_code *code)
{
	return GF256_ELEMENTS * sizeof(*code->factors) +
	       code->parity * (sizeof(*code->rows) + (size_t)code->data * sizeof(**code->rows));
}

/* Row i is of parity i: element j is 1 / ((k + i) ^ j). k + i and j differ, so this never divides by 0. */
static void cauchy_rows(struct ec_code *code)
{
	uint8_t *row = (uint8_t *)(code->rows + code->parity);

	for (unsigned i = 0; i < code->parity; i++) {
		code->rows[i] = row;
		for (unsigned j = 0; j < code->data; j++)
			*row++ = gf256_inv((uint8_t)((code->data + i) ^ j));
	}
}

int ec_code_init(struct ec_code *code, enum ec_kind kind, unsigned data, unsigned parity,
		 const struct ec_kernel *kernel, const struct alloc *alloc)
{
	struct ec_code made = {
		.kind = kind, .data = data, .parity = parity, .kernel = kernel, .alloc = alloc};

	if (!numbers_allowed(kind, data, parity))
		return -EINVAL;
	if (kind == EC_CAUCHY) {
		made.factors = alloc_get(alloc, memory_bytes(&made));
		if (made.factors == NULL)
			return -ENOMEM;
		for (unsigned a = 0; a < GF256_ELEMENTS; a++)
			gf256_factor_init(&made.factors[a], (uint8_t)a);
		made.rows = (const uint8_t **)(made.factors + GF256_ELEMENTS);
		cauchy_rows(&made);
	}
	*code = made;
	return 0;
}

void ec_code_fini(struct ec_code *code)
{
	alloc_put(code->alloc, code->factors, memory_bytes(code));
	code->factors = NULL;
}

/* Parity i gets the sources of its class; source 0 is the data piece number f->column. */
static void xor_encode(const struct ec_code *code, const struct ec_fold *f, unsigned i)
{
	const uint8_t *of_class[EC_PIECES_MAX];
	unsigned n = 0;
	bool set = f->set;

	for (unsigned s = (i + code->parity - f->column % code->parity) % code->parity;
	     s < f->n_sources; s += code->parity) {
		of_class[n++] = f->sources[s];
		if (n == EC_PIECES_MAX) {
			code->kernel->add(f->targets[i], of_class, n, f->length, set);
			set = false;
			n = 0;
		}
	}
	if (n > 0)
		code->kernel->add(f->targets[i], of_class, n, f->length, set);
}

static void encode(const struct ec_code *code, struct ec_fold *fold)
{
	fold->n_targets = code->parity;
	if (code->kind == EC_CAUCHY) {
		fold->factors = code->factors;
		fold->rows = code->rows;
		code->kernel->fold(fold);
		return;
	}
	for (unsigned i = 0; i < code->parity; i++)
		xor_encode(code, fold, i);
}

void ec_encode(const struct ec_code *code, const uint8_t *const *data, uint8_t *const *parity,
	       size_t length)
{
	struct ec_fold all = {.sources = data,
			      .n_sources = code->data,
			      .targets = parity,
			      .length = length,
			      .set = true};

	encode(code, &all);
}

void ec_encode_add(const struct ec_code *code, unsigned first, unsigned count,
		   const uint8_t *const *sources, uint8_t *const *parity, size_t length)
{
	struct ec_fold portion = {.column = first,
				  .sources = sources,
				  .n_sources = count,
				  .targets = parity,
				  .length = length};

	assert(first <= code->data && count <= code->data - first);
	encode(code, &portion);
}
