/* SPDX-License-Identifier: BSD-2-Clause */
/* docs/rocev2.md, short READs that are requested in pairs of packets. */
#include "duo/sim.h"
#include "wire/psn.h"

enum { ONLY_BYTES = 65536, MTU = 1024, READ_MAX = 32 * MTU };

static void onlys(struct nic_config *c, enum duo_side side)
{
	c->transport.rocev2.only_bytes = ONLY_BYTES;
}

static struct sim start(uint8_t rd_atomic)
{
	struct duo_options o = duo_options();
	struct duo *duo = duo_create(5, onlys);

	o.max_rd_atomic = rd_atomic;
	return sim_on(duo, &o);
}

static void read_once(struct sim *s, uint64_t id, uint32_t bytes)
{
	duo_do(s->a, duo_read_wr(id, s->abuf, 0, bytes, s->bbuf, 100));
	assert_memory_equal(s->abuf->p, s->bbuf->p + 100, bytes);
}

TEST_ON(each_request_is_for_two_packets, start(32))
{
	read_once(&s, 1, 4 * MTU + 5);
	assert_int_equal(duo_count(s.duo, DUO_A, DUO_ANY), 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct duo_packet *p = duo_packet(s.duo, DUO_A, DUO_ANY, i);

		assert_int_equal(p->bth.opcode, OP_RC_READ_REQUEST);
		assert_int_equal(p->bth.psn, psn_add(s.a->opt.psn[DUO_A], 2 * i));
		assert_true(p->reth.va == s.bbuf->iova + 100 + 2 * i * MTU);
		assert_int_equal(p->reth.len, i < 2 ? 2 * MTU : 5);
	}
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(duo_packet(s.duo, DUO_B, DUO_ANY, i)->bth.opcode, i == 4  ? OP_RC_READ_RESPONSE_ONLY
										   : i & 1 ? OP_RC_READ_RESPONSE_LAST
											   : OP_RC_READ_RESPONSE_FIRST);
}

TEST_ON(responses_of_several_reads_share_a_train, start(32))
{
	struct duo_wr w[4];

	for (uint32_t i = 0; i < COUNT(w); i++)
		w[i] = duo_read_wr(i, s.abuf, i * 4 * MTU, 4 * MTU, s.bbuf, i * 4 * MTU);
	assert_true(duo_post_chain(s.a, w, COUNT(w)));
	duo_idle(s.duo);
	assert_int_equal(duo_packet(s.duo, DUO_B, OP_RC_READ_RESPONSE_FIRST, 0)->train, 4 * COUNT(w));
	for (uint64_t i = 0; i < COUNT(w); i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	assert_memory_equal(s.abuf->p, s.bbuf->p, COUNT(w) * 4 * MTU);
}

/* Two packets are a pair anyway, many fill a train, and where few requests may be under way pairs are too little. */
TEST(other_reads_are_requested_whole)
{
	static const struct {
		uint32_t bytes;
		uint8_t rd_atomic;
	} rows[] = {{2 * MTU, 32}, {READ_MAX + 1, 32}, {4 * MTU, 31}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = start(rows[i].rd_atomic);

		read_once(&s, 1, rows[i].bytes);
		assert_int_equal(duo_count(s.duo, DUO_A, OP_RC_READ_REQUEST), 1);
		sim_end(&s);
	}
}

/* Whichever response is lost, the READ is complete in the end, and asked for as it was. */
TEST(a_lost_response_is_requested_again)
{
	for (int lost = 0; lost < 8; lost++) {
		struct sim s = start(32);
		struct duo_wr w[] = {duo_read_wr(1, s.abuf, 0, 4 * MTU, s.bbuf, 0),
				     duo_read_wr(2, s.abuf, 8 * MTU, 4 * MTU, s.bbuf, 8 * MTU)};

		duo_drop(s.duo, DUO_B, lost & 1 ? OP_RC_READ_RESPONSE_LAST : OP_RC_READ_RESPONSE_FIRST, lost / 2);
		assert_true(duo_post_chain(s.a, w, 2));
		duo_finish(s.a, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		assert_int_equal(duo_count(s.duo, DUO_B, OP_RC_READ_RESPONSE_MIDDLE), 0);
		assert_memory_equal(s.abuf->p, s.bbuf->p, 4 * MTU);
		assert_memory_equal(s.abuf->p + 8 * MTU, s.bbuf->p + 8 * MTU, 4 * MTU);
		sim_end(&s);
	}
}
