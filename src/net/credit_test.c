/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of credits (IBTA 7.9.4) and of arbitration (7.6.9), each by itself. */

#include "net/credit.h"
#include "net/vl_arbiter.h"
#include "support/test.h"

enum { BLOCKS = 130 };

TEST(a_block_is_64_bytes_from_lrh_to_vcrc_or_a_part_of_them)
{
	assert_int_equal(credit_blocks(1 + CREDIT_DELIMITER_BYTES), 1);
	assert_int_equal(credit_blocks(64 + CREDIT_DELIMITER_BYTES), 1);
	assert_int_equal(credit_blocks(65 + CREDIT_DELIMITER_BYTES), 2);
	assert_int_equal(credit_blocks(4096 + CREDIT_DELIMITER_BYTES), 64);
}

TEST(a_packet_is_sent_only_if_the_limit_covers_its_last_block)
{
	struct credit_sender s = {.fctbs = 4000, .fccl = 14};

	assert_true(credit_may_send(&s, 110));
	assert_false(credit_may_send(&s, 111));
	credit_sent(&s, 110);
	assert_int_equal(s.fctbs, 14);
	assert_false(credit_may_send(&s, 1));
}

TEST(the_limit_is_what_was_received_and_what_is_free)
{
	struct credit_receiver r = {.abr = 4090, .buffer_blocks = BLOCKS};

	assert_int_equal(credit_limit(&r), (4090 + BLOCKS) % 4096);
	assert_true(credit_received(&r, 20));
	assert_int_equal(credit_limit(&r), (4090 + BLOCKS) % 4096);
	credit_freed(&r, 20);
	assert_int_equal(credit_limit(&r), (4090 + BLOCKS + 20) % 4096);
}

TEST(no_more_than_2048_blocks_are_allowed_however_large_the_buffer_is)
{
	struct credit_receiver r = {.abr = 100, .buffer_blocks = 3000};

	assert_int_equal(credit_limit(&r), 2148);
	assert_true(credit_received(&r, 952));
	assert_int_equal(credit_limit(&r), 100 + 952 + 2048);
	assert_true(credit_received(&r, 1));
	assert_int_equal(credit_limit(&r), 101 + 952 + 2047);
}

TEST(what_has_no_room_is_not_counted)
{
	struct credit_receiver r = {.buffer_blocks = BLOCKS};

	assert_true(credit_received(&r, BLOCKS));
	assert_false(credit_received(&r, 1));
	assert_int_equal(r.abr, BLOCKS);
	assert_int_equal(r.used_max, BLOCKS);
}

/* ABR becomes FCTBS, so the credits of packets that the wire lost come back with the next flow control packet. */
TEST(lost_packets_cost_no_credits)
{
	struct credit_sender s = {.fccl = BLOCKS}, back = {0};
	struct credit_receiver r = {.buffer_blocks = BLOCKS}, unused = {0};

	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < BLOCKS / 10; i++) {
			assert_true(credit_may_send(&s, 10));
			credit_sent(&s, 10);
			if (i % 2)
				continue; /* lost */
			assert_true(credit_received(&r, 10));
			credit_freed(&r, 10);
		}
		assert_false(credit_may_send(&s, 10));
		credit_heard(&back, &r, s.fctbs, 0);
		credit_heard(&s, &unused, 0, credit_limit(&r));
		assert_int_equal((s.fccl - s.fctbs) & CREDIT_MASK, BLOCKS);
	}
}

TEST(a_lost_flow_control_packet_is_made_up_for_by_the_next)
{
	struct credit_sender s = {.fccl = BLOCKS};
	struct credit_receiver r = {.buffer_blocks = BLOCKS}, unused = {0};

	for (int i = 0; i < 1000; i++) {
		assert_true(credit_may_send(&s, 40));
		credit_sent(&s, 40);
		assert_true(credit_received(&r, 40));
		credit_freed(&r, 40);
		if (i % 3 == 2)
			credit_heard(&s, &unused, 0, credit_limit(&r));
	}
}

static void count_sent(const struct vl_tables *t, uint8_t ready, int packets, const uint32_t bytes[VL_LANES],
		       unsigned sent[VL_LANES])
{
	struct vl_arbiter a = {0};

	for (int i = 0; i < packets; i++)
		sent[vl_choose(&a, t, ready, bytes)] += 1;
}

TEST(lanes_of_a_table_share_by_weight_in_units_of_64_bytes)
{
	const struct vl_tables t = {.low = {{0, 32}, {1, 96}}, .low_count = 2};
	const uint32_t bytes[VL_LANES] = {1024, 1024};
	unsigned sent[VL_LANES] = {0};

	count_sent(&t, 3, 4000, bytes, sent);
	assert_int_equal(sent[0], 1000);
	assert_int_equal(sent[1], 3000);
}

TEST(a_packet_may_overdraw_the_weight_of_its_entry)
{
	const struct vl_tables t = {.low = {{0, 1}, {1, 1}}, .low_count = 2};
	const uint32_t bytes[VL_LANES] = {4096, 64};
	unsigned sent[VL_LANES] = {0};

	count_sent(&t, 3, 100, bytes, sent);
	assert_int_equal(sent[0], 50);
}

TEST(a_turn_passes_lanes_that_have_nothing_and_entries_without_weight)
{
	const struct vl_tables t = {.low = {{0, 9}, {1, 9}, {2, 0}}, .low_count = 3};
	const uint32_t bytes[VL_LANES] = {64, 64, 64};
	unsigned sent[VL_LANES] = {0};

	count_sent(&t, 1 << 1 | 1 << 2, 10, bytes, sent);
	assert_int_equal(sent[1], 10);
}

TEST(high_priority_goes_first_for_its_limit_and_then_low_has_one_packet)
{
	struct vl_tables t = {.high = {{1, 255}}, .low = {{0, 255}}, .high_count = 1, .low_count = 1, .high_limit = 2};
	const uint32_t bytes[VL_LANES] = {1024, 1024};
	unsigned sent[VL_LANES] = {0};

	count_sent(&t, 3, 900, bytes, sent);
	assert_int_equal(sent[1], 800);
	assert_int_equal(sent[0], 100);
	t.high_limit = 0; /* for one packet */
	sent[0] = sent[1] = 0;
	count_sent(&t, 3, 900, bytes, sent);
	assert_int_equal(sent[1], 450);
	t.high_limit = VL_HIGH_UNLIMITED;
	sent[0] = sent[1] = 0;
	count_sent(&t, 3, 900, bytes, sent);
	assert_int_equal(sent[0], 0);
}

/* How many packets of high priority go before one of low, when both have some. */
static unsigned high_before_low(struct vl_arbiter *a, const struct vl_tables *t)
{
	const uint32_t bytes[VL_LANES] = {1024, 1024};
	unsigned sent = 0;

	while (vl_choose(a, t, 3, bytes) == 1)
		sent++;
	return sent;
}

/* IBTA 7.6.9.2: the counter begins anew when it has expired, and when high priority has nothing, whether or not low
 * has. */
TEST(the_limit_of_high_priority_begins_anew)
{
	const struct vl_tables t = {
		.high = {{1, 255}}, .low = {{0, 255}}, .high_count = 1, .low_count = 1, .high_limit = 2};
	const uint32_t bytes[VL_LANES] = {1024, 1024};
	struct vl_arbiter a = {0};

	for (int i = 0; i < 9; i++) /* one more than the limit */
		assert_int_equal(vl_choose(&a, &t, 2, bytes), 1);
	assert_int_equal(high_before_low(&a, &t), 7);
	for (int i = 0; i < 3; i++)
		assert_int_equal(vl_choose(&a, &t, 2, bytes), 1);
	assert_int_equal(vl_choose(&a, &t, 1, bytes), 0);
	assert_int_equal(high_before_low(&a, &t), 8);
}

TEST(low_priority_goes_while_high_has_nothing)
{
	const struct vl_tables t = {.high = {{1, 1}}, .low = {{0, 1}}, .high_count = 1, .low_count = 1};
	const uint32_t bytes[VL_LANES] = {1024, 1024};
	struct vl_arbiter a = {0};

	assert_int_equal(vl_choose(&a, &t, 0, bytes), VL_NONE);
	assert_int_equal(vl_choose(&a, &t, 1, bytes), 0);
	assert_int_equal(vl_choose(&a, &t, 2, bytes), 1);
	assert_int_equal(vl_choose(&a, &t, 2, bytes), 1);
}

TEST(a_lane_that_no_table_names_goes_last)
{
	const struct vl_tables t = {.low = {{3, 1}}, .low_count = 1};
	const uint32_t bytes[VL_LANES] = {64, 64, 64, 64, 64, 64, 64, 64};
	struct vl_arbiter a = {0};

	assert_int_equal(vl_choose(&a, &t, 1 << 3 | 1 << 1, bytes), 3);
	assert_int_equal(vl_choose(&a, &t, 1 << 5 | 1 << 1, bytes), 1);
}
