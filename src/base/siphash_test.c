/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/siphash.h"
#include "support/test.h"

/*
 * The first row is the 8-byte message of the authors' published vectors; the others come from a
 * second implementation that reproduces the paper's Appendix A.
 */
TEST(siphash_u64_is_siphash_2_4_of_8_bytes)
{
	static const struct {
		uint8_t key[16];
		uint64_t word, hash;
	} rows[] = {
		{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 0x0706050403020100, 0x93f5f5799a932462},
		{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 0, 0x39d3851ca07681a7},
		{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 1, 0x2b91b2b085e6d1f6},
		{{0}, 0, 0xe849e8bb6ffe2567},
		{{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
		 UINT64_MAX,
		 0xf13e77491777f9d0},
		{{16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
		 0x0123456789abcdef,
		 0x8f7280c0e0c8ef29},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_true(siphash_u64(rows[i].key, rows[i].word) == rows[i].hash);
}

/* By the authors' published vectors: messages of the bytes 0, 1, 2 and so on. */
TEST(siphash_words_is_siphash_2_4_of_whole_words)
{
	static const uint8_t key[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	static const uint64_t hashes[] = {0x726fdb47dd0e0e31, 0x93f5f5799a932462, 0x3f2acc7f57c29bdb};
	uint64_t words[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

	for (size_t i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++)
		assert_true(siphash_words(key, words, i) == hashes[i]);
}

TEST_MANY(permute_is_a_bijection)
{
	static const uint8_t keys[][16] = {{0}, {1}, {0xde, 0xad, 0xbe, 0xef}};
	static uint8_t seen[1 << 20];
	static const uint32_t widths[] = {2, 3, 4, 7, 8, 15, 16, 17, 20};

	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
		for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
			uint32_t n = 1u << widths[i];

			memset(seen, 0, n);
			for (uint32_t x = 0; x < n; x++) {
				uint32_t y = permute(keys[k], widths[i], x);

				assert_true(y < n);
				assert_int_equal(seen[y]++, 0);
			}
		}
	}
}

/* At full width there is no room for a table: no two of many close arguments may meet. */
static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

TEST(permute_of_32_bits_does_not_collide)
{
	enum { N = 1 << 18 };
	static const uint8_t key[16] = {42};
	static uint32_t y[2 * N];

	for (uint32_t x = 0; x < N; x++) {
		y[2 * x] = permute(key, 32, x);
		y[2 * x + 1] = permute(key, 32, UINT32_MAX - x);
	}
	qsort(y, 2 * N, sizeof(y[0]), compare);
	for (uint32_t i = 1; i < 2 * N; i++)
		assert_int_not_equal(y[i - 1], y[i]);
}

TEST(permute_depends_on_the_key)
{
	static const uint8_t a[16] = {0}, b[16] = {[15] = 1};
	int same = 0;

	for (uint32_t x = 0; x < 1024; x++)
		same += permute(a, 17, x) == permute(b, 17, x);
	assert_true(same < 8);
}
