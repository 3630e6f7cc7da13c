/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions on demand: of memory that is not there yet or not any more, and of the whole address space. cmocka has
 * handlers of its own for faults.
 */
#include <dlfcn.h>
#include <sys/mman.h>

#include "pair.h"
#include "support/test.h"

enum { PAGE = 4096, AREA_BYTES = 4 * PAGE, LONG = 2 * PAGE + 100, ON_DEMAND = ACCESS_ALL | IBV_ACCESS_ON_DEMAND };

static uint8_t *map_at(uint8_t *at, int prot)
{
	uint8_t *p = mmap(at, AREA_BYTES, prot, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

static uint8_t *unmapped(void)
{
	uint8_t *p = map_at(NULL, PROT_NONE);

	munmap(p, AREA_BYTES);
	return p;
}

static struct ibv_mr *whole_space(struct ibv_pd *pd, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, NULL, SIZE_MAX, access | IBV_ACCESS_ON_DEMAND);

	assert_non_null(mr);
	return mr;
}

/* What becomes of a request of A's, of that length, to B's memory. */
static enum ibv_wc_status outcome(struct pair *p, enum ibv_wr_opcode op, uint64_t at, uint32_t rkey, uint32_t length)
{
	struct ibv_sge sge = sge_at(p, A, 0, length);
	struct ibv_send_wr wr = {.opcode = op, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = at;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = at;
		wr.wr.rdma.rkey = rkey;
	}
	assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
	return wc_await(p->side[A].cq).status;
}

TEST(the_device_says_what_it_can)
{
	struct ibv_context *ctx = device_open();
	struct ibv_device_attr_ex attr;
	const struct ibv_odp_caps *odp = &attr.odp_caps;

	assert_int_equal(ibv_query_device_ex(ctx, NULL, &attr), 0);
	assert_int_equal(odp->general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	assert_int_equal(odp->per_transport_caps.rc_odp_caps, 0xff);
	assert_int_equal(odp->per_transport_caps.uc_odp_caps, IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
								      IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_SRQ_RECV);
	assert_int_equal(odp->per_transport_caps.ud_odp_caps,
			 IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV);
	assert_int_equal(attr.xrc_odp_caps, 0x3f);
	ibv_close_device(ctx);
}

/* A region of memory that is mapped later, and by then works. */
TEST(memory_may_come_after_its_region)
{
	uint8_t *at = unmapped();
	struct pair p;
	struct ibv_mr *mr;

	for (int mapped = 0; mapped < 2; mapped++) {
		pair_make(&p, (struct wishes){0});
		mr = ibv_reg_mr(p.pd, at, AREA_BYTES, ON_DEMAND);
		assert_non_null(mr);
		if (mapped)
			map_at(at, PROT_READ | PROT_WRITE);
		pattern_fill(p.side[A].buf, LONG, 5);
		assert_int_equal(outcome(&p, IBV_WR_RDMA_WRITE, (uintptr_t)at, mr->rkey, LONG),
				 mapped ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		if (mapped)
			pattern_check(at, LONG, 5);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		pair_destroy(&p);
	}
	munmap(at, AREA_BYTES);
}

/* One way in which a peer or a program asks for what a region of the whole address space does not open. */
struct wrong {
	const char *what;
	enum ibv_wr_opcode op;
	uint64_t at;
	uint32_t length;
	int access;
	bool other_pd;
};

TEST(whole_address_space_opens_what_it_says_and_no_more)
{
	uint8_t *there = map_at(NULL, PROT_READ | PROT_WRITE), *only_read = map_at(NULL, PROT_READ), *none = unmapped();
	struct ibv_context *own = device_open();
	const struct wrong rows[] = {
		{"nothing", IBV_WR_RDMA_WRITE, (uintptr_t)none, LONG, ACCESS_ALL, false},
		{"nothing", IBV_WR_RDMA_READ, (uintptr_t)none, LONG, ACCESS_ALL, false},
		{"nothing", IBV_WR_ATOMIC_FETCH_AND_ADD, (uintptr_t)none, 8, ACCESS_ALL, false},
		{"null", IBV_WR_RDMA_READ, 0, 8, ACCESS_ALL, false},
		{"what the kernel has", IBV_WR_RDMA_READ, UINT64_MAX - 4095, 64, ACCESS_ALL, false},
		{"no address", IBV_WR_RDMA_READ, (uint64_t)1 << 60, 64, ACCESS_ALL, false},
		{"beyond the end", IBV_WR_RDMA_READ, UINT64_MAX - 7, 64, ACCESS_ALL, false},
		{"what is only read", IBV_WR_RDMA_WRITE, (uintptr_t)only_read, LONG, ACCESS_ALL, false},
		{"no right", IBV_WR_RDMA_WRITE, (uintptr_t)there, 8, IBV_ACCESS_REMOTE_READ, false},
		{"no right", IBV_WR_RDMA_READ, (uintptr_t)there, 8, IBV_ACCESS_LOCAL_WRITE, false},
		{"another PD", IBV_WR_RDMA_READ, (uintptr_t)there, 8, ACCESS_ALL, true},
		{"the device's", IBV_WR_RDMA_READ, (uintptr_t)own, 8, ACCESS_ALL, false},
		{"the device's", IBV_WR_RDMA_WRITE, (uintptr_t)own, 8, ACCESS_ALL, false},
		{"the device's end", IBV_WR_RDMA_READ, (uintptr_t)own - (1 << 20), 1 << 20, ACCESS_ALL, false},
		{"the library", IBV_WR_RDMA_READ, (uintptr_t)dlsym(RTLD_DEFAULT, "ibv_open_device"), 8, ACCESS_ALL,
		 false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct wrong *r = &rows[i];
		struct ibv_pd *pd;
		struct ibv_mr *mr;
		struct pair p;
		enum ibv_wc_status got;

		pair_make(&p, (struct wishes){0});
		pd = r->other_pd ? ibv_alloc_pd(p.ctx) : p.pd;
		mr = whole_space(pd, r->access);
		got = outcome(&p, r->op, r->at, mr->rkey, r->length);
		if (got != IBV_WC_REM_ACCESS_ERR)
			fail_msg("%s: %s", r->what, ibv_wc_status_str(got));
		assert_int_equal(ibv_dereg_mr(mr), 0);
		if (r->other_pd)
			assert_int_equal(ibv_dealloc_pd(pd), 0);
		pair_destroy(&p);
	}
	assert_int_equal(ibv_close_device(own), 0);
	munmap(there, AREA_BYTES);
	munmap(only_read, AREA_BYTES);
}

/* To both ends one key is enough. */
TEST(whole_address_space_is_read_and_written)
{
	uint8_t *there = map_at(NULL, PROT_READ | PROT_WRITE);
	struct pair p;
	struct ibv_mr *mr;
	struct ibv_sge from, to;
	struct ibv_send_wr wr = {.sg_list = &from, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;

	pair_make(&p, (struct wishes){0});
	mr = whole_space(p.pd, ACCESS_ALL);
	assert_null(mr->addr);
	assert_true(mr->length == SIZE_MAX);
	pattern_fill(p.side[A].buf, LONG, 7);
	assert_int_equal(outcome(&p, IBV_WR_RDMA_WRITE, (uintptr_t)there, mr->rkey, LONG), IBV_WC_SUCCESS);
	pattern_check(there, LONG, 7);
	from = (struct ibv_sge){(uintptr_t)there + 1, LONG - 1, mr->lkey};
	to = sge_at(&p, B, 0, LONG);
	to.lkey = mr->lkey;
	assert_int_equal(ibv_post_recv(p.side[B].qp, &(struct ibv_recv_wr){.sg_list = &to, .num_sge = 1},
				       &(struct ibv_recv_wr *){NULL}),
			 0);
	wr.opcode = IBV_WR_SEND;
	assert_int_equal(ibv_post_send(p.side[A].qp, &wr, &bad), 0);
	assert_int_equal(wc_await(p.side[B].cq).status, IBV_WC_SUCCESS);
	assert_int_equal(wc_await(p.side[A].cq).status, IBV_WC_SUCCESS);
	assert_memory_equal(p.side[B].buf, there + 1, LONG - 1);
	/* A program reaches the device's memory as little as a peer. */
	from.addr = (uintptr_t)p.ctx;
	assert_int_equal(ibv_post_send(p.side[A].qp, &wr, &bad), 0);
	assert_int_equal(wc_await(p.side[A].cq).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_destroy(&p);
	munmap(there, AREA_BYTES);
}

TEST(whole_address_space_is_asked_for_rightly)
{
	struct ibv_context *ctx = device_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr;

	assert_null(ibv_reg_mr(pd, NULL, SIZE_MAX, ACCESS_ALL));
	assert_int_equal(errno, EFAULT);
	assert_null(ibv_reg_mr_iova(pd, NULL, SIZE_MAX, PAGE, ON_DEMAND));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(errno, EINVAL);
	/* On demand or not, no region has the device's memory. */
	assert_null(ibv_reg_mr(pd, ctx, PAGE, ON_DEMAND));
	assert_int_equal(errno, EFAULT);
	mr = whole_space(pd, ACCESS_ALL);
	/* It stays what it is. */
	assert_true(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS_ALL) != 0);
	assert_true(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, &mr, PAGE, 0) != 0);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ON_DEMAND), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
}

/* A window to a part of everything, which is a part of what the region opens. */
TEST(windows_open_parts_of_the_whole_address_space)
{
	uint8_t *there = map_at(NULL, PROT_READ | PROT_WRITE);
	struct ibv_context *own = device_open();

	for (int of_device = 0; of_device < 2; of_device++) {
		uint64_t at = of_device ? (uintptr_t)own : (uintptr_t)there;
		struct pair p;
		struct ibv_mr *mr;
		struct ibv_mw *mw;
		struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};

		pair_make(&p, (struct wishes){0});
		mr = whole_space(p.pd, ACCESS_ALL | IBV_ACCESS_MW_BIND);
		mw = ibv_alloc_mw(p.pd, IBV_MW_TYPE_1);
		assert_non_null(mw);
		bind.bind_info = (struct ibv_mw_bind_info){mr, at, LONG, IBV_ACCESS_REMOTE_WRITE};
		assert_int_equal(ibv_bind_mw(p.side[B].qp, mw, &bind), 0);
		assert_int_equal(wc_await(p.side[B].cq).status, of_device ? IBV_WC_MW_BIND_ERR : IBV_WC_SUCCESS);
		if (!of_device) {
			assert_int_equal(outcome(&p, IBV_WR_RDMA_WRITE, at, mw->rkey, LONG), IBV_WC_SUCCESS);
			assert_int_equal(outcome(&p, IBV_WR_RDMA_WRITE, at + 1, mw->rkey, LONG), IBV_WC_REM_ACCESS_ERR);
		}
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		pair_destroy(&p);
	}
	assert_int_equal(ibv_close_device(own), 0);
	munmap(there, AREA_BYTES);
}

static bool is_in_memory(uint8_t *page)
{
	unsigned char in;

	assert_int_equal(mincore(page, PAGE, &in), 0);
	return in & 1;
}

TEST(prefetch_brings_pages_in)
{
	static const enum ibv_advise_mr_advice advices[] = {IBV_ADVISE_MR_ADVICE_PREFETCH,
							    IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
							    IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT};
	struct ibv_context *ctx = device_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	for (int i = 0; i < 3 * 2 * 2; i++) {
		enum ibv_advise_mr_advice advice = advices[i / 4];
		uint8_t *there = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		struct ibv_mr *mr = i & 1 ? whole_space(pd, ACCESS_ALL) : ibv_reg_mr(pd, there, AREA_BYTES, ON_DEMAND);
		struct ibv_sge sge = {(uintptr_t)there + PAGE, PAGE, mr->lkey};

		assert_int_equal(ibv_advise_mr(pd, advice, i & 2 ? IBV_ADVISE_MR_FLAG_FLUSH : 0, &sge, 1), 0);
		if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE)
			assert_true(is_in_memory(there + PAGE));
		if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
			assert_false(is_in_memory(there + PAGE));
		assert_false(is_in_memory(there));
		assert_int_equal(ibv_dereg_mr(mr), 0);
		munmap(there, AREA_BYTES);
	}
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
}

TEST(bad_advice_is_refused)
{
	const enum ibv_advise_mr_advice in = IBV_ADVISE_MR_ADVICE_PREFETCH, write = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	uint8_t *there = map_at(NULL, PROT_READ | PROT_WRITE), *none = unmapped();
	struct ibv_context *ctx = device_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *other = ibv_alloc_pd(ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, there, AREA_BYTES, ON_DEMAND), *pinned = ibv_reg_mr(pd, there, PAGE, 0),
		      *gone = ibv_reg_mr(pd, none, PAGE, IBV_ACCESS_ON_DEMAND), *all = whole_space(pd, 0);
	const struct {
		struct ibv_pd *pd;
		enum ibv_advise_mr_advice advice;
		uint32_t flags, count;
		struct ibv_sge sge;
		int err;
	} rows[] = {
		{pd, in, 0, 1, {(uintptr_t)there, PAGE, mr->lkey}, 0},
		{pd, in, 0, 1, {(uintptr_t)there, 0, mr->lkey}, 0},
		{pd, (enum ibv_advise_mr_advice)77, 0, 1, {(uintptr_t)there, PAGE, mr->lkey}, EOPNOTSUPP},
		{pd, in, 2, 1, {(uintptr_t)there, PAGE, mr->lkey}, EINVAL},
		{pd, in, 0, 0, {(uintptr_t)there, PAGE, mr->lkey}, EINVAL},
		{pd, in, 0, 1, {(uintptr_t)there, PAGE, mr->lkey ^ 0x100}, ENOENT},
		{pd, in, 0, 1, {(uintptr_t)there, PAGE, pinned->lkey}, EINVAL},
		{other, in, 0, 1, {(uintptr_t)there, PAGE, mr->lkey}, EPERM},
		{pd, write, 0, 1, {(uintptr_t)none, PAGE, gone->lkey}, EPERM},
		{pd, in, 0, 1, {(uintptr_t)none, PAGE, gone->lkey}, EFAULT},
		{pd, in, 0, 1, {(uintptr_t)there + PAGE, AREA_BYTES, mr->lkey}, EFAULT},
		{pd, in, 0, 1, {(uintptr_t)ctx, 8, all->lkey}, EFAULT},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_sge sge[2] = {rows[0].sge, rows[i].sge};
		int first = rows[i].count ? 0 : 1;

		assert_int_equal(
			ibv_advise_mr(rows[i].pd, rows[i].advice, rows[i].flags, sge + first, rows[i].count * 2),
			rows[i].err);
	}
	assert_int_equal(ibv_dereg_mr(mr) + ibv_dereg_mr(pinned) + ibv_dereg_mr(gone) + ibv_dereg_mr(all), 0);
	assert_int_equal(ibv_dealloc_pd(other) + ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	munmap(there, AREA_BYTES);
}
