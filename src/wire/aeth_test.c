/* SPDX-License-Identifier: BSD-2-Clause */
/* The syndrome and the RNR timer codes of the AETH. */

#include "support/test.h"
#include "wire/aeth.h"

TEST(aeth_syndrome_splits_into_kind_and_value)
{
	static const struct {
		uint8_t syndrome, kind, value;
	} row[] = {
		{0x00, AETH_ACK, 0},
		{0x1f, AETH_ACK, AETH_CREDIT_INVALID},
		{0x20, AETH_RNR_NAK, 0},
		{0x3f, AETH_RNR_NAK, 31},
		{0x60, AETH_NAK, NAK_PSN_SEQUENCE},
		{0x61, AETH_NAK, NAK_INVALID_REQUEST},
		{0x62, AETH_NAK, NAK_REMOTE_ACCESS},
		{0x63, AETH_NAK, NAK_REMOTE_OPERATIONAL},
		{0x64, AETH_NAK, NAK_INVALID_RD},
		{0x9f, AETH_ACK, 31}, /* bit 7 is reserved */
		{0x40, 0x40, 0},      /* the reserved kind */
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		assert_int_equal(aeth_kind(row[i].syndrome), row[i].kind);
		assert_int_equal(aeth_value(row[i].syndrome), row[i].value);
	}
}

/* IBTA Table 45, in units of 10 us. */
TEST(aeth_rnr_times_are_the_specs)
{
	static const uint32_t table[32] = {
		65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
		256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	for (unsigned code = 0; code < 32; code++)
		assert_true(aeth_rnr_ns((uint8_t)code) == (uint64_t)table[code] * 10000);
	assert_true(aeth_rnr_ns(0) == 655360000);
	assert_true(aeth_rnr_ns(31) == 491520000);
}

/* From code 1 on: 1, 2, 3, then 2^k and 3 * 2^(k-1) in turn. */
TEST(aeth_rnr_times_double_every_second_code)
{
	for (unsigned code = 2; code + 2 < 32; code++)
		assert_true(aeth_rnr_ns((uint8_t)(code + 2)) == 2 * aeth_rnr_ns((uint8_t)code));
}

TEST(aeth_rnr_takes_a_whole_syndrome)
{
	assert_true(aeth_rnr_ns(AETH_RNR_NAK | 5) == aeth_rnr_ns(5));
}
