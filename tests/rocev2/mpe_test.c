/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FLUSH and ATOMIC WRITE over RoCEv2 (IBTA A19): what is on the wire, what a lost packet leads to, what is refused and
 * what comes before what.
 */
#include "duo/sim.h"
#include "wire/icrc.h"
#include "wire/psn.h"

static const uint64_t value = UINT64_C(0x1122334455667788);

static uint64_t word(const struct duo_buf *b, uint64_t off)
{
	uint64_t v;

	memcpy(&v, b->p + off, sizeof(v));
	return v;
}

/* ---- on the wire --------------------------------------------------------------------------------- */

struct seen {
	uint8_t data[64];
	uint32_t len;
	uint8_t opcode;
};

static void keep(void *ctx, const struct duo_packet *p, const uint8_t *data)
{
	struct seen *seen = ctx;

	if (p->bth.opcode != seen->opcode || seen->len)
		return;
	assert_true(p->len <= sizeof(seen->data));
	seen->len = p->len;
	memcpy(seen->data, data, p->len);
}

/* By hand from IBTA A19.3: BTH, FETH, RETH; BTH, RETH, 8 bytes. */
TEST(packets_are_the_standards)
{
	struct sim s = sim_default();
	struct duo_wr flush = duo_flush_wr(1, s.bbuf, 0, 0x1000), write = duo_atomic_write_wr(2, &value, s.bbuf, 64);
	struct seen f = {.opcode = 0x1c}, w = {.opcode = 0x1d};
	uint8_t expect[28] = {0};

	flush.selectivity = FETH_REGION;
	s.duo->tap = keep;
	s.duo->tap_ctx = &f;
	assert_true(duo_post(s.a, &flush));
	duo_idle(s.duo);
	s.duo->tap_ctx = &w;
	assert_true(duo_post(s.a, &write));
	duo_idle(s.duo);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);

	assert_int_equal(f.len, 12 + 4 + 16 + ICRC_LEN);
	assert_memory_equal(f.data + 12, ((const uint8_t[]){0, 0, 0, 0x11}), 4);
	put_be64(expect, s.bbuf->iova);
	put_be32(expect + 8, duo_key(s.bbuf));
	put_be32(expect + 12, 0x1000);
	assert_memory_equal(f.data + 16, expect, 16);

	assert_int_equal(w.len, 12 + 16 + 8 + ICRC_LEN);
	put_be64(expect, s.bbuf->iova + 64);
	put_be32(expect + 12, 8);
	memcpy(expect + 16, &value, 8);
	assert_memory_equal(w.data + 12, expect, 24);
	sim_end(&s);
}

TEST(both_are_answered_by_an_empty_read_response)
{
	struct sim s = sim_default();
	struct duo_wr flush = duo_flush_wr(1, s.bbuf, 100, 5000), write = duo_atomic_write_wr(2, &value, s.bbuf, 64);
	const struct cqe *e;

	assert_true(duo_post(s.a, &flush));
	assert_true(duo_post(s.a, &write));
	duo_idle(s.duo);
	e = duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	assert_int_equal(e->opcode, WC_FLUSH);
	e = duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	assert_int_equal(e->opcode, WC_ATOMIC_WRITE);
	assert_int_equal(word(s.bbuf, 64), value);
	assert_int_equal(duo_count(s.duo, DUO_B, OP_RC_READ_RESPONSE_ONLY), 2);
	assert_int_equal(duo_count(s.duo, DUO_B, DUO_ANY), 2);
	for (size_t i = 0; i < 2; i++) {
		const struct duo_packet *p = duo_packet(s.duo, DUO_B, OP_RC_READ_RESPONSE_ONLY, i);

		assert_int_equal(p->payload_len, 0);
		assert_int_equal(p->bth.psn, psn_add(s.a->opt.psn[DUO_A], (uint32_t)i));
		assert_int_equal(p->aeth.msn, i + 1);
	}
	sim_end(&s);
}

/* An ATOMIC WRITE may have its bytes in a region too, and in several elements. */
TEST(an_atomic_write_gathers_its_bytes)
{
	struct sim s = sim_default();
	struct duo_wr w = duo_write_wr(1, s.abuf, 3, 5, s.bbuf, 8);

	w.opcode = WR_ATOMIC_WRITE;
	w.sge[1] = duo_sge(s.abuf, 100, 3);
	w.num_sge = 2;
	assert_true(duo_post(s.a, &w));
	duo_idle(s.duo);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	assert_memory_equal(s.bbuf->p + 8, s.abuf->p + 3, 5);
	assert_memory_equal(s.bbuf->p + 13, s.abuf->p + 100, 3);
	sim_end(&s);
}

/* ---- loss ---------------------------------------------------------------------------------------- */

/* Its first answer is lost, so the request comes again; the word has changed meanwhile. */
TEST(a_repeated_atomic_write_is_answered_and_not_executed)
{
	for (int lost = 1; lost <= 3; lost++) {
		struct sim s = sim_default();
		struct duo_wr w = duo_atomic_write_wr(1, &value, s.bbuf, 64);
		uint64_t later = 5;

		for (int i = 0; i < lost; i++)
			duo_drop(s.duo, DUO_B, OP_RC_READ_RESPONSE_ONLY, 0);
		assert_true(duo_post(s.a, &w));
		duo_run_for(s.duo, 10 * DUO_LATENCY_NS);
		assert_int_equal(word(s.bbuf, 64), value);
		memcpy(s.bbuf->p + 64, &later, 8);
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		assert_int_equal(word(s.bbuf, 64), later);
		assert_int_equal(duo_count(s.duo, DUO_B, OP_RC_READ_RESPONSE_ONLY), lost + 1);
		sim_end(&s);
	}
}

TEST(lost_flushes_are_sent_again)
{
	for (int side = 0; side < DUO_SIDES; side++) {
		struct sim s = sim_default();
		struct duo_wr f = duo_flush_wr(1, s.bbuf, 0, 8);

		duo_drop(s.duo, side, DUO_ANY, 0);
		assert_true(duo_post(s.a, &f));
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		assert_int_equal(duo_count(s.duo, DUO_A, OP_RC_FLUSH), 2);
		sim_end(&s);
	}
}

/* ---- order --------------------------------------------------------------------------------------- */

/* A packet of the WRITE is lost: the FLUSH behind it is not answered before all is there. */
TEST(a_flush_waits_for_what_is_before_it)
{
	struct sim s = sim_default();
	struct duo_wr w = duo_write_wr(1, s.abuf, 0, 5000, s.bbuf, 0), f = duo_flush_wr(2, s.bbuf, 0, 5000);

	duo_drop(s.duo, DUO_A, OP_RC_WRITE_MIDDLE, 1);
	assert_true(duo_post(s.a, &w));
	assert_true(duo_post(s.a, &f));
	duo_wait(s.duo, &s.a->sent, 2);
	assert_memory_equal(s.bbuf->p, s.abuf->p, 5000);
	duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
	duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
	sim_end(&s);
}

/* Each counts as a READ does, at both ends. */
TEST(both_count_against_max_rd_atomic)
{
	struct duo_options o = duo_options();

	o.max_rd_atomic = 2;
	o.max_dest_rd_atomic = 2;

	struct sim s = sim_start(&o);

	for (uint64_t i = 0; i < 20; i++) {
		struct duo_wr f = duo_flush_wr(i, s.bbuf, 0, 8), w = duo_atomic_write_wr(i, &i, s.bbuf, 0);

		assert_true(duo_post(s.a, i % 2 ? &f : &w));
	}
	duo_run_for(s.duo, DUO_LATENCY_NS);
	assert_int_equal(duo_count(s.duo, DUO_A, DUO_ANY), 2);
	duo_idle(s.duo);
	for (uint64_t i = 0; i < 20; i++)
		duo_expect(s.duo, &s.a->sent, i, WC_SUCCESS);
	assert_int_equal(word(s.bbuf, 0), 18);
	sim_end(&s);
}

/* More at a time than the responder keeps. */
TEST(more_than_the_responder_keeps_are_an_invalid_request)
{
	struct duo_options o = duo_options();

	o.max_dest_rd_atomic = 0;

	struct sim s = sim_start(&o);
	struct duo_wr f = duo_flush_wr(1, s.bbuf, 0, 8);

	assert_true(duo_post(s.a, &f));
	duo_idle(s.duo);
	duo_expect(s.duo, &s.a->sent, 1, WC_REM_INV_REQ_ERR);
	sim_end(&s);
}

/* ---- refused ------------------------------------------------------------------------------------- */

enum { NOT_ALIGNED = 4 };

static const struct {
	const char *what;
	bool write; /* an ATOMIC WRITE, or a FLUSH */
	uint32_t qp_lacks, region_lacks;
	int64_t off;
	uint32_t len;
	uint8_t placement, selectivity;
	uint32_t rkey_xor;
	enum wc_status status;
} refused[] = {
	{"nothing is wrong", false, 0, 0, 0, BUF_BYTES, FETH_GLOBAL, FETH_RANGE, 0, WC_SUCCESS},
	{"the key", false, 0, 0, 0, 8, FETH_GLOBAL, FETH_RANGE, 1, WC_REM_ACCESS_ERR},
	{"the key, of no bytes", false, 0, 0, 0, 0, FETH_GLOBAL, FETH_RANGE, 1, WC_REM_ACCESS_ERR},
	{"the key, of a region", false, 0, 0, 0, 8, FETH_GLOBAL, FETH_REGION, 1, WC_REM_ACCESS_ERR},
	{"before the region", false, 0, 0, -1, 8, FETH_GLOBAL, FETH_RANGE, 0, WC_REM_ACCESS_ERR},
	{"behind the region", false, 0, 0, 1, BUF_BYTES, FETH_GLOBAL, FETH_RANGE, 0, WC_REM_ACCESS_ERR},
	{"a long range", false, 0, 0, 0, UINT32_MAX, FETH_GLOBAL, FETH_RANGE, 0, WC_REM_ACCESS_ERR},
	{"a region has no range", false, 0, 0, -1, UINT32_MAX, FETH_GLOBAL, FETH_REGION, 0, WC_SUCCESS},
	{"the region's right", false, 0, MR_FLUSH_GLOBAL, 0, 8, FETH_GLOBAL, FETH_RANGE, 0, WC_REM_ACCESS_ERR},
	{"the same", false, 0, MR_FLUSH_GLOBAL, 0, 8, FETH_GLOBAL, FETH_REGION, 0, WC_REM_ACCESS_ERR},
	{"no other right is needed", false, 0, MR_REMOTE_WRITE | MR_REMOTE_READ, 0, 8, FETH_GLOBAL, FETH_RANGE, 0,
	 WC_SUCCESS},
	{"persistence", false, 0, 0, 0, 8, FETH_PERSISTENT, FETH_RANGE, 0, WC_REM_ACCESS_ERR},
	{"persistence of a region", false, 0, 0, 0, 8, FETH_PERSISTENT, FETH_REGION, 0, WC_REM_ACCESS_ERR},
	{"persistence too", false, 0, 0, 0, 8, FETH_GLOBAL | FETH_PERSISTENT, FETH_RANGE, 0, WC_REM_ACCESS_ERR},
	{"the QP's right", false, MR_FLUSH_GLOBAL, 0, 0, 8, FETH_GLOBAL, FETH_RANGE, 0, WC_REM_INV_REQ_ERR},
	{"the same for persistence", false, MR_FLUSH_PERSISTENT, 0, 0, 8, FETH_PERSISTENT, FETH_RANGE, 0,
	 WC_REM_INV_REQ_ERR},
	{"no placement type", false, 0, 0, 0, 8, 0, FETH_RANGE, 0, WC_REM_INV_REQ_ERR},
	{"a reserved one", false, 0, 0, 0, 8, 4 | FETH_GLOBAL, FETH_RANGE, 0, WC_REM_INV_REQ_ERR},
	{"a reserved level", false, 0, 0, 0, 8, FETH_GLOBAL, 2, 0, WC_REM_INV_REQ_ERR},
	{"nothing is wrong", true, 0, 0, BUF_BYTES - 8, 8, 0, 0, 0, WC_SUCCESS},
	{"the key", true, 0, 0, 0, 8, 0, 0, 1, WC_REM_ACCESS_ERR},
	{"before the region", true, 0, 0, -8, 8, 0, 0, 0, WC_REM_ACCESS_ERR},
	{"behind the region", true, 0, 0, BUF_BYTES, 8, 0, 0, 0, WC_REM_ACCESS_ERR},
	{"not aligned", true, 0, 0, NOT_ALIGNED, 8, 0, 0, 0, WC_REM_INV_REQ_ERR},
	{"the region's right", true, 0, MR_REMOTE_WRITE, 0, 8, 0, 0, 0, WC_REM_ACCESS_ERR},
	{"the QP's right", true, MR_REMOTE_WRITE, 0, 0, 8, 0, 0, 0, WC_REM_INV_REQ_ERR},
	{"seven bytes", true, 0, 0, 0, 7, 0, 0, 0, WC_LOC_LEN_ERR},
	{"sixteen bytes", true, 0, 0, 0, 16, 0, 0, 0, WC_LOC_LEN_ERR},
};

TEST(what_is_wrong_is_refused)
{
	for (size_t i = 0; i < COUNT(refused); i++) {
		struct duo_options o = duo_options();

		o.access &= ~refused[i].qp_lacks;

		struct sim s = sim_start(&o);
		struct duo_buf *b = duo_buf(s.b->host, BUF_BYTES, ALL_ACCESS & ~refused[i].region_lacks);
		static const uint8_t bytes[16] = {1, 2, 3, 4, 5, 6, 7, 8};
		uint8_t before[BUF_BYTES];
		struct duo_wr w = refused[i].write ? duo_atomic_write_wr(1, bytes, b, (uint64_t)refused[i].off)
						   : duo_flush_wr(1, b, (uint64_t)refused[i].off, refused[i].len);

		duo_fill(b, 7);
		memcpy(before, b->p, BUF_BYTES);
		w.placement = refused[i].placement;
		w.selectivity = refused[i].selectivity;
		w.rkey ^= refused[i].rkey_xor;
		if (refused[i].write)
			w.inline_len = refused[i].len;
		assert_true(duo_post(s.a, &w));
		duo_idle(s.duo);
		if (s.a->sent.n != 1 || s.a->sent.e[0].status != refused[i].status)
			fail_msg("%s: status %d", refused[i].what, s.a->sent.n ? (int)s.a->sent.e[0].status : -1);
		duo_expect(s.duo, &s.a->sent, 1, refused[i].status);
		if (refused[i].status != WC_SUCCESS || !refused[i].write)
			assert_memory_equal(b->p, before, BUF_BYTES);
		assert_int_equal(qp_state(s.b->qp) == QPS_ERR,
				 refused[i].status == WC_REM_ACCESS_ERR || refused[i].status == WC_REM_INV_REQ_ERR);
		sim_end(&s);
	}
}

TEST(a_region_of_another_pd_is_not_flushed)
{
	for (uint8_t level = FETH_RANGE; level <= FETH_REGION; level++) {
		struct sim s = sim_default();
		struct duo_host *h = s.b->host;
		struct duo_wr f = duo_flush_wr(1, s.bbuf, 0, 8);
		uint8_t memory[64];
		struct pd *pd;
		struct mr *mr;

		assert_int_equal(nic_pd_alloc(h->nic, &pd), 0);
		assert_int_equal(nic_mr_reg(h->nic, pd, (struct mr_range){memory, sizeof(memory), 0}, ALL_ACCESS, &mr),
				 0);
		f.rkey = mr->key;
		f.remote_va = 0;
		f.selectivity = level;
		assert_true(duo_post(s.a, &f));
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_REM_ACCESS_ERR);
		nic_mr_dereg(h->nic, mr);
		assert_int_equal(nic_pd_free(h->nic, pd), 0);
		sim_end(&s);
	}
}

/* After an invalidation a region gives peers no right any more. */
TEST(an_invalidated_region_is_not_flushed)
{
	for (uint8_t level = FETH_RANGE; level <= FETH_REGION; level++) {
		struct sim s = sim_default();
		struct duo_wr inv = duo_send_wr(1, s.abuf, 0, 0), f = duo_flush_wr(2, s.bbuf, 0, 8);

		inv.opcode = WR_SEND_INV;
		inv.imm_or_key = duo_key(s.bbuf);
		f.selectivity = level;
		assert_true(duo_recv(s.b, 11, s.abuf, 0, 0));
		assert_true(duo_post(s.a, &inv));
		assert_true(duo_post(s.a, &f));
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_REM_ACCESS_ERR);
		duo_expect(s.duo, &s.b->received, 11, WC_SUCCESS);
		sim_end(&s);
	}
}

/* IBTA A19 has them for RC, and for no other service that is here. */
TEST(other_services_refuse_both)
{
	static const enum qp_type types[] = {QPT_UC, QPT_UD};

	for (size_t i = 0; i < COUNT(types); i++) {
		struct duo_options o = duo_options();
		struct duo_wr w;

		o.type = types[i];

		struct sim s = sim_start(&o);

		w = duo_flush_wr(1, s.bbuf, 0, 8);
		assert_true(duo_post(s.a, &w));
		duo_idle(s.duo);
		duo_expect(s.duo, &s.a->sent, 1, WC_LOC_QP_OP_ERR);
		assert_int_equal(s.duo->wire_count, 0);
		sim_end(&s);
	}
}
