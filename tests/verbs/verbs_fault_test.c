/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory that is gone when a packet needs it, unmapped or behind the end of a file: the work request
 * fails with the right status at both ends, and the process goes on. cmocka has handlers of its own for both
 * signals.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"
#include "support/test.h"

enum { PAGE = 4096, AREA_BYTES = 4 * PAGE, LONG = 3 * PAGE + 1000 };

/* Registered memory of one side that can go away. */
struct area {
	uint8_t *p;
	struct ibv_mr *mr;
};

enum kind { UNMAPPED, TRUNCATED, KINDS };

static int file;

static struct area area_make(const struct pair *p, enum kind kind)
{
	struct area a;

	if (kind == TRUNCATED) {
		file = memfd_create("area", 0);
		assert_true(file >= 0);
		assert_int_equal(ftruncate(file, AREA_BYTES), 0);
	}
	a.p = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE,
		   kind == TRUNCATED ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, kind == TRUNCATED ? file : -1, 0);
	assert_true(a.p != MAP_FAILED);
	pattern_fill(a.p, AREA_BYTES, 3);
	a.mr = ibv_reg_mr(p->pd, a.p, AREA_BYTES, ACCESS_ALL);
	assert_non_null(a.mr);
	return a;
}

/* All but the first page. */
static void area_cut(struct area *a, enum kind kind)
{
	if (kind == TRUNCATED)
		assert_int_equal(ftruncate(file, PAGE), 0);
	else
		assert_int_equal(munmap(a->p + PAGE, AREA_BYTES - PAGE), 0);
}

/* A registration cache deregisters later, if ever. */
static void area_drop(struct area *a, enum kind kind)
{
	assert_int_equal(ibv_dereg_mr(a->mr), 0);
	munmap(a->p, kind == TRUNCATED ? AREA_BYTES : PAGE);
	if (kind == TRUNCATED)
		close(file);
}

static struct ibv_sge area_sge(const struct area *a, size_t offset, uint32_t length)
{
	return (struct ibv_sge){.addr = (uintptr_t)a->p + offset, .length = length, .lkey = a->mr->lkey};
}

static void post(struct pair *p, int side, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;

	wr.send_flags |= IBV_SEND_SIGNALED;
	if (p->wish.type == IBV_QPT_UD) {
		wr.wr.ud.ah = p->side[side].ah;
		wr.wr.ud.remote_qpn = p->side[!side].qp->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	}
	assert_int_equal(ibv_post_send(p->side[side].qp, &wr, &bad), 0);
}

static void expect(struct pair *p, int side, enum ibv_wc_status status)
{
	struct ibv_wc wc = wc_await(p->side[side].cq);

	if (wc.status != status)
		fail_msg("%s, not %s", ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
}

/* The connection that met the fault is over; another one of the same process works. */
static void others_work(void)
{
	struct pair p;
	struct ibv_sge sge;

	pair_make(&p, (struct wishes){0});
	sge = sge_at(&p, A, 0, LONG);
	pattern_fill(p.side[A].buf, LONG, 9);
	recv_post(&p, B, 1, 0, LONG);
	post(&p, A, (struct ibv_send_wr){.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1});
	expect(&p, A, IBV_WC_SUCCESS);
	expect(&p, B, IBV_WC_SUCCESS);
	pattern_check(p.side[B].buf, LONG, 9);
	pair_destroy(&p);
}

/* The target's memory is gone, from the first packet on or from a later one. */
TEST(target_is_told_and_lives)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
						 IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};

	/* Within a host veRoCE's packets are large: the message is one, which takes the receive. */
	bool large = !strcmp(getenv("VERBENA_PROTOCOL"), "veroce");

	for (int i = 0; i < 4 * 5; i++) {
		enum ibv_wr_opcode op = ops[i / 4];
		bool atomic = i / 4 >= 3;
		enum kind kind = i & 1;
		struct pair p;
		struct area a;
		struct ibv_sge sge;
		struct ibv_send_wr wr = {.opcode = op, .sg_list = &sge, .num_sge = 1};

		pair_make(&p, (struct wishes){0});
		a = area_make(&p, kind);
		sge = sge_at(&p, A, 0, atomic ? 8 : LONG);
		if (op == IBV_WR_RDMA_WRITE_WITH_IMM)
			recv_post(&p, B, 1, 0, 0);
		if (atomic) {
			wr.wr.atomic.remote_addr = (uintptr_t)a.p + PAGE + (i & 2) * 4;
			wr.wr.atomic.rkey = a.mr->rkey;
		} else {
			wr.wr.rdma.remote_addr = (uintptr_t)a.p + (i & 2 ? PAGE : 24);
			wr.wr.rdma.rkey = a.mr->rkey;
			sge.length -= i & 2 ? PAGE : 0;
		}
		area_cut(&a, kind);
		post(&p, A, wr);
		expect(&p, A, IBV_WC_REM_ACCESS_ERR);
		if (op == IBV_WR_RDMA_WRITE_WITH_IMM)
			expect(&p, B, large ? IBV_WC_LOC_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
		area_drop(&a, kind);
		pair_destroy(&p);
	}
	others_work();
}

/* The requester's memory is gone, for data or for a result; the list's first element exists. */
TEST(requester_is_told_and_lives)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						 IBV_WR_ATOMIC_FETCH_AND_ADD};

	for (int i = 0; i < 4 * 4; i++) {
		enum ibv_wr_opcode op = ops[i / 4];
		enum kind kind = i & 1;
		struct pair p;
		struct area a;
		struct ibv_sge sge[2];
		struct ibv_send_wr wr = {.opcode = op, .sg_list = sge, .num_sge = 2};

		pair_make(&p, (struct wishes){0});
		a = area_make(&p, kind);
		sge[0] = sge_at(&p, A, 0, op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 4 : i & 2 ? 5000 : 100);
		sge[1] = area_sge(&a, PAGE, op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 4 : 5000);
		if (op == IBV_WR_SEND)
			recv_post(&p, B, 1, 0, BUF_BYTES);
		if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wr.wr.atomic.remote_addr = (uintptr_t)p.side[B].buf;
			wr.wr.atomic.rkey = p.side[B].mr->rkey;
		} else {
			wr.wr.rdma.remote_addr = (uintptr_t)p.side[B].buf;
			wr.wr.rdma.rkey = p.side[B].mr->rkey;
		}
		area_cut(&a, kind);
		post(&p, A, wr);
		expect(&p, A, IBV_WC_LOC_PROT_ERR);
		area_drop(&a, kind);
		pair_destroy(&p);
	}
	others_work();
}

TEST(receiver_is_told_and_lives)
{
	for (int i = 0; i < 2 * KINDS; i++) {
		enum kind kind = i & 1;
		struct pair p;
		struct area a;
		struct ibv_sge sge, to;
		struct ibv_recv_wr wr = {.sg_list = &to, .num_sge = 1}, *bad;

		pair_make(&p, (struct wishes){.with_srq = i & 2});
		a = area_make(&p, kind);
		to = area_sge(&a, 0, AREA_BYTES);
		if (i & 2)
			assert_int_equal(ibv_post_srq_recv(p.side[B].srq, &wr, &bad), 0);
		else
			assert_int_equal(ibv_post_recv(p.side[B].qp, &wr, &bad), 0);
		sge = sge_at(&p, A, 0, LONG);
		area_cut(&a, kind);
		post(&p, A, (struct ibv_send_wr){.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1});
		expect(&p, A, IBV_WC_REM_OP_ERR);
		expect(&p, B, IBV_WC_LOC_PROT_ERR);
		area_drop(&a, kind);
		pair_destroy(&p);
	}
	others_work();
}

/* Unreliable services: a fault at one end affects that end only. */
TEST(unreliable_ends_are_told_and_live)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};

	for (int i = 0; i < 4 * KINDS; i++) {
		enum kind kind = i & 1;
		struct pair p;
		struct area a;
		struct ibv_sge here, gone;
		struct ibv_recv_wr recv = {.sg_list = &gone, .num_sge = 1}, *bad;
		struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .sg_list = &here, .num_sge = 1};
		bool receives = i & 2;

		pair_make(&p, (struct wishes){.type = types[i / 4]});
		a = area_make(&p, kind);
		here = sge_at(&p, A, 0, 1000);
		gone = area_sge(&a, PAGE, 1040);
		if (receives)
			assert_int_equal(ibv_post_recv(p.side[B].qp, &recv, &bad), 0);
		else
			here = area_sge(&a, PAGE, 1000);
		area_cut(&a, kind);
		post(&p, A, send);
		expect(&p, A, receives ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
		if (receives)
			expect(&p, B, IBV_WC_LOC_PROT_ERR);
		area_drop(&a, kind);
		pair_destroy(&p);
	}
	others_work();
}

/*
 * A WRITE to a UC queue pair whose memory is gone is dropped, like any that is not permitted; the
 * next one lands.
 */
PAIR_TEST(uc_write_is_dropped, .type = IBV_QPT_UC)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};
	struct area a = area_make(p, UNMAPPED);

	sge = sge_at(p, A, 0, LONG);
	wr.wr.rdma.remote_addr = (uintptr_t)a.p;
	wr.wr.rdma.rkey = a.mr->rkey;
	area_cut(&a, UNMAPPED);
	post(p, A, wr);
	expect(p, A, IBV_WC_SUCCESS);
	recv_post(p, B, 1, 0, LONG);
	wr.opcode = IBV_WR_SEND;
	post(p, A, wr);
	expect(p, A, IBV_WC_SUCCESS);
	expect(p, B, IBV_WC_SUCCESS);
	area_drop(&a, UNMAPPED);
}

/* What a program that uses much makes: of everything that the device has memory for. */
struct objects {
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
};

static struct objects objects_make(const struct pair *p, uint32_t entries)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = entries, .max_sge = 1}};
	struct ibv_qp_init_attr init = {.cap = {entries, entries, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct objects o = {.cq = ibv_create_cq(p->ctx, (int)entries, NULL, NULL, 0),
			    .srq = ibv_create_srq(p->pd, &srq)};

	assert_true(o.cq && o.srq);
	init.send_cq = init.recv_cq = o.cq;
	o.qp = ibv_create_qp(p->pd, &init);
	assert_non_null(o.qp);
	return o;
}

static void objects_destroy(struct objects *o)
{
	assert_int_equal(ibv_destroy_qp(o->qp) + ibv_destroy_srq(o->srq) + ibv_destroy_cq(o->cq), 0);
}

/*
 * A program that unmaps its memory and leaves the region registered lets peers write there. The addresses are the
 * program's to use again, and never the device's, whatever it makes afterwards: a WRITE finds what the program has
 * there, which is nothing.
 */
TEST(unmapped_memory_never_becomes_the_device_s)
{
	enum { AREAS = 8, BYTES_MIN = 8192, OBJECTS = 24 };
	struct objects o[OBJECTS];
	struct pair p[AREAS];
	uint8_t *area[AREAS];
	struct ibv_mr *mr[AREAS];
	unsigned char pages[1];

	for (int i = 0; i < AREAS; i++) {
		pair_make(&p[i], (struct wishes){0});
		area[i] = mmap(NULL, BYTES_MIN << i, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(area[i] != MAP_FAILED);
		mr[i] = ibv_reg_mr(p[i].pd, area[i], BYTES_MIN << i, ACCESS_ALL);
		assert_non_null(mr[i]);
	}
	for (int i = 0; i < AREAS; i++)
		assert_int_equal(munmap(area[i], BYTES_MIN << i), 0);
	for (int i = 0; i < OBJECTS; i++)
		o[i] = objects_make(&p[0], 64u << i % 8);
	for (int i = 0; i < AREAS; i++) {
		struct ibv_sge sge = sge_at(&p[i], A, 0, BYTES_MIN << i);
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};

		for (int at = 0; at < BYTES_MIN << i; at += PAGE)
			assert_true(mincore(area[i] + at, PAGE, pages) && errno == ENOMEM);
		wr.wr.rdma.remote_addr = (uintptr_t)area[i];
		wr.wr.rdma.rkey = mr[i]->rkey;
		memset(p[i].side[A].buf, 0xff, BYTES_MIN << i);
		post(&p[i], A, wr);
		expect(&p[i], A, IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(ibv_dereg_mr(mr[i]), 0);
	}
	for (int i = 0; i < OBJECTS; i++)
		objects_destroy(&o[i]);
	for (int i = 0; i < AREAS; i++)
		pair_destroy(&p[i]);
	others_work();
}

/* Likewise memory of the heap, which stays mapped: nothing that a peer writes there is the device's. */
TEST(freed_memory_never_becomes_the_device_s)
{
	enum { AREAS = 64, BYTES = 8192, FIRST = 64, OBJECTS = 16 };
	struct objects o[OBJECTS];
	struct pair p;
	uint8_t *area[AREAS], *between[AREAS];
	struct ibv_mr *mr[AREAS];

	pair_make(&p, (struct wishes){0});
	for (int i = 0; i < AREAS; i++) {
		area[i] = malloc(BYTES);
		between[i] = malloc(1);
		assert_true(area[i] && between[i]);
		mr[i] = ibv_reg_mr(p.pd, area[i], BYTES, ACCESS_ALL);
		assert_non_null(mr[i]);
	}
	for (int i = 0; i < AREAS; i++)
		free(area[i]);
	for (int i = 0; i < OBJECTS; i++)
		o[i] = objects_make(&p, 4u << i % 4);
	/* The heap's own notes are the first bytes of what is free. No call of the heap comes before the last
	 * assertion. */
	memset(p.side[A].buf, 0xff, BYTES);
	for (int i = 0; i < AREAS; i++) {
		struct ibv_sge sge = sge_at(&p, A, 0, BYTES - 2 * FIRST);
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};

		wr.wr.rdma.remote_addr = (uintptr_t)area[i] + FIRST;
		wr.wr.rdma.rkey = mr[i]->rkey;
		post(&p, A, wr);
		expect(&p, A, IBV_WC_SUCCESS);
	}
	for (int i = 0; i < AREAS; i++)
		assert_int_equal(ibv_dereg_mr(mr[i]), 0);
	for (int i = 0; i < OBJECTS; i++)
		objects_destroy(&o[i]);
	for (int i = 0; i < AREAS; i++)
		free(between[i]);
	pair_destroy(&p);
	others_work();
}

/* Nor does a region become the program's way to it. */
PAIR_TEST(the_device_s_memory_is_not_registered)
{
	struct ibv_mr *mr;

	assert_null(ibv_reg_mr(p->pd, p->side[A].qp, sizeof(*p->side[A].qp), IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	mr = p->side[A].mr;
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p->side[A].cq, 1, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EFAULT);
}

/* Inline data is copied when it is posted, so the post fails; the queue pair is not affected. */
PAIR_TEST(inline_post_fails, .extended = true)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 5,
				 .opcode = IBV_WR_SEND,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED},
			   *bad = NULL;
	struct area a = area_make(p, UNMAPPED);

	sge = area_sge(&a, PAGE - 10, 100);
	area_cut(&a, UNMAPPED);
	assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), EFAULT);
	assert_ptr_equal(bad, &wr);
	ibv_wr_start(p->side[A].qp_ex);
	ibv_wr_send(p->side[A].qp_ex);
	ibv_wr_set_inline_data(p->side[A].qp_ex, a.p + PAGE - 10, 100);
	assert_int_equal(ibv_wr_complete(p->side[A].qp_ex), EFAULT);
	wc_none(p->side[A].cq, 1);
	recv_post(p, B, 1, 0, 100);
	sge = area_sge(&a, PAGE - 100, 100);
	post(p, A, wr);
	expect(p, A, IBV_WC_SUCCESS);
	expect(p, B, IBV_WC_SUCCESS);
	assert_memory_equal(p->side[B].buf, a.p + PAGE - 100, 100);
	area_drop(&a, UNMAPPED);
}
