/* SPDX-License-Identifier: BSD-2-Clause */
/* The GRH codec and the GRH of a RoCEv2 datagram. */

#include "base/flow_golden.h"
#include "base/prng.h"
#include "support/test.h"
#include "wire/grh.h"

/* Scapy 2.5, contrib/roce. */
static const uint8_t golden[GRH_LEN] = {0x66, 0x81, 0x23, 0x45, 0x12, 0x34, 0x1b, 0x3f, 0x20, 0x01,
					0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
					0x00, 0x00, 0x00, 0x01, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00,
					0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xab, 0xcd};
static const struct grh golden_fields = {
	.tclass = 0x68,
	.nexthdr = GRH_NEXTHDR_IBA,
	.hop_limit = 63,
	.paylen = 0x1234,
	.flow_label = 0x12345,
	.sgid = {0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01},
	.dgid = {0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xab, 0xcd}};

TEST(grh_decodes_golden_bytes)
{
	struct grh h;

	grh_decode(&h, golden);
	assert_true(h.tclass == golden_fields.tclass);
	assert_true(h.nexthdr == golden_fields.nexthdr);
	assert_true(h.hop_limit == golden_fields.hop_limit);
	assert_true(h.paylen == golden_fields.paylen);
	assert_true(h.flow_label == golden_fields.flow_label);
	assert_memory_equal(h.sgid, golden_fields.sgid, 16);
	assert_memory_equal(h.dgid, golden_fields.dgid, 16);
}

TEST(grh_encodes_golden_bytes)
{
	uint8_t buf[GRH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	grh_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* Any bytes, the version aside, survive decode and encode. */
TEST(grh_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[GRH_LEN], out[GRH_LEN];
		struct grh h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		in[0] = (uint8_t)(GRH_IPVER << 4 | (in[0] & 0xf));
		grh_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		grh_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}

TEST(grh_from_an_ipv6_flow_is_the_ipv6_header)
{
	struct flow f = {.flow_label = 0x12345, .sport = 50000, .dport = 4791, .tos = 0x68, .ttl = 63};
	uint8_t out[GRH_LEN];
	struct grh h;

	memcpy(f.src, golden_fields.sgid, 16);
	memcpy(f.dst, golden_fields.dgid, 16);
	grh_from_flow(out, &f, 1040);
	grh_decode(&h, out);
	assert_int_equal(out[0] >> 4, GRH_IPVER);
	assert_int_equal(h.tclass, 0x68);
	assert_int_equal(h.flow_label, 0x12345);
	assert_int_equal(h.paylen, 1048);
	assert_int_equal(h.nexthdr, 17);
	assert_int_equal(h.hop_limit, 63);
	assert_memory_equal(h.sgid, golden_fields.sgid, 16);
	assert_memory_equal(h.dgid, golden_fields.dgid, 16);
}

TEST(grh_from_an_ipv4_flow_is_zeros_and_the_ipv4_header)
{
	/* Scapy 2.5: IP(src='10.1.2.3', dst='192.168.7.9', id=0, flags='DF', ttl=63, tos=0x68). */
	static const uint8_t expect[GRH_LEN] = {[20] = 0x45, 0x68, 0x00, 0x29, 0x00, 0x00, 0x40, 0x00, 0x3f, 0x11,
						0x67,        0xa7, 0x0a, 0x01, 0x02, 0x03, 0xc0, 0xa8, 0x07, 0x09};
	uint8_t out[GRH_LEN];

	memset(out, 0xa5, sizeof(out));
	grh_from_flow(out, &flow4, 13);
	assert_memory_equal(out, expect, sizeof(expect));
}

TEST(grh_from_a_flow_without_udp_is_rocev1s_own)
{
	struct flow f = {.flow_label = 0x12345, .tos = 0x68, .ttl = 63};
	uint8_t out[GRH_LEN];

	memcpy(f.src, golden_fields.sgid, 16);
	memcpy(f.dst, golden_fields.dgid, 16);
	grh_from_flow(out, &f, 0x1234);
	assert_memory_equal(out, golden, sizeof(golden));
}
