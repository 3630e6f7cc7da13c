/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/prng.h"
#include "sdr/coded/ec_layout.h"
#include "support/test.h"

enum { PIECES_MAX = 700 };

static struct ec_layout drawn_layout(struct prng *rng)
{
	struct ec_layout l = {
		.pieces = 1 + (uint32_t)prng_below(rng, PIECES_MAX),
		.data = 1 + (uint32_t)prng_below(rng, 40),
		.parity_max = (uint32_t)prng_below(rng, 12),
		.depth = 1 + (uint32_t)prng_below(rng, 6),
	};

	l.first = prng_below(rng, 2) ? (uint32_t)prng_below(rng, l.pieces) : 0;
	l.parity = (uint32_t)prng_below(rng, l.parity_max + 1);
	assert_true(ec_layout_settle(&l));
	return l;
}

/* Blocks one behind the other, of pieces and of groups. */
static void check_blocks(const struct ec_layout *l)
{
	uint32_t at = l->first, group = 0;

	for (uint32_t i = 0; i < ec_layout_blocks(l); i++) {
		struct ec_block b = ec_layout_block(l, i);

		assert_int_equal(b.at, at);
		assert_int_equal(b.group, group);
		for (uint32_t k = 0; k < b.pieces; k++) {
			assert_int_equal(ec_layout_block_of(l, at + k), i);
			assert_int_equal(ec_layout_data(l, at + k).group, group + k % b.groups);
		}
		at += b.pieces;
		group += b.groups;
	}
	assert_int_equal(at, l->pieces);
	assert_int_equal(group, l->groups);
}

static bool same(const struct ec_piece *a, const struct ec_piece *b)
{
	return a->group == b->group && a->index == b->index && a->parity == b->parity && a->at == b->at;
}

static void check_groups(const struct ec_layout *l)
{
	uint32_t pieces = 0;

	for (uint32_t g = 0; g < l->groups; g++) {
		uint32_t size = ec_layout_size(l, g);

		assert_true(size >= 1 && size <= l->data);
		pieces += size;
		for (uint32_t i = 0; i < size; i++) {
			struct ec_piece p = ec_layout_data_of(l, g, i), q = ec_layout_data(l, p.at);

			assert_true(same(&p, &q));
		}
		for (uint32_t i = 0; i < l->parity_max; i++) {
			struct ec_piece p = ec_layout_parity_of(l, g, i);
			struct ec_piece q = ec_layout_parity(l, p.at);

			assert_true(same(&p, &q));
		}
	}
	assert_int_equal(pieces, l->pieces - l->first);
}

TEST(layouts_have_every_piece_once)
{
	struct prng rng;

	prng_init(&rng, 7);
	for (int i = 0; i < 3000; i++) {
		struct ec_layout l = drawn_layout(&rng);

		check_blocks(&l);
		check_groups(&l);
	}
}

/* 10 pieces behind 3, groups of 4, two of them a block: the second block has one group of two. */
TEST(pieces_are_dealt_out_in_turn)
{
	struct ec_layout l = {.pieces = 13, .first = 3, .data = 4, .parity = 1, .parity_max = 2, .depth = 2};
	const uint32_t groups[] = {0, 1, 0, 1, 0, 1, 0, 1, 2, 2};

	assert_true(ec_layout_settle(&l));
	assert_int_equal(l.groups, 3);
	assert_int_equal(ec_layout_blocks(&l), 2);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(ec_layout_data(&l, 3 + i).group, groups[i]);
	assert_int_equal(ec_layout_size(&l, 2), 2);
	assert_int_equal(ec_layout_block(&l, 1).at, 11);
	assert_int_equal(ec_layout_data_of(&l, 2, 1).at, 12);
	assert_int_equal(ec_layout_parity_of(&l, 2, 1).at, 5);
}

TEST(layouts_that_cannot_be_are_refused)
{
	const struct ec_layout good = {.pieces = 10, .first = 2, .data = 4, .parity = 1, .parity_max = 2, .depth = 2};
	struct ec_layout bad[10], wide = {.pieces = 5000, .data = 992, .parity_max = 32, .depth = 2};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		bad[i] = good;
	bad[0].pieces = 0;
	bad[1].data = 0;
	bad[2].depth = 0;
	bad[3].parity = 3;
	bad[4].first = 10;
	bad[5].pieces = UINT32_MAX;
	bad[6].parity_max = UINT32_MAX;
	bad[7].depth = UINT32_MAX;
	bad[8].data = 993;
	bad[9].data = 223;
	bad[9].parity_max = 33; /* a wide group has 32 at most */
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(ec_layout_settle(&bad[i]));
		assert_int_equal(bad[i].groups, 0);
	}
	assert_true(ec_layout_settle(&wide));
	assert_true(ec_layout_is_wide(&wide));
}
