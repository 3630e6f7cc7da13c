/* SPDX-License-Identifier: BSD-2-Clause */
/* What the BTH has and other headers do not (headers_test.c): flags, and numbers of two bits. */

#include "support/test.h"
#include "wire/bth.h"

TEST(bth_encode_confines_fields_to_their_width)
{
	struct bth h = {.pad = 0xff, .tver = 0xff, .dqpn = 0xff000000, .psn = 0xff000000};
	static const uint8_t expect[BTH_LEN] = {[1] = 0x3f};
	uint8_t out[BTH_LEN];

	bth_encode(out, &h);
	assert_memory_equal(out, expect, sizeof(expect));
}

TEST(bth_flags_are_single_bits)
{
	static const struct {
		struct bth h;
		size_t byte;
		uint8_t value;
	} row[] = {
		{{.se = true}, 1, 0x80},      {{.migreq = true}, 1, 0x40}, {{.pad = 1}, 1, 0x10},
		{{.fecn = true}, 4, 0x80},    {{.becn = true}, 4, 0x40},   {{.ackreq = true}, 8, 0x80},
		{{.retrans = true}, 8, 0x40}, {{.ts = true}, 8, 0x20},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint8_t expect[BTH_LEN] = {0}, out[BTH_LEN];

		expect[row[i].byte] = row[i].value;
		bth_encode(out, &row[i].h);
		assert_memory_equal(out, expect, sizeof(expect));
	}
}
