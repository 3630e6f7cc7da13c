/* SPDX-License-Identifier: BSD-2-Clause */
/* How streams end, and the states of a QP with one. */
#include <errno.h>

#include "iwarp/fpdu.h"
#include "iwarp/pipe.h"
#include "iwarp/rdmap.h"
#include "support/test.h"

static struct pipe p;

static int move(enum pipe_side side, enum qp_state to)
{
	return nic_qp_modify(p.end[side].nic, p.end[side].qp, &(struct qp_attr){.state = to, .port = 1}, QPA_STATE,
			     p.now_ns);
}

/* All that was posted before the end is asked for arrives; then both sides end, and the rest is flushed. */
PIPE_TEST(a_graceful_end_sends_what_was_posted, .piece_max = 100)
{
	memset(p.end[PIPE_A].mem, 0x5a, 50000);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_READ, .at = 200000, .len = 20000, .wr_id = 1});
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 50000, .to = 100000, .wr_id = 2});
	pipe_post_recv(&p, PIPE_A, 8, 0, 10);
	pipe_post_recv(&p, PIPE_B, 9, 0, 10);
	assert_int_equal(move(PIPE_A, QPS_SQD), 0);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 10, .wr_id = 3});
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, 1, WC_SUCCESS);
	pipe_expect(&p, PIPE_A, 2, WC_SUCCESS);
	pipe_expect(&p, PIPE_A, 3, WC_WR_FLUSH_ERR);
	pipe_expect(&p, PIPE_A, 8, WC_WR_FLUSH_ERR);
	pipe_expect(&p, PIPE_B, 9, WC_WR_FLUSH_ERR);
	assert_memory_equal(p.end[PIPE_B].mem + 100000, p.end[PIPE_A].mem, 50000);
	assert_true(p.end[PIPE_A].fin && p.end[PIPE_B].fin);
	for (int side = 0; side < PIPE_SIDES; side++) {
		assert_int_equal(qp_state(p.end[side].qp), QPS_ERR);
		assert_int_equal(pipe_event(&p, (enum pipe_side)side), -1);
		assert_int_equal(nic_streams_ended(p.end[side].nic), 1);
	}
}

PIPE_TEST(both_may_end_at_once)
{
	nic_stream_finish(p.end[PIPE_A].nic, p.end[PIPE_A].qp, p.now_ns);
	nic_stream_finish(p.end[PIPE_B].nic, p.end[PIPE_B].qp, p.now_ns);
	pipe_run(&p);
	for (int side = 0; side < PIPE_SIDES; side++) {
		assert_true(p.end[side].fin && p.end[side].fin_taken);
		assert_int_equal(qp_state(p.end[side].qp), QPS_ERR);
	}
}

/* A responder that never heard the initiator ends without having spoken. */
PIPE_TEST(one_that_may_not_speak_can_still_end, .hears_first = true)
{
	nic_stream_finish(p.end[PIPE_B].nic, p.end[PIPE_B].qp, p.now_ns);
	pipe_run(&p);
	assert_true(p.end[PIPE_B].fin);
	assert_int_equal(p.end[PIPE_B].sent_bytes, 0);
}

PIPE_TEST(a_program_that_moves_to_err_ends_the_stream)
{
	pipe_post_recv(&p, PIPE_B, 9, 0, 10);
	assert_int_equal(move(PIPE_A, QPS_ERR), 0);
	pipe_run(&p);
	assert_true(p.end[PIPE_A].fin && p.end[PIPE_B].fin);
	pipe_expect(&p, PIPE_B, 9, WC_WR_FLUSH_ERR);
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_WRITE, .len = 10, .wr_id = 3});
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, 3, WC_WR_FLUSH_ERR);
}

/* RFC 5044 7.2: FIN inside an FPDU, or a reset, is a stream that is lost. */
/* RFC 5044 7.2: the peer may end between FPDUs. At any other byte the stream is lost, and nothing of the FPDU is in
 * memory. */
TEST(a_stream_that_ends_inside_an_fpdu_places_nothing_of_it)
{
	enum { PAYLOAD = 30, FPDU = FPDU_LENGTH_LEN + DDP_TAGGED_LEN + PAYLOAD + 4 + FPDU_CRC_LEN };
	static const uint8_t zeros[PAYLOAD];
	uint8_t raw[FPDU + 8];
	uint32_t len = 1;

	for (uint32_t cut = 0; cut <= len; cut++) {
		struct ddp ddp = {.tagged = true,
				  .last = true,
				  .ddp_version = 1,
				  .rdmap_version = 1,
				  .opcode = RDMAP_WRITE,
				  .to = PIPE_IOVA};
		struct fpdu_framing f = {.crc = true};
		bool whole;

		pipe_open(&p, &(struct pipe_config){.seed = 1});
		ddp.stag = p.end[PIPE_B].mr->key;
		ddp_encode(raw + FPDU_LENGTH_LEN, &ddp);
		memset(raw + FPDU_LENGTH_LEN + DDP_TAGGED_LEN, 0xff, PAYLOAD);
		len = fpdu_seal(&f, raw, DDP_TAGGED_LEN + PAYLOAD);
		whole = cut == len;
		pipe_inject(&p, PIPE_A, raw, cut);
		nic_stream_finish(p.end[PIPE_A].nic, p.end[PIPE_A].qp, p.now_ns);
		pipe_run(&p);
		assert_int_equal(pipe_event(&p, PIPE_B), cut && !whole ? EVENT_QP_FATAL : -1);
		assert_int_equal(qp_state(p.end[PIPE_B].qp), QPS_ERR);
		if (whole)
			assert_memory_equal(p.end[PIPE_B].mem, raw + FPDU_LENGTH_LEN + DDP_TAGGED_LEN, PAYLOAD);
		else
			assert_memory_equal(p.end[PIPE_B].mem, zeros, PAYLOAD);
		pipe_close(&p);
	}
	assert_in_range(len, PAYLOAD, FPDU);
}

TEST(a_lost_stream_is_an_event)
{
	static const uint8_t part[] = {0, 100, 1, 2, 3};

	pipe_open(&p, &(struct pipe_config){.seed = 1});
	pipe_inject(&p, PIPE_A, part, sizeof(part));
	nic_stream_finish(p.end[PIPE_A].nic, p.end[PIPE_A].qp, p.now_ns);
	pipe_run(&p);
	assert_int_equal(pipe_event(&p, PIPE_B), EVENT_QP_FATAL);
	assert_int_equal(qp_state(p.end[PIPE_B].qp), QPS_ERR);
	pipe_close(&p);

	pipe_open(&p, &(struct pipe_config){.seed = 1});
	pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_READ, .len = 100, .wr_id = 1});
	pipe_step(&p);
	pipe_reset(&p, PIPE_A);
	pipe_run(&p);
	pipe_expect(&p, PIPE_A, 1, WC_WR_FLUSH_ERR);
	assert_int_equal(pipe_event(&p, PIPE_A), EVENT_QP_FATAL);
	assert_false(p.end[PIPE_A].fin); /* nobody is there */
	pipe_close(&p);
}

TEST(a_destroyed_qp_leaves_nothing_and_is_counted)
{
	for (int steps = 0; steps < 30; steps++) {
		pipe_open(&p, &(struct pipe_config){.seed = 1, .piece_max = 50});
		pipe_post_recv(&p, PIPE_B, 1, 0, 60000);
		pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_SEND, .len = 50000, .wr_id = 1});
		pipe_post(&p, PIPE_A, &(struct pipe_wr){.opcode = WR_READ, .len = 50000, .wr_id = 2});
		for (int i = 0; i < steps; i++)
			pipe_step(&p);
		nic_qp_destroy(p.end[PIPE_B].nic, p.end[PIPE_B].qp);
		p.end[PIPE_B].qp = NULL;
		assert_int_equal(nic_streams_ended(p.end[PIPE_B].nic), 1);
		pipe_close(&p);
	}
}

/* A program cannot make a QP ready to send, but to change attributes is no mistake (rdma_accept does). */
TEST(states_that_a_program_may_ask_for)
{
	static const struct {
		enum qp_state from, to;
		int expect;
	} moves[] = {
		{QPS_INIT, QPS_INIT, 0},      {QPS_INIT, QPS_RTR, -EINVAL}, {QPS_INIT, QPS_RTS, -EINVAL},
		{QPS_INIT, QPS_SQD, -EINVAL}, {QPS_RTS, QPS_RTS, 0},        {QPS_RTS, QPS_SQD, 0},
		{QPS_RTS, QPS_INIT, -EINVAL}, {QPS_RTS, QPS_ERR, 0},        {QPS_RTS, QPS_RESET, 0},
		{QPS_INIT, QPS_SQE, -EINVAL},
	};

	for (size_t i = 0; i < sizeof(moves) / sizeof(*moves); i++) {
		pipe_open(&p, &(struct pipe_config){.seed = 1});
		if (moves[i].from == QPS_INIT) {
			assert_int_equal(move(PIPE_A, QPS_RESET), 0);
			assert_int_equal(move(PIPE_A, QPS_INIT), 0);
			assert_int_equal(nic_qp_stream(p.end[PIPE_A].qp), 0);
		}
		assert_int_equal(nic_qp_modify(p.end[PIPE_A].nic, p.end[PIPE_A].qp,
					       &(struct qp_attr){.port = 1, .access = 7}, QPA_PORT | QPA_ACCESS_FLAGS,
					       0),
				 0);
		assert_int_equal(qp_state(p.end[PIPE_A].qp), moves[i].from);
		assert_int_equal(move(PIPE_A, moves[i].to), moves[i].expect);
		assert_int_equal(qp_state(p.end[PIPE_A].qp), moves[i].expect ? moves[i].from : moves[i].to);
		pipe_close(&p);
	}
}

PIPE_TEST(other_types_have_no_engine)
{
	struct qp *qp;
	struct qp_init init =
		(struct qp_init){.pd = p.end[PIPE_A].pd, .send_cq = p.end[PIPE_A].cq, .recv_cq = p.end[PIPE_A].cq};

	init.type = QPT_UC;
	assert_int_equal(nic_qp_create(p.end[PIPE_A].nic, &init, &qp), -EINVAL);
	init.type = QPT_UD;
	assert_int_equal(nic_qp_create(p.end[PIPE_A].nic, &init, &qp), -EINVAL);
}
