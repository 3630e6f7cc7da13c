/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/frame.h"

#include "sim/host.h"
#include "support/test.h"
#include "wire/icrc.h"

enum { IP = 14, UDP = IP + 20, BODY = UDP + 8 };

static uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

/* RFC 791: the sum of a header with its checksum is all ones. */
static uint32_t checksum(const uint8_t *header)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += get16(header + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

TEST(a_data_packet_is_cut_before_its_payload)
{
	uint8_t body[16 + 4], frame[FRAME_BYTES_MAX];
	struct packet p = {.body = body,
			   .body_bytes = sizeof(body),
			   .transport_bytes = 1020,
			   .src = 258,
			   .dst = 3,
			   .sport = 50000,
			   .dport = 4791,
			   .flags = PACKET_ECT | PACKET_CE};
	uint32_t length;

	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (uint8_t)(i + 1);
	assert_int_equal(frame_encode(frame, &p, &length), BODY + 16);
	assert_int_equal(length, BODY + 1020);
	assert_memory_equal(frame, "\x02\0\0\0\0\x03\x02\0\0\0\x01\x02\x08\0", IP);
	assert_int_equal(checksum(frame + IP), 0xffff);
	assert_int_equal(frame[IP + 1], 3);
	assert_int_equal(get16(frame + IP + 2), 28 + 1020);
	assert_memory_equal(frame + IP + 12, "\x0a\0\x01\x02\x0a\0\0\x03", 8);
	assert_int_equal(get16(frame + UDP), 50000);
	assert_int_equal(get16(frame + UDP + 2), 4791);
	assert_int_equal(get16(frame + UDP + 4), 8 + 1020);
	assert_memory_equal(frame + BODY, body, 16);
}

/* The ICRC is read back by the nic's own check, which finds the identification 0 too. */
TEST(a_filled_frame_has_an_icrc)
{
	uint8_t body[16 + 4] = {0x0a, 0x40}, frame[2048];
	struct packet p = {.body = body,
			   .body_bytes = sizeof(body),
			   .transport_bytes = 1020,
			   .src = 258,
			   .dst = 3,
			   .sport = 50000,
			   .dport = 4791};
	struct flow flow = {.sport = 50000, .dport = 4791};
	static struct icrc_ctx ctx;
	struct pkt pkt = {.flow = &flow, .len = 1020};
	uint32_t length;
	uint16_t id = 1;
	size_t bytes = frame_encode(frame, &p, &length);

	memset(frame + bytes, 0xee, sizeof(frame) - bytes);
	frame_fill(frame, bytes, length);
	host_address(p.src, flow.src);
	host_address(p.dst, flow.dst);
	pkt.data = frame + BODY;
	assert_true(icrc_check(&ctx, &pkt, 0, &id));
	assert_int_equal(id, 0);
	assert_int_equal(frame[bytes], 0);
	assert_int_equal(frame[length], 0xee);
}

TEST(a_trimmed_packet_is_as_long_as_what_is_left)
{
	uint8_t body[40] = {0}, frame[FRAME_BYTES_MAX];
	struct packet p = {.body = body,
			   .body_bytes = sizeof(body),
			   .transport_bytes = 4136,
			   .flags = PACKET_TRIMMABLE | PACKET_TRIMMED};
	uint32_t length;

	assert_int_equal(frame_encode(frame, &p, &length), BODY + 36);
	assert_int_equal(length, BODY + 40);
	assert_int_equal(frame[IP + 1], 9 << 2);
	p.flags = PACKET_TRIMMED | PACKET_CE; /* as a switch leaves it: it cannot be cut again */
	frame_encode(frame, &p, &length);
	assert_int_equal(frame[IP + 1], 9 << 2 | 3);
}

TEST(no_packet_overflows_a_frame)
{
	static uint8_t body[UINT16_MAX];
	uint8_t frame[FRAME_BYTES_MAX];
	struct packet p = {.body = body, .body_bytes = UINT16_MAX, .transport_bytes = UINT32_MAX};
	uint32_t length;

	assert_int_equal(frame_encode(frame, &p, &length), FRAME_BYTES_MAX);
	p.body_bytes = 0;
	p.body = NULL;
	assert_int_equal(frame_encode(frame, &p, &length), BODY);
	p.transport_bytes = 0;
	assert_int_equal(frame_encode(frame, &p, &length), BODY);
	assert_int_equal(length, BODY);
}

TEST(a_pause_names_its_classes_and_how_long)
{
	uint8_t frame[FRAME_BYTES_MAX];
	struct packet p = {.flags = PACKET_PAUSE,
			   .pfc = {.classes = 1 << 3 | 1 << 4, .pause = 1 << 3, .quanta = 0x1234}};
	uint32_t length;

	assert_int_equal(frame_encode(frame, &p, &length), 60);
	assert_int_equal(length, 60);
	assert_memory_equal(frame, "\x01\x80\xc2\0\0\x01", 6);
	assert_memory_equal(frame + 12, "\x88\x08\x01\x01\0\x18\0\0\0\0\0\0\x12\x34\0\0", 16);
}
