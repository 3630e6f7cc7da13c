/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that an RC responder refuses: the NAK, and its effect on both sides (IBTA 9.7.4.1, 9.7.5.2
 * and 9.9.3): the request's WR fails with the right status, WRs before it complete, WRs behind it are
 * flushed, the responder's QP goes to the error state with an affiliated event, and no byte outside
 * the granted range changes.
 */
#include "duo/sim.h"
#include "wire/atomiceth.h"
#include "wire/psn.h"

enum {
	NAK_INVALID = AETH_NAK | NAK_INVALID_REQUEST,
	NAK_ACCESS = AETH_NAK | NAK_REMOTE_ACCESS,
	NAK_OPERATIONAL = AETH_NAK | NAK_REMOTE_OPERATIONAL
};

struct refusal {
	const char *what;
	uint8_t syndrome;
	enum wc_status status;
	enum event_type event;
};

static const struct refusal access_error = {"access", NAK_ACCESS, WC_REM_ACCESS_ERR, EVENT_QP_ACCESS_ERR};
static const struct refusal invalid_request = {"invalid", NAK_INVALID, WC_REM_INV_REQ_ERR, EVENT_QP_REQ_ERR};

/* Posts good, bad, good; the first is done, the second refused so, the third has no effect. */
static void refuse(struct sim *s, const struct duo_wr *bad, const struct refusal *r)
{
	uint8_t before[BUF_BYTES];
	struct duo_wr first = duo_write_wr(1, s->abuf, 0, 3000, s->bbuf, BUF_BYTES - 3000);
	bool may_write = s->bbuf->mr->access & MR_REMOTE_WRITE && s->b->opt.access & MR_REMOTE_WRITE;

	if (!may_write) {
		first.num_sge = 0; /* nothing: an empty WRITE needs no key, but the QP must allow it */
		first.opcode = WR_SEND;
		assert_true(duo_recv(s->b, 50, s->bbuf, 0, 0));
	}
	memcpy(before, s->bbuf->p, BUF_BYTES);
	if (may_write)
		memcpy(before + BUF_BYTES - 3000, s->abuf->p, 3000);
	assert_true(duo_post(s->a, &first));
	assert_true(duo_post(s->a, bad));
	duo_must_post(s->a, duo_write_wr(3, s->abuf, 0, 3000, s->bbuf, 0));
	duo_finish(s->a, 1, WC_SUCCESS);
	duo_expect(s->duo, &s->a->sent, bad->wr_id, r->status);
	duo_expect(s->duo, &s->a->sent, 3, WC_WR_FLUSH_ERR);
	assert_memory_equal(before, s->bbuf->p, BUF_BYTES);
	assert_int_equal(duo_count_syndrome(s->duo, DUO_B, r->syndrome), 1);
	assert_int_equal(qp_state(s->a->qp), QPS_ERR);
	assert_int_equal(qp_state(s->b->qp), QPS_ERR);
	assert_true(duo_had_event(&s->duo->host[DUO_B], r->event, s->b));
	if (!may_write)
		duo_expect(s->duo, &s->b->received, 50, WC_SUCCESS);
}

enum { WRITE, READ, ATOMIC, KINDS };

static struct duo_wr make(const struct sim *s, int kind, uint64_t off, uint32_t len)
{
	if (kind == WRITE)
		return duo_write_wr(2, s->abuf, 0, len, s->bbuf, off);
	if (kind == READ)
		return duo_read_wr(2, s->abuf, 0, len, s->bbuf, off);
	return duo_fetch_add_wr(2, s->abuf, 0, s->bbuf, off, 1);
}

TEST(unknown_key_is_an_access_error)
{
	static const uint32_t lens[] = {1, 1024, 5000};

	for (int kind = 0; kind < KINDS; kind++) {
		for (size_t i = 0; i < COUNT(lens); i++) {
			struct sim s = sim_default();
			struct duo_wr w = make(&s, kind, 0, lens[i]);

			w.rkey ^= 1;
			refuse(&s, &w, &access_error);
			sim_end(&s);
		}
	}
}

/*
 * IBTA 9.9.3, class C: the error completes the receive WQE if it can be related to one. The first packet
 * of several does not show that an immediate will follow.
 */
TEST(receive_of_a_refused_immediate_fails_by_name)
{
	static const struct {
		uint32_t len;
		int receives;
		enum wc_status status;
	} rows[] = {
		{100, 2, WC_LOC_ACCESS_ERR},
		{1024, 2, WC_LOC_ACCESS_ERR},
		{1025, 2, WC_WR_FLUSH_ERR},
		{100, 0, WC_SUCCESS},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = sim_default();
		struct duo_wr w = make(&s, WRITE, 0, rows[i].len);

		w.opcode = WR_WRITE_IMM;
		w.rkey ^= 1;
		for (int k = 0; k < rows[i].receives; k++)
			assert_true(duo_recv(s.b, 10 + (uint64_t)k, s.bbuf, 0, 0));
		refuse(&s, &w, &access_error);
		if (rows[i].receives) {
			duo_expect(s.duo, &s.b->received, 10, rows[i].status);
			duo_expect(s.duo, &s.b->received, 11, WC_WR_FLUSH_ERR);
		}
		sim_end(&s);
	}
}

/* The region goes away before the last packet, which has the immediate. */
SIM_TEST(receive_of_an_immediate_without_its_region_fails_by_name)
{
	struct duo_host *h = s.b->host;
	struct duo_wr w = make(&s, WRITE, 0, 1030);
	uint8_t mem[1030];
	struct mr *mr;

	assert_int_equal(nic_mr_reg(h->nic, h->pd, (struct mr_range){mem, sizeof(mem), 0}, ALL_ACCESS, &mr), 0);
	w.opcode = WR_WRITE_IMM;
	w.rkey = mr->key;
	w.remote_va = 0;
	duo_drop(s.duo, DUO_A, OP_RC_WRITE_LAST_IMM, 0);
	assert_true(duo_recv(s.b, 10, s.bbuf, 0, 0));
	assert_true(duo_post(s.a, &w));
	duo_run_for(s.duo, 5 * DUO_LATENCY_NS);
	nic_mr_dereg(h->nic, mr);
	duo_finish(s.a, 2, WC_REM_ACCESS_ERR);
	duo_expect(s.duo, &s.b->received, 10, WC_LOC_ACCESS_ERR);
}

TEST(range_outside_the_region_is_an_access_error)
{
	static const struct {
		int64_t off;
		uint32_t len;
	} rows[] = {
		{BUF_BYTES, 1},
		{BUF_BYTES - 1, 2},
		{-1, 1},
		{-1, 2},
		{-8, 5000},
		{BUF_BYTES - 4999, 5000},
		{BUF_BYTES - 1024, 1025}, /* the first packet alone would fit */
		{1ll << 40, 1},
		{INT64_MAX, 1},
		{0, BUF_BYTES + 1},
	};

	for (int kind = WRITE; kind <= READ; kind++) {
		for (size_t i = 0; i < COUNT(rows); i++) {
			struct sim s = sim_default();
			struct duo_buf *big = duo_buf(s.a->host, BUF_BYTES + 1, MR_LOCAL_WRITE);
			struct duo_wr w = make(&s, kind, (uint64_t)rows[i].off, rows[i].len);

			w.sge[0] = duo_sge(big, 0, rows[i].len);
			refuse(&s, &w, &access_error);
			sim_end(&s);
		}
	}
	static const int64_t atomics[] = {BUF_BYTES, -8, 1ll << 40};

	for (size_t i = 0; i < COUNT(atomics); i++) {
		struct sim s = sim_default();
		struct duo_wr w = make(&s, ATOMIC, (uint64_t)atomics[i], 8);

		refuse(&s, &w, &access_error);
		sim_end(&s);
	}
}

static const uint32_t needed[KINDS] = {
	[WRITE] = MR_REMOTE_WRITE,
	[READ] = MR_REMOTE_READ,
	[ATOMIC] = MR_REMOTE_ATOMIC,
};

TEST(region_without_the_right_is_an_access_error)
{
	for (int kind = 0; kind < KINDS; kind++) {
		struct sim s = sim_default();
		struct duo_wr w;

		s.bbuf = duo_buf(s.b->host, BUF_BYTES, ALL_ACCESS & ~needed[kind]);
		w = make(&s, kind, 0, 8);
		refuse(&s, &w, &access_error);
		sim_end(&s);
	}
}

/* IBTA 9.7.4.1.4: an operation the QP is not set up for is an invalid request. */
TEST(qp_without_the_right_is_an_invalid_request)
{
	for (int kind = 0; kind < KINDS; kind++) {
		struct sim s = SIM(o.access &= ~needed[kind]);
		struct duo_wr w = make(&s, kind, 0, 8);

		refuse(&s, &w, &invalid_request);
		sim_end(&s);
	}
}

TEST(region_of_another_pd_is_an_access_error)
{
	for (int kind = 0; kind < KINDS; kind++) {
		struct sim s = sim_default();
		struct duo_host *h = s.b->host;
		struct duo_wr w = make(&s, kind, 0, 8);
		uint8_t secret[64] = "of another protection domain";
		struct pd *pd;
		struct mr *mr;

		assert_int_equal(nic_pd_alloc(h->nic, &pd), 0);
		assert_int_equal(nic_mr_reg(h->nic, pd, (struct mr_range){secret, sizeof(secret), 0}, ALL_ACCESS, &mr),
				 0);
		w.rkey = mr->key;
		w.remote_va = 0;
		refuse(&s, &w, &access_error);
		assert_string_equal((char *)secret, "of another protection domain");
		nic_mr_dereg(h->nic, mr);
		assert_int_equal(nic_pd_free(h->nic, pd), 0);
		sim_end(&s);
	}
}

TEST(region_that_is_gone_is_an_access_error)
{
	for (int kind = 0; kind < KINDS; kind++) {
		for (int rereg = 0; rereg < 2; rereg++) {
			struct sim s = sim_default();
			struct duo_host *h = s.b->host;
			struct duo_wr w = make(&s, kind, 0, 8);
			uint8_t mem[64] = {0};
			struct mr *mr;

			assert_int_equal(
				nic_mr_reg(h->nic, h->pd, (struct mr_range){mem, sizeof(mem), 0}, ALL_ACCESS, &mr), 0);
			w.rkey = mr->key;
			w.remote_va = 0;
			if (rereg)
				assert_int_equal(nic_mr_rereg(h->nic, mr, NULL, mem, 32, -1), 0);
			else
				nic_mr_dereg(h->nic, mr);
			refuse(&s, &w, &access_error);
			if (rereg)
				nic_mr_dereg(h->nic, mr);
			sim_end(&s);
		}
	}
}

/* The region goes away between two packets of one message. */
TEST(region_that_goes_away_midway_is_not_touched)
{
	for (int kind = WRITE; kind <= READ; kind++) {
		struct sim s = sim_default();
		struct duo_host *h = s.b->host;
		struct duo_wr w = make(&s, kind, 0, 10000);
		uint8_t *mem = calloc(1, 10000);
		struct mr *mr;

		assert_int_equal(nic_mr_reg(h->nic, h->pd, (struct mr_range){mem, 10000, 0}, ALL_ACCESS, &mr), 0);
		w.rkey = mr->key;
		w.remote_va = 0;
		/*
		 * The 4th packet, or response, is lost: the retransmission comes after the region's
		 * end.
		 */
		duo_drop(s.duo, kind == WRITE ? DUO_A : DUO_B, DUO_ANY, 3);
		duo_drop(s.duo, kind == WRITE ? DUO_B : DUO_A, kind == WRITE ? OP_RC_ACK : OP_RC_READ_REQUEST,
			 kind == WRITE ? 0 : 1);
		assert_true(duo_post(s.a, &w));
		duo_run_for(s.duo, 20 * DUO_LATENCY_NS);
		nic_mr_dereg(h->nic, mr);
		free(mem);
		duo_finish(s.a, 2, WC_REM_ACCESS_ERR);
		sim_end(&s);
	}
}

/*
 * The peer's queue pair has ended with its NAK, and answers no READ again whose response was lost. The READ fails with
 * what the NAK says, at once: repeating it would only use up the retries.
 */
TEST(a_read_without_an_answer_fails_with_the_nak_behind_it)
{
	for (int retries = 0; retries <= 7; retries += 7) {
		struct sim s = SIM(o.retry_cnt = (uint8_t)retries);

		duo_drop(s.duo, DUO_B, OP_RC_READ_RESPONSE_ONLY, 0);
		duo_must_post(s.a, duo_read_wr(1, s.abuf, 0, 100, s.bbuf, 0));
		duo_must_post(s.a, duo_write_wr(2, s.abuf, 0, 8, s.bbuf, BUF_BYTES));
		duo_run_for(s.duo, 10 * DUO_LATENCY_NS);
		duo_expect(s.duo, &s.a->sent, 1, WC_REM_ACCESS_ERR);
		duo_expect(s.duo, &s.a->sent, 2, WC_WR_FLUSH_ERR);
		assert_int_equal(duo_count(s.duo, DUO_A, OP_RC_READ_REQUEST), 1);
		sim_end(&s);
	}
}

/* IBTA C9-88: a request without data needs no key. */
TEST(empty_write_and_read_need_no_key)
{
	for (int kind = WRITE; kind <= READ; kind++) {
		struct sim s = sim_default();
		struct duo_wr w = make(&s, kind, 1ull << 50, 0);

		w.rkey = 0xdeadbeef;
		duo_do(s.a, w);
		sim_end(&s);
	}
}

TEST(misaligned_atomic_is_an_invalid_request)
{
	for (uint64_t off = 1; off < 8; off++) {
		struct sim s = sim_default();
		struct duo_wr w = make(&s, ATOMIC, 64 + off, 8);

		refuse(&s, &w, &invalid_request);
		sim_end(&s);
	}
}

/* IBTA 9.7.4.1.? : more READs and atomics than were agreed on. */
TEST(too_many_reads_are_an_invalid_request)
{
	for (int kind = READ; kind <= ATOMIC; kind++) {
		struct sim s = SIM(o.max_dest_rd_atomic = 2, o.max_rd_atomic = 8);

		for (int i = 0; i < 8; i++)
			duo_must_post(s.a, make(&s, kind, 0, 5000));
		duo_idle(s.duo);
		assert_int_equal(duo_count_syndrome(s.duo, DUO_B, NAK_INVALID), 1);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_SUCCESS);
		duo_expect(s.duo, &s.a->sent, 2, WC_REM_INV_REQ_ERR);
		for (int i = 0; i < 5; i++)
			duo_expect(s.duo, &s.a->sent, 2, WC_WR_FLUSH_ERR);
		sim_end(&s);
	}
}

/*
 * The receive WQE that was too small fails with its own status at the responder (IBTA 10.8.3,
 * WC_LOC_LEN_ERR).
 */
TEST(message_too_long_is_an_invalid_request)
{
	static const struct {
		uint32_t room, len;
	} rows[] = {{0, 1}, {99, 100}, {1024, 1025}, {1023, 1024}, {3000, 5000}, {4096, 4097}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = sim_default();
		struct duo_wr w[] = {duo_send_wr(1, s.abuf, 0, rows[i].len), duo_send_wr(2, s.abuf, 0, 1)};
		uint8_t before[BUF_BYTES];

		memcpy(before, s.bbuf->p, BUF_BYTES);
		assert_true(duo_recv(s.b, 10, s.bbuf, 1000, rows[i].room));
		assert_true(duo_recv(s.b, 11, s.bbuf, 0, 1000));
		assert_true(duo_post_chain(s.a, w, 2));
		duo_finish(s.a, 1, WC_REM_INV_REQ_ERR);
		duo_expect(s.duo, &s.a->sent, 2, WC_WR_FLUSH_ERR);
		duo_expect(s.duo, &s.b->received, 10, WC_LOC_LEN_ERR);
		duo_expect(s.duo, &s.b->received, 11, WC_WR_FLUSH_ERR);
		assert_memory_equal(before, s.bbuf->p, 1000);
		assert_memory_equal(before + 1000 + rows[i].room, s.bbuf->p + 1000 + rows[i].room,
				    BUF_BYTES - 1000 - rows[i].room);
		assert_int_equal(qp_state(s.b->qp), QPS_ERR);
		sim_end(&s);
	}
}

/* The responder's own buffer is wrong: operational error for the peer, protection error here. */
TEST(bad_receive_buffer_is_an_operational_error)
{
	for (int which = 0; which < 3; which++) {
		struct sim s = sim_default();
		struct duo_buf *ro = duo_buf(s.b->host, 5000, MR_REMOTE_READ);
		struct sge sge = duo_sge(which == 0 ? ro : s.bbuf, 0, 5000);

		if (which == 1)
			sge.lkey ^= 4;
		if (which == 2)
			sge.addr += BUF_BYTES - 100;
		assert_true(duo_post_recv(s.b, 10, &sge, 1));
		duo_must_post(s.a, duo_send_wr(1, s.abuf, 0, 3000));
		duo_finish(s.a, 1, WC_REM_OP_ERR);
		duo_expect(s.duo, &s.b->received, 10, WC_LOC_PROT_ERR);
		assert_int_equal(duo_count_syndrome(s.duo, DUO_B, NAK_OPERATIONAL), 1);
		assert_int_equal(qp_state(s.b->qp), QPS_ERR);
		sim_end(&s);
	}
}

/* ---- packets that no requester of ours would send ------------------------------------------- */

struct forged {
	uint8_t opcode;
	uint32_t payload;
	uint32_t reth_len;
};

/* Delivers these packets to B from A's address, in order from the PSN that B expects. */
static void hear(struct sim *s, const struct forged *f, size_t n)
{
	uint8_t payload[8192] = {0x77};

	for (size_t i = 0; i < n; i++) {
		struct bth bth = {.opcode = f[i].opcode,
				  .pkey = 0xffff,
				  .ackreq = true,
				  .dqpn = s->b->qpn,
				  .psn = psn_add(s->a->opt.psn[DUO_A], (uint32_t)i)};
		uint8_t ext[64] = {0};
		const struct opcode_info *info = opcode_info(f[i].opcode);

		if (info && info->headers & H_RETH)
			reth_encode(ext, &(struct reth){
						 .va = s->bbuf->iova, .rkey = s->bbuf->mr->key, .len = f[i].reth_len});
		duo_forge(s->duo, DUO_B, DUO_GID_IPV4, &bth, ext, info ? info->header_len - BTH_LEN : 0, payload,
			  f[i].payload);
	}
}

/* IBTA 9.7.4.1.2 to 9.7.4.1.6: sequence of opcodes, lengths by path MTU and by RETH. */
TEST(broken_messages_are_invalid_requests)
{
	static const struct {
		struct forged f[3];
		size_t n;
	} rows[] = {
		{{{OP_RC_SEND_MIDDLE, 1024, 0}}, 1},
		{{{OP_RC_SEND_LAST, 10, 0}}, 1},
		{{{OP_RC_WRITE_MIDDLE, 1024, 0}}, 1},
		{{{OP_RC_WRITE_LAST, 10, 0}}, 1},
		{{{OP_RC_WRITE_LAST_IMM, 10, 0}}, 1},
		{{{OP_RC_SEND_FIRST, 1024, 0}, {OP_RC_SEND_FIRST, 1024, 0}}, 2},
		{{{OP_RC_SEND_FIRST, 1024, 0}, {OP_RC_SEND_ONLY, 10, 0}}, 2},
		{{{OP_RC_SEND_FIRST, 1024, 0}, {OP_RC_WRITE_MIDDLE, 1024, 0}}, 2},
		{{{OP_RC_SEND_FIRST, 1024, 0}, {OP_RC_WRITE_ONLY, 10, 10}}, 2},
		{{{OP_RC_SEND_FIRST, 1024, 0}, {OP_RC_READ_REQUEST, 0, 10}}, 2},
		{{{OP_RC_WRITE_FIRST, 1024, 2048}, {OP_RC_SEND_LAST, 1024, 0}}, 2},
		{{{OP_RC_WRITE_FIRST, 1024, 2048}, {OP_RC_READ_REQUEST, 0, 10}}, 2},
		{{{OP_RC_WRITE_FIRST, 1024, 2048}, {OP_RC_FETCH_ADD, 0, 0}}, 2},
		{{{OP_RC_SEND_FIRST, 1020, 0}}, 1},
		{{{OP_RC_SEND_FIRST, 1028, 0}}, 1},
		{{{OP_RC_SEND_FIRST, 0, 0}}, 1},
		{{{OP_RC_SEND_FIRST, 1024, 0}, {OP_RC_SEND_MIDDLE, 1000, 0}}, 2},
		{{{OP_RC_SEND_FIRST, 1024, 0}, {OP_RC_SEND_LAST, 0, 0}}, 2},
		{{{OP_RC_SEND_FIRST, 1024, 0}, {OP_RC_SEND_LAST, 1025, 0}}, 2},
		{{{OP_RC_SEND_ONLY, 1025, 0}}, 1},
		{{{OP_RC_WRITE_ONLY, 1025, 1025}}, 1},
		{{{OP_RC_WRITE_ONLY, 10, 11}}, 1},
		{{{OP_RC_WRITE_ONLY, 10, 9}}, 1},
		{{{OP_RC_WRITE_ONLY, 0, 9}}, 1},
		{{{OP_RC_WRITE_ONLY, 9, 0}}, 1},
		{{{OP_RC_WRITE_FIRST, 1024, 1024}, {OP_RC_WRITE_LAST, 1, 0}}, 2},
		{{{OP_RC_WRITE_FIRST, 1024, 2000}, {OP_RC_WRITE_LAST, 975, 0}}, 2},
		{{{OP_RC_WRITE_FIRST, 1024, 2000}, {OP_RC_WRITE_LAST, 977, 0}}, 2},
		{{{OP_RC_WRITE_FIRST, 1024, 2000}, {OP_RC_WRITE_MIDDLE, 1024, 0}}, 2},
		{{{OP_RC_WRITE_FIRST, 1024, 1000}}, 1},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = sim_default();
		uint8_t before[BUF_BYTES];

		memcpy(before, s.bbuf->p, BUF_BYTES);
		assert_true(duo_recv(s.b, 10, s.bbuf, 8192, 8192));
		assert_true(duo_recv(s.b, 11, s.bbuf, 8192, 8192));
		hear(&s, rows[i].f, rows[i].n);
		duo_idle(s.duo);
		if (duo_count_syndrome(s.duo, DUO_B, NAK_INVALID) != 1)
			fail_msg("row %zu", i);
		assert_int_equal(qp_state(s.b->qp), QPS_ERR);
		assert_true(duo_had_event(s.b->host, EVENT_QP_REQ_ERR, s.b));
		for (size_t k = 0; k < s.b->received.n; k++)
			assert_int_not_equal(s.b->received.e[k].status, WC_SUCCESS);
		assert_int_equal(s.b->received.n, 2);
		s.b->received.taken = 2;
		assert_memory_equal(before + 16384, s.bbuf->p + 16384, BUF_BYTES - 16384);
		sim_end(&s);
	}
}

/* The smallest legal forms are accepted, so that the test above cannot pass for the wrong reason. */
TEST(whole_messages_are_accepted)
{
	static const struct {
		struct forged f[3];
		size_t n;
	} rows[] = {
		{{{OP_RC_SEND_ONLY, 0, 0}}, 1},
		{{{OP_RC_SEND_ONLY, 1024, 0}}, 1},
		{{{OP_RC_SEND_FIRST, 1024, 0}, {OP_RC_SEND_LAST, 1, 0}}, 2},
		{{{OP_RC_SEND_FIRST, 1024, 0}, {OP_RC_SEND_MIDDLE, 1024, 0}, {OP_RC_SEND_LAST_IMM, 1024, 0}}, 3},
		{{{OP_RC_WRITE_ONLY, 0, 0}}, 1},
		{{{OP_RC_WRITE_ONLY, 1024, 1024}}, 1},
		{{{OP_RC_WRITE_FIRST, 1024, 1025}, {OP_RC_WRITE_LAST, 1, 0}}, 2},
		{{{OP_RC_READ_REQUEST, 0, 1}}, 1},
		{{{OP_RC_READ_REQUEST, 0, 0}}, 1},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sim s = sim_default();

		assert_true(duo_recv(s.b, 10, s.bbuf, 8192, 8192));
		hear(&s, rows[i].f, rows[i].n);
		duo_idle(s.duo);
		assert_int_equal(duo_count_syndrome(s.duo, DUO_B, NAK_INVALID), 0);
		assert_int_equal(qp_state(s.b->qp), QPS_RTS);
		s.b->received.taken = s.b->received.n;
		sim_end(&s);
	}
}

/* Opcodes that IBA reserves do not get as far as the QP, or are refused by it; never executed. */
SIM_TEST(reserved_opcodes_do_nothing)
{
	uint8_t before[BUF_BYTES];

	memcpy(before, s.bbuf->p, BUF_BYTES);
	for (int op = 0; op < 256; op++) {
		struct forged f = {(uint8_t)op, 64, 0};

		if (opcode_info((uint8_t)op) && opcode_service((uint8_t)op) == SVC_RC)
			continue;
		hear(&s, &f, 1);
		duo_idle(s.duo);
	}
	assert_int_equal(qp_state(s.b->qp), QPS_RTS);
	assert_memory_equal(before, s.bbuf->p, BUF_BYTES);
	assert_int_equal(duo_count(s.duo, DUO_B, DUO_ANY), 0);
}

/* A READ so long that its PSNs would lap: longer than any message may be. */
SIM_TEST(read_beyond_2_gib_is_an_invalid_request)
{
	struct forged f = {OP_RC_READ_REQUEST, 0, UINT32_MAX};

	hear(&s, &f, 1);
	duo_idle(s.duo);
	assert_int_equal(duo_count_syndrome(s.duo, DUO_B, NAK_INVALID) + duo_count_syndrome(s.duo, DUO_B, NAK_ACCESS),
			 1);
}

/* An iova may be aligned where the memory behind it is not; then there is no atomic access to it. */
SIM_TEST(atomic_on_unaligned_memory_is_an_access_error)
{
	struct duo_wr w = duo_fetch_add_wr(1, s.abuf, 0, s.bbuf, 0, 5);
	struct duo_host *b = s.b->host;
	uint8_t before[16];
	struct mr *mr;

	assert_int_equal(nic_mr_reg(b->nic, b->pd, (struct mr_range){s.bbuf->p + 1, 64, 0x1000}, ALL_ACCESS, &mr), 0);
	memcpy(before, s.bbuf->p, sizeof(before));
	w.remote_va = 0x1000;
	w.rkey = mr->key;
	assert_true(duo_post(s.a, &w));
	duo_finish(s.a, 1, WC_REM_ACCESS_ERR);
	assert_memory_equal(s.bbuf->p, before, sizeof(before));
	nic_mr_dereg(b->nic, mr);
}
