/* SPDX-License-Identifier: BSD-2-Clause */
/* RoCEv1's frame: golden ones, round trips, and what is none. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/icrc.h"
#include "wire/rocev1.h"

#define MAC_A      0x02, 0, 0, 0, 0, 0x01
#define MAC_B      0x02, 0, 0, 0, 0, 0x02
#define GID_A      0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x00, 0x00, 0xff, 0xfe, 0x00, 0x00, 0x01
#define GID_B      0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x00, 0x00, 0xff, 0xfe, 0x00, 0x00, 0x02
#define VLAN_GID_A 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x00, 0x00, 0x00, 0x64, 0x00, 0x00, 0x01
#define VLAN_GID_B 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x00, 0x00, 0x00, 0x64, 0x00, 0x00, 0x02

struct golden {
	const char *name;
	struct rocev1_link link;
	struct flow flow;
	size_t len; /* of the frame */
	uint8_t frame[144];
};

/* RoCEv1 frames that tshark 4.0 and Scapy 2.5 dissect as they are named; and one from hardware. */
static const struct golden golden[] = {
	{
		"RC WRITE Only",
		{.dst = {MAC_B}, .src = {MAC_A}},
		{.src = {GID_A}, .dst = {GID_B}, .tos = 0x68, .ttl = 64},
		14 + 40 + 48,
		{MAC_B, MAC_A, 0x89, 0x15, 0x66, 0x80, 0,    0,  0,  0x30, 0x1b, 0x40, GID_A, GID_B, 0x0a, 0x00,
		 0xff,  0xff,  0,    0,    0,    0x11, 0x80, 0,  0,  1,    0,    0,    0x56,  0,     0x12, 0x34,
		 0x50,  0,     1,    2,    3,    4,    0,    0,  0,  0x10, 0,    1,    2,     3,     4,    5,
		 6,     7,     8,    9,    10,   11,   12,   13, 14, 15,   0x03, 0x7f, 0x34,  0x38},
	},
	{
		"RC ACK",
		{.dst = {MAC_B}, .src = {MAC_A}},
		{.src = {GID_A}, .dst = {GID_B}, .ttl = 1},
		14 + 40 + 20,
		{MAC_B, MAC_A, 0x89, 0x15, 0x60, 0, 0, 0, 0, 0x14, 0x1b, 0x01, GID_A, GID_B, 0x11, 0x00, 0xff,
		 0xff,  0,     0,    0,    0x22, 0, 0, 0, 1, 0x1f, 0,    0,    1,     0x6c,  0x78, 0x84, 0xb9},
	},
	{
		"UD SEND Only on VLAN 100, priority 3",
		{.dst = {MAC_B}, .src = {MAC_A}, .tagged = true, .tci = 0x6064},
		{.src = {VLAN_GID_A}, .dst = {VLAN_GID_B}, .ttl = 1, .sl = 3},
		18 + 40 + 32,
		{MAC_B, MAC_A, 0x81, 0x00,       0x60,       0x64, 0x89, 0x15, 0x60, 0,    0,   0,    0,
		 0x20,  0x1b,  0x01, VLAN_GID_A, VLAN_GID_B, 0x64, 0,    0xff, 0xff, 0,    0,   0,    0x48,
		 0,     0,     0,    7,          0x11,       0x11, 0x11, 0x11, 0,    0,    0,   0x49, 0x76,
		 0x65,  0x72,  0x62, 0x65,       0x6e,       0x61, 0x21, 0x7c, 0xc7, 0x13, 0xae},
	},
	{
		/*
		 * An ARP packet of IPoIB that an HCA sent with a GRH (Wireshark's sample infiniband.pcap, frame 5),
		 * without LRH and VCRC. The ICRC counts the LRH as ones, so it is RoCEv1's.
		 */
		"UD SEND Only from hardware",
		{.dst = {MAC_B}, .src = {MAC_A}},
		{.src = {0xfe, 0x80, [8] = 0, 0x02, 0xc9, 0x02, 0x00, 0x24, 0xf6, 0x36},
		 .dst = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [12] = 0xff, 0xff, 0xff, 0xff}},
		14 + 40 + 84,
		{MAC_B, MAC_A, 0x89, 0x15, 0x60, 0,    0,    0,    0,    0x54, 0x1b, 0,    0xfe, 0x80, 0,    0,
		 0,     0,     0,    0,    0,    0x02, 0xc9, 0x02, 0,    0x24, 0xf6, 0x36, 0xff, 0x12, 0x40, 0x1b,
		 0xff,  0xff,  0,    0,    0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff, 0x64, 0x40, 0xff, 0xff,
		 0,     0xff,  0xff, 0xff, 0,    0,    0x20, 0xaf, 0,    0,    0x0b, 0x1b, 0,    0,    0x04, 0x05,
		 0x08,  0x06,  0,    0,    0,    0x20, 0x08, 0,    0x14, 0x04, 0,    1,    0x80, 0,    0x04, 0x05,
		 0xfe,  0x80,  0,    0,    0,    0,    0,    0,    0,    0x02, 0xc9, 0x02, 0,    0x24, 0xf6, 0x36,
		 0x0a,  0,     0x01, 0x22, 0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
		 0,     0,     0,    0,    0,    0,    0,    0,    0x0a, 0,    0,    0x3a, 0xbd, 0x6b, 0xd6, 0xa8},
	},
};
enum { GOLDEN = sizeof(golden) / sizeof(golden[0]), FRAME_MAX = 160 };

static size_t frame_of(const struct golden *g, uint8_t *out)
{
	memcpy(out, g->frame, sizeof(g->frame));
	return g->len;
}

static void same_flow(const struct flow *a, const struct flow *b)
{
	assert_memory_equal(a->src, b->src, 16);
	assert_memory_equal(a->dst, b->dst, 16);
	assert_int_equal(a->flow_label, b->flow_label);
	assert_int_equal(a->tos, b->tos);
	assert_int_equal(a->ttl, b->ttl);
	assert_int_equal(a->sl, b->sl);
	assert_false(flow_has_udp(a));
}

TEST(golden_frames_are_decoded_and_made)
{
	for (size_t i = 0; i < GOLDEN; i++) {
		const struct golden *g = &golden[i];
		uint8_t in[FRAME_MAX] = {0}, out[FRAME_MAX] = {0};
		struct rocev1_link link;
		struct flow f;
		uint32_t len = 0;
		size_t n = frame_of(g, in), at = rocev1_decode(&link, &f, &len, in, n);

		assert_int_equal(at + len, n);
		assert_memory_equal(link.dst, g->link.dst, ROCEV1_MAC_LEN);
		assert_memory_equal(link.src, g->link.src, ROCEV1_MAC_LEN);
		assert_int_equal(link.tagged, g->link.tagged);
		assert_int_equal(link.tci, g->link.tci);
		same_flow(&f, &g->flow);
		assert_int_equal(rocev1_encode(out, &link, &f, len), at);
		assert_memory_equal(out, in, at);
	}
}

TEST(golden_frames_have_the_icrc_that_we_make)
{
	static struct icrc_ctx ctx;

	for (size_t i = 0; i < GOLDEN; i++) {
		uint8_t frame[FRAME_MAX] = {0}, icrc[ICRC_LEN];
		struct rocev1_link link;
		struct flow f;
		struct pkt p = {.flow = &f, .ip_id = 77, .train = 1};
		uint16_t id = 0x5a5a;
		size_t at = rocev1_decode(&link, &f, &p.len, frame, frame_of(&golden[i], frame));

		p.data = frame + at;
		memcpy(icrc, p.data + p.len - ICRC_LEN, ICRC_LEN);
		assert_true(icrc_check(&ctx, &p, 0, &id));
		assert_int_equal(id, 0);
		icrc_seal(NULL, &p, 0);
		assert_memory_equal(p.data + p.len - ICRC_LEN, icrc, ICRC_LEN);
		/* The same bytes between the same addresses are no RoCEv2 packet. */
		f.sport = 50000;
		f.dport = 4791;
		assert_false(icrc_check(&ctx, &p, 0, &id));
	}
}

/* Random ones with a random bit of the covered bytes wrong. */
TEST(a_changed_bit_is_noticed)
{
	static struct icrc_ctx ctx;
	struct prng r;

	prng_init(&r, 7);
	for (int i = 0; i < 2000; i++) {
		const struct golden *g = &golden[prng_next(&r) % GOLDEN];
		uint8_t frame[FRAME_MAX] = {0};
		struct rocev1_link link;
		struct flow f;
		struct pkt p = {.flow = &f, .train = 1};
		uint16_t id;
		size_t at = rocev1_decode(&link, &f, &p.len, frame, frame_of(g, frame));
		uint32_t byte = (uint32_t)(prng_next(&r) % p.len);

		p.data = frame + at;
		p.data[byte] ^= (uint8_t)(1u << prng_next(&r) % 8);
		assert_int_equal(icrc_check(&ctx, &p, 0, &id), byte == 4); /* FECN and BECN alone */
	}
}

TEST(other_frames_are_refused)
{
	static const struct {
		size_t at;
		uint8_t value;
	} wrong[] = {{12, 0x08}, {13, 0x16}, {14, 0x46}, {20, 0x11}, {18, 0x01}, {19, 0x31}};
	uint8_t good[FRAME_MAX] = {0}, bad[FRAME_MAX];
	struct rocev1_link link;
	struct flow f;
	uint32_t len;
	size_t n = frame_of(&golden[0], good);

	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(rocev1_decode(&link, &f, &len, good, cut), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memcpy(bad, good, sizeof(bad));
		bad[wrong[i].at] = wrong[i].value;
		assert_int_equal(rocev1_decode(&link, &f, &len, bad, n), 0);
	}
	/* Padding of Ethernet is not the packet's. */
	assert_int_equal(rocev1_decode(&link, &f, &len, good, n + 20), 54);
	assert_int_equal(len, 48);
}

TEST(link_local_gids_and_groups_have_their_macs)
{
	static const uint8_t gid_a[16] = {GID_A}, mac_a[] = {MAC_A}, vlan_gid[16] = {VLAN_GID_A};
	static const uint8_t nic[16] = {0xfe, 0x80, [8] = 0x02, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0x55};
	static const uint8_t nic_mac[] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55};
	static const uint8_t global[16] = {0x20, 0x01, [11] = 0xff, 0xfe};
	static const uint8_t group6[16] = {0xff, 0x0e, [12] = 0x81, 0x02, 0x03, 0x04};
	static const uint8_t group4[16] = {[10] = 0xff, 0xff, 239, 0x82, 3, 4};
	static const uint8_t mac6[] = {0x33, 0x33, 0x81, 2, 3, 4}, mac4[] = {0x01, 0x00, 0x5e, 0x02, 3, 4};
	uint8_t mac[ROCEV1_MAC_LEN];

	assert_true(rocev1_mac_of_gid(mac, gid_a));
	assert_memory_equal(mac, mac_a, sizeof(mac));
	assert_true(rocev1_mac_of_gid(mac, nic));
	assert_memory_equal(mac, nic_mac, sizeof(mac));
	assert_false(rocev1_mac_of_gid(mac, global));
	assert_false(rocev1_mac_of_gid(mac, vlan_gid));
	rocev1_mac_of_group(mac, group6);
	assert_memory_equal(mac, mac6, sizeof(mac));
	rocev1_mac_of_group(mac, group4);
	assert_memory_equal(mac, mac4, sizeof(mac));
}
