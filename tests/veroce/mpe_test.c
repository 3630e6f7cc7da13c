/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FLUSH and ATOMIC WRITE under veRoCE: executed in their turn and once, in every order in which memory may be written
 * (veRoCE 7.8; out-of-order R8, R9, R23).
 */
#include "support/test.h"
#include "veroce/veroce.h"

static const uint64_t value = UINT64_C(0x1122334455667788);
static const enum rx_order orders[] = {ORDER_MESSAGE, ORDER_WEAK, ORDER_STRONG};

static uint64_t word(const struct duo_buf *b, uint64_t off)
{
	uint64_t v;

	memcpy(&v, b->p + off, sizeof(v));
	return v;
}

TEST(both_arrive_and_are_answered_without_payload)
{
	struct sim s = veroce_default();
	struct duo_wr f = duo_flush_wr(1, s.bbuf, 100, 5000), w = duo_atomic_write_wr(2, &value, s.bbuf, 64);

	assert_true(duo_post(s.a, &f));
	assert_true(duo_post(s.a, &w));
	duo_idle(s.duo);
	assert_int_equal(duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS)->opcode, WC_FLUSH);
	assert_int_equal(duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS)->opcode, WC_ATOMIC_WRITE);
	assert_int_equal(word(s.bbuf, 64), value);
	assert_int_equal(duo_count(s.duo, DUO_B, OP_RC_READ_RESPONSE_ONLY), 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(duo_packet(s.duo, DUO_B, OP_RC_READ_RESPONSE_ONLY, i)->payload_len, 0);
	assert_int_equal(veroce_retransmits(s.duo), 0);
	sim_end(&s);
}

/* Whether a response is on the wire. */
static bool is_answered(const struct sim *s)
{
	return duo_count(s->duo, DUO_B, OP_RC_READ_RESPONSE_ONLY) > 0;
}

/* R23: the FLUSH has come, and the WRITE before it has a hole. */
TEST(a_flush_waits_for_a_hole_before_it)
{
	for (size_t k = 0; k < COUNT(orders); k++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();

		v.order = orders[k];
		for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
			struct sim s = veroce_start_sim(&v, &o, 1);
			uint32_t hole = psn_add(o.psn[DUO_A], 1), len = 4 * o.mtu;
			struct duo_rule *block = veroce_block(s.duo, &hole);
			struct duo_wr w = duo_write_wr(1, s.abuf, 0, len, s.bbuf, 0);
			struct duo_wr f = duo_flush_wr(2, s.bbuf, 0, len);

			assert_true(duo_post(s.a, &w));
			assert_true(duo_post(s.a, &f));
			duo_run_for(s.duo, 50000);
			assert_true(duo_count(s.duo, DUO_A, OP_RC_FLUSH) > 0);
			assert_false(is_answered(&s));
			block->off = true;
			duo_wait(s.duo, &s.a->sent, 2);
			assert_memory_equal(s.bbuf->p, s.abuf->p, len);
			duo_idle(s.duo);
			duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
			duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
			sim_end(&s);
		}
	}
}

/* R8: the ATOMIC WRITE is kept until its turn, and what is behind it in message order too. */
TEST(an_atomic_write_waits_for_a_hole_before_it)
{
	for (size_t k = 0; k < COUNT(orders); k++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();

		v.order = orders[k];
		for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
			struct sim s = veroce_start_sim(&v, &o, 1);
			uint32_t hole = psn_add(o.psn[DUO_A], 1);
			struct duo_rule *block = veroce_block(s.duo, &hole);
			struct duo_wr w = duo_write_wr(1, s.abuf, 0, 3 * o.mtu, s.bbuf, 0);
			struct duo_wr x = duo_atomic_write_wr(2, &value, s.bbuf, 2 * o.mtu);
			struct duo_wr behind = duo_write_wr(3, s.abuf, 8, 8, s.bbuf, 40000);
			uint64_t before = word(s.bbuf, 40000);

			assert_true(duo_post(s.a, &w));
			assert_true(duo_post(s.a, &x));
			assert_true(duo_post(s.a, &behind));
			duo_run_for(s.duo, 50000);
			assert_int_not_equal(word(s.bbuf, 2 * o.mtu), value);
			if (v.order != ORDER_WEAK)
				assert_int_equal(word(s.bbuf, 40000), before);
			block->off = true;
			duo_idle(s.duo);
			for (uint64_t n = 1; n <= 3; n++)
				duo_expect(s.duo, &s.a->sent, n, WC_SUCCESS);
			assert_int_equal(word(s.bbuf, 2 * o.mtu), value);
			assert_int_equal(word(s.bbuf, 40000), word(s.abuf, 8));
			sim_end(&s);
		}
	}
}

/* R9: the word has changed meanwhile, and keeps what it has. */
TEST(an_atomic_write_whose_answer_is_lost_is_executed_once)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();

	for (unsigned i = 0; veroce_variant(&v, &o, i); i++) {
		for (int lost = 1; lost <= 3; lost++) {
			struct sim s = veroce_start_sim(&v, &o, 1);
			struct duo_wr w = duo_atomic_write_wr(1, &value, s.bbuf, 0);
			const uint64_t later = 5;

			for (int n = 0; n < lost; n++)
				duo_drop(s.duo, DUO_B, OP_RC_READ_RESPONSE_ONLY, 0);
			assert_true(duo_post(s.a, &w));
			duo_run_for(s.duo, 30000);
			assert_int_equal(word(s.bbuf, 0), value);
			memcpy(s.bbuf->p, &later, 8);
			duo_idle(s.duo);
			duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
			assert_int_equal(word(s.bbuf, 0), later);
			sim_end(&s);
		}
	}
}

/* Values one after the other to one word, and FLUSHes between: none is lost, none comes back. */
TEST(words_change_in_order_whatever_happens)
{
	enum { WRITES = 100 };

	for (uint64_t seed = 1; seed <= 24; seed++) {
		struct veroce_options v = veroce_options();
		struct duo_options o = duo_options();
		uint64_t posted = 0, seen = 0;

		veroce_variant(&v, &o, seed % VEROCE_VARIANTS);
		v.paths = 1 + seed % 4;
		v.order = orders[seed % COUNT(orders)];
		o.max_rd_atomic = 1 + seed % 16;
		o.max_dest_rd_atomic = o.max_rd_atomic;

		struct sim s = veroce_start_sim(&v, &o, seed);

		for (int side = 0; side < DUO_SIDES; side++)
			s.duo->faults[side] = (struct duo_faults){
				.drop_ppm = 40000, .duplicate_ppm = 40000, .delay_ppm = 40000, .delay_ns_max = 20000};
		memset(s.bbuf->p, 0, 8);
		while (posted < WRITES || s.a->sent.n < WRITES) {
			uint64_t next = posted + 1;
			struct duo_wr w = next % 3 ? duo_atomic_write_wr(posted, &next, s.bbuf, 0)
						   : duo_flush_wr(posted, s.bbuf, 0, 8);

			if (posted < WRITES && duo_post(s.a, &w))
				posted++;
			duo_run_for(s.duo, 1000);
			assert_true(word(s.bbuf, 0) >= seen);
			seen = word(s.bbuf, 0);
		}
		duo_idle(s.duo);
		for (uint64_t i = 0; i < WRITES; i++)
			duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
		assert_int_equal(word(s.bbuf, 0), WRITES);
		sim_end(&s);
	}
}

/* The region is closed when its packets are under way. */
TEST(a_region_that_is_gone_is_an_access_error)
{
	for (int write = 0; write < 2; write++) {
		struct sim s = veroce_default();
		struct duo_wr w =
			write ? duo_atomic_write_wr(1, &value, s.bbuf, 0) : duo_flush_wr(1, s.bbuf, 0, BUF_BYTES);
		uint64_t before = word(s.bbuf, 0);

		assert_true(duo_post(s.a, &w));
		duo_buf_close(s.bbuf);
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_REM_ACCESS_ERR);
		assert_int_equal(word(s.bbuf, 0), before);
		sim_end(&s);
	}
}
