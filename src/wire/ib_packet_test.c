/* SPDX-License-Identifier: BSD-2-Clause */
/* InfiniBand's packets: golden ones, round trips, and why a link drops one. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "base/prng.h"
#include "wire/flow_control.h"
#include "wire/ib_packet.h"
#include "wire/icrc.h"
#include "wire/vcrc.h"

enum { PACKET_MAX = 160 };

/*
 * The first three were sent by HCAs of 2008 (frames 11, 10 and 5 of Wireshark's sample infiniband.pcap), the others are
 * dissected by tshark 4.0 as they are named.
 */
static const struct golden {
	const char *name;
	struct lrh lrh;
	size_t len;
	uint8_t bytes[PACKET_MAX];
} golden[] = {
	/* clang-format off */
	{"RC ACK from hardware",
	 {.vl = 0, .sl = 0, .lnh = LNH_LOCAL, .dlid = 0x4, .pktlen = 7, .slid = 1},
	 30,
	 {0x00, 0x02, 0x00, 0x04, 0x00, 0x07, 0x00, 0x01, 0x11, 0x40, 0xff, 0xff, 0x00, 0x87, 0x04, 0x08,
		 0x00, 0xd4, 0x0a, 0x55, 0x1f, 0x00, 0x00, 0x01, 0xa8, 0x03, 0x55, 0x50, 0x30, 0x81}},
	{"RC SEND Only from hardware",
	 {.vl = 0, .sl = 0, .lnh = LNH_LOCAL, .dlid = 0x1, .pktlen = 28, .slid = 4},
	 114,
	 {0x00, 0x02, 0x00, 0x01, 0x00, 0x1c, 0x00, 0x04, 0x04, 0x40, 0xff, 0xff, 0x00, 0xfc, 0x04, 0x07,
		 0x80, 0xd4, 0x0a, 0x55, 0x08, 0x00, 0x00, 0x00, 0x45, 0x00, 0x00, 0x54, 0x00, 0x00, 0x40, 0x00,
		 0x40, 0x01, 0x25, 0x4e, 0x0a, 0x00, 0x01, 0x22, 0x0a, 0x00, 0x00, 0x3a, 0x08, 0x00, 0x85, 0x76,
		 0x17, 0x02, 0x00, 0x01, 0xf7, 0x41, 0x2b, 0x48, 0x00, 0x00, 0x00, 0x00, 0x72, 0x29, 0x08, 0x00,
		 0x00, 0x00, 0x00, 0x00, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b,
		 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b,
		 0x2c, 0x2d, 0x2e, 0x2f, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x0a, 0xcc, 0xa5, 0xdf,
		 0x24, 0xa8}},
	{"UD SEND Only with a GRH from hardware",
	 {.vl = 0, .sl = 0, .lnh = LNH_GLOBAL, .dlid = 0xc000, .pktlen = 33, .slid = 4},
	 134,
	 {0x00, 0x03, 0xc0, 0x00, 0x00, 0x21, 0x00, 0x04, 0x60, 0x00, 0x00, 0x00, 0x00, 0x54, 0x1b, 0x00,
		 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xc9, 0x02, 0x00, 0x24, 0xf6, 0x36,
		 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff,
		 0x64, 0x40, 0xff, 0xff, 0x00, 0xff, 0xff, 0xff, 0x00, 0x00, 0x20, 0xaf, 0x00, 0x00, 0x0b, 0x1b,
		 0x00, 0x00, 0x04, 0x05, 0x08, 0x06, 0x00, 0x00, 0x00, 0x20, 0x08, 0x00, 0x14, 0x04, 0x00, 0x01,
		 0x80, 0x00, 0x04, 0x05, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xc9, 0x02,
		 0x00, 0x24, 0xf6, 0x36, 0x0a, 0x00, 0x01, 0x22, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x3a,
		 0xbd, 0x6b, 0xd6, 0xa8, 0x88, 0x83}},
	{"RC SEND Only on VL 1",
	 {.vl = 1, .sl = 1, .lnh = LNH_LOCAL, .dlid = 0x2, .pktlen = 8, .slid = 1},
	 34,
	 {0x10, 0x12, 0x00, 0x02, 0x00, 0x08, 0x00, 0x01, 0x04, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x48,
		 0x80, 0x00, 0x00, 0x01, 0x76, 0x65, 0x72, 0x62, 0x65, 0x6e, 0x61, 0x21, 0x7e, 0x64, 0x87, 0xa4,
		 0x99, 0xdc}},
	{"RC ACK on VL 1",
	 {.vl = 1, .sl = 1, .lnh = LNH_LOCAL, .dlid = 0x1, .pktlen = 7, .slid = 2},
	 30,
	 {0x10, 0x12, 0x00, 0x01, 0x00, 0x07, 0x00, 0x02, 0x11, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x49,
		 0x00, 0x00, 0x00, 0x01, 0x1f, 0x00, 0x00, 0x01, 0x21, 0xd8, 0x39, 0xe8, 0xa9, 0x5a}},
	{"UD SEND Only with a GRH",
	 {.vl = 0, .sl = 0, .lnh = LNH_GLOBAL, .dlid = 0x2, .pktlen = 20, .slid = 1},
	 82,
	 {0x00, 0x03, 0x00, 0x02, 0x00, 0x14, 0x00, 0x01, 0x60, 0x00, 0x00, 0x00, 0x00, 0x20, 0x1b, 0x00,
		 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x00, 0x01,
		 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x00, 0x02,
		 0x64, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x48, 0x00, 0x00, 0x00, 0x07, 0x11, 0x11, 0x11, 0x11,
		 0x00, 0x00, 0x00, 0x49, 0x76, 0x65, 0x72, 0x62, 0x65, 0x6e, 0x61, 0x21, 0x7a, 0x6a, 0xfc, 0x1c,
		 0xad, 0x95}},
	/* clang-format on */
};

enum { GOLDEN = sizeof(golden) / sizeof(golden[0]) };

static void vcrc_has_its_check_value(void **state)
{
	uint8_t text[] = "123456789..";

	vcrc_seal(text, 9);
	assert_int_equal(text[9] | text[10] << 8, 0x0a3d);
	assert_true(vcrc_check(text, 11));
	assert_false(vcrc_check(text, 1));
}

static void golden_packets_are_good(void **state)
{
	for (size_t i = 0; i < GOLDEN; i++) {
		const struct golden *g = &golden[i];
		struct ib_packet p;
		uint8_t lrh[LRH_LEN];
		bool global = g->lrh.lnh == LNH_GLOBAL;

		assert_int_equal(ib_packet_judge(&p, g->bytes, g->len), IB_GOOD);
		assert_int_equal(p.lrh.vl, g->lrh.vl);
		assert_int_equal(p.lrh.sl, g->lrh.sl);
		assert_int_equal(p.lrh.lnh, g->lrh.lnh);
		assert_int_equal(p.lrh.dlid, g->lrh.dlid);
		assert_int_equal(p.lrh.pktlen, g->lrh.pktlen);
		assert_int_equal(p.lrh.slid, g->lrh.slid);
		assert_int_equal(p.at, LRH_LEN + (global ? GRH_LEN : 0));
		assert_int_equal(p.at + p.len + VCRC_LEN, g->len);
		lrh_encode(lrh, &p.lrh);
		assert_memory_equal(lrh, g->bytes, LRH_LEN);
	}
}

static void golden_packets_have_the_crcs_that_we_make(void **state)
{
	for (size_t i = 0; i < GOLDEN; i++) {
		const struct golden *g = &golden[i];
		size_t end = g->len - VCRC_LEN - ICRC_LEN;
		uint32_t icrc = ib_icrc(g->bytes, end);
		uint8_t copy[PACKET_MAX];

		for (size_t k = 0; k < ICRC_LEN; k++)
			assert_int_equal(g->bytes[end + k], icrc >> 8 * k & 0xff);
		memcpy(copy, g->bytes, sizeof(copy));
		vcrc_seal(copy, g->len - VCRC_LEN);
		assert_memory_equal(copy, g->bytes, g->len);
	}
}

/* A switch that moves a packet to another lane makes a new VCRC; the ICRC stays (IBTA 7.8.1). */
static void another_lane_changes_the_vcrc_alone(void **state)
{
	const struct golden *g = &golden[0];
	uint8_t copy[PACKET_MAX];
	struct ib_packet p;

	memcpy(copy, g->bytes, sizeof(copy));
	copy[0] |= 0x30;
	assert_int_equal(ib_packet_judge(&p, copy, g->len), IB_BAD_VCRC);
	vcrc_seal(copy, g->len - VCRC_LEN);
	assert_int_equal(ib_packet_judge(&p, copy, g->len), IB_GOOD);
	assert_int_equal(p.lrh.vl, 3);
	assert_int_equal(ib_icrc(copy, g->len - VCRC_LEN - ICRC_LEN), ib_icrc(g->bytes, g->len - VCRC_LEN - ICRC_LEN));
	/* The DLID does count. */
	copy[3] ^= 1;
	assert_int_not_equal(ib_icrc(copy, g->len - VCRC_LEN - ICRC_LEN),
			     ib_icrc(g->bytes, g->len - VCRC_LEN - ICRC_LEN));
}

static void each_fault_has_its_verdict(void **state)
{
	static const struct {
		size_t of, at;
		uint8_t value;
		enum ib_verdict verdict;
	} rows[] = {
		{0, 0, 0x01, IB_BAD_VERSION}, {0, 5, 0x08, IB_BAD_LENGTH}, {0, 4, 0x04, IB_BAD_LENGTH},
		{0, 3, 0x00, IB_BAD_LID},     {0, 7, 0x00, IB_BAD_LID},    {0, 6, 0xc0, IB_BAD_LID},
		{0, 1, 0x00, IB_RAW},         {0, 1, 0x01, IB_RAW},        {0, 1, 0x03, IB_BAD_LENGTH},
		{2, 8, 0x40, IB_BAD_GRH},     {2, 14, 0x11, IB_BAD_GRH},   {2, 13, 0x53, IB_BAD_LENGTH},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct golden *g = &golden[rows[i].of];
		uint8_t copy[PACKET_MAX];
		struct ib_packet p;

		memcpy(copy, g->bytes, sizeof(copy));
		copy[rows[i].at] = rows[i].value;
		vcrc_seal(copy, g->len - VCRC_LEN);
		assert_int_equal(ib_packet_judge(&p, copy, g->len), rows[i].verdict);
	}
	for (size_t n = 0; n < golden[0].len; n++) {
		struct ib_packet p;

		assert_int_not_equal(ib_packet_judge(&p, golden[0].bytes, n), IB_GOOD);
	}
}

/* Reserved bits aside any eight bytes come back. */
static void lrh_round_trips(void **state)
{
	struct prng r;

	prng_init(&r, 5);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[LRH_LEN], out[LRH_LEN];
		struct lrh h;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&r);
		in[1] &= 0xf3;
		in[4] &= 0x07;
		lrh_decode(&h, in);
		lrh_encode(out, &h);
		assert_memory_equal(out, in, sizeof(in));
	}
}

static void golden_flow_control_packets_round_trip(void **state)
{
	static const uint8_t normal[] = {0x00, 0x10, 0x10, 0x90, 0xfa, 0xbc},
			     init[] = {0x10, 0x00, 0x00, 0x80, 0x50, 0xd5};
	uint8_t out[FLOW_CONTROL_LEN];
	struct flow_control h;

	assert_true(flow_control_decode(&h, normal));
	assert_true(h.op == FLOW_CONTROL_NORMAL && h.fctbs == 0x010 && h.vl == 1 && h.fccl == 0x090);
	flow_control_encode(out, &h);
	assert_memory_equal(out, normal, sizeof(out));
	assert_true(flow_control_decode(&h, init));
	assert_true(h.op == FLOW_CONTROL_INIT && h.fctbs == 0 && h.vl == 0 && h.fccl == 0x080);
	flow_control_encode(out, &h);
	assert_memory_equal(out, init, sizeof(out));
	out[1] ^= 0x10;
	assert_false(flow_control_decode(&h, out));
}

/* IBTA 7.9.4.4, at the ends of the range and where the counters wrap. */
static void credits_allow_what_the_peer_has_room_for(void **state)
{
	assert_true(credit_allows(10, 8, 2));
	assert_false(credit_allows(10, 8, 3));
	assert_true(credit_allows(2, 4094, 4));
	assert_false(credit_allows(2, 4094, 5));
	assert_true(credit_allows(2048, 0, 1));
	assert_false(credit_allows(0, 0, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vcrc_has_its_check_value),
		cmocka_unit_test(golden_packets_are_good),
		cmocka_unit_test(golden_packets_have_the_crcs_that_we_make),
		cmocka_unit_test(another_lane_changes_the_vcrc_alone),
		cmocka_unit_test(each_fault_has_its_verdict),
		cmocka_unit_test(lrh_round_trips),
		cmocka_unit_test(golden_flow_control_packets_round_trip),
		cmocka_unit_test(credits_allow_what_the_peer_has_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
