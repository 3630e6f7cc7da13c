/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Elimination by Gauss and Jordan, a parity at a time: one that depends on those before it is
 * passed over. Behind the elements of a row stands what it is made of, in parities that were used.
 */
#include "sdr/ec/wide.h"

#include <assert.h>
#include <string.h>

#include "sdr/ec/gf256.h"

enum { PERIOD = 256 - EC_WIDE_PARITY_MAX, WIDTH = 2 * EC_WIDE_PARITY_MAX };

static uint8_t two_to(unsigned n)
{
	uint8_t power = 1;

	for (n %= 255; n; n--)
		power = gf256_mul(power, 2);
	return power;
}

static uint8_t element(unsigned i, unsigned j)
{
	return gf256_mul(gf256_inv((uint8_t)((PERIOD + i) ^ (j % PERIOD))), two_to(i * (j / PERIOD)));
}

void ec_wide_row(uint8_t *row, unsigned i, unsigned data)
{
	uint8_t again = two_to(i);

	for (unsigned j = 0; j < data; j++)
		row[j] = j < PERIOD ? gf256_inv((uint8_t)((PERIOD + i) ^ j)) : gf256_mul(row[j - PERIOD], again);
}

struct solution {
	uint8_t row[EC_WIDE_PARITY_MAX][WIDTH]; /* elements by lost piece, then by used parity */
	unsigned pivot[EC_WIDE_PARITY_MAX];     /* the lost piece that only this row has */
	unsigned n, done;
};

/* row += times * other. */
static void add(uint8_t *row, const uint8_t *other, uint8_t times, unsigned n)
{
	for (unsigned k = 0; times && k < n; k++)
		row[k] ^= gf256_mul(times, other[k]);
}

/* False: the row is made of those before it. */
static bool take(struct solution *s, uint8_t *row)
{
	unsigned pivot = 0, width = 2 * s->n;
	uint8_t first;

	for (unsigned p = 0; p < s->done; p++)
		add(row, s->row[p], row[s->pivot[p]], width);
	while (pivot < s->n && !row[pivot])
		pivot++;
	if (pivot == s->n)
		return false;
	first = gf256_inv(row[pivot]);
	for (unsigned k = 0; k < width; k++)
		row[k] = gf256_mul(row[k], first);
	for (unsigned p = 0; p < s->done; p++)
		add(s->row[p], row, s->row[p][pivot], width);
	memcpy(s->row[s->done], row, width);
	s->pivot[s->done++] = pivot;
	return true;
}

bool ec_wide_solve(const uint16_t *lost, unsigned n_lost, const uint8_t *rows, unsigned n_rows, uint8_t *used,
		   uint8_t *inverse)
{
	struct solution s = {.n = n_lost};

	assert(n_lost <= EC_WIDE_PARITY_MAX);
	for (unsigned r = 0; r < n_rows && s.done < n_lost; r++) {
		uint8_t row[WIDTH] = {0};
		unsigned place = s.done;

		for (unsigned k = 0; k < n_lost; k++)
			row[k] = element(rows[r], lost[k]);
		row[n_lost + place] = 1;
		if (take(&s, row) && used)
			used[place] = rows[r];
	}
	for (unsigned p = 0; inverse && p < s.done; p++)
		memcpy(inverse + s.pivot[p] * n_lost, s.row[p] + n_lost, n_lost);
	return s.done == n_lost;
}
