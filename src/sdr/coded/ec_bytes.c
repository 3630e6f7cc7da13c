/* SPDX-License-Identifier: BSD-2-Clause */
/* The first half of the spare memory is always zeros, for pieces that a small group does not have;
 * the second is the last piece of the message when that is not whole. */
#include <assert.h>
#include <string.h>

#include "sdr/coded/ec_bytes.h"
#include "sdr/ec/repair.h"

static uint32_t last_bytes(const struct ec_bytes *b)
{
	return (uint32_t)(b->bytes - (uint64_t)(b->layout->pieces - 1) * b->piece);
}

static bool is_short(const struct ec_bytes *b, uint32_t at)
{
	return at == b->layout->pieces - 1 && last_bytes(b) < b->piece;
}

/* A data piece for reading. */
static uint8_t *source(const struct ec_bytes *b, uint32_t at)
{
	uint8_t *p = b->data + (uint64_t)at * b->piece, *padded = b->spare + b->piece;

	if (!is_short(b, at))
		return p;
	memcpy(padded, p, last_bytes(b));
	memset(padded + last_bytes(b), 0, b->piece - last_bytes(b));
	return padded;
}

static uint8_t *parity_at(const struct ec_bytes *b, uint32_t g, uint32_t i)
{
	return b->parity + (uint64_t)ec_layout_parity_of(b->layout, g, i).at * b->piece;
}

/* Folds the data pieces from .. from + count - 1 of a group into its parities first .. first + n
 * - 1.
 */
static void fold(const struct ec_bytes *b, uint32_t g, uint32_t from, uint32_t count, uint32_t first, uint32_t n)
{
	const uint8_t *sources[EC_ANY_PIECES_MAX];
	uint8_t *targets[EC_PIECES_MAX];
	struct ec_portion p = {.column = from,
			       .n_sources = count,
			       .sources = sources,
			       .row = first,
			       .n_targets = n,
			       .targets = targets,
			       .length = b->piece,
			       .set = from == 0};

	for (uint32_t i = 0; i < count; i++)
		sources[i] = source(b, ec_layout_data_of(b->layout, g, from + i).at);
	for (uint32_t i = 0; i < n; i++)
		targets[i] = parity_at(b, g, first + i);
	ec_encode_portion(b->code, &p);
}

void ec_bytes_add(const struct ec_bytes *b, uint32_t at, uint32_t count)
{
	const struct ec_layout *l = b->layout;
	struct ec_piece first = ec_layout_data(l, at);
	struct ec_block block = ec_layout_block(l, ec_layout_block_of(l, at));
	uint32_t place = first.group - block.group;

	/* The pieces are dealt out to the groups in turn, from `place` on. */
	for (uint32_t i = 0; l->parity && i < block.groups && i < count; i++) {
		uint32_t g = block.group + (place + i) % block.groups;
		uint32_t index = first.index + (place + i) / block.groups;

		fold(b, g, index, (count - i + block.groups - 1) / block.groups, 0, l->parity);
	}
}

void ec_bytes_make(const struct ec_bytes *b, uint32_t group, uint32_t parity, uint32_t count)
{
	bool all = b->code->kind == EC_XOR;

	fold(b, group, 0, ec_layout_size(b->layout, group), all ? 0 : parity, all ? b->layout->parity_max : count);
}

/* The pieces of a group, and which of them are there. */
static void lay_out(const struct ec_bytes *b, const struct ec_presence *r, uint32_t g, uint8_t **pieces, bool *present)
{
	const struct ec_layout *l = b->layout;
	uint32_t size = ec_layout_size(l, g);

	for (uint32_t i = 0; i < l->data; i++) {
		struct ec_piece p;

		pieces[i] = b->spare;
		present[i] = true;
		if (i >= size)
			continue;
		p = ec_layout_data_of(l, g, i);
		present[i] = r->has(r->of, &p);
		pieces[i] = present[i]          ? source(b, p.at)
			    : is_short(b, p.at) ? b->spare + b->piece
						: b->data + (uint64_t)p.at * b->piece;
	}
	for (uint32_t i = 0; i < l->parity_max; i++) {
		struct ec_piece p = ec_layout_parity_of(l, g, i);

		pieces[l->data + i] = parity_at(b, g, i);
		present[l->data + i] = r->has(r->of, &p);
	}
}

int ec_bytes_recover(const struct ec_bytes *b, const struct ec_presence *r, uint32_t group)
{
	uint8_t *pieces[EC_ANY_PIECES_MAX];
	bool present[EC_ANY_PIECES_MAX];
	uint32_t last = b->layout->pieces - 1;
	struct ec_piece end = ec_layout_data(b->layout, last);
	struct ec_repair repair;
	int err;

	assert(b->code->data + b->code->parity <= EC_ANY_PIECES_MAX);
	lay_out(b, r, group, pieces, present);
	err = ec_repair_init(&repair, b->code, present);
	if (err)
		return err;
	ec_repair_run(&repair, pieces, b->piece);
	ec_repair_fini(&repair);
	if (end.group == group && is_short(b, last) && !r->has(r->of, &end))
		memcpy(b->data + (uint64_t)last * b->piece, b->spare + b->piece, last_bytes(b));
	return 0;
}
