/* SPDX-License-Identifier: BSD-2-Clause */
/* FPDUs: CRC, padding, markers, and streams cut anywhere. */

#include "base/byteorder.h"
#include "base/prng.h"
#include "iwarp/crc32c.h"
#include "iwarp/fpdu.h"
#include "iwarp/golden.h"
#include "../tests/support/heap.h"
#include "../tests/support/vectors.h"
#include "support/test.h"

enum { RAW_MAX = FPDU_PLAIN_MAX + 4 * 200 };

static struct heap heap = HEAP_INIT;
static struct alloc alloc;
static struct pool pool;

static int set_up(void **state)
{
	alloc = heap_alloc(&heap);
	pool_init(&pool, &alloc);
	return 0;
}

static int tear_down(void **state)
{
	assert_int_equal(pool_lent_bytes(&pool), 0);
	pool_fini(&pool);
	return 0;
}

TEST(crc32c_of_the_check_string)
{
	uint8_t p[CRC32C_LEN];
	static const uint8_t expect[] = {0x83, 0x92, 0x06, 0xe3};
	uint32_t reg = crc32c_add(CRC32C_START, (const uint8_t *)"123456789", 9);

	crc32c_put(p, reg);
	assert_memory_equal(p, expect, sizeof(p));
	assert_int_equal(crc32c_get(p), reg);
	assert_int_equal(crc32c_add(crc32c_add(CRC32C_START, (const uint8_t *)"1234", 4), (const uint8_t *)"56789", 5),
			 reg);
}

/* The compiler's code would be slow behind it: base/vectors.h. */
TEST(crc32c_leaves_no_upper_half)
{
	static uint8_t bytes[400];

	for (size_t len = 0; len <= sizeof(bytes); len++) {
		crc32c_add(CRC32C_START, bytes, len);
		if (!upper_halves_are_clear())
			fail_msg("after %zu bytes", len);
	}
}

/* Its ULPDU, sealed again, gives the same bytes. */
static void check_golden(const char *hex, struct fpdu_framing framing)
{
	uint8_t raw[256], again[256];
	size_t n = golden_bytes(raw, hex), left = n;
	struct fpdu_reader r = {.framing = framing};
	const uint8_t *data = raw, *ulpdu;
	uint32_t len;

	assert_int_equal(fpdu_read(&r, &pool, &data, &left, &ulpdu, &len), FPDU_ULPDU);
	assert_int_equal(left, 0);
	memset(again, 0xa5, sizeof(again));
	memcpy(again + FPDU_LENGTH_LEN, ulpdu, len);
	assert_int_equal(fpdu_len(&framing, len), n);
	assert_int_equal(fpdu_seal(&framing, again, len), n);
	assert_memory_equal(again, raw, n);
	assert_int_equal(framing.pos, r.framing.pos);
	fpdu_reader_fini(&r, &pool);
}

TEST(fpdu_golden_bytes_both_ways)
{
	static const char *const plain[] = {
		GOLDEN_RTR_WRITE,       GOLDEN_SEND,           GOLDEN_WRITE,        GOLDEN_READ_REQUEST,
		GOLDEN_READ_RESPONSE,   GOLDEN_SEND_SE_INV,    GOLDEN_IMM,          GOLDEN_ATOMIC_REQUEST,
		GOLDEN_ATOMIC_RESPONSE, GOLDEN_TERMINATE_STAG, GOLDEN_TERMINATE_CRC};

	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		check_golden(plain[i], (struct fpdu_framing){.crc = true});
	check_golden(GOLDEN_MARKER_FIRST, (struct fpdu_framing){.crc = true, .markers = true});
	check_golden(GOLDEN_MARKER_INSIDE,
		     (struct fpdu_framing){.crc = true, .markers = true, .pos = GOLDEN_MARKER_INSIDE_POS});
}

/* Lays out ULPDUs of those lengths, byte k of ULPDU i being i + k. Returns the bytes of the stream. */
static size_t lay_out(uint8_t *to, const uint32_t *lens, size_t count, struct fpdu_framing *f)
{
	size_t at = 0;

	for (size_t i = 0; i < count; i++) {
		for (uint32_t k = 0; k < lens[i]; k++)
			to[at + FPDU_LENGTH_LEN + k] = (uint8_t)(i + k);
		at += fpdu_seal(f, to + at, lens[i]);
	}
	return at;
}

static void check_ulpdu(const uint8_t *p, uint32_t len, size_t i, uint32_t expected)
{
	assert_int_equal(len, expected);
	for (uint32_t k = 0; k < len; k++)
		assert_int_equal(p[k], (uint8_t)(i + k));
}

/* Reads the stream in pieces of at most `most` bytes. */
static void read_in_pieces(const uint8_t *raw, size_t n, struct fpdu_framing framing, const uint32_t *lens,
			   size_t count, uint64_t most, struct prng *rng)
{
	struct fpdu_reader r = {.framing = framing};
	size_t i = 0;

	while (n) {
		uint64_t piece = 1 + prng_below(rng, most);
		size_t left = piece < n ? (size_t)piece : n;
		const uint8_t *data = raw, *ulpdu;
		enum fpdu_result result;
		uint32_t len;

		raw += left;
		n -= left;
		while ((result = fpdu_read(&r, &pool, &data, &left, &ulpdu, &len)) == FPDU_ULPDU) {
			assert_true(i < count);
			check_ulpdu(ulpdu, len, i, lens[i]);
			i++;
		}
		assert_int_equal(result, FPDU_NONE);
		assert_int_equal(left, 0);
	}
	assert_int_equal(i, count);
	assert_true(fpdu_is_between(&r));
	fpdu_reader_fini(&r, &pool);
}

TEST(a_stream_cut_anywhere_gives_the_same_ulpdus)
{
	static const uint32_t lens[] = {14, 15, 16, 17, 18, 500, 508, 512, 1428, 0, 3000, 1};
	enum { COUNT = sizeof(lens) / sizeof(*lens) };
	static uint8_t raw[16384];
	struct prng rng;

	prng_init(&rng, 7);
	for (int markers = 0; markers < 2; markers++) {
		for (int crc = 0; crc < 2; crc++) {
			struct fpdu_framing f = {.crc = crc, .markers = markers}, start = f;
			size_t n = lay_out(raw, lens, COUNT, &f);

			read_in_pieces(raw, n, start, lens, COUNT, 1, &rng);
			read_in_pieces(raw, n, start, lens, COUNT, n, &rng);
			for (int i = 0; i < 200; i++)
				read_in_pieces(raw, n, start, lens, COUNT, 1 + prng_below(&rng, 3000), &rng);
		}
	}
}

TEST(the_longest_fpdu_with_markers_everywhere)
{
	static uint8_t raw[RAW_MAX];
	struct prng rng;

	prng_init(&rng, 8);
	for (uint16_t pos = 0; pos < FPDU_MARKER_SPACING; pos += 4) {
		static const uint32_t lens[] = {FPDU_ULPDU_MAX};
		struct fpdu_framing f = {.crc = true, .markers = true, .pos = pos}, start = f;
		size_t n = lay_out(raw, lens, 1, &f);

		assert_true(n <= RAW_MAX);
		read_in_pieces(raw, n, start, lens, 1, 40000, &rng);
	}
}

TEST(a_marker_reaches_back_over_the_longest_marked_fpdu)
{
	for (uint16_t pos = 0; pos < FPDU_MARKER_SPACING; pos += 4) {
		struct fpdu_framing f = {.markers = true, .pos = pos};

		assert_true(fpdu_len(&f, FPDU_ULPDU_MAX_MARKED) <= UINT16_MAX);
	}
}

/* RFC 5044 4.3: one at each 512th byte, and it leads back to the length. */
TEST(markers_stand_at_each_512th_byte)
{
	static const uint32_t lens[] = {100, 2000, 700};
	static uint8_t raw[8192];
	struct fpdu_framing f = {.crc = true, .markers = true};
	size_t n = lay_out(raw, lens, 3, &f);
	size_t starts[3] = {4, 0, 0};

	/* By hand: 4 + 108; then 2008 plain bytes with markers at 512, 1024, 1536 and 2048. */
	starts[1] = 112;
	starts[2] = 112 + 2008 + 4 * 4;
	for (size_t at = 0; at < n; at += FPDU_MARKER_SPACING) {
		size_t of = at < 112 ? 0 : at < starts[2] ? 1 : 2;

		assert_int_equal(get_be32(raw + at), at < starts[of] ? 0 : at - starts[of]);
	}
	assert_int_equal(get_be16(raw + starts[1]), 2000);
	assert_int_equal(get_be16(raw + starts[2]), 700);
}

static enum fpdu_result read_one(const uint8_t *raw, size_t n, struct fpdu_framing framing)
{
	struct fpdu_reader r = {.framing = framing};
	const uint8_t *ulpdu;
	uint32_t len;
	enum fpdu_result result = fpdu_read(&r, &pool, &raw, &n, &ulpdu, &len);

	fpdu_reader_fini(&r, &pool);
	return result;
}

TEST(every_flipped_bit_is_found_by_the_crc)
{
	uint8_t raw[64];
	size_t n = golden_bytes(raw, GOLDEN_WRITE);

	for (size_t bit = 16; bit < 8 * n; bit++) { /* a flipped length asks for other bytes */
		raw[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(read_one(raw, n, (struct fpdu_framing){.crc = true}), FPDU_BAD_CRC);
		assert_int_equal(read_one(raw, n, (struct fpdu_framing){0}), FPDU_ULPDU);
		raw[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

TEST(a_wrong_marker_is_found_without_a_crc)
{
	struct fpdu_framing framing = {.markers = true, .pos = GOLDEN_MARKER_INSIDE_POS};
	uint8_t raw[64];
	size_t n = golden_bytes(raw, GOLDEN_MARKER_INSIDE);

	assert_int_equal(read_one(raw, n, framing), FPDU_ULPDU);
	raw[23] ^= 3; /* RFC 5044 4.3: the two low bits are ignored */
	assert_int_equal(read_one(raw, n, framing), FPDU_ULPDU);
	raw[23] ^= 4;
	assert_int_equal(read_one(raw, n, framing), FPDU_BAD_MARKER);
}

TEST(pieces_that_find_no_memory_end_the_stream)
{
	uint8_t raw[64];
	size_t n = golden_bytes(raw, GOLDEN_WRITE);

	heap.gets_left = 0;
	pool_fini(&pool);
	assert_int_equal(read_one(raw, n - 1, (struct fpdu_framing){.crc = true}), FPDU_NO_MEMORY);
	heap.gets_left = -1;
}

TEST(a_stream_may_end_between_fpdus_alone)
{
	uint8_t raw[64];
	size_t n = golden_bytes(raw, GOLDEN_WRITE);

	for (size_t cut = 0; cut <= n; cut++) {
		struct fpdu_reader r = {.framing = {.crc = true}};
		const uint8_t *data = raw, *ulpdu;
		size_t left = cut;
		uint32_t len;

		while (fpdu_read(&r, &pool, &data, &left, &ulpdu, &len) == FPDU_ULPDU)
			;
		assert_int_equal(fpdu_is_between(&r), cut == 0 || cut == n);
		fpdu_reader_fini(&r, &pool);
	}
}

/* RFC 5044 4.5, and what an EMSS of 1448 leaves for payload. */
TEST(mulpdu_fills_a_segment)
{
	assert_int_equal(fpdu_mulpdu(1448, false), 1448 - 6);
	assert_int_equal(fpdu_mulpdu(1449, false), 1449 - 7);
	assert_int_equal(fpdu_mulpdu(1448, true), 1448 - 6 - 4 * 3);
	assert_int_equal(fpdu_mulpdu(65483, false), 65483 - 6 - 3);
	assert_int_equal(fpdu_mulpdu(1 << 20, false), FPDU_ULPDU_MAX);
	assert_int_equal(fpdu_mulpdu(1 << 20, true), FPDU_ULPDU_MAX_MARKED);
	assert_int_equal(fpdu_mulpdu(0, true), FPDU_MULPDU_MIN);
	for (uint32_t emss = 256; emss < 3000; emss++) {
		struct fpdu_framing f = {.markers = true};

		assert_true(fpdu_len(&f, fpdu_mulpdu(emss, true)) <= emss);
		f.markers = false;
		assert_true(fpdu_len(&f, fpdu_mulpdu(emss, false)) <= emss);
	}
}

TEST_PROGRAM(set_up, tear_down)
