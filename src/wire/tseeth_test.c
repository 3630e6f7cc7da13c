/* SPDX-License-Identifier: BSD-2-Clause */
/* The TSEETH codec. */

#include "base/prng.h"
#include "support/test.h"
#include "wire/tseeth.h"

/* By hand from the figure in veRoCE 13.2. */
static const uint8_t golden[TSEETH_LEN] = {0x81, 0x02, 0x03, 0x04, 0x91, 0x12, 0x13, 0x14, 0xa1, 0x22,
					   0x23, 0x24, 0xb1, 0x32, 0x33, 0x34, 0xc1, 0x42, 0x43, 0x44};
static const struct tseeth golden_fields = {.tx1 = 0x81020304,
					    .rx1 = 0x91121314,
					    .tx2 = 0xa1222324,
					    .path_id = 0xb1,
					    .path_rcv = 0x323334,
					    .dups = 0xc1,
					    .path_ce = 0x424344};

/* The same with the word that RXSHARE adds. */
static const uint8_t golden_share[TSEETH_LEN + TSEETH_SHARE_LEN] = {0x81, 0x02, 0x03, 0x04, 0x91, 0x12, 0x13, 0x14,
								    0xa1, 0x22, 0x23, 0x24, 0xb1, 0x32, 0x33, 0x34,
								    0xc1, 0x42, 0x43, 0x44, 0xd1, 0x52, 0x53, 0x54};

TEST(tseeth_decodes_golden_bytes)
{
	struct tseeth h = {.has_share = false};

	tseeth_decode(&h, golden);
	assert_int_equal(tseeth_len(&h), sizeof(golden));
	assert_int_equal(h.share_kbps, 0);
	assert_true(h.tx1 == golden_fields.tx1);
	assert_true(h.rx1 == golden_fields.rx1);
	assert_true(h.tx2 == golden_fields.tx2);
	assert_true(h.path_id == golden_fields.path_id);
	assert_true(h.path_rcv == golden_fields.path_rcv);
	assert_true(h.dups == golden_fields.dups);
	assert_true(h.path_ce == golden_fields.path_ce);
}

TEST(tseeth_encodes_golden_bytes)
{
	uint8_t buf[TSEETH_LEN];

	memset(buf, 0xa5, sizeof(buf));
	tseeth_encode(buf, &golden_fields);
	assert_memory_equal(buf, golden, sizeof(golden));
}

TEST(tseeth_of_rxshare_has_a_word_more)
{
	struct tseeth h = {.has_share = true};
	uint8_t buf[sizeof(golden_share)];

	tseeth_decode(&h, golden_share);
	assert_int_equal(tseeth_len(&h), sizeof(golden_share));
	assert_true(h.path_ce == golden_fields.path_ce);
	assert_true(h.share_kbps == 0xd1525354);
	memset(buf, 0xa5, sizeof(buf));
	tseeth_encode(buf, &h);
	assert_memory_equal(buf, golden_share, sizeof(buf));
}

/* Any bytes survive decode and encode. */
TEST(tseeth_round_trips)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (int i = 0; i < 1000; i++) {
		uint8_t in[TSEETH_LEN + TSEETH_SHARE_LEN], out[sizeof(in)];
		struct tseeth h = {.has_share = i & 1};

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (uint8_t)prng_next(&rng);
		tseeth_decode(&h, in);
		memset(out, 0xa5, sizeof(out));
		tseeth_encode(out, &h);
		assert_memory_equal(out, in, tseeth_len(&h));
		assert_true(h.has_share || out[TSEETH_LEN] == 0xa5);
	}
}
