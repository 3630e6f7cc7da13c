/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows as programs use them: what the calls return, who may do what, the keys in the public struct. */
#include "pair.h"
#include "support/test.h"

enum { WINDOW_AT = 4096, WINDOW_BYTES = 1000, REMOTE = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };

/* B binds windows to a region of its own; A reads and writes. */
struct windows {
	struct pair p;
	struct ibv_mr *mr;
	uint8_t *buf;
};

static void windows_make(struct windows *w, struct wishes wish)
{
	pair_make(&w->p, wish);
	w->buf = aligned_alloc(4096, BUF_BYTES);
	assert_non_null(w->buf);
	memset(w->buf, 0, BUF_BYTES);
	w->mr = ibv_reg_mr(w->p.pd, w->buf, BUF_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	assert_non_null(w->mr);
}

static void windows_destroy(struct windows *w)
{
	assert_int_equal(ibv_dereg_mr(w->mr), 0);
	free(w->buf);
	pair_destroy(&w->p);
}

static struct ibv_mw_bind_info info_of(const struct windows *w)
{
	return (struct ibv_mw_bind_info){
		.mr = w->mr, .addr = (uintptr_t)w->buf + WINDOW_AT, .length = WINDOW_BYTES, .mw_access_flags = REMOTE};
}

static int post(struct pair *p, int side, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;

	wr.send_flags |= IBV_SEND_SIGNALED;
	return ibv_post_send(p->side[side].qp, &wr, &bad);
}

static void expect(struct pair *p, int side, uint64_t wr_id, enum ibv_wc_status status, int opcode)
{
	struct ibv_wc wc = wc_await(p->side[side].cq);

	assert_int_equal(wc.wr_id, wr_id);
	assert_string_equal(ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
	if (status == IBV_WC_SUCCESS)
		assert_int_equal(wc.opcode, opcode);
}

/* A writes to the window's first bytes by that key, and how it ends. */
static void write_by(struct windows *w, uint32_t rkey, uint64_t addr, enum ibv_wc_status status)
{
	struct ibv_sge sge = sge_at(&w->p, A, 0, 100);
	struct ibv_send_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	pattern_fill(w->p.side[A].buf, 100, rkey);
	assert_int_equal(post(&w->p, A, wr), 0);
	expect(&w->p, A, 7, status, IBV_WC_RDMA_WRITE);
	if (status == IBV_WC_SUCCESS)
		pattern_check(w->buf + WINDOW_AT, 100, rkey);
}

static struct ibv_send_wr bind_wr(const struct windows *w, struct ibv_mw *mw, uint32_t rkey)
{
	struct ibv_send_wr wr = {.wr_id = 5, .opcode = IBV_WR_BIND_MW};

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = info_of(w);
	return wr;
}

TEST(type_1_has_a_new_key_when_the_bind_returns)
{
	struct windows w;
	struct ibv_mw *mw;
	uint32_t first, second;

	windows_make(&w, (struct wishes){0});
	mw = ibv_alloc_mw(w.p.pd, IBV_MW_TYPE_1);
	assert_non_null(mw);
	assert_ptr_equal(mw->pd, w.p.pd);
	assert_int_equal(mw->type, IBV_MW_TYPE_1);
	first = mw->rkey;
	struct ibv_mw_bind bind = {.wr_id = 5, .send_flags = IBV_SEND_SIGNALED, .bind_info = info_of(&w)};

	assert_int_equal(ibv_bind_mw(w.p.side[B].qp, mw, &bind), 0);
	assert_int_not_equal(mw->rkey, first);
	first = mw->rkey;
	expect(&w.p, B, 5, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
	write_by(&w, first, bind.bind_info.addr, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(w.mr), EBUSY);
	assert_int_equal(ibv_rereg_mr(w.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(ibv_bind_mw(w.p.side[B].qp, mw, &bind), 0);
	expect(&w.p, B, 5, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
	second = mw->rkey;
	assert_int_not_equal(second, first);
	write_by(&w, second, bind.bind_info.addr, IBV_WC_SUCCESS);
	write_by(&w, first, bind.bind_info.addr, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	windows_destroy(&w);
}

/* Bound, written through, unbound with that region or none, and written by the key before or after. */
static void unbound(bool with_region, bool new_key)
{
	struct windows w;
	struct ibv_mw *mw;
	uint32_t rkey;

	windows_make(&w, (struct wishes){0});
	mw = ibv_alloc_mw(w.p.pd, IBV_MW_TYPE_1);
	assert_non_null(mw);
	struct ibv_mw_bind bind = {.wr_id = 5, .send_flags = IBV_SEND_SIGNALED, .bind_info = info_of(&w)};

	assert_int_equal(ibv_bind_mw(w.p.side[B].qp, mw, &bind), 0);
	expect(&w.p, B, 5, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
	rkey = mw->rkey;
	write_by(&w, rkey, bind.bind_info.addr, IBV_WC_SUCCESS);
	bind.bind_info = (struct ibv_mw_bind_info){.mr = with_region ? w.mr : NULL};
	assert_int_equal(ibv_bind_mw(w.p.side[B].qp, mw, &bind), 0);
	expect(&w.p, B, 5, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
	assert_int_not_equal(mw->rkey, rkey);
	write_by(&w, new_key ? mw->rkey : rkey, (uintptr_t)w.buf + WINDOW_AT, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	windows_destroy(&w);
}

TEST(type_1_opens_nothing_once_unbound)
{
	for (int i = 0; i < 4; i++)
		unbound(i & 1, i & 2);
}

TEST(type_2_goes_through_the_builder)
{
	struct windows w;
	struct ibv_qp_ex *qp;
	struct ibv_mw *mw;
	uint32_t rkey;

	windows_make(&w, (struct wishes){.extended = true, .all_signaled = true});
	qp = w.p.side[B].qp_ex;
	mw = ibv_alloc_mw(w.p.pd, IBV_MW_TYPE_2);
	assert_non_null(mw);
	struct ibv_mw_bind_info info = info_of(&w);

	info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	for (int round = 0; round < 3; round++) {
		rkey = ibv_inc_rkey(mw->rkey);
		ibv_wr_start(qp);
		qp->wr_id = 5;
		ibv_wr_bind_mw(qp, mw, rkey, &info);
		assert_int_equal(ibv_wr_complete(qp), 0);
		expect(&w.p, B, 5, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
		mw->rkey = rkey;
		write_by(&w, rkey, 0, IBV_WC_SUCCESS);
		ibv_wr_start(qp);
		qp->wr_id = 6;
		ibv_wr_local_inv(qp, rkey);
		assert_int_equal(ibv_wr_complete(qp), 0);
		expect(&w.p, B, 6, IBV_WC_SUCCESS, IBV_WC_LOCAL_INV);
	}
	write_by(&w, rkey, 0, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	windows_destroy(&w);
}

/* Suites bind with any number: only its low 8 bits are the program's. */
TEST(type_2_keeps_its_index)
{
	static const uint32_t asked[] = {0x11, 0xffffff12, 0xdead0011, 0};
	struct windows w;
	struct ibv_qp_ex *qp;
	struct ibv_mw *mw;
	uint32_t index;

	windows_make(&w, (struct wishes){.extended = true, .all_signaled = true});
	qp = w.p.side[B].qp_ex;
	mw = ibv_alloc_mw(w.p.pd, IBV_MW_TYPE_2);
	assert_non_null(mw);
	index = mw->rkey & ~0xffu;
	struct ibv_mw_bind_info info = info_of(&w);

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		mw->rkey = 0; /* what the program writes there does not matter */
		if (i % 2) {
			ibv_wr_start(qp);
			qp->wr_id = 5;
			ibv_wr_bind_mw(qp, mw, asked[i], &info);
			assert_int_equal(ibv_wr_complete(qp), 0);
		} else {
			assert_int_equal(post(&w.p, B, bind_wr(&w, mw, asked[i])), 0);
		}
		assert_int_equal(mw->rkey, index | (asked[i] & 0xff));
		expect(&w.p, B, 5, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
		write_by(&w, mw->rkey, info.addr, IBV_WC_SUCCESS);
		assert_int_equal(
			post(&w.p, B,
			     (struct ibv_send_wr){.wr_id = 6, .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = mw->rkey}),
			0);
		expect(&w.p, B, 6, IBV_WC_SUCCESS, IBV_WC_LOCAL_INV);
	}
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	windows_destroy(&w);
}

TEST(send_with_invalidate_frees_the_window)
{
	struct windows w;
	struct ibv_mw *mw;
	struct ibv_sge sge;
	struct ibv_wc wc;

	windows_make(&w, (struct wishes){0});
	mw = ibv_alloc_mw(w.p.pd, IBV_MW_TYPE_2);
	assert_non_null(mw);
	mw->rkey = ibv_inc_rkey(mw->rkey);
	struct ibv_send_wr bind = bind_wr(&w, mw, mw->rkey);

	bind.bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND; /* dropped */
	assert_int_equal(post(&w.p, B, bind), 0);
	expect(&w.p, B, 5, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
	recv_post(&w.p, B, 50, 0, 100);
	sge = sge_at(&w.p, A, 0, 100);
	assert_int_equal(post(&w.p, A,
			      (struct ibv_send_wr){.wr_id = 8,
						   .sg_list = &sge,
						   .num_sge = 1,
						   .opcode = IBV_WR_SEND_WITH_INV,
						   .invalidate_rkey = mw->rkey}),
			 0);
	expect(&w.p, A, 8, IBV_WC_SUCCESS, IBV_WC_SEND);
	wc = wc_await(w.p.side[B].cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, mw->rkey);
	/* It is free: the region is not busy, and it may be bound again. */
	assert_int_equal(ibv_dereg_mr(w.mr), 0);
	w.mr = ibv_reg_mr(w.p.pd, w.buf, BUF_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	assert_int_equal(post(&w.p, B, bind_wr(&w, mw, mw->rkey)), 0);
	expect(&w.p, B, 5, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	windows_destroy(&w);
}

TEST(calls_refuse_what_no_window_does)
{
	struct windows w;
	struct ibv_mw *mw[3];
	struct ibv_pd *other;
	struct ibv_mw_bind bind = {.wr_id = 1};
	struct ibv_send_wr wr;

	windows_make(&w, (struct wishes){0});
	bind.bind_info = info_of(&w);
	other = ibv_alloc_pd(w.p.ctx);
	mw[1] = ibv_alloc_mw(w.p.pd, IBV_MW_TYPE_1);
	mw[2] = ibv_alloc_mw(w.p.pd, IBV_MW_TYPE_2);
	mw[0] = ibv_alloc_mw(other, IBV_MW_TYPE_1);
	errno = 0;
	assert_null(ibv_alloc_mw(w.p.pd, (enum ibv_mw_type)3));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(other), EBUSY);
	/* ibv_bind_mw() is for type 1, ibv_post_send() for type 2. */
	assert_int_equal(ibv_bind_mw(w.p.side[B].qp, mw[2], &bind), EINVAL);
	assert_int_equal(post(&w.p, B, bind_wr(&w, mw[1], mw[1]->rkey)), EINVAL);
	assert_int_equal(ibv_bind_mw(w.p.side[B].qp, mw[0], &bind), EPERM);
	bind.bind_info.mr = NULL;
	bind.bind_info.length = 0;
	bind.bind_info.addr = 0;
	assert_int_equal(ibv_bind_mw(w.p.side[B].qp, mw[0], &bind), EPERM);
	bind.bind_info = info_of(&w);
	bind.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	assert_int_equal(ibv_bind_mw(w.p.side[B].qp, mw[1], &bind), EINVAL);
	wr = bind_wr(&w, mw[2], mw[2]->rkey);
	wr.bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_ON_DEMAND;
	assert_int_equal(post(&w.p, B, wr), EINVAL);
	wr = bind_wr(&w, NULL, 0);
	assert_int_equal(post(&w.p, B, wr), EINVAL);
	/* What only the queue can judge fails there. */
	wr = bind_wr(&w, mw[2], mw[2]->rkey);
	wr.bind_mw.bind_info.mr = w.p.side[B].mr; /* may not be bound to */
	assert_int_equal(post(&w.p, B, wr), 0);
	expect(&w.p, B, 5, IBV_WC_MW_BIND_ERR, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_dealloc_mw(mw[i]), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	windows_destroy(&w);
}

/* A window freed, and a region deregistered, between the post and the turn of the request. */
TEST(request_outlives_what_it_names)
{
	struct windows w;
	struct ibv_mw *mw;
	struct ibv_send_wr wr;

	windows_make(&w, (struct wishes){.unconnected = true});
	assert_int_equal(step_init(&w.p, B), 0);
	assert_int_equal(step_rtr(&w.p, B), 0);
	assert_int_equal(step_rts(&w.p, B), 0);
	assert_int_equal(state_set(w.p.side[B].qp, IBV_QPS_SQD), 0);
	mw = ibv_alloc_mw(w.p.pd, IBV_MW_TYPE_2);
	wr = bind_wr(&w, mw, mw->rkey);
	assert_int_equal(post(&w.p, B, wr), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(state_set(w.p.side[B].qp, IBV_QPS_RTS), 0);
	expect(&w.p, B, 5, IBV_WC_MW_BIND_ERR, 0);
	windows_destroy(&w);
}

TEST(closing_the_device_takes_bound_windows)
{
	static struct windows w; /* the structs remain the program's, and are still there at the end */
	struct ibv_mw *mw;

	windows_make(&w, (struct wishes){0});
	mw = ibv_alloc_mw(w.p.pd, IBV_MW_TYPE_2);
	assert_int_equal(post(&w.p, B, bind_wr(&w, mw, mw->rkey)), 0);
	expect(&w.p, B, 5, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
	assert_int_equal(ibv_close_device(w.p.ctx), 0);
}
