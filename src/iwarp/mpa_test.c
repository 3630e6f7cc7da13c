/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA's start-up frames. */
#include <errno.h>

#include "base/byteorder.h"
#include "base/prng.h"
#include "iwarp/golden.h"
#include "iwarp/mpa.h"
#include "support/test.h"

TEST(request_and_reply_golden_bytes)
{
	uint8_t golden[64], out[MPA_FRAME_MAX];
	size_t n = golden_bytes(golden, GOLDEN_REQUEST);
	struct mpa_frame f;

	assert_int_equal(mpa_frame_len(golden, n, false), n);
	mpa_decode(&f, golden);
	assert_false(f.reply || f.markers || f.rejected);
	assert_true(f.crc && f.enhanced && f.peer_to_peer);
	assert_int_equal(f.rev, 2);
	assert_int_equal(f.rtr, MPA_RTR_WRITE | MPA_RTR_READ);
	assert_int_equal(f.ird, 16);
	assert_int_equal(f.ord, 16);
	assert_int_equal(f.data_len, 4);
	assert_memory_equal(f.data, "ping", 4);
	assert_int_equal(mpa_encode(out, &f), n);
	assert_memory_equal(out, golden, n);

	n = golden_bytes(golden, GOLDEN_REPLY);
	assert_int_equal(mpa_frame_len(golden, n, true), n);
	mpa_decode(&f, golden);
	assert_true(f.reply);
	assert_int_equal(f.rtr, MPA_RTR_WRITE);
	assert_memory_equal(f.data, "pong", 4);
	assert_int_equal(mpa_encode(out, &f), n);
	assert_memory_equal(out, golden, n);
}

/* Every wrong byte of the key is seen as soon as it is there; nothing is judged before the header is whole. */
TEST(the_key_is_judged_at_each_byte)
{
	uint8_t golden[64];
	size_t n = golden_bytes(golden, GOLDEN_REQUEST);

	for (size_t have = 0; have <= n; have++)
		assert_int_equal(mpa_frame_len(golden, have, false), have < MPA_HEADER_LEN ? 0 : (int)n);
	assert_int_equal(mpa_frame_len(golden, 10, true), -EBADMSG); /* "Req" where "Rep" is expected */
	for (size_t i = 0; i < 16; i++) {
		golden[i] ^= 1;
		assert_int_equal(mpa_frame_len(golden, i, false), 0);
		assert_int_equal(mpa_frame_len(golden, i + 1, false), -EBADMSG);
		golden[i] ^= 1;
	}
}

/* Revision, S, length: RFC 5044 7.1.1, RFC 6581 9. */
TEST(revisions_and_lengths)
{
	static const struct {
		uint8_t rev, flags;
		uint16_t pd_len;
		int expect;
	} cases[] = {
		{0, 0x40, 0, -EBADMSG},     {1, 0x40, 0, 20},         {1, 0x40, 512, 532},    {1, 0x40, 513, -EBADMSG},
		{1, 0x50, 0, 20},           {2, 0x40, 0, 20},         {2, 0x50, 3, -EBADMSG}, {2, 0x50, 4, 24},
		{2, 0x50, 512, 532},        {2, 0x50, 513, -EBADMSG}, {3, 0x50, 4, -EBADMSG}, {255, 0, 0, -EBADMSG},
		{1, 0x40, 65535, -EBADMSG},
	};
	uint8_t p[64];

	golden_bytes(p, GOLDEN_REQUEST);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		p[16] = cases[i].flags;
		p[17] = cases[i].rev;
		put_be16(p + 18, cases[i].pd_len);
		assert_int_equal(mpa_frame_len(p, MPA_HEADER_LEN, false), cases[i].expect);
	}
}

TEST(revision_1_knows_no_enhanced_set_up)
{
	uint8_t p[64];
	struct mpa_frame f;

	golden_bytes(p, GOLDEN_REQUEST);
	p[17] = 1;
	mpa_decode(&f, p);
	assert_false(f.enhanced || f.peer_to_peer);
	assert_int_equal(f.data_len, 8);
}

TEST(frames_round_trip)
{
	uint8_t data[MPA_PD_MAX], p[MPA_FRAME_MAX];
	struct prng rng;

	prng_init(&rng, 3);
	for (int i = 0; i < 2000; i++) {
		uint64_t r = prng_next(&rng);
		bool enhanced = r & 32;
		struct mpa_frame f = {.reply = r & 1,
				      .markers = r & 2,
				      .crc = r & 4,
				      .rejected = r & 8,
				      .enhanced = enhanced,
				      .peer_to_peer = enhanced && r & 64,
				      .rtr = enhanced ? r >> 7 & 7 : 0,
				      .rev = enhanced ? 2 : 1 + (r >> 10 & 1),
				      .ird = enhanced ? r >> 20 & 0x3fff : 0,
				      .ord = enhanced ? r >> 34 & 0x3fff : 0,
				      .data_len = (uint16_t)prng_below(&rng, MPA_PD_MAX - 4 + 1),
				      .data = data};
		struct mpa_frame g;
		size_t n;

		for (size_t k = 0; k < f.data_len; k++)
			data[k] = (uint8_t)prng_next(&rng);
		n = mpa_encode(p, &f);
		assert_int_equal(mpa_frame_len(p, n, f.reply), n);
		mpa_decode(&g, p);
		assert_memory_equal(g.data, data, f.data_len);
		g.data = data;
		assert_true(f.reply == g.reply && f.markers == g.markers && f.crc == g.crc &&
			    f.rejected == g.rejected && f.enhanced == g.enhanced && f.peer_to_peer == g.peer_to_peer &&
			    f.rtr == g.rtr && f.rev == g.rev && f.ird == g.ird && f.ord == g.ord &&
			    f.data_len == g.data_len);
	}
}
