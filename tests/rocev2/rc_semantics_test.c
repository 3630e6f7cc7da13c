/* SPDX-License-Identifier: BSD-2-Clause */
/* RC operations as programs see them: immediate data, invalidation, events, fences, signals. */
#include "duo/sim.h"
#include "wire/psn.h"

TEST(immediate_reaches_the_receiver)
{
	static const struct {
		enum wr_opcode op;
		uint32_t len;
		uint8_t wire_op;
	} rows[] = {
		{WR_SEND_IMM, 0, OP_RC_SEND_ONLY_IMM},     {WR_SEND_IMM, 100, OP_RC_SEND_ONLY_IMM},
		{WR_SEND_IMM, 5000, OP_RC_SEND_LAST_IMM},  {WR_WRITE_IMM, 0, OP_RC_WRITE_ONLY_IMM},
		{WR_WRITE_IMM, 100, OP_RC_WRITE_ONLY_IMM}, {WR_WRITE_IMM, 5000, OP_RC_WRITE_LAST_IMM},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = sim_default();
		struct duo_wr w = duo_write_wr(1, s.abuf, 0, rows[i].len, s.bbuf, 0);
		bool write = rows[i].op == WR_WRITE_IMM;

		w.opcode = rows[i].op;
		w.imm_or_key = 0x12345678;
		/* WRITE with immediate takes a receive WQE but none of its memory. */
		if (write)
			assert_true(duo_post_recv(s.b, 2, NULL, 0));
		else
			assert_true(duo_recv(s.b, 2, s.bbuf, 0, 8000));
		assert_true(duo_post(s.a, &w));
		duo_idle(s.duo);
		assert_int_equal(duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS)->opcode, write ? WC_WRITE : WC_SEND);
		const struct cqe *e = duo_expect(s.duo, &s.b->received, 2, WC_SUCCESS);

		assert_int_equal(e->opcode, write ? WC_RECV_RDMA_WITH_IMM : WC_RECV);
		assert_int_equal(e->flags, WC_WITH_IMM);
		assert_int_equal(e->imm_or_key, 0x12345678);
		assert_int_equal(e->byte_len, rows[i].len);
		assert_memory_equal(s.abuf->p, s.bbuf->p, rows[i].len);
		assert_int_equal(duo_count(s.duo, DUO_A, rows[i].wire_op), 1);
		sim_end(&s);
	}
}

/* IBTA 9.4.1.1.3: the key that the sender names stops working for remote access. */
TEST(send_with_invalidate_revokes_the_key)
{
	for (uint32_t len = 100; len <= 3000; len += 2900) {
		struct sim s = sim_default();
		struct duo_buf *victim = duo_buf(s.b->host, 100, ALL_ACCESS);
		struct duo_wr w = duo_send_wr(1, s.abuf, 0, len);
		uint8_t before[100];

		memcpy(before, victim->p, 100);
		w.opcode = WR_SEND_INV;
		w.imm_or_key = victim->mr->key;
		assert_true(duo_recv(s.b, 3, s.bbuf, 0, 4000));
		duo_do(s.a, w);
		const struct cqe *e = duo_expect(s.duo, &s.b->received, 3, WC_SUCCESS);

		assert_int_equal(e->flags, WC_WITH_INV);
		assert_int_equal(e->imm_or_key, victim->mr->key);
		assert_int_equal(e->byte_len, len);
		duo_must_post(s.a, duo_write_wr(2, s.abuf, 0, 10, victim, 0));
		duo_finish(s.a, 2, WC_REM_ACCESS_ERR);
		assert_memory_equal(before, victim->p, 100);
		sim_end(&s);
	}
}

/*
 * IBTA 9.9.3, class J: the receive and its QP fail, without a NAK. The message is acknowledged once, behind the answer
 * to a READ before it; what comes later gets no answer.
 */
TEST(invalidating_an_unknown_key_fails_at_the_receiver)
{
	for (uint32_t len = 100; len <= 3000; len += 2900) {
		struct sim s = sim_default();
		struct duo_wr r = duo_read_wr(1, s.abuf, 32768, 3000, s.bbuf, 32768),
			      w = duo_send_wr(2, s.abuf, 0, len), after = duo_send_wr(3, s.abuf, 0, 100);

		w.opcode = WR_SEND_INV;
		w.imm_or_key = 0x77777777;
		assert_true(duo_recv(s.b, 4, s.bbuf, 0, 4000));
		assert_true(duo_recv(s.b, 5, s.bbuf, 0, 4000));
		assert_true(duo_post(s.a, &r));
		assert_true(duo_post(s.a, &w));
		duo_finish(s.a, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		duo_expect(s.duo, &s.b->received, 4, WC_REM_INV_REQ_ERR);
		duo_expect(s.duo, &s.b->received, 5, WC_WR_FLUSH_ERR);
		assert_memory_equal(s.abuf->p, s.bbuf->p, len);
		assert_int_equal(nic_counters(s.b->host->nic)->naks_sent, 0);
		assert_int_equal(nic_counters(s.b->host->nic)->acks_sent, 1);
		assert_int_equal(duo_count(s.duo, DUO_B, OP_RC_ACK), 1);
		assert_int_equal(qp_state(s.b->qp), QPS_ERR);
		assert_true(duo_had_event(s.b->host, EVENT_QP_ACCESS_ERR, s.b));
		assert_int_equal(qp_state(s.a->qp), QPS_RTS);
		assert_true(duo_post(s.a, &after));
		duo_finish(s.a, 3, WC_RETRY_EXC_ERR);
		sim_end(&s);
	}
}

/* The solicited event bit wakes a program that asked for solicited events only. */
TEST(solicited_event_wakes_who_asked_for_it)
{
	static const struct {
		enum wr_opcode op;
		bool solicited, armed_solicited, event;
	} rows[] = {
		{WR_SEND, false, true, false},   {WR_SEND, true, true, true},      {WR_SEND, false, false, true},
		{WR_SEND_IMM, true, true, true}, {WR_WRITE_IMM, true, true, true}, {WR_WRITE_IMM, false, true, false},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = sim_default();
		struct duo_wr w = duo_write_wr(1, s.abuf, 0, 3000, s.bbuf, 0);

		w.opcode = rows[i].op;
		if (rows[i].solicited)
			w.flags |= WR_SOLICITED;
		cq_arm(s.b->recv_cq, rows[i].armed_solicited);
		assert_true(duo_recv(s.b, 2, s.bbuf, 0, 4000));
		duo_do(s.a, w);
		duo_expect(s.duo, &s.b->received, 2, WC_SUCCESS);
		assert_int_equal(s.b->host->cq_event_count, rows[i].event);
		if (rows[i].event)
			assert_ptr_equal(s.b->host->cq_events[0], s.b->recv_cq);
		sim_end(&s);
	}
}

/* A failed completion is always worth an event; one request is one event. */
SIM_TEST(errors_wake_a_solicited_request)
{
	for (uint64_t i = 0; i < 3; i++)
		assert_true(duo_recv(s.b, i, s.bbuf, 0, 4000));
	cq_arm(s.b->recv_cq, true);
	assert_int_equal(duo_qp_to_state(s.b, QPS_ERR), 0);
	duo_idle(s.duo);
	for (uint64_t i = 0; i < 3; i++)
		duo_expect(s.duo, &s.b->received, i, WC_WR_FLUSH_ERR);
	assert_int_equal(s.b->host->cq_event_count, 1);
}

/* IBTA 10.8.3.3: a fenced WR waits for the READs and atomics before it; other WRs do not wait. */
TEST(fence_waits_for_reads_and_atomics)
{
	for (int atomic = 0; atomic < 2; atomic++) {
		for (int fenced = 0; fenced < 2; fenced++) {
			struct sim s = sim_default();
			struct duo_wr w[] = {
				atomic ? duo_fetch_add_wr(1, s.abuf, 0, s.bbuf, 0, 1)
				       : duo_read_wr(1, s.abuf, 0, 3000, s.bbuf, 0),
				duo_send_wr(2, s.abuf, 0, 3000),
			};
			uint8_t want[8];

			memcpy(want, s.bbuf->p, 8);
			w[1].flags |= fenced ? WR_FENCE : 0;
			assert_true(duo_recv(s.b, 3, s.bbuf, 40000, 3000));
			assert_true(duo_post_chain(s.a, w, 2));
			duo_finish(s.a, 1, WC_SUCCESS);
			duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
			duo_expect(s.duo, &s.b->received, 3, WC_SUCCESS);
			uint64_t sent_ns = duo_packet(s.duo, DUO_A, OP_RC_SEND_FIRST, 0)->sent_ns;

			if (fenced) {
				/* The SEND has the bytes that the READ brought. */
				assert_memory_equal(s.bbuf->p + 40000, want, 8);
				assert_true(sent_ns >= DUO_START_NS + 2 * DUO_LATENCY_NS);
			} else {
				assert_true(sent_ns == DUO_START_NS);
			}
			sim_end(&s);
		}
	}
}

SIM_TEST(fence_holds_when_the_response_is_lost)
{
	struct duo_wr w[] = {duo_read_wr(1, s.abuf, 0, 3000, s.bbuf, 0),
			     duo_write_wr(2, s.abuf, 0, 3000, s.bbuf, 40000)};

	w[1].flags |= WR_FENCE;
	duo_drop(s.duo, DUO_B, DUO_ANY, 2);
	assert_true(duo_post_chain(s.a, w, 2));
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	assert_memory_equal(s.bbuf->p, s.bbuf->p + 40000, 3000);
}

/* The next signaled completion covers them; their slots come back with it. */
SIM_TEST(unsignaled_requests_complete_in_silence)
{
	for (uint64_t round = 0; round < 10; round++) {
		for (uint64_t i = 0; i < 64; i++) {
			struct duo_wr w = i % 2 ? duo_write_wr(i, s.abuf, 0, 100, s.bbuf, 0)
						: duo_read_wr(i, s.abuf, 200, 100, s.bbuf, 200);

			w.flags = i == 63 ? WR_SIGNALED : 0;
			assert_true(duo_post(s.a, &w));
		}
		struct duo_wr w = duo_write_wr(99, s.abuf, 0, 100, s.bbuf, 0);

		assert_false(duo_post(s.a, &w)); /* full until the completion is polled */
		duo_finish(s.a, 63, WC_SUCCESS);
	}
}

SIM_TEST(failed_request_reports_though_unsignaled)
{
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0);

	w.flags = 0;
	w.rkey ^= 1;
	assert_true(duo_post(s.a, &w));
	duo_finish(s.a, 1, WC_REM_ACCESS_ERR);
}

SIM_TEST(sq_sig_all_signals_all, o.sq_sig_all = true)
{
	for (uint64_t i = 0; i < 5; i++) {
		struct duo_wr w = duo_write_wr(i, s.abuf, 0, 100, s.bbuf, 0);

		w.flags = 0;
		assert_true(duo_post(s.a, &w));
	}
	duo_idle(s.duo);
	for (uint64_t i = 0; i < 5; i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
}

/* Completions come in the order posted, though a WRITE is done before the READ ahead of it. */
SIM_TEST(completions_keep_the_order_of_posting)
{
	struct prng r;

	prng_init(&r, 4);
	for (uint64_t i = 0; i < 60; i++) {
		uint32_t len = (uint32_t)prng_below(&r, 9000);
		struct duo_wr w[] = {
			duo_write_wr(i, s.abuf, 0, len, s.bbuf, 0), duo_read_wr(i, s.abuf, 20000, len, s.bbuf, 0),
			duo_fetch_add_wr(i, s.abuf, 40000, s.bbuf, 40000, 1), duo_send_wr(i, s.abuf, 0, len)};

		assert_true(duo_recv(s.b, i, s.bbuf, 0, 9000));
		assert_true(duo_post(s.a, &w[prng_below(&r, 4)]));
	}
	duo_idle(s.duo);
	for (uint64_t i = 0; i < 60; i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	uint64_t last = 0;

	for (size_t i = 0; i < s.b->received.n; i++) {
		assert_true(s.b->received.e[i].wr_id == i);
		assert_true(s.b->received.e[i].timestamp_ns >= last);
		last = s.b->received.e[i].timestamp_ns;
	}
	s.b->received.taken = s.b->received.n;
}

/* A receive completion promises that all WRITEs before the SEND are in memory (IBTA o9-20). */
TEST(write_before_send_is_there_when_the_send_is)
{
	for (int lost = 0; lost < 8; lost++) {
		struct sim s = sim_default();
		struct duo_wr w[] = {duo_write_wr(1, s.abuf, 0, 5000, s.bbuf, 0), duo_send_wr(2, s.abuf, 0, 10)};

		duo_drop(s.duo, DUO_A, DUO_ANY, lost);
		assert_true(duo_recv(s.b, 3, s.bbuf, 40000, 10));
		assert_true(duo_post_chain(s.a, w, 2));
		duo_wait(s.duo, &s.b->received, 1);
		assert_memory_equal(s.abuf->p, s.bbuf->p, 5000);
		duo_finish(s.a, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		duo_expect(s.duo, &s.b->received, 3, WC_SUCCESS);
		sim_end(&s);
	}
}

/* Held ACKs travel with data going back, or alone after the delay; then nothing is left waiting. */
SIM_TEST(held_ack_waits_no_longer_than_told)
{
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0);

	nic_hold_acks(s.b->host->nic, true);
	assert_true(duo_post(s.a, &w));
	duo_idle(s.duo);
	uint64_t at_ns = duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS)->timestamp_ns;

	assert_int_equal(at_ns, DUO_START_NS + 2 * DUO_LATENCY_NS + 4000);

	uint64_t start_ns = s.duo->now_ns;

	assert_true(duo_post(s.a, &w));
	duo_run_for(s.duo, DUO_LATENCY_NS + 500);
	duo_must_post(s.b, duo_write_wr(2, s.bbuf, 200, 100, s.abuf, 200));
	duo_idle(s.duo);
	at_ns = duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS)->timestamp_ns;
	assert_true(at_ns <= start_ns + 2 * DUO_LATENCY_NS + 500);
	duo_expect(s.duo, &s.b->sent, 2, WC_SUCCESS);
}
