/* SPDX-License-Identifier: BSD-2-Clause */
/* Every operation on every service, and every way in which it can end. */
#include <endian.h>
#include <unistd.h>

#include "pair.h"
#include "support/test.h"

enum { FAR = BUF_BYTES / 2 };

static int post(struct pair *p, int side, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int rc;

	wr->send_flags |= IBV_SEND_SIGNALED;
	if (p->wish.type == IBV_QPT_UD) {
		wr->wr.ud.ah = p->side[side].ah;
		wr->wr.ud.remote_qpn = p->side[!side].qp->qp_num;
		wr->wr.ud.remote_qkey = QKEY;
	}
	rc = ibv_post_send(p->side[side].qp, wr, &bad);
	if (rc)
		assert_ptr_equal(bad, wr);
	return rc;
}

static void point_at(struct pair *p, struct ibv_send_wr *wr, int side, size_t offset)
{
	wr->wr.rdma.remote_addr = (uintptr_t)p->side[side].buf + offset;
	wr->wr.rdma.rkey = p->side[side].mr->rkey;
}

static void expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = wc_await(cq);

	if (wc.wr_id != wr_id || wc.status != status)
		fail_msg("completion of %lu is %s, not of %lu with %s", (unsigned long)wc.wr_id,
			 ibv_wc_status_str(wc.status), (unsigned long)wr_id, ibv_wc_status_str(status));
}

/* ---- sends ------------------------------------------------------------------------------------- */

static const uint32_t sizes[] = {0, 1, 3, 4, 63, 1023, 1024, 1025, 4096, 70001, 500000};

static void send_of(struct pair *p, uint32_t len, bool imm, bool is_inline)
{
	const uint32_t grh = p->wish.type == IBV_QPT_UD ? GRH_BYTES : 0;
	struct ibv_sge sge = sge_at(p, A, 0, len);
	struct ibv_send_wr wr = {
		.wr_id = len,
		.sg_list = &sge,
		.num_sge = len ? 1 : 0,
		.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.send_flags = is_inline ? IBV_SEND_INLINE : 0,
		.imm_data = htobe32(0x01020304),
	};
	struct ibv_wc wc;

	pattern_fill(p->side[A].buf, len, len);
	memset(p->side[B].buf, 0xee, len + grh + 1);
	recv_post(p, B, 1000 + len, 0, len + grh);
	if (is_inline)
		sge.lkey = 0; /* not looked at */
	assert_int_equal(post(p, A, &wr), 0);
	if (is_inline)
		memset(p->side[A].buf, 0, len);
	wc = wc_await(p->side[A].cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
	assert_int_equal(wc.wr_id, len);
	assert_int_equal(wc.qp_num, p->side[A].qp->qp_num);
	wc = wc_await(p->side[B].cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.wr_id, 1000 + len);
	assert_int_equal(wc.byte_len, len + grh);
	assert_int_equal(wc.qp_num, p->side[B].qp->qp_num);
	assert_int_equal(wc.wc_flags, (imm ? IBV_WC_WITH_IMM : 0) | (grh ? IBV_WC_GRH : 0));
	if (imm)
		assert_int_equal(wc.imm_data, htobe32(0x01020304));
	if (grh)
		assert_int_equal(wc.src_qp, p->side[A].qp->qp_num);
	pattern_check(p->side[B].buf + grh, len, len);
	assert_int_equal(p->side[B].buf[len + grh], 0xee);
}

TEST(sends_of_every_size_arrive)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	struct pair p;

	for (int t = 0; t < 3; t++) {
		pair_make(&p, (struct wishes){.type = types[t]});
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			if (types[t] == IBV_QPT_UD && sizes[i] > 1024)
				break;
			send_of(&p, sizes[i], false, false);
			send_of(&p, sizes[i], true, false);
			if (sizes[i] <= 256)
				send_of(&p, sizes[i], i % 2, true);
		}
		pair_destroy(&p);
	}
}

TEST(the_path_mtu_does_not_show)
{
	struct pair p;

	for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
		pair_make(&p, (struct wishes){.mtu = mtu});
		send_of(&p, 100000, true, false);
		pair_destroy(&p);
	}
}

PAIR_TEST(pieces_are_gathered_and_scattered_in_order)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .num_sge = 4};
	struct ibv_recv_wr recv = {.num_sge = 3}, *bad;

	{
		/* One empty piece on each side. */
		struct ibv_sge from[] = {sge_at(p, A, 0, 1000), sge_at(p, A, 50000, 0), sge_at(p, A, 1000, 7),
					 sge_at(p, A, 1007, 3000)};
		struct ibv_sge to[] = {sge_at(p, B, 0, 2001), sge_at(p, B, 2001, 0), sge_at(p, B, 10000, 5000)};

		wr.sg_list = from;
		recv.sg_list = to;
		pattern_fill(p->side[A].buf, 4007, 3);
		assert_int_equal(ibv_post_recv(p->side[B].qp, &recv, &bad), 0);
		assert_int_equal(post(p, A, &wr), 0);
		assert_int_equal(wc_await(p->side[B].cq).byte_len, 4007);
		memmove(p->side[B].buf + 2001, p->side[B].buf + 10000, 2006);
		pattern_check(p->side[B].buf, 4007, 3);
	}
}

/* ---- RDMA and atomics -------------------------------------------------------------------------- */

TEST(writes_of_every_size_arrive)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};
	struct pair p;

	for (int t = 0; t < 2; t++) {
		pair_make(&p, (struct wishes){.type = types[t]});
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			struct ibv_sge sge = sge_at(&p, A, 0, sizes[i]);
			struct ibv_send_wr wr = {.wr_id = i,
						 .sg_list = &sge,
						 .num_sge = 1,
						 .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
						 .imm_data = htobe32(sizes[i])};
			struct ibv_wc wc;

			pattern_fill(p.side[A].buf, sizes[i], sizes[i]);
			memset(p.side[B].buf, 0, BUF_BYTES);
			point_at(&p, &wr, B, 1);
			recv_post(&p, B, 500 + i, FAR, 8);
			assert_int_equal(post(&p, A, &wr), 0);
			wc = wc_await(p.side[A].cq);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, IBV_WC_RDMA_WRITE);
			wc = wc_await(p.side[B].cq);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
			assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
			assert_int_equal(wc.wr_id, 500 + i);
			assert_int_equal(wc.byte_len, sizes[i]);
			assert_int_equal(wc.imm_data, htobe32(sizes[i]));
			pattern_check(p.side[B].buf + 1, sizes[i], sizes[i]);
			assert_int_equal(p.side[B].buf[0], 0);
			assert_int_equal(p.side[B].buf[1 + sizes[i]], 0);
		}
		pair_destroy(&p);
	}
}

PAIR_TEST(a_plain_write_takes_no_receive)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .send_flags = IBV_SEND_INLINE};

	recv_post(p, B, 1, 0, 100);
	sge = sge_at(p, A, 0, 200);
	pattern_fill(p->side[A].buf, 200, 1);
	point_at(p, &wr, B, 300);
	assert_int_equal(post(p, A, &wr), 0);
	expect(p->side[A].cq, 0, IBV_WC_SUCCESS);
	wc_none(p->side[B].cq, 10);
	pattern_check(p->side[B].buf + 300, 200, 1);
}

PAIR_TEST(reads_of_every_size_return)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ibv_sge sge[2] = {sge_at(p, A, 0, sizes[i] / 3),
					 sge_at(p, A, sizes[i] / 3, sizes[i] - sizes[i] / 3)};
		struct ibv_send_wr wr = {.wr_id = i, .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_RDMA_READ};
		struct ibv_wc wc;

		pattern_fill(p->side[B].buf + 5, sizes[i], sizes[i]);
		memset(p->side[A].buf, 0, sizes[i] + 1);
		point_at(p, &wr, B, 5);
		assert_int_equal(post(p, A, &wr), 0);
		wc = wc_await(p->side[A].cq);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
		assert_int_equal(wc.byte_len, sizes[i]);
		pattern_check(p->side[A].buf, sizes[i], sizes[i]);
		assert_int_equal(p->side[A].buf[sizes[i]], 0);
	}
}

PAIR_TEST(atomics_return_what_was_there)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1};
	uint64_t *mine, *theirs;
	struct ibv_wc wc;

	sge = sge_at(p, A, 0, 8);
	mine = (uint64_t *)p->side[A].buf;
	theirs = (uint64_t *)(p->side[B].buf + 64);
	*theirs = 40;
	wr.wr.atomic.remote_addr = (uintptr_t)theirs;
	wr.wr.atomic.rkey = p->side[B].mr->rkey;

	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.compare_add = 2;
	assert_int_equal(post(p, A, &wr), 0);
	wc = wc_await(p->side[A].cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_FETCH_ADD);
	assert_int_equal(wc.byte_len, 8);
	assert_int_equal(*mine, 40);
	assert_int_equal(*theirs, 42);

	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 42;
	wr.wr.atomic.swap = UINT64_C(0x1122334455667788);
	assert_int_equal(post(p, A, &wr), 0);
	wc = wc_await(p->side[A].cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_COMP_SWAP);
	assert_int_equal(*mine, 42);
	assert_true(*theirs == UINT64_C(0x1122334455667788));

	assert_int_equal(post(p, A, &wr), 0); /* compares unequal now */
	expect(p->side[A].cq, 0, IBV_WC_SUCCESS);
	assert_true(*mine == UINT64_C(0x1122334455667788) && *theirs == *mine);

	wr.wr.atomic.remote_addr++; /* IBTA C9-85: must be aligned */
	assert_int_equal(post(p, A, &wr), 0);
	expect(p->side[A].cq, 0, IBV_WC_REM_INV_REQ_ERR);
}

PAIR_TEST(a_fence_waits_for_reads)
{
	struct ibv_sge sge;
	struct ibv_send_wr read = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
	struct ibv_send_wr write = {
		.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_FENCE};

	for (unsigned int round = 0; round < 20; round++) {
		/* The write sends on what the read fetches into the same bytes. */
		sge = sge_at(p, A, 0, 20000);
		memset(p->side[A].buf, 0, 20000);
		pattern_fill(p->side[B].buf, 20000, round);
		point_at(p, &read, B, 0);
		point_at(p, &write, B, FAR);
		assert_int_equal(post(p, A, &read), 0);
		assert_int_equal(post(p, A, &write), 0);
		expect(p->side[A].cq, 1, IBV_WC_SUCCESS);
		expect(p->side[A].cq, 2, IBV_WC_SUCCESS);
		pattern_check(p->side[B].buf + FAR, 20000, round);
	}
}

PAIR_TEST(a_zero_based_region_is_addressed_from_zero)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
	struct ibv_mr *mr;

	sge = sge_at(p, A, 0, 64);
	pattern_fill(p->side[A].buf, 64, 1);
	for (int way = 0; way < 2; way++) {
		mr = way ? ibv_reg_mr_iova(p->pd, p->side[B].buf + 4096, 4096, 0x7000, ACCESS_ALL)
			 : ibv_reg_mr(p->pd, p->side[B].buf + 4096, 4096, ACCESS_ALL | IBV_ACCESS_ZERO_BASED);
		assert_non_null(mr);
		memset(p->side[B].buf, 0, 8192);
		wr.wr.rdma.remote_addr = (way ? 0x7000 : 0) + 100;
		wr.wr.rdma.rkey = mr->rkey;
		assert_int_equal(post(p, A, &wr), 0);
		expect(p->side[A].cq, 0, IBV_WC_SUCCESS);
		pattern_check(p->side[B].buf + 4196, 64, 1);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}

/* ---- chains and queues ------------------------------------------------------------------------- */

PAIR_TEST(only_signaled_requests_complete)
{
	struct ibv_send_wr wr[8] = {0}, *bad;

	for (int i = 0; i < 8; i++)
		wr[i] = (struct ibv_send_wr){.wr_id = (uint64_t)i,
					     .next = i < 7 ? &wr[i + 1] : NULL,
					     .opcode = IBV_WR_RDMA_WRITE,
					     .send_flags = i % 4 == 3 ? IBV_SEND_SIGNALED : 0};
	for (int round = 0; round < 40; round++) {
		assert_int_equal(ibv_post_send(p->side[A].qp, wr, &bad), 0);
		expect(p->side[A].cq, 3, IBV_WC_SUCCESS);
		expect(p->side[A].cq, 7, IBV_WC_SUCCESS);
	}
	wc_none(p->side[A].cq, 5);
}

PAIR_TEST(a_full_queue_names_the_first_request_left_out, .all_signaled = true, .max_wr = 8, .cqe = 1000)
{
	struct ibv_send_wr wr[300] = {0}, *bad = NULL;
	struct ibv_recv_wr recv[300] = {0}, *bad_recv = NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint32_t sends, recvs;

	assert_int_equal(ibv_query_qp(p->side[A].qp, &attr, IBV_QP_CAP, &init), 0);
	sends = attr.cap.max_send_wr;
	recvs = attr.cap.max_recv_wr;
	assert_true(sends < 300 && recvs < 300);
	for (int i = 0; i < 299; i++) {
		wr[i].next = &wr[i + 1];
		recv[i].next = &recv[i + 1];
	}
	for (uint64_t i = 0; i < 300; i++) {
		wr[i].wr_id = recv[i].wr_id = i;
		wr[i].opcode = IBV_WR_SEND;
	}
	assert_int_equal(ibv_post_recv(p->side[B].qp, recv, &bad_recv), ENOMEM);
	assert_ptr_equal(bad_recv, &recv[recvs]);
	assert_int_equal(ibv_post_send(p->side[A].qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[sends]);
	for (uint64_t i = 0; i < sends && i < recvs; i++) {
		expect(p->side[A].cq, i, IBV_WC_SUCCESS);
		expect(p->side[B].cq, i, IBV_WC_SUCCESS);
	}
}

struct refusal {
	const char *what;
	enum ibv_qp_type type;
	struct ibv_send_wr wr;
	uint32_t sge_bytes; /* of each of num_sge */
};

TEST(impossible_requests_are_refused_at_once)
{
	static const struct refusal cases[] = {
		{"too many SGEs", IBV_QPT_RC, {.opcode = IBV_WR_SEND, .num_sge = 33}, 1},
		{"negative SGEs", IBV_QPT_RC, {.opcode = IBV_WR_SEND, .num_sge = -1}, 1},
		{"too much inline",
		 IBV_QPT_RC,
		 {.opcode = IBV_WR_SEND, .num_sge = 1, .send_flags = IBV_SEND_INLINE},
		 100000},
		{"an inline read",
		 IBV_QPT_RC,
		 {.opcode = IBV_WR_RDMA_READ, .num_sge = 1, .send_flags = IBV_SEND_INLINE},
		 8},
		{"a read on UC", IBV_QPT_UC, {.opcode = IBV_WR_RDMA_READ, .num_sge = 1}, 8},
		{"an atomic on UC", IBV_QPT_UC, {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .num_sge = 1}, 8},
		{"a write on UD", IBV_QPT_UD, {.opcode = IBV_WR_RDMA_WRITE, .num_sge = 1}, 8},
		{"no address on UD", IBV_QPT_UD, {.opcode = IBV_WR_SEND, .num_sge = 1}, 8},
		{"a window binding", IBV_QPT_RC, {.opcode = IBV_WR_BIND_MW}, 0},
		{"no such operation", IBV_QPT_RC, {.opcode = 77}, 0},
		{"checksums", IBV_QPT_RC, {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_IP_CSUM}, 0},
	};
	struct ibv_sge sge[40];
	struct pair p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ibv_send_wr good = {.wr_id = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
		struct ibv_send_wr wr = cases[i].wr, *bad = NULL;
		int rc;

		pair_make(&p, (struct wishes){.type = cases[i].type});
		if (cases[i].type == IBV_QPT_UD) {
			good.wr.ud.ah = p.side[A].ah;
			good.wr.ud.remote_qpn = p.side[B].qp->qp_num;
			good.wr.ud.remote_qkey = QKEY;
		}
		for (int j = 0; j < 40; j++)
			sge[j] = sge_at(&p, A, 0, cases[i].sge_bytes);
		wr.sg_list = sge;
		good.next = &wr;
		rc = ibv_post_send(p.side[A].qp, &good, &bad);
		if (rc != EINVAL || bad != &wr)
			fail_msg("%s: %d", cases[i].what, rc);
		recv_post(&p, B, 2, 0, 100);
		expect(p.side[A].cq, 1, IBV_WC_SUCCESS);
		pair_destroy(&p);
	}
}

PAIR_TEST(receives_are_judged_too, .with_srq = true)
{
	struct ibv_sge sge[40];
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 33}, good = {.next = &wr}, *bad = NULL;

	for (int j = 0; j < 40; j++)
		sge[j] = sge_at(p, A, 0, 1);
	assert_int_equal(ibv_post_recv(p->side[A].qp, &good, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_post_srq_recv(p->side[B].srq, &good, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	/* A QP with an SRQ has no receive queue. */
	assert_int_equal(ibv_post_recv(p->side[B].qp, &good, &bad), EINVAL);
	assert_ptr_equal(bad, &good);
}

/* ---- errors ------------------------------------------------------------------------------------ */

/* After a fatal completion everything else is flushed, in order, and the QP is in the error state. */
static void expect_dead(struct pair *p, int side)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_send_wr wr = {.wr_id = 70, .opcode = IBV_WR_SEND};

	assert_int_equal(ibv_query_qp(p->side[side].qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	assert_int_equal(post(p, side, &wr), 0);
	expect(p->side[side].cq, 70, IBV_WC_WR_FLUSH_ERR);
}

struct denial {
	const char *what;
	enum ibv_wr_opcode opcode;
	uint32_t qp_access; /* B's; 0: all */
	unsigned int mr_access;
	int64_t offset;
	uint32_t length;
	bool wrong_key;
	enum ibv_wc_status status;
};

TEST(the_responder_denies_access)
{
	static const struct denial cases[] = {
		{"a wrong key", IBV_WR_RDMA_WRITE, 0, ACCESS_ALL, 0, 8, true, IBV_WC_REM_ACCESS_ERR},
		{"before the region", IBV_WR_RDMA_WRITE, 0, ACCESS_ALL, -1, 8, false, IBV_WC_REM_ACCESS_ERR},
		{"across its end", IBV_WR_RDMA_WRITE, 0, ACCESS_ALL, 4095, 2, false, IBV_WC_REM_ACCESS_ERR},
		{"a write into a read-only region", IBV_WR_RDMA_WRITE, 0,
		 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, 0, 8, false, IBV_WC_REM_ACCESS_ERR},
		{"a read of a write-only region", IBV_WR_RDMA_READ, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		 0, 8, false, IBV_WC_REM_ACCESS_ERR},
		{"an atomic on a region without them", IBV_WR_ATOMIC_FETCH_AND_ADD, 0,
		 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 0, 8, false, IBV_WC_REM_ACCESS_ERR},
		{"a write to a QP that takes none", IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_READ, ACCESS_ALL, 0, 8, false,
		 IBV_WC_REM_INV_REQ_ERR},
		{"a read from a QP that takes none", IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_WRITE, ACCESS_ALL, 0, 8, false,
		 IBV_WC_REM_INV_REQ_ERR},
		{"a word that is not aligned", IBV_WR_ATOMIC_WRITE, 0, ACCESS_ALL, 4, 8, false, IBV_WC_REM_INV_REQ_ERR},
		{"a word into a read-only region", IBV_WR_ATOMIC_WRITE, 0,
		 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, 0, 8, false, IBV_WC_REM_ACCESS_ERR},
		{"an atomic to a QP that takes none", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_ACCESS_REMOTE_WRITE, ACCESS_ALL, 0,
		 8, false, IBV_WC_REM_INV_REQ_ERR},
	};
	struct pair p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct denial *c = &cases[i];
		struct ibv_send_wr wr = {.wr_id = i, .num_sge = 1, .opcode = c->opcode};
		struct ibv_sge sge;
		struct ibv_wc wc;
		struct ibv_mr *mr;

		pair_make(&p, (struct wishes){.qp_access = c->qp_access});
		sge = sge_at(&p, A, 0, c->length);
		wr.sg_list = &sge;
		mr = ibv_reg_mr(p.pd, p.side[B].buf + 4096, 4096, c->mr_access);
		assert_non_null(mr);
		if (c->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || c->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
			wr.wr.atomic.remote_addr = (uintptr_t)p.side[B].buf + 4096;
			wr.wr.atomic.rkey = mr->rkey;
			wr.wr.atomic.compare_add = 1;
		} else {
			wr.wr.rdma.remote_addr = (uintptr_t)p.side[B].buf + 4096 + (uint64_t)c->offset;
			wr.wr.rdma.rkey = mr->rkey ^ (c->wrong_key ? 0x5a5a5a5a : 0);
		}
		memset(p.side[A].buf, 0xff, 64);
		assert_int_equal(post(&p, A, &wr), 0);
		wc = wc_await(p.side[A].cq);
		if (wc.status != c->status)
			fail_msg("%s: %s", c->what, ibv_wc_status_str(wc.status));
		expect_dead(&p, A);
		for (int j = 0; j < 12000; j++)
			assert_int_equal(p.side[B].buf[j], 0);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		pair_destroy(&p);
	}
}

TEST(a_region_that_is_gone_is_not_reached)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.num_sge = 1, .sg_list = &sge, .opcode = IBV_WR_RDMA_READ};

	for (int way = 0; way < 2; way++) {
		pair_make(&p, (struct wishes){0});
		sge = sge_at(&p, A, 0, 8);
		point_at(&p, &wr, B, 0);
		if (way) {
			assert_int_equal(ibv_rereg_mr(p.side[B].mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
						      IBV_ACCESS_LOCAL_WRITE),
					 0);
		} else {
			assert_int_equal(ibv_dereg_mr(p.side[B].mr), 0);
			p.side[B].mr = NULL;
		}
		assert_int_equal(post(&p, A, &wr), 0);
		expect(p.side[A].cq, 0, IBV_WC_REM_ACCESS_ERR);
		pair_destroy(&p);
	}
}

TEST(local_keys_are_checked)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 1, .num_sge = 1, .sg_list = &sge};

	/* The bytes of a SEND ... */
	pair_make(&p, (struct wishes){0});
	recv_post(&p, B, 5, 0, 100);
	sge = sge_at(&p, A, BUF_BYTES - 4, 8);
	wr.opcode = IBV_WR_SEND;
	assert_int_equal(post(&p, A, &wr), 0);
	expect(p.side[A].cq, 1, IBV_WC_LOC_PROT_ERR);
	expect_dead(&p, A);
	pair_destroy(&p);

	/* ... what a read brings ... */
	pair_make(&p, (struct wishes){0});
	sge = sge_at(&p, A, 0, 8);
	sge.lkey ^= 0x77777777;
	wr.opcode = IBV_WR_RDMA_READ;
	point_at(&p, &wr, B, 0);
	assert_int_equal(post(&p, A, &wr), 0);
	expect(p.side[A].cq, 1, IBV_WC_LOC_PROT_ERR);
	expect_dead(&p, A);
	pair_destroy(&p);

	/*
	 * ... and the target of a receive: the receiver learns the cause, the sender only that
	 * there is one.
	 */
	pair_make(&p, (struct wishes){0});
	{
		struct ibv_sge to = {.addr = (uintptr_t)p.side[B].buf, .length = 8, .lkey = 1};
		struct ibv_recv_wr recv = {.wr_id = 6, .sg_list = &to, .num_sge = 1}, *bad;

		assert_int_equal(ibv_post_recv(p.side[B].qp, &recv, &bad), 0);
	}
	sge = sge_at(&p, A, 0, 8);
	wr.opcode = IBV_WR_SEND;
	assert_int_equal(post(&p, A, &wr), 0);
	expect(p.side[B].cq, 6, IBV_WC_LOC_PROT_ERR);
	expect(p.side[A].cq, 1, IBV_WC_REM_OP_ERR);
	expect_dead(&p, A);
	expect_dead(&p, B);
	pair_destroy(&p);
}

TEST(a_message_longer_than_the_receive_fails_both)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 1, .num_sge = 1, .sg_list = &sge, .opcode = IBV_WR_SEND};

	for (uint32_t len = 101; len < 3000; len += 2000) {
		pair_make(&p, (struct wishes){0});
		recv_post(&p, B, 5, 0, 100);
		sge = sge_at(&p, A, 0, len);
		assert_int_equal(post(&p, A, &wr), 0);
		expect(p.side[B].cq, 5, IBV_WC_LOC_LEN_ERR);
		expect(p.side[A].cq, 1, IBV_WC_REM_INV_REQ_ERR);
		expect_dead(&p, A);
		pair_destroy(&p);
	}
}

TEST(without_a_receive_the_sender_waits_or_gives_up)
{
	struct pair p;
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND};

	pair_make(&p, (struct wishes){.rnr_retry_given = 1, .rnr_retry = 2});
	assert_int_equal(post(&p, A, &wr), 0);
	expect(p.side[A].cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_dead(&p, A);
	pair_destroy(&p);

	pair_make(&p, (struct wishes){0}); /* 7: without end */
	assert_int_equal(post(&p, A, &wr), 0);
	wc_none(p.side[A].cq, 50);
	recv_post(&p, B, 2, 0, 0);
	expect(p.side[B].cq, 2, IBV_WC_SUCCESS);
	expect(p.side[A].cq, 1, IBV_WC_SUCCESS);
	pair_destroy(&p);
}

PAIR_TEST(a_silent_peer_exceeds_the_retries, .timeout = 10, .retry_cnt_given = 1, .retry_cnt = 1)
{
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND};

	assert_int_equal(state_set(p->side[B].qp, IBV_QPS_RESET), 0);
	for (uint64_t i = 1; i <= 3; i++) {
		wr.wr_id = i;
		wr.send_flags = 0;
		assert_int_equal(post(p, A, &wr), 0);
	}
	recv_post(p, A, 9, 0, 0);
	expect(p->side[A].cq, 1, IBV_WC_RETRY_EXC_ERR);
	expect(p->side[A].cq, 2, IBV_WC_WR_FLUSH_ERR);
	expect(p->side[A].cq, 3, IBV_WC_WR_FLUSH_ERR);
	expect(p->side[A].cq, 9, IBV_WC_WR_FLUSH_ERR);
}

PAIR_TEST(the_error_state_flushes_in_order)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	for (uint64_t i = 0; i < 10; i++)
		recv_post(p, A, 100 + i, 0, 8);
	assert_int_equal(state_set(p->side[A].qp, IBV_QPS_SQD), 0);
	for (uint64_t i = 0; i < 10; i++) {
		wr.wr_id = i;
		assert_int_equal(post(p, A, &wr), 0);
	}
	assert_int_equal(state_set(p->side[A].qp, IBV_QPS_ERR), 0);
	{
		uint64_t send = 0, recv = 100;

		for (int i = 0; i < 20; i++) {
			struct ibv_wc wc = wc_await(p->side[A].cq);

			assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
			assert_int_equal(wc.qp_num, p->side[A].qp->qp_num);
			assert_true(wc.wr_id == send || wc.wr_id == recv);
			if (wc.wr_id == send)
				send++;
			else
				recv++;
		}
	}
	wc_none(p->side[A].cq, 5);
}

TEST(unreliable_services_lose_in_silence)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 1, .num_sge = 1, .sg_list = &sge, .opcode = IBV_WR_SEND};

	/* UC without a receive. */
	pair_make(&p, (struct wishes){.type = IBV_QPT_UC});
	sge = sge_at(&p, A, 0, 100);
	assert_int_equal(post(&p, A, &wr), 0);
	expect(p.side[A].cq, 1, IBV_WC_SUCCESS);
	wc_none(p.side[B].cq, 20);
	/* The next message that finds one arrives. */
	recv_post(&p, B, 2, 0, 100);
	assert_int_equal(post(&p, A, &wr), 0);
	expect(p.side[B].cq, 2, IBV_WC_SUCCESS);
	pair_destroy(&p);

	/* UD with the wrong Q_Key, then with the right one. */
	pair_make(&p, (struct wishes){.type = IBV_QPT_UD});
	sge = sge_at(&p, A, 0, 100);
	recv_post(&p, B, 3, 0, 140);
	{
		struct ibv_send_wr *bad, stray = wr;

		stray.send_flags = IBV_SEND_SIGNALED;
		stray.wr.ud.ah = p.side[A].ah;
		stray.wr.ud.remote_qpn = p.side[B].qp->qp_num;
		stray.wr.ud.remote_qkey = QKEY + 1;
		assert_int_equal(ibv_post_send(p.side[A].qp, &stray, &bad), 0);
	}
	expect(p.side[A].cq, 1, IBV_WC_SUCCESS);
	wc_none(p.side[B].cq, 20);
	assert_int_equal(post(&p, A, &wr), 0);
	expect(p.side[B].cq, 3, IBV_WC_SUCCESS);
	pair_destroy(&p);
}

PAIR_TEST(a_datagram_longer_than_the_mtu_is_an_error_of_length, .type = IBV_QPT_UD)
{
	struct ibv_port_attr port;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 1, .num_sge = 1, .sg_list = &sge, .opcode = IBV_WR_SEND};

	assert_int_equal(ibv_query_port(p->ctx, PORT, &port), 0);
	recv_post(p, B, 2, 0, 8192);
	sge = sge_at(p, A, 0, (128u << port.active_mtu) + 1);
	assert_int_equal(post(p, A, &wr), 0);
	expect(p->side[A].cq, 1, IBV_WC_LOC_LEN_ERR);
	wc_none(p->side[B].cq, 20);
}

/* ---- UD ---------------------------------------------------------------------------------------- */

PAIR_TEST(the_sender_of_a_datagram_can_be_answered, .type = IBV_QPT_UD)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.num_sge = 1, .sg_list = &sge, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_grh *grh;
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	sge = sge_at(p, A, 0, 32);
	pattern_fill(p->side[A].buf, 32, 8);
	recv_post(p, B, 1, 0, 1000);
	assert_int_equal(post(p, A, &wr), 0);
	wc = wc_await(p->side[B].cq);
	assert_int_equal(wc.byte_len, 32 + GRH_BYTES);
	assert_true(wc.wc_flags & IBV_WC_GRH);
	grh = (struct ibv_grh *)p->side[B].buf;
	assert_int_equal(ibv_init_ah_from_wc(p->ctx, PORT, &wc, grh, &attr), 0);
	assert_int_equal(attr.is_global, 1);
	assert_int_equal(attr.port_num, PORT);
	assert_int_equal(attr.grh.sgid_index, p->gid_index);
	assert_memory_equal(&attr.grh.dgid, &p->gid, sizeof(p->gid));
	assert_int_equal(ibv_init_ah_from_wc(p->ctx, 2, &wc, grh, &attr), -1);
	assert_null(ibv_create_ah_from_wc(p->pd, &wc, grh, 2));

	ah = ibv_create_ah_from_wc(p->pd, &wc, grh, PORT);
	assert_non_null(ah);
	recv_post(p, A, 2, 1000, 1000);
	sge = sge_at(p, B, GRH_BYTES, 32);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = wc.src_qp;
	wr.wr.ud.remote_qkey = QKEY;
	assert_int_equal(ibv_post_send(p->side[B].qp, &wr, &bad), 0);
	do {
		wc = wc_await(p->side[A].cq);
	} while (wc.opcode != IBV_WC_RECV);
	pattern_check(p->side[A].buf + 1000 + GRH_BYTES, 32, 8);

	/* A buffer that has neither header gives no address. */
	memset(grh, 0, sizeof(*grh));
	wc.wc_flags = IBV_WC_GRH;
	assert_int_equal(ibv_init_ah_from_wc(p->ctx, PORT, &wc, grh, &attr), -1);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* ---- SRQ --------------------------------------------------------------------------------------- */

PAIR_TEST(qps_share_receives, .with_srq = true)
{
	for (int i = 0; i < 100; i++)
		send_of(p, 777, i % 2, false);
}
