/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiver not ready: the NAK's timer code, the wait, the retry, and giving up (IBTA 9.7.5.2.8). */
#include "duo/sim.h"
#include "wire/psn.h"

/* Table 45, in units of 10 us. */
static const uint32_t table_10us[32] = {
	65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
	256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static size_t rnr_naks(const struct sim *s)
{
	size_t n = 0;

	for (uint8_t code = 0; code < 32; code++)
		n += duo_count_syndrome(s->duo, DUO_B, AETH_RNR_NAK | code);
	return n;
}

TEST(requester_waits_as_long_as_it_was_told)
{
	for (uint8_t code = 0; code < 32; code++) {
		struct sim s = SIM(o.min_rnr_timer = code);
		uint64_t told_ns, wait_ns = table_10us[code] * 10000ull;

		duo_must_post(s.a, duo_send_wr(1, s.abuf, 0, 100));
		duo_run_for(s.duo, 2 * DUO_LATENCY_NS + 1);
		assert_int_equal(duo_count_syndrome(s.duo, DUO_B, AETH_RNR_NAK | code), 1);
		assert_int_equal(rnr_naks(&s), 1);
		assert_int_equal(duo_packet(s.duo, DUO_B, OP_RC_ACK, 0)->bth.psn, s.a->opt.psn[DUO_A]);
		told_ns = duo_packet(s.duo, DUO_B, OP_RC_ACK, 0)->sent_ns + DUO_LATENCY_NS;
		assert_true(duo_recv(s.b, 2, s.bbuf, 0, 100)); /* ready at once, but it waits */
		duo_finish(s.a, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.b->received, 2, WC_SUCCESS);
		assert_memory_equal(s.abuf->p, s.bbuf->p, 100);
		assert_int_equal(duo_count(s.duo, DUO_A, DUO_ANY), 2);
		uint64_t again_ns = duo_packet(s.duo, DUO_A, DUO_ANY, 1)->sent_ns;

		assert_true(again_ns >= told_ns + wait_ns);
		assert_true(again_ns <= told_ns + wait_ns + wait_ns / 4 + 1000);
		assert_int_equal(nic_counters(s.a->host->nic)->rnrs_received, 1);
		assert_int_equal(nic_counters(s.b->host->nic)->rnrs_sent, 1);
		sim_end(&s);
	}
}

TEST(rnr_retry_is_exhausted_after_that_many)
{
	for (uint8_t retry = 0; retry < 7; retry++) {
		struct sim s = SIM(o.rnr_retry = retry);
		struct duo_wr w[] = {duo_send_wr(1, s.abuf, 0, 100), duo_send_wr(2, s.abuf, 0, 100)};

		assert_true(duo_recv(s.a, 9, s.abuf, 0, 100));
		assert_true(duo_post_chain(s.a, w, 2));
		duo_finish(s.a, 1, WC_RNR_RETRY_EXC_ERR);
		duo_expect(s.duo, &s.a->sent, 2, WC_WR_FLUSH_ERR);
		duo_expect(s.duo, &s.a->received, 9, WC_WR_FLUSH_ERR);
		assert_int_equal(rnr_naks(&s), retry + 1);
		assert_int_equal(qp_state(s.a->qp), QPS_ERR);
		assert_int_equal(qp_state(s.b->qp), QPS_RTS); /* the responder is not in error */
		sim_end(&s);
	}
}

SIM_TEST(rnr_retry_7_is_for_ever)
{
	duo_must_post(s.a, duo_send_wr(1, s.abuf, 0, 100));
	duo_run_for(s.duo, 1000000000);
	assert_true(rnr_naks(&s) > 1000);
	assert_int_equal(s.a->sent.n, 0);
	assert_int_equal(nic_counters(s.a->host->nic)->timeouts, 0);
	assert_true(duo_recv(s.b, 2, s.bbuf, 0, 100));
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.b->received, 2, WC_SUCCESS);
}

/* The two counters are separate: no RNR NAK is charged to retry_cnt. */
SIM_TEST(rnr_does_not_use_up_retry_cnt, o.retry_cnt = 0)
{
	duo_must_post(s.a, duo_send_wr(1, s.abuf, 0, 100));
	duo_run_for(s.duo, 10000000);
	assert_true(rnr_naks(&s) > 3);
	assert_true(duo_recv(s.b, 2, s.bbuf, 0, 100));
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.b->received, 2, WC_SUCCESS);
}

/* Each message has all its retries: the one before it uses none of them. */
SIM_TEST(progress_restores_the_counter, o.rnr_retry = 2)
{
	uint64_t wait_ns = table_10us[s.a->opt.min_rnr_timer] * 10000ull;

	for (uint64_t i = 0; i < 8; i++) {
		duo_must_post(s.a, duo_send_wr(i, s.abuf, 0, 100));
		duo_run_for(s.duo, wait_ns + wait_ns / 2 + 8 * DUO_LATENCY_NS);
		assert_int_equal(s.a->sent.n, i);
		assert_true(duo_recv(s.b, i, s.bbuf, 0, 100));
		duo_finish(s.a, i, WC_SUCCESS);
		duo_expect(s.duo, &s.b->received, i, WC_SUCCESS);
	}
	assert_int_equal(rnr_naks(&s), 16);
}

/* Messages behind the one that must wait also wait; messages before it complete. */
SIM_TEST(order_is_kept_around_a_wait)
{
	struct duo_wr w[] = {duo_write_wr(1, s.abuf, 0, 5000, s.bbuf, 0), duo_send_wr(2, s.abuf, 0, 3000),
			     duo_write_wr(3, s.abuf, 5000, 100, s.bbuf, 30000),
			     duo_read_wr(4, s.abuf, 40000, 100, s.bbuf, 30000)};
	uint8_t before[100];

	memcpy(before, s.bbuf->p + 30000, 100);
	assert_true(duo_post_chain(s.a, w, 4));
	duo_run_for(s.duo, 10 * DUO_LATENCY_NS);
	assert_int_equal(s.a->sent.n, 1);
	assert_memory_equal(s.bbuf->p + 30000, before, 100);
	assert_int_equal(rnr_naks(&s), 1);
	assert_int_equal(duo_count_syndrome(s.duo, DUO_B, AETH_NAK | NAK_PSN_SEQUENCE), 0);
	assert_true(duo_recv(s.b, 10, s.bbuf, 50000, 4000));
	duo_idle(s.duo);
	for (uint64_t i = 1; i <= 4; i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	duo_expect(s.duo, &s.b->received, 10, WC_SUCCESS);
	assert_memory_equal(s.bbuf->p + 50000, s.abuf->p, 3000);
	assert_memory_equal(s.abuf->p + 40000, s.abuf->p + 5000, 100);
}

/*
 * Only messages that take a receive WQE need one, and a WRITE with immediate only for its last
 * packet.
 */
TEST(who_needs_a_receive_wqe)
{
	static const struct {
		enum wr_opcode op;
		uint32_t len;
		bool needs;
	} rows[] = {
		{WR_SEND, 0, true},         {WR_SEND, 100, true},   {WR_SEND, 5000, true},    {WR_SEND_IMM, 0, true},
		{WR_SEND_IMM, 3000, true},  {WR_WRITE, 0, false},   {WR_WRITE, 5000, false},  {WR_WRITE_IMM, 0, true},
		{WR_WRITE_IMM, 5000, true}, {WR_READ, 5000, false}, {WR_FETCH_ADD, 8, false}, {WR_CMP_SWAP, 8, false},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = sim_default();
		struct duo_wr w = duo_write_wr(1, s.abuf, 0, rows[i].len, s.bbuf, 0);

		w.opcode = rows[i].op;
		assert_true(duo_post(s.a, &w));
		duo_run_for(s.duo, 20 * DUO_LATENCY_NS);
		assert_int_equal(rnr_naks(&s), rows[i].needs);
		assert_int_equal(s.a->sent.n, !rows[i].needs);
		if (rows[i].op == WR_WRITE_IMM && rows[i].len) {
			const struct duo_packet *nak = duo_packet(s.duo, DUO_B, OP_RC_ACK, 0);

			assert_int_equal(nak->bth.psn, psn_add(s.a->opt.psn[DUO_A], 4));
			assert_memory_equal(s.bbuf->p, s.abuf->p, 4096);
			assert_memory_not_equal(s.bbuf->p + 4096, s.abuf->p + 4096, 904);
		}
		if (rows[i].needs)
			assert_true(duo_recv(s.b, 2, s.bbuf, 0, 8192));
		duo_finish(s.a, 1, WC_SUCCESS);
		if (rows[i].needs)
			assert_int_equal(duo_expect(s.duo, &s.b->received, 2, WC_SUCCESS)->byte_len, rows[i].len);
		sim_end(&s);
	}
}

SIM_TEST(lost_rnr_nak_is_made_up_by_the_timer)
{
	duo_drop(s.duo, DUO_B, OP_RC_ACK, 0);
	duo_must_post(s.a, duo_send_wr(1, s.abuf, 0, 100));
	duo_run_for(s.duo, 4096ull << 15);
	assert_int_equal(nic_counters(s.a->host->nic)->timeouts, 1);
	assert_true(rnr_naks(&s) >= 2);
	assert_true(duo_recv(s.b, 2, s.bbuf, 0, 100));
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.b->received, 2, WC_SUCCESS);
}

/* While it waits a requester sends nothing, and posting more does not end the wait. */
SIM_TEST(waiting_is_silent, o.min_rnr_timer = 31)
{
	for (uint64_t i = 0; i < 10; i++) {
		duo_must_post(s.a, duo_send_wr(i, s.abuf, 0, 10));
		duo_run_for(s.duo, 10 * DUO_LATENCY_NS);
		assert_int_equal(duo_count(s.duo, DUO_A, DUO_ANY), 1);
		assert_true(duo_recv(s.b, i, s.bbuf, 0, 10));
	}
	duo_idle(s.duo);
	for (uint64_t i = 0; i < 10; i++) {
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
		duo_expect(s.duo, &s.b->received, i, WC_SUCCESS);
	}
}

/* An old sequence NAK that comes during the wait neither shortens nor loses it. */
TEST(late_nak_during_the_wait_is_harmless)
{
	static const uint8_t syndromes[] = {AETH_NAK | NAK_PSN_SEQUENCE, AETH_RNR_NAK | 1};

	for (size_t i = 0; i < COUNT(syndromes); i++) {
		struct sim s = sim_default();
		struct bth bth = {.opcode = OP_RC_ACK, .pkey = 0xffff, .dqpn = s.a->qpn, .psn = s.a->opt.psn[DUO_A]};
		uint64_t wait_ns = table_10us[s.a->opt.min_rnr_timer] * 10000ull;
		uint8_t ext[AETH_LEN];

		duo_must_post(s.a, duo_send_wr(1, s.abuf, 0, 100));
		duo_run_for(s.duo, 3 * DUO_LATENCY_NS);
		assert_int_equal(rnr_naks(&s), 1);
		aeth_encode(ext, &(struct aeth){.syndrome = syndromes[i], .msn = 0});
		duo_forge(s.duo, DUO_A, DUO_GID_IPV4, &bth, ext, sizeof(ext), NULL, 0);
		assert_true(duo_recv(s.b, 2, s.bbuf, 0, 100));
		duo_finish(s.a, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.b->received, 2, WC_SUCCESS);
		assert_true(duo_packet(s.duo, DUO_A, DUO_ANY, 1)->sent_ns >= DUO_START_NS + wait_ns);
		sim_end(&s);
	}
}
