/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/test.h"
#include "wire/crc32.h"
#include "../tests/support/vectors.h"

enum { LEN_MAX = 1200, FAR_LEN = 30720 };

static uint8_t bytes[FAR_LEN + 16];

/* Divides bit by bit. */
static uint32_t divide(uint32_t crc, const uint8_t *p, size_t n)
{
	crc = ~crc;
	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return ~crc;
}

static int fill(void **state)
{
	uint32_t x = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		x = x * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(x >> 24);
	}
	return 0;
}

/* The value that catalogues of CRCs give for these nine digits. */
TEST(crc32_of_the_check_string)
{
	assert_int_equal(crc32_ieee(0, (const uint8_t *)"123456789", 9), 0xcbf43926);
}

TEST(crc32_of_every_length_is_the_remainder)
{
	for (size_t n = 0; n <= LEN_MAX; n++) {
		uint32_t seed = (uint32_t)n * 2654435761u;
		const uint8_t *p = bytes + n % 16;

		assert_int_equal(crc32_ieee(seed, p, n), divide(seed, p, n));
	}
	assert_int_equal(crc32_ieee(7, bytes, FAR_LEN), divide(7, bytes, FAR_LEN));
}

/* Each byte of a vector, a stride and a rest counts, and where it stands. */
TEST(crc32_of_one_bit_anywhere)
{
	static const size_t lens[] = {32, 47, 63, 127, 128, 175, 256, 300, 1036};
	static uint8_t zeros[1036];

	for (size_t k = 0; k < sizeof(lens) / sizeof(lens[0]); k++) {
		for (size_t i = 0; i < lens[k]; i++) {
			zeros[i] = (uint8_t)(1 << i % 8);
			assert_int_equal(crc32_ieee(0, zeros, lens[k]), divide(0, zeros, lens[k]));
			zeros[i] = 0;
		}
	}
}

TEST(crc32_goes_on_where_it_stopped)
{
	for (size_t cut = 0; cut <= 400; cut++)
		assert_int_equal(crc32_ieee(crc32_ieee(0, bytes, cut), bytes + cut, 400 - cut), divide(0, bytes, 400));
}

/* The compiler's code would be slow behind it: base/vectors.h. */
TEST(crc32_leaves_no_upper_half)
{
	for (size_t len = 0; len <= 400; len++) {
		crc32_ieee(0, bytes, len);
		if (!upper_halves_are_clear())
			fail_msg("after %zu bytes", len);
	}
}

TEST_PROGRAM(fill, NULL)
