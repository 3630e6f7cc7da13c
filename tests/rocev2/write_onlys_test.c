/* SPDX-License-Identifier: BSD-2-Clause */
/* docs/rocev2.md, WRITEs as WRITE Only packets: what leaves, what arrives, and what a refusal leaves behind. */
#include "duo/sim.h"
#include "wire/psn.h"

enum { ONLY_BYTES = 8192, MTU = 1024 };

static void onlys(struct nic_config *c, enum duo_side side)
{
	c->transport.rocev2.only_bytes = ONLY_BYTES;
}

static struct sim start(enum qp_type type)
{
	struct duo_options o = duo_options();

	o.type = type;
	return sim_on(duo_create(5, onlys), &o);
}

/* Each packet has a RETH of its own bytes; the last alone has AckReq. */
TEST_ON(each_packet_says_where_its_own_bytes_go, start(QPT_RC))
{
	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 2 * MTU + 5, s.bbuf, 100));
	duo_idle(s.duo);
	assert_int_equal(duo_count(s.duo, DUO_A, DUO_ANY), 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct duo_packet *p = duo_packet(s.duo, DUO_A, DUO_ANY, i);
		uint32_t len = i < 2 ? MTU : 5;

		assert_int_equal(p->bth.opcode, OP_RC_WRITE_ONLY);
		assert_int_equal(p->bth.psn, psn_add(s.a->opt.psn[DUO_A], i));
		assert_int_equal(p->bth.ackreq, i == 2);
		assert_true(p->reth.va == s.bbuf->iova + 100 + i * MTU);
		assert_int_equal(p->reth.len, len);
		assert_int_equal(p->reth.rkey, s.bbuf->mr->key);
		assert_int_equal(p->payload_len, len);
	}
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	assert_memory_equal(s.bbuf->p + 100, s.abuf->p, 2 * MTU + 5);
}

/* The receiver's completion tells the length of the whole message, as programs expect of a WRITE with immediate. */
TEST_ON(a_write_with_immediate_stays_whole, start(QPT_RC))
{
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, 2 * MTU + 5, s.bbuf, 0);

	w.opcode = WR_WRITE_IMM;
	assert_true(duo_recv(s.b, 10, s.bbuf, 0, 0));
	assert_true(duo_post(s.a, &w));
	duo_idle(s.duo);
	assert_int_equal(duo_count(s.duo, DUO_A, OP_RC_WRITE_FIRST), 1);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	assert_int_equal(duo_expect(s.duo, &s.b->received, 10, WC_SUCCESS)->byte_len, 2 * MTU + 5);
}

TEST_ON(messages_of_one_length_share_a_train, start(QPT_RC))
{
	struct duo_wr w[8];

	for (uint32_t i = 0; i < COUNT(w); i++)
		w[i] = duo_write_wr(i, s.abuf, i * 4 * MTU, 4 * MTU, s.bbuf, i * 4 * MTU);
	assert_true(duo_post_chain(s.a, w, COUNT(w)));
	duo_idle(s.duo);
	assert_int_equal(duo_packet(s.duo, DUO_A, DUO_ANY, 0)->train, 4 * COUNT(w));
	for (uint64_t i = 0; i < COUNT(w); i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	assert_memory_equal(s.abuf->p, s.bbuf->p, COUNT(w) * 4 * MTU);
}

/* A UC message of several packets arrives whole or not at all, so its packets have to belong together. */
TEST(longer_writes_and_uc_keep_first_middle_and_last)
{
	static const enum qp_type types[] = {QPT_RC, QPT_UC};

	for (size_t i = 0; i < COUNT(types); i++) {
		struct sim s = start(types[i]);
		bool rc = types[i] == QPT_RC;

		duo_do(s.a, duo_write_wr(1, s.abuf, 0, rc ? ONLY_BYTES + 1 : 3 * MTU, s.bbuf, 0));
		assert_int_equal(duo_count(s.duo, DUO_A, rc ? OP_RC_WRITE_FIRST : OP_UC_WRITE_FIRST), 1);
		assert_int_equal(duo_count(s.duo, DUO_A, rc ? OP_RC_WRITE_LAST : OP_UC_WRITE_LAST), 1);
		sim_end(&s);
	}
}

/* Whichever packet is lost, it is sent again as it was, and one message is one completion. */
TEST(a_lost_packet_is_sent_again_as_it_was)
{
	for (int lost = 0; lost < 4; lost++) {
		struct sim s = start(QPT_RC);
		struct duo_wr w[] = {duo_write_wr(1, s.abuf, 0, 3 * MTU, s.bbuf, 0),
				     duo_write_wr(2, s.abuf, 8 * MTU, MTU, s.bbuf, 8 * MTU)};

		duo_drop(s.duo, DUO_A, OP_RC_WRITE_ONLY, lost);
		assert_true(duo_post_chain(s.a, w, 2));
		duo_finish(s.a, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		assert_int_equal(duo_count(s.duo, DUO_A, DUO_ANY), duo_count(s.duo, DUO_A, OP_RC_WRITE_ONLY));
		assert_true(nic_counters(s.a->host->nic)->retransmits > 0);
		assert_memory_equal(s.bbuf->p, s.abuf->p, 3 * MTU);
		assert_memory_equal(s.bbuf->p + 8 * MTU, s.abuf->p + 8 * MTU, MTU);
		sim_end(&s);
	}
}

/* The packets before the one that leaves the region are written: they are inside it. Nothing behind it is. */
TEST_ON(a_write_that_leaves_its_region_fails_where_it_leaves, start(QPT_RC))
{
	uint32_t at = BUF_BYTES - MTU;

	duo_must_post(s.a, duo_write_wr(1, s.abuf, 0, 3 * MTU, s.bbuf, at));
	duo_finish(s.a, 1, WC_REM_ACCESS_ERR);
	assert_int_equal(duo_count_syndrome(s.duo, DUO_B, AETH_NAK | NAK_REMOTE_ACCESS), 1);
	assert_memory_equal(s.bbuf->p + at, s.abuf->p, MTU);
	assert_int_equal(s.duo->host[DUO_B].event_count, 1);
	s.duo->host[DUO_B].event_count = 0;
}
