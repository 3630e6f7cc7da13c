/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * veRoCE: responses that the peer never sent. A response without a request, or one that does not fit, is not
 * placed; in its turn it ends the connection (veRoCE 11).
 */
#include "support/test.h"
#include "veroce/forgery.h"

VEROCE_TEST(results_that_nobody_asked_for_are_dropped)
{
	static const uint8_t opcodes[] = {OP_RC_READ_RESPONSE_ONLY, OP_RC_READ_RESPONSE_FIRST, OP_RC_READ_RESPONSE_LAST,
					  OP_RC_ATOMIC_ACK};
	struct duo_rule *lost = mute(&s);

	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0)); /* is not one to be answered so */
	duo_run_for(s.duo, 1000);
	for (size_t i = 0; i < COUNT(opcodes); i++) {
		for (uint32_t msn = 0; msn < 3; msn++) {
			struct veroce_packet p = result(&s, opcodes[i], 0);
			uint64_t dropped = count_a(&s)->rx_dropped;

			p.payload_len = opcodes[i] == OP_RC_ATOMIC_ACK ? 0 : 8;
			p.msn = msn;
			veroce_forge(s.duo, DUO_A, &p, junk);
			assert_int_equal(count_a(&s)->rx_dropped, dropped + 1);
		}
	}
	expect_a_untouched(&s);
	assert_int_equal(s.a->sent.n, 0);
	lost->off = true;
	duo_finish(s.a, 1, WC_SUCCESS);
}

/* 7.7: a copy may mean that the acknowledgement was lost. Not after the ACK timer's time, but at once. */
VEROCE_TEST(copies_are_answered_at_once_in_both_spaces)
{
	struct veroce_packet q = request(&s, OP_RC_WRITE_ONLY, 8);
	struct veroce_packet r = result(&s, OP_RC_READ_RESPONSE_ONLY, 8);

	q.bth.psn = A_PSN - 1;
	veroce_forge(s.duo, DUO_B, &q, junk);
	duo_run_for(s.duo, 100);
	assert_int_equal(duo_count(s.duo, DUO_B, OP_RC_ACK), 1);
	r.bth.psn = A_PSN - 1;
	veroce_forge(s.duo, DUO_A, &r, junk);
	duo_run_for(s.duo, 100);
	assert_int_equal(duo_count(s.duo, DUO_A, OP_RC_ACK_RSP), 1);
	assert_int_equal(count_a(&s)->rx_duplicates, 1);
	expect_untouched(&s);
	expect_a_untouched(&s);
	expect_alive(&s, 1);
}

/* Out-of-order R12, in space R. */
VEROCE_TEST(results_beyond_the_window_leave_no_trace, v.rx_window = 128)
{
	struct duo_rule *lost = duo_drop(s.duo, DUO_B, DUO_ANY, DUO_ANY);

	duo_must_post(s.a, duo_read_wr(1, s.abuf, 0, 200 * MTU / 4, s.bbuf, 0));
	duo_run_for(s.duo, 10000);
	for (uint32_t ahead = 128; ahead < 1u << 23; ahead *= 2) {
		struct veroce_packet p = result(&s, OP_RC_READ_RESPONSE_MIDDLE, MTU);
		uint64_t beyond = count_a(&s)->rx_beyond_window;

		p.po = 1;
		p.bth.psn = psn_add(A_PSN, ahead);
		veroce_forge(s.duo, DUO_A, &p, junk);
		assert_int_equal(count_a(&s)->rx_beyond_window, beyond + 1);
	}
	expect_a_untouched(&s);
	lost->off = true;
	duo_finish(s.a, 1, WC_SUCCESS);
	assert_memory_equal(s.abuf->p, s.bbuf->p, 200 * MTU / 4);
}

/* A READ has an answer of two or three packets; these are none of them. */
TEST(results_that_do_not_fit_are_not_placed)
{
	static const struct {
		uint8_t opcode;
		uint32_t payload_len, msn, request_msn, po, len; /* of the READ; 0: 2500 */
	} rows[] = {
		{OP_RC_READ_RESPONSE_FIRST, MTU, 2, 1, 0, 0},
		{OP_RC_READ_RESPONSE_MIDDLE, MTU, 1, 2, 1, 0},   /* of another request */
		{OP_RC_READ_RESPONSE_MIDDLE, MTU, 1, 1, 0, 452}, /* starts nothing: there is one packet */
		{OP_RC_READ_RESPONSE_LAST, 452, 1, 1, 0, 0},     /* the place of the first */
		{OP_RC_READ_RESPONSE_MIDDLE, MTU, 1, 1, 3, 0},   /* behind the end */
		{OP_RC_READ_RESPONSE_MIDDLE, MTU, 1, 1, 0xffffff, 0},
		{OP_RC_READ_RESPONSE_MIDDLE, MTU - 4, 1, 1, 1, 0},
		{OP_RC_READ_RESPONSE_MIDDLE, 0, 1, 1, 1, 0},
		{OP_RC_READ_RESPONSE_LAST, MTU, 1, 1, 2, 0},     /* more than is left */
		{OP_RC_READ_RESPONSE_LAST, 0, 1, 1, 2, 2 * MTU}, /* nothing is left */
		{OP_RC_READ_RESPONSE_LAST, 8, 1, 1, 1, 0},
		{OP_RC_READ_RESPONSE_ONLY, 452, 1, 1, 0, 0},
		{OP_RC_ATOMIC_ACK, 0, 1, 1, 0, 0},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		uint32_t len = rows[i].len ? rows[i].len : 2500;
		struct sim s = veroce_default();
		struct duo_rule *lost = mute(&s);
		struct veroce_packet p = result(&s, rows[i].opcode, rows[i].payload_len);
		uint64_t dropped;

		duo_must_post(s.a, duo_read_wr(1, s.abuf, 0, len, s.bbuf, 0));
		duo_run_for(s.duo, 1000);
		dropped = count_a(&s)->rx_dropped;
		p.bth.psn = A_PSN + 1; /* before its turn, where a mistake is no error yet */
		p.msn = rows[i].msn;
		p.aeth.msn = rows[i].request_msn;
		p.po = rows[i].po;
		veroce_forge(s.duo, DUO_A, &p, junk);
		assert_int_equal(count_a(&s)->rx_dropped, dropped + 1);
		expect_a_untouched(&s);
		lost->off = true;
		duo_finish(s.a, 1, WC_SUCCESS);
		assert_memory_equal(s.abuf->p, s.bbuf->p, len);
		sim_end(&s);
	}
}

VEROCE_TEST(a_result_that_does_not_fit_in_its_turn_ends_the_connection)
{
	struct duo_rule *lost = mute(&s);
	struct veroce_packet p = result(&s, OP_RC_READ_RESPONSE_ONLY, 8);

	duo_must_post(s.a, duo_read_wr(1, s.abuf, 0, 2500, s.bbuf, 0));
	duo_run_for(s.duo, 1000);
	veroce_forge(s.duo, DUO_A, &p, junk);
	duo_finish(s.a, 1, WC_BAD_RESP_ERR);
	assert_int_equal(qp_state(s.a->qp), QPS_ERR);
	expect_a_untouched(&s);
	lost->off = true;
}

/*
 * Each fits its request, but not the responses before it: a NAK follows when its turn comes (veRoCE
 * 11).
 */
TEST(results_out_of_place_end_the_connection)
{
	static const struct {
		uint8_t opcode;
		bool early; /* the right first packet follows */
		uint32_t msn, po, payload_len;
	} rows[] = {
		{OP_RC_READ_RESPONSE_MIDDLE, false, 1, 1, MTU}, {OP_RC_READ_RESPONSE_LAST, false, 1, 2, 2500 - 2 * MTU},
		{OP_RC_READ_RESPONSE_ONLY, false, 2, 0, 100},   {OP_RC_READ_RESPONSE_LAST, true, 1, 2, 2500 - 2 * MTU},
		{OP_RC_READ_RESPONSE_ONLY, true, 2, 0, 100},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = veroce_default();
		struct duo_rule *lost = mute(&s);
		struct veroce_packet p = result(&s, rows[i].opcode, rows[i].payload_len);
		struct veroce_packet first = result(&s, OP_RC_READ_RESPONSE_FIRST, MTU);
		const struct duo_packet *nak;

		duo_must_post(s.a, duo_read_wr(1, s.abuf, 0, 2500, s.bbuf, 0));
		duo_must_post(s.a, duo_read_wr(2, s.abuf, 4000, 100, s.bbuf, 0));
		duo_run_for(s.duo, 1000);
		p.bth.psn += rows[i].early;
		p.msn = p.aeth.msn = rows[i].msn;
		p.po = rows[i].po;
		veroce_forge(s.duo, DUO_A, &p, junk);
		duo_run_for(s.duo, 10);
		assert_int_equal(s.a->sent.n != 0, !rows[i].early);
		if (rows[i].early)
			veroce_forge(s.duo, DUO_A, &first, junk);
		duo_finish(s.a, 1, WC_BAD_RESP_ERR);
		duo_expect(s.duo, &s.a->sent, 2, WC_WR_FLUSH_ERR);
		/* The peer gets a NAK, if its QP still receives. */
		nak = duo_packet(s.duo, DUO_A, OP_RC_ACK_RSP, duo_count(s.duo, DUO_A, OP_RC_ACK_RSP) - 1);
		assert_non_null(nak);
		assert_int_equal(nak->aeth.syndrome, AETH_NAK | NAK_INVALID_REQUEST);
		assert_int_equal(qp_state(s.a->qp), QPS_ERR);
		lost->off = true;
		sim_end(&s);
	}
}
