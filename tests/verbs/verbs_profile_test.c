/* SPDX-License-Identifier: BSD-2-Clause */
/* A device that is like a smaller one: what it lacks and how it says so. Each test has a profile, and is a process. */
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"
#include "support/test.h"

/* Settings are read when the first device is opened. */
static void with_profile(const char *name, void (*judge)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		setenv("VERBENA_PROFILE", name, 1);
		setenv("VERBENA_QUIET", "1", 1);
		judge();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* cmocka's own would end the child in the parent's name. */
#define MUST(condition)                                                         \
	do {                                                                    \
		if (!(condition)) {                                             \
			fprintf(stderr, "line %d: " #condition "\n", __LINE__); \
			_exit(1);                                               \
		}                                                               \
	} while (0)

#define REFUSED(call, err)                                                   \
	do {                                                                 \
		errno = 0;                                                   \
		MUST(!(call));                                               \
		if (errno != (err)) {                                        \
			fprintf(stderr, "%s: %s\n", #call, strerror(errno)); \
			_exit(1);                                            \
		}                                                            \
	} while (0)

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_device_attr attr;

static void open_all(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	MUST(list && list[0]);
	ctx = ibv_open_device(list[0]);
	MUST(ctx);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	MUST(pd && cq && !ibv_query_device(ctx, &attr));
}

static struct ibv_qp *qp_make(enum ibv_qp_type type, struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = type, .cap = cap};

	return ibv_create_qp(pd, &init);
}

/* A post of that operation by a queue pair that may send. */
static int post(struct ibv_qp *qp, enum ibv_wr_opcode op)
{
	struct ibv_send_wr wr = {.opcode = op}, *bad;

	return ibv_post_send(qp, &wr, &bad);
}

static void uc_only(void)
{
	static uint8_t mem[64];
	const struct ibv_qp_cap one = {1, 1, 1, 1, 0};
	struct ibv_device_attr_ex ex = {.max_dm_size = 1};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp *qp[11];
	struct ibv_mr *mr[101];

	open_all();
	MUST(attr.max_qp == 10 && attr.max_mr == 100 && attr.max_srq == 0 && attr.max_sge == 4);
	MUST(attr.atomic_cap == IBV_ATOMIC_NONE && attr.max_mw == 0 && attr.max_mcast_grp == 0);
	MUST(!(attr.device_cap_flags & (IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_SRQ_RESIZE)));
	MUST(!ibv_query_device_ex(ctx, NULL, &ex) && !ex.max_dm_size && !ex.odp_caps.general_caps);
	REFUSED(qp_make(IBV_QPT_RC, one), EOPNOTSUPP);
	REFUSED(qp_make(IBV_QPT_UD, one), EOPNOTSUPP);
	REFUSED(qp_make(IBV_QPT_UC, ((struct ibv_qp_cap){1025, 1, 1, 1, 0})), EINVAL);
	REFUSED(qp_make(IBV_QPT_UC, ((struct ibv_qp_cap){1, 1, 1, 5, 0})), EINVAL);
	REFUSED(qp_make(IBV_QPT_UC, ((struct ibv_qp_cap){1, 1, 1, 1, 65})), EINVAL);
	for (int i = 0; i < 10; i++)
		MUST(qp[i] = qp_make(IBV_QPT_UC, one));
	REFUSED(qp_make(IBV_QPT_UC, one), ENOSPC);
	MUST(!ibv_destroy_qp(qp[9]) && (qp[10] = qp_make(IBV_QPT_UC, one)));
	for (int i = 0; i < 100; i++)
		MUST(mr[i] = ibv_reg_mr(pd, mem, sizeof(mem), 0));
	REFUSED(ibv_reg_mr(pd, mem, sizeof(mem), 0), ENOSPC);
	MUST(!ibv_dereg_mr(mr[99]) && (mr[100] = ibv_reg_mr(pd, mem, sizeof(mem), 0)));
	MUST(!ibv_dereg_mr(mr[0]));
	REFUSED(ibv_reg_mr(pd, mem, sizeof(mem), IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
	REFUSED(ibv_create_srq(pd, &srq), EOPNOTSUPP);
	REFUSED(ibv_alloc_mw(pd, IBV_MW_TYPE_1), EOPNOTSUPP);
	REFUSED(ibv_alloc_dm(ctx, &(struct ibv_alloc_dm_attr){.length = 4}), EOPNOTSUPP);
	REFUSED(ibv_alloc_td(ctx, &(struct ibv_td_init_attr){0}), EOPNOTSUPP);
	REFUSED(ibv_create_cq(ctx, (int)attr.max_cqe + 1, NULL, NULL, 0), EINVAL);
	MUST(ibv_rereg_mr(mr[1], IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) && errno == EOPNOTSUPP);
}

static void write_only(void)
{
	const enum ibv_wr_opcode taken[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM},
				 refused[] = {IBV_WR_SEND,
					      IBV_WR_SEND_WITH_IMM,
					      IBV_WR_RDMA_READ,
					      IBV_WR_ATOMIC_FETCH_AND_ADD,
					      IBV_WR_ATOMIC_CMP_AND_SWP,
					      IBV_WR_LOCAL_INV};
	struct ibv_cq_init_attr_ex cq_ex = {.cqe = 1};
	struct ibv_qp_init_attr_ex qp_ex = {.send_cq = NULL,
					    .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS};
	struct pair p;

	open_all();
	REFUSED(ibv_create_cq_ex(ctx, &cq_ex), EOPNOTSUPP);
	REFUSED(ibv_create_qp_ex(ctx, &qp_ex), EOPNOTSUPP);
	MUST(ibv_resize_cq(cq, 20) == EOPNOTSUPP);
	pair_make(&p, (struct wishes){0});
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		MUST(post(p.side[A].qp, refused[i]) == EINVAL);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		MUST(post(p.side[A].qp, taken[i]) == 0);
}

static void rxe(void)
{
	const struct ibv_qp_cap much = {1, 1, 1, 1, 513};
	struct ibv_xrcd_init_attr xrcd = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *srq;

	open_all();
	MUST(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW && !(attr.device_cap_flags & IBV_DEVICE_XRC));
	MUST(attr.max_ah == 1048575 && attr.max_mcast_qp_attach == 56 && attr.max_res_rd_atom == 258048);
	MUST(attr.max_cqe == 32767 && attr.atomic_cap == IBV_ATOMIC_HCA);
	REFUSED(ibv_open_xrcd(ctx, &xrcd), EOPNOTSUPP);
	REFUSED(qp_make(IBV_QPT_RC, much), EINVAL);
	srq = ibv_create_srq(pd, &srq_attr);
	MUST(srq && ibv_modify_srq(srq, &(struct ibv_srq_attr){.max_wr = 9}, IBV_SRQ_MAX_WR) == 0);
	srq_attr.attr.max_sge = 28;
	MUST(attr.max_srq_sge == 27 && attr.max_mr == 524287 && attr.max_mw == 524287);
	REFUSED(ibv_create_srq(pd, &srq_attr), EINVAL);
	REFUSED(ibv_import_device(dup(ctx->cmd_fd)), EOPNOTSUPP);
	MUST(ibv_alloc_mw(pd, IBV_MW_TYPE_1));
}

static const char few[] = "max_ah = 2\nmax_res_rd_atom = 9\nmax_mcast_grp = 2\nmax_mcast_qp_attach = 2\n"
			  "max_total_mcast_qp_attach = 3\nfull = ENOSPC\n";

static int attach(struct ibv_qp *qp, uint8_t group)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = group}};

	return ibv_attach_mcast(qp, &gid, 0);
}

static int detach(struct ibv_qp *qp, uint8_t group)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = group}};

	return ibv_detach_mcast(qp, &gid, 0);
}

static void few_groups(void)
{
	const struct ibv_qp_cap one = {1, 1, 1, 1, 0};
	struct ibv_qp *a, *b, *c;

	open_all();
	MUST(attr.max_mcast_grp == 2 && attr.max_mcast_qp_attach == 2 && attr.max_total_mcast_qp_attach == 3);
	a = qp_make(IBV_QPT_UD, one);
	b = qp_make(IBV_QPT_UD, one);
	c = qp_make(IBV_QPT_UD, one);
	MUST(!attach(a, 1) && !attach(a, 1) && !attach(b, 1));
	MUST(attach(c, 1) == ENOSPC); /* the group is full, */
	MUST(!attach(a, 2) && !attach(a, 2));
	MUST(attach(b, 2) == ENOSPC && attach(b, 3) == ENOSPC); /* as all are together; */
	MUST(!detach(b, 1));
	MUST(attach(b, 3) == ENOSPC); /* there are two groups, */
	MUST(!attach(b, 2) && !detach(b, 2) && !detach(a, 2));
	MUST(!attach(b, 3)); /* of which one is gone now */
}

/* Also of a context that another one has nothing to do with. */
static void few_handles(void)
{
	struct ibv_ah *ah[2], *third;
	struct ibv_ah_attr to;
	struct ibv_context *other;
	struct pair p;

	open_all();
	pair_make(&p, (struct wishes){.unconnected = true});
	to = pair_ah_attr(&p);
	MUST(attr.max_ah == 2);
	MUST((ah[0] = ibv_create_ah(p.pd, &to)) && (ah[1] = ibv_create_ah(p.pd, &to)));
	REFUSED(ibv_create_ah(p.pd, &to), ENOSPC);
	REFUSED(ibv_create_ah(pd, &to), ENOSPC);
	MUST(!ibv_destroy_ah(ah[0]) && (ah[0] = ibv_create_ah(pd, &to)));
	other = ibv_open_device(ctx->device);
	MUST(other && !ibv_destroy_ah(ah[1]) && (third = ibv_create_ah(ibv_alloc_pd(other), &to)));
	REFUSED(ibv_create_ah(pd, &to), ENOSPC);
	MUST(!ibv_close_device(other)); /* with its handle */
	MUST(ibv_create_ah(pd, &to));
}

/* Each side answers four at a time (pair.c), and there is room for nine. */
static void few_resources(void)
{
	struct pair p, more;

	open_all();
	MUST(attr.max_res_rd_atom == 9);
	pair_make(&p, (struct wishes){0});
	pair_make(&more, (struct wishes){.unconnected = true});
	MUST(!step_init(&more, A) && step_rtr(&more, A) == ENOSPC);
	MUST(!state_set(p.side[B].qp, IBV_QPS_RESET));
	MUST(!step_rtr(&more, A));
}

static void with_few(void (*judge)(void))
{
	char name[] = "/tmp/verbs_profile_XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0 && write(fd, few, sizeof(few) - 1) == sizeof(few) - 1 && !close(fd));
	with_profile(name, judge);
	unlink(name);
}

TEST(multicast_groups_and_their_members_are_few)
{
	with_few(few_groups);
}

TEST(address_handles_are_few_for_all_contexts_together)
{
	with_few(few_handles);
}

TEST(resources_for_answers_are_few_for_all_queue_pairs_together)
{
	with_few(few_resources);
}

TEST(small_device_has_few_of_everything)
{
	with_profile("uc-only", uc_only);
}

TEST(writes_alone_may_be_posted)
{
	with_profile("write-only", write_only);
}

TEST(device_is_like_linux_s_own)
{
	with_profile("rxe", rxe);
}

static void nothing_opens(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	MUST(list && list[0]);
	REFUSED(ibv_open_device(list[0]), EINVAL);
}

TEST(device_with_a_wrong_profile_does_not_open)
{
	with_profile("no-such", nothing_opens);
}
