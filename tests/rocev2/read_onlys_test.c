/* SPDX-License-Identifier: BSD-2-Clause */
/* docs/rocev2.md, short READs that are requested packet by packet. */
#include "duo/sim.h"
#include "wire/psn.h"

enum { ONLY_BYTES = 65536, MTU = 1024, READ_MAX = 16 << 10 };

static void onlys(struct nic_config *c, enum duo_side side)
{
	c->transport.rocev2.only_bytes = ONLY_BYTES;
}

static struct sim start(uint8_t rd_atomic, uint64_t latency_ns)
{
	struct duo_options o = duo_options();
	struct duo *duo = duo_create(5, onlys);

	if (latency_ns)
		duo->latency_ns = latency_ns;
	o.max_rd_atomic = rd_atomic;
	return sim_on(duo, &o);
}

static void read_once(struct sim *s, uint64_t id, uint32_t bytes)
{
	struct duo_wr w = duo_read_wr(id, s->abuf, 0, bytes, s->bbuf, 100);

	assert_true(duo_post(s->a, &w));
	duo_idle(s->duo);
	duo_expect(s->duo, &s->a->sent, id, WC_SUCCESS);
	assert_memory_equal(s->abuf->p, s->bbuf->p + 100, bytes);
}

static void each_request_is_for_one_packet(void **state)
{
	struct sim s = start(16, 0);

	read_once(&s, 1, 3 * MTU + 5);
	assert_int_equal(duo_count(s.duo, DUO_A, DUO_ANY), 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct duo_packet *p = duo_packet(s.duo, DUO_A, DUO_ANY, i);

		assert_int_equal(p->bth.opcode, OP_RC_READ_REQUEST);
		assert_int_equal(p->bth.psn, psn_add(s.a->opt.psn[DUO_A], i));
		assert_true(p->reth.va == s.bbuf->iova + 100 + i * MTU);
		assert_int_equal(p->reth.len, i < 3 ? MTU : 5);
		assert_int_equal(duo_packet(s.duo, DUO_B, DUO_ANY, i)->bth.opcode, OP_RC_READ_RESPONSE_ONLY);
	}
	sim_end(&s);
}

static void responses_of_several_reads_share_a_train(void **state)
{
	struct sim s = start(16, 0);
	struct duo_wr w[4];

	for (uint32_t i = 0; i < COUNT(w); i++)
		w[i] = duo_read_wr(i, s.abuf, i * 4 * MTU, 4 * MTU, s.bbuf, i * 4 * MTU);
	assert_true(duo_post_chain(s.a, w, COUNT(w)));
	duo_idle(s.duo);
	assert_int_equal(duo_packet(s.duo, DUO_B, OP_RC_READ_RESPONSE_ONLY, 0)->train, 4 * COUNT(w));
	for (uint64_t i = 0; i < COUNT(w); i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	assert_memory_equal(s.abuf->p, s.bbuf->p, COUNT(w) * 4 * MTU);
	sim_end(&s);
}

/* Two packets are alike anyway, long ones would wait for round trips, and so would all if few requests may be under way. */
static void other_reads_are_requested_whole(void **state)
{
	static const struct {
		uint32_t bytes;
		uint8_t rd_atomic;
	} rows[] = {{2 * MTU, 16}, {READ_MAX + 1, 16}, {4 * MTU, 15}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = start(rows[i].rd_atomic, 0);

		read_once(&s, 1, rows[i].bytes);
		assert_int_equal(duo_count(s.duo, DUO_A, OP_RC_READ_REQUEST), 1);
		sim_end(&s);
	}
}

/* Over a long way little would be under way. */
static void who_is_far_away_is_asked_for_whole_reads(void **state)
{
	enum { READS = 40, EACH = 4 };
	static const struct {
		uint64_t latency_ns;
		bool whole;
	} rows[] = {{10000, false}, {100000, true}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = start(16, rows[i].latency_ns);
		size_t before, requests;

		for (uint64_t id = 0; id < READS; id++)
			read_once(&s, id, EACH * MTU);
		before = duo_count(s.duo, DUO_A, OP_RC_READ_REQUEST);
		read_once(&s, READS, EACH * MTU);
		requests = duo_count(s.duo, DUO_A, OP_RC_READ_REQUEST) - before;
		assert_int_equal(requests, rows[i].whole ? 1 : EACH);
		sim_end(&s);
	}
}

/* Whichever response is lost, the READ is complete in the end, and asked for as it was. */
static void a_lost_response_is_requested_again(void **state)
{
	for (int lost = 0; lost < 8; lost++) {
		struct sim s = start(16, 0);
		struct duo_wr w[] = {duo_read_wr(1, s.abuf, 0, 4 * MTU, s.bbuf, 0), duo_read_wr(2, s.abuf, 8 * MTU, 4 * MTU, s.bbuf, 8 * MTU)};

		duo_drop(s.duo, DUO_B, OP_RC_READ_RESPONSE_ONLY, lost);
		assert_true(duo_post_chain(s.a, w, 2));
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		assert_int_equal(duo_count(s.duo, DUO_B, DUO_ANY), duo_count(s.duo, DUO_B, OP_RC_READ_RESPONSE_ONLY));
		assert_memory_equal(s.abuf->p, s.bbuf->p, 4 * MTU);
		assert_memory_equal(s.abuf->p + 8 * MTU, s.bbuf->p + 8 * MTU, 4 * MTU);
		sim_end(&s);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(each_request_is_for_one_packet),
	cmocka_unit_test(responses_of_several_reads_share_a_train),
	cmocka_unit_test(other_reads_are_requested_whole),
	cmocka_unit_test(who_is_far_away_is_asked_for_whole_reads),
	cmocka_unit_test(a_lost_response_is_requested_again),
};

SIM_MAIN(tests)
