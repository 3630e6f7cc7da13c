/* SPDX-License-Identifier: BSD-2-Clause */
/* Terminate: its shape by cause, and siw's order of bits. */

#include "iwarp/golden.h"
#include "iwarp/rdmap.h"
#include "support/test.h"

enum { CONTROL_AT = 2 + DDP_UNTAGGED_LEN }; /* in an FPDU */

TEST(golden_bytes_both_ways)
{
	uint8_t raw[64], out[TERM_MAX];
	struct terminate t;

	golden_bytes(raw, GOLDEN_TERMINATE_STAG);
	assert_true(terminate_decode(&t, raw + CONTROL_AT, 20));
	assert_int_equal(t.cause, TERM_TAGGED_STAG);
	assert_int_equal(t.segment_len, 30);
	assert_non_null(t.ddp);
	assert_null(t.request);
	assert_int_equal(terminate_encode(out, &t), 20);
	assert_memory_equal(out, raw + CONTROL_AT, 20);

	golden_bytes(raw, GOLDEN_TERMINATE_CRC);
	assert_true(terminate_decode(&t, raw + CONTROL_AT, 4));
	assert_int_equal(t.cause, TERM_MPA_CRC);
	assert_null(t.ddp);
	assert_int_equal(terminate_encode(out, &t), 4);
	assert_memory_equal(out, raw + CONTROL_AT, 4);
}

/* RFC 5040 figure 10. */
TEST(the_cause_says_what_goes_along)
{
	static const struct {
		enum term_cause cause;
		uint32_t len;
		uint8_t bits;
	} cases[] = {
		{TERM_LOCAL_CATASTROPHIC, 4, 0},
		{TERM_PROTECTION_ACCESS, 4 + 2 + 18 + 28, 0xe0},
		{TERM_OPERATION_OPCODE, 4 + 2 + 18, 0xc0},
		{TERM_DDP_CATASTROPHIC, 4, 0},
		{TERM_TAGGED_BOUNDS, 4 + 2 + 18, 0xc0},
		{TERM_UNTAGGED_NO_BUFFER, 4 + 2 + 18, 0xc0},
		{TERM_MPA_CRC, 4, 0},
	};
	uint8_t raw[64], out[TERM_MAX];

	golden_bytes(raw, GOLDEN_READ_REQUEST);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct terminate t = {.cause = cases[i].cause,
				      .segment_len = 46,
				      .ddp = raw + 2,
				      .request = raw + 2 + DDP_UNTAGGED_LEN},
				 back;

		assert_int_equal(terminate_encode(out, &t), cases[i].len);
		assert_int_equal(out[2], cases[i].bits);
		for (uint32_t len = 0; len <= cases[i].len; len++)
			assert_int_equal(terminate_decode(&back, out, len), len == cases[i].len);
		assert_int_equal(back.cause, t.cause);
		assert_true(!back.ddp == !(cases[i].bits & 0x40) && !back.request == !(cases[i].bits & 0x20));
	}
}

/* Without a header to tell of (bytes that are none) the bits are clear. */
TEST(nothing_goes_along_where_nothing_is_known)
{
	uint8_t out[TERM_MAX];
	struct terminate t = {.cause = TERM_UNTAGGED_NO_BUFFER};

	assert_int_equal(terminate_encode(out, &t), TERM_CONTROL_LEN);
	assert_int_equal(out[2], 0);
}

/* Linux's siw on a little-endian machine. */
TEST(siw_order_is_understood)
{
	static const struct {
		uint8_t control[4];
		enum term_cause cause;
	} cases[] = {
		{{0x10, 0x02, 0x07, 0x00}, TERM_PROTECTION_ACCESS}, /* layer 0, type 1, M D R */
		{{0x11, 0x00, 0x03, 0x00}, TERM_TAGGED_STAG},
		{{0x21, 0x02, 0x03, 0x00}, TERM_UNTAGGED_NO_BUFFER},
		{{0x02, 0x02, 0x00, 0x00}, TERM_MPA_CRC},
		{{0x01, 0x00, 0x00, 0x00}, TERM_DDP_CATASTROPHIC},
		{{0x00, 0x00, 0x00, 0x00}, TERM_LOCAL_CATASTROPHIC},
	};
	uint8_t p[TERM_MAX] = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct terminate t;

		memcpy(p, cases[i].control, 4);
		assert_true(terminate_decode(&t, p, sizeof(p)));
		assert_int_equal(t.cause, cases[i].cause);
		assert_int_equal(t.ddp != NULL, (cases[i].control[2] & 2) != 0);
		assert_int_equal(t.request != NULL, (cases[i].control[2] & 4) != 0);
	}
}
