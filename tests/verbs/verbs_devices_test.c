/* SPDX-License-Identifier: BSD-2-Clause */
/* Several devices of one process (VERBENA_DEVICES=2): each is a NIC of its own, and both work at once. */
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"
#include "support/test.h"

enum { DEVICES = 2, BYTES = 70000, ROUNDS = 200 };

/* One end: a device with a queue pair. */
struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
	union ibv_gid gid;
	uint8_t gid_index;
};

static struct ibv_device *device_at(int index)
{
	struct ibv_device **list = ibv_get_device_list(NULL), *d;

	assert_non_null(list);
	d = list[index];
	ibv_free_device_list(list);
	return d;
}

static void end_make(struct end *e, int device)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1}};

	e->ctx = ibv_open_device(device_at(device));
	assert_non_null(e->ctx);
	e->gid_index = (uint8_t)gid_pick(e->ctx, &e->gid);
	e->pd = ibv_alloc_pd(e->ctx);
	e->cq = ibv_create_cq(e->ctx, 64, NULL, NULL, 0);
	assert_true(e->pd && e->cq);
	e->buf = calloc(1, BYTES);
	e->mr = ibv_reg_mr(e->pd, e->buf, BYTES, ACCESS_ALL);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	assert_true(e->mr && e->qp);
}

static void end_connect(struct end *e, const struct end *peer)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = PORT, .qp_access_flags = ACCESS_ALL},
			   rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = peer->qp->qp_num,
				  .rq_psn = 7,
				  .max_dest_rd_atomic = 1,
				  .min_rnr_timer = 1,
				  .ah_attr = {.is_global = 1,
					      .port_num = PORT,
					      .grh = {.dgid = peer->gid, .sgid_index = e->gid_index, .hop_limit = 1}}},
			   rts = {.qp_state = IBV_QPS_RTS,
				  .sq_psn = 7,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = 1};

	assert_int_equal(
		ibv_modify_qp(e->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(ibv_modify_qp(e->qp, &rtr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			 0);
	assert_int_equal(ibv_modify_qp(e->qp, &rts,
				       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

static void end_free(struct end *e)
{
	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	assert_int_equal(ibv_dereg_mr(e->mr), 0);
	assert_int_equal(ibv_destroy_cq(e->cq), 0);
	assert_int_equal(ibv_dealloc_pd(e->pd), 0);
	assert_int_equal(ibv_close_device(e->ctx), 0);
	free(e->buf);
}

static void ends_make(struct end e[DEVICES])
{
	for (int i = 0; i < DEVICES; i++)
		end_make(&e[i], i);
	end_connect(&e[0], &e[1]);
	end_connect(&e[1], &e[0]);
}

static void receive(struct end *e)
{
	struct ibv_sge sge = {(uintptr_t)e->buf, BYTES, e->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	memset(e->buf, 0, BYTES);
	assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
}

/* A message from one device to the other, and what it brought. */
static void message(struct end *from, struct end *to, unsigned seed)
{
	struct ibv_sge sge = {(uintptr_t)from->buf, BYTES, from->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	receive(to);
	pattern_fill(from->buf, BYTES, seed);
	assert_int_equal(ibv_post_send(from->qp, &wr, &bad), 0);
	assert_int_equal(wc_await(from->cq).status, IBV_WC_SUCCESS);
	assert_int_equal(wc_await(to->cq).status, IBV_WC_SUCCESS);
	pattern_check(to->buf, BYTES, seed);
}

TEST(the_list_has_both_and_they_differ)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	assert_int_equal(n, DEVICES);
	assert_null(list[DEVICES]);
	assert_string_equal(ibv_get_device_name(list[0]), "verbena0");
	assert_string_equal(ibv_get_device_name(list[1]), "verbena1");
	assert_string_equal(list[1]->dev_name, "uverbs1");
	assert_int_equal(ibv_get_device_index(list[0]), 0);
	assert_int_equal(ibv_get_device_index(list[1]), 1);
	assert_true(ibv_get_device_guid(list[0]) != ibv_get_device_guid(list[1]));
	ibv_free_device_list(list);
}

TEST(each_device_says_who_it_is)
{
	struct ibv_device_attr attr[DEVICES];

	for (int i = 0; i < DEVICES; i++) {
		struct ibv_context *ctx = ibv_open_device(device_at(i));

		assert_non_null(ctx);
		assert_ptr_equal(ctx->device, device_at(i));
		assert_int_equal(ibv_query_device(ctx, &attr[i]), 0);
		assert_true(attr[i].node_guid == ibv_get_device_guid(device_at(i)));
		assert_int_equal(ibv_close_device(ctx), 0);
	}
	assert_true(attr[0].node_guid != attr[1].node_guid);
	assert_true(attr[0].sys_image_guid == attr[1].sys_image_guid);
}

TEST(two_devices_of_a_process_talk_to_each_other)
{
	struct end e[DEVICES];

	ends_make(e);
	for (unsigned i = 0; i < ROUNDS; i++)
		message(&e[i & 1], &e[!(i & 1)], i);
	for (int i = 0; i < DEVICES; i++)
		end_free(&e[i]);
}

/* QPs and CQs of different devices are strangers. */
TEST(objects_of_two_devices_do_not_mix)
{
	struct end e[DEVICES];
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	ends_make(e);
	init.send_cq = e[0].cq;
	init.recv_cq = e[1].cq;
	assert_null(ibv_create_qp(e[0].pd, &init));
	assert_int_equal(errno, EINVAL);
	init.send_cq = e[1].cq;
	assert_null(ibv_create_qp(e[0].pd, &init));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_rereg_mr(e[0].mr, IBV_REREG_MR_CHANGE_PD, e[1].pd, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	/* A key of the other device opens nothing here. */
	receive(&e[1]);
	sge = (struct ibv_sge){(uintptr_t)e[1].buf, 64, e[1].mr->lkey};
	assert_int_equal(ibv_post_send(e[0].qp, &wr, &bad), 0);
	assert_int_equal(wc_await(e[0].cq).status, IBV_WC_LOC_PROT_ERR);
	for (int i = 0; i < DEVICES; i++)
		end_free(&e[i]);
}

/* The child has devices of its own; the parent's go on. */
TEST(both_survive_a_fork)
{
	struct end e[DEVICES];
	int status;
	pid_t pid;

	ends_make(e);
	message(&e[0], &e[1], 1);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct end own[DEVICES];

		ends_make(own);
		message(&own[1], &own[0], 3);
		exit(0);
	}
	message(&e[1], &e[0], 2);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	message(&e[0], &e[1], 4);
	for (int i = 0; i < DEVICES; i++)
		end_free(&e[i]);
}

__attribute__((constructor)) static void ask_for_two(void)
{
	setenv("VERBENA_DEVICES", "2", 1);
}
