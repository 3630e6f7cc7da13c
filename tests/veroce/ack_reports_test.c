/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports of a veRoCE receiver other than arrivals: how many duplicates it received (13.2), which packet was
 * slow (9.1), and all of them on a path that works (5.3, 5).
 */
#include "nic/state.h"
#include "support/test.h"
#include "veroce/veroce.h"

enum { MTU = 1024 };

static struct sim start(uint32_t paths)
{
	return VEROCE_SIM(v.paths = paths);
}

static void write_to(struct sim *s, uint64_t wr_id, uint32_t packets)
{
	duo_must_post(s->a, duo_write_wr(wr_id, s->abuf, 0, packets * MTU, s->bbuf, 0));
	duo_wait(s->duo, &s->a->sent, s->a->sent.taken + 1); /* no longer, or the queue pairs rest */
	duo_expect(s->duo, &s->a->sent, wr_id, WC_SUCCESS);
}

/* The counts of the last stamped acknowledgements of requests and of responses. */
static void take_dups(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct veroce_packet v;
	int *dups = ctx;

	if ((p->bth.opcode == OP_RC_ACK || p->bth.opcode == OP_RC_ACK_RSP) && p->bth.ts &&
	    veroce_decode(&v, data, p->len))
		dups[p->bth.opcode == OP_RC_ACK_RSP] = v.tse.dups;
}

static struct duo_rule *copy(struct sim *s, int opcode)
{
	return duo_rule(
		s->duo,
		(struct duo_rule){.from = DUO_ANY, .opcode = opcode, .nth = DUO_ANY, .fate = DUO_DUPLICATE, .n = 100});
}

TEST_ON(copies_are_counted, start(1))
{
	int dups[2] = {-1, -1};

	s.duo->tap = take_dups;
	s.duo->tap_ctx = dups;
	for (int i = 0; i < 5; i++) {
		struct duo_rule *twice = copy(&s, OP_RC_WRITE_FIRST);

		write_to(&s, (uint64_t)i, 3);
		twice->off = true;
		assert_int_equal(dups[0], i + 1);
	}
	for (int i = 0; i < 5; i++) {
		struct duo_rule *twice = copy(&s, OP_RC_READ_RESPONSE_FIRST);

		duo_must_post(s.a, duo_read_wr((uint64_t)i, s.abuf, 0, 3 * MTU, s.bbuf, 0));
		duo_wait(s.duo, &s.a->sent, s.a->sent.taken + 1);
		duo_run_for(s.duo, 1000);
		duo_expect(s.duo, &s.a->sent, (uint64_t)i, WC_SUCCESS);
		twice->off = true;
		assert_int_equal(dups[1], i + 1);
	}
}

/* Sixteen packets a path may overtake another one. */
TEST(a_packet_far_behind_is_slow)
{
	static const struct {
		uint32_t paths, behind;
		bool told;
	} rows[] = {{1, 16, false}, {1, 17, true}, {2, 32, false}, {2, 33, true}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = start(rows[i].paths);

		duo_rule(s.duo, (struct duo_rule){.from = DUO_A,
						  .opcode = OP_RC_WRITE_FIRST,
						  .nth = 0,
						  .fate = DUO_HOLD,
						  .n = rows[i].behind});
		write_to(&s, 1, 60);
		assert_int_equal(duo_count(s.duo, DUO_B, OP_SLOW_PACKET), rows[i].told);
		sim_end(&s);
	}
}

/* 9.1: three signals in 100 us count there, so more than one in 30 us would be of no use. */
TEST_ON(slow_packets_are_told_of_now_and_then, start(1))
{
	enum { LATE = 4, PACKETS = 40, STEP_NS = 5000 };

	uint8_t rank[PACKETS] = {1, 2, 3, 8};
	struct veroce_order order = {.psn = s.a->opt.psn[DUO_A], .count = PACKETS, .rank = rank, .step_ns = STEP_NS};
	/* So that they are not sent again. */
	struct duo_rule *lost = duo_drop(s.duo, DUO_B, OP_RC_SACK, DUO_ANY);

	veroce_set_order(s.duo, &order);
	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, PACKETS * MTU, s.bbuf, 0));
	duo_run_for(s.duo, 10 * STEP_NS);
	assert_int_equal(duo_count(s.duo, DUO_B, OP_SLOW_PACKET), 2);
	assert_int_equal(duo_packet(s.duo, DUO_B, OP_SLOW_PACKET, 0)->bth.psn, order.psn);
	assert_int_equal(duo_packet(s.duo, DUO_B, OP_SLOW_PACKET, 1)->bth.psn, psn_add(order.psn, LATE - 1));
	lost->off = true;
	duo_finish(s.a, 1, WC_SUCCESS);
}

/* B knows that the path of A's packets is down in its own direction. */
TEST_ON(answers_leave_a_path_that_is_down, start(2))
{
	struct pair *pair = s.b->qp->veroce->pair;
	size_t acks[2] = {0};

	for (uint64_t i = 0; i < 20; i++)
		write_to(&s, i, 1);
	assert_true(pair_begin(&s.b->host->nic->tp.pairs, pair));
	duo_drop(s.duo, DUO_B, OP_RTT_REQUEST, DUO_ANY);
	path_silent(pair, 1, UINT8_MAX, s.duo->now_ns);
	assert_true(pair->path[1].down);
	for (size_t k = s.duo->wire_count, i = 20; i < 60; i++) {
		write_to(&s, i, 1);
		for (; k < s.duo->wire_count; k++) {
			const struct duo_packet *p = &s.duo->wire[k];

			acks[p->path] += p->from == DUO_B && p->bth.opcode == OP_RC_ACK;
		}
	}
	assert_true(pair->path[1].down);
	assert_int_equal(acks[1], 0);
	assert_int_equal(acks[0], 40);
}
