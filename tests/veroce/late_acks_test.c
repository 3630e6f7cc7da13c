/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * veRoCE: acknowledgements and NAKs that arrive twice, or after one that left later. The later one's report
 * stays, and a report that arrives twice counts once.
 */
#include "support/test.h"
#include "veroce/veroce.h"

enum { MTU = 1024 };

/* Three WRITEs of A of a packet each; what `mute` sends is lost until the rule is set `off`. */
static struct sim start(const struct duo_options *o, enum duo_side mute, struct duo_rule **lost)
{
	struct veroce_options v = veroce_options();
	struct sim s = veroce_start_sim(&v, o, 1);

	*lost = duo_drop(s.duo, mute, DUO_ANY, DUO_ANY);
	for (uint64_t i = 0; i < 3; i++)
		duo_must_post(s.a, duo_write_wr(i, s.abuf, i * MTU, MTU, s.bbuf, i * MTU));
	duo_run_for(s.duo, 2000);
	return s;
}

/* As B would acknowledge A's n-th WRITE, from 0 on, or what `syndrome` says of it. */
static struct veroce_packet answer(const struct sim *s, uint32_t n, uint8_t syndrome)
{
	bool ack = aeth_kind(syndrome) == AETH_ACK;

	return (struct veroce_packet){
		.bth = {.opcode = OP_RC_ACK, .dqpn = s->a->qpn, .psn = psn_add(s->a->opt.psn[DUO_A], n)},
		.aeth = {.syndrome = syndrome, .msn = ack ? n + 1 : n},
		.po = POETH_NO_INFO,
	};
}

static void end(struct sim *s, struct duo_rule *lost)
{
	lost->off = true;
	duo_idle(s->duo);
	for (uint64_t i = 0; i < 3; i++)
		duo_expect(s->duo, &s->a->sent, i, WC_SUCCESS);
	sim_end(s);
}

/* 13.2: the marks that B counted so far. The overtaken acknowledgement says nothing new about them. */
TEST(marks_are_not_taken_back)
{
	static const struct {
		uint32_t told, known;
	} rows[] = {{10, 10}, {5, 10}, {10, 10}, {12, 12}, {0xfffff0, 12}, {13, 13}};
	struct duo_options o = duo_options();
	struct duo_rule *lost;
	struct sim s = start(&o, DUO_B, &lost);

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct veroce_packet p = answer(&s, i < 3 ? 0 : 1, AETH_ACK | AETH_CREDIT_INVALID);

		p.bth.ts = true;
		p.tse = (struct tseeth){
			.tx1 = (uint32_t)s.duo->now_ns - 500, .rx1 = 7, .tx2 = 8, .path_ce = rows[i].told};
		veroce_forge(s.duo, DUO_A, &p, NULL);
		assert_int_equal(s.a->qp->veroce->pair->path[0].ce_seen, rows[i].known);
	}
	end(&s, lost);
}

/* 7.2: it repeats the wait that is already running. */
TEST(an_rnr_nak_that_comes_twice_is_one_try)
{
	struct duo_options o = duo_options();
	struct duo_rule *lost;
	struct veroce_packet p;
	struct sim s;
	uint64_t t;

	o.rnr_retry = 1;
	s = start(&o, DUO_A, &lost);
	p = answer(&s, 0, AETH_RNR_NAK | 0x0e); /* 1.28 ms */
	t = s.duo->now_ns;
	for (int i = 0; i < 5; i++) {
		veroce_forge(s.duo, DUO_A, &p, NULL);
		duo_run_for(s.duo, 100000);
	}
	assert_int_equal(s.a->sent.n, 0);
	lost->off = true;
	duo_wait(s.duo, &s.a->sent, 1);
	/* The wait does not become longer. */
	assert_in_range(s.a->sent.e[0].timestamp_ns - t, 1280000, 1300000);
	end(&s, lost);
}
