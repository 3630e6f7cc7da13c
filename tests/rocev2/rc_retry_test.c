/* SPDX-License-Identifier: BSD-2-Clause */
/* RC to a peer that is gone: retries, the error, the flush, and life after it (IBTA 9.7.6.1, 10.3.1). */
#include "duo/sim.h"

static void cut(struct sim *s)
{
	duo_drop(s->duo, DUO_A, DUO_ANY, DUO_ANY);
}

TEST(retries_are_counted_and_bounded_in_time)
{
	for (uint8_t retry = 0; retry < 8; retry++) {
		struct sim s = SIM(o.retry_cnt = retry, o.timeout = 10);
		uint64_t t_ns = 4096ull << s.a->opt.timeout;

		cut(&s);
		duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0));
		duo_idle(s.duo);
		const struct cqe *e = duo_expect(s.duo, &s.a->sent, 1, WC_RETRY_EXC_ERR);
		uint64_t took_ns = e->timestamp_ns - DUO_START_NS;

		assert_true(took_ns >= (retry + 1ull) * t_ns);
		assert_true(took_ns <= 4 * (retry + 1ull) * t_ns);
		assert_int_equal(duo_count(s.duo, DUO_A, DUO_ANY), retry + 1);
		assert_int_equal(nic_counters(s.a->host->nic)->timeouts, retry + 1);
		assert_int_equal(qp_state(s.a->qp), QPS_ERR);
		assert_int_equal(qp_state(s.b->qp), QPS_RTS);
		sim_end(&s);
	}
}

/* IBTA 10.3.1: all that follows is flushed, signaled or not, each queue in its order. */
SIM_TEST(everything_behind_is_flushed_in_order, o.retry_cnt = 1)
{
	cut(&s);
	for (uint64_t i = 0; i < 40; i++) {
		struct duo_wr w = i % 3 == 0   ? duo_write_wr(i, s.abuf, 0, 3000, s.bbuf, 0)
				  : i % 3 == 1 ? duo_read_wr(i, s.abuf, 0, 3000, s.bbuf, 0)
					       : duo_send_wr(i, s.abuf, 0, 3000);

		w.flags = i % 4 ? WR_SIGNALED : 0;
		assert_true(duo_post(s.a, &w));
		assert_true(duo_recv(s.a, 100 + i, s.abuf, 0, 10));
	}
	duo_idle(s.duo);
	for (uint64_t i = 0; i < 40; i++) {
		const struct cqe *e = duo_expect(s.duo, &s.a->sent, i, i ? WC_WR_FLUSH_ERR : WC_RETRY_EXC_ERR);

		assert_int_equal(e->qpn, s.a->qpn);
		duo_expect(s.duo, &s.a->received, 100 + i, WC_WR_FLUSH_ERR);
	}
}

SIM_TEST(what_is_posted_in_err_is_flushed_too)
{
	assert_int_equal(duo_qp_to_state(s.a, QPS_ERR), 0);
	for (uint64_t i = 0; i < 100; i++) {
		struct duo_wr w = duo_send_wr(i, s.abuf, 0, 10);

		w.flags = 0;
		assert_true(duo_post(s.a, &w));
		assert_true(duo_recv(s.a, i, s.abuf, 0, 10));
		duo_finish(s.a, i, WC_WR_FLUSH_ERR);
		duo_expect(s.duo, &s.a->received, i, WC_WR_FLUSH_ERR);
	}
	assert_int_equal(duo_count(s.duo, DUO_ANY, DUO_ANY), 0);
}

/* A message that came halfway holds a receive WQE: it is flushed, first, like the rest. */
SIM_TEST(half_received_message_is_flushed)
{
	duo_rule(s.duo, (struct duo_rule){.from = DUO_A, .opcode = OP_RC_SEND_LAST, .nth = DUO_ANY, .fate = DUO_DROP});
	for (uint64_t i = 0; i < 3; i++)
		assert_true(duo_recv(s.b, i, s.bbuf, 0, 5000));
	duo_must_post(s.a, duo_send_wr(1, s.abuf, 0, 4096));
	duo_run_for(s.duo, 10 * DUO_LATENCY_NS);
	assert_int_equal(s.b->received.n, 0);
	assert_int_equal(duo_qp_to_state(s.b, QPS_ERR), 0);
	duo_run_for(s.duo, 1);
	for (uint64_t i = 0; i < 3; i++)
		duo_expect(s.duo, &s.b->received, i, WC_WR_FLUSH_ERR);
	duo_finish(s.a, 1, WC_RETRY_EXC_ERR);
}

SIM_TEST(qp_in_err_neither_hears_nor_speaks)
{
	uint8_t before[5000];

	memcpy(before, s.bbuf->p, sizeof(before));
	assert_int_equal(duo_qp_to_state(s.b, QPS_ERR), 0);
	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 5000, s.bbuf, 0));
	duo_finish(s.a, 1, WC_RETRY_EXC_ERR);
	assert_int_equal(duo_count(s.duo, DUO_B, DUO_ANY), 0);
	assert_memory_equal(before, s.bbuf->p, sizeof(before));
	assert_true(nic_counters(s.b->host->nic)->rx_no_qp >= 5);
}

/* IBTA 9.7.6.1.3: timeout 0 means no timer at all. */
SIM_TEST(timeout_0_waits_for_ever, o.timeout = 0)
{
	struct duo_wr w[] = {duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0), duo_write_wr(2, s.abuf, 0, 100, s.bbuf, 0)};

	duo_drop(s.duo, DUO_A, DUO_ANY, 0);
	assert_true(duo_post(s.a, &w[0]));
	duo_idle(s.duo); /* with no deadline there is nothing to wait for */
	assert_int_equal(s.a->sent.n, 0);
	assert_int_equal(qp_state(s.a->qp), QPS_RTS);
	assert_int_equal(nic_deadline(s.a->host->nic), UINT64_MAX);
	assert_true(duo_post(s.a, &w[1])); /* the gap is seen now */
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
}

/* Each message loses as many packets in a row as the counter allows, and all of them arrive. */
SIM_TEST(progress_restores_the_counter, o.retry_cnt = 3, o.timeout = 5)
{
	for (int i = 0; i < 8; i++) {
		for (int k = 0; k < 3; k++)
			duo_drop(s.duo, DUO_A, DUO_ANY, 0);
		duo_must_post(s.a, duo_write_wr((uint64_t)i, s.abuf, 0, 100, s.bbuf, 0));
		duo_finish(s.a, (uint64_t)i, WC_SUCCESS);
		assert_int_equal(duo_count(s.duo, DUO_A, DUO_ANY), 4 * (i + 1));
		duo_pass_all(s.duo);
	}
}

/* Only the oldest fails with its own status; WRs acknowledged before succeed. */
SIM_TEST(what_was_acknowledged_is_a_success)
{
	struct duo_wr w[] = {duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0), duo_write_wr(2, s.abuf, 0, 100, s.bbuf, 0),
			     duo_write_wr(3, s.abuf, 0, 100, s.bbuf, 0)};

	duo_rule(s.duo, (struct duo_rule){.from = DUO_A, .opcode = DUO_ANY, .fate = DUO_PASS});
	cut(&s); /* all but the first packet */
	assert_true(duo_post_chain(s.a, w, 3));
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_RETRY_EXC_ERR);
	duo_expect(s.duo, &s.a->sent, 3, WC_WR_FLUSH_ERR);
}

static void reconnect(struct sim *s, uint32_t psn_a, uint32_t psn_b)
{
	struct duo_qp *each[] = {s->a, s->b};

	for (int i = 0; i < 2; i++) {
		each[i]->opt.psn[DUO_A] = psn_a;
		each[i]->opt.psn[DUO_B] = psn_b;
		assert_int_equal(duo_qp_to_state(each[i], QPS_RESET), 0);
		assert_int_equal(duo_qp_to_init(each[i]), 0);
	}
	assert_int_equal(duo_qp_to_rtr(s->a, s->b), 0);
	assert_int_equal(duo_qp_to_rtr(s->b, s->a), 0);
	assert_int_equal(duo_qp_to_rts(s->a), 0);
	assert_int_equal(duo_qp_to_rts(s->b), 0);
}

SIM_TEST(reset_qp_connects_again)
{
	for (uint32_t round = 0; round < 5; round++) {
		struct duo_wr w = duo_send_wr(round, s.abuf, 0, 5000);

		for (uint64_t i = 0; i < 3; i++)
			assert_true(duo_recv(s.b, i, s.bbuf, 0, 5000));
		duo_do(s.a, w);
		duo_expect(s.duo, &s.b->received, 0, WC_SUCCESS);
		cut(&s);
		assert_true(duo_post(s.a, &w));
		duo_finish(s.a, round, WC_RETRY_EXC_ERR);
		duo_pass_all(s.duo);
		reconnect(&s, 1000 * round, 77 + round);
	}
}

/* IBTA 10.3.1: RESET drops what is queued, without completions, those not polled included. */
SIM_TEST(reset_drops_everything_silently)
{
	s.a->manual = true;
	cut(&s);
	for (uint64_t i = 0; i < 10; i++) {
		struct duo_wr w = duo_send_wr(i, s.abuf, 0, 5000);

		assert_true(duo_post(s.a, &w));
		assert_true(duo_recv(s.a, i, s.abuf, 0, 5000));
	}
	duo_run_for(s.duo, 10 * DUO_LATENCY_NS);
	assert_int_equal(duo_qp_to_state(s.a, QPS_RESET), 0);
	duo_idle(s.duo);
	assert_null(cq_peek(s.a->send_cq, 0));
	assert_null(cq_peek(s.a->recv_cq, 0));
	assert_int_equal(nic_deadline(s.a->host->nic), UINT64_MAX);
	duo_pass_all(s.duo);
	reconnect(&s, 5, 6);
	s.a->manual = false;
	for (uint64_t i = 0; i < 64; i++) { /* all slots are free again */

		duo_must_post(s.a, duo_write_wr(i, s.abuf, 0, 10, s.bbuf, 0));
		assert_true(duo_recv(s.a, i, s.abuf, 0, 10));
	}
	duo_idle(s.duo);
	for (uint64_t i = 0; i < 64; i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
}

/* Destroyed in the middle of everything: the sanitizer and the leak count are the judges. */
TEST(qp_may_be_destroyed_at_any_time)
{
	for (uint64_t when = 0; when < 12; when++) {
		struct duo *d = duo_create(when, NULL);
		struct duo_options o = duo_options();
		struct duo_pair p = duo_connect(d, &o);
		struct duo_buf *a = duo_buf(&d->host[DUO_A], 20000, ALL_ACCESS);
		struct duo_buf *b = duo_buf(&d->host[DUO_B], 20000, ALL_ACCESS);
		struct duo_wr w[] = {duo_write_wr(1, a, 0, 9000, b, 0), duo_send_wr(2, a, 0, 5000),
				     duo_read_wr(3, a, 0, 9000, b, 0), duo_fetch_add_wr(4, a, 0, b, 0, 1)};

		d->burst = 3;
		d->batch = 2;
		nic_hold_acks(d->host[DUO_B].nic, true);
		if (when % 2)
			assert_true(duo_recv(p.b, 1, b, 0, 20000));
		assert_true(duo_post_chain(p.a, w, 4));
		if (when)
			duo_run_for(d, when * DUO_LATENCY_NS / 2);
		duo_destroy(d);
	}
}
