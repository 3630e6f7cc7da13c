/* SPDX-License-Identifier: BSD-2-Clause */
/* The iWARP device: it says what it lacks, refuses it, and goes with what a program left behind. */
#include "pair.h"

static struct ibv_context *ctx;

static int open_once(void **state)
{
	setenv("VERBENA_PROTOCOL", "iwarp", 1);
	ctx = device_open();
	return !ctx;
}

static struct ibv_qp *rc_qp(struct ibv_pd *pd)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
						.max_recv_sge = 1}};

	assert_non_null(cq);
	return ibv_create_qp(pd, &attr);
}

static void neither_windows_nor_groups_are_offered(void **state)
{
	const union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3}};
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_device_attr a;

	assert_non_null(pd);
	assert_int_equal(ctx->device->transport_type, IBV_TRANSPORT_IWARP);
	assert_int_equal(ibv_query_device(ctx, &a), 0);
	assert_int_equal(a.device_cap_flags & (IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
					       IBV_DEVICE_MEM_MGT_EXTENSIONS), 0);
	assert_int_equal(a.max_mw, 0);
	assert_int_equal(a.max_mcast_grp, 0);
	assert_int_equal(a.max_mcast_qp_attach, 0);
	assert_int_equal(a.max_total_mcast_qp_attach, 0);
	errno = 0;
	assert_null(ibv_alloc_mw(pd, IBV_MW_TYPE_1));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_attach_mcast(rc_qp(pd), &group, 0), EINVAL);
}

/* After the test before it: its queue pair, and one more. */
static void closing_takes_what_was_left_behind(void **state)
{
	assert_non_null(rc_qp(ibv_alloc_pd(ctx)));
	assert_int_equal(ibv_close_device(ctx), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neither_windows_nor_groups_are_offered),
		cmocka_unit_test(closing_takes_what_was_left_behind),
	};

	return cmocka_run_group_tests(tests, open_once, NULL);
}
