/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/bitring.h"
#include "base/prng.h"
#include "support/test.h"

enum { BITS_MAX = 512 };

/* Two words of guard: a ring never reads or writes beyond its own. */
struct fixture {
	uint64_t words[BITS_MAX / 64 + 2];
	struct bitring ring;
};

static void setup(struct fixture *f, uint32_t bits)
{
	memset(f->words, 0xff, sizeof(f->words));
	f->ring = (struct bitring){f->words + 1, bits - 1};
	bitring_reset(&f->ring);
}

static void assert_guards(const struct fixture *f)
{
	assert_true(f->words[0] == UINT64_MAX);
	assert_true(f->words[1 + (f->ring.mask + 1) / 64] == UINT64_MAX);
}

static void set_range(struct bitring *r, uint32_t from, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		bitring_set(r, from + i);
}

TEST(reset_clears_all_and_nothing_else)
{
	for (uint32_t bits = 64; bits <= BITS_MAX; bits *= 2) {
		struct fixture f;

		setup(&f, bits);
		assert_int_equal(bitring_next_set(&f.ring, 0, bits), bits);
		assert_guards(&f);
	}
}

TEST(a_position_is_itself_modulo_the_ring)
{
	struct fixture f;

	setup(&f, 128);
	bitring_set(&f.ring, 5);
	assert_true(bitring_test(&f.ring, 5));
	assert_true(bitring_test(&f.ring, 5 + 128));
	assert_true(bitring_test(&f.ring, 5u - 128));
	assert_false(bitring_test(&f.ring, 5 + 64));
	bitring_clear(&f.ring, 5u - 256);
	assert_false(bitring_test(&f.ring, 5));
}

TEST(next_set_finds_the_only_bit_from_anywhere)
{
	struct fixture f;

	for (uint32_t at = 0; at < 128; at++) {
		setup(&f, 128);
		bitring_set(&f.ring, at);
		for (uint32_t d = 0; d < 128; d++) {
			assert_int_equal(bitring_next_set(&f.ring, at - d, 128), d);
			assert_int_equal(bitring_next_set(&f.ring, at - d, d + 1), d);
			assert_int_equal(bitring_next_set(&f.ring, at - d, d), d);
			assert_int_equal(bitring_next_set(&f.ring, at - d, d / 2), d / 2);
		}
	}
}

TEST(a_full_or_empty_ring_answers_any_max)
{
	struct fixture f;

	setup(&f, 64);
	assert_int_equal(bitring_next_set(&f.ring, 77, UINT32_MAX), UINT32_MAX);
	assert_int_equal(bitring_next_set(&f.ring, 77, 0), 0);
	set_range(&f.ring, 0, 64);
	assert_int_equal(bitring_next_set(&f.ring, 77, UINT32_MAX), 0);
	assert_int_equal(bitring_next_set(&f.ring, 77, 0), 0);
}

TEST(get128_is_the_window_cut_at_max)
{
	struct fixture f;
	uint64_t out[2];

	setup(&f, 256);
	set_range(&f.ring, 0, 256);
	bitring_clear(&f.ring, UINT32_MAX);
	bitring_get128(&f.ring, UINT32_MAX - 3, out, 128);
	assert_true(out[0] == ~UINT64_C(8));
	assert_true(out[1] == UINT64_MAX);
	bitring_get128(&f.ring, UINT32_MAX - 3, out, 5);
	assert_true(out[0] == 0x17);
	assert_true(out[1] == 0);
	bitring_get128(&f.ring, UINT32_MAX - 3, out, 64);
	assert_true(out[0] == ~UINT64_C(8));
	assert_true(out[1] == 0);
	bitring_get128(&f.ring, UINT32_MAX - 3, out, 65);
	assert_true(out[1] == 1);
	bitring_get128(&f.ring, UINT32_MAX - 3, out, 0);
	assert_true(out[0] == 0 && out[1] == 0);
	bitring_get128(&f.ring, UINT32_MAX - 3, out, UINT32_MAX);
	assert_true(out[1] == UINT64_MAX);
}

TEST(clear_range_clears_just_the_range)
{
	static const uint32_t froms[] = {0, 1, 63, 64, 100, 255, UINT32_MAX - 64};
	struct fixture f;

	for (size_t k = 0; k < sizeof(froms) / sizeof(froms[0]); k++) {
		for (uint32_t n = 0; n <= 256; n++) {
			setup(&f, 256);
			set_range(&f.ring, 0, 256);
			bitring_clear_range(&f.ring, froms[k], n);
			assert_int_equal(bitring_next_set(&f.ring, froms[k], 256), n);
			for (uint32_t i = n; i < 256; i++)
				assert_true(bitring_test(&f.ring, froms[k] + i));
			assert_guards(&f);
		}
	}
	set_range(&f.ring, 0, 256);
	bitring_clear_range(&f.ring, 3, UINT32_MAX);
	assert_int_equal(bitring_next_set(&f.ring, 0, 256), 256);
	assert_guards(&f);
}

static uint32_t model_next(const uint8_t *bit, uint32_t mask, uint32_t from, uint32_t max, int want)
{
	for (uint32_t d = 0; d < max; d++) {
		if (bit[(from + d) & mask] == want)
			return d;
	}
	return max;
}

TEST(ring_agrees_with_a_naive_model)
{
	struct prng r;

	prng_init(&r, 11);
	for (uint32_t bits = 64; bits <= BITS_MAX; bits *= 2) {
		uint8_t bit[BITS_MAX] = {0};
		uint32_t mask = bits - 1, head = UINT32_MAX - 5000;
		struct fixture f;

		setup(&f, bits);
		for (int step = 0; step < 40000; step++) {
			uint32_t pos = head + (uint32_t)prng_below(&r, bits);
			uint32_t n = (uint32_t)prng_below(&r, bits + 70);
			uint64_t out[2];

			switch (prng_below(&r, 8)) {
			case 0:
				bitring_clear(&f.ring, pos);
				bit[pos & mask] = 0;
				break;
			case 1:
				n = n % 8 ? n % 20 : n;
				bitring_clear_range(&f.ring, pos, n);
				for (uint32_t i = 0; i < n; i++)
					bit[(pos + i) & mask] = 0;
				break;
			case 2: head += (uint32_t)prng_below(&r, 3); break;
			default:
				n = (uint32_t)prng_below(&r, 20);
				set_range(&f.ring, pos, n);
				for (uint32_t i = 0; i < n; i++)
					bit[(pos + i) & mask] = 1;
			}
			pos = head + (uint32_t)prng_below(&r, bits);
			n = (uint32_t)prng_below(&r, bits + 70);
			assert_int_equal(bitring_test(&f.ring, pos), bit[pos & mask]);
			assert_int_equal(bitring_next_set(&f.ring, pos, n), model_next(bit, mask, pos, n, 1));
			bitring_get128(&f.ring, pos, out, n);
			for (uint32_t i = 0; i < 128; i++) {
				int want = i < n && bit[(pos + i) & mask];

				assert_int_equal(out[i / 64] >> i % 64 & 1, want);
			}
		}
		assert_guards(&f);
	}
}
