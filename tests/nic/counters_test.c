/* SPDX-License-Identifier: BSD-2-Clause */
/* What a nic counts besides packets: requests by kind, errors by status, what sequence errors were, marks, CNPs. */
#include "veroce/veroce.h"

static const struct nic_counters *counted(const struct duo_qp *q)
{
	return nic_counters(q->host->nic);
}

static uint64_t send_errors(const struct duo_qp *q, enum wc_status status)
{
	return counted(q)->send_errors[wc_error_index(status)];
}

static struct sim start(bool veroce)
{
	return veroce ? veroce_default() : sim_default();
}

TEST(each_error_has_a_counter_of_its_own)
{
	static const enum wc_status all[] = {
		WC_LOC_LEN_ERR,   WC_LOC_QP_OP_ERR,     WC_LOC_PROT_ERR,    WC_WR_FLUSH_ERR,   WC_MW_BIND_ERR,
		WC_BAD_RESP_ERR,  WC_LOC_ACCESS_ERR,    WC_REM_INV_REQ_ERR, WC_REM_ACCESS_ERR, WC_REM_OP_ERR,
		WC_RETRY_EXC_ERR, WC_RNR_RETRY_EXC_ERR, WC_GENERAL_ERR};

	assert_int_equal(COUNT(all), WC_ERRORS);
	for (uint32_t i = 0; i < COUNT(all); i++)
		assert_int_equal(wc_error_index(all[i]), i);
}

/* A request's first packets, or all, come twice: it is counted when it is executed. */
TEST(requests_are_counted_by_kind_and_once)
{
	for (int veroce = 0; veroce < 2; veroce++) {
		struct sim s = start(veroce);
		struct duo_wr imm = duo_write_wr(5, s.abuf, 0, 3000, s.bbuf, 0);

		imm.opcode = WR_WRITE_IMM;
		assert_true(duo_recv(s.b, 50, s.bbuf, 0, 0));
		duo_rule(s.duo,
			 (struct duo_rule){.from = DUO_A, .opcode = DUO_ANY, .nth = DUO_ANY, .fate = DUO_DUPLICATE});
		duo_do(s.a, duo_write_wr(1, s.abuf, 0, 5000, s.bbuf, 0));
		duo_do(s.a, duo_write_wr(2, s.abuf, 0, 8, s.bbuf, 0));
		duo_do(s.a, duo_read_wr(3, s.abuf, 0, 5000, s.bbuf, 0));
		duo_do(s.a, duo_fetch_add_wr(4, s.abuf, 0, s.bbuf, 0, 1));
		duo_do(s.a, imm);
		duo_expect(s.duo, &s.b->received, 50, WC_SUCCESS);
		assert_int_equal(counted(s.b)->rx_write_requests, 3);
		assert_int_equal(counted(s.b)->rx_read_requests, 1);
		assert_int_equal(counted(s.b)->rx_atomic_requests, 1);
		assert_int_equal(counted(s.a)->rx_write_requests + counted(s.a)->rx_read_requests, 0);
		sim_end(&s);
	}
}

/* A WRITE whose last packet comes before the others ends when its turn comes. */
VEROCE_TEST(a_request_out_of_order_is_counted_once)
{
	duo_rule(s.duo, (struct duo_rule){.from = DUO_A, .opcode = OP_RC_WRITE_FIRST, .fate = DUO_HOLD, .n = 3});
	duo_do(s.a, duo_write_wr(1, s.abuf, 0, 5000, s.bbuf, 0));
	assert_true(counted(s.b)->rx_out_of_sequence);
	assert_int_equal(counted(s.b)->rx_write_requests, 1);
}

TEST(a_refused_request_is_an_error_of_either_end)
{
	for (int veroce = 0; veroce < 2; veroce++) {
		struct sim s = start(veroce);
		struct duo_wr bad = duo_write_wr(1, s.abuf, 0, 8, s.bbuf, 0);

		bad.rkey ^= 2;
		assert_true(duo_post(s.a, &bad));
		duo_must_post(s.a, duo_write_wr(2, s.abuf, 0, 8, s.bbuf, 0));
		duo_finish(s.a, 1, WC_REM_ACCESS_ERR);
		duo_expect(s.duo, &s.a->sent, 2, WC_WR_FLUSH_ERR);
		assert_int_equal(send_errors(s.a, WC_REM_ACCESS_ERR), 1);
		assert_int_equal(send_errors(s.a, WC_WR_FLUSH_ERR), 1);
		assert_int_equal(counted(s.a)->completion_errors, 2);
		assert_int_equal(counted(s.b)->rx_access_refused, 1);
		assert_int_equal(counted(s.b)->rx_write_requests, 0);
		sim_end(&s);
	}
}

TEST(errors_of_receives_are_counted_apart)
{
	struct sim s = sim_default();

	assert_true(duo_recv(s.b, 50, s.bbuf, 0, 8));
	assert_true(duo_recv(s.b, 51, s.bbuf, 0, 8));
	duo_must_post(s.a, duo_send_wr(1, s.abuf, 0, 9));
	duo_finish(s.a, 1, WC_REM_INV_REQ_ERR);
	duo_expect(s.duo, &s.b->received, 50, WC_LOC_LEN_ERR);
	duo_expect(s.duo, &s.b->received, 51, WC_WR_FLUSH_ERR);
	assert_int_equal(counted(s.b)->recv_errors[wc_error_index(WC_LOC_LEN_ERR)], 1);
	assert_int_equal(counted(s.b)->recv_errors[wc_error_index(WC_WR_FLUSH_ERR)], 1);
	assert_int_equal(send_errors(s.b, WC_LOC_LEN_ERR), 0);
	sim_end(&s);
}

TEST(a_gap_is_told_from_a_response_that_is_missed)
{
	struct sim s = sim_default();

	duo_drop(s.duo, DUO_A, OP_RC_WRITE_MIDDLE, 0);
	duo_do(s.a, duo_write_wr(1, s.abuf, 0, 5000, s.bbuf, 0));
	assert_int_equal(counted(s.a)->sequence_naks_received, 1);
	assert_int_equal(counted(s.a)->responses_missed, 0);
	duo_drop(s.duo, DUO_B, OP_RC_READ_RESPONSE_MIDDLE, 0);
	duo_do(s.a, duo_read_wr(2, s.abuf, 0, 5000, s.bbuf, 0));
	assert_int_equal(counted(s.a)->sequence_naks_received, 1);
	assert_int_equal(counted(s.a)->responses_missed, 1);
	sim_end(&s);
}

/* Without an algorithm that heeds them, CNPs are counted as ignored. */
TEST(marks_are_counted_and_the_cnps_that_nobody_heeds)
{
	for (int veroce = 0; veroce < 2; veroce++) {
		struct sim s = start(veroce);

		duo_rule(s.duo,
			 (struct duo_rule){.from = DUO_A, .opcode = OP_RC_WRITE_ONLY, .nth = 1, .fate = DUO_MARK_CE});
		for (uint64_t i = 0; i < 3; i++)
			duo_do(s.a, duo_write_wr(i, s.abuf, 0, 8, s.bbuf, 0));
		assert_int_equal(counted(s.b)->rx_marked, 1);
		assert_int_equal(counted(s.a)->rx_marked, 0);
		assert_int_equal(counted(s.a)->cnps_received, counted(s.b)->cnps_sent);
		assert_int_equal(counted(s.a)->cnps_ignored, counted(s.a)->cnps_received);
		assert_true(veroce || counted(s.a)->cnps_received == 1);
		sim_end(&s);
	}
}
