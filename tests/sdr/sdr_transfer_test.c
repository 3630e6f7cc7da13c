/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between two ends: what arrives, where, and what never does. */
#include "ends.h"
#include "support/test.h"

static void post_when_granted(struct ends *e, const struct verbena_sdr_block *b, const uint32_t *imm,
			      struct verbena_sdr_send *send)
{
	int r = VERBENA_SDR_RETRY;

	AWAIT(e, (r = verbena_sdr_send_post(e->from, b, imm, send)) != VERBENA_SDR_RETRY);
	assert_int_equal(r, VERBENA_SDR_SUCCESS);
}

#define CASE(name) TEST_WITH(name, ends_setup, ends_teardown)

CASE(a_message_arrives_whole_with_every_bit)
{
	struct ends *e = *state;
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	struct verbena_sdr_block b = block(e, 0, 3000);
	const uint8_t *bitmap;
	uint64_t mask;
	size_t bytes;

	assert_int_equal(recv_post(e, 0, 3000, &recv), VERBENA_SDR_SUCCESS);
	post_when_granted(e, &b, NULL, &send);
	AWAIT(e, chunks_arrived(&recv, 0, 3));
	assert_memory_equal(e->sink, e->source, 3000);
	assert_int_equal(e->sink[3000], 0);
	assert_int_equal(verbena_sdr_recv_bitmap_get(&recv, &bitmap, &bytes), VERBENA_SDR_SUCCESS);
	assert_int_equal(bytes, 1);
	assert_int_equal(bitmap[0], 7);
	assert_int_equal(verbena_sdr_recv_bitmap_chunk_expand(&recv, 2, &mask), VERBENA_SDR_SUCCESS);
	assert_int_equal(mask, 0xf);
	AWAIT(e, send_done(&send));
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
}

CASE(a_send_that_is_shorter_leaves_the_rest_unset)
{
	struct ends *e = *state;
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	struct verbena_sdr_block b = block(e, 1, 2 * CHUNK);

	assert_int_equal(recv_post(e, 0, MESSAGE, &recv), VERBENA_SDR_SUCCESS);
	post_when_granted(e, &b, NULL, &send);
	AWAIT(e, chunks_arrived(&recv, 1, 2));
	settle(e);
	assert_false(chunks_arrived(&recv, 0, 1));
	assert_false(chunks_arrived(&recv, 3, 1));
	assert_memory_equal(e->sink + CHUNK, e->source + CHUNK, 2 * CHUNK);
	assert_int_equal(e->sink[0], 0);
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
}

/* More messages than slots and generations, several under way. */
CASE(messages_meet_receives_in_order)
{
	struct ends *e = *state;
	struct verbena_sdr_recv recv[4];
	struct verbena_sdr_send send;
	uint32_t posted = 0, sent = 0;

	for (uint32_t n = 0; n < 100; n++) {
		struct verbena_sdr_block b;

		for (; posted < n + 4; posted++)
			assert_int_equal(recv_post(e, posted % 4, CHUNK, &recv[posted % 4]), VERBENA_SDR_SUCCESS);
		for (; sent < n + 4; sent++) {
			b = block(e, sent % 16, CHUNK);
			b.remote_offset = 0;
			post_when_granted(e, &b, NULL, &send);
			assert_int_equal(send.number, sent);
			AWAIT(e, send_done(&send));
		}
		AWAIT(e, chunks_arrived(&recv[n % 4], 0, 1));
		assert_memory_equal(e->sink + n % 4 * MESSAGE, e->source + n % 16 * CHUNK, CHUNK);
		assert_int_equal(verbena_sdr_recv_complete(&recv[n % 4]), VERBENA_SDR_SUCCESS);
	}
}

CASE(an_immediate_arrives_with_messages_of_any_length)
{
	static const size_t lengths[] = {0, 1, 256, 257, CHUNK, 5 * CHUNK, MESSAGE};
	struct ends *e = *state;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct verbena_sdr_block b = block(e, 0, lengths[i]);
		uint32_t imm = 0xfeed0000 + (uint32_t)i, got = 0;
		struct verbena_sdr_recv recv;
		struct verbena_sdr_send send;

		assert_int_equal(recv_post(e, 0, lengths[i] ? lengths[i] : 1, &recv), VERBENA_SDR_SUCCESS);
		assert_int_equal(verbena_sdr_recv_imm_get(&recv, &got), VERBENA_SDR_RETRY);
		post_when_granted(e, &b, &imm, &send);
		AWAIT(e, verbena_sdr_recv_imm_get(&recv, &got) == VERBENA_SDR_SUCCESS);
		assert_int_equal(got, imm);
		AWAIT(e, send_done(&send));
		assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	}
}

/* The wire does not tell whether there is one: without it every fragment reads 0, and a message of fewer packets than
 * there are fragments never brings all. */
CASE(an_immediate_that_was_not_sent_reads_0)
{
	struct ends *e = *state;
	struct verbena_sdr_block all = block(e, 0, MESSAGE), one = block(e, 0, 1);
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	uint32_t imm = 77;

	assert_int_equal(recv_post(e, 0, MESSAGE, &recv), VERBENA_SDR_SUCCESS);
	post_when_granted(e, &all, NULL, &send);
	AWAIT(e, verbena_sdr_recv_imm_get(&recv, &imm) == VERBENA_SDR_SUCCESS);
	assert_int_equal(imm, 0);
	AWAIT(e, send_done(&send));
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	assert_int_equal(recv_post(e, 1, 1, &recv), VERBENA_SDR_SUCCESS);
	post_when_granted(e, &one, NULL, &send);
	AWAIT(e, chunks_arrived(&recv, 0, 1));
	AWAIT(e, send_done(&send));
	assert_int_equal(verbena_sdr_recv_imm_get(&recv, &imm), VERBENA_SDR_RETRY);
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
}

CASE(a_stream_takes_blocks_in_any_order_and_again)
{
	struct ends *e = *state;
	struct verbena_sdr_block last = block(e, 2, 952), first = block(e, 0, 2 * CHUNK);
	struct verbena_sdr_stats stats;
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	int r = VERBENA_SDR_RETRY;

	assert_int_equal(recv_post(e, 0, 3000, &recv), VERBENA_SDR_SUCCESS);
	AWAIT(e, (r = verbena_sdr_send_stream_start(e->from, NULL, &send)) != VERBENA_SDR_RETRY);
	assert_int_equal(r, VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_send_stream_continue(&send, &last), VERBENA_SDR_SUCCESS);
	AWAIT(e, chunks_arrived(&recv, 2, 1));
	assert_false(chunks_arrived(&recv, 0, 1));
	assert_int_equal(verbena_sdr_send_stream_continue(&send, &last), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_send_stream_continue(&send, &first), VERBENA_SDR_SUCCESS);
	AWAIT(e, chunks_arrived(&recv, 0, 3));
	assert_false(send_done(&send));
	assert_int_equal(verbena_sdr_send_stream_end(&send), VERBENA_SDR_SUCCESS);
	AWAIT(e, send_done(&send));
	assert_int_equal(verbena_sdr_qp_stats_get(e->to, &stats), VERBENA_SDR_SUCCESS);
	assert_int_equal(stats.packets, 12);
	assert_int_equal(stats.duplicates, 4);
	assert_int_equal(stats.chunks, 3);
	assert_memory_equal(e->sink, e->source, 3000);
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
}

/* At a rate at which the first chunks take a second, the last one comes as a repeat at once; the rest is given up. */
TEST(repeats_go_first_and_a_send_is_cancelled)
{
	struct verbena_sdr_qp_attr attr = ends_attr(2);
	struct verbena_sdr_block all, last;
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	uint64_t queued = 0;
	struct ends e;
	int r = VERBENA_SDR_RETRY;

	attr.rate_limit_mbps = 1;
	ends_make(&e, attr, VERBENA_SDR_NO_WORKERS);
	all = block(&e, 0, MESSAGE);
	last = block(&e, MESSAGE / CHUNK - 1, CHUNK);
	assert_int_equal(recv_post(&e, 0, MESSAGE, &recv), VERBENA_SDR_SUCCESS);
	AWAIT(&e, (r = verbena_sdr_send_stream_start(e.from, NULL, &send)) != VERBENA_SDR_RETRY);
	for (int i = 0; i < 100; i++)
		assert_int_equal(verbena_sdr_send_stream_continue(&send, &all), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_send_stream_repeat(&send, &last), VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_send_queued_get(&send, &queued), VERBENA_SDR_SUCCESS);
	assert_true(queued > MESSAGE && queued <= 100 * MESSAGE + CHUNK);
	AWAIT(&e, chunks_arrived(&recv, MESSAGE / CHUNK - 1, 1));
	assert_int_equal(verbena_sdr_send_queued_get(&send, &queued), VERBENA_SDR_SUCCESS);
	assert_true(queued > 98 * MESSAGE);
	assert_int_equal(verbena_sdr_send_cancel(&send), VERBENA_SDR_SUCCESS);
	AWAIT(&e, send_done(&send));
	assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	ends_destroy(&e);
}

/* A stream goes on after its receive was completed and its slot posted again: neither buffer
 * changes, no bit is set. */
CASE(late_packets_write_nothing_and_set_nothing)
{
	struct ends *e = *state;
	struct verbena_sdr_block b = block(e, 0, MESSAGE);
	struct verbena_sdr_recv old, recv[4];
	struct verbena_sdr_stats stats;
	struct verbena_sdr_send send;
	int r = VERBENA_SDR_RETRY;

	assert_int_equal(recv_post(e, 0, MESSAGE, &old), VERBENA_SDR_SUCCESS);
	AWAIT(e, (r = verbena_sdr_send_stream_start(e->from, NULL, &send)) != VERBENA_SDR_RETRY);
	assert_int_equal(r, VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_recv_complete(&old), VERBENA_SDR_SUCCESS);
	/* The fourth takes the slot that the first has had, and its buffer. */
	for (uint32_t i = 0; i < 4; i++)
		AWAIT(e, recv_post(e, (i + 1) % 4, MESSAGE, &recv[i]) == VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_send_stream_continue(&send, &b), VERBENA_SDR_SUCCESS);
	settle(e);
	for (uint32_t i = 0; i < 4 * MESSAGE; i++)
		assert_int_equal(e->sink[i], 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_false(chunks_arrived(&recv[i], 0, 1));
	assert_int_equal(verbena_sdr_qp_stats_get(e->to, &stats), VERBENA_SDR_SUCCESS);
	assert_int_equal(stats.packets, 0);
	assert_int_equal(verbena_sdr_send_stream_end(&send), VERBENA_SDR_SUCCESS);
	AWAIT(e, send_done(&send));
	/* And the one that is meant for it arrives. */
	post_when_granted(e, &b, NULL, &send);
	AWAIT(e, chunks_arrived(&recv[0], 0, 16));
	assert_memory_equal(e->sink + MESSAGE, e->source, MESSAGE);
}

/* The payload of a late message has no key; a part of its immediate has no payload, and the
 * generation shows that it is late. */
CASE(a_late_immediate_does_not_become_another_messages)
{
	struct ends *e = *state;
	struct verbena_sdr_recv old, recv;
	struct verbena_sdr_stats stats;
	struct verbena_sdr_send send;
	uint32_t imm = 0xffffffff;
	int r = VERBENA_SDR_RETRY;

	assert_int_equal(recv_post(e, 0, CHUNK, &old), VERBENA_SDR_SUCCESS);
	AWAIT(e, (r = verbena_sdr_send_stream_start(e->from, &imm, &send)) != VERBENA_SDR_RETRY);
	assert_int_equal(verbena_sdr_recv_complete(&old), VERBENA_SDR_SUCCESS);
	for (uint32_t i = 0; i < 4; i++)
		AWAIT(e, recv_post(e, i, CHUNK, &recv) == VERBENA_SDR_SUCCESS);
	assert_int_equal(verbena_sdr_send_stream_end(&send), VERBENA_SDR_SUCCESS);
	AWAIT(e, send_done(&send));
	settle(e);
	assert_int_equal(verbena_sdr_recv_imm_get(&recv, &imm), VERBENA_SDR_RETRY);
	assert_int_equal(verbena_sdr_qp_stats_get(e->to, &stats), VERBENA_SDR_SUCCESS);
	assert_int_equal(stats.dropped_late, 8);
}

/* Both ends have two threads of their own, and the program only looks at the bitmap. */
TEST(workers_do_it_all)
{
	struct ends e;
	uint32_t sum = 0;

	ends_make(&e, ends_attr(3), 2);
	for (uint32_t n = 0; n < 200; n++) {
		struct verbena_sdr_block b = block(&e, 0, MESSAGE);
		struct verbena_sdr_recv recv;
		struct verbena_sdr_send send;
		const uint8_t *bitmap;
		size_t bytes;

		memset(e.source, (int)n + 1, MESSAGE);
		AWAIT(&e, recv_post(&e, n % 8, MESSAGE, &recv) == VERBENA_SDR_SUCCESS);
		assert_int_equal(verbena_sdr_recv_bitmap_get(&recv, &bitmap, &bytes), VERBENA_SDR_SUCCESS);
		AWAIT(&e, verbena_sdr_send_post(e.from, &b, NULL, &send) == VERBENA_SDR_SUCCESS);
		AWAIT(&e, verbena_sdr_chunk_arrived(bitmap, 15) && chunks_arrived(&recv, 0, 16));
		AWAIT(&e, send_done(&send));
		assert_memory_equal(e.sink + n % 8 * MESSAGE, e.source, MESSAGE);
		assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
		sum++;
	}
	assert_int_equal(sum, 200);
	ends_destroy(&e);
}

TEST(a_rate_is_kept_to)
{
	struct verbena_sdr_qp_attr attr = ends_attr(2);
	struct verbena_sdr_block b;
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	struct timespec start, end;
	struct ends e;

	attr.rate_limit_mbps = 1; /* 16 KiB take 131 ms, less a burst of 20 ms */
	ends_make(&e, attr, VERBENA_SDR_NO_WORKERS);
	b = block(&e, 0, MESSAGE);
	assert_int_equal(recv_post(&e, 0, MESSAGE, &recv), VERBENA_SDR_SUCCESS);
	AWAIT(&e, verbena_sdr_send_post(e.from, &b, NULL, &send) == VERBENA_SDR_SUCCESS);
	clock_gettime(CLOCK_MONOTONIC, &start);
	AWAIT(&e, send_done(&send));
	clock_gettime(CLOCK_MONOTONIC, &end);
	/* Never faster; how much slower is the machine's affair. */
	assert_true((end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000 >= 105);
	AWAIT(&e, chunks_arrived(&recv, 0, 16));
	ends_destroy(&e);
}

/* Half of a message's packets leave before the peer has said that any have arrived. */
TEST(a_rate_that_finds_itself_waits_for_what_arrives)
{
	struct verbena_sdr_qp_attr attr = ends_attr(2);
	struct verbena_sdr_stats st;
	struct verbena_sdr_block b;
	struct ends e;

	attr.rate_auto = true;
	ends_make(&e, attr, VERBENA_SDR_NO_WORKERS);
	b = block(&e, 0, MESSAGE);
	for (int n = 0; n < 50; n++) {
		struct verbena_sdr_recv recv;
		struct verbena_sdr_send send;

		assert_int_equal(recv_post(&e, 0, MESSAGE, &recv), VERBENA_SDR_SUCCESS);
		AWAIT(&e, verbena_sdr_send_post(e.from, &b, NULL, &send) == VERBENA_SDR_SUCCESS);
		assert_int_equal(verbena_sdr_qp_stats_get(e.from, &st), VERBENA_SDR_SUCCESS);
		assert_true(n || (st.rate_mbps > 0 && st.sent <= MESSAGE / MTU / 2));
		AWAIT(&e, chunks_arrived(&recv, 0, 16));
		AWAIT(&e, send_done(&send));
		assert_memory_equal(e.sink, e.source, MESSAGE);
		assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	}
	ends_destroy(&e);
}

TEST(it_runs_over_rc_too)
{
	struct verbena_sdr_qp_attr attr = ends_attr(2);
	struct verbena_sdr_block b;
	struct verbena_sdr_recv recv;
	struct verbena_sdr_send send;
	struct ends e;

	attr.transport = VERBENA_SDR_RC;
	ends_make(&e, attr, VERBENA_SDR_NO_WORKERS);
	b = block(&e, 0, MESSAGE);
	for (int n = 0; n < 20; n++) {
		assert_int_equal(recv_post(&e, 0, MESSAGE, &recv), VERBENA_SDR_SUCCESS);
		AWAIT(&e, verbena_sdr_send_post(e.from, &b, NULL, &send) == VERBENA_SDR_SUCCESS);
		AWAIT(&e, chunks_arrived(&recv, 0, 16));
		AWAIT(&e, send_done(&send));
		assert_memory_equal(e.sink, e.source, MESSAGE);
		assert_int_equal(verbena_sdr_recv_complete(&recv), VERBENA_SDR_SUCCESS);
	}
	ends_destroy(&e);
}
