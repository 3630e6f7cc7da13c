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
		.coded_from = (uint32_t)prng_below(rng, 5),
	};

	l.parity = (uint32_t)prng_below(rng, l.parity_max + 1);
	l.early = (uint32_t)prng_below(rng, l.parity + 1);
	assert_true(ec_layout_settle(&l));
	return l;
}

/* Every data piece once, the unasked parities once, and the turns in the order of sending. */
static void check_turns(const struct ec_layout *l)
{
	uint8_t data[PIECES_MAX] = {0};
	uint64_t turn = 0, at, parities = 0;

	for (uint32_t b = 0; b < ec_layout_blocks(l); b++) {
		assert_true(ec_layout_before(l, b) == turn);
		for (uint32_t t = 0; t < ec_layout_before(l, b + 1) - ec_layout_before(l, b); t++) {
			struct ec_piece p = ec_layout_in_turn(l, b, t);

			assert_int_equal(ec_layout_block(l, p.group), b);
			assert_true(ec_layout_turn(l, &p, &at) && at == turn++);
			if (p.parity)
				parities++;
			else
				assert_int_equal(data[p.at]++, 0);
		}
	}
	assert_true(turn == ec_layout_all(l) && turn == l->pieces + parities);
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
			uint64_t turn;

			assert_true(same(&p, &q));
			assert_int_equal(ec_layout_turn(l, &p, &turn), i < ec_layout_unasked(l, g));
		}
	}
	assert_int_equal(pieces, l->pieces);
}

TEST(layouts_have_every_piece_once)
{
	struct prng rng;

	prng_init(&rng, 7);
	for (int i = 0; i < 3000; i++) {
		struct ec_layout l = drawn_layout(&rng);

		check_turns(&l);
		check_groups(&l);
	}
}

/* 10 pieces, groups of 4, two of them a block: the second block has one group of two. */
TEST(pieces_are_dealt_out_in_turn)
{
	struct ec_layout l = {.pieces = 10, .data = 4, .parity = 1, .parity_max = 2, .depth = 2};
	const uint32_t groups[] = {0, 1, 0, 1, 0, 1, 0, 1, 2, 2};

	assert_true(ec_layout_settle(&l));
	assert_int_equal(l.groups, 3);
	assert_int_equal(ec_layout_blocks(&l), 2);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(ec_layout_data(&l, i).group, groups[i]);
	assert_int_equal(ec_layout_size(&l, 2), 2);
	assert_true(ec_layout_before(&l, 1) == 10); /* 8 and a parity of each group */
	assert_true(ec_layout_all(&l) == 13);
	assert_int_equal(ec_layout_in_turn(&l, 0, 9).at, 1);
	assert_int_equal(ec_layout_parity_of(&l, 2, 1).at, 5);
}

TEST(layouts_that_cannot_be_are_refused)
{
	const struct ec_layout good = {.pieces = 10, .data = 4, .parity = 1, .parity_max = 2, .depth = 2};
	struct ec_layout bad[] = {good, good, good, good, good, good, good, good};

	bad[0].pieces = 0;
	bad[1].data = 0;
	bad[2].depth = 0;
	bad[3].parity = 3;
	bad[4].early = 2;
	bad[5].pieces = UINT32_MAX;
	bad[6].parity_max = UINT32_MAX;
	bad[7].depth = UINT32_MAX;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(ec_layout_settle(&bad[i]));
		assert_int_equal(bad[i].groups, 0);
	}
}
