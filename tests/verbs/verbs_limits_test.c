/* SPDX-License-Identifier: BSD-2-Clause */
/* Quotas of a virtual device: what is reported, refused with ENOMEM, and given back. */
#include "pair.h"
#include "support/test.h"

enum { QPS = 4, CQS = 2, MRS = 3, BYTES = 1 << 20, OBJECTS = 12 };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static uint8_t memory[BYTES];

static int open_once(void **state)
{
	setenv("VERBENA_DEVICE", "small", 1);
	setenv("VERBENA_QUOTA", "qps=4, cqs=2, mrs=3, mr_bytes=1M, hca_object=12", 1);
	setenv("VERBENA_QUIET", "1", 1);
	ctx = device_open();
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	cq = pd ? ibv_create_cq(ctx, 4, NULL, NULL, 0) : NULL;
	return !cq;
}

static struct ibv_qp *qp_make(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

	errno = 0;
	return ibv_create_qp(pd, &attr);
}

static struct ibv_mr *mr_make(size_t bytes)
{
	errno = 0;
	return ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
}

TEST(the_device_says_what_it_may_have)
{
	struct ibv_device_attr a;

	assert_string_equal(ibv_get_device_name(ctx->device), "small");
	assert_int_equal(ibv_query_device(ctx, &a), 0);
	assert_int_equal(a.max_qp, QPS);
	assert_int_equal(a.max_cq, CQS);
	assert_int_equal(a.max_mr, MRS);
	assert_int_equal(a.max_mr_size, BYTES);
}

TEST(one_queue_pair_too_many_is_no_memory_and_the_next_is_after_one_went)
{
	struct ibv_qp *qps[QPS];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < QPS; i++)
			assert_non_null(qps[i] = qp_make());
		assert_null(qp_make());
		assert_int_equal(errno, ENOMEM);
		assert_int_equal(ibv_destroy_qp(qps[1]), 0);
		assert_non_null(qps[1] = qp_make());
		assert_null(qp_make());
		for (int i = 0; i < QPS; i++)
			assert_int_equal(ibv_destroy_qp(qps[i]), 0);
	}
}

TEST(regions_count_by_number_and_by_bytes)
{
	struct ibv_mr *a = mr_make(BYTES / 2), *b = mr_make(BYTES / 2), *c = mr_make(0);

	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
	assert_null(mr_make(0));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_dereg_mr(c), 0);
	assert_null(mr_make(1));
	assert_int_equal(errno, ENOMEM);
	/* One that becomes longer counts, too. */
	assert_int_equal(ibv_rereg_mr(b, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, BYTES / 2 + 1, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_rereg_mr(b, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, BYTES / 4, 0), 0);
	assert_non_null(c = mr_make(BYTES / 4));
	assert_null(ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_dereg_mr(a), 0);
	assert_int_equal(ibv_dereg_mr(b), 0);
	assert_int_equal(ibv_dereg_mr(c), 0);
}

TEST(objects_of_all_kinds_count_together)
{
	struct ibv_pd *pds[OBJECTS];
	int n = 0;

	while (n < OBJECTS && (pds[n] = ibv_alloc_pd(ctx)))
		n++;
	assert_int_equal(n, OBJECTS - 2);
	assert_int_equal(errno, ENOMEM);
	assert_null(qp_make());
	while (n)
		assert_int_equal(ibv_dealloc_pd(pds[--n]), 0);
	assert_int_equal(ibv_destroy_qp(qp_make()), 0);
}

TEST(what_a_closed_context_left_is_given_back)
{
	for (int i = 0; i < 3; i++) {
		struct ibv_context *other = ibv_open_device(ctx->device);

		assert_non_null(other);
		for (int k = 0; k < OBJECTS - 2; k++)
			assert_non_null(ibv_alloc_pd(other));
		assert_null(ibv_alloc_pd(ctx));
		assert_int_equal(ibv_close_device(other), 0);
	}
}

TEST_PROGRAM(open_once, NULL)
