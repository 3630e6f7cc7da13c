/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * veRoCE: requests that the peer never sent. An impossible request is dropped and counted, or answered like
 * a mistake of the peer (veRoCE 11); nothing is placed where it must not be, and nothing is executed twice.
 */
#include "support/test.h"
#include "veroce/forgery.h"

/* Out-of-order R3, R12: the test comes before the memory. */
VEROCE_TEST(old_psns_are_never_placed)
{
	static const uint32_t back[] = {1, 2, 1000, 65536, (1u << 23) - 1, 1u << 23};

	for (size_t i = 0; i < COUNT(back); i++) {
		struct veroce_packet p = request(&s, OP_RC_WRITE_ONLY, 8);

		p.bth.psn = psn_add(A_PSN, -back[i]);
		veroce_forge(s.duo, DUO_B, &p, junk);
		assert_int_equal(count_b(&s)->rx_duplicates, i + 1);
	}
	expect_untouched(&s);
	expect_alive(&s, 1);
}

VEROCE_TEST(psns_beyond_the_window_leave_no_trace, v.rx_window = 128)
{
	for (uint32_t ahead = 128; ahead < 1u << 23; ahead *= 2) {
		struct veroce_packet p = request(&s, OP_RC_WRITE_ONLY, 8);
		uint64_t beyond = count_b(&s)->rx_beyond_window;

		p.bth.psn = psn_add(A_PSN, ahead);
		veroce_forge(s.duo, DUO_B, &p, junk);
		assert_int_equal(count_b(&s)->rx_beyond_window, beyond + 1);
	}
	expect_untouched(&s);
	expect_alive(&s, 1);
}

/* An early packet with any mistake is dropped and not recorded (out-of-order R11). */
VEROCE_TEST(early_mistakes_are_dropped_and_harm_nothing)
{
	enum mistake {
		BEFORE,
		BEHIND,
		OTHER_KEY,
		NO_KEY,
		SEND_WITHOUT_RECEIVE,
		SEND_TOO_FAR,
		SEND_OF_THE_PAST,
		TOO_LONG,
		FIRST_NOT_FULL,
		LAST_EMPTY,
		MISTAKES
	};
	struct duo_buf *secret = duo_buf(&s.duo->host[DUO_B], 100, MR_LOCAL_WRITE);

	assert_true(duo_recv(s.b, 11, s.bbuf, 0, 2000));
	for (enum mistake m = 0; m < MISTAKES; m++) {
		bool send = m == SEND_WITHOUT_RECEIVE || m == SEND_TOO_FAR || m == SEND_OF_THE_PAST;
		struct veroce_packet p = request(&s, send ? OP_RC_SEND_MIDDLE : OP_RC_WRITE_ONLY, send ? MTU : 8);

		p.bth.psn = A_PSN + 3;
		p.msn = 2;
		p.po = send;
		switch (m) {
		case BEFORE: p.reth.va -= 1; break;
		case BEHIND: p.reth.va += s.bbuf->len - 7; break;
		case OTHER_KEY:
			p.reth.rkey = secret->mr->key;
			p.reth.va = secret->iova;
			break;
		case NO_KEY: p.reth.rkey ^= 1; break;
		case SEND_WITHOUT_RECEIVE: p.rqmsn = 1; break;
		case SEND_TOO_FAR: p.po = 2; break;
		case SEND_OF_THE_PAST: p.rqmsn = 0xffffff; break;
		case TOO_LONG: p.payload_len = MTU + 4; break;
		case FIRST_NOT_FULL: p.bth.opcode = OP_RC_WRITE_FIRST; break;
		default: p.bth.opcode = OP_RC_WRITE_LAST; p.payload_len = 0;
		}

		uint8_t payload[MTU + 4] = {0};

		veroce_forge(s.duo, DUO_B, &p, payload);
		assert_int_equal(count_b(&s)->rx_dropped, m + 1);
		assert_int_equal(count_b(&s)->naks_sent + count_b(&s)->rnrs_sent, 0);
	}
	expect_untouched(&s);
	for (int i = 0; i < 100; i++)
		assert_int_equal(secret->p[i], 0);
	expect_alive(&s, 1); /* whose PSNs they had */

	duo_do(s.a, duo_send_wr(2, s.abuf, 0, 1500));
	assert_int_equal(duo_expect(s.duo, &s.b->received, 11, WC_SUCCESS)->byte_len, 1500);
}

/* The last message's receive is the program's again, although its place in the responder's ring may still name it. */
VEROCE_TEST(an_early_send_of_the_last_message_is_not_placed)
{
	struct veroce_packet p = request(&s, OP_RC_SEND_ONLY, 8);

	assert_true(duo_recv(s.b, 11, s.bbuf, 0, 100));
	assert_true(duo_recv(s.b, 12, s.bbuf, 1000, 100));
	duo_must_post(s.a, duo_send_wr(1, s.abuf, 0, 100));
	duo_wait(s.duo, &s.a->sent, 1);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.b->received, 11, WC_SUCCESS);
	p.bth.psn = A_PSN + 3;
	p.msn = 4;
	veroce_forge(s.duo, DUO_B, &p, junk);
	assert_int_equal(count_b(&s)->rx_dropped, 1);
	assert_memory_equal(s.bbuf->p, s.abuf->p, 100);
	duo_do(s.a, duo_send_wr(2, s.abuf, 200, 100));
	duo_expect(s.duo, &s.b->received, 12, WC_SUCCESS);
}

struct mistake_row {
	uint8_t opcode;
	uint32_t payload_len;
	uint32_t msn, rqmsn, po;
	int64_t va_off;
	uint32_t rkey_xor;
	uint8_t syndrome;
};

/* In its turn a mistake is answered once and ends the connection (veRoCE 11). */
TEST(mistakes_in_their_turn_are_answered)
{
	static const struct mistake_row rows[] = {
		{OP_RC_WRITE_ONLY, 8, 1, 0, 0, -1, 0, 0x62},
		{OP_RC_WRITE_ONLY, 8, 1, 0, 0, BUF_BYTES - 7, 0, 0x62},
		{OP_RC_WRITE_ONLY, 8, 1, 0, 0, 0, 1, 0x62},
		{OP_RC_WRITE_ONLY, 8, 2, 0, 0, 0, 0, 0x61}, /* an MSN too far */
		{OP_RC_WRITE_ONLY, 8, 0, 0, 0, 0, 0, 0x61}, /* one of the past */
		{OP_RC_WRITE_ONLY, 8, 0x800001, 0, 0, 0, 0, 0x61},
		{OP_RC_WRITE_MIDDLE, MTU, 1, 0, 1, 0, 0, 0x61}, /* without its first */
		{OP_RC_WRITE_LAST, 8, 1, 0, 5, 0, 0, 0x61},
		{OP_RC_WRITE_FIRST, 0, 1, 0, 0, 0, 0, 0x61}, /* the payload was cut off */
		{OP_RC_WRITE_ONLY, MTU + 4, 1, 0, 0, 0, 0, 0x61},
		{OP_RC_SEND_ONLY, 8, 1, 1, 0, 0, 0, 0x61}, /* an RQMSN too far */
		{OP_RC_SEND_ONLY, 8, 1, 0xffffff, 0, 0, 0, 0x61},
		{OP_RC_SEND_MIDDLE, MTU, 1, 0, 1, 0, 0, 0x61},
		{OP_RC_SEND_FIRST, MTU, 1, 0, 0, 0, 0, 0x61}, /* longer than the receive */
		{OP_RC_WRITE_ONLY_IMM, 8, 1, 1, 0, 0, 0, 0x61},
		{OP_RC_SEND_ONLY_INV, 8, 1, 0, 0, 0, 0, 0x1f}, /* key 0 is none; the message is acknowledged */
		{OP_RC_READ_REQUEST, 0, 1, 0, 0, -1, 0, 0x62},
		{OP_RC_READ_REQUEST, 0, 1, 0, 0, 0, 1, 0x62},
		{OP_RC_READ_REQUEST, 0, 2, 0, 0, 0, 0, 0x61},
		{OP_RC_FETCH_ADD, 0, 1, 0, 0, 4, 0, 0x61}, /* not aligned */
		{OP_RC_FETCH_ADD, 0, 1, 0, 0, -8, 0, 0x62},
		{OP_RC_CMP_SWAP, 0, 1, 0, 0, BUF_BYTES, 0, 0x62},
		{OP_RC_FLUSH, 0, 1, 0, 0, -1, 0, 0x62},
		{OP_RC_FLUSH, 0, 1, 0, 0, BUF_BYTES - 63, 0, 0x62},
		{OP_RC_FLUSH, 0, 1, 0, 0, 0, 1, 0x62},
		{OP_RC_FLUSH, 0, 2, 0, 0, 0, 0, 0x61},
		{OP_RC_ATOMIC_WRITE, 8, 1, 0, 0, 4, 0, 0x61}, /* not aligned */
		{OP_RC_ATOMIC_WRITE, 8, 1, 0, 0, -8, 0, 0x62},
		{OP_RC_ATOMIC_WRITE, 8, 1, 0, 0, BUF_BYTES, 0, 0x62},
		{OP_RC_ATOMIC_WRITE, 8, 1, 0, 0, 0, 1, 0x62},
		{OP_RC_ATOMIC_WRITE, 8, 0, 0, 0, 0, 0, 0x61},
		{OP_RC_ATOMIC_WRITE, 0, 1, 0, 0, 0, 0, 0x61}, /* not a word */
		{OP_RC_ATOMIC_WRITE, 4, 1, 0, 0, 0, 0, 0x61},
		{OP_RC_ATOMIC_WRITE, 16, 1, 0, 0, 0, 0, 0x61},
		{OP_RC_ATOMIC_WRITE, MTU + 4, 1, 0, 0, 0, 0, 0x61},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct mistake_row *row = &rows[i];
		struct sim s = veroce_default();
		struct veroce_packet p = request(&s, row->opcode, row->payload_len);
		uint8_t payload[MTU + 4] = {0};
		const struct duo_packet *nak;

		assert_true(duo_recv(s.b, 11, s.bbuf, 0, 100));
		p.msn = row->msn;
		p.rqmsn = row->rqmsn;
		p.po = row->po;
		p.reth.va += (uint64_t)row->va_off;
		p.reth.rkey ^= row->rkey_xor;
		p.reth.len = row->opcode == OP_RC_ATOMIC_WRITE ? 8 : 64;
		p.feth = (struct feth){.placement = FETH_GLOBAL};
		p.atomic = (struct atomiceth){.va = p.reth.va, .rkey = p.reth.rkey, .swap_add = 1, .compare = 0};
		veroce_forge(s.duo, DUO_B, &p, payload);
		veroce_forge(s.duo, DUO_B, &p, payload);
		duo_idle(s.duo);
		assert_int_equal(duo_count_syndrome(s.duo, DUO_B, row->syndrome), 1);
		nak = veroce_last(s.duo, DUO_B, OP_RC_ACK);
		assert_int_equal(nak->bth.psn, A_PSN);
		assert_int_equal(nak->aeth.msn, row->syndrome == 0x1f);
		assert_int_equal(nak->po, POETH_NO_INFO);
		assert_int_equal(qp_state(s.b->qp), QPS_ERR);
		/* With a length error where the message had begun to use it, else flushed
		 * (IBTA 9.9.3). */
		assert_int_equal(s.b->received.n, 1);
		assert_int_equal(s.b->received.e[0].wr_id, 11);
		assert_int_not_equal(s.b->received.e[0].status, WC_SUCCESS);
		s.b->received.taken = 1;
		/* These two were allowed to be placed; the mistake is found when they are complete. */
		if (row->opcode != OP_RC_WRITE_ONLY_IMM && row->opcode != OP_RC_SEND_ONLY_INV)
			expect_untouched(&s);
		sim_end(&s);
	}
}

/* It was accepted early, because a packet is judged alone; its message turns out to be wrong. */
TEST(early_ends_with_wrong_numbers_are_found_in_their_turn)
{
	static const struct {
		uint32_t msn, po;
	} rows[] = {{3, 0}, {1, 0}, {0xffffff, 0}, {2, 1}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = veroce_default();
		struct veroce_packet first = request(&s, OP_RC_WRITE_ONLY, 8);
		struct veroce_packet p = request(&s, rows[i].po ? OP_RC_WRITE_LAST : OP_RC_WRITE_ONLY, 8);

		p.bth.psn = A_PSN + 1;
		p.msn = rows[i].msn;
		p.po = rows[i].po;
		veroce_forge(s.duo, DUO_B, &p, junk);
		duo_run_for(s.duo, 1000);
		assert_int_equal(count_b(&s)->naks_sent, 0);
		veroce_forge(s.duo, DUO_B, &first, junk);
		duo_idle(s.duo);
		assert_int_equal(duo_count_syndrome(s.duo, DUO_B, 0x61), 1);
		assert_int_equal(veroce_last(s.duo, DUO_B, OP_RC_ACK)->bth.psn, A_PSN + 1);
		assert_int_equal(veroce_last(s.duo, DUO_B, OP_RC_ACK)->aeth.msn, 1);
		assert_int_equal(qp_state(s.b->qp), QPS_ERR);
		sim_end(&s);
	}
}

/* Its turn has come in the middle of a message that it does not continue (veRoCE 11). */
TEST(messages_that_do_not_go_on_are_refused)
{
	static const struct {
		uint8_t first, next;
		uint32_t msn, rqmsn, po;
	} rows[] = {
		{OP_RC_WRITE_FIRST, OP_RC_WRITE_MIDDLE, 1, 0, 0}, {OP_RC_WRITE_FIRST, OP_RC_WRITE_MIDDLE, 1, 0, 2},
		{OP_RC_WRITE_FIRST, OP_RC_WRITE_MIDDLE, 2, 0, 1}, {OP_RC_WRITE_FIRST, OP_RC_WRITE_FIRST, 1, 0, 0},
		{OP_RC_WRITE_FIRST, OP_RC_WRITE_FIRST, 2, 0, 0},  {OP_RC_WRITE_FIRST, OP_RC_SEND_MIDDLE, 1, 0, 1},
		{OP_RC_SEND_FIRST, OP_RC_WRITE_MIDDLE, 1, 0, 1},  {OP_RC_SEND_FIRST, OP_RC_SEND_MIDDLE, 1, 1, 1},
		{OP_RC_SEND_FIRST, OP_RC_SEND_MIDDLE, 1, 0, 2},   {OP_RC_SEND_FIRST, OP_RC_SEND_MIDDLE, 2, 0, 1},
		{OP_RC_SEND_FIRST, OP_RC_SEND_FIRST, 2, 1, 0},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = veroce_default();
		struct veroce_packet p = request(&s, rows[i].first, MTU);

		assert_true(duo_recv(s.b, 11, s.bbuf, 0, 4 * MTU));
		assert_true(duo_recv(s.b, 12, s.bbuf, 8192, 4 * MTU));
		veroce_forge(s.duo, DUO_B, &p, junk);
		assert_int_equal(qp_state(s.b->qp), QPS_RTS);
		p = request(&s, rows[i].next, MTU);
		p.bth.psn++;
		p.msn = rows[i].msn;
		p.rqmsn = rows[i].rqmsn;
		p.po = rows[i].po;
		veroce_forge(s.duo, DUO_B, &p, junk);
		duo_run_for(s.duo, 100);
		assert_int_equal(qp_state(s.b->qp), QPS_ERR);
		assert_int_equal(count_b(&s)->naks_sent, 1);
		duo_idle(s.duo);
		assert_int_equal(s.b->received.n, 2); /* in error or flushed */
		s.b->received.taken = 2;
		sim_end(&s);
	}
}

/* Out-of-order R9: copies of an atomic, before its turn and after, with any stamp and on any path. */
VEROCE_TEST(copied_atomics_are_executed_once)
{
	struct veroce_packet p = request(&s, OP_RC_FETCH_ADD, 0);
	struct veroce_packet write = request(&s, OP_RC_WRITE_ONLY, 8);
	uint64_t *word = (uint64_t *)s.bbuf->p;

	p.bth.psn = A_PSN + 1;
	p.msn = 2;
	p.atomic = (struct atomiceth){.va = s.bbuf->iova, .rkey = s.bbuf->mr->key, .swap_add = 1};
	*word = 100;
	write.reth.va += 64;
	for (int i = 0; i < 10; i++)
		veroce_forge(s.duo, DUO_B, &p, NULL);
	assert_int_equal(*word, 100);
	veroce_forge(s.duo, DUO_B, &write, junk);
	assert_int_equal(*word, 101);
	for (int i = 0; i < 10; i++) {
		p.bth.retrans = i & 1;
		veroce_forge(s.duo, DUO_B, &p, NULL);
		duo_run_for(s.duo, 5000);
	}
	assert_int_equal(*word, 101);
	assert_int_equal(count_b(&s)->rx_duplicates, 19);
	duo_ground(s.duo); /* A never asked, so it never acknowledges the answer */
	duo_qp_to_state(s.b, QPS_ERR);
}

/* More READs than were agreed: there are no slots for their answers (veRoCE 7.4). */
VEROCE_TEST(more_reads_than_agreed_are_refused, o.max_dest_rd_atomic = 2, o.max_rd_atomic = 2)
{
	for (uint32_t i = 0; i < 3; i++) {
		struct veroce_packet p = request(&s, OP_RC_READ_REQUEST, 0);

		p.bth.psn = A_PSN + i;
		p.msn = 1 + i;
		p.reth.len = 100;
		veroce_forge(s.duo, DUO_B, &p, NULL);
	}
	duo_run_for(s.duo, 100000);
	assert_true(duo_count(s.duo, DUO_B, OP_RC_READ_RESPONSE_ONLY) <= 2);
	duo_qp_to_state(s.b, QPS_ERR);
	expect_untouched(&s);
}

static void trim_tweak(struct nic_config *c, enum duo_side side)
{
	veroce_tweak(c, side);
	c->transport.veroce.trim = true;
}

/* veRoCE 8: a NAK asks for it again; nothing is recorded, nothing acknowledged. */
TEST(trimmed_packets_are_asked_for_again)
{
	for (uint32_t ahead = 0; ahead < 3; ahead++) {
		struct duo_options o = duo_options();
		struct sim s;

		veroce_opt = veroce_options();
		s = sim_on(duo_create(1, trim_tweak), &o);
		duo_idle(s.duo);

		struct veroce_packet p = request(&s, OP_RC_WRITE_FIRST, 0);
		struct flow flow = duo_flow(s.duo, DUO_B, DUO_GID_IPV4);
		uint8_t buf[DUO_PACKET_MAX];
		struct pkt pkt = {.data = buf, .flow = &flow, .train = 1};
		size_t acks = duo_count(s.duo, DUO_B, OP_RC_ACK);

		p.bth.pkey = 0xffff;
		p.bth.psn = A_PSN + ahead;
		p.bth.pad = 2; /* of the payload that is gone */
		flow.dport = VEROCE_UDP_PORT;
		flow.tos = 9 << 2 | 2;
		pkt.len = veroce_encode_headers(buf, &p) + ICRC_LEN;
		icrc_seal(NULL, &pkt, 0);
		duo_inject(s.duo, DUO_B, &flow, buf, pkt.len);
		duo_idle(s.duo);
		assert_int_equal(count_b(&s)->rx_trimmed, 1);
		assert_int_equal(duo_count(s.duo, DUO_B, OP_RC_ACK), acks + 1);
		assert_int_equal(veroce_last(s.duo, DUO_B, OP_RC_ACK)->aeth.syndrome, 0x60);
		assert_int_equal(veroce_last(s.duo, DUO_B, OP_RC_ACK)->bth.psn, A_PSN + ahead);
		assert_int_equal(veroce_last(s.duo, DUO_B, OP_RC_ACK)->po, POETH_NO_INFO);
		expect_untouched(&s);
		expect_alive(&s, 1);
		sim_end(&s);
	}
}
