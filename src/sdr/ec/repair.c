/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For e lost pieces we take e parities that are there and subtract the data that is there from
 * them. The remaining part of the generator is again a Cauchy matrix, of e x e. Its inverse has a
 * closed form (Knuth, The Art of Computer Programming, volume 1, 1.2.3, exercise 41), so no
 * elimination is needed and no pattern of losses is singular. EC_WIDE takes elimination instead.
 */
#include "sdr/ec/repair.h"

#include <errno.h>
#include <string.h>

#include "sdr/ec/kernel.h"

static unsigned count_lost(const struct ec_code *code, const bool *present)
{
	unsigned lost = 0;

	for (unsigned j = 0; j < code->data; j++)
		lost += !present[j];
	return lost;
}

static bool xor_class_repairable(const struct ec_code *code, const bool *present, unsigned parity)
{
	unsigned lost = 0;

	for (unsigned j = parity; j < code->data; j += code->parity)
		lost += !present[j];
	return lost == 0 || (lost == 1 && present[code->data + parity]);
}

/* Lists what was lost, and finds the parities that give it; `inverse` is made if there is room for
 * one. */
static bool wide_solve(struct ec_repair *r, const bool *present)
{
	const struct ec_code *code = r->code;
	uint8_t rows[EC_WIDE_PARITY_MAX];
	unsigned n_rows = 0;

	r->lost = 0;
	for (unsigned i = 0; i < code->parity; i++) {
		if (present[code->data + i])
			rows[n_rows++] = (uint8_t)i;
	}
	for (unsigned j = 0; j < code->data; j++) {
		if (present[j])
			continue;
		if (r->lost == n_rows)
			return false;
		r->lost_piece[r->lost++] = (uint16_t)j;
	}
	return ec_wide_solve(r->lost_piece, r->lost, rows, n_rows, r->parity_used, r->inverse);
}

bool ec_repairable(const struct ec_code *code, const bool *present)
{
	unsigned parities = 0;

	if (code->kind == EC_WIDE)
		return wide_solve(&(struct ec_repair){.code = code}, present);
	if (code->kind == EC_XOR) {
		for (unsigned i = 0; i < code->parity; i++) {
			if (!xor_class_repairable(code, present, i))
				return false;
		}
		return true;
	}
	for (unsigned i = 0; i < code->parity; i++)
		parities += present[code->data + i];
	return count_lost(code, present) <= parities;
}

/* Lost pieces in order, each with a parity: of its own class, or the next one there is. */
static void choose_parities(struct ec_repair *r, const bool *present)
{
	const struct ec_code *code = r->code;
	unsigned next = 0;

	for (unsigned j = 0; j < code->data; j++) {
		if (present[j])
			continue;
		if (code->kind == EC_XOR) {
			next = j % code->parity;
		} else {
			while (!present[code->data + next])
				next++;
		}
		r->lost_piece[r->lost] = (uint16_t)j;
		r->parity_used[r->lost++] = (uint8_t)next++;
	}
}

/* Product over all n but `skip` of (a + b[n]). */
static uint8_t product_of_sums(uint8_t a, const uint8_t *b, unsigned n, unsigned skip)
{
	uint8_t product = 1;

	for (unsigned i = 0; i < n; i++) {
		if (i != skip)
			product = gf256_mul(product, a ^ b[i]);
	}
	return product;
}

/* The inverse of the matrix 1 / (x[i] + y[j]): x are the numbers of the parity pieces, y of the
 * lost ones. */
static void invert(uint8_t *inverse, const uint8_t *x, const uint8_t *y, unsigned n)
{
	uint8_t column[EC_PIECES_MAX];

	for (unsigned i = 0; i < n; i++)
		column[i] = gf256_mul(product_of_sums(x[i], y, n, n), gf256_inv(product_of_sums(x[i], x, n, i)));
	for (unsigned j = 0; j < n; j++) {
		uint8_t row = gf256_mul(product_of_sums(y[j], x, n, n), gf256_inv(product_of_sums(y[j], y, n, j)));

		for (unsigned i = 0; i < n; i++)
			inverse[j * n + i] = gf256_mul(gf256_mul(row, column[i]), gf256_inv((uint8_t)(x[i] ^ y[j])));
	}
}

static void cauchy_invert(struct ec_repair *r)
{
	uint8_t x[EC_PIECES_MAX], y[EC_PIECES_MAX];

	for (unsigned i = 0; i < r->lost; i++) {
		x[i] = (uint8_t)(r->code->data + r->parity_used[i]);
		y[i] = (uint8_t)r->lost_piece[i];
	}
	invert(r->inverse, x, y, r->lost);
}

int ec_repair_init(struct ec_repair *repair, const struct ec_code *code, const bool *present)
{
	struct ec_repair made = {.code = code};

	if (!ec_repairable(code, present))
		return -ENODATA;
	if (code->kind == EC_WIDE)
		wide_solve(&made, present);
	else
		choose_parities(&made, present);
	if (code->kind != EC_XOR && made.lost > 0) {
		made.inverse = alloc_get(code->alloc, (size_t)made.lost * made.lost);
		if (made.inverse == NULL)
			return -ENOMEM;
		if (code->kind == EC_WIDE)
			wide_solve(&made, present);
		else
			cauchy_invert(&made);
	}
	*repair = made;
	return 0;
}

void ec_repair_fini(struct ec_repair *repair)
{
	alloc_put(repair->code->alloc, repair->inverse, (size_t)repair->lost * repair->lost);
	repair->inverse = NULL;
}

static void xor_repair(const struct ec_repair *r, unsigned i, uint8_t *const *pieces, size_t length)
{
	const struct ec_code *code = r->code;
	uint8_t *lost = pieces[r->lost_piece[i]];

	memcpy(lost, pieces[code->data + r->parity_used[i]], length);
	for (unsigned j = r->parity_used[i]; j < code->data; j += code->parity) {
		const uint8_t *present = pieces[j];

		if (j != r->lost_piece[i])
			code->kernel->add(lost, &present, 1, length, false);
	}
}

/*
 * Takes the data that is there out of the parities used, so that these become sums of lost pieces
 * only: one fold for each run of pieces between two lost ones.
 */
static void subtract_present(const struct ec_repair *r, uint8_t *const *parities, uint8_t *const *pieces, size_t length)
{
	const struct ec_code *code = r->code;
	const uint8_t *rows[EC_PIECES_MAX];
	struct ec_fold fold = {
		.factors = code->factors, .rows = rows, .targets = parities, .n_targets = r->lost, .length = length};

	for (unsigned i = 0; i < r->lost; i++)
		rows[i] = code->rows[r->parity_used[i]];
	for (unsigned i = 0; i <= r->lost; i++) {
		unsigned end = i < r->lost ? r->lost_piece[i] : code->data;

		fold.sources = (const uint8_t *const *)&pieces[fold.column];
		fold.n_sources = end - fold.column;
		code->kernel->fold(&fold);
		fold.column = end + 1;
	}
}

static void fold_repair(const struct ec_repair *r, uint8_t *const *pieces, size_t length)
{
	const struct ec_code *code = r->code;
	uint8_t *parities[EC_PIECES_MAX], *lost[EC_PIECES_MAX];
	const uint8_t *rows[EC_PIECES_MAX];
	struct ec_fold fold = {.factors = code->factors,
			       .rows = rows,
			       .targets = lost,
			       .sources = (const uint8_t *const *)parities,
			       .n_targets = r->lost,
			       .n_sources = r->lost,
			       .length = length,
			       .set = true};

	for (unsigned i = 0; i < r->lost; i++) {
		parities[i] = pieces[code->data + r->parity_used[i]];
		lost[i] = pieces[r->lost_piece[i]];
		rows[i] = r->inverse + (size_t)i * r->lost;
	}
	subtract_present(r, parities, pieces, length);
	code->kernel->fold(&fold);
}

void ec_repair_run(const struct ec_repair *repair, uint8_t *const *pieces, size_t length)
{
	if (repair->code->kind != EC_XOR) {
		if (repair->lost > 0)
			fold_repair(repair, pieces, length);
		return;
	}
	for (unsigned i = 0; i < repair->lost; i++)
		xor_repair(repair, i, pieces, length);
}
