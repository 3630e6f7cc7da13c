/* SPDX-License-Identifier: BSD-2-Clause */
/* IP and UDP headers as Scapy writes them, and their checksums at the edges. */

#include "base/byteorder.h"
#include "base/flow_golden.h"
#include "base/ipudp.h"
#include "support/test.h"

enum { GOLDEN_PAYLOAD_LEN = 13, V4_UDP = IPUDP_IPV4_LEN, V6_UDP = IPUDP_IPV6_LEN };

/* Scapy 2.5, UDP checksum included; the payload is 13 bytes 3, 10, 17 .. */
static const uint8_t golden4[IPUDP_V4_LEN] = {0x45, 0x68, 0x00, 0x29, 0xbe, 0xef, 0x40, 0x00, 0x3f, 0x11,
					      0xa8, 0xb7, 0x0a, 0x01, 0x02, 0x03, 0xc0, 0xa8, 0x07, 0x09,
					      0xc3, 0x50, 0x12, 0xb7, 0x00, 0x15, 0x19, 0xf8};
static const uint8_t golden6[IPUDP_V6_LEN] = {0x66, 0x81, 0x23, 0x45, 0x00, 0x15, 0x11, 0x3f, 0x20, 0x01, 0x0d, 0xb8,
					      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
					      0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
					      0x00, 0x00, 0xab, 0xcd, 0xc3, 0x50, 0x12, 0xb7, 0x00, 0x15, 0x15, 0xa5};

static void fill(uint8_t *payload, size_t n)
{
	for (size_t i = 0; i < n; i++)
		payload[i] = (uint8_t)(i * 7 + 3);
}

TEST(ipudp_encodes_golden_headers_with_checksum_none)
{
	uint8_t buf[IPUDP_LEN_MAX], expect[IPUDP_LEN_MAX];

	memset(buf, 0xa5, sizeof(buf));
	assert_int_equal(ipudp_encode(buf, &flow4, 0xbeef, GOLDEN_PAYLOAD_LEN), IPUDP_V4_LEN);
	memcpy(expect, golden4, IPUDP_V4_LEN);
	put_be16(expect + V4_UDP + 6, 0);
	assert_memory_equal(buf, expect, IPUDP_V4_LEN);
	assert_int_equal(buf[IPUDP_V4_LEN], 0xa5);

	memset(buf, 0xa5, sizeof(buf));
	assert_int_equal(ipudp_encode(buf, &flow6, 0xbeef, GOLDEN_PAYLOAD_LEN), IPUDP_V6_LEN);
	memcpy(expect, golden6, IPUDP_V6_LEN);
	put_be16(expect + V6_UDP + 6, 0);
	assert_memory_equal(buf, expect, IPUDP_V6_LEN);
}

TEST(ipudp_checksum_completes_golden_headers)
{
	uint8_t buf[IPUDP_LEN_MAX], payload[GOLDEN_PAYLOAD_LEN];

	fill(payload, sizeof(payload));
	ipudp_encode(buf, &flow4, 0xbeef, sizeof(payload));
	ipudp_checksum(buf, payload, sizeof(payload));
	assert_memory_equal(buf, golden4, IPUDP_V4_LEN);
	ipudp_encode(buf, &flow6, 0, sizeof(payload));
	ipudp_checksum(buf, payload, sizeof(payload));
	assert_memory_equal(buf, golden6, IPUDP_V6_LEN);
	ipudp_checksum(buf, payload, sizeof(payload));
	assert_memory_equal(buf, golden6, IPUDP_V6_LEN); /* overwrites any earlier bytes */
}

/* The sum over everything, checksum included, is all ones; as a byte-wise model computes it. */
static uint16_t model_sum(const uint8_t *hdr, const uint8_t *payload, uint32_t payload_len)
{
	bool ipv4 = hdr[0] >> 4 == 4;
	const uint8_t *udp = hdr + (ipv4 ? V4_UDP : V6_UDP);
	const uint8_t *addr = ipv4 ? hdr + 12 : hdr + 8;
	uint32_t sum = 17 + 8 + payload_len;

	for (int i = 0; i < (ipv4 ? 8 : 32); i++)
		sum += (uint32_t)addr[i] << (i % 2 ? 0 : 8);
	for (int i = 0; i < 8; i++)
		sum += (uint32_t)udp[i] << (i % 2 ? 0 : 8);
	for (uint32_t i = 0; i < payload_len; i++)
		sum += (uint32_t)payload[i] << (i % 2 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

TEST(ipudp_checksum_verifies_at_every_length)
{
	static const struct flow *const flows[] = {&flow4, &flow6};
	uint8_t hdr[IPUDP_LEN_MAX], payload[1500];

	fill(payload, sizeof(payload));
	for (size_t f = 0; f < 2; f++) {
		for (uint32_t n = 0; n <= sizeof(payload); n++) {
			ipudp_encode(hdr, flows[f], 0, n);
			ipudp_checksum(hdr, payload, n);
			assert_int_equal(model_sum(hdr, payload, n), 0xffff);
		}
	}
}

/* RFC 768: a checksum that computes to 0 is sent as all ones, since 0 says "none". */
TEST(ipudp_checksum_is_never_zero)
{
	static const struct flow *const flows[] = {&flow4, &flow6};
	uint8_t hdr[IPUDP_LEN_MAX], payload[2] = {0, 0};

	for (size_t f = 0; f < 2; f++) {
		size_t n = ipudp_encode(hdr, flows[f], 0, sizeof(payload));

		ipudp_checksum(hdr, payload, sizeof(payload));
		/* Adding the checksum itself to the sum makes the sum all ones. */
		memcpy(payload, hdr + n - 2, 2);
		ipudp_checksum(hdr, payload, sizeof(payload));
		assert_int_equal(get_be16(hdr + n - 2), 0xffff);
		memset(payload, 0, sizeof(payload));
	}
}

TEST(ipv4_header_checksum_is_valid_for_every_identification)
{
	for (uint32_t id = 0; id < 0x10000; id++) {
		uint8_t hdr[IPUDP_LEN_MAX];
		uint32_t sum = 0;

		ipudp_encode(hdr, &flow4, (uint16_t)id, 1024);
		for (int i = 0; i < IPUDP_IPV4_LEN; i += 2)
			sum += get_be16(hdr + i);
		sum = (sum & 0xffff) + (sum >> 16);
		assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
		assert_int_equal(get_be16(hdr + 4), id);
	}
}

TEST(ipudp_lengths_reach_the_largest_datagram)
{
	uint8_t hdr[IPUDP_LEN_MAX];

	ipudp_encode(hdr, &flow4, 0, IPUDP_PAYLOAD_MAX);
	assert_int_equal(get_be16(hdr + 2), 65535);
	assert_int_equal(get_be16(hdr + V4_UDP + 4), 65515);
	ipudp_encode(hdr, &flow6, 0, IPUDP_PAYLOAD_MAX);
	assert_int_equal(get_be16(hdr + 4), 65515);
	assert_int_equal(get_be16(hdr + V6_UDP + 4), 65515);
}

TEST(ipv6_flow_label_is_confined_to_20_bits)
{
	struct flow f = flow6;
	uint8_t hdr[IPUDP_LEN_MAX];

	f.flow_label = 0xfff12345;
	ipudp_encode(hdr, &f, 0, GOLDEN_PAYLOAD_LEN);
	assert_memory_equal(hdr, golden6, 4);
}

TEST(flow_is_ipv4_where_the_destination_is_mapped)
{
	struct flow f = flow4;

	assert_true(flow_is_ipv4(&flow4));
	assert_false(flow_is_ipv4(&flow6));
	f.dst[0] = 1;
	assert_false(flow_is_ipv4(&f));
	memset(&f, 0, sizeof(f)); /* :: */
	assert_false(flow_is_ipv4(&f));
}
