/* SPDX-License-Identifier: BSD-2-Clause */
/* The iWARP device: it says what it lacks, refuses it, and goes with what a program left behind. */
#include "pair.h"
#include "support/test.h"

static struct ibv_context *ctx;

static int open_once(void **state)
{
	setenv("VERBENA_DEVICES", "iwarp,roce", 1);
	ctx = device_open();
	return !ctx;
}

static struct ibv_qp *rc_qp(struct ibv_pd *pd)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};

	assert_non_null(cq);
	return ibv_create_qp(pd, &attr);
}

TEST(windows_are_offered_and_groups_are_not)
{
	const union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3}};
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_device_attr a;
	struct ibv_mw *mw;

	assert_non_null(pd);
	assert_int_equal(ctx->device->transport_type, IBV_TRANSPORT_IWARP);
	assert_int_equal(ibv_query_device(ctx, &a), 0);
	assert_true(a.device_cap_flags & IBV_DEVICE_MEM_WINDOW && a.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	assert_true(a.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS && a.max_mw > 0);
	assert_int_equal(a.max_mcast_grp, 0);
	assert_int_equal(a.max_mcast_qp_attach, 0);
	assert_int_equal(a.max_total_mcast_qp_attach, 0);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	assert_non_null(mw);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_attach_mcast(rc_qp(pd), &group, 0), EINVAL);
}

/* RFC 5040 has no immediate data, no atomics and no FLUSH: a queue pair that is to build them cannot be had. */
TEST(no_builder_of_what_is_not_there)
{
	static const uint64_t lacks[] = {IBV_QP_EX_WITH_SEND_WITH_IMM,      IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
					 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
					 IBV_QP_EX_WITH_ATOMIC_WRITE,       QP_EX_WITH_FLUSH};
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_device_attr_ex ex;
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd};

	for (size_t i = 0; i < sizeof(lacks) / sizeof(*lacks); i++) {
		attr.send_ops_flags = IBV_QP_EX_WITH_SEND | lacks[i];
		errno = 0;
		assert_null(ibv_create_qp_ex(ctx, &attr));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	errno = 0;
	assert_null(ibv_reg_mr(pd, &attr, sizeof(attr), ACCESS_FLUSH_GLOBAL));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_query_device_ex(ctx, NULL, &ex), 0);
	assert_int_equal(ex.device_cap_flags_ex >> 32, 0);
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
	assert_non_null(ibv_create_qp_ex(ctx, &attr));
}

static struct ibv_qp *qp_of_type(struct ibv_context *of, enum ibv_qp_type type)
{
	struct ibv_cq *cq = ibv_create_cq(of, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

	return ibv_create_qp(ibv_alloc_pd(of), &attr);
}

/* The process's other device is one as ever. */
TEST(a_device_of_another_kind_is_beside_it)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *other = ibv_open_device(list[1]);
	struct ibv_device_attr a;

	assert_string_equal(ibv_get_device_name(list[0]), "verbena_iw0");
	assert_string_equal(ibv_get_device_name(list[1]), "verbena0");
	assert_null(list[2]);
	assert_non_null(other);
	assert_int_equal(list[0]->node_type, IBV_NODE_RNIC);
	assert_int_equal(other->device->node_type, IBV_NODE_CA);
	assert_int_equal(other->device->transport_type, IBV_TRANSPORT_IB);
	assert_int_equal(ibv_query_device(other, &a), 0);
	assert_true(a.atomic_cap != IBV_ATOMIC_NONE);
	assert_int_equal(ibv_query_device(ctx, &a), 0);
	assert_int_equal(a.atomic_cap, IBV_ATOMIC_NONE);
	assert_non_null(qp_of_type(other, IBV_QPT_UD));
	assert_null(qp_of_type(ctx, IBV_QPT_UD));
	assert_non_null(qp_of_type(other, IBV_QPT_RC));
	assert_int_equal(ibv_close_device(other), 0);
	ibv_free_device_list(list);
}

/* After the test before it: its queue pair, and one more. */
TEST(closing_takes_what_was_left_behind)
{
	assert_non_null(rc_qp(ibv_alloc_pd(ctx)));
	assert_int_equal(ibv_close_device(ctx), 0);
}

TEST_PROGRAM(open_once, NULL)
