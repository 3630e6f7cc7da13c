/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast on UD: who gets a copy of a datagram to a group, and what the calls refuse. */
#include "pair.h"
#include "support/test.h"

enum { GROUP_QPN = 0xffffff, BYTES = 100 };

struct groups {
	struct pair p;
	union ibv_gid mgid;
	struct ibv_ah *ah;
};

static union ibv_gid ipv4_group(uint8_t last)
{
	return (union ibv_gid){.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = last}};
}

static void groups_make(struct groups *g)
{
	struct ibv_ah_attr attr;

	pair_make(&g->p, (struct wishes){.type = IBV_QPT_UD});
	g->mgid = ipv4_group(3);
	attr = pair_ah_attr(&g->p);
	attr.grh.dgid = g->mgid;
	g->ah = ibv_create_ah(g->p.pd, &attr);
	assert_non_null(g->ah);
}

static void groups_destroy(struct groups *g)
{
	assert_int_equal(ibv_destroy_ah(g->ah), 0);
	pair_destroy(&g->p);
}

static void send_to_group(struct groups *g, uint32_t qkey, unsigned seed)
{
	struct ibv_sge sge = sge_at(&g->p, A, 0, BYTES);
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	wr.wr.ud.ah = g->ah;
	wr.wr.ud.remote_qpn = GROUP_QPN;
	wr.wr.ud.remote_qkey = qkey;
	pattern_fill(g->p.side[A].buf, BYTES, seed);
	assert_int_equal(ibv_post_send(g->p.side[A].qp, &wr, &bad), 0);
}

/* One datagram at the side: behind its GRH, whose destination is the group. */
static void expect_copy(struct groups *g, int side, uint64_t wr_id, unsigned seed)
{
	const uint8_t *at = g->p.side[side].buf + 4096;
	struct ibv_wc wc = wc_await(g->p.side[side].cq);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.byte_len, GRH_BYTES + BYTES);
	assert_int_equal(wc.src_qp, g->p.side[A].qp->qp_num);
	assert_true(wc.wc_flags & IBV_WC_GRH);
	assert_memory_equal(at + 36, g->mgid.raw + 12, 4);
	pattern_check(at + GRH_BYTES, BYTES, seed);
}

static void await_sent(struct groups *g)
{
	struct ibv_wc wc = wc_await(g->p.side[A].cq);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
}

/* IBTA 10.5.2.1: the sender too, if it is attached. */
TEST(every_attached_qp_gets_one_copy)
{
	struct groups g;

	groups_make(&g);
	for (int side = A; side <= B; side++) {
		assert_int_equal(ibv_attach_mcast(g.p.side[side].qp, &g.mgid, 0), 0);
		assert_int_equal(ibv_attach_mcast(g.p.side[side].qp, &g.mgid, 0), 0); /* still one copy */
		for (uint64_t i = 0; i < 3; i++)
			recv_post(&g.p, side, 50 + i, 4096, GRH_BYTES + BYTES);
	}
	send_to_group(&g, QKEY, 1);
	await_sent(&g);
	expect_copy(&g, B, 50, 1);
	expect_copy(&g, A, 50, 1);
	/* A Q_Key that is not theirs: nobody. */
	send_to_group(&g, QKEY ^ 1, 2);
	await_sent(&g);
	wc_none(g.p.side[B].cq, 20);
	assert_int_equal(ibv_detach_mcast(g.p.side[A].qp, &g.mgid, 0), 0);
	send_to_group(&g, QKEY, 3);
	await_sent(&g);
	expect_copy(&g, B, 51, 3);
	wc_none(g.p.side[A].cq, 20);
	assert_int_equal(ibv_detach_mcast(g.p.side[B].qp, &g.mgid, 0), 0);
	send_to_group(&g, QKEY, 4);
	await_sent(&g);
	wc_none(g.p.side[B].cq, 20);
	groups_destroy(&g);
}

/* A UD queue pair of the device, ready to send, whose datagrams to groups are for other hosts alone. */
static struct ibv_qp *sender_to_others(struct groups *g)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_UD,
					   .cap = {.max_send_wr = 4, .max_send_sge = 1},
					   .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
					   .create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB};
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_qp *qp;

	attr.pd = g->p.pd;
	attr.send_cq = attr.recv_cq = g->p.side[A].cq;
	qp = ibv_create_qp_ex(g->p.ctx, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
	assert_int_equal(state_set(qp, IBV_QPS_RTR), 0);
	to.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	return qp;
}

/* By each of the host's addresses, and not for good: what an ordinary queue pair sends behind it arrives. */
TEST(what_is_for_other_hosts_alone_has_no_copies_here)
{
	struct ibv_qp *qp, *ordinary;
	struct ibv_ah_attr attr;
	union ibv_gid gid;
	struct ibv_ah *ah;
	struct groups g;
	int index = 0;

	groups_make(&g);
	ordinary = g.p.side[A].qp;
	ah = g.ah;
	qp = sender_to_others(&g);
	assert_int_equal(ibv_attach_mcast(qp, &g.mgid, 0), 0);
	assert_int_equal(ibv_attach_mcast(g.p.side[B].qp, &g.mgid, 0), 0);
	recv_post(&g.p, B, 50, 4096, GRH_BYTES + BYTES);
	for (; !ibv_query_gid(g.p.ctx, 1, index, &gid); index++) {
		attr = pair_ah_attr(&g.p);
		attr.grh.dgid = g.mgid;
		attr.grh.sgid_index = (uint8_t)index;
		g.ah = ibv_create_ah(g.p.pd, &attr);
		if (!g.ah)
			continue; /* an IPv6 address, or none */
		g.p.side[A].qp = qp;
		send_to_group(&g, QKEY, 1);
		await_sent(&g);
		wc_none(g.p.side[B].cq, 20);
		assert_int_equal(ibv_destroy_ah(g.ah), 0);
	}
	g.ah = ah;
	g.p.side[A].qp = ordinary;
	send_to_group(&g, QKEY, 2);
	await_sent(&g);
	expect_copy(&g, B, 50, 2);
	assert_int_equal(ibv_detach_mcast(g.p.side[B].qp, &g.mgid, 0), 0);
	assert_int_equal(ibv_detach_mcast(qp, &g.mgid, 0), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	groups_destroy(&g);
}

TEST(who_has_no_receive_misses_alone)
{
	struct groups g;

	groups_make(&g);
	assert_int_equal(ibv_attach_mcast(g.p.side[A].qp, &g.mgid, 0), 0);
	assert_int_equal(ibv_attach_mcast(g.p.side[B].qp, &g.mgid, 0), 0);
	recv_post(&g.p, B, 50, 4096, GRH_BYTES + BYTES);
	send_to_group(&g, QKEY, 1);
	await_sent(&g);
	expect_copy(&g, B, 50, 1);
	for (int side = A; side <= B; side++)
		assert_int_equal(ibv_detach_mcast(g.p.side[side].qp, &g.mgid, 0), 0);
	groups_destroy(&g);
}

/* RFC 4291 2.7: groups of an interface, a link, a site and the world; perftest's own is of the first kind. */
TEST(groups_of_every_scope_can_be_joined)
{
	static const uint8_t scopes[] = {1, 2, 5, 14};
	struct groups g;

	groups_make(&g);
	for (size_t i = 0; i < sizeof(scopes); i++) {
		union ibv_gid gid = {.raw = {0xff, scopes[i], [14] = 0x47, [15] = 0x11}};

		assert_int_equal(ibv_attach_mcast(g.p.side[A].qp, &gid, 0), 0);
		assert_int_equal(ibv_detach_mcast(g.p.side[A].qp, &gid, 0), 0);
	}
	groups_destroy(&g);
}

TEST(calls_refuse_what_is_no_group)
{
	struct ibv_device_attr limits;
	union ibv_gid gid;
	struct groups g;
	struct pair rc;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};

	groups_make(&g);
	assert_int_equal(ibv_query_device(g.p.ctx, &limits), 0);
	assert_int_equal(ibv_attach_mcast(g.p.side[A].qp, &g.p.gid, 0), EINVAL);
	assert_int_equal(ibv_detach_mcast(g.p.side[A].qp, &g.mgid, 0), EINVAL);
	for (int i = 0; i < limits.max_mcast_grp; i++) {
		gid = ipv4_group((uint8_t)(10 + i));
		assert_int_equal(ibv_attach_mcast(g.p.side[A].qp, &gid, 0), 0);
	}
	assert_int_equal(ibv_attach_mcast(g.p.side[A].qp, &g.mgid, 0), ENOMEM);
	assert_int_equal(ibv_destroy_qp(g.p.side[A].qp), EBUSY);
	for (int i = 0; i < limits.max_mcast_grp; i++) {
		gid = ipv4_group((uint8_t)(10 + i));
		assert_int_equal(ibv_detach_mcast(g.p.side[A].qp, &gid, 0), 0);
	}
	assert_int_equal(ibv_attach_mcast(g.p.side[A].qp, &g.mgid, 0), 0);
	assert_int_equal(ibv_detach_mcast(g.p.side[A].qp, &g.mgid, 0), 0);
	groups_destroy(&g);
	/* A connection has one peer. */
	pair_make(&rc, (struct wishes){.unconnected = true});
	assert_int_equal(ibv_attach_mcast(rc.side[A].qp, &g.mgid, 0), EINVAL);
	assert_int_equal(step_init(&rc, A), 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = GROUP_QPN,
				    .max_dest_rd_atomic = 1,
				    .ah_attr = pair_ah_attr(&rc)};
	attr.ah_attr.grh.dgid = g.mgid;
	assert_int_equal(ibv_modify_qp(rc.side[A].qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			 EINVAL);
	pair_destroy(&rc);
}
