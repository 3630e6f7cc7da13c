/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A veRoCE responder refuses packets in turn: a wrong packet that is early counts as lost until
 * everything before it has arrived (out-of-order O4, O34; R11, problem K).
 */
#include "support/test.h"
#include "veroce/veroce.h"

enum { NAK_INVALID = AETH_NAK | NAK_INVALID_REQUEST, NAK_ACCESS = AETH_NAK | NAK_REMOTE_ACCESS };

/* Packets that say NAK, and their PSN in *psn. */
static uint32_t naks(const struct duo *d, uint8_t syndrome, uint32_t *psn)
{
	uint32_t n = 0;

	for (size_t i = 0; i < d->wire_count; i++) {
		const struct duo_packet *p = &d->wire[i];

		if (p->from == DUO_B && p->bth.opcode == OP_RC_ACK && p->aeth.syndrome == syndrome) {
			n++;
			*psn = p->bth.psn;
		}
	}
	return n;
}

/*
 * out-of-order O4: packets that can be placed are placed; the error is reported when its packet is
 * the next.
 */
VEROCE_VARIANTS_TEST(error_of_a_late_first_packet_is_told_in_turn)
{
	static const uint8_t rank[] = {4, 0, 2, 3, 1};
	uint32_t first = s.a->opt.psn[DUO_A], psn = 0;
	struct veroce_order order = {.psn = first, .count = 5, .rank = rank};
	/* The first packet would lie before the region. */
	struct duo_rule *block = veroce_block(s.duo, &first);

	order.lost = 1;
	veroce_set_order(s.duo, &order);
	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 5 * s.a->opt.mtu, s.bbuf, -(uint64_t)s.a->opt.mtu));
	duo_run_for(s.duo, 50000);
	assert_int_equal(naks(s.duo, NAK_ACCESS, &psn), 0);
	assert_int_equal(s.a->sent.n, 0);
	block->off = true;
	duo_finish(s.a, 1, WC_REM_ACCESS_ERR);
	assert_int_equal(naks(s.duo, NAK_ACCESS, &psn), 1);
	assert_int_equal(psn, first);
	assert_int_equal(qp_state(s.a->qp), QPS_ERR);
	assert_int_equal(qp_state(s.b->qp), QPS_ERR);
	assert_true(duo_had_event(s.b->host, EVENT_QP_ACCESS_ERR, s.b));
}

/* ---- an error behind a hole ------------------------------------------------------------------ */

struct mistake {
	const char *what;
	uint8_t syndrome; /* 0: no NAK */
	enum wc_status status;
	enum wc_status recv_status; /* of the second receive */
};

enum { BAD_KEY, NOT_WRITABLE, BAD_READ, ODD_ATOMIC, BAD_ATOMIC, TOO_LONG, BAD_INVALIDATE, BAD_IMMEDIATE, MISTAKES };

static const struct mistake mistakes[MISTAKES] = {
	[BAD_KEY] = {"WRITE to an unknown key", NAK_ACCESS, WC_REM_ACCESS_ERR, WC_WR_FLUSH_ERR},
	[NOT_WRITABLE] = {"WRITE past the end", NAK_ACCESS, WC_REM_ACCESS_ERR, WC_WR_FLUSH_ERR},
	[BAD_READ] = {"READ past the end", NAK_ACCESS, WC_REM_ACCESS_ERR, WC_WR_FLUSH_ERR},
	[ODD_ATOMIC] = {"odd atomic", NAK_INVALID, WC_REM_INV_REQ_ERR, WC_WR_FLUSH_ERR},
	[BAD_ATOMIC] = {"atomic past the end", NAK_ACCESS, WC_REM_ACCESS_ERR, WC_WR_FLUSH_ERR},
	[TOO_LONG] = {"SEND longer than the receive", NAK_INVALID, WC_REM_INV_REQ_ERR, WC_LOC_LEN_ERR},
	[BAD_INVALIDATE] = {"invalidation of an unknown key", 0, WC_SUCCESS, WC_REM_INV_REQ_ERR}, /* class J */
	[BAD_IMMEDIATE] = {"WRITE with immediate to an unknown key", NAK_ACCESS, WC_REM_ACCESS_ERR, WC_LOC_ACCESS_ERR},
};

static struct duo_wr make(const struct sim *s, int which)
{
	uint32_t mtu = s->a->opt.mtu;
	struct duo_wr w = duo_write_wr(2, s->abuf, 0, 2 * mtu, s->bbuf, 0);

	switch (which) {
	case BAD_KEY: w.rkey ^= 1; break;
	case NOT_WRITABLE: w.remote_va = s->bbuf->iova + BUF_BYTES - 1; break;
	case BAD_READ: w = duo_read_wr(2, s->abuf, 0, 100, s->bbuf, BUF_BYTES - 99); break;
	case ODD_ATOMIC: w = duo_fetch_add_wr(2, s->abuf, 0, s->bbuf, 4, 1); break;
	case BAD_ATOMIC: w = duo_fetch_add_wr(2, s->abuf, 0, s->bbuf, BUF_BYTES, 1); break;
	case BAD_IMMEDIATE:
		w = duo_write_wr(2, s->abuf, 0, 1, s->bbuf, 0);
		w.opcode = WR_WRITE_IMM;
		w.rkey ^= 1;
		break;
	case TOO_LONG: w = duo_send_wr(2, s->abuf, 0, 2 * mtu); break;
	default:
		w = duo_send_wr(2, s->abuf, 0, 1);
		w.opcode = WR_SEND_INV;
		w.imm_or_key = s->bbuf->mr->key ^ 1;
	}
	return w;
}

/* SEND with a hole, the mistake, a good WRITE; the mistake is early, or even before all the others.
 */
static void make_mistake(const struct veroce_options *v, const struct duo_options *o, int which)
{
	struct sim s = veroce_start_sim(v, o, 1);
	uint32_t mtu = o->mtu, first = o->psn[DUO_A], hole = psn_add(first, 1), psn = 0;
	struct duo_rule *block = veroce_block(s.duo, &hole);
	struct veroce_order order = {.psn = first, .count = 6, .lost = 2};

	assert_true(duo_recv(s.b, 10, s.bbuf, 32768, 3 * mtu));
	assert_true(duo_recv(s.b, 11, s.bbuf, 50000, mtu));
	veroce_set_order(s.duo, &order);
	duo_must_post(s.a, duo_send_wr(1, s.abuf, 0, 3 * mtu));
	duo_must_post(s.a, make(&s, which));
	duo_must_post(s.a, duo_write_wr(3, s.abuf, 0, mtu, s.bbuf, 20000));
	duo_run_for(s.duo, 50000);
	for (uint8_t code = 0; code < 5; code++)
		DUO_CHECK(s.duo, !naks(s.duo, AETH_NAK | code, &psn));
	DUO_CHECK(s.duo, !s.a->sent.n && !s.b->received.n && qp_state(s.b->qp) == QPS_RTS);
	block->off = true;
	duo_finish(s.a, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, mistakes[which].status);
	duo_expect(s.duo, &s.a->sent, 3, mistakes[which].syndrome ? WC_WR_FLUSH_ERR : WC_RETRY_EXC_ERR);
	duo_expect(s.duo, &s.b->received, 10, WC_SUCCESS);
	duo_expect(s.duo, &s.b->received, 11, mistakes[which].recv_status);
	DUO_CHECK(s.duo, nic_counters(s.b->host->nic)->naks_sent == (mistakes[which].syndrome != 0));
	if (mistakes[which].syndrome) {
		DUO_CHECK(s.duo, naks(s.duo, mistakes[which].syndrome, &psn) == 1);
		/* Its first packet comes after three; of the SEND that is too long the second is the
		 * culprit. */
		DUO_CHECK(s.duo, psn == psn_add(first, which == TOO_LONG ? 4 : 3));
	}
	assert_memory_equal(s.bbuf->p + 32768, s.abuf->p, 3 * mtu);
	assert_int_equal(qp_state(s.a->qp), QPS_ERR);
	assert_int_equal(qp_state(s.b->qp), QPS_ERR);
	sim_end(&s);
}

/* out-of-order O34 among them */
TEST(mistake_behind_a_hole_waits_for_its_turn)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		for (int which = 0; which < MISTAKES; which++)
			make_mistake(&v, &o, which);
	}
}

/* A SEND that came early has its receive by then, which is not the mistake's. */
TEST(receives_of_later_messages_are_flushed)
{
	static const uint8_t rank[] = {1, 0};
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (int imm = 0; imm < 2; imm++) {
		struct sim s = veroce_start_sim(&v, &o, 1);
		struct veroce_order order = {.psn = o.psn[DUO_A], .count = 2, .rank = rank};
		struct duo_wr w[] = {duo_write_wr(1, s.abuf, 0, 4, s.bbuf, 0), duo_send_wr(2, s.abuf, 0, 100)};

		w[0].rkey ^= 1;
		w[0].opcode = imm ? WR_WRITE_IMM : WR_WRITE;
		for (uint64_t i = 0; i < 3; i++)
			assert_true(duo_recv(s.b, 10 + i, s.bbuf, 1000 * i, 1000));
		veroce_set_order(s.duo, &order);
		assert_true(duo_post_chain(s.a, w, 2));
		duo_finish(s.a, 1, WC_REM_ACCESS_ERR);
		duo_expect(s.duo, &s.a->sent, 2, WC_WR_FLUSH_ERR);
		duo_expect(s.duo, &s.b->received, 10, imm ? WC_LOC_ACCESS_ERR : WC_WR_FLUSH_ERR);
		duo_expect(s.duo, &s.b->received, 11, WC_WR_FLUSH_ERR);
		duo_expect(s.duo, &s.b->received, 12, WC_WR_FLUSH_ERR);
		sim_end(&s);
	}
}

/* Of two mistakes the first one sent is reported, even if the other arrives first. */
VEROCE_VARIANTS_TEST(first_of_two_mistakes_is_told)
{
	static const uint8_t rank[] = {1, 0};
	struct veroce_order order = {.psn = s.a->opt.psn[DUO_A], .count = 2, .rank = rank};
	struct duo_wr key = duo_write_wr(2, s.abuf, 0, 4, s.bbuf, 0);
	uint32_t psn;

	key.rkey ^= 1;
	veroce_set_order(s.duo, &order);
	duo_must_post(s.a, duo_fetch_add_wr(1, s.abuf, 0, s.bbuf, 1, 1));
	assert_true(duo_post(s.a, &key));
	duo_finish(s.a, 1, WC_REM_INV_REQ_ERR);
	duo_expect(s.duo, &s.a->sent, 2, WC_WR_FLUSH_ERR);
	assert_int_equal(naks(s.duo, NAK_INVALID, &psn), 1);
	assert_int_equal(naks(s.duo, NAK_ACCESS, &psn), 0);
}

/* A lost NAK is repeated, or the requester finds its peer silent. */
VEROCE_TEST(lost_nak_ends_in_an_error_too)
{
	duo_drop(s.duo, DUO_B, OP_RC_ACK, 0);
	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 10, s.bbuf, BUF_BYTES));
	duo_idle(s.duo);
	assert_int_equal(s.a->sent.n, 1);
	assert_int_not_equal(s.a->sent.e[0].status, WC_SUCCESS);
	s.a->sent.taken = 1;
	assert_int_equal(qp_state(s.a->qp), QPS_ERR);
}

/* The QP's own access, for any access of the region (IBTA 9.7.4.1.1). */
TEST(access_that_the_qp_does_not_give_is_refused)
{
	static const uint32_t gives[] = {MR_REMOTE_READ | MR_REMOTE_ATOMIC, MR_REMOTE_WRITE | MR_REMOTE_ATOMIC,
					 MR_REMOTE_WRITE | MR_REMOTE_READ};

	for (size_t i = 0; i < COUNT(gives); i++) {
		uint32_t psn;
		struct sim s = VEROCE_SIM(o.access = gives[i]);

		duo_must_post(s.a, i == 0   ? duo_write_wr(1, s.abuf, 0, 8, s.bbuf, 0)
				   : i == 1 ? duo_read_wr(1, s.abuf, 0, 8, s.bbuf, 0)
					    : duo_fetch_add_wr(1, s.abuf, 0, s.bbuf, 0, 1));
		duo_finish(s.a, 1, WC_REM_INV_REQ_ERR);
		assert_int_equal(naks(s.duo, NAK_INVALID, &psn), 1);
		sim_end(&s);
	}
}

/* As qp_states_test.c has it of RoCEv2: copies of what was lost do not leave either. */
VEROCE_TEST(muted_qp_acknowledges_and_sends_nothing)
{
	size_t then;

	duo_rule(s.duo, (struct duo_rule){.from = DUO_A, .opcode = OP_RC_WRITE_ONLY, .nth = 0, .fate = DUO_DROP});
	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 100, s.bbuf, 0));
	duo_run_for(s.duo, 10000);
	nic_qp_mute(s.a->host->nic, s.a->qp, true);
	then = duo_count(s.duo, DUO_A, OP_RC_WRITE_ONLY);
	duo_must_post(s.a, duo_write_wr(2, s.abuf, 0, 100, s.bbuf, 0));
	duo_must_post(s.b, duo_write_wr(3, s.bbuf, 200, 100, s.abuf, 200));
	duo_wait(s.duo, &s.b->sent, 1);
	duo_expect(s.duo, &s.b->sent, 3, WC_SUCCESS);
	duo_run_for(s.duo, 5000000);
	assert_int_equal(duo_count(s.duo, DUO_A, OP_RC_WRITE_ONLY), then);
	nic_qp_mute(s.a->host->nic, s.a->qp, false);
	duo_wait(s.duo, &s.a->sent, 2);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
}
