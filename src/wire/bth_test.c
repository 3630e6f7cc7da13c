/* SPDX-License-Identifier: BSD-2-Clause */
/* The BTH codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/bth.h"

/* Scapy 2.5, contrib/roce. */
static const uint8_t golden[BTH_LEN] = {0x0a, 0xe3, 0x80, 0x01, 0x80, 0x12, 0x34, 0x56, 0x80, 0xab, 0xcd, 0xef};
static const struct bth golden_fields = {.opcode = 0x0a,
					 .se = true,
					 .migreq = true,
					 .pad = 2,
					 .tver = 3,
					 .pkey = 0x8001,
					 .fecn = true,
					 .becn = false,
					 .ackreq = true,
					 .dqpn = 0x123456,
					 .psn = 0xabcdef};

TEST(bth_decodes_golden_bytes)
{
	struct bth h;

	bth_decode(&h, golden);
	assert_true(h.opcode == golden_fields.opcode);
	assert_true(h.se == golden_fields.se);
	assert_true(h.migreq == golden_fields.migreq);
	assert_true(h.pad == golden_fields.pad);
	assert_true(h.tver == golden_fields.tver);
	assert_true(h.pkey == golden_fields.pkey);
	assert_true(h.fecn == golden_fields.fecn);
	assert_true(h.becn == golden_fields.becn);
	assert_true(h.ackreq == golden_fields.ackreq);
	assert_false(h.retrans);
	assert_false(h.ts);
	assert_true(h.dqpn == golden_fields.dqpn);
	assert_true(h.psn == golden_fields.psn);
}

TEST(bth_encodes_golden_bytes)
{
	uint8_t buf[BTH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	bth_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes, reserved bits cleared, survive decode and encode. */
TEST(bth_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[BTH_LEN], out[BTH_LEN];
		struct bth h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		in[4] &= 0xc0;
		in[8] &= 0xe0;
		bth_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		bth_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}

TEST(bth_ignores_reserved_bits_on_decode)
{
	uint8_t in[BTH_LEN], out[BTH_LEN];
	struct bth h;

	memcpy(in, golden, sizeof(in));
	in[4] |= 0x3f;
	in[8] |= 0x1f;
	bth_decode(&h, in);
	bth_encode(out, &h);
	assert_memory_equal(out, golden, sizeof(golden));
}

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
