/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows between two nics, over either protocol (IBTA 10.6.7): what a bind gives a peer and an invalidation
 * takes from it, and that requests without packets keep their place among those that have some.
 */
#include <errno.h>

#include "mem/mw.h"
#include "support/test.h"
#include "veroce/veroce.h"

enum { AT = 1000, BYTES = 5000, WINDOW_ACCESS = MR_REMOTE_READ | MR_REMOTE_WRITE | MR_REMOTE_ATOMIC };

/* B has the region and binds; A reads and writes. */
struct windows {
	struct sim s;
	struct nic *nic; /* B's */
	struct duo_buf *region;
	struct mw *mw;
};

static const enum protocol wires[] = {PROTOCOL_ROCEV2, PROTOCOL_VEROCE};

static struct windows windows_start(enum protocol wire, enum qp_type type, enum mw_type mw_type, uint64_t seed)
{
	struct veroce_options v = veroce_options();
	struct duo_options o = duo_options();
	struct windows w;

	v.protocol[DUO_A] = wire;
	v.protocol[DUO_B] = wire;
	o.type = type;
	o.max_rd_atomic = 4;
	o.max_dest_rd_atomic = 4;
	w.s = type == QPT_UC ? sim_start(&o) : veroce_start_sim(&v, &o, seed);
	w.nic = w.s.b->host->nic;
	w.region = duo_buf(w.s.b->host, BUF_BYTES, MR_LOCAL_WRITE | MR_MW_BIND);
	duo_fill(w.region, 3);
	assert_int_equal(nic_mw_alloc(w.nic, w.s.b->host->pd, mw_type, &w.mw), 0);
	return w;
}

static void windows_end(struct windows *w)
{
	nic_mw_free(w->nic, w->mw);
	sim_end(&w->s);
}

static struct duo_wr bind_wr(const struct windows *w, uint64_t wr_id, uint32_t rkey)
{
	return (struct duo_wr){
		.opcode = WR_BIND_MW,
		.flags = WR_SIGNALED,
		.wr_id = wr_id,
		.rkey = rkey,
		.bind = {.addr = w->region->iova + AT,
			 .length = BYTES,
			 .handle = w->mw->anchor.key,
			 .lkey = w->region->mr->key,
			 .access = WINDOW_ACCESS},
	};
}

static struct duo_wr local_inv_wr(uint64_t wr_id, uint32_t rkey)
{
	return (struct duo_wr){.opcode = WR_LOCAL_INV, .flags = WR_SIGNALED, .wr_id = wr_id, .imm_or_key = rkey};
}

static uint32_t next_key(uint32_t key)
{
	return (key & ~0xffu) | ((key + 1) & 0xff);
}

/* Binds and waits; returns the R_Key. */
static uint32_t bind(struct windows *w)
{
	uint32_t rkey = w->mw->type == MW_TYPE_2 ? next_key(w->mw->opened.key) : nic_mw_draw_key(w->nic);

	duo_must_post(w->s.b, bind_wr(w, 90, rkey));
	duo_idle(w->s.duo);
	assert_int_equal(duo_expect(w->s.duo, &w->s.b->sent, 90, WC_SUCCESS)->opcode, WC_BIND_MW);
	return rkey;
}

/* A's WRITE (wr_id 1) of `len` bytes to the window's byte `off`. */
static struct duo_wr write_wr(const struct windows *w, uint32_t rkey, uint64_t off, uint32_t len)
{
	struct duo_wr wr = duo_write_wr(1, w->s.abuf, 0, len, w->region, AT + off);

	wr.rkey = rkey;
	return wr;
}

static void expect_at_a(struct windows *w, const struct duo_wr *wr, enum wc_status status)
{
	assert_true(duo_post(w->s.a, wr));
	duo_finish(w->s.a, wr->wr_id, status);
}

TEST(bound_window_is_written_read_and_added_to)
{
	for (size_t i = 0; i < COUNT(wires); i++) {
		for (enum mw_type type = MW_TYPE_1; type <= MW_TYPE_2; type++) {
			struct windows w = windows_start(wires[i], QPT_RC, type, 1);
			uint32_t rkey = bind(&w);
			struct duo_wr wr = write_wr(&w, rkey, 0, BYTES);

			expect_at_a(&w, &wr, WC_SUCCESS);
			assert_memory_equal(w.region->p + AT, w.s.abuf->p, BYTES);
			wr = duo_read_wr(2, w.s.abuf, 20000, BYTES, w.region, AT);
			wr.rkey = rkey;
			expect_at_a(&w, &wr, WC_SUCCESS);
			assert_memory_equal(w.s.abuf->p + 20000, w.s.abuf->p, BYTES);
			wr = duo_fetch_add_wr(3, w.s.abuf, 40000, w.region, AT, 5);
			wr.rkey = rkey;
			expect_at_a(&w, &wr, WC_SUCCESS);
			assert_memory_equal(w.s.abuf->p + 40000, w.s.abuf->p, 8);
			windows_end(&w);
		}
	}
}

/* IBTA 10.6.7.2.1: the window's bounds and rights, and not the region's, which are wider. */
TEST(access_beyond_the_window_is_refused)
{
	static const struct {
		enum wr_opcode opcode;
		int64_t off;
		uint32_t len;
		uint32_t access;
	} rows[] = {
		{WR_WRITE, -1, 10, WINDOW_ACCESS},
		{WR_WRITE, BYTES - 9, 10, WINDOW_ACCESS},
		{WR_READ, BYTES, 1, WINDOW_ACCESS},
		{WR_FETCH_ADD, -8, 8, WINDOW_ACCESS},
		{WR_WRITE, 0, 10, WINDOW_ACCESS & ~MR_REMOTE_WRITE},
		{WR_READ, 0, 10, WINDOW_ACCESS & ~MR_REMOTE_READ},
		{WR_FETCH_ADD, 0, 8, WINDOW_ACCESS & ~MR_REMOTE_ATOMIC},
	};

	for (size_t i = 0; i < COUNT(wires) * COUNT(rows); i++) {
		const size_t r = i / COUNT(wires);
		struct windows w = windows_start(wires[i % COUNT(wires)], QPT_RC, MW_TYPE_2, 1);
		uint32_t rkey = next_key(w.mw->opened.key);
		struct duo_wr b = bind_wr(&w, 90, rkey), wr = write_wr(&w, rkey, (uint64_t)rows[r].off, rows[r].len);

		b.bind.access = rows[r].access;
		duo_do(w.s.b, b);
		wr.opcode = rows[r].opcode;
		expect_at_a(&w, &wr, WC_REM_ACCESS_ERR);
		assert_true(duo_had_event(w.s.b->host, EVENT_QP_ACCESS_ERR, w.s.b));
		windows_end(&w);
	}
}

TEST(invalidated_window_is_closed)
{
	for (size_t i = 0; i < COUNT(wires) * 2; i++) {
		struct windows w = windows_start(wires[i / 2], QPT_RC, MW_TYPE_2, 1);
		uint32_t rkey = bind(&w);
		struct duo_wr wr = write_wr(&w, rkey, 0, 100), inv = local_inv_wr(2, rkey);

		expect_at_a(&w, &wr, WC_SUCCESS);
		if (i % 2) {
			assert_true(duo_post(w.s.b, &inv));
			duo_idle(w.s.duo);
			assert_int_equal(duo_expect(w.s.duo, &w.s.b->sent, 2, WC_SUCCESS)->opcode, WC_LOCAL_INV);
		} else {
			const struct cqe *e;

			inv = duo_send_wr(2, w.s.abuf, 0, 100);
			inv.opcode = WR_SEND_INV;
			inv.imm_or_key = rkey;
			assert_true(duo_recv(w.s.b, 50, w.s.bbuf, 0, 100));
			expect_at_a(&w, &inv, WC_SUCCESS);
			e = duo_expect(w.s.duo, &w.s.b->received, 50, WC_SUCCESS);
			assert_int_equal(e->flags, WC_WITH_INV);
			assert_int_equal(e->imm_or_key, rkey);
		}
		assert_int_equal(w.region->mr->windows, 0);
		wr.wr_id = 4;
		expect_at_a(&w, &wr, WC_REM_ACCESS_ERR);
		windows_end(&w);
	}
}

/* o10-37.2.26, and who did not bind it. Class J: the message is acknowledged, and its receive and the QP fail. */
TEST(peer_may_not_invalidate_what_is_not_its)
{
	enum { TYPE_1, ANOTHER_QP, FREE, UNKNOWN, HANDLE, KINDS };

	for (size_t i = 0; i < COUNT(wires) * KINDS; i++) {
		const int kind = (int)(i / COUNT(wires));
		struct windows w =
			windows_start(wires[i % COUNT(wires)], QPT_RC, kind == TYPE_1 ? MW_TYPE_1 : MW_TYPE_2, 1);
		uint32_t rkey = kind == FREE ? w.mw->opened.key : bind(&w);
		struct duo_wr inv = duo_send_wr(2, w.s.abuf, 0, 100);
		struct mr_user other = {w.s.b->host->pd, NULL};

		inv.opcode = WR_SEND_INV;
		inv.imm_or_key = kind == UNKNOWN ? rkey ^ 1 : kind == HANDLE ? w.mw->anchor.key : rkey;
		if (kind == ANOTHER_QP)
			w.mw->opened.opener = &other;
		assert_true(duo_recv(w.s.b, 50, w.s.bbuf, 0, 100));
		expect_at_a(&w, &inv, WC_SUCCESS);
		duo_expect(w.s.duo, &w.s.b->received, 50, WC_REM_INV_REQ_ERR);
		assert_int_equal(nic_counters(w.s.b->host->nic)->naks_sent, 0);
		assert_int_equal(qp_state(w.s.b->qp), QPS_ERR);
		assert_int_equal(w.region->mr->windows, kind != FREE);
		windows_end(&w);
	}
}

/* IBTA 11.6.2: the WR, the QP and what is behind it fail; the window stays as it was. */
TEST(bind_that_is_not_allowed_fails_in_turn)
{
	enum { NO_REGION, RANGE, BOUND, INVALIDATION, GONE, KINDS };

	for (size_t i = 0; i < COUNT(wires) * KINDS; i++) {
		const int kind = (int)(i / COUNT(wires));
		struct windows w = windows_start(wires[i % COUNT(wires)], QPT_RC, MW_TYPE_2, 1);
		uint32_t rkey = kind == BOUND ? bind(&w) : w.mw->opened.key;
		struct duo_wr first = duo_write_wr(1, w.region, 0, 3000, w.s.abuf, 0),
			      bad = bind_wr(&w, 2, next_key(rkey)),
			      last = duo_write_wr(3, w.region, 0, 3000, w.s.abuf, 0);

		if (kind == NO_REGION)
			bad.bind.lkey ^= 1;
		else if (kind == RANGE)
			bad.bind.length = BUF_BYTES;
		else if (kind == INVALIDATION)
			bad = local_inv_wr(2, rkey);
		else if (kind == GONE)
			bad.bind.handle ^= 1;
		bad.flags = 0; /* an error completes in any case */
		assert_true(duo_post(w.s.b, &first));
		assert_true(duo_post(w.s.b, &bad));
		assert_true(duo_post(w.s.b, &last));
		duo_finish(w.s.b, 1, WC_SUCCESS);
		duo_expect(w.s.duo, &w.s.b->sent, 2, WC_MW_BIND_ERR);
		duo_expect(w.s.duo, &w.s.b->sent, 3, WC_WR_FLUSH_ERR);
		assert_int_equal(qp_state(w.s.b->qp), QPS_ERR);
		assert_int_equal(w.region->mr->windows, kind == BOUND);
		windows_end(&w);
	}
}

/* Under loss, with READs before them and behind, over RC and UC: every WR completes once and in order. */
TEST(requests_without_packets_keep_their_place)
{
	enum { ROUNDS = 12 };

	for (uint64_t seed = 1; seed <= 12; seed++) {
		const bool uc = seed % 3 == 0;
		struct windows w = windows_start(wires[seed & 1 && !uc], uc ? QPT_UC : QPT_RC, MW_TYPE_2, seed);
		uint32_t rkey = w.mw->opened.key;
		uint64_t id = 100;

		if (!uc)
			w.s.duo->faults[DUO_A].drop_ppm = w.s.duo->faults[DUO_B].drop_ppm = 150000;
		for (int i = 0; i < ROUNDS; i++) {
			struct duo_wr wr[5] = {
				duo_write_wr(id, w.region, 0, 3000, w.s.abuf, 0),
				bind_wr(&w, id + 1, next_key(rkey)),
				uc || i & 1 ? duo_write_wr(id + 2, w.region, 0, 10, w.s.abuf, 0)
					    : duo_read_wr(id + 2, w.region, 30000, 5000, w.s.abuf, 0),
				local_inv_wr(id + 3, next_key(rkey)),
				duo_write_wr(id + 4, w.region, 0, 1, w.s.abuf, 0),
			};

			rkey = next_key(rkey);
			if (i & 2)
				wr[3].flags |= WR_FENCE;
			if (i % 3 == 1)
				wr[1].flags = 0;
			assert_true(duo_post_chain(w.s.b, wr, 5));
			for (int k = 0; k < 5; k++) {
				if (k != 1 || i % 3 != 1)
					duo_wait(w.s.duo, &w.s.b->sent, w.s.b->sent.taken + 1);
				if (k != 1 || i % 3 != 1)
					duo_expect(w.s.duo, &w.s.b->sent, id + (uint64_t)k, WC_SUCCESS);
			}
			id += 5;
		}
		assert_int_equal(w.region->mr->windows, 0);
		windows_end(&w);
	}
}

/* The program may give the key to its peer in the next WR. */
TEST(key_is_valid_for_who_gets_it_in_the_send_behind_the_bind)
{
	for (size_t i = 0; i < COUNT(wires); i++) {
		struct windows w = windows_start(wires[i], QPT_RC, MW_TYPE_2, 1);
		uint32_t rkey = next_key(w.mw->opened.key);
		struct duo_wr chain[2] = {bind_wr(&w, 1, rkey), duo_send_wr(2, w.region, 0, 8)}, wr;

		assert_true(duo_recv(w.s.a, 50, w.s.abuf, 60000, 8));
		assert_true(duo_post_chain(w.s.b, chain, 2));
		duo_wait(w.s.duo, &w.s.a->received, 1);
		duo_expect(w.s.duo, &w.s.a->received, 50, WC_SUCCESS);
		wr = write_wr(&w, rkey, 0, BYTES);
		expect_at_a(&w, &wr, WC_SUCCESS);
		duo_expect(w.s.duo, &w.s.b->sent, 1, WC_SUCCESS);
		duo_expect(w.s.duo, &w.s.b->sent, 2, WC_SUCCESS);
		windows_end(&w);
	}
}

/* As a region that is deregistered in the middle: nothing more of the message is placed or read. */
TEST(window_freed_in_mid_message_stops_it)
{
	for (size_t i = 0; i < COUNT(wires) * 2; i++) {
		const bool reads = i % 2;
		struct windows w = windows_start(wires[i / 2], QPT_RC, MW_TYPE_2, 1);
		uint32_t rkey = bind(&w);
		struct duo_wr wr = write_wr(&w, rkey, 0, BYTES);

		if (reads)
			wr.opcode = WR_READ;
		duo_rule(w.s.duo, (struct duo_rule){.from = reads ? DUO_B : DUO_A,
						    .opcode = reads ? OP_RC_READ_RESPONSE_MIDDLE : OP_RC_WRITE_MIDDLE,
						    .nth = 1,
						    .fate = DUO_DROP});
		assert_true(duo_post(w.s.a, &wr));
		duo_run_for(w.s.duo, reads ? DUO_LATENCY_NS + 1 : DUO_LATENCY_NS + DUO_LATENCY_NS / 2);
		nic_mw_free(w.nic, w.mw);
		duo_finish(w.s.a, 1, WC_REM_ACCESS_ERR);
		assert_int_equal(nic_mw_alloc(w.nic, w.s.b->host->pd, MW_TYPE_2, &w.mw), 0);
		windows_end(&w);
	}
}

TEST(region_and_pd_are_busy_while_they_have_windows)
{
	struct windows w = windows_start(PROTOCOL_ROCEV2, QPT_RC, MW_TYPE_2, 1);
	struct nic *nic = w.nic;
	struct mw *mw;
	struct pd *pd;

	bind(&w);
	assert_int_equal(nic_mr_dereg(nic, w.region->mr), -EBUSY);
	assert_int_equal(nic_mr_rereg(nic, w.region->mr, NULL, NULL, 0, MR_LOCAL_WRITE), -EBUSY);
	assert_int_equal(nic_pd_alloc(nic, &pd), 0);
	assert_int_equal(nic_mw_alloc(nic, pd, MW_TYPE_1, &mw), 0);
	assert_int_equal(nic_counters(nic)->mws, 2);
	assert_int_equal(nic_pd_free(nic, pd), -EBUSY);
	nic_mw_free(nic, mw);
	assert_int_equal(nic_pd_free(nic, pd), 0);
	/* The QP that bound it goes: the window is free, and the region not busy any more. */
	duo_qp_destroy(w.s.b);
	assert_int_equal(w.region->mr->windows, 0);
	assert_null(w.mw->binder);
	windows_end(&w);
}
