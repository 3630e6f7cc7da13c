/* SPDX-License-Identifier: BSD-2-Clause */
/* Creating and destroying objects: what is granted, what is refused and with which errno. */
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"
#include "support/test.h"

static struct ibv_context *ctx;
static struct ibv_device_attr limits;

static int open_once(void **state)
{
	ctx = device_open();
	return ibv_query_device(ctx, &limits);
}

static int close_once(void **state)
{
	return ibv_close_device(ctx);
}

/* ---- PD and MR --------------------------------------------------------------------------------- */

TEST(a_pd_in_use_stays)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 1, .max_sge = 1}};
	union ibv_gid gid;
	struct ibv_ah_attr av = {.is_global = 1, .port_num = PORT};
	char byte;
	struct ibv_mr *mr;
	struct ibv_srq *srq;
	struct ibv_ah *ah;

	assert_non_null(pd);
	assert_ptr_equal(pd->context, ctx);

	mr = ibv_reg_mr(pd, &byte, 1, 0);
	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);

	srq = ibv_create_srq(pd, &srq_init);
	assert_non_null(srq);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);

	av.grh.sgid_index = (uint8_t)gid_pick(ctx, &gid);
	av.grh.dgid = gid;
	ah = ibv_create_ah(pd, &av);
	assert_non_null(ah);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_ah(ah), 0);

	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

struct reg {
	const char *what;
	unsigned int access;
	int err; /* 0: it works */
};

TEST(registration_judges_access_bits)
{
	static const struct reg cases[] = {
		{"local read", 0, 0},
		{"all", ACCESS_ALL, 0},
		{"remote read alone", IBV_ACCESS_REMOTE_READ, 0},
		{"remote write alone", IBV_ACCESS_REMOTE_WRITE, EINVAL},
		{"remote atomic alone", IBV_ACCESS_REMOTE_ATOMIC, EINVAL},
		{"window binding", IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, 0},
		{"relaxed ordering", IBV_ACCESS_RELAXED_ORDERING, 0},
		{"every optional bit", IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_LOCAL_WRITE, 0},
		{"huge pages, a hint", IBV_ACCESS_HUGETLB, 0},
		{"on demand", IBV_ACCESS_ON_DEMAND, 0},
		{"flush", ACCESS_FLUSH_GLOBAL, 0},
		{"flush to persistence", ACCESS_FLUSH_PERSISTENT, EOPNOTSUPP},
		{"both", ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT, EOPNOTSUPP},
		{"an unknown bit", 1 << 15, EINVAL},
	};
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	static char buf[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), cases[i].access);

		if (!mr != !!cases[i].err || (!mr && errno != cases[i].err))
			fail_msg("%s: %s", cases[i].what, mr ? "works" : strerror(errno));
		if (!mr)
			continue;
		assert_ptr_equal(mr->pd, pd);
		assert_ptr_equal(mr->context, ctx);
		assert_ptr_equal(mr->addr, buf);
		assert_int_equal(mr->length, sizeof(buf));
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static size_t resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	size_t all, resident;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%zu %zu", &all, &resident), 2);
	fclose(f);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* A heap that is reserved as a whole, say. */
/* ibv_reg_mr_ex() of rdma-core 59 and later; what follows in its struct is for memory of other devices. */
struct mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask, iova;
	void *addr;
	uint64_t more[4];
};

TEST(registration_takes_what_the_mask_names)
{
	enum { IOVA = 1, ADDR = 2 };
	static char buf[4096];
	struct mr_init_attr attr = {
		.length = sizeof(buf), .access = ACCESS_ALL, .comp_mask = ADDR, .addr = buf, .iova = UINT64_MAX};
	struct ibv_mr *(*reg_mr_ex)(struct ibv_pd *, struct mr_init_attr *);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr;

	*(void **)&reg_mr_ex = dlvsym(RTLD_DEFAULT, "ibv_reg_mr_ex", "IBVERBS_1.15");
	assert_non_null(reg_mr_ex);
	mr = reg_mr_ex(pd, &attr);
	assert_non_null(mr);
	assert_ptr_equal(mr->addr, buf);
	assert_int_equal(mr->length, sizeof(buf));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	attr.comp_mask = ADDR | IOVA;
	assert_null(reg_mr_ex(pd, &attr)); /* it would wrap */
	assert_int_equal(errno, EINVAL);
	attr.iova = 0x7000;
	mr = reg_mr_ex(pd, &attr);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	attr.comp_mask = IOVA;
	assert_null(reg_mr_ex(pd, &attr));
	assert_int_equal(errno, EINVAL);
	for (uint64_t other = 32; other <= 64; other *= 2) {
		attr.comp_mask = ADDR | other;
		assert_null(reg_mr_ex(pd, &attr));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(registration_of_much_memory_uses_little)
{
	const size_t bytes = 1ul << 30, page = (size_t)sysconf(_SC_PAGESIZE);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before = resident_bytes();
	struct ibv_mr *mr;

	assert_ptr_not_equal(p, MAP_FAILED);
	mr = ibv_reg_mr(pd, p, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(mr);
	assert_true(resident_bytes() < before + bytes / 16);
	assert_int_equal(ibv_dereg_mr(mr), 0);

	assert_int_equal(mprotect(p + bytes / 2, page, PROT_READ), 0);
	assert_null(ibv_reg_mr(pd, p, bytes, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	mr = ibv_reg_mr(pd, p, bytes, IBV_ACCESS_REMOTE_READ);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(munmap(p + bytes / 2, page), 0);
	assert_null(ibv_reg_mr(pd, p, bytes, 0));
	assert_int_equal(errno, EFAULT);
	munmap(p, bytes);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(registration_wants_memory_that_is_there)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p, page, PROT_READ), 0);
	assert_int_equal(munmap(p + 2 * page, page), 0);

	assert_null(ibv_reg_mr(pd, NULL, 1, 0));
	assert_int_equal(errno, EFAULT);
	assert_null(ibv_reg_mr(pd, p, 3 * page, 0));
	assert_int_equal(errno, EFAULT);
	assert_null(ibv_reg_mr(pd, p, 2 * page, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	assert_null(ibv_reg_mr(pd, (void *)(UINTPTR_MAX - 10), 100, 0));

	mr = ibv_reg_mr(pd, p, 2 * page, IBV_ACCESS_REMOTE_READ);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr(pd, p + page + 5, page - 5, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(p, 2 * page);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(keys_differ)
{
	enum { COUNT = 100 };
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr[COUNT];
	static char byte;

	for (int i = 0; i < COUNT; i++) {
		mr[i] = ibv_reg_mr(pd, &byte, 1, 0);
		assert_non_null(mr[i]);
		for (int j = 0; j < i; j++)
			assert_true(mr[i]->rkey != mr[j]->rkey && mr[i]->lkey != mr[j]->lkey);
	}
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(ibv_dereg_mr(mr[i]), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(reregistration_changes_what_it_is_told)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *other = ibv_alloc_pd(ctx);
	static char a[64], b[128];
	struct ibv_mr *mr = ibv_reg_mr(pd, a, sizeof(a), 0);

	assert_non_null(mr);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b, sizeof(b), 0), 0);
	assert_ptr_equal(mr->addr, b);
	assert_int_equal(mr->length, sizeof(b));
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	assert_ptr_equal(mr->pd, other);
	assert_int_equal(ibv_dealloc_pd(other), EBUSY);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS_ALL), 0);

	/* Wrong input leaves the old region as it was. */
	assert_int_equal(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, 8, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, a, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)4096, 64, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE),
			 IBV_REREG_MR_ERR_INPUT);
	assert_ptr_equal(mr->addr, b);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

/* Peers know the key: it changes with the bytes that it opens, and with nothing else. */
TEST(reregistration_keeps_the_key_of_the_same_bytes)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *other = ibv_alloc_pd(ctx);
	static char a[128];
	struct ibv_mr *mr = ibv_reg_mr(pd, a, 64, 0);
	uint32_t key;

	assert_non_null(mr);
	key = mr->rkey;
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS_ALL), 0);
	assert_true(mr->rkey == key && mr->lkey == key);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	assert_true(mr->rkey == key && mr->lkey == key);
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS,
			     pd, a, 64, IBV_ACCESS_LOCAL_WRITE),
		0);
	assert_true(mr->rkey == key && mr->lkey == key);
	for (int longer = 0; longer < 2; longer++) {
		assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, a + 8, longer ? 72 : 64, 0),
				 0);
		assert_true(mr->rkey != key && mr->lkey == mr->rkey);
		key = mr->rkey;
	}
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

/* ---- CQ ---------------------------------------------------------------------------------------- */

TEST(a_cq_is_as_large_as_asked_or_refused)
{
	static const int good[] = {1, 2, 3, 100, 4096};
	int bad[] = {0, -1, limits.max_cqe + 1};
	struct ibv_cq *cq;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cq = ibv_create_cq(ctx, good[i], &cq, NULL, 0);
		assert_non_null(cq);
		assert_true(cq->cqe >= good[i]);
		assert_ptr_equal(cq->cq_context, &cq);
		assert_ptr_equal(cq->context, ctx);
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_null(ibv_create_cq(ctx, bad[i], NULL, NULL, 0));
		assert_int_equal(errno, EINVAL);
	}
	assert_null(ibv_create_cq(ctx, 1, NULL, NULL, ctx->num_comp_vectors));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(ctx, 1, NULL, NULL, -1));
	assert_int_equal(errno, EINVAL);
}

TEST(the_extended_cq_refuses_what_it_lacks)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4};
	struct ibv_cq_ex *cq;

	attr.wc_flags = IBV_WC_EX_WITH_BYTE_LEN;
	cq = ibv_create_cq_ex(ctx, &attr);
	assert_non_null(cq);
	assert_non_null(cq->read_byte_len);
	assert_non_null(cq->read_opcode);
	assert_null(cq->read_imm_data);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);

	attr.wc_flags = IBV_WC_EX_WITH_TM_INFO;
	assert_null(ibv_create_cq_ex(ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.wc_flags = 1ull << 40;
	assert_null(ibv_create_cq_ex(ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.wc_flags = 0;
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	attr.flags = 1 << 7;
	assert_null(ibv_create_cq_ex(ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	cq = ibv_create_cq_ex(ctx, &attr);
	assert_non_null(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	attr.comp_mask = 1 << 9;
	assert_null(ibv_create_cq_ex(ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.comp_mask = 0;
	attr.cqe = 0;
	assert_null(ibv_create_cq_ex(ctx, &attr));
	assert_int_equal(errno, EINVAL);
}

PAIR_TEST(resizing_keeps_completions_and_refuses_to_lose_any, .all_signaled = true)
{
	for (uint64_t i = 0; i < 20; i++) {
		struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_RDMA_WRITE}, *bad;

		assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
	}
	assert_int_equal(wc_await(p->side[A].cq).wr_id, 0);
	usleep(100000);
	assert_int_equal(ibv_resize_cq(p->side[A].cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(p->side[A].cq, limits.max_cqe + 1), EINVAL);
	assert_int_equal(ibv_resize_cq(p->side[A].cq, 2), EINVAL);
	assert_int_equal(ibv_resize_cq(p->side[A].cq, 500), 0);
	assert_true(p->side[A].cq->cqe >= 500);
	for (uint64_t i = 1; i < 20; i++)
		assert_int_equal(wc_await(p->side[A].cq).wr_id, i);
	assert_int_equal(ibv_resize_cq(p->side[A].cq, 2), 0);
}

PAIR_TEST(a_cq_or_channel_in_use_stays, .with_channel = true, .with_srq = true)
{
	assert_int_equal(ibv_destroy_cq(p->side[A].cq), EBUSY);
	assert_int_equal(ibv_destroy_comp_channel(p->side[A].channel), EBUSY);
	assert_int_equal(ibv_destroy_srq(p->side[B].srq), EBUSY);
	assert_int_equal(ibv_dealloc_pd(p->pd), EBUSY);
	/* The refusals changed nothing. */
	recv_post(p, B, 7, 0, 16);
	{
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;

		assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
	}
	assert_int_equal(wc_await(p->side[B].cq).wr_id, 7);
}

/* ---- SRQ --------------------------------------------------------------------------------------- */

TEST(an_srq_grants_and_queries)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_srq_init_attr init = {.srq_context = &init, .attr = {.max_wr = 10, .max_sge = 3}};
	struct ibv_srq_init_attr bad = {.attr = {.max_wr = (uint32_t)limits.max_srq_wr + 1, .max_sge = 1}};
	struct ibv_srq_init_attr_ex ex = {.attr = {.max_wr = 4, .max_sge = 1}, .pd = pd};
	struct ibv_srq_attr attr;
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	uint32_t num;

	assert_non_null(srq);
	assert_ptr_equal(srq->srq_context, &init);
	assert_true(init.attr.max_wr >= 10 && init.attr.max_sge >= 3);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, init.attr.max_wr);
	assert_int_equal(attr.max_sge, init.attr.max_sge);
	assert_int_equal(attr.srq_limit, 0);
	attr.srq_limit = attr.max_wr + 1;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(ibv_modify_srq(srq, &attr, 1 << 5), EINVAL);
	assert_int_equal(ibv_get_srq_num(srq, &num), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_srq(srq), 0);

	assert_null(ibv_create_srq(pd, &bad));
	assert_int_equal(errno, EINVAL);
	bad.attr = (struct ibv_srq_attr){.max_wr = 1, .max_sge = (uint32_t)limits.max_srq_sge + 1};
	assert_null(ibv_create_srq(pd, &bad));
	assert_int_equal(errno, EINVAL);
	bad.attr = (struct ibv_srq_attr){.max_wr = 0, .max_sge = 1};
	assert_null(ibv_create_srq(pd, &bad));
	assert_int_equal(errno, EINVAL);

	ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	ex.srq_type = IBV_SRQT_XRC;
	assert_null(ibv_create_srq_ex(ctx, &ex));
	assert_int_equal(errno, EINVAL); /* without a domain */
	ex.srq_type = IBV_SRQT_TM;
	assert_null(ibv_create_srq_ex(ctx, &ex));
	assert_int_equal(errno, EOPNOTSUPP);
	ex.srq_type = IBV_SRQT_BASIC;
	srq = ibv_create_srq_ex(ctx, &ex);
	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* ---- QP ---------------------------------------------------------------------------------------- */

struct qp_case {
	const char *what;
	struct ibv_qp_init_attr_ex attr; /* CQs and PD are filled in */
	int err;
};

TEST(a_qp_is_granted_what_it_asks_or_refused)
{
	const uint32_t pd_mask = IBV_QP_INIT_ATTR_PD;
	const uint32_t ops_mask = pd_mask | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	const struct ibv_qp_cap plain = {10, 11, 2, 3, 100};
	const struct qp_case cases[] = {
		{"RC", {.qp_type = IBV_QPT_RC, .cap = plain, .comp_mask = pd_mask}, 0},
		{"UC", {.qp_type = IBV_QPT_UC, .cap = plain, .comp_mask = pd_mask}, 0},
		{"UD", {.qp_type = IBV_QPT_UD, .cap = plain, .comp_mask = pd_mask}, 0},
		{"no queue at all", {.qp_type = IBV_QPT_RC, .comp_mask = pd_mask}, 0},
		{"raw packets", {.qp_type = IBV_QPT_RAW_PACKET, .comp_mask = pd_mask}, EOPNOTSUPP},
		{"XRC without a domain", {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = pd_mask}, EINVAL},
		{"no such type", {.qp_type = 77, .comp_mask = pd_mask}, EINVAL},
		{"too many sends",
		 {.qp_type = IBV_QPT_RC,
		  .comp_mask = pd_mask,
		  .cap = {.max_send_wr = (uint32_t)limits.max_qp_wr + 1, .max_send_sge = 1}},
		 EINVAL},
		{"too many receives",
		 {.qp_type = IBV_QPT_RC,
		  .comp_mask = pd_mask,
		  .cap = {.max_recv_wr = (uint32_t)limits.max_qp_wr + 1, .max_recv_sge = 1}},
		 EINVAL},
		{"too many SGEs",
		 {.qp_type = IBV_QPT_RC,
		  .comp_mask = pd_mask,
		  .cap = {.max_send_wr = 1, .max_send_sge = (uint32_t)limits.max_sge + 1}},
		 EINVAL},
		{"too much inline",
		 {.qp_type = IBV_QPT_RC, .comp_mask = pd_mask, .cap = {.max_send_wr = 1, .max_inline_data = 1 << 20}},
		 EINVAL},
		{"RC builder, every operation",
		 {.qp_type = IBV_QPT_RC,
		  .comp_mask = ops_mask,
		  .cap = plain,
		  .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV |
				    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				    IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_BIND_MW |
				    IBV_QP_EX_WITH_LOCAL_INV},
		 0},
		{"UD builder with windows",
		 {.qp_type = IBV_QPT_UD, .comp_mask = ops_mask, .cap = plain, .send_ops_flags = IBV_QP_EX_WITH_BIND_MW},
		 EOPNOTSUPP},
		{"builder that segments",
		 {.qp_type = IBV_QPT_RC, .comp_mask = ops_mask, .cap = plain, .send_ops_flags = IBV_QP_EX_WITH_TSO},
		 EOPNOTSUPP},
		{"UC builder that reads",
		 {.qp_type = IBV_QPT_UC,
		  .comp_mask = ops_mask,
		  .cap = plain,
		  .send_ops_flags = IBV_QP_EX_WITH_RDMA_READ},
		 EOPNOTSUPP},
		{"UD builder that writes",
		 {.qp_type = IBV_QPT_UD,
		  .comp_mask = ops_mask,
		  .cap = plain,
		  .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE},
		 EOPNOTSUPP},
		{"creation flags",
		 {.qp_type = IBV_QPT_UD,
		  .comp_mask = pd_mask | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		  .create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS},
		 EOPNOTSUPP},
		{"an XRC domain", {.qp_type = IBV_QPT_RC, .comp_mask = pd_mask | IBV_QP_INIT_ATTR_XRCD}, EOPNOTSUPP},
	};
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_qp_init_attr no_cq = {.qp_type = IBV_QPT_RC};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ibv_qp_init_attr_ex attr = cases[i].attr;
		struct ibv_qp *qp;

		attr.send_cq = attr.recv_cq = cq;
		attr.pd = pd;
		qp = ibv_create_qp_ex(ctx, &attr);
		if (!qp != !!cases[i].err || (!qp && errno != cases[i].err))
			fail_msg("%s: %s", cases[i].what, qp ? "works" : strerror(errno));
		if (!qp)
			continue;
		assert_true(attr.cap.max_send_wr >= cases[i].attr.cap.max_send_wr);
		assert_true(attr.cap.max_recv_wr >= cases[i].attr.cap.max_recv_wr);
		assert_true(attr.cap.max_send_sge >= cases[i].attr.cap.max_send_sge);
		assert_true(attr.cap.max_recv_sge >= cases[i].attr.cap.max_recv_sge);
		assert_true(attr.cap.max_inline_data >= cases[i].attr.cap.max_inline_data);
		assert_int_equal(qp->state, IBV_QPS_RESET);
		assert_int_equal(qp->qp_type, cases[i].attr.qp_type);
		assert_true(qp->qp_num > 1 && qp->qp_num < 1 << 24);
		assert_int_equal(ibv_qp_to_qp_ex(qp) != NULL, cases[i].attr.comp_mask == ops_mask);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	assert_null(ibv_create_qp(pd, &no_cq));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* ---- AH ---------------------------------------------------------------------------------------- */

TEST(an_address_handle_needs_a_usable_vector)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	union ibv_gid gid;
	const uint8_t index = (uint8_t)gid_pick(ctx, &gid);
	struct ibv_ah_attr good = {
		.grh = {.dgid = gid, .sgid_index = index, .hop_limit = 1, .flow_label = 0xabcde, .traffic_class = 0x20},
		.is_global = 1,
		.port_num = PORT,
		.static_rate = 5,
		.sl = 3};
	struct ibv_ah_attr bad[3] = {good, good, good};
	struct ibv_ah *ah = ibv_create_ah(pd, &good);

	assert_non_null(ah);
	assert_ptr_equal(ah->pd, pd);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	bad[0].port_num = 2;
	bad[1].is_global = 0;
	bad[2].grh.sgid_index = 200;
	for (int i = 0; i < 3; i++) {
		assert_null(ibv_create_ah(pd, &bad[i]));
		assert_int_equal(errno, EINVAL);
	}
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST_PROGRAM(open_once, close_once)
