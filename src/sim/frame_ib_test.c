/* SPDX-License-Identifier: BSD-2-Clause */
/* Records by golden bytes that tshark dissects as they should be. */

#include "sim/frame_ib.h"
#include "support/test.h"

/* An ACK from LID 2 to LID 1, on lane 1, of service level 1. */
TEST(an_ack_has_lrh_icrc_and_vcrc)
{
	static const uint8_t expected[] = {0x00, 0x00,    0x00, 0x80, 0x02, 0x00, 0x00, 0x00, 21,   4,
					   0,    16 + 30, 0,    0,    0,    30, /* 2.5 s */
					   0x10, 0x12,    0x00, 0x01, 0x00, 0x07, 0x00, 0x02, 0x11, 0x00,
					   0xff, 0xff,    0x00, 0x00, 0x00, 0x49, 0x00, 0x00, 0x00, 0x01,
					   0x1f, 0x00,    0x00, 0x01, 0x21, 0xd8, 0x39, 0xe8, 0xa9, 0x5a};
	uint8_t body[20], frame[FRAME_BYTES_MAX];
	struct packet p = {.src = 1,
			   .dst = 0,
			   .class = 1,
			   .flags = 1 << PACKET_SL_SHIFT,
			   .body = body,
			   .body_bytes = 20,
			   .transport_bytes = 20};
	uint32_t length;
	size_t bytes;

	memcpy(body, expected + 24, 16);
	bytes = frame_ib_encode(frame, &p, UINT64_C(2500000000000), &length);
	assert_int_equal(length, sizeof(expected));
	assert_int_equal(bytes, 16 + 8 + 16);
	assert_int_equal(frame[11], bytes);
	frame_ib_fill(frame, bytes, length);
	assert_memory_equal(frame, expected, sizeof(expected));
}

TEST(a_flow_control_packet_has_its_counters_and_lpcrc)
{
	static const uint8_t expected[16 + 48] = {0,  0, 0, 0, 0,  0,    0,    0,    25,   4,    0,
						  64, 0, 0, 0, 48, 0x00, 0x10, 0x10, 0x90, 0xfa, 0xbc};
	struct packet p = {.flags = PACKET_PAUSE | PACKET_CREDITS, .credits = {.vl = 1, .fctbs = 0x10, .fccl = 0x90}};
	uint8_t frame[FRAME_BYTES_MAX];
	uint32_t length;

	assert_int_equal(frame_ib_encode(frame, &p, 0, &length), sizeof(expected));
	assert_int_equal(length, sizeof(expected));
	assert_memory_equal(frame, expected, sizeof(expected));
}
