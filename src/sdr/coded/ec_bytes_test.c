/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of any layout, of whose groups as much is lost as each code bears: every byte is right again. */
#include "base/prng.h"
#include "sdr/coded/ec_bytes.h"
#include "sdr/ec/kernel.h"
#include "support/heap.h"
#include "support/test.h"

enum { PIECES = 2048, PARITIES = 2048, PIECE = 32 };

static uint8_t sent[PIECES * PIECE], got[PIECES * PIECE], made[PARITIES * PIECE], spare[2][EC_BYTES_SPARE(PIECE)];
static bool lost[2][PIECES + PARITIES]; /* of the data, of the parities */

static bool has(const void *of, const struct ec_piece *p)
{
	return !lost[p->parity][p->at];
}

static struct ec_layout drawn_layout(struct prng *rng, enum ec_kind kind)
{
	struct ec_layout l = {.pieces = 1 + (uint32_t)prng_below(rng, kind == EC_WIDE ? PIECES : 600),
			      .data = kind == EC_WIDE ? 256 : 8 + (uint32_t)prng_below(rng, 40),
			      .parity_max = 1 + (uint32_t)prng_below(rng, kind == EC_XOR ? 8 : 16),
			      .depth = 1 + (uint32_t)prng_below(rng, 8)};

	l.first = prng_below(rng, 2) ? (uint32_t)prng_below(rng, l.pieces) : 0;
	l.parity = kind == EC_XOR ? l.parity_max : (uint32_t)prng_below(rng, l.parity_max + 1);
	assert_true(ec_layout_settle(&l));
	return l;
}

/* As many of a group's pieces as it has parities, of XOR of one class each; of a wide one, one fewer. */
static void lose(struct prng *rng, const struct ec_layout *l, enum ec_kind kind)
{
	uint32_t at = (uint32_t)prng_below(rng, l->data), most = l->parity_max - (kind == EC_WIDE);

	memset(lost, 0, sizeof(lost));
	for (uint32_t g = 0; g < l->groups; g++) {
		uint32_t size = ec_layout_size(l, g);

		for (uint32_t i = 0; i < most; i++) {
			bool parity = prng_below(rng, 4) == 0 || at + i >= size;

			if (!parity)
				lost[0][ec_layout_data_of(l, g, at + i).at] = true;
			else
				lost[1][ec_layout_parity_of(l, g, (at + i) % l->parity_max).at] = true;
		}
	}
}

static void check(struct prng *rng, enum ec_kind kind, uint32_t at_a_time)
{
	struct heap heap = HEAP_INIT;
	const struct alloc alloc = heap_alloc(&heap);
	struct ec_layout l = drawn_layout(rng, kind);
	struct ec_code code;
	struct ec_bytes b = {.layout = &l,
			     .code = &code,
			     .data = sent,
			     .bytes = (uint64_t)l.pieces * PIECE - prng_below(rng, PIECE),
			     .parity = made,
			     .piece = PIECE,
			     .spare = spare[0]};

	assert_int_equal(ec_code_init(&code, kind, l.data, l.parity_max, ec_kernel_best(), &alloc), 0);
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (uint8_t)prng_next(rng);
	for (uint32_t at = l.first; at < l.pieces; at += at_a_time) {
		struct ec_block block = ec_layout_block(&l, ec_layout_block_of(&l, at));
		uint32_t left = block.at + block.pieces - at;

		at_a_time = 1 + (uint32_t)prng_below(rng, left);
		ec_bytes_add(&b, at, at_a_time);
	}
	for (uint32_t g = 0; kind != EC_XOR && l.parity < l.parity_max && g < l.groups; g++)
		ec_bytes_make(&b, g, l.parity, l.parity_max - l.parity);
	lose(rng, &l, kind);
	memcpy(got, sent, sizeof(got));
	for (uint32_t i = l.first; i < l.pieces; i++) {
		if (lost[0][i])
			memset(got + (size_t)i * PIECE, 0xaa,
			       i == l.pieces - 1 ? b.bytes - (uint64_t)i * PIECE : PIECE);
	}
	b.data = got;
	b.spare = spare[1];
	for (uint32_t g = 0; g < l.groups; g++)
		assert_int_equal(ec_bytes_recover(&b, &(struct ec_presence){has, NULL}, g), 0);
	assert_memory_equal(got, sent, sizeof(got));
	ec_code_fini(&code);
	assert_int_equal(heap.blocks, 0);
}

TEST(what_was_lost_is_computed)
{
	struct prng rng;

	prng_init(&rng, 11);
	for (int i = 0; i < 300; i++) {
		check(&rng, EC_CAUCHY, 1);
		check(&rng, EC_XOR, 1);
		check(&rng, EC_WIDE, 1);
	}
}
