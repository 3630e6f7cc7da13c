/* SPDX-License-Identifier: BSD-2-Clause */
/* When WQEs complete, what waits for what, and who may speak first. */

#include "iwarp/pipe.h"
#include "support/test.h"

static struct pipe p;

/* RFC 5040 5.5: a Write is complete when its bytes are TCP's, not when they arrive. */
PIPE_TEST(a_write_completes_when_it_is_sent)
{
	struct pkt burst[4];

	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 1000, .wr_id = 1});
	assert_int_equal(nic_output(p.end[PIPE_A].nic, burst, 4, p.now_ns), 1);
	pipe_expect(&p, PIPE_A, 1, WC_SUCCESS);
	assert_int_equal(p.end[PIPE_B].mem[0], 0);
}

/* A WQE behind a READ completes behind it, though its bytes left long before. */
PIPE_TEST(completions_keep_the_order_of_posting)
{
	struct cqe e;

	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_READ, .len = 1000, .wr_id = 1});
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 1000, .wr_id = 2});
	pipe_step(&p); /* both left, nothing came back */
	assert_false(pipe_poll(&p, PIPE_A, &e));
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, 1, WC_SUCCESS);
	pipe_expect(&p, PIPE_A, 2, WC_SUCCESS);
}

/* IBTA 10.8.3.3, RFC 5040 5.5: what is behind a fence does not leave before earlier READs are answered. */
PIPE_TEST(a_fence_waits_for_reads)
{
	uint64_t before;

	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_READ, .len = 1000, .wr_id = 1});
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .flags = WR_FENCE, .len = 1000, .wr_id = 2});
	pipe_step(&p);
	before = p.end[PIPE_A].sent_bytes;
	assert_int_equal(before, 52); /* the Read Request alone */
	pipe_run(&p);
	assert_true(p.end[PIPE_A].sent_bytes > before + 1000);
	pipe_expect(&p, PIPE_A, 1, WC_SUCCESS);
	pipe_expect(&p, PIPE_A, 2, WC_SUCCESS);
}

/* RFC 6581 4.4: no more Read Requests at a time than the responder takes. */
PIPE_TEST(reads_outstanding_are_bounded, .reads = 3)
{
	for (uint32_t i = 0; i < 10; i++)
		pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_READ, .len = 8, .wr_id = i});
	pipe_step(&p);
	assert_int_equal(p.end[PIPE_A].sent_bytes, 3 * 52);
	pipe_run(&p);
	for (uint32_t i = 0; i < 10; i++)
		pipe_expect(&p, PIPE_A, i, WC_SUCCESS);
	assert_int_equal(p.end[PIPE_A].sent_bytes, 10 * 52);
}

/* RFC 5044 7.1.2: the responder's WQEs wait for the initiator's first message. */
PIPE_TEST(a_responder_does_not_speak_first, .hears_first = true)
{
	pipe_post_recv(&p, PIPE_A, 7, 0, 100);
	pipe_post(&p, PIPE_B, &(struct pipe_wr){.opcode = WR_SEND, .len = 10, .wr_id = 1});
	pipe_run(&p);
	assert_int_equal(p.end[PIPE_B].sent_bytes, 0);
	assert_false(nic_stream_is_heard(p.end[PIPE_B].qp));
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 1, .wr_id = 2});
	pipe_run(&p);
	assert_true(nic_stream_is_heard(p.end[PIPE_B].qp));
	pipe_expect(&p, PIPE_A, 2, WC_SUCCESS);
	pipe_expect(&p, PIPE_A, 7, WC_SUCCESS);
	pipe_expect(&p, PIPE_B, 1, WC_SUCCESS);
}

/* RFC 6581 9: a zero-length Write by itself, so that it may. */
PIPE_TEST(peer_to_peer_lets_the_responder_speak, .hears_first = true, .sends_first = true)
{
	pipe_post_recv(&p, PIPE_A, 7, 0, 100);
	pipe_post(&p, PIPE_B, &(struct pipe_wr){.opcode = WR_SEND, .len = 10, .wr_id = 1});
	pipe_run(&p);
	assert_int_equal(p.end[PIPE_A].sent_bytes, 20);
	pipe_expect(&p, PIPE_A, 7, WC_SUCCESS);
	pipe_expect(&p, PIPE_B, 1, WC_SUCCESS);
}

/* A turn in which the other QPs left room for one packet: the first message takes it, and the rest comes in the next.
 */
PIPE_TEST(a_turn_may_end_behind_the_first_message, .sends_first = true)
{
	struct pkt burst[1];

	pipe_post_recv(&p, PIPE_B, 7, 0, 40000);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_SEND, .len = 40000, .wr_id = 1});
	while (nic_output(p.end[PIPE_A].nic, burst, 1, p.now_ns))
		pipe_inject(&p, PIPE_A, burst[0].data, burst[0].len);
	pipe_expect(&p, PIPE_A, 1, WC_SUCCESS);
	pipe_run(&p);
	pipe_expect(&p, PIPE_B, 7, WC_SUCCESS);
}

/* Nothing leaves without room, and all leaves when there is some again. */
PIPE_TEST(room_bounds_what_is_sent, .segment_bytes = 65483)
{
	for (uint32_t i = 0; i < 4; i++)
		pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = PIPE_MEM / 2, .wr_id = i});
	for (int i = 0; i < 20; i++) {
		struct pkt burst[16];
		size_t n = nic_output(p.end[PIPE_A].nic, burst, 16, p.now_ns);

		for (size_t k = 0; k < n; k++)
			p.end[PIPE_A].sent_bytes += burst[k].len;
	}
	assert_true(p.end[PIPE_A].sent_bytes > PIPE_ROOM / 2 && p.end[PIPE_A].sent_bytes <= PIPE_ROOM);
	assert_true(nic_deadline(p.end[PIPE_A].nic) == UINT64_MAX); /* it waits to be told */
}
