/* SPDX-License-Identifier: BSD-2-Clause */
/* A refusal is explained on standard error: one line for each cause, none with VERBENA_QUIET. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"
#include "support/test.h"

enum { TOLD_BYTES = 2048 };

/* The text that the library prints during `refuse`. */
static void listen_to(int (*refuse)(struct pair *), struct pair *p, int want, char told[TOLD_BYTES])
{
	int mine = dup(STDERR_FILENO), file = memfd_create("stderr", MFD_CLOEXEC), got;
	ssize_t n;

	assert_true(mine >= 0 && file >= 0);
	fflush(stderr);
	dup2(file, STDERR_FILENO);
	got = refuse(p);
	fflush(stderr);
	dup2(mine, STDERR_FILENO);
	n = pread(file, told, TOLD_BYTES - 1, 0);
	assert_true(n >= 0);
	told[n] = '\0';
	close(file);
	close(mine);
	assert_int_equal(got, want);
}

static int to_rtr(struct pair *p, struct ibv_ah_attr to)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = 5,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 1,
				   .ah_attr = to};

	return ibv_modify_qp(p->side[A].qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int rtr_without_grh(struct pair *p)
{
	return to_rtr(p, (struct ibv_ah_attr){.port_num = PORT});
}

static int rtr_from_nowhere(struct pair *p)
{
	struct ibv_ah_attr to = pair_ah_attr(p);

	to.grh.sgid_index = 63;
	return to_rtr(p, to);
}

static int init_to_rts(struct pair *p)
{
	return state_set(p->side[A].qp, IBV_QPS_RTS);
}

static int retries_of_8(struct pair *p)
{
	struct ibv_qp_attr attr = {.retry_cnt = 8};

	return ibv_modify_qp(p->side[A].qp, &attr, IBV_QP_RETRY_CNT);
}

static int make_qp(struct pair *p, struct ibv_qp_init_attr init)
{
	init.send_cq = init.recv_cq = p->side[A].cq;
	errno = 0;
	return ibv_create_qp(p->pd, &init) ? 0 : errno;
}

static int raw_qp(struct pair *p)
{
	return make_qp(p, (struct ibv_qp_init_attr){.qp_type = IBV_QPT_RAW_PACKET});
}

static int huge_qp(struct pair *p)
{
	return make_qp(p, (struct ibv_qp_init_attr){.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1 << 20}});
}

/* Programs look for the largest value that works. */
static int much_inline(struct pair *p)
{
	return make_qp(p, (struct ibv_qp_init_attr){.qp_type = IBV_QPT_RC, .cap = {.max_inline_data = 1 << 20}});
}

static int address_without_grh(struct pair *p)
{
	struct ibv_ah_attr attr = {.port_num = PORT};

	errno = 0;
	return ibv_create_ah(p->pd, &attr) ? 0 : errno;
}

static int unmapped_region(struct pair *p)
{
	errno = 0;
	return ibv_reg_mr(p->pd, (void *)4096, 64, 0) ? 0 : errno;
}

static int write_only_for_others(struct pair *p)
{
	errno = 0;
	return ibv_reg_mr(p->pd, p->side[A].buf, 64, IBV_ACCESS_REMOTE_WRITE) ? 0 : errno;
}

static int post_too_early(struct pair *p)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;

	return ibv_post_send(p->side[A].qp, &wr, &bad);
}

static int post_many_sges(struct pair *p)
{
	struct ibv_sge sge[40] = {{0}};
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 40}, *bad;

	return ibv_post_recv(p->side[A].qp, &wr, &bad);
}

static int multicast(struct pair *p)
{
	return ibv_attach_mcast(p->side[A].qp, &p->gid, 0);
}

static int ece_asked(struct pair *p)
{
	struct ibv_ece ece;

	return ibv_query_ece(p->side[A].qp, &ece);
}

static int ece_given(struct pair *p)
{
	struct ibv_ece ece = {.vendor_id = 1};

	return ibv_set_ece(p->side[A].qp, &ece);
}

static int no_qp_destroyed(struct pair *p)
{
	return ibv_destroy_qp(NULL);
}

static const struct refusal {
	int (*refuse)(struct pair *);
	int err;
	const char *words[2]; /* none: refused without a word */
} refusals[] = {
	{rtr_without_grh, EINVAL, {"GRH", "GID"}},
	{rtr_from_nowhere, EINVAL, {"GID 63", "verbena devices"}},
	{init_to_rts, EINVAL, {"INIT", "RTS"}},
	{retries_of_8, EINVAL, {"retry_cnt", "7"}},
	{raw_qp, EOPNOTSUPP, {"raw packet", "RC, UC, UD and XRC"}},
	{huge_qp, EINVAL, {"1048576", "max_qp_wr"}},
	{much_inline, EINVAL, {NULL}},
	{unmapped_region, EFAULT, {"64 bytes", "mapped"}},
	{write_only_for_others, EINVAL, {"LOCAL_WRITE", "remote"}},
	{post_too_early, EINVAL, {"ibv_post_send", "RTS"}},
	{post_many_sges, EINVAL, {"40 SGEs", "max_recv_sge"}},
	{multicast, EINVAL, {"UD", "ibv_attach_mcast"}},
	{ece_asked, EOPNOTSUPP, {NULL}},
	{ece_given, EOPNOTSUPP, {NULL}},
	{no_qp_destroyed, EINVAL, {NULL}},
};

PAIR_TEST(a_refusal_is_told_once_in_one_line, .unconnected = true)
{
	char told[TOLD_BYTES];

	assert_int_equal(step_init(p, A), 0);
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *r = &refusals[i];

		setenv("VERBENA_QUIET", "1", 1);
		listen_to(r->refuse, p, r->err, told);
		assert_string_equal(told, "");
		unsetenv("VERBENA_QUIET");
		listen_to(r->refuse, p, r->err, told);
		if (r->words[0]) {
			assert_int_equal(strncmp(told, "verbena: ", 9), 0);
			assert_ptr_equal(strchr(told, '\n'), told + strlen(told) - 1);
		} else {
			assert_string_equal(told, "");
		}
		for (int k = 0; k < 2 && r->words[k]; k++) {
			if (!strstr(told, r->words[k]))
				fail_msg("no \"%s\" in: %s", r->words[k], told);
		}
		listen_to(r->refuse, p, r->err, told);
		assert_string_equal(told, "");
	}
	/* The same cause in another call is no new one; another type of queue pair is the same
	 * cause. */
	listen_to(address_without_grh, p, EINVAL, told);
	assert_string_equal(told, "");
	listen_to(raw_qp, p, EOPNOTSUPP, told);
	assert_string_equal(told, "");
}
