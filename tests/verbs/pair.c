/* SPDX-License-Identifier: BSD-2-Clause */
/* The set-up that every verbs test shares. */
#include <time.h>
#include <unistd.h>

#include "pair.h"

enum { AWAIT_MS = 30000, MAX_WR = 64, MAX_SGE = 4, MAX_INLINE = 256, PSN = 0xfffff0 };

struct ibv_context *device_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	assert_non_null(list);
	assert_non_null(list[0]);
	ctx = ibv_open_device(list[0]);
	assert_non_null(ctx);
	ibv_free_device_list(list);
	return ctx;
}

int gid_pick(struct ibv_context *ctx, union ibv_gid *gid)
{
	static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(ctx, PORT, &port), 0);
	for (int i = 0; i < port.gid_tbl_len; i++) {
		assert_int_equal(ibv_query_gid(ctx, PORT, i, gid), 0);
		if (!memcmp(gid->raw, loopback, sizeof(loopback)))
			return i;
	}
	fail_msg("the device has no 127.0.0.1: VERBENA_INTERFACES=lo");
	return -1;
}

struct ibv_ah_attr pair_ah_attr(const struct pair *p)
{
	return (struct ibv_ah_attr){
		.grh = {.dgid = p->gid, .sgid_index = (uint8_t)p->gid_index, .hop_limit = 64},
		.is_global = 1,
		.port_num = PORT,
	};
}

static void cq_make(struct pair *p, struct side *s)
{
	int cqe = p->wish.cqe ? (int)p->wish.cqe : 2 * MAX_WR;
	struct ibv_cq_init_attr_ex attr = {
		.cqe = (uint32_t)cqe,
		.cq_context = s,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};

	if (p->wish.with_channel) {
		s->channel = ibv_create_comp_channel(p->ctx);
		assert_non_null(s->channel);
		attr.channel = s->channel;
	}
	if (p->wish.extended) {
		s->cq_ex = ibv_create_cq_ex(p->ctx, &attr);
		assert_non_null(s->cq_ex);
		s->cq = ibv_cq_ex_to_cq(s->cq_ex);
	} else {
		s->cq = ibv_create_cq(p->ctx, cqe, s, s->channel, 0);
		assert_non_null(s->cq);
	}
}

static uint64_t all_ops(enum ibv_qp_type type)
{
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (type != IBV_QPT_UD)
		ops |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_BIND_MW |
		       IBV_QP_EX_WITH_LOCAL_INV;
	if (type == IBV_QPT_RC)
		ops |= IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_WRITE | QP_EX_WITH_FLUSH;
	return ops;
}

static void qp_make(struct pair *p, struct side *s)
{
	uint32_t max_wr = p->wish.max_wr ? p->wish.max_wr : MAX_WR;
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = s,
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.srq = s->srq,
		.cap = {.max_send_wr = max_wr,
			.max_recv_wr = max_wr,
			.max_send_sge = MAX_SGE,
			.max_recv_sge = MAX_SGE,
			.max_inline_data = MAX_INLINE},
		.qp_type = p->wish.type,
		.sq_sig_all = p->wish.all_signaled,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = p->pd,
	};

	if (p->wish.extended) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = all_ops(p->wish.type);
	}
	s->qp = ibv_create_qp_ex(p->ctx, &attr);
	assert_non_null(s->qp);
	s->qp_ex = ibv_qp_to_qp_ex(s->qp);
	assert_int_equal(s->qp_ex != NULL, p->wish.extended);
}

static void side_make(struct pair *p, int which)
{
	struct side *s = &p->side[which];
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = MAX_WR, .max_sge = MAX_SGE}};
	struct ibv_ah_attr ah = pair_ah_attr(p);

	s->buf = aligned_alloc(4096, BUF_BYTES);
	assert_non_null(s->buf);
	memset(s->buf, 0, BUF_BYTES);
	s->mr = ibv_reg_mr(p->pd, s->buf, BUF_BYTES, ACCESS_ALL);
	assert_non_null(s->mr);
	cq_make(p, s);
	if (p->wish.with_srq && which == B) {
		s->srq = ibv_create_srq(p->pd, &srq);
		assert_non_null(s->srq);
	}
	qp_make(p, s);
	if (p->wish.type == IBV_QPT_UD) {
		s->ah = ibv_create_ah(p->pd, &ah);
		assert_non_null(s->ah);
	}
}

struct pair *pair_make(struct pair *p, struct wishes wish)
{
	memset(p, 0, sizeof(*p));
	if (!wish.type)
		wish.type = IBV_QPT_RC;
	p->wish = wish;
	p->ctx = device_open();
	p->gid_index = gid_pick(p->ctx, &p->gid);
	p->pd = ibv_alloc_pd(p->ctx);
	assert_non_null(p->pd);
	side_make(p, A);
	side_make(p, B);
	if (!wish.unconnected)
		pair_connect(p);
	return p;
}

int step_init(struct pair *p, int side)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qkey = QKEY,
		.qp_access_flags = side == B && p->wish.qp_access
					   ? p->wish.qp_access
					   : IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
						     IBV_ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL |
						     ACCESS_FLUSH_PERSISTENT,
	};

	return ibv_modify_qp(p->side[side].qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     (p->wish.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

int step_rtr(struct pair *p, int side)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = p->wish.mtu ? p->wish.mtu : IBV_MTU_1024,
		.dest_qp_num = p->side[!side].qp->qp_num,
		.rq_psn = p->wish.psn ? p->wish.psn : PSN,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = pair_ah_attr(p),
	};
	int mask = IBV_QP_STATE;

	if (p->wish.type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (p->wish.type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(p->side[side].qp, &attr, mask);
}

int step_rts(struct pair *p, int side)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = p->wish.psn ? p->wish.psn : PSN,
		.timeout = p->wish.timeout ? p->wish.timeout : 14,
		.retry_cnt = p->wish.retry_cnt_given ? p->wish.retry_cnt : 7,
		.rnr_retry = p->wish.rnr_retry_given ? p->wish.rnr_retry : 7,
		.max_rd_atomic = 4,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (p->wish.type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(p->side[side].qp, &attr, mask);
}

int state_set(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

void pair_connect(struct pair *p)
{
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(step_init(p, i), 0);
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(step_rtr(p, i), 0);
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(step_rts(p, i), 0);
}

void pair_destroy(struct pair *p)
{
	for (int i = 0; i < SIDES; i++) {
		struct side *s = &p->side[i];

		if (s->ah)
			assert_int_equal(ibv_destroy_ah(s->ah), 0);
		if (s->qp)
			assert_int_equal(ibv_destroy_qp(s->qp), 0);
		if (s->srq)
			assert_int_equal(ibv_destroy_srq(s->srq), 0);
		if (s->cq)
			assert_int_equal(ibv_destroy_cq(s->cq), 0);
		if (s->channel)
			assert_int_equal(ibv_destroy_comp_channel(s->channel), 0);
		if (s->mr)
			assert_int_equal(ibv_dereg_mr(s->mr), 0);
		free(s->buf);
	}
	assert_int_equal(ibv_dealloc_pd(p->pd), 0);
	assert_int_equal(ibv_close_device(p->ctx), 0);
}

struct ibv_sge sge_at(const struct pair *p, int side, size_t offset, uint32_t length)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)p->side[side].buf + offset, .length = length, .lkey = p->side[side].mr->lkey};
}

void recv_post(struct pair *p, int side, uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = sge_at(p, side, offset, length);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = length ? 1 : 0}, *bad;

	if (p->side[side].srq)
		assert_int_equal(ibv_post_srq_recv(p->side[side].srq, &wr, &bad), 0);
	else
		assert_int_equal(ibv_post_recv(p->side[side].qp, &wr, &bad), 0);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct ibv_wc wc_await(struct ibv_cq *cq)
{
	int64_t until = now_ms() + AWAIT_MS;
	struct ibv_wc wc = {0};
	int n;

	do {
		n = ibv_poll_cq(cq, 1, &wc);
	} while (n == 0 && now_ms() < until);
	assert_int_equal(n, 1);
	return wc;
}

void wc_none(struct ibv_cq *cq, int ms)
{
	int64_t until = now_ms() + ms;
	struct ibv_wc wc;

	do {
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
	} while (now_ms() < until);
}

void pattern_fill(uint8_t *to, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)(i * 7 + (i >> 8) + seed);
}

void pattern_check(const uint8_t *from, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		if (from[i] != (uint8_t)(i * 7 + (i >> 8) + seed))
			fail_msg("byte %zu of %zu is %#x", i, len, from[i]);
}
