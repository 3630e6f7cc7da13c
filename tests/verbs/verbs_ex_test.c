/* SPDX-License-Identifier: BSD-2-Clause */
/* The extended ways to post and to poll. */
#include <endian.h>
#include <time.h>

#include "pair.h"
#include "support/test.h"

static struct ibv_poll_cq_attr no_attr;

static void start(struct ibv_cq_ex *cq)
{
	time_t until = time(NULL) + 6;
	int rc;

	do {
		rc = ibv_start_poll(cq, &no_attr);
	} while (rc == ENOENT && time(NULL) < until);
	assert_int_equal(rc, 0);
}

/* Replaces a side's CQ, which nothing was done with yet. */
static void side_move(struct pair *p, int side, struct ibv_cq *cq)
{
	struct side *s = &p->side[side];
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};

	assert_int_equal(ibv_destroy_qp(s->qp), 0);
	assert_int_equal(ibv_destroy_cq(s->cq), 0);
	s->cq = cq;
	s->qp = ibv_create_qp(p->pd, &init);
	assert_non_null(s->qp);
}

PAIR_TEST(readers_tell_what_a_completion_holds, .extended = true)
{
	uint64_t ts;
	struct timespec now;
	struct ibv_cq_ex *cq = p->side[B].cq_ex;

	assert_int_equal(ibv_start_poll(cq, &no_attr), ENOENT);
	for (uint64_t i = 0; i < 3; i++) {
		struct ibv_sge sge = sge_at(p, A, 0, 100);
		struct ibv_send_wr wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND_WITH_IMM,
					 .imm_data = htobe32(55),
					 .send_flags = IBV_SEND_SIGNALED};
		struct ibv_send_wr *bad;

		recv_post(p, B, 10 + i, 0, 100);
		assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
	}
	for (int i = 0; i < 3; i++)
		start(p->side[A].cq_ex), ibv_end_poll(p->side[A].cq_ex);
	start(cq);
	assert_int_equal(cq->wr_id, 10);
	assert_int_equal(cq->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_byte_len(cq), 100);
	assert_int_equal(ibv_wc_read_imm_data(cq), htobe32(55));
	assert_int_equal(ibv_wc_read_qp_num(cq), p->side[B].qp->qp_num);
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_slid(cq), 0);
	assert_int_equal(ibv_wc_read_dlid_path_bits(cq), 0);
	ts = ibv_wc_read_completion_ts(cq);
	clock_gettime(CLOCK_REALTIME, &now);
	assert_true(llabs((long long)ibv_wc_read_completion_wallclock_ns(cq) / 1000000000 - (long long)now.tv_sec) <
		    10);
	/* The plain receives may be posted while the completion is looked at. */
	recv_post(p, B, 20, 0, 100);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 11);
	assert_true(ibv_wc_read_completion_ts(cq) >= ts);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 12);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	assert_int_equal(ibv_start_poll(cq, &no_attr), ENOENT);
	{
		struct ibv_poll_cq_attr wrong = {.comp_mask = 1};

		assert_int_equal(ibv_start_poll(cq, &wrong), EINVAL);
	}
}

/* A completion's time stays the same, even if it is read late, often, or between others. */
PAIR_TEST(wallclock_times_are_fixed_and_never_go_back, .extended = true)
{
	enum { COMPLETIONS = 20, READINGS = 50 };
	uint64_t last_ns = 0, offset_ns = 0;

	for (uint64_t i = 0; i < COMPLETIONS; i++) {
		struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED},
				   *bad;
		struct ibv_cq_ex *cq = p->side[A].cq_ex;
		uint64_t wall_ns;

		assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
		start(cq);
		wall_ns = ibv_wc_read_completion_wallclock_ns(cq);
		for (int k = 0; k < READINGS; k++)
			assert_true(ibv_wc_read_completion_wallclock_ns(cq) == wall_ns);
		if (!i)
			offset_ns = wall_ns - ibv_wc_read_completion_ts(cq);
		assert_true(wall_ns - ibv_wc_read_completion_ts(cq) == offset_ns);
		assert_true(wall_ns >= last_ns);
		last_ns = wall_ns;
		ibv_end_poll(cq);
	}
}

PAIR_TEST(an_extended_cq_can_be_polled_plainly, .extended = true)
{
	struct ibv_send_wr wr = {.wr_id = 4, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *bad;

	assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
	assert_int_equal(wc_await(p->side[A].cq).wr_id, 4);
}

/*
 * A program looks at a completion and destroys or resets the queue pair that it is of, or gives its CQ more room,
 * before it ends the poll. Completions of a queue pair that is gone do not come any more.
 */
TEST(a_batch_holds_nobody_up_who_polls)
{
	enum { DESTROY, RESET, RESIZE, CALLS };

	for (int call = 0; call < 2 * CALLS; call++) {
		struct ibv_cq_init_attr_ex init = {.cqe = 16,
						   .wc_flags = IBV_WC_STANDARD_FLAGS,
						   .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
						   .flags = call < CALLS ? 0 : IBV_CREATE_CQ_ATTR_SINGLE_THREADED};
		struct ibv_cq_ex *cq;
		struct pair p;

		pair_make(&p, (struct wishes){.unconnected = true});
		cq = ibv_create_cq_ex(p.ctx, &init);
		assert_non_null(cq);
		side_move(&p, B, ibv_cq_ex_to_cq(cq));
		pair_connect(&p);
		for (uint64_t i = 0; i < 3; i++) {
			struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;

			recv_post(&p, B, i, 0, 0);
			assert_int_equal(ibv_post_send(p.side[A].qp, &wr, &bad), 0);
			assert_int_equal(wc_await(p.side[A].cq).status, IBV_WC_SUCCESS);
		}
		start(cq);
		assert_int_equal(cq->wr_id, 0);
		if (call % CALLS == DESTROY) {
			assert_int_equal(ibv_destroy_qp(p.side[B].qp), 0);
			p.side[B].qp = NULL;
		} else if (call % CALLS == RESET) {
			assert_int_equal(state_set(p.side[B].qp, IBV_QPS_RESET), 0);
		} else {
			assert_int_equal(ibv_resize_cq(p.side[B].cq, 100), 0);
			assert_int_equal(ibv_next_poll(cq), 0);
			assert_int_equal(cq->wr_id, 1);
			assert_int_equal(ibv_next_poll(cq), 0);
		}
		assert_int_equal(cq->status, IBV_WC_SUCCESS);
		assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
		assert_int_equal(ibv_next_poll(cq), ENOENT);
		ibv_end_poll(cq);
		assert_int_equal(ibv_start_poll(cq, &no_attr), ENOENT);
		pair_destroy(&p);
	}
}

/* A queue of one request: the next may be posted from within the poll that shows the last one's end. */
PAIR_TEST(a_slot_is_free_when_its_completion_is_seen, .extended = true, .max_wr = 1, .all_signaled = true)
{
	for (int i = 0; i < 10; i++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE}, *bad;

		while (ibv_post_send(p->side[A].qp, &wr, &bad) == 0)
			;
		start(p->side[A].cq_ex);
		assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
		ibv_end_poll(p->side[A].cq_ex);
	}
}

static struct ibv_wc built(struct pair *p, uint64_t wr_id)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_wr_complete(p->side[A].qp_ex), 0);
	wc = wc_await(p->side[A].cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
	return wc;
}

PAIR_TEST(the_builder_does_every_operation, .extended = true)
{
	struct ibv_wc wc;
	uint64_t remote, *word;
	uint32_t rkey;
	struct ibv_qp_ex *qp = p->side[A].qp_ex;

	assert_ptr_equal(qp, p->side[A].qp);
	remote = (uintptr_t)p->side[B].buf + 4096;
	rkey = p->side[B].mr->rkey;
	pattern_fill(p->side[A].buf, 1000, 1);
	qp->wr_flags = IBV_SEND_SIGNALED;

	recv_post(p, B, 1, 0, 1000);
	ibv_wr_start(qp);
	qp->wr_id = 1;
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, p->side[A].mr->lkey, (uintptr_t)p->side[A].buf, 1000);
	assert_int_equal(built(p, 1).opcode, IBV_WC_SEND);
	wc_await(p->side[B].cq);
	pattern_check(p->side[B].buf, 1000, 1);

	recv_post(p, B, 2, 0, 1000);
	ibv_wr_start(qp);
	qp->wr_id = 2;
	ibv_wr_send_imm(qp, htobe32(9));
	{
		struct ibv_data_buf parts[] = {{p->side[A].buf, 100}, {p->side[A].buf + 100, 50}};

		ibv_wr_set_inline_data_list(qp, 2, parts);
	}
	built(p, 2);
	wc = wc_await(p->side[B].cq);
	assert_int_equal(wc.byte_len, 150);
	assert_int_equal(wc.imm_data, htobe32(9));
	pattern_check(p->side[B].buf, 150, 1);

	ibv_wr_start(qp);
	qp->wr_id = 3;
	ibv_wr_rdma_write(qp, rkey, remote);
	{
		struct ibv_sge parts[] = {sge_at(p, A, 0, 300), sge_at(p, A, 300, 700)};

		ibv_wr_set_sge_list(qp, 2, parts);
	}
	assert_int_equal(built(p, 3).opcode, IBV_WC_RDMA_WRITE);
	pattern_check(p->side[B].buf + 4096, 1000, 1);

	recv_post(p, B, 4, 0, 0);
	ibv_wr_start(qp);
	qp->wr_id = 4;
	ibv_wr_rdma_write_imm(qp, rkey, remote, htobe32(77));
	ibv_wr_set_inline_data(qp, p->side[A].buf, 10);
	built(p, 4);
	wc = wc_await(p->side[B].cq);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.imm_data, htobe32(77));

	ibv_wr_start(qp);
	qp->wr_id = 5;
	ibv_wr_rdma_read(qp, rkey, remote);
	ibv_wr_set_sge(qp, p->side[A].mr->lkey, (uintptr_t)p->side[A].buf + 8192, 1000);
	assert_int_equal(built(p, 5).opcode, IBV_WC_RDMA_READ);
	pattern_check(p->side[A].buf + 8192, 1000, 1);

	word = (uint64_t *)(p->side[B].buf + 4096);
	*word = 5;
	ibv_wr_start(qp);
	qp->wr_id = 6;
	ibv_wr_atomic_fetch_add(qp, rkey, remote, 3);
	ibv_wr_set_sge(qp, p->side[A].mr->lkey, (uintptr_t)p->side[A].buf, 8);
	assert_int_equal(built(p, 6).opcode, IBV_WC_FETCH_ADD);
	assert_int_equal(*word, 8);
	assert_int_equal(*(uint64_t *)p->side[A].buf, 5);

	ibv_wr_start(qp);
	qp->wr_id = 7;
	ibv_wr_atomic_cmp_swp(qp, rkey, remote, 8, 99);
	ibv_wr_set_sge(qp, p->side[A].mr->lkey, (uintptr_t)p->side[A].buf, 8);
	assert_int_equal(built(p, 7).opcode, IBV_WC_COMP_SWAP);
	assert_int_equal(*word, 99);
}

/* IBTA A19. The word that is written is taken when it is posted. */
TEST(the_builder_flushes_and_writes_words)
{
	struct ibv_qp_ex *qp;
	struct pair p;
	uint64_t remote, value = UINT64_C(0x1122334455667788);
	uint32_t rkey;

	pair_make(&p, (struct wishes){.extended = true});
	qp = p.side[A].qp_ex;
	remote = (uintptr_t)p.side[B].buf + 4096;
	rkey = p.side[B].mr->rkey;
	pattern_fill(p.side[A].buf, 5000, 1);
	qp->wr_flags = IBV_SEND_SIGNALED;

	/* A WRITE, a FLUSH of it, and a word that says so. */
	ibv_wr_start(qp);
	qp->wr_flags = 0;
	ibv_wr_rdma_write(qp, rkey, remote);
	ibv_wr_set_sge(qp, p.side[A].mr->lkey, (uintptr_t)p.side[A].buf, 5000);
	wr_flush(qp, rkey, remote, 5000, FLUSH_GLOBAL, FLUSH_RANGE);
	qp->wr_flags = IBV_SEND_SIGNALED;
	qp->wr_id = 1;
	ibv_wr_atomic_write(qp, rkey, remote - 8, &value);
	value = 0;
	assert_int_equal(built(&p, 1).opcode, IBV_WC_ATOMIC_WRITE);
	pattern_check(p.side[B].buf + 4096, 5000, 1);
	assert_true(*(uint64_t *)(p.side[B].buf + 4088) == UINT64_C(0x1122334455667788));

	ibv_wr_start(qp);
	qp->wr_id = 2;
	wr_flush(qp, rkey, 0, 12345678, FLUSH_GLOBAL, FLUSH_MR);
	assert_int_equal(built(&p, 2).opcode, WC_FLUSH);

	/* Neither has data to be set, and a length has 32 bits. */
	ibv_wr_start(qp);
	wr_flush(qp, rkey, remote, 8, FLUSH_GLOBAL, FLUSH_RANGE);
	ibv_wr_set_inline_data(qp, p.side[A].buf, 8);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	ibv_wr_start(qp);
	ibv_wr_atomic_write(qp, rkey, remote, &value);
	ibv_wr_set_sge(qp, p.side[A].mr->lkey, (uintptr_t)p.side[A].buf, 8);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	ibv_wr_start(qp);
	wr_flush(qp, rkey, remote, UINT64_C(1) << 32, FLUSH_GLOBAL, FLUSH_RANGE);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	wc_none(p.side[A].cq, 5);

	/* The queue pair may, and no region does. */
	ibv_wr_start(qp);
	qp->wr_id = 3;
	wr_flush(qp, rkey, remote, 8, FLUSH_PERSISTENT, FLUSH_RANGE);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(wc_await(p.side[A].cq).status, IBV_WC_REM_ACCESS_ERR);
	pair_destroy(&p);
}

/* A QP that is not RC has neither. */
TEST(other_types_build_no_flush)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};
	static const uint64_t ops[] = {QP_EX_WITH_FLUSH, IBV_QP_EX_WITH_ATOMIC_WRITE};
	struct pair p;

	pair_make(&p, (struct wishes){.unconnected = true});
	for (int i = 0; i < 4; i++) {
		struct ibv_qp_init_attr_ex attr = {
			.send_cq = p.side[A].cq,
			.recv_cq = p.side[A].cq,
			.qp_type = types[i & 1],
			.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.pd = p.pd,
			.send_ops_flags = IBV_QP_EX_WITH_SEND | ops[i / 2]};

		errno = 0;
		assert_null(ibv_create_qp_ex(p.ctx, &attr));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	pair_destroy(&p);
}

PAIR_TEST(the_builder_addresses_datagrams, .type = IBV_QPT_UD, .extended = true)
{
	struct ibv_qp_ex *qp = p->side[A].qp_ex;

	pattern_fill(p->side[A].buf, 64, 2);
	recv_post(p, B, 1, 0, 200);
	recv_post(p, B, 2, 200, 200);
	ibv_wr_start(qp);
	for (uint64_t i = 0; i < 2; i++) {
		qp->wr_id = i;
		qp->wr_flags = i ? IBV_SEND_SIGNALED : 0;
		ibv_wr_send(qp);
		ibv_wr_set_ud_addr(qp, p->side[A].ah, p->side[B].qp->qp_num, QKEY);
		ibv_wr_set_inline_data(qp, p->side[A].buf, 64);
	}
	built(p, 1);
	for (uint64_t i = 1; i <= 2; i++) {
		struct ibv_wc wc = wc_await(p->side[B].cq);

		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.byte_len, 64 + GRH_BYTES);
		pattern_check(p->side[B].buf + (i - 1) * 200 + GRH_BYTES, 64, 2);
	}

	/* Without an address nothing goes. */
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, p->side[A].buf, 64);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
}

PAIR_TEST(an_error_sticks_and_nothing_is_posted, .extended = true)
{
	struct ibv_qp_ex *qp = p->side[A].qp_ex;

	qp->wr_flags = IBV_SEND_SIGNALED;

	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, p->side[B].mr->rkey, (uintptr_t)p->side[B].buf);
	ibv_wr_set_inline_data(qp, p->side[A].buf, 100000); /* too much */
	ibv_wr_rdma_write(qp, p->side[B].mr->rkey, (uintptr_t)p->side[B].buf);
	ibv_wr_set_inline_data(qp, p->side[A].buf, 1);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	wc_none(p->side[A].cq, 5);

	ibv_wr_start(qp);
	ibv_wr_set_inline_data(qp, p->side[A].buf, 1); /* of what? */
	assert_int_equal(ibv_wr_complete(qp), EINVAL);

	ibv_wr_start(qp);
	ibv_wr_rdma_read(qp, p->side[B].mr->rkey, (uintptr_t)p->side[B].buf);
	ibv_wr_set_inline_data(qp, p->side[A].buf, 1);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);

	ibv_wr_start(qp);
	for (int i = 0; i < 1000; i++)
		ibv_wr_rdma_write(qp, p->side[B].mr->rkey, (uintptr_t)p->side[B].buf);
	assert_int_equal(ibv_wr_complete(qp), ENOMEM);

	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, p->side[B].mr->rkey, (uintptr_t)p->side[B].buf);
	ibv_wr_abort(qp);
	wc_none(p->side[A].cq, 5);

	ibv_wr_start(qp);
	assert_int_equal(ibv_wr_complete(qp), 0); /* an empty chain is one */

	ibv_wr_start(qp);
	qp->wr_id = 8;
	ibv_wr_rdma_write(qp, p->side[B].mr->rkey, (uintptr_t)p->side[B].buf);
	built(p, 8);
	assert_int_equal(state_set(p->side[A].qp, IBV_QPS_RESET), 0);
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, p->side[B].mr->rkey, (uintptr_t)p->side[B].buf);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
}
