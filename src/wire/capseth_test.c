/* SPDX-License-Identifier: BSD-2-Clause */
/* The CAPSETH codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/capseth.h"

/* By hand from the figure in veRoCE 13.1. */
static const uint8_t golden[CAPSETH_LEN] = {0x56, 0x52, 0x58, 0x31, 0x01, 0x02, 0x80, 0x23, 0x06, 0x01, 0x10,
					    0x00, 0x10, 0x00, 0x08, 0x00, 0x01, 0x12, 0x34, 0x56, 0xde, 0xad,
					    0xbe, 0xef, 0x81, 0x40, 0x90, 0x14, 0x0b, 0xad, 0xca, 0xfe};
static const struct capseth golden_fields = {.magic = CAPS_MAGIC,
					     .version = CAPS_VERSION,
					     .profile = 2,
					     .flags = 0x8000 | CAPS_SACK_ANY | CAPS_TS | CAPS_MULTI_SACK,
					     .mtu_code = 6,
					     .rx_window_q = 0x011000,
					     .paths = 16,
					     .rx_window_r = 0x000800,
					     .state = CAPS_SEALS,
					     .source_qpn = 0x123456,
					     .nonce = 0xdeadbeef,
					     .own_nonce = 0x0badcafe,
					     .t_hint = 0x8140,
					     .ack_timer_us = 0x9014};

TEST(capseth_decodes_golden_bytes)
{
	struct capseth h;

	capseth_decode(&h, golden);
	assert_true(h.magic == golden_fields.magic);
	assert_true(h.version == golden_fields.version);
	assert_true(h.profile == golden_fields.profile);
	assert_true(h.flags == golden_fields.flags);
	assert_true(h.mtu_code == golden_fields.mtu_code);
	assert_true(h.rx_window_q == golden_fields.rx_window_q);
	assert_true(h.paths == golden_fields.paths);
	assert_true(h.rx_window_r == golden_fields.rx_window_r);
	assert_true(h.state == golden_fields.state);
	assert_true(h.own_nonce == golden_fields.own_nonce);
	assert_true(h.source_qpn == golden_fields.source_qpn);
	assert_true(h.nonce == golden_fields.nonce);
	assert_true(h.t_hint == golden_fields.t_hint);
	assert_true(h.ack_timer_us == golden_fields.ack_timer_us);
}

TEST(capseth_encodes_golden_bytes)
{
	uint8_t buf[CAPSETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	capseth_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes survive decode and encode. */
TEST(capseth_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[CAPSETH_LEN], out[CAPSETH_LEN];
		struct capseth h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		capseth_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		capseth_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}
