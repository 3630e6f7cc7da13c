/* SPDX-License-Identifier: BSD-2-Clause */
/* The QP's life cycle as a program sees it: legal and illegal moves, and the results of queries. */
#include "pair.h"
#include "support/test.h"

static void make_unconnected(struct pair *p, enum ibv_qp_type type)
{
	pair_make(p, (struct wishes){.type = type, .unconnected = true});
}

/* ---- moves ------------------------------------------------------------------------------------- */

static void bring_to(struct pair *p, enum ibv_qp_state state)
{
	assert_int_equal(state_set(p->side[A].qp, IBV_QPS_RESET), 0);
	if (state == IBV_QPS_RESET)
		return;
	if (state == IBV_QPS_ERR) {
		assert_int_equal(step_init(p, A), 0);
		assert_int_equal(state_set(p->side[A].qp, IBV_QPS_ERR), 0);
		return;
	}
	assert_int_equal(step_init(p, A), 0);
	if (state == IBV_QPS_INIT)
		return;
	assert_int_equal(step_rtr(p, A), 0);
	if (state == IBV_QPS_RTR)
		return;
	assert_int_equal(step_rts(p, A), 0);
	if (state == IBV_QPS_SQD)
		assert_int_equal(state_set(p->side[A].qp, IBV_QPS_SQD), 0);
}

/* The moves that need no attribute, from each state that a program can bring a QP to. */
TEST(moves_are_those_of_the_table)
{
	static const enum ibv_qp_state from[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						 IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR};
	static const bool legal[6][IBV_QPS_ERR + 1] = {
		/*           RESET INIT   RTR    RTS    SQD    SQE    ERR */
		[0 /* RESET */] = {true, false, false, false, false, false, true},
		[1 /* INIT */] = {true, true, false, false, false, false, true},
		[2 /* RTR */] = {true, false, false, false, false, false, true},
		[3 /* RTS */] = {true, false, false, true, true, false, true},
		[4 /* SQD */] = {true, false, false, true, true, false, true},
		[5 /* ERR */] = {true, false, false, false, false, false, true},
	};
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	struct pair p;

	for (int t = 0; t < 3; t++) {
		make_unconnected(&p, types[t]);
		for (int f = 0; f < 6; f++) {
			for (int to = 0; to <= IBV_QPS_ERR; to++) {
				/* A datagram service needs no attribute to receive. */
				bool may = legal[f][to] ||
					   (types[t] == IBV_QPT_UD && from[f] == IBV_QPS_INIT && to == IBV_QPS_RTR);
				int rc;

				bring_to(&p, from[f]);
				rc = state_set(p.side[A].qp, (enum ibv_qp_state)to);
				if (rc != (may ? 0 : EINVAL))
					fail_msg("type %d from %d to %d: %d", types[t], from[f], to, rc);
				assert_int_equal(p.side[A].qp->state, rc ? from[f] : (unsigned int)to);
			}
		}
		pair_destroy(&p);
	}
}

struct modification {
	const char *what;
	int mask;
	struct ibv_qp_attr attr;
};

TEST(attributes_out_of_range_or_place_are_refused)
{
	static const struct modification in_init[] = {
		{"port 0", IBV_QP_PORT, {.port_num = 0}},
		{"port 2", IBV_QP_PORT, {.port_num = 2}},
		{"P_Key index 1", IBV_QP_PKEY_INDEX, {.pkey_index = 1}},
		{"a Q_Key on RC", IBV_QP_QKEY, {.qkey = 1}},
		{"a path MTU too early", IBV_QP_PATH_MTU, {.path_mtu = IBV_MTU_1024}},
		{"capacities", IBV_QP_CAP, {.cap = {.max_send_wr = 1}}},
		{"a rate limit", IBV_QP_RATE_LIMIT, {.rate_limit = 1}},
		{"a bit nobody knows", 1 << 30, {0}},
		{"the wrong current state",
		 IBV_QP_STATE | IBV_QP_CUR_STATE,
		 {.qp_state = IBV_QPS_ERR, .cur_qp_state = IBV_QPS_RTS}},
		{"no such state", IBV_QP_STATE, {.qp_state = 99}},
	};
	struct pair p;

	make_unconnected(&p, IBV_QPT_RC);
	assert_int_equal(step_init(&p, A), 0);
	for (size_t i = 0; i < sizeof(in_init) / sizeof(in_init[0]); i++) {
		struct ibv_qp_attr attr = in_init[i].attr;
		int rc = ibv_modify_qp(p.side[A].qp, &attr, in_init[i].mask);

		if (rc != EINVAL)
			fail_msg("%s: %d", in_init[i].what, rc);
		assert_int_equal(p.side[A].qp->state, IBV_QPS_INIT);
	}
	pair_destroy(&p);
}

/* Programs request flush and later features where the device may have them. */
TEST(unknown_access_bits_are_left_out)
{
	struct ibv_qp_attr attr = {.qp_access_flags = UINT32_MAX};
	struct ibv_qp_init_attr init;
	struct pair p;

	make_unconnected(&p, IBV_QPT_RC);
	assert_int_equal(step_init(&p, A), 0);
	assert_int_equal(ibv_modify_qp(p.side[A].qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(ibv_query_qp(p.side[A].qp, &attr, IBV_QP_ACCESS_FLAGS, &init), 0);
	assert_int_equal(attr.qp_access_flags & (ACCESS_ALL | 3u << 8 | 3u << 10), ACCESS_ALL | 3u << 8);
	attr.qp_access_flags = 3u << 10;
	assert_int_equal(ibv_modify_qp(p.side[A].qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(ibv_query_qp(p.side[A].qp, &attr, IBV_QP_ACCESS_FLAGS, &init), 0);
	assert_int_equal(attr.qp_access_flags, 0);
	pair_destroy(&p);
}

TEST(becoming_ready_to_receive_needs_every_attribute)
{
	static const int masks[] = {IBV_QP_AV,     IBV_QP_PATH_MTU,           IBV_QP_DEST_QPN,
				    IBV_QP_RQ_PSN, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER};
	const int all = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = 5,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 1};
	struct ibv_qp_attr bad;
	struct pair p;

	make_unconnected(&p, IBV_QPT_RC);
	attr.ah_attr = pair_ah_attr(&p);
	assert_int_equal(step_init(&p, A), 0);
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++)
		assert_int_equal(ibv_modify_qp(p.side[A].qp, &attr, all & ~masks[i]), EINVAL);
	bad = attr;
	bad.path_mtu = 0;
	assert_int_equal(ibv_modify_qp(p.side[A].qp, &bad, all), EINVAL);
	bad.path_mtu = 6;
	assert_int_equal(ibv_modify_qp(p.side[A].qp, &bad, all), EINVAL);
	bad = attr;
	bad.dest_qp_num = 1 << 24;
	assert_int_equal(ibv_modify_qp(p.side[A].qp, &bad, all), EINVAL);
	bad = attr;
	bad.min_rnr_timer = 32;
	assert_int_equal(ibv_modify_qp(p.side[A].qp, &bad, all), EINVAL);
	bad = attr;
	bad.max_dest_rd_atomic = 200;
	assert_int_equal(ibv_modify_qp(p.side[A].qp, &bad, all), EINVAL);
	bad = attr;
	bad.ah_attr.is_global = 0;
	assert_int_equal(ibv_modify_qp(p.side[A].qp, &bad, all), EINVAL);
	bad = attr;
	bad.ah_attr.grh.sgid_index = 99;
	assert_int_equal(ibv_modify_qp(p.side[A].qp, &bad, all), EINVAL);
	assert_int_equal(ibv_modify_qp(p.side[A].qp, &attr, all), 0);
	pair_destroy(&p);
}

/* ---- query ------------------------------------------------------------------------------------- */

TEST(a_query_tells_what_was_set)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	struct pair p;

	pair_make(&p, (struct wishes){.mtu = IBV_MTU_2048,
				      .psn = 0x123456,
				      .timeout = 17,
				      .retry_cnt_given = 1,
				      .retry_cnt = 3,
				      .rnr_retry_given = 1,
				      .rnr_retry = 5});
	assert_int_equal(ibv_query_qp(p.side[A].qp, &a, IBV_QP_STATE | IBV_QP_CAP, &init), 0);
	assert_int_equal(a.qp_state, IBV_QPS_RTS);
	assert_int_equal(a.cur_qp_state, IBV_QPS_RTS);
	assert_int_equal(a.path_mtu, IBV_MTU_2048);
	assert_int_equal(a.path_mig_state, IBV_MIG_MIGRATED);
	assert_int_equal(a.rq_psn, 0x123456);
	assert_int_equal(a.sq_psn, 0x123456);
	assert_int_equal(a.dest_qp_num, p.side[B].qp->qp_num);
	assert_int_equal(a.qp_access_flags, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
						    IBV_ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL |
						    ACCESS_FLUSH_PERSISTENT);
	assert_int_equal(a.max_rd_atomic, 4);
	assert_int_equal(a.max_dest_rd_atomic, 4);
	assert_int_equal(a.min_rnr_timer, 1);
	assert_int_equal(a.port_num, PORT);
	assert_int_equal(a.timeout, 17);
	assert_int_equal(a.retry_cnt, 3);
	assert_int_equal(a.rnr_retry, 5);
	assert_int_equal(a.ah_attr.is_global, 1);
	assert_int_equal(a.ah_attr.port_num, PORT);
	assert_int_equal(a.ah_attr.grh.sgid_index, p.gid_index);
	assert_int_equal(a.ah_attr.grh.hop_limit, 64);
	assert_memory_equal(&a.ah_attr.grh.dgid, &p.gid, sizeof(p.gid));
	assert_true(a.cap.max_send_wr >= 64 && a.cap.max_recv_wr >= 64);
	assert_true(a.cap.max_send_sge >= 4 && a.cap.max_recv_sge >= 4);
	assert_true(a.cap.max_inline_data >= 256);
	assert_memory_equal(&a.cap, &init.cap, sizeof(a.cap));
	assert_ptr_equal(init.qp_context, &p.side[A]);
	assert_ptr_equal(init.send_cq, p.side[A].cq);
	assert_ptr_equal(init.recv_cq, p.side[A].cq);
	assert_null(init.srq);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
	assert_int_equal(init.sq_sig_all, 0);
	pair_destroy(&p);
}

PAIR_TEST(a_query_after_reset_tells_of_reset, .type = IBV_QPT_UD)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	assert_int_equal(ibv_query_qp(p->side[A].qp, &a, IBV_QP_QKEY, &init), 0);
	assert_int_equal(a.qkey, QKEY);
	assert_int_equal(state_set(p->side[A].qp, IBV_QPS_RESET), 0);
	assert_int_equal(ibv_query_qp(p->side[A].qp, &a, IBV_QP_STATE, &init), 0);
	assert_int_equal(a.qp_state, IBV_QPS_RESET);
}

/* ---- what may be posted when ------------------------------------------------------------------- */

TEST(posting_depends_on_the_state)
{
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv;
	struct ibv_qp *qp;
	struct pair p;

	make_unconnected(&p, IBV_QPT_RC);
	qp = p.side[A].qp;
	bad_send = NULL;
	assert_int_equal(ibv_post_send(qp, &send, &bad_send), EINVAL);
	assert_ptr_equal(bad_send, &send);
	bad_recv = NULL;
	assert_int_equal(ibv_post_recv(qp, &recv, &bad_recv), EINVAL);
	assert_ptr_equal(bad_recv, &recv);
	assert_int_equal(step_init(&p, A), 0);
	assert_int_equal(ibv_post_send(qp, &send, &bad_send), EINVAL);
	assert_int_equal(ibv_post_recv(qp, &recv, &bad_recv), 0);
	assert_int_equal(step_rtr(&p, A), 0);
	assert_int_equal(ibv_post_send(qp, &send, &bad_send), EINVAL);
	assert_int_equal(ibv_post_recv(qp, &recv, &bad_recv), 0);
	assert_int_equal(state_set(qp, IBV_QPS_ERR), 0);
	assert_int_equal(ibv_post_recv(qp, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(qp, &send, &bad_send), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(wc_await(p.side[A].cq).status, IBV_WC_WR_FLUSH_ERR);
	wc_none(p.side[A].cq, 20);
	pair_destroy(&p);
}

PAIR_TEST(a_qp_can_be_used_again_after_reset, .all_signaled = true)
{
	for (int round = 0; round < 3; round++) {
		struct ibv_sge sge = sge_at(p, A, 0, 100);
		struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

		pattern_fill(p->side[A].buf, 100, (unsigned int)round);
		recv_post(p, B, 1, 0, 100);
		recv_post(p, B, 2, 0, 100); /* is forgotten */
		assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
		assert_int_equal(wc_await(p->side[A].cq).status, IBV_WC_SUCCESS);
		assert_int_equal(wc_await(p->side[B].cq).wr_id, 1);
		pattern_check(p->side[B].buf, 100, (unsigned int)round);
		for (int i = 0; i < SIDES; i++)
			assert_int_equal(state_set(p->side[i].qp, IBV_QPS_RESET), 0);
		wc_none(p->side[B].cq, 5);
		pair_connect(p);
	}
}

PAIR_TEST(sqd_holds_sends_back_until_rts)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .wr_id = 9, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	recv_post(p, B, 1, 0, 0);
	assert_int_equal(state_set(p->side[A].qp, IBV_QPS_SQD), 0);
	assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
	wc_none(p->side[A].cq, 50);
	assert_int_equal(state_set(p->side[A].qp, IBV_QPS_RTS), 0);
	assert_int_equal(wc_await(p->side[A].cq).wr_id, 9);
}
