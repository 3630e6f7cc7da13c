/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC in one process: domains, SRQs with numbers, and queue pairs that receive for all SRQs of a domain. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"
#include "support/test.h"

enum { BYTES = 20000, MESSAGE = 5000, SRQS = 2 };

/* A owns the sender; each SRQ has a PD, a CQ and a region of its own. */
struct xrc {
	struct pair p;
	struct ibv_xrcd *xrcd;
	struct ibv_qp *send, *recv;
	struct owner {
		struct ibv_pd *pd;
		struct ibv_cq *cq;
		struct ibv_srq *srq;
		struct ibv_mr *mr;
		uint8_t *buf;
		uint32_t srqn;
	} owner[SRQS];
};

static const uint32_t xrcd_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;

static struct ibv_xrcd *domain(struct ibv_context *ctx, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask = xrcd_mask, .fd = fd, .oflags = oflags};

	errno = 0;
	return ibv_open_xrcd(ctx, &attr);
}

static struct ibv_qp *recv_qp(struct ibv_context *ctx, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};

	return ibv_create_qp_ex(ctx, &attr);
}

static void owner_make(struct xrc *x, struct owner *o)
{
	struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 10, .max_sge = 1},
					    .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
							 IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
					    .srq_type = IBV_SRQT_XRC,
					    .xrcd = x->xrcd};

	o->pd = ibv_alloc_pd(x->p.ctx);
	o->cq = ibv_create_cq(x->p.ctx, 10, NULL, NULL, 0);
	o->buf = calloc(1, BYTES);
	o->mr = ibv_reg_mr(o->pd, o->buf, BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC);
	attr.pd = o->pd;
	attr.cq = o->cq;
	o->srq = ibv_create_srq_ex(x->p.ctx, &attr);
	assert_non_null(o->srq);
	assert_int_equal(ibv_get_srq_num(o->srq, &o->srqn), 0);
	assert_true(o->srqn && o->srqn < 1 << 24);
}

static void owner_destroy(struct owner *o)
{
	if (o->srq)
		assert_int_equal(ibv_destroy_srq(o->srq), 0);
	assert_int_equal(ibv_destroy_cq(o->cq), 0);
	assert_int_equal(ibv_dereg_mr(o->mr), 0);
	assert_int_equal(ibv_dealloc_pd(o->pd), 0);
	free(o->buf);
}

static void to_rts(struct xrc *x, struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags =
					   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
	bool sends = qp == x->send;

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
			 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = dest,
				    .max_dest_rd_atomic = 4,
				    .min_rnr_timer = 1,
				    .ah_attr = pair_ah_attr(&x->p)};
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       (sends ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)),
			 0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
	assert_int_equal(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
				      (sends ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)),
		0);
}

static void xrc_make(struct xrc *x)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_SEND,
					   .comp_mask = IBV_QP_INIT_ATTR_PD,
					   .cap = {.max_send_wr = 10, .max_send_sge = 1},
					   .sq_sig_all = 1};

	pair_make(&x->p, (struct wishes){.unconnected = true});
	x->xrcd = domain(x->p.ctx, -1, O_CREAT);
	assert_non_null(x->xrcd);
	for (int i = 0; i < SRQS; i++)
		owner_make(x, &x->owner[i]);
	attr.pd = x->p.pd;
	attr.send_cq = x->p.side[A].cq;
	x->send = ibv_create_qp_ex(x->p.ctx, &attr);
	x->recv = recv_qp(x->p.ctx, x->xrcd);
	assert_non_null(x->send);
	assert_non_null(x->recv);
	to_rts(x, x->recv, x->send->qp_num);
	to_rts(x, x->send, x->recv->qp_num);
}

static void xrc_destroy(struct xrc *x)
{
	assert_int_equal(ibv_close_xrcd(x->xrcd), EBUSY);
	assert_int_equal(ibv_destroy_qp(x->send), 0);
	assert_int_equal(ibv_destroy_qp(x->recv), 0);
	for (int i = 0; i < SRQS; i++)
		owner_destroy(&x->owner[i]);
	assert_int_equal(ibv_close_xrcd(x->xrcd), 0);
	pair_destroy(&x->p);
}

static void recv_at(struct owner *o, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)o->buf, MESSAGE, o->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_srq_recv(o->srq, &wr, &bad), 0);
}

static struct ibv_wc operation(struct xrc *x, enum ibv_wr_opcode op, const struct owner *o, uint32_t srqn)
{
	uint32_t len = op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : MESSAGE;
	struct ibv_sge sge = {(uintptr_t)x->p.side[A].buf, len, x->p.side[A].mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = op}, *bad;

	wr.qp_type.xrc.remote_srqn = srqn;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)o->buf;
		wr.wr.atomic.rkey = o->mr->rkey;
		wr.wr.atomic.compare_add = 3;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)o->buf;
		wr.wr.rdma.rkey = o->mr->rkey;
	}
	assert_int_equal(ibv_post_send(x->send, &wr, &bad), 0);
	return wc_await(x->p.side[A].cq);
}

static void succeed(struct xrc *x, enum ibv_wr_opcode op, const struct owner *o)
{
	assert_int_equal(operation(x, op, o, o->srqn).status, IBV_WC_SUCCESS);
}

/* Each message finds the receives, the CQ and the memory of the SRQ that it names. */
TEST(one_queue_pair_receives_for_all_srqs)
{
	struct xrc x;

	xrc_make(&x);
	assert_int_not_equal(x.owner[0].srqn, x.owner[1].srqn);
	for (unsigned round = 0; round < 3; round++) {
		for (int i = 0; i < SRQS; i++) {
			struct owner *o = &x.owner[i];
			uint64_t number = 39;
			struct ibv_wc wc;

			recv_at(o, 100 + (uint64_t)i);
			pattern_fill(x.p.side[A].buf, MESSAGE, round + 7 * (unsigned)i);
			succeed(&x, IBV_WR_SEND, o);
			wc = wc_await(o->cq);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			assert_int_equal(wc.wr_id, 100 + i);
			assert_int_equal(wc.byte_len, MESSAGE);
			assert_int_equal(wc.qp_num, x.recv->qp_num);
			pattern_check(o->buf, MESSAGE, round + 7 * (unsigned)i);
			pattern_fill(x.p.side[A].buf, MESSAGE, round + 1);
			succeed(&x, IBV_WR_RDMA_WRITE, o);
			pattern_check(o->buf, MESSAGE, round + 1);
			pattern_fill(o->buf, MESSAGE, round + 2);
			succeed(&x, IBV_WR_RDMA_READ, o);
			pattern_check(x.p.side[A].buf, MESSAGE, round + 2);
			memcpy(o->buf, &number, sizeof(number));
			succeed(&x, IBV_WR_ATOMIC_FETCH_AND_ADD, o);
			memcpy(&number, x.p.side[A].buf, sizeof(number));
			assert_int_equal(number, 39);
			memcpy(&number, o->buf, sizeof(number));
			assert_int_equal(number, 42);
		}
	}
	xrc_destroy(&x);
}

/* READs for one SRQ are answered while messages for another one arrive. */
TEST(responses_are_of_the_srq_that_was_asked)
{
	struct ibv_send_wr wr[2], *bad;
	struct ibv_sge sge[2];
	struct xrc x;

	xrc_make(&x);
	for (unsigned round = 0; round < 10; round++) {
		for (int i = 0; i < 2; i++) {
			struct owner *o = &x.owner[i];

			sge[i] = (struct ibv_sge){(uintptr_t)x.p.side[A].buf + (uintptr_t)(i * MESSAGE), MESSAGE,
						  x.p.side[A].mr->lkey};
			wr[i] = (struct ibv_send_wr){.wr_id = (uint64_t)i,
						     .sg_list = &sge[i],
						     .num_sge = 1,
						     .opcode = i ? IBV_WR_SEND : IBV_WR_RDMA_READ};
			wr[i].wr.rdma.remote_addr = (uintptr_t)o->buf;
			wr[i].wr.rdma.rkey = o->mr->rkey;
			wr[i].qp_type.xrc.remote_srqn = o->srqn;
		}
		wr[0].next = &wr[1];
		pattern_fill(x.owner[0].buf, MESSAGE, round);
		pattern_fill(x.p.side[A].buf + MESSAGE, MESSAGE, round + 1);
		recv_at(&x.owner[1], 5);
		assert_int_equal(ibv_post_send(x.send, wr, &bad), 0);
		assert_int_equal(wc_await(x.p.side[A].cq).status, IBV_WC_SUCCESS);
		assert_int_equal(wc_await(x.p.side[A].cq).status, IBV_WC_SUCCESS);
		assert_int_equal(wc_await(x.owner[1].cq).status, IBV_WC_SUCCESS);
		pattern_check(x.p.side[A].buf, MESSAGE, round);
		pattern_check(x.owner[1].buf, MESSAGE, round + 1);
	}
	xrc_destroy(&x);
}

static void expect_refused(struct xrc *x, enum ibv_wr_opcode op, const struct owner *o, uint32_t srqn,
			   enum ibv_wc_status status, enum ibv_event_type type)
{
	struct ibv_async_event event;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	assert_int_equal(operation(x, op, o, srqn).status, status);
	assert_int_equal(ibv_query_qp(x->recv, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	do {
		assert_int_equal(ibv_get_async_event(x->p.ctx, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_COMM_EST);
	assert_int_equal(event.event_type, type);
	assert_ptr_equal(event.element.qp, x->recv);
}

/* Programs that look at no events wait for good then, so the reason is told once, unless VERBENA_QUIET is set. */
TEST(the_end_of_a_shared_domain_is_told)
{
	for (int quiet = 1; quiet >= 0; quiet--) {
		int mine = dup(STDERR_FILENO), file = memfd_create("stderr", MFD_CLOEXEC);
		char text[1024] = "";
		struct xrc x;

		assert_true(mine >= 0 && file >= 0);
		if (quiet)
			setenv("VERBENA_QUIET", "1", 1);
		xrc_make(&x);
		unsetenv("VERBENA_QUIET");
		dup2(file, STDERR_FILENO);
		expect_refused(&x, IBV_WR_SEND, &x.owner[0], x.owner[0].srqn ^ 1, IBV_WC_REM_INV_REQ_ERR,
			       IBV_EVENT_QP_ACCESS_ERR);
		dup2(mine, STDERR_FILENO);
		assert_true(pread(file, text, sizeof(text) - 1, 0) >= 0);
		assert_int_equal(strstr(text, "an XRC domain is not shared between processes") != NULL, !quiet);
		close(file);
		close(mine);
		xrc_destroy(&x);
	}
}

TEST(an_srq_that_is_not_there_ends_the_connection)
{
	enum { NOBODYS, ANOTHER_DOMAINS, DESTROYED, KINDS };

	for (int kind = 0; kind < KINDS; kind++) {
		struct xrc x, other;
		uint32_t srqn;

		xrc_make(&x);
		srqn = x.owner[0].srqn;
		recv_at(&x.owner[0], 1);
		succeed(&x, IBV_WR_SEND, &x.owner[0]);
		if (kind == NOBODYS) {
			while (srqn == x.owner[0].srqn || srqn == x.owner[1].srqn)
				srqn = (srqn + 1) & 0xffffff;
		} else if (kind == ANOTHER_DOMAINS) {
			xrc_make(&other);
			srqn = other.owner[0].srqn;
		} else {
			assert_int_equal(ibv_destroy_srq(x.owner[0].srq), 0);
			x.owner[0].srq = NULL;
		}
		expect_refused(&x, kind == DESTROYED ? IBV_WR_RDMA_READ : IBV_WR_SEND, &x.owner[0], srqn,
			       IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR);
		if (kind == ANOTHER_DOMAINS)
			xrc_destroy(&other);
		xrc_destroy(&x);
	}
}

/* The R_Key is judged in the PD of the SRQ, not in another one's. */
TEST(memory_of_another_srqs_pd_stays_closed)
{
	struct xrc x;

	xrc_make(&x);
	expect_refused(&x, IBV_WR_RDMA_WRITE, &x.owner[1], x.owner[0].srqn, IBV_WC_REM_ACCESS_ERR,
		       IBV_EVENT_QP_ACCESS_ERR);
	xrc_destroy(&x);
}

TEST(a_domain_is_the_files)
{
	struct ibv_context *ctx = device_open();
	char name[] = "/tmp/verbs_xrc_XXXXXX";
	int fd = mkstemp(name);
	struct ibv_xrcd *first, *second, *own;
	struct ibv_qp *qp, *again;
	struct ibv_qp_open_attr open = {.comp_mask =
						IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
					.qp_type = IBV_QPT_XRC_RECV};
	struct ibv_xrcd_init_attr bad = {.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1};

	assert_true(fd >= 0);
	unlink(name);
	assert_null(ibv_open_xrcd(ctx, &bad));
	assert_int_equal(errno, EINVAL);
	assert_null(domain(ctx, fd, 0));
	assert_int_equal(errno, EAGAIN);
	assert_null(domain(ctx, 12345, O_CREAT));
	assert_int_equal(errno, EBADF);
	first = domain(ctx, fd, O_CREAT | O_EXCL);
	assert_non_null(first);
	assert_null(domain(ctx, fd, O_CREAT | O_EXCL));
	assert_int_equal(errno, EINVAL);
	second = domain(ctx, fd, 0);
	own = domain(ctx, -1, O_CREAT);
	assert_non_null(second);
	qp = recv_qp(ctx, first);
	assert_non_null(qp);
	/* A queue pair can be opened by its number in its domain, and lives as long as a handle of it. */
	open.qp_num = qp->qp_num;
	open.xrcd = own;
	assert_null(ibv_open_qp(ctx, &open));
	assert_int_equal(errno, EINVAL);
	open.xrcd = second;
	again = ibv_open_qp(ctx, &open);
	assert_non_null(again);
	assert_int_equal(again->qp_num, qp->qp_num);
	assert_int_equal(ibv_close_xrcd(first), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_close_xrcd(second), EBUSY);
	assert_int_equal(state_set(again, IBV_QPS_ERR), 0);
	assert_int_equal(ibv_destroy_qp(again), 0);
	open.qp_num = 5;
	assert_null(ibv_open_qp(ctx, &open));
	assert_int_equal(ibv_close_xrcd(second), 0);
	assert_int_equal(ibv_close_xrcd(own), 0);
	close(fd);
	assert_int_equal(ibv_close_device(ctx), 0);
}

/* What an XRC queue pair lacks is refused, and a device that is closed takes everything with it. */
TEST(halves_do_not_do_the_others_work)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_recv_wr rwr = {.wr_id = 1}, *bad_recv;
	struct ibv_qp_init_attr on_srq = {.qp_type = IBV_QPT_RC};
	struct xrc x;

	xrc_make(&x);
	assert_int_not_equal(ibv_post_send(x.recv, &wr, &bad), 0);
	assert_int_not_equal(ibv_post_recv(x.recv, &rwr, &bad_recv), 0);
	assert_int_not_equal(ibv_post_recv(x.send, &rwr, &bad_recv), 0);
	on_srq.send_cq = on_srq.recv_cq = x.p.side[A].cq;
	on_srq.srq = x.owner[0].srq;
	assert_null(ibv_create_qp(x.p.pd, &on_srq));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(state_set(x.recv, IBV_QPS_RESET), 0);
	assert_int_equal(state_set(x.send, IBV_QPS_ERR), 0);
	xrc_destroy(&x);
}

/*
 * An XRC_RECV queue pair shows the PD that it was created with: librdmacm gives one and makes the SRQ with what it
 * finds there. All the same it does nothing with it.
 */
TEST(an_unused_pd_is_shown)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV,
					   .comp_mask = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_PD};
	struct ibv_mw_bind unbind = {.wr_id = 1};
	struct ibv_qp *plain, *qp;
	struct ibv_mw *mw;
	struct xrc x;

	xrc_make(&x);
	attr.xrcd = x.xrcd;
	attr.pd = x.p.pd;
	qp = ibv_create_qp_ex(x.p.ctx, &attr);
	plain = recv_qp(x.p.ctx, x.xrcd);
	assert_non_null(qp);
	assert_ptr_equal(qp->pd, x.p.pd);
	assert_null(plain->pd);
	to_rts(&x, qp, x.send->qp_num);
	mw = ibv_alloc_mw(x.p.pd, IBV_MW_TYPE_1);
	assert_non_null(mw);
	assert_int_not_equal(ibv_bind_mw(qp, mw, &unbind), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(plain), 0);
	xrc_destroy(&x);
}
