/* SPDX-License-Identifier: BSD-2-Clause */
/* Thread domains and parent domains, and SRQs whose size changes. */
#include "pair.h"
#include "support/test.h"

static struct ibv_pd *parent_domain(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_td *td)
{
	struct ibv_pd *domain = ibv_alloc_parent_domain(ctx, &(struct ibv_parent_domain_init_attr){.pd = pd, .td = td});

	assert_non_null(domain);
	return domain;
}

static void *no_memory(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
	return NULL;
}

static void no_free(struct ibv_pd *pd, void *context, void *at, uint64_t type)
{
}

TEST(domains_are_freed_in_order)
{
	struct ibv_context *ctx = device_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_td *td = ibv_alloc_td(ctx, &(struct ibv_td_init_attr){0});
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_cq *cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr qp_attr = {.cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq};
	struct ibv_pd *domain;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	static uint8_t mem[64];

	assert_non_null(td);
	domain = parent_domain(ctx, pd, td);
	assert_ptr_equal(domain->context, ctx);
	assert_int_equal(domain->handle, pd->handle);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	srq = ibv_create_srq(domain, &srq_attr);
	qp = ibv_create_qp(domain, &qp_attr);
	assert_true(srq && qp);
	assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	domain = parent_domain(ctx, pd, NULL);
	mr = ibv_reg_mr(domain, mem, sizeof(mem), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY); /* the region is the protection domain's */
	assert_int_equal(ibv_dereg_mr(mr) + ibv_dealloc_td(td) + ibv_dealloc_pd(pd) + ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
}

TEST(domains_are_made_rightly)
{
	struct ibv_context *ctx = device_open(), *other = device_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *others = ibv_alloc_pd(other), *domain = parent_domain(ctx, pd, NULL);
	struct ibv_td *others_td = ibv_alloc_td(other, &(struct ibv_td_init_attr){0});
	const uint32_t with = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	const struct {
		struct ibv_parent_domain_init_attr attr;
		int err;
	} rows[] = {
		{{.pd = pd}, 0},
		{{.pd = pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT, .pd_context = ctx}, 0},
		{{.pd = pd, .comp_mask = with, .alloc = no_memory, .free = no_free}, 0},
		{{.pd = pd, .comp_mask = 1 << 2}, 0}, /* for confidential guests */
		{{.pd = pd, .comp_mask = with, .alloc = no_memory}, EINVAL},
		{{.pd = pd, .comp_mask = with, .free = no_free}, EINVAL},
		{{.pd = pd, .comp_mask = 1 << 3}, EINVAL},
		{{.pd = NULL}, EINVAL},
		{{.pd = others}, EINVAL},
		{{.pd = domain}, EINVAL},
		{{.pd = pd, .td = others_td}, EINVAL},
	};

	assert_null(ibv_alloc_td(ctx, &(struct ibv_td_init_attr){.comp_mask = 1}));
	assert_int_equal(errno, EINVAL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_parent_domain_init_attr attr = rows[i].attr;
		struct ibv_pd *made;

		errno = 0;
		made = ibv_alloc_parent_domain(ctx, &attr);
		assert_int_equal(made ? 0 : errno, rows[i].err);
		if (made)
			assert_int_equal(ibv_dealloc_pd(made), 0);
	}
	assert_int_equal(
		ibv_dealloc_pd(domain) + ibv_dealloc_pd(pd) + ibv_dealloc_pd(others) + ibv_dealloc_td(others_td), 0);
	/* What the program leaves goes with the device. */
	parent_domain(ctx, ibv_alloc_pd(ctx), NULL);
	assert_int_equal(ibv_close_device(ctx) + ibv_close_device(other), 0);
}

/* A CQ takes one too, and only that. */
TEST(cq_takes_a_parent_domain)
{
	struct ibv_context *ctx = device_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *domain = parent_domain(ctx, pd, NULL);
	struct ibv_cq_init_attr_ex attr = {.cqe = 8, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = domain};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);

	assert_non_null(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	attr.parent_domain = pd;
	assert_null(ibv_create_cq_ex(ctx, &attr));
	assert_int_equal(errno, EINVAL);
	attr.parent_domain = NULL;
	assert_null(ibv_create_cq_ex(ctx, &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(domain) + ibv_dealloc_pd(pd) + ibv_close_device(ctx), 0);
}

/* Regions, windows and address handles of either serve the queue pairs of the other. */
TEST(parent_domain_stands_for_its_protection_domain)
{
	struct ibv_recv_wr recv = {.num_sge = 1}, *bad_recv;
	struct pair p;
	struct ibv_pd *domain;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	struct ibv_ah_attr to;
	struct ibv_sge from, into;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .sg_list = &from,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	pair_make(&p, (struct wishes){.type = IBV_QPT_UD});
	domain = parent_domain(p.ctx, p.pd, NULL);
	mr = ibv_reg_mr(domain, p.side[A].buf, BUF_BYTES, ACCESS_ALL);
	to = pair_ah_attr(&p);
	ah = ibv_create_ah(domain, &to);
	assert_true(mr && ah);
	into = sge_at(&p, B, 0, 1040);
	recv.sg_list = &into;
	assert_int_equal(ibv_post_recv(p.side[B].qp, &recv, &bad_recv), 0);
	from = (struct ibv_sge){(uintptr_t)p.side[A].buf, 1000, mr->lkey};
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = p.side[B].qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	assert_int_equal(ibv_post_send(p.side[A].qp, &wr, &bad), 0);
	assert_int_equal(wc_await(p.side[A].cq).status, IBV_WC_SUCCESS);
	assert_int_equal(wc_await(p.side[B].cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_ah(ah) + ibv_dereg_mr(mr) + ibv_dealloc_pd(domain), 0);
	pair_destroy(&p);
}

static int srq_set(struct ibv_srq *srq, uint32_t max_wr, uint32_t limit, int mask)
{
	return ibv_modify_srq(srq, &(struct ibv_srq_attr){.max_wr = max_wr, .srq_limit = limit}, mask);
}

static void srq_is(struct ibv_srq *srq, uint32_t max_wr, uint32_t limit)
{
	struct ibv_srq_attr now;

	assert_int_equal(ibv_query_srq(srq, &now), 0);
	assert_int_equal(now.max_wr, max_wr);
	assert_int_equal(now.srq_limit, limit);
}

static int srq_post(struct pair *p, uint64_t wr_id)
{
	struct ibv_sge sge = sge_at(p, B, wr_id * 64, 64);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_srq_recv(p->side[B].srq, &wr, &bad);
}

static void send_to_srq(struct pair *p, uint64_t wr_id)
{
	struct ibv_sge sge = sge_at(p, A, 0, 64);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc;

	pattern_fill(p->side[A].buf, 64, (unsigned int)wr_id);
	assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
	assert_int_equal(wc_await(p->side[A].cq).status, IBV_WC_SUCCESS);
	wc = wc_await(p->side[B].cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
	pattern_check(p->side[B].buf + wr_id * 64, 64, (unsigned int)wr_id);
}

/* What is posted stays, in its order. */
TEST(srq_changes_its_size)
{
	struct ibv_device_attr attr;
	uint64_t next = 0, taken = 0;
	struct ibv_srq *srq;
	struct pair p;

	pair_make(&p, (struct wishes){.with_srq = true});
	srq = p.side[B].srq;
	assert_int_equal(ibv_query_device(p.ctx, &attr), 0);
	assert_true(attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	for (int i = 0; i < 6; i++)
		assert_int_equal(srq_post(&p, next++), 0);
	for (int i = 0; i < 2; i++)
		send_to_srq(&p, taken++);
	assert_int_equal(srq_set(srq, 3, 0, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(srq_set(srq, 0, 0, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(srq_set(srq, (uint32_t)attr.max_srq_wr + 1, 0, IBV_SRQ_MAX_WR), EINVAL);
	srq_is(srq, 64, 0);
	assert_int_equal(srq_set(srq, 4, 0, IBV_SRQ_MAX_WR), 0);
	srq_is(srq, 4, 0);
	assert_int_equal(srq_post(&p, next), ENOMEM);
	send_to_srq(&p, taken++);
	assert_int_equal(srq_post(&p, next++), 0);
	assert_int_equal(srq_set(srq, 5, 6, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	srq_is(srq, 4, 0);
	assert_int_equal(srq_set(srq, 300, 2, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	srq_is(srq, 300, 2);
	assert_int_equal(srq_set(srq, 1, 0, IBV_SRQ_MAX_WR), EINVAL);
	while (next < taken + 300)
		assert_int_equal(srq_post(&p, next++), 0);
	assert_int_equal(srq_post(&p, next), ENOMEM);
	while (taken < 2 * 300) {
		send_to_srq(&p, taken++);
		assert_int_equal(srq_post(&p, next++), 0);
	}
	pair_destroy(&p);
}
