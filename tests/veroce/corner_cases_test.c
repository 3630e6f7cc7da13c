/* SPDX-License-Identifier: BSD-2-Clause */
/* Regressions: cases in which the engine hung, leaked, or accepted the impossible. */
#include "base/pool.h"
#include "nic/state.h"
#include "support/test.h"
#include "veroce/veroce.h"

/* A window that seven packets of a WRITE fill, so that not even a READ has room beside them. */
enum { A_PSN = 0x123456, MTU = 1024, FULL_WINDOW = 7590 };

/*
 * Two QPs a side, of which the first of A fills the window of the pair with WR 1; its packets are lost
 * until duo_pass_all().
 */
static struct sim start_full(struct duo_pair *other)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct sim s;
	struct duo_wr w;

	v.window_bytes = FULL_WINDOW;
	s = veroce_start_sim(&v, &o, 1);
	*other = duo_connect(s.duo, &o);
	duo_idle(s.duo);
	duo_drop(s.duo, DUO_A, OP_RC_WRITE_FIRST, DUO_ANY);
	duo_drop(s.duo, DUO_A, OP_RC_WRITE_MIDDLE, DUO_ANY);
	duo_drop(s.duo, DUO_A, OP_RC_WRITE_LAST, DUO_ANY);
	w = duo_write_wr(1, s.abuf, 0, 30000, s.bbuf, 0);
	assert_true(duo_post(s.a, &w));
	duo_run_for(s.duo, 5000);
	return s;
}

/* WR 1 of A, a WRITE of 100 bytes, is lost, as are all packets of A, until *lost is off. */
static struct sim start_lost(struct duo_rule **lost)
{
	struct sim s = veroce_default();

	*lost = duo_drop(s.duo, DUO_A, DUO_ANY, DUO_ANY);
	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0));
	duo_run_for(s.duo, 1000);
	return s;
}

/* An acknowledgement of the test's own making comes to A. */
static void answer(struct sim *s, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	struct veroce_packet p = {
		.bth = {.opcode = OP_RC_ACK, .dqpn = s->a->qpn, .psn = psn},
		.aeth = {.syndrome = syndrome, .msn = msn},
	};

	veroce_forge(s->duo, DUO_A, &p, NULL);
}

/* A QP that waits for room in the pair's window gets its turn when the QP that filled it is gone. */
TEST(room_that_a_dead_qp_leaves_is_used)
{
	struct duo_pair other;
	struct sim s = start_full(&other);

	duo_must_post(other.a, duo_write_wr(2, s.abuf, 0, 3000, s.bbuf, 32768));
	duo_run_for(s.duo, 5000);
	assert_int_equal(duo_qp_to_state(s.a, QPS_ERR), 0);
	duo_pass_all(s.duo);
	duo_finish(s.a, 1, WC_WR_FLUSH_ERR);
	duo_expect(s.duo, &other.a->sent, 2, WC_SUCCESS);
	sim_end(&s);
}

/* Without memory to remember a receive WQE a message waits; it does not keep the nic busy. */
VEROCE_TEST(a_receive_that_cannot_be_remembered_costs_no_endless_turn)
{
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0);
	struct pool *pool = &s.b->host->nic->tp.pool;
	void *taken[4096];
	size_t n = 0;

	w.opcode = WR_WRITE_IMM;
	w.imm_or_key = 7;
	assert_true(duo_post(s.a, &w));
	duo_must_post(s.a, duo_write_wr(2, s.abuf, 0, 20000, s.bbuf, 0));
	duo_run_for(s.duo, 50000);
	s.b->host->heap.gets_left = 0;
	while (n < COUNT(taken) && (taken[n] = pool_get(pool, 128)))
		n++;
	assert_true(duo_recv(s.b, 11, s.bbuf, 0, 100));
	duo_run_for(s.duo, 2000000);
	s.b->host->heap.gets_left = -1;
	while (n)
		pool_put(pool, taken[--n], 128);
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	duo_expect(s.duo, &s.b->received, 11, WC_SUCCESS);
}

/* An acknowledgement with an impossible message number leaves no state without a timer. */
TEST(contradictory_acknowledgements_hang_nothing)
{
	static const uint32_t msns[] = {0, 2, 0x7fffff};

	for (size_t i = 0; i < COUNT(msns); i++) {
		struct duo_rule *lost;
		struct sim s = start_lost(&lost);

		answer(&s, A_PSN, 0x1f, msns[i]);
		lost->off = true;
		duo_idle(s.duo);
		assert_int_equal(s.a->sent.n, 1);
		s.a->sent.taken = 1;
		sim_end(&s);
	}
}

/* A response to a READ that has not left yet is no response. */
TEST(an_answer_to_a_read_that_was_not_sent_is_dropped)
{
	static const uint8_t junk[100] = {0xee};
	struct duo_pair other;
	struct sim s = start_full(&other);
	struct veroce_packet p;
	uint64_t dropped;

	duo_must_post(other.a, duo_read_wr(2, s.abuf, 40000, 100, s.bbuf, 40000));
	duo_run_for(s.duo, 5000);
	assert_int_equal(duo_count(s.duo, DUO_A, OP_RC_READ_REQUEST), 0);
	p = (struct veroce_packet){
		.bth = {.opcode = OP_RC_READ_RESPONSE_ONLY, .dqpn = other.a->qpn, .psn = A_PSN},
		.aeth = {.syndrome = 0x1f, .msn = 1},
		.msn = 1,
		.payload_len = 100,
	};
	dropped = nic_counters(s.a->host->nic)->rx_dropped;
	veroce_forge(s.duo, DUO_A, &p, junk);
	duo_run_for(s.duo, 1000);
	assert_int_equal(other.a->sent.n, 0);
	assert_int_equal(nic_counters(s.a->host->nic)->rx_dropped, dropped + 1);
	duo_pass_all(s.duo);
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &other.a->sent, 2, WC_SUCCESS);
	assert_memory_equal(s.abuf->p + 40000, s.bbuf->p + 40000, 100);
	sim_end(&s);
}

/* The watchdog repeats requests that were received, not those that have not been sent. */
TEST(a_read_that_was_not_sent_is_not_asked_for_again)
{
	struct duo_pair other;
	struct sim s = start_full(&other);

	duo_must_post(other.a, duo_fetch_add_wr(2, s.abuf, 40000, s.bbuf, 40000, 1));
	assert_int_equal(duo_count(s.duo, DUO_A, OP_RC_FETCH_ADD), 0);
	duo_run_for(s.duo, 3000000);
	for (size_t i = 0; duo_packet(s.duo, DUO_A, OP_RC_FETCH_ADD, i); i++)
		assert_int_equal(duo_packet(s.duo, DUO_A, OP_RC_FETCH_ADD, i)->bth.retrans, i > 0);
	duo_pass_all(s.duo);
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &other.a->sent, 2, WC_SUCCESS);
	sim_end(&s);
}

/* Strong order: kept packets are freed also when their message had to wait for a receive WQE. */
VEROCE_TEST(kept_packets_that_waited_for_a_receive_are_given_back, v.order = ORDER_STRONG)
{
	size_t lent;
	struct pool *pool = &s.b->host->nic->tp.pool;
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, 2 * MTU, s.bbuf, 0);

	assert_true(duo_post(s.a, &w)); /* so that state which lasts is there */
	duo_finish(s.a, 1, WC_SUCCESS);
	lent = pool_lent_bytes(pool);
	duo_drop(s.duo, DUO_A, OP_RC_WRITE_FIRST, 0);
	w.wr_id = 2;
	w.opcode = WR_WRITE_IMM;
	assert_true(duo_post(s.a, &w)); /* its last comes first */
	duo_run_for(s.duo, 2000000);
	assert_true(duo_recv(s.b, 11, s.bbuf, 0, 10));
	duo_finish(s.a, 2, WC_SUCCESS);
	duo_expect(s.duo, &s.b->received, 11, WC_SUCCESS);
	assert_int_equal(pool_lent_bytes(pool), lent);
}

/* A late response does not revive a READ that has failed. */
VEROCE_TEST(a_read_that_failed_stays_failed, o.timeout = 10, o.retry_cnt = 1)
{
	static const uint8_t junk[8] = {0xee};
	struct veroce_packet p;
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0);
	struct duo_rule *lost = duo_drop(s.duo, DUO_A, DUO_ANY, DUO_ANY);

	assert_true(duo_post(s.a, &w));
	duo_must_post(s.a, duo_read_wr(2, s.abuf, 1000, 100, s.bbuf, 1000));
	duo_run_for(s.duo, 1000);
	p = (struct veroce_packet){
		.bth = {.opcode = OP_RC_READ_RESPONSE_ONLY, .dqpn = s.a->qpn, .psn = A_PSN},
		.aeth = {.syndrome = 0x1f, .msn = 2},
		.msn = 1,
		.payload_len = 8, /* not as many as were asked for */
	};
	veroce_forge(s.duo, DUO_A, &p, junk);
	duo_drop(s.duo, DUO_A, OP_RC_ACK_RSP, 0); /* so that B gets none of it */
	lost->off = true;
	duo_idle(s.duo);
	w.wr_id = 3;
	assert_true(duo_post(s.a, &w));
	duo_idle(s.duo);
	assert_int_equal(s.a->sent.n, 3);
	assert_int_equal(s.a->sent.e[0].status, WC_SUCCESS);
	assert_int_equal(s.a->sent.e[1].status, WC_BAD_RESP_ERR);
	assert_int_equal(s.a->sent.e[2].status, WC_WR_FLUSH_ERR);
	s.a->sent.taken = 3;
}

/* IBTA 9.7.5.1.1: 0x40 .. 0x5f is no syndrome at all. */
TEST(reserved_syndromes_acknowledge_nothing)
{
	struct duo_rule *lost;
	struct sim s = start_lost(&lost);

	/* A NAK of the second would be an acknowledgement of the first. */
	duo_must_post(s.a, duo_write_wr(2, s.abuf, 0, 100, s.bbuf, 200));
	duo_run_for(s.duo, 1000);
	for (uint32_t code = 0; code < 32; code++) {
		answer(&s, A_PSN + 1, (uint8_t)(0x40 + code), 1);
		duo_run_for(s.duo, 10);
		assert_int_equal(s.a->sent.n, 0);
		assert_int_equal(nic_counters(s.a->host->nic)->rx_dropped, code + 1);
	}
	lost->off = true;
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	sim_end(&s);
}

/* A packet that was not sent cannot be refused: an error NAK for the next PSN is dropped. */
TEST(naks_of_what_was_not_sent_are_dropped)
{
	struct duo_rule *lost;
	struct sim s = start_lost(&lost);

	answer(&s, A_PSN + 1, 0x62, 1);
	duo_run_for(s.duo, 1000);
	assert_int_equal(s.a->sent.n, 0); /* nor is it an acknowledgement */
	lost->off = true;
	duo_finish(s.a, 1, WC_SUCCESS);
	sim_end(&s);
}

/*
 * The READ is complete, but its responder found the region gone before it knew that, and ended. This QP must
 * learn it, though none of its requests has failed.
 */
VEROCE_TEST(a_nak_for_what_is_complete_ends_the_connection)
{
	duo_do(s.a, duo_read_wr(1, s.abuf, 0, 3 * MTU, s.bbuf, 0));
	answer(&s, A_PSN, 0x62, 0);
	duo_idle(s.duo);
	assert_int_equal(qp_state(s.a->qp), QPS_ERR);
	assert_true(duo_had_event(s.a->host, EVENT_QP_FATAL, s.a));
	duo_must_post(s.a, duo_write_wr(2, s.abuf, 0, 100, s.bbuf, 0));
	duo_finish(s.a, 2, WC_WR_FLUSH_ERR);
}

/* A receive that is posted before the RNR NAK has left makes the NAK unnecessary. */
VEROCE_TEST(an_rnr_nak_that_was_overtaken_is_not_sent)
{
	struct veroce_packet p = {
		.bth = {.opcode = OP_RC_WRITE_ONLY_IMM, .dqpn = s.b->qpn, .psn = A_PSN},
		.msn = 1,
	};

	veroce_forge(s.duo, DUO_B, &p, NULL);
	assert_true(duo_recv(s.b, 11, s.bbuf, 0, 10));
	duo_run_for(s.duo, 100000);
	duo_expect(s.duo, &s.b->received, 11, WC_SUCCESS);
	assert_int_equal(nic_counters(s.b->host->nic)->rnrs_sent, 0);
}
