/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * veRoCE: acknowledgements that the peer never sent. A packet that was not sent or did not arrive is not
 * completed, and one that is not outstanding is not sent again (veRoCE 11).
 */
#include "support/test.h"
#include "veroce/forgery.h"
#include "transport/veroce/work.h"

VEROCE_TEST(acknowledgements_of_what_was_not_sent_are_dropped)
{
	static const uint32_t psns[] = {A_PSN + 5, A_PSN + 6, A_PSN + 128, A_PSN + (1u << 23) - 2};
	static const uint8_t opcodes[] = {OP_RC_ACK, OP_RC_SACK};
	struct duo_rule *lost = post_two(&s);
	uint64_t dropped = count_a(&s)->rx_dropped;

	for (size_t i = 0; i < COUNT(psns) * COUNT(opcodes); i++) {
		struct veroce_packet p = answer(&s, opcodes[i % 2], psn_add(psns[i / 2], 0), 0x1f, 2);
		uint8_t block[SACKETH_LEN];

		sacketh_encode(block, &(struct sacketh){.valid_len = 128,
							.start_psn = psns[i / 2] + 1,
							.bits = {UINT64_MAX, UINT64_MAX}});
		p.sacks = block;
		p.sack_count = 1;
		veroce_forge(s.duo, DUO_A, &p, NULL);
		assert_int_equal(count_a(&s)->rx_dropped, dropped + i + 1);
	}
	assert_int_equal(s.a->sent.n, 0);
	lost->off = true;
	expect_both(&s);
}

VEROCE_TEST(old_acknowledgements_confirm_nothing)
{
	struct duo_rule *lost = post_two(&s);

	for (uint32_t back = 1; back < 1u << 23; back *= 3) {
		struct veroce_packet p = answer(&s, OP_RC_ACK, psn_add(A_PSN, -back), 0x1f, back == 1 ? 0 : 2);

		veroce_forge(s.duo, DUO_A, &p, NULL);
	}
	duo_run_for(s.duo, 1000);
	assert_int_equal(s.a->sent.n, 0);
	lost->off = true;
	expect_both(&s);
}

/* aMSN completes nothing whose packets are not acknowledged, and nothing that was not sent. */
VEROCE_TEST(message_numbers_alone_complete_nothing)
{
	static const uint32_t msns[] = {1, 2, 3, 1000, 0x7fffff, 0x800000, 0xffffff};
	struct duo_rule *lost = post_two(&s);

	for (size_t i = 0; i < COUNT(msns); i++) {
		struct veroce_packet p = answer(&s, OP_RC_ACK, psn_add(A_PSN, -1), 0x1f, msns[i]);

		veroce_forge(s.duo, DUO_A, &p, NULL);
		assert_int_equal(s.a->sent.n, 0);
	}
	duo_run_for(s.duo, 1000);
	assert_int_equal(s.a->sent.n, 0);
	lost->off = true;
	expect_both(&s);
}

/*
 * Bits of packets that are not outstanding are ignored; the others save a copy and complete
 * nothing.
 */
VEROCE_TEST(bitmaps_beyond_the_window_mean_nothing)
{
	static const uint32_t starts[] = {5, 128, 4096, 65536, 0x7fff80, 0x800000, 0xffff00};
	struct duo_rule *lost = post_two(&s);
	uint64_t copies = veroce_retransmits(s.duo);

	for (size_t i = 0; i < COUNT(starts); i++) {
		struct veroce_packet p = answer(&s, OP_RC_SACK, psn_add(A_PSN, -1), 0x1f, 0);
		uint8_t blocks[VEROCE_SACKS_MAX * SACKETH_LEN];

		for (int b = 0; b < VEROCE_SACKS_MAX; b++)
			sacketh_encode(blocks + b * SACKETH_LEN,
				       &(struct sacketh){.valid_len = (uint8_t)(128 + b),
							 .start_psn = psn_add(A_PSN, starts[i]),
							 .bits = {UINT64_MAX, UINT64_MAX}});
		p.sacks = blocks;
		p.sack_count = VEROCE_SACKS_MAX;
		veroce_forge(s.duo, DUO_A, &p, NULL);
		duo_run_for(s.duo, 100);
	}
	assert_int_equal(s.a->sent.n, 0);
	assert_int_equal(veroce_retransmits(s.duo), copies);
	lost->off = true;
	expect_both(&s);
}

/* Packets that a forged SACK acknowledges must still be acknowledged in order. */
VEROCE_TEST(a_lying_bitmap_completes_nothing, o.timeout = 8, o.retry_cnt = 2)
{
	uint8_t block[SACKETH_LEN];
	struct duo_rule *lost = post_two(&s);
	struct veroce_packet p = answer(&s, OP_RC_SACK, psn_add(A_PSN, -1), 0x1f, 0);

	sacketh_encode(block, &(struct sacketh){.valid_len = 5, .start_psn = A_PSN, .bits = {0x1f}});
	p.sacks = block;
	p.sack_count = 1;
	veroce_forge(s.duo, DUO_A, &p, NULL);
	duo_run_for(s.duo, 10000);
	assert_int_equal(s.a->sent.n, 0);
	lost->off = true;
	duo_idle(s.duo);
	/* They are sent again or fail; they never complete with success. */
	assert_int_equal(s.a->sent.n, 2);
	if (s.a->sent.e[0].status == WC_SUCCESS)
		assert_memory_equal(s.bbuf->p, s.abuf->p, 4 * MTU);
	s.a->sent.taken = 2;
	s.b->received.taken = s.b->received.n;
	duo_qp_to_state(s.b, QPS_ERR);
	duo_idle(s.duo);
	s.b->received.taken = s.b->received.n;
}

TEST(naks_end_the_wqe_that_they_name)
{
	static const struct {
		uint8_t syndrome;
		uint32_t psn;
		enum wc_status status[2];
	} rows[] = {
		{0x61, A_PSN + 2, {WC_REM_INV_REQ_ERR, WC_WR_FLUSH_ERR}},
		{0x62, A_PSN, {WC_REM_ACCESS_ERR, WC_WR_FLUSH_ERR}},
		{0x63, A_PSN + 3, {WC_REM_OP_ERR, WC_WR_FLUSH_ERR}},
		{0xe2, A_PSN, {WC_REM_ACCESS_ERR, WC_WR_FLUSH_ERR}}, /* bit 7 is ignored */
		{0x64, A_PSN, {WC_BAD_RESP_ERR, WC_WR_FLUSH_ERR}},
		{0x7f, A_PSN, {WC_BAD_RESP_ERR, WC_WR_FLUSH_ERR}},
		{0x61, A_PSN + 4, {WC_SUCCESS, WC_REM_INV_REQ_ERR}}, /* and acknowledges the first */
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = veroce_default();
		struct veroce_packet p;

		post_two(&s);
		p = answer(&s, OP_RC_ACK, rows[i].psn, rows[i].syndrome, rows[i].psn == A_PSN + 4);
		veroce_forge(s.duo, DUO_A, &p, NULL);
		duo_finish(s.a, 1, rows[i].status[0]);
		duo_expect(s.duo, &s.a->sent, 2, rows[i].status[1]);
		assert_int_equal(count_a(&s)->naks_received, 1);
		assert_int_equal(qp_state(s.a->qp), QPS_ERR);
		sim_end(&s);
	}
}

/* veRoCE 5.2, 8: exactly that packet again, and nothing is acknowledged by it. */
VEROCE_TEST(a_packet_drop_nak_costs_one_copy)
{
	struct duo_rule *lost = post_two(&s);
	static const uint32_t psns[] = {A_PSN + 2, A_PSN + 5, A_PSN + 1000, A_PSN - 1, A_PSN + 0x800000};

	for (size_t i = 0; i < COUNT(psns); i++) {
		struct veroce_packet p = answer(&s, OP_RC_ACK, psn_add(psns[i], 0), 0x60, 2);

		veroce_forge(s.duo, DUO_A, &p, NULL);
	}
	duo_run_for(s.duo, 1000);
	assert_int_equal(veroce_retransmits(s.duo), 1);
	assert_true(veroce_last(s.duo, DUO_A, OP_RC_WRITE_MIDDLE)->bth.retrans);
	assert_int_equal(veroce_last(s.duo, DUO_A, OP_RC_WRITE_MIDDLE)->bth.psn, A_PSN + 2);
	assert_int_equal(s.a->sent.n, 0);
	lost->off = true;
	expect_both(&s);
}

VEROCE_TEST(rnr_naks_make_wait_for_what_is_outstanding_only)
{
	static const uint32_t psns[] = {A_PSN + 5, A_PSN + 1000, A_PSN - 1, A_PSN - 1000};
	struct duo_rule *lost = post_two(&s);
	uint64_t dropped = count_a(&s)->rx_dropped, t;
	struct veroce_packet p;

	for (size_t i = 0; i < COUNT(psns); i++) {
		p = answer(&s, OP_RC_ACK, psn_add(psns[i], 0), 0x20, 0); /* 655 ms */
		veroce_forge(s.duo, DUO_A, &p, NULL);
	}
	assert_int_equal(count_a(&s)->rx_dropped, dropped + COUNT(psns));
	assert_int_equal(count_a(&s)->rnrs_received, 0);
	p = answer(&s, OP_RC_ACK, A_PSN, 0x2e, 0); /* 1 ms */
	veroce_forge(s.duo, DUO_A, &p, NULL);
	assert_int_equal(count_a(&s)->rnrs_received, 1);
	t = s.duo->now_ns;
	lost->off = true;
	expect_both(&s);
	assert_true(s.a->sent.e[0].timestamp_ns >= t + 1000000);
	assert_true(s.a->sent.e[0].timestamp_ns < t + 5000000);
}

/* 13.2: the peer cannot have held the packet for longer than the round trip, nor before it left. */
TEST(stamps_that_cannot_be_measure_nothing)
{
	static const struct {
		int32_t tx1, held; /* from now on; between RX1 and TX2 */
	} rows[] = {{-500, 501}, {-500, 1000000}, {-500, -1}, {1, 0}, {1000000, 0}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = veroce_default();
		struct veroce_packet p = answer(&s, OP_RC_ACK, A_PSN, 0x1f, 1);
		struct duo_rule *lost = mute(&s);

		duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0));
		duo_run_for(s.duo, 2000);
		p.bth.ts = true;
		p.tse.tx1 = (uint32_t)s.duo->now_ns + (uint32_t)rows[i].tx1;
		p.tse.rx1 = 7;
		p.tse.tx2 = 7 + (uint32_t)rows[i].held;
		veroce_forge(s.duo, DUO_A, &p, NULL);
		duo_finish(s.a, 1, WC_SUCCESS); /* the rest of it may be true */
		assert_true(s.a->qp->veroce->pair->path[0].srtt_ns <= 2000);
		lost->off = true;
		sim_end(&s);
	}
}

/* veRoCE 11: the peer cannot use our responses. Only a response that was sent can be refused. */
VEROCE_TEST(acknowledgements_of_responses_that_were_not_sent_are_dropped)
{
	uint64_t dropped = count_b(&s)->rx_dropped;

	for (uint32_t ahead = 1; ahead < 1u << 22; ahead *= 7) {
		struct veroce_packet p = answer(&s, OP_RC_ACK_RSP, A_PSN - 1 + ahead, 0x1f, ahead);

		p.bth.dqpn = s.b->qpn;
		veroce_forge(s.duo, DUO_B, &p, NULL);
		dropped++;
		assert_int_equal(count_b(&s)->rx_dropped, dropped);
	}

	duo_do(s.a, duo_read_wr(1, s.abuf, 0, 5000, s.bbuf, 0));
	assert_memory_equal(s.abuf->p, s.bbuf->p, 5000);
	expect_alive(&s, 2);
}

/*
 * 7.4: a response whose packets are not acknowledged keeps its slot, even if an acknowledgement's
 * message number says otherwise.
 */
VEROCE_TEST(message_numbers_alone_release_no_response)
{
	struct duo_rule *lost = duo_drop(s.duo, DUO_B, DUO_ANY, DUO_ANY);
	const struct veroce_work *w;

	duo_must_post(s.a, duo_read_wr(1, s.abuf, 0, 2500, s.bbuf, 0));
	duo_run_for(s.duo, 10000);
	w = s.b->qp->veroce->w;
	assert_int_equal(tx_outstanding(&w->r.tx), 3);
	for (uint32_t acked = 0; acked < 3; acked++) {
		struct veroce_packet p = answer(&s, OP_RC_ACK_RSP, psn_add(A_PSN - 1, acked), 0x1f, 1);

		p.bth.dqpn = s.b->qpn;
		veroce_forge(s.duo, DUO_B, &p, NULL);
		assert_int_equal(tx_outstanding(&w->r.tx), 3 - acked);
		assert_int_equal(w->released, 0);
	}
	lost->off = true;
	duo_idle(s.duo);
	/* Packets that a forgery acknowledged did not arrive, so the connection can only end. */
	duo_expect(s.duo, &s.a->sent, 1, WC_RETRY_EXC_ERR);
	duo_qp_to_state(s.b, QPS_ERR);
}
