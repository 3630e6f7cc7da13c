/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The codecs of headers of fixed length, a row each. All keep the same: golden bytes and their fields become each
 * other, any bytes survive decode and encode, and what is reserved is ignored on receipt and sent as 0.
 */

#include "base/prng.h"
#include "support/test.h"
#include "wire/aeth.h"
#include "wire/atomicacketh.h"
#include "wire/atomiceth.h"
#include "wire/bth.h"
#include "wire/capseth.h"
#include "wire/deth.h"
#include "wire/feth.h"
#include "wire/holdeth.h"
#include "wire/ieth.h"
#include "wire/immdt.h"
#include "wire/msneth.h"
#include "wire/poeth.h"
#include "wire/reth.h"
#include "wire/roameth.h"
#include "wire/rqeth.h"
#include "wire/rtteth.h"
#include "wire/tseeth.h"
#include "wire/tseth.h"
#include "wire/xrceth.h"

enum { LEN_MAX = CAPSETH_LEN, STRUCT_MAX = 64 };

#define CODEC(x)                                       \
	static void x##_in(void *h, const uint8_t *p)  \
	{                                              \
		x##_decode(h, p);                      \
	}                                              \
	static void x##_out(uint8_t *p, const void *h) \
	{                                              \
		x##_encode(p, h);                      \
	}

CODEC(aeth)
CODEC(atomicacketh)
CODEC(atomiceth)
CODEC(bth)
CODEC(capseth)
CODEC(deth)
CODEC(feth)
CODEC(holdeth)
CODEC(ieth)
CODEC(immdt)
CODEC(msneth)
CODEC(poeth)
CODEC(reth)
CODEC(roameth)
CODEC(rqeth)
CODEC(rtteth)
CODEC(tseeth)
CODEC(tseth)
CODEC(xrceth)

/* With the word that RXSHARE adds, which the caller asks for. */
static void tseeth_share_in(void *h, const uint8_t *p)
{
	((struct tseeth *)h)->has_share = true;
	tseeth_decode(h, p);
}

struct row {
	const char *name;
	size_t len, bytes; /* of the header, of its struct */
	void (*decode)(void *h, const uint8_t *p);
	void (*encode)(uint8_t *p, const void *h);
	const void *fields; /* of the golden bytes */
	uint8_t golden[LEN_MAX];
	uint8_t reserved[LEN_MAX]; /* a 1 for each bit that is */
};

#define GOLDEN(...)         \
	{                   \
		__VA_ARGS__ \
	}
#define ROW(x, X, golden, ...)                                                                           \
	{                                                                                                \
#x, X##_LEN, sizeof(struct x), x##_in, x##_out, &(const struct x){__VA_ARGS__ }, golden, \
		{                                                                                        \
			0                                                                                \
		}                                                                                        \
	}
#define ROW_RESERVED(x, X, golden, reserved, ...)                                                                 \
	{                                                                                                         \
#x, X##_LEN, sizeof(struct x), x##_in, x##_out, &(const struct x){__VA_ARGS__ }, golden, reserved \
	}

/* By hand from the figures in IBTA 9.3, 9.5, A14.3.3 and veRoCE 2, 13.1, 13.2; AETH and BTH by Scapy 2.5, contrib/roce.
 */
/* clang-format off */
static const struct row rows[] = {
	ROW(aeth, AETH, GOLDEN(0x6c, 0x01, 0x02, 0x03), .syndrome = 0x6c, .msn = 0x010203),
	ROW(atomicacketh, ATOMICACKETH, GOLDEN(0xf1, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08), .orig = 0xf102030405060708),
	ROW(atomiceth, ATOMICETH,
	    GOLDEN(0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0xa1, 0xb2, 0xc3, 0xd4, 0x11, 0x12,
		   0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8),
	    .va = 0x0102030405060708, .rkey = 0xa1b2c3d4, .swap_add = 0x1112131415161718, .compare = 0xf1f2f3f4f5f6f7f8),
	ROW_RESERVED(bth, BTH, GOLDEN(0x0a, 0xe3, 0x80, 0x01, 0x80, 0x12, 0x34, 0x56, 0x80, 0xab, 0xcd, 0xef),
		     GOLDEN([4] = 0x3f, [8] = 0x1f),
		     .opcode = 0x0a, .se = true, .migreq = true, .pad = 2, .tver = 3, .pkey = 0x8001, .fecn = true,
		     .ackreq = true, .dqpn = 0x123456, .psn = 0xabcdef),
	ROW(capseth, CAPSETH,
	    GOLDEN(0x56, 0x52, 0x58, 0x31, 0x01, 0x02, 0x80, 0x23, 0x06, 0x01, 0x10, 0x00, 0x10, 0x00, 0x08, 0x00,
		   0x01, 0x12, 0x34, 0x56, 0xde, 0xad, 0xbe, 0xef, 0x81, 0x40, 0x90, 0x14, 0x0b, 0xad, 0xca, 0xfe),
	    .magic = CAPS_MAGIC, .version = CAPS_VERSION, .profile = 2,
	    .flags = 0x8000 | CAPS_SACK_ANY | CAPS_TS | CAPS_MULTI_SACK, .mtu_code = 6, .rx_window_q = 0x011000,
	    .paths = 16, .rx_window_r = 0x000800, .state = CAPS_SEALS, .source_qpn = 0x123456, .nonce = 0xdeadbeef,
	    .own_nonce = 0x0badcafe, .t_hint = 0x8140, .ack_timer_us = 0x9014),
	ROW_RESERVED(deth, DETH, GOLDEN(0x80, 0x01, 0x00, 0x00, 0x00, 0xab, 0xcd, 0xef), GOLDEN([4] = 0xff),
		     .qkey = 0x80010000, .sqpn = 0xabcdef),
	/* By what Linux's rxe sends: a FLUSH of a region to persistence has PLT 2 in the low four bits, SEL 1 above. */
	ROW_RESERVED(feth, FETH, GOLDEN(0x00, 0x00, 0x00, 0x12), GOLDEN(0xff, 0xff, 0xff, 0xc0),
		     .placement = FETH_PERSISTENT, .selectivity = FETH_REGION),
	ROW_RESERVED(feth, FETH, GOLDEN(0x00, 0x00, 0x00, 0x01), GOLDEN(0xff, 0xff, 0xff, 0xc0),
		     .placement = FETH_GLOBAL, .selectivity = FETH_RANGE),
	ROW_RESERVED(holdeth, HOLDETH,
		     GOLDEN(0x27, 0x10, 0x80, 0x01, 0x00, 0x12, 0x34, 0x56, 0xde, 0xad, 0xbe, 0xef), GOLDEN([4] = 0xff),
		     .ms = HOLD_MS_MAX, .number = 0x8001, .source_qpn = 0x123456, .nonce = 0xdeadbeef),
	ROW(ieth, IETH, GOLDEN(0xf1, 0x02, 0x03, 0x04), .rkey = 0xf1020304),
	ROW(immdt, IMMDT, GOLDEN(0xf1, 0x02, 0x03, 0x04), .imm = 0xf1020304),
	ROW_RESERVED(msneth, MSNETH, GOLDEN(0x00, 0xab, 0xcd, 0xef), GOLDEN(0xff), .msn = 0xabcdef),
	ROW_RESERVED(poeth, POETH, GOLDEN(0x00, 0xab, 0xcd, 0xef), GOLDEN(0xff), .po = 0xabcdef),
	ROW_RESERVED(poeth, POETH, GOLDEN(0x00, 0xff, 0xff, 0xff), GOLDEN(0xff), .po = POETH_NO_INFO),
	ROW(reth, RETH,
	    GOLDEN(0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0xa1, 0xb2, 0xc3, 0xd4, 0x80, 0x00, 0x00, 0x01),
	    .va = 0x0102030405060708, .rkey = 0xa1b2c3d4, .len = 0x80000001),
	ROW(roameth, ROAMETH,
	    GOLDEN(0x03, 0x12, 0x34, 0x56, 0x81, 0x02, 0x03, 0x04, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8,
		   0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8),
	    .step = ROAM_ECHO, .source_qpn = 0x123456, .number = 0x81020304, .challenge = 0xa1a2a3a4a5a6a7a8,
	    .mac = 0xf1f2f3f4f5f6f7f8),
	ROW_RESERVED(rqeth, RQETH, GOLDEN(0x00, 0xab, 0xcd, 0xef), GOLDEN(0xff), .rqmsn = 0xabcdef),
	ROW(rtteth, RTTETH,
	    GOLDEN(0x81, 0x02, 0x03, 0x04, 0x91, 0x12, 0x13, 0x14, 0xa1, 0x22, 0x23, 0x24, 0xb1, 0x32, 0x33, 0x34,
		   0xc1, 0x42, 0x43, 0x44),
	    .context = 0x81020304, .tx1 = 0x91121314, .rx1 = 0xa1222324, .tx2 = 0xb1323334, .rx2 = 0xc1424344),
	ROW(tseeth, TSEETH,
	    GOLDEN(0x81, 0x02, 0x03, 0x04, 0x91, 0x12, 0x13, 0x14, 0xa1, 0x22, 0x23, 0x24, 0xb1, 0x32, 0x33, 0x34,
		   0xc1, 0x42, 0x43, 0x44),
	    .tx1 = 0x81020304, .rx1 = 0x91121314, .tx2 = 0xa1222324, .path_id = 0xb1, .path_rcv = 0x323334,
	    .dups = 0xc1, .path_ce = 0x424344),
	{"tseeth with a share", TSEETH_LEN + TSEETH_SHARE_LEN, sizeof(struct tseeth), tseeth_share_in, tseeth_out,
	 &(const struct tseeth){.tx1 = 0x81020304, .rx1 = 0x91121314, .tx2 = 0xa1222324, .path_id = 0xb1,
				.path_rcv = 0x323334, .dups = 0xc1, .path_ce = 0x424344, .share_kbps = 0xd1525354,
				.has_share = true},
	 {0x81, 0x02, 0x03, 0x04, 0x91, 0x12, 0x13, 0x14, 0xa1, 0x22, 0x23, 0x24, 0xb1, 0x32, 0x33, 0x34,
	  0xc1, 0x42, 0x43, 0x44, 0xd1, 0x52, 0x53, 0x54}, {0}},
	ROW(tseth, TSETH, GOLDEN(0x81, 0x02, 0x03, 0x04, 0x95, 0xa6, 0xb7, 0xc8),
	    .tx1 = 0x81020304, .path_id = 0x95, .path_seq = 0xa6b7c8),
	ROW_RESERVED(xrceth, XRCETH, GOLDEN(0x00, 0xf2, 0x03, 0x04), GOLDEN(0xff), .srqn = 0xf20304),
};
/* clang-format on */

static const struct row *const rows_end = rows + sizeof(rows) / sizeof(*rows);

static void check_same(const struct row *r, const void *is, const void *ought, size_t len)
{
	if (memcmp(is, ought, len))
		fail_msg("%s differs", r->name);
}

/* Encodes into bytes that held something else. Exactly the header's are written. */
static void encode(const struct row *r, uint8_t out[LEN_MAX + 1], const void *h)
{
	memset(out, 0xa5, LEN_MAX + 1);
	r->encode(out, h);
	if (out[r->len] != 0xa5)
		fail_msg("%s is longer than it says", r->name);
}

TEST(golden_bytes_are_decoded)
{
	for (const struct row *r = rows; r < rows_end; r++) {
		_Alignas(8) uint8_t h[STRUCT_MAX] = {0};

		assert_true(r->bytes <= sizeof(h));
		r->decode(h, r->golden);
		check_same(r, h, r->fields, r->bytes);
	}
}

TEST(golden_bytes_are_encoded)
{
	for (const struct row *r = rows; r < rows_end; r++) {
		uint8_t out[LEN_MAX + 1];

		encode(r, out, r->fields);
		check_same(r, out, r->golden, r->len);
	}
}

TEST(any_bytes_survive_but_what_is_reserved)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (const struct row *r = rows; r < rows_end; r++) {
		for (int i = 0; i < 1000; i++) {
			_Alignas(8) uint8_t h[STRUCT_MAX] = {0};
			uint8_t in[LEN_MAX], out[LEN_MAX + 1];

			for (size_t k = 0; k < r->len; k++)
				in[k] = (uint8_t)prng_next(&rng);
			r->decode(h, in);
			encode(r, out, h);
			for (size_t k = 0; k < r->len; k++)
				in[k] &= (uint8_t)~r->reserved[k];
			check_same(r, out, in, r->len);
		}
	}
}

TEST(reserved_bits_are_ignored)
{
	for (const struct row *r = rows; r < rows_end; r++) {
		_Alignas(8) uint8_t h[STRUCT_MAX] = {0};
		uint8_t in[LEN_MAX];

		for (size_t k = 0; k < r->len; k++)
			in[k] = r->golden[k] | r->reserved[k];
		r->decode(h, in);
		check_same(r, h, r->fields, r->bytes);
	}
}

TEST(numbers_are_confined_to_24_bits)
{
	static const uint8_t expect[] = {0, 0, 0, 2};
	uint8_t out[DETH_LEN];

	msneth_encode(out, &(struct msneth){.msn = 0xff000002});
	assert_memory_equal(out, expect, 4);
	poeth_encode(out, &(struct poeth){.po = 0xff000002});
	assert_memory_equal(out, expect, 4);
	rqeth_encode(out, &(struct rqeth){.rqmsn = 0xff000002});
	assert_memory_equal(out, expect, 4);
	xrceth_encode(out, &(struct xrceth){.srqn = 0xff000002});
	assert_memory_equal(out, expect, 4);
	aeth_encode(out, &(struct aeth){.msn = 0xff000002});
	assert_memory_equal(out, expect, 4);
	deth_encode(out, &(struct deth){.sqpn = 0xff000002});
	assert_memory_equal(out + 4, expect, 4);
}
