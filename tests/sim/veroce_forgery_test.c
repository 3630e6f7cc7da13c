/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * veRoCE: packets that nobody sent, made by someone who knows addresses, numbers and keys. What
 * cannot be right is dropped and counted, or answered as the peer's mistake is (veRoCE 11); nothing
 * is placed where it must not be, and nothing is executed twice.
 */
#include "sim/veroce.h"
#include "transport/veroce/veroce.h"

/* PSNs of A's first request and of B's; what is due when a test begins. */
enum { A_PSN = 0x123456, B_PSN = 0x654321, MTU = 1024 };

static const struct nic_counters *count_a(const struct sim *s)
{
	return nic_counters(s->a->host->nic);
}

static const struct nic_counters *count_b(const struct sim *s)
{
	return nic_counters(s->b->host->nic);
}

/* The next message at B that A might have sent. */
static struct veroce_packet request(const struct sim *s, uint8_t opcode, uint32_t payload_len)
{
	return (struct veroce_packet){
		.bth = {.opcode = opcode, .dqpn = s->b->qpn, .psn = A_PSN},
		.msn = 1,
		.reth = {.va = s->bbuf->iova, .rkey = s->bbuf->mr->key, .len = payload_len},
		.payload_len = payload_len,
	};
}

/* An acknowledgement of A's requests. */
static struct veroce_packet answer(const struct sim *s, uint8_t opcode, uint32_t psn,
				   uint8_t syndrome, uint32_t msn)
{
	return (struct veroce_packet){
		.bth = {.opcode = opcode, .dqpn = s->a->qpn, .psn = psn},
		.aeth = {.syndrome = syndrome, .msn = msn},
		.po = POETH_NO_INFO,
	};
}

static const uint8_t junk[MTU] = {0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee};

/* B's buffer is as sim_start() filled it. */
static void expect_untouched(const struct sim *s)
{
	struct prng r;

	prng_init(&r, 2);
	for (uint64_t i = 0; i < s->bbuf->len; i++)
		assert_int_equal(s->bbuf->p[i], (uint8_t)prng_next(&r));
	duo_check_canaries(s->duo);
}

/* A message that is really A's gets through as if nothing had been. */
static void expect_alive(struct sim *s, uint64_t wr_id)
{
	struct duo_wr w = duo_write_wr(wr_id, s->abuf, 0, 5000, s->bbuf, 20000);

	assert_true(duo_post(s->a, &w));
	duo_idle(s->duo);
	duo_expect(s->duo, &s->a->sent, wr_id, WC_SUCCESS);
	assert_memory_equal(s->bbuf->p + 20000, s->abuf->p, 5000);
}

/* What A sends is lost until rule->off. */
static struct duo_rule *mute(struct sim *s)
{
	return duo_drop(s->duo, DUO_A, DUO_ANY, DUO_ANY);
}

/* ---- at the responder ------------------------------------------------------------------------ */

static void what_a_stranger_sends_is_dropped(void **state)
{
	static const uint8_t opcodes[] = {OP_RC_WRITE_ONLY, OP_RC_READ_REQUEST, OP_RC_ACK,
					  OP_CAPS_REQUEST,  OP_RTT_REQUEST,	OP_CNP,
					  OP_SLOW_PACKET,   OP_RC_READ_RESPONSE_ONLY};
	struct sim s = veroce_default();
	uint64_t sent = count_b(&s)->tx_packets;

	for (size_t i = 0; i < COUNT(opcodes); i++) {
		struct veroce_packet p = request(&s, opcodes[i], 0);
		struct flow flow = duo_flow(s.duo, DUO_B, DUO_GID_IPV4);
		uint8_t buf[DUO_PACKET_MAX];
		struct pkt pkt = {.data = buf, .flow = &flow, .train = 1};

		p.bth.pkey = 0xffff;
		p.caps = (struct capseth){.magic = CAPS_MAGIC,
					  .version = CAPS_VERSION,
					  .profile = 3,
					  .source_qpn = s.a->qpn};
		p.bth.psn = opcodes[i] == OP_CAPS_REQUEST ? B_PSN : A_PSN;
		flow.dport = VEROCE_UDP_PORT;
		flow.src[15] ^= 0x80;
		pkt.len = veroce_encode_headers(buf, &p) + ICRC_LEN;
		icrc_seal(&pkt);
		duo_inject(s.duo, DUO_B, &flow, buf, pkt.len);
		assert_int_equal(count_b(&s)->rx_wrong_source, i + 1);
	}
	duo_idle(s.duo);
	assert_int_equal(count_b(&s)->tx_packets, sent);
	expect_untouched(&s);
	expect_alive(&s, 1);
	sim_end(&s);
}

static void headers_that_are_not_for_the_qp_are_dropped(void **state)
{
	enum wrong { QPN, PKEY, TVER, ICRC, OPCODE, LENGTH, WRONGS };
	struct sim s = veroce_default();

	for (enum wrong wrong = 0; wrong < WRONGS; wrong++) {
		struct veroce_packet p = request(&s, OP_RC_WRITE_ONLY, 4);
		struct flow flow = duo_flow(s.duo, DUO_B, DUO_GID_IPV4);
		struct nic_counters before = *count_b(&s);
		uint8_t buf[DUO_PACKET_MAX];
		struct pkt pkt = {.data = buf, .flow = &flow, .train = 1};

		flow.dport = VEROCE_UDP_PORT;
		p.bth.dqpn ^= wrong == QPN;
		p.bth.pkey = wrong == PKEY ? 0x1234 : 0xffff;
		p.bth.tver = wrong == TVER ? 6 : 0;
		pkt.len = veroce_encode_headers(buf, &p);
		memcpy(buf + pkt.len, junk, 4);
		pkt.len += 4 + ICRC_LEN - (wrong == LENGTH ? 1 : 0);
		if (wrong == OPCODE)
			buf[0] = 0x1f;
		icrc_seal(&pkt);
		buf[pkt.len - 1] ^= wrong == ICRC;
		duo_inject(s.duo, DUO_B, &flow, buf, pkt.len);
		assert_int_equal(count_b(&s)->rx_no_qp - before.rx_no_qp, wrong == QPN);
		assert_int_equal(count_b(&s)->rx_wrong_source - before.rx_wrong_source,
				 wrong == PKEY);
		assert_int_equal(count_b(&s)->rx_icrc_errors - before.rx_icrc_errors,
				 wrong == ICRC);
		assert_int_equal(count_b(&s)->rx_malformed - before.rx_malformed,
				 wrong == TVER || wrong == OPCODE || wrong == LENGTH);
	}
	expect_untouched(&s);
	expect_alive(&s, 1);
	sim_end(&s);
}

/* Out-of-order R3, R12: the test comes before the memory. */
static void old_psns_are_never_placed(void **state)
{
	static const uint32_t back[] = {1, 2, 1000, 65536, (1u << 23) - 1, 1u << 23};
	struct sim s = veroce_default();

	for (size_t i = 0; i < COUNT(back); i++) {
		struct veroce_packet p = request(&s, OP_RC_WRITE_ONLY, 8);

		p.bth.psn = psn_add(A_PSN, -back[i]);
		veroce_forge(s.duo, DUO_B, &p, junk);
		assert_int_equal(count_b(&s)->rx_duplicates, i + 1);
	}
	expect_untouched(&s);
	expect_alive(&s, 1);
	sim_end(&s);
}

static void psns_beyond_the_window_leave_no_trace(void **state)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct sim s;

	v.rx_window = 128;
	s = veroce_start_sim(&v, &o, 1);
	for (uint32_t ahead = 128; ahead < 1u << 23; ahead *= 2) {
		struct veroce_packet p = request(&s, OP_RC_WRITE_ONLY, 8);
		uint64_t beyond = count_b(&s)->rx_beyond_window;

		p.bth.psn = psn_add(A_PSN, ahead);
		veroce_forge(s.duo, DUO_B, &p, junk);
		assert_int_equal(count_b(&s)->rx_beyond_window, beyond + 1);
	}
	expect_untouched(&s);
	expect_alive(&s, 1);
	sim_end(&s);
}

/* Whatever is wrong with it, what comes before its turn is dropped unmarked (out-of-order R11). */
static void early_mistakes_are_dropped_and_harm_nothing(void **state)
{
	enum mistake { BEFORE, BEHIND, OTHER_KEY, NO_KEY, SEND_WITHOUT_RECEIVE, SEND_TOO_FAR,
		       SEND_OF_THE_PAST, TOO_LONG, FIRST_NOT_FULL, LAST_EMPTY, MISTAKES };
	struct sim s = veroce_default();
	struct duo_buf *secret = duo_buf(&s.duo->host[DUO_B], 100, MR_LOCAL_WRITE);

	assert_true(duo_recv(s.b, 11, s.bbuf, 0, 2000));
	for (enum mistake m = 0; m < MISTAKES; m++) {
		bool send = m == SEND_WITHOUT_RECEIVE || m == SEND_TOO_FAR || m == SEND_OF_THE_PAST;
		struct veroce_packet p =
			request(&s, send ? OP_RC_SEND_MIDDLE : OP_RC_WRITE_ONLY, send ? MTU : 8);

		p.bth.psn = A_PSN + 3;
		p.msn = 2;
		p.po = send;
		switch (m) {
		case BEFORE:
			p.reth.va -= 1;
			break;
		case BEHIND:
			p.reth.va += s.bbuf->len - 7;
			break;
		case OTHER_KEY:
			p.reth.rkey = secret->mr->key;
			p.reth.va = secret->iova;
			break;
		case NO_KEY:
			p.reth.rkey ^= 1;
			break;
		case SEND_WITHOUT_RECEIVE:
			p.rqmsn = 1;
			break;
		case SEND_TOO_FAR:
			p.po = 2;
			break;
		case SEND_OF_THE_PAST:
			p.rqmsn = 0xffffff;
			break;
		case TOO_LONG:
			p.payload_len = MTU + 4;
			break;
		case FIRST_NOT_FULL:
			p.bth.opcode = OP_RC_WRITE_FIRST;
			break;
		default:
			p.bth.opcode = OP_RC_WRITE_LAST;
			p.payload_len = 0;
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
	struct duo_wr x = duo_send_wr(2, s.abuf, 0, 1500);

	assert_true(duo_post(s.a, &x));
	duo_idle(s.duo);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	assert_int_equal(duo_expect(s.duo, &s.b->received, 11, WC_SUCCESS)->byte_len, 1500);
	sim_end(&s);
}

struct mistake_row {
	uint8_t opcode;
	uint32_t payload_len;
	uint32_t msn, rqmsn, po;
	int64_t va_off;
	uint32_t rkey_xor;
	uint8_t syndrome;
};

/* In its turn a mistake is answered, once, and ends the connection (veRoCE 11). */
static void mistakes_in_their_turn_are_answered(void **state)
{
	static const struct mistake_row rows[] = {
		{OP_RC_WRITE_ONLY, 8, 1, 0, 0, -1, 0, 0x62},
		{OP_RC_WRITE_ONLY, 8, 1, 0, 0, BUF_BYTES - 7, 0, 0x62},
		{OP_RC_WRITE_ONLY, 8, 1, 0, 0, 0, 1, 0x62},
		{OP_RC_WRITE_ONLY, 8, 2, 0, 0, 0, 0, 0x61},	    /* an MSN too far */
		{OP_RC_WRITE_ONLY, 8, 0, 0, 0, 0, 0, 0x61},	    /* one of the past */
		{OP_RC_WRITE_ONLY, 8, 0x800001, 0, 0, 0, 0, 0x61},
		{OP_RC_WRITE_MIDDLE, MTU, 1, 0, 1, 0, 0, 0x61},	    /* without its first */
		{OP_RC_WRITE_LAST, 8, 1, 0, 5, 0, 0, 0x61},
		{OP_RC_WRITE_FIRST, 0, 1, 0, 0, 0, 0, 0x61},	    /* the payload was cut off */
		{OP_RC_WRITE_ONLY, MTU + 4, 1, 0, 0, 0, 0, 0x61},
		{OP_RC_SEND_ONLY, 8, 1, 1, 0, 0, 0, 0x61},	    /* an RQMSN too far */
		{OP_RC_SEND_ONLY, 8, 1, 0xffffff, 0, 0, 0, 0x61},
		{OP_RC_SEND_MIDDLE, MTU, 1, 0, 1, 0, 0, 0x61},
		{OP_RC_SEND_FIRST, MTU, 1, 0, 0, 0, 0, 0x61},	    /* longer than the receive */
		{OP_RC_WRITE_ONLY_IMM, 8, 1, 1, 0, 0, 0, 0x61},
		{OP_RC_SEND_ONLY_INV, 8, 1, 0, 0, 0, 0, 0x62}, /* key 0 is none */
		{OP_RC_READ_REQUEST, 0, 1, 0, 0, -1, 0, 0x62},
		{OP_RC_READ_REQUEST, 0, 1, 0, 0, 0, 1, 0x62},
		{OP_RC_READ_REQUEST, 0, 2, 0, 0, 0, 0, 0x61},
		{OP_RC_FETCH_ADD, 0, 1, 0, 0, 4, 0, 0x61},	    /* not aligned */
		{OP_RC_FETCH_ADD, 0, 1, 0, 0, -8, 0, 0x62},
		{OP_RC_CMP_SWAP, 0, 1, 0, 0, BUF_BYTES, 0, 0x62},
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
		p.reth.len = 64;
		p.atomic = (struct atomiceth){
			.va = p.reth.va, .rkey = p.reth.rkey, .swap_add = 1, .compare = 0};
		veroce_forge(s.duo, DUO_B, &p, payload);
		veroce_forge(s.duo, DUO_B, &p, payload);
		duo_idle(s.duo);
		assert_int_equal(duo_count_syndrome(s.duo, DUO_B, row->syndrome), 1);
		nak = veroce_last(s.duo, DUO_B, OP_RC_ACK);
		assert_int_equal(nak->bth.psn, A_PSN);
		assert_int_equal(nak->aeth.msn, 0);
		assert_int_equal(nak->po, POETH_NO_INFO);
		assert_int_equal(qp_state(s.b->qp), QPS_ERR);
		/* With a length error where the message had begun to use it, else flushed
		 * (IBTA 9.9.3). */
		assert_int_equal(s.b->received.n, 1);
		assert_int_equal(s.b->received.e[0].wr_id, 11);
		assert_int_not_equal(s.b->received.e[0].status, WC_SUCCESS);
		s.b->received.taken = 1;
		/* These two had the right to be placed; what is wrong is found when they are
		 * complete. */
		if (row->opcode != OP_RC_WRITE_ONLY_IMM && row->opcode != OP_RC_SEND_ONLY_INV)
			expect_untouched(&s);
		sim_end(&s);
	}
}

/* It was taken early, as a packet is judged alone; the message that it makes is not one. */
static void early_ends_with_wrong_numbers_are_found_in_their_turn(void **state)
{
	static const struct {
		uint32_t msn, po;
	} rows[] = {{3, 0}, {1, 0}, {0xffffff, 0}, {2, 1}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = veroce_default();
		struct veroce_packet first = request(&s, OP_RC_WRITE_ONLY, 8);
		struct veroce_packet p =
			request(&s, rows[i].po ? OP_RC_WRITE_LAST : OP_RC_WRITE_ONLY, 8);

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

/* Its turn has come, but in the middle of a message it does not go on with (veRoCE 11). */
static void messages_that_do_not_go_on_are_refused(void **state)
{
	static const struct {
		uint8_t first, next;
		uint32_t msn, rqmsn, po;
	} rows[] = {
		{OP_RC_WRITE_FIRST, OP_RC_WRITE_MIDDLE, 1, 0, 0},
		{OP_RC_WRITE_FIRST, OP_RC_WRITE_MIDDLE, 1, 0, 2},
		{OP_RC_WRITE_FIRST, OP_RC_WRITE_MIDDLE, 2, 0, 1},
		{OP_RC_WRITE_FIRST, OP_RC_WRITE_FIRST, 1, 0, 0},
		{OP_RC_WRITE_FIRST, OP_RC_WRITE_FIRST, 2, 0, 0},
		{OP_RC_WRITE_FIRST, OP_RC_SEND_MIDDLE, 1, 0, 1},
		{OP_RC_SEND_FIRST, OP_RC_WRITE_MIDDLE, 1, 0, 1},
		{OP_RC_SEND_FIRST, OP_RC_SEND_MIDDLE, 1, 1, 1},
		{OP_RC_SEND_FIRST, OP_RC_SEND_MIDDLE, 1, 0, 2},
		{OP_RC_SEND_FIRST, OP_RC_SEND_MIDDLE, 2, 0, 1},
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

/* Out-of-order R9: copies of an atomic, before its turn and after, with any stamp and on any path.
 */
static void copied_atomics_are_executed_once(void **state)
{
	struct sim s = veroce_default();
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
	duo_ground(s.duo); /* A never asked, so it never says that it has the answer */
	duo_qp_to_state(s.b, QPS_ERR);
	sim_end(&s);
}

/* More READs than were agreed: their answers would have no place to be kept (veRoCE 7.4). */
static void more_reads_than_agreed_are_refused(void **state)
{
	struct duo_options o = duo_options();
	struct veroce_options v = veroce_options();
	struct sim s;

	o.max_dest_rd_atomic = 2;
	o.max_rd_atomic = 2;
	s = veroce_start_sim(&v, &o, 1);
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
	sim_end(&s);
}

/* ---- trimming -------------------------------------------------------------------------------- */

static void trim_tweak(struct nic_config *c, enum duo_side side)
{
	veroce_tweak(c, side);
	c->trim = true;
}

/* veRoCE 8: asked for again, nothing marked, nothing acknowledged. */
static void trimmed_packets_are_asked_for_again(void **state)
{
	for (uint32_t ahead = 0; ahead < 3; ahead++) {
		struct duo_options o = duo_options();
		struct sim s;
		struct duo_pair pair;

		veroce_opt = veroce_options();
		s = (struct sim){.duo = duo_create(1, trim_tweak)};
		pair = duo_connect(s.duo, &o);
		s.a = pair.a;
		s.b = pair.b;
		s.abuf = duo_buf(&s.duo->host[DUO_A], BUF_BYTES, ALL_ACCESS);
		s.bbuf = duo_buf(&s.duo->host[DUO_B], BUF_BYTES, ALL_ACCESS);
		duo_fill(s.abuf, 1);
		duo_fill(s.bbuf, 2);
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
		icrc_seal(&pkt);
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

/* ---- at the requester ------------------------------------------------------------------------ */

/* A waits for answers to a WRITE of four packets and a SEND; nothing of them arrives until
 * rule->off. */
static struct duo_rule *post_two(struct sim *s)
{
	struct duo_rule *lost = mute(s);
	struct duo_wr w = duo_write_wr(1, s->abuf, 0, 4 * MTU, s->bbuf, 0);
	struct duo_wr x = duo_send_wr(2, s->abuf, 100, 100);

	assert_true(duo_recv(s->b, 11, s->bbuf, 10000, 200));
	assert_true(duo_post(s->a, &w));
	assert_true(duo_post(s->a, &x));
	duo_run_for(s->duo, 10000);
	assert_int_equal(duo_count(s->duo, DUO_A, OP_RC_SEND_ONLY), 1);
	return lost;
}

static void expect_both(struct sim *s)
{
	duo_idle(s->duo);
	duo_expect(s->duo, &s->a->sent, 1, WC_SUCCESS);
	duo_expect(s->duo, &s->a->sent, 2, WC_SUCCESS);
	duo_expect(s->duo, &s->b->received, 11, WC_SUCCESS);
	assert_memory_equal(s->bbuf->p, s->abuf->p, 4 * MTU);
	assert_memory_equal(s->bbuf->p + 10000, s->abuf->p + 100, 100);
}

static void acknowledgements_of_what_was_not_sent_are_dropped(void **state)
{
	static const uint32_t psns[] = {A_PSN + 5, A_PSN + 6, A_PSN + 128, A_PSN + (1u << 23) - 2};
	static const uint8_t opcodes[] = {OP_RC_ACK, OP_RC_SACK};
	struct sim s = veroce_default();
	struct duo_rule *lost = post_two(&s);
	uint64_t dropped = count_a(&s)->rx_dropped;

	for (size_t i = 0; i < COUNT(psns) * COUNT(opcodes); i++) {
		struct veroce_packet p =
			answer(&s, opcodes[i % 2], psn_add(psns[i / 2], 0), 0x1f, 2);
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
	sim_end(&s);
}

static void old_acknowledgements_confirm_nothing(void **state)
{
	struct sim s = veroce_default();
	struct duo_rule *lost = post_two(&s);

	for (uint32_t back = 1; back < 1u << 23; back *= 3) {
		struct veroce_packet p =
			answer(&s, OP_RC_ACK, psn_add(A_PSN, -back), 0x1f, back == 1 ? 0 : 2);

		veroce_forge(s.duo, DUO_A, &p, NULL);
	}
	duo_run_for(s.duo, 1000);
	assert_int_equal(s.a->sent.n, 0);
	lost->off = true;
	expect_both(&s);
	sim_end(&s);
}

/* aMSN completes nothing whose packets are not acknowledged, and nothing that was not sent. */
static void message_numbers_alone_complete_nothing(void **state)
{
	static const uint32_t msns[] = {1, 2, 3, 1000, 0x7fffff, 0x800000, 0xffffff};
	struct sim s = veroce_default();
	struct duo_rule *lost = post_two(&s);

	for (size_t i = 0; i < COUNT(msns); i++) {
		struct veroce_packet p =
			answer(&s, OP_RC_ACK, psn_add(A_PSN, -1), 0x1f, msns[i]);

		veroce_forge(s.duo, DUO_A, &p, NULL);
		assert_int_equal(s.a->sent.n, 0);
	}
	duo_run_for(s.duo, 1000);
	assert_int_equal(s.a->sent.n, 0);
	lost->off = true;
	expect_both(&s);
	sim_end(&s);
}

/* Bits of what is not outstanding say nothing; the others spare a copy and complete nothing. */
static void bitmaps_beyond_the_window_mean_nothing(void **state)
{
	static const uint32_t starts[] = {5, 128, 4096, 65536, 0x7fff80, 0x800000, 0xffff00};
	struct sim s = veroce_default();
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
	sim_end(&s);
}

/* Selectively acknowledged by a liar, the packets still have to be acknowledged in order. */
static void a_lying_bitmap_completes_nothing(void **state)
{
	struct duo_options o = duo_options();
	struct veroce_options v = veroce_options();
	struct sim s;
	struct duo_rule *lost;
	struct veroce_packet p;
	uint8_t block[SACKETH_LEN];

	o.timeout = 8;
	o.retry_cnt = 2;
	s = veroce_start_sim(&v, &o, 1);
	lost = post_two(&s);
	p = answer(&s, OP_RC_SACK, psn_add(A_PSN, -1), 0x1f, 0);
	sacketh_encode(block,
		       &(struct sacketh){.valid_len = 5, .start_psn = A_PSN, .bits = {0x1f}});
	p.sacks = block;
	p.sack_count = 1;
	veroce_forge(s.duo, DUO_A, &p, NULL);
	duo_run_for(s.duo, 10000);
	assert_int_equal(s.a->sent.n, 0);
	lost->off = true;
	duo_idle(s.duo);
	/* Sent again all the same, or given up: never a success that was none. */
	assert_int_equal(s.a->sent.n, 2);
	if (s.a->sent.e[0].status == WC_SUCCESS)
		assert_memory_equal(s.bbuf->p, s.abuf->p, 4 * MTU);
	s.a->sent.taken = 2;
	s.b->received.taken = s.b->received.n;
	duo_qp_to_state(s.b, QPS_ERR);
	duo_idle(s.duo);
	s.b->received.taken = s.b->received.n;
	sim_end(&s);
}

static void naks_end_the_wqe_that_they_name(void **state)
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
		{0x61,
		 A_PSN + 4,
		 {WC_SUCCESS, WC_REM_INV_REQ_ERR}}, /* and acknowledges the first */
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = veroce_default();
		struct veroce_packet p;

		post_two(&s);
		p = answer(&s, OP_RC_ACK, rows[i].psn, rows[i].syndrome, rows[i].psn == A_PSN + 4);
		veroce_forge(s.duo, DUO_A, &p, NULL);
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, rows[i].status[0]);
		duo_expect(s.duo, &s.a->sent, 2, rows[i].status[1]);
		assert_int_equal(count_a(&s)->naks_received, 1);
		assert_int_equal(qp_state(s.a->qp), QPS_ERR);
		sim_end(&s);
	}
}

/* veRoCE 5.2, 8: exactly that packet again, and nothing is acknowledged by it. */
static void a_packet_drop_nak_costs_one_copy(void **state)
{
	struct sim s = veroce_default();
	struct duo_rule *lost = post_two(&s);
	static const uint32_t psns[] = {A_PSN + 2, A_PSN + 5, A_PSN + 1000, A_PSN - 1,
					A_PSN + 0x800000};

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
	sim_end(&s);
}

static void rnr_naks_make_wait_for_what_is_outstanding_only(void **state)
{
	static const uint32_t psns[] = {A_PSN + 5, A_PSN + 1000, A_PSN - 1, A_PSN - 1000};
	struct sim s = veroce_default();
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
	sim_end(&s);
}

/* 13.2: the peer cannot have held it for longer than it was away, nor have had it before it left. */
static void stamps_that_cannot_be_measure_nothing(void **state)
{
	static const struct {
		int32_t tx1, held; /* from now on; between RX1 and TX2 */
	} rows[] = {{-500, 501}, {-500, 1000000}, {-500, -1}, {1, 0}, {1000000, 0}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = veroce_default();
		struct duo_wr w = duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0);
		struct veroce_packet p = answer(&s, OP_RC_ACK, A_PSN, 0x1f, 1);
		struct duo_rule *lost = mute(&s);

		assert_true(duo_post(s.a, &w));
		duo_run_for(s.duo, 2000);
		p.bth.ts = true;
		p.tse.tx1 = (uint32_t)s.duo->now_ns + (uint32_t)rows[i].tx1;
		p.tse.rx1 = 7;
		p.tse.tx2 = 7 + (uint32_t)rows[i].held;
		veroce_forge(s.duo, DUO_A, &p, NULL);
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS); /* the rest of it may be true */
		assert_true(s.a->qp->veroce->pair->path[0].srtt_ns <= 2000);
		lost->off = true;
		sim_end(&s);
	}
}

/* veRoCE 11: the peer cannot use our responses. Only what was sent can be refused. */
static void acknowledgements_of_responses_that_were_not_sent_are_dropped(void **state)
{
	struct sim s = veroce_default();
	uint64_t dropped = count_b(&s)->rx_dropped;

	for (uint32_t ahead = 1; ahead < 1u << 22; ahead *= 7) {
		struct veroce_packet p = answer(&s, OP_RC_ACK_RSP, A_PSN - 1 + ahead, 0x1f, ahead);

		p.bth.dqpn = s.b->qpn;
		veroce_forge(s.duo, DUO_B, &p, NULL);
		dropped++;
		assert_int_equal(count_b(&s)->rx_dropped, dropped);
	}
	struct duo_wr r = duo_read_wr(1, s.abuf, 0, 5000, s.bbuf, 0);

	assert_true(duo_post(s.a, &r));
	duo_idle(s.duo);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	assert_memory_equal(s.abuf->p, s.bbuf->p, 5000);
	expect_alive(&s, 2);
	sim_end(&s);
}

static struct veroce_packet result(const struct sim *s, uint8_t opcode, uint32_t payload_len)
{
	return (struct veroce_packet){
		.bth = {.opcode = opcode, .dqpn = s->a->qpn, .psn = A_PSN},
		.aeth = {.syndrome = 0x1f, .msn = 1},
		.msn = 1,
		.orig = 77,
		.payload_len = payload_len,
	};
}

static void expect_a_untouched(const struct sim *s)
{
	struct prng r;

	prng_init(&r, 1);
	for (uint64_t i = 0; i < s->abuf->len; i++)
		assert_int_equal(s->abuf->p[i], (uint8_t)prng_next(&r));
}

static void results_that_nobody_asked_for_are_dropped(void **state)
{
	static const uint8_t opcodes[] = {OP_RC_READ_RESPONSE_ONLY, OP_RC_READ_RESPONSE_FIRST,
					  OP_RC_READ_RESPONSE_LAST, OP_RC_ATOMIC_ACK};
	struct sim s = veroce_default();
	struct duo_rule *lost = mute(&s);
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0);

	assert_true(duo_post(s.a, &w)); /* is not one to be answered so */
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
	duo_idle(s.duo);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	sim_end(&s);
}

/* A READ of 2500 bytes is to be answered by three packets; these are none of them. */
/* 7.7: a copy may mean that the acknowledgement was lost. Not after the ACK timer's time, but at once. */
static void copies_are_answered_at_once_in_both_spaces(void **state)
{
	struct sim s = veroce_default();
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
	sim_end(&s);
}

/* Out-of-order R12, in space R. */
static void results_beyond_the_window_leave_no_trace(void **state)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct duo_wr w;
	struct sim s;

	v.rx_window = 128;
	s = veroce_start_sim(&v, &o, 1);
	w = duo_read_wr(1, s.abuf, 0, 200 * MTU / 4, s.bbuf, 0);
	struct duo_rule *lost = duo_drop(s.duo, DUO_B, DUO_ANY, DUO_ANY);

	assert_true(duo_post(s.a, &w));
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
	duo_idle(s.duo);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	assert_memory_equal(s.abuf->p, s.bbuf->p, 200 * MTU / 4);
	sim_end(&s);
}

static void results_that_do_not_fit_are_not_placed(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t payload_len, msn, request_msn, po;
	} rows[] = {
		{OP_RC_READ_RESPONSE_FIRST, MTU, 2, 1, 0},
		{OP_RC_READ_RESPONSE_MIDDLE, MTU, 1, 2, 1}, /* of another request */
		{OP_RC_READ_RESPONSE_MIDDLE, MTU, 1, 1, 0}, /* the place of the first */
		{OP_RC_READ_RESPONSE_MIDDLE, MTU, 1, 1, 3}, /* behind the end */
		{OP_RC_READ_RESPONSE_MIDDLE, MTU, 1, 1, 0xffffff},
		{OP_RC_READ_RESPONSE_MIDDLE, MTU - 4, 1, 1, 1},
		{OP_RC_READ_RESPONSE_MIDDLE, 0, 1, 1, 1},
		{OP_RC_READ_RESPONSE_LAST, MTU, 1, 1, 2}, /* more than is left */
		{OP_RC_READ_RESPONSE_LAST, 8, 1, 1, 1},
		{OP_RC_READ_RESPONSE_ONLY, 452, 1, 1, 0},
		{OP_RC_ATOMIC_ACK, 0, 1, 1, 0},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = veroce_default();
		struct duo_rule *lost = mute(&s);
		struct duo_wr r = duo_read_wr(1, s.abuf, 0, 2500, s.bbuf, 0);
		struct veroce_packet p = result(&s, rows[i].opcode, rows[i].payload_len);
		uint64_t dropped;

		assert_true(duo_post(s.a, &r));
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
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		assert_memory_equal(s.abuf->p, s.bbuf->p, 2500);
		sim_end(&s);
	}
}

static void a_result_that_does_not_fit_in_its_turn_ends_the_connection(void **state)
{
	struct sim s = veroce_default();
	struct duo_rule *lost = mute(&s);
	struct duo_wr r = duo_read_wr(1, s.abuf, 0, 2500, s.bbuf, 0);
	struct veroce_packet p = result(&s, OP_RC_READ_RESPONSE_ONLY, 8);

	assert_true(duo_post(s.a, &r));
	duo_run_for(s.duo, 1000);
	veroce_forge(s.duo, DUO_A, &p, junk);
	duo_idle(s.duo);
	duo_expect(s.duo, &s.a->sent, 1, WC_BAD_RESP_ERR);
	assert_int_equal(qp_state(s.a->qp), QPS_ERR);
	expect_a_untouched(&s);
	lost->off = true;
	sim_end(&s);
}

/* Each fits its request, but not what came before it: told when its turn comes (veRoCE 11). */
static void results_out_of_place_end_the_connection(void **state)
{
	static const struct {
		uint8_t opcode;
		bool early; /* the right first packet follows */
		uint32_t msn, po, payload_len;
	} rows[] = {
		{OP_RC_READ_RESPONSE_MIDDLE, false, 1, 1, MTU},
		{OP_RC_READ_RESPONSE_LAST, false, 1, 2, 2500 - 2 * MTU},
		{OP_RC_READ_RESPONSE_ONLY, false, 2, 0, 100},
		{OP_RC_READ_RESPONSE_LAST, true, 1, 2, 2500 - 2 * MTU},
		{OP_RC_READ_RESPONSE_ONLY, true, 2, 0, 100},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = veroce_default();
		struct duo_rule *lost = mute(&s);
		struct duo_wr r = duo_read_wr(1, s.abuf, 0, 2500, s.bbuf, 0);
		struct duo_wr next = duo_read_wr(2, s.abuf, 4000, 100, s.bbuf, 0);
		struct veroce_packet p = result(&s, rows[i].opcode, rows[i].payload_len);
		struct veroce_packet first = result(&s, OP_RC_READ_RESPONSE_FIRST, MTU);
		const struct duo_packet *nak;

		assert_true(duo_post(s.a, &r));
		assert_true(duo_post(s.a, &next));
		duo_run_for(s.duo, 1000);
		p.bth.psn += rows[i].early;
		p.msn = p.aeth.msn = rows[i].msn;
		p.po = rows[i].po;
		veroce_forge(s.duo, DUO_A, &p, junk);
		duo_run_for(s.duo, 10);
		assert_int_equal(s.a->sent.n != 0, !rows[i].early);
		if (rows[i].early)
			veroce_forge(s.duo, DUO_A, &first, junk);
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_BAD_RESP_ERR);
		duo_expect(s.duo, &s.a->sent, 2, WC_WR_FLUSH_ERR);
		/* The peer is told, if it is not deaf to it. */
		nak = duo_packet(s.duo, DUO_A, OP_RC_ACK_RSP, duo_count(s.duo, DUO_A, OP_RC_ACK_RSP) - 1);
		assert_non_null(nak);
		assert_int_equal(nak->aeth.syndrome, AETH_NAK | NAK_INVALID_REQUEST);
		assert_int_equal(qp_state(s.a->qp), QPS_ERR);
		lost->off = true;
		sim_end(&s);
	}
}

/* ---- outside the PSN spaces ------------------------------------------------------------------ */

static struct veroce_packet caps(const struct sim *s, uint8_t opcode)
{
	return (struct veroce_packet){
		.bth = {.opcode = opcode, .dqpn = s->a->qpn, .psn = A_PSN},
		.caps = {.magic = CAPS_MAGIC,
			 .version = CAPS_VERSION,
			 .profile = 3,
			 .rx_window_q = 128,
			 .rx_window_r = 128,
			 .mtu_code = 3,
			 .paths = 1,
			 .source_qpn = s->b->qpn},
	};
}

static void capabilities_of_others_are_not_believed(void **state)
{
	enum wrong { MAGIC, VERSION, SOURCE, PSN, NONCE, WRONGS };
	struct sim s = veroce_default();
	size_t answers = duo_count(s.duo, DUO_A, OP_CAPS_RESPONSE);

	for (enum wrong wrong = 0; wrong < WRONGS; wrong++) {
		struct veroce_packet p =
			caps(&s, wrong == NONCE ? OP_CAPS_RESPONSE : OP_CAPS_REQUEST);
		uint64_t dropped = count_a(&s)->rx_dropped;

		p.caps.magic ^= wrong == MAGIC;
		p.caps.version += wrong == VERSION;
		p.caps.source_qpn ^= wrong == SOURCE;
		p.bth.psn -= wrong == PSN;
		p.caps.nonce = 0x12345678;
		veroce_forge(s.duo, DUO_A, &p, NULL);
		assert_int_equal(count_a(&s)->rx_dropped, dropped + 1);
	}
	duo_idle(s.duo);
	assert_int_equal(duo_count(s.duo, DUO_A, OP_CAPS_RESPONSE), answers);
	expect_alive(&s, 1);
	sim_end(&s);
}

/* Once it was heard to speak veRoCE, the peer cannot be said to speak something else. */
static void a_peer_that_is_known_cannot_be_talked_away(void **state)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct sim s;
	struct veroce_packet p;
	struct bth bth = {.opcode = OP_RC_SEND_ONLY, .pkey = 0xffff, .psn = B_PSN};

	v.protocol[DUO_A] = v.protocol[DUO_B] = NIC_PROTOCOL_AUTO;
	s = veroce_start_sim(&v, &o, 1);
	expect_alive(&s, 1);
	p = caps(&s, OP_CAPS_REQUEST);
	p.caps.profile = 0;
	veroce_forge(s.duo, DUO_A, &p, NULL);
	bth.dqpn = s.a->qpn;
	duo_forge(s.duo, DUO_A, DUO_GID_IPV4, &bth, NULL, 0, junk, 8);
	duo_idle(s.duo);
	assert_int_equal(count_a(&s)->fallbacks, 0);
	assert_int_equal(count_a(&s)->rx_wrong_source, 1);
	expect_alive(&s, 2);
	sim_end(&s);
}

static void control_packets_change_no_state(void **state)
{
	static const uint8_t opcodes[] = {OP_RTT_RESPONSE, OP_CNP, OP_SLOW_PACKET, OP_RTT_REQUEST};
	struct sim s = veroce_default();
	struct duo_rule *lost = post_two(&s);
	const struct duo_packet *reply;
	uint64_t dropped = count_a(&s)->rx_dropped;

	for (uint32_t i = 0; i < 400; i++) {
		struct veroce_packet p = {
			.bth = {.opcode = opcodes[i / 100],
				.dqpn = s.a->qpn,
				.psn = A_PSN + i % 100 - 10},
			.rtt = {.context = i, .tx1 = 7 * i},
			.payload_len = i % 2 && opcodes[i / 100] == OP_CNP ? CNP_RESV_LEN : 0,
		};

		veroce_forge(s.duo, DUO_A, &p, junk);
	}
	assert_int_equal(count_a(&s)->rx_dropped, dropped + 100); /* no probe was on its way */
	assert_int_equal(count_a(&s)->cnps_received, 100);
	assert_int_equal(count_a(&s)->slow_signals, 100);
	duo_run_for(s.duo, 1000);
	assert_int_equal(duo_count(s.duo, DUO_A, OP_RTT_RESPONSE), 1); /* of a burst the last */
	reply = veroce_last(s.duo, DUO_A, OP_RTT_RESPONSE);
	assert_int_equal(reply->from, DUO_A);
	assert_int_equal(s.a->sent.n, 0);
	lost->off = true;
	expect_both(&s);
	sim_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_stranger_sends_is_dropped),
		cmocka_unit_test(headers_that_are_not_for_the_qp_are_dropped),
		cmocka_unit_test(old_psns_are_never_placed),
		cmocka_unit_test(psns_beyond_the_window_leave_no_trace),
		cmocka_unit_test(early_mistakes_are_dropped_and_harm_nothing),
		cmocka_unit_test(mistakes_in_their_turn_are_answered),
		cmocka_unit_test(messages_that_do_not_go_on_are_refused),
		cmocka_unit_test(results_out_of_place_end_the_connection),
		cmocka_unit_test(early_ends_with_wrong_numbers_are_found_in_their_turn),
		cmocka_unit_test(copied_atomics_are_executed_once),
		cmocka_unit_test(more_reads_than_agreed_are_refused),
		cmocka_unit_test(trimmed_packets_are_asked_for_again),
		cmocka_unit_test(acknowledgements_of_what_was_not_sent_are_dropped),
		cmocka_unit_test(old_acknowledgements_confirm_nothing),
		cmocka_unit_test(message_numbers_alone_complete_nothing),
		cmocka_unit_test(bitmaps_beyond_the_window_mean_nothing),
		cmocka_unit_test(a_lying_bitmap_completes_nothing),
		cmocka_unit_test(naks_end_the_wqe_that_they_name),
		cmocka_unit_test(a_packet_drop_nak_costs_one_copy),
		cmocka_unit_test(rnr_naks_make_wait_for_what_is_outstanding_only),
		cmocka_unit_test(stamps_that_cannot_be_measure_nothing),
		cmocka_unit_test(acknowledgements_of_responses_that_were_not_sent_are_dropped),
		cmocka_unit_test(results_that_nobody_asked_for_are_dropped),
		cmocka_unit_test(copies_are_answered_at_once_in_both_spaces),
		cmocka_unit_test(results_beyond_the_window_leave_no_trace),
		cmocka_unit_test(results_that_do_not_fit_are_not_placed),
		cmocka_unit_test(a_result_that_does_not_fit_in_its_turn_ends_the_connection),
		cmocka_unit_test(capabilities_of_others_are_not_believed),
		cmocka_unit_test(a_peer_that_is_known_cannot_be_talked_away),
		cmocka_unit_test(control_packets_change_no_state),
	};

	duo_fail_hook = sim_fail;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
