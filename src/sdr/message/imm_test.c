/* SPDX-License-Identifier: BSD-2-Clause */
/* The split of the transport immediate, and the limits of a connection. */

#include "base/prng.h"
#include "sdr/message/shape.h"
#include "support/test.h"

static const struct imm_split usual = {10, 18, 4};

static const struct shape usual_shape = {
	.split = {10, 18, 4},
	.mtu = 4096,
	.chunk_bytes = 65536,
	.slots = 1024,
	.generations = 4,
	.channels = 8,
	.message_bytes = 1 << 20,
};

TEST(imm_fields_lie_where_the_diagram_says)
{
	assert_int_equal(imm_pack(usual, (struct imm){.id = 1}), 0x00400000);
	assert_int_equal(imm_pack(usual, (struct imm){.offset = 1}), 0x00000010);
	assert_int_equal(imm_pack(usual, (struct imm){.frag = 1}), 0x00000001);
	assert_int_equal(imm_pack(usual, (struct imm){0x3ff, 0x3ffff, 0xf}), 0xffffffff);
	assert_int_equal(imm_pack((struct imm_split){8, 22, 2}, (struct imm){.id = 0x80}), 0x80000000);
}

TEST(imm_round_trips_in_every_split)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (unsigned id = 0; id < 40; id++) {
		for (unsigned frag = 0; frag < 12; frag++) {
			struct imm_split s = {(uint8_t)id, (uint8_t)(32 - id - frag), (uint8_t)frag};
			uint32_t bits = (uint32_t)prng_next(&rng);

			if (imm_split_valid(s))
				assert_int_equal(imm_pack(s, imm_unpack(s, bits)), bits);
		}
	}
}

TEST(imm_split_is_refused_unless_it_fills_32_bits)
{
	assert_true(imm_split_valid(usual));
	assert_true(imm_split_valid((struct imm_split){8, 22, 2}));
	assert_false(imm_split_valid((struct imm_split){10, 18, 3}));
	assert_false(imm_split_valid((struct imm_split){10, 19, 4}));
	assert_false(imm_split_valid((struct imm_split){17, 11, 4}));
	assert_false(imm_split_valid((struct imm_split){0, 28, 4}));
	assert_false(imm_split_valid((struct imm_split){16, 0, 16}));
	assert_false(imm_split_valid((struct imm_split){255, 255, 34}));
}

TEST(imm_fragments_begin_with_the_least_significant)
{
	assert_int_equal(imm_fragments(usual), 8);
	assert_int_equal(imm_fragment(usual, 0x12345678, 0), 8);
	assert_int_equal(imm_fragment(usual, 0x12345678, 7), 1);
	assert_int_equal(imm_fragment(usual, 0x12345678, 8), 8);
}

/* Each row breaks one member of the usual shape. */
TEST(shape_limits_are_held)
{
	static const struct {
		size_t member;
		uint32_t bad[6];
	} row[] = {
		{offsetof(struct shape, mtu), {0, 32, 96, 8192, 131072}},
		{offsetof(struct shape, chunk_bytes), {0, 2048, 65535, 524288, 98304}},
		{offsetof(struct shape, slots), {0, 3, 2048}},
		{offsetof(struct shape, generations), {0, 17}},
		{offsetof(struct shape, channels), {0, 129}},
	};

	assert_true(shape_valid(&usual_shape));
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		for (size_t k = 0; k == 0 || row[i].bad[k]; k++) {
			struct shape s = usual_shape;

			memcpy((uint8_t *)&s + row[i].member, &row[i].bad[k], sizeof(uint32_t));
			assert_false(shape_valid(&s));
		}
	}
}

TEST(shape_messages_are_a_chunk_to_what_offsets_reach)
{
	struct shape s = usual_shape;

	s.message_bytes = UINT64_C(1) << 30;
	assert_true(shape_valid(&s));
	s.message_bytes = UINT64_C(1) << 31;
	assert_false(shape_valid(&s));
	s.message_bytes = 65536;
	assert_true(shape_valid(&s));
	s.message_bytes = 32768;
	assert_false(shape_valid(&s));
	s.message_bytes = 3 * 65536;
	assert_false(shape_valid(&s));
}

TEST(shape_numbers_wrap_through_slots_and_generations)
{
	const struct shape *s = &usual_shape;

	assert_int_equal(shape_slot(s, 1023), 1023);
	assert_int_equal(shape_slot(s, 1024), 0);
	assert_int_equal(shape_generation(s, 1023), 0);
	assert_int_equal(shape_generation(s, 1024), 1);
	assert_int_equal(shape_generation(s, 4 * 1024), 0);
	assert_int_equal(shape_packets(s, 1), 1);
	assert_int_equal(shape_packets(s, 65537), 17);
	assert_int_equal(shape_chunks(s, 65537), 2);
}
