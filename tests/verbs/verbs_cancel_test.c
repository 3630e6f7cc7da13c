/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that the program cancels in the middle of verbs (pthread_cancel(), deferred as by default). A verb for data
 * is no cancellation point, so no lock is left behind, and the program's other threads go on.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "pair.h"
#define TEST_OWN_MAIN
#include "support/test.h"

enum { MESSAGES = 300, BYTES = 64, ROUNDS = 20, STUCK_S = 100 };

static struct pair pair;
static atomic_int passed;
static atomic_bool polling;

static void write_post(uint64_t wr_id)
{
	struct ibv_sge sge = sge_at(&pair, A, 0, BYTES);
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)pair.side[B].buf;
	wr.wr.rdma.rkey = pair.side[B].mr->rkey;
	assert_int_equal(ibv_post_send(pair.side[A].qp, &wr, &bad), 0);
}

static void send_post(uint64_t wr_id)
{
	struct ibv_sge sge = sge_at(&pair, A, 0, BYTES);
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	recv_post(&pair, B, wr_id, 0, BYTES);
	assert_int_equal(ibv_post_send(pair.side[A].qp, &wr, &bad), 0);
}

/* wc_await() sleeps, which is a cancellation point. */
static void polled(int side, uint64_t wr_id)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(pair.side[side].cq, 1, &wc)))
		;
	assert_int_equal(n, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
}

static void *messages_when_cancelled(void *arg)
{
	pthread_cancel(pthread_self());
	for (uint64_t i = 0; i < MESSAGES; i++) {
		assert_int_equal(ibv_req_notify_cq(pair.side[B].cq, 0), 0);
		send_post(i);
		polled(A, i);
		polled(B, i);
		passed++;
	}
	pthread_testcancel();
	passed = 0;
	return arg;
}

static void *objects_when_cancelled(void *arg)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = PORT};

	pthread_cancel(pthread_self());
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_cq *cq = ibv_create_cq(pair.ctx, 10, NULL, pair.side[A].channel, 0);
		struct ibv_qp_init_attr init = {
			.send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
		struct ibv_qp *qp = ibv_create_qp(pair.pd, &init);
		struct ibv_mr *mr = ibv_reg_mr(pair.pd, pair.side[A].buf, BYTES, IBV_ACCESS_LOCAL_WRITE);

		assert_true(cq && qp && mr);
		assert_int_equal(
			ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
			0);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		assert_int_equal(ibv_destroy_qp(qp), 0);
		assert_int_equal(ibv_destroy_cq(cq), 0);
		passed++;
	}
	pthread_testcancel();
	passed = 0;
	return arg;
}

static void others_go_on(void)
{
	for (uint64_t i = 0; i < MESSAGES; i++) {
		write_post(i);
		polled(A, i);
	}
}

static void run_cancelled(void *(*run)(void *), int passes)
{
	pthread_t thread;
	void *how;

	passed = 0;
	assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
	pthread_join(thread, &how);
	assert_ptr_equal(how, PTHREAD_CANCELED);
	assert_int_equal(passed, passes);
}

TEST(no_verb_for_data_is_a_cancellation_point)
{
	pair_make(&pair, (struct wishes){.with_channel = true});
	run_cancelled(messages_when_cancelled, MESSAGES);
	others_go_on();
	pair_destroy(&pair);
}

TEST(objects_are_made_and_destroyed_whole)
{
	pair_make(&pair, (struct wishes){.with_channel = true});
	run_cancelled(objects_when_cancelled, ROUNDS);
	others_go_on();
	pair_destroy(&pair);
}

static void *poll_for_ever(void *arg)
{
	struct ibv_wc wc;

	for (;;) {
		polling = true;
		ibv_poll_cq(pair.side[B].cq, 1, &wc);
		pthread_testcancel();
	}
	return arg;
}

static void *post_for_ever(void *arg)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE}, *bad;

	for (;;) {
		polling = true;
		ibv_post_send(pair.side[B].qp, &wr, &bad); /* without room it fails */
		pthread_testcancel();
	}
	return arg;
}

TEST(a_poster_or_poller_may_be_cancelled_at_any_time)
{
	pair_make(&pair, (struct wishes){0});
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread[2];
		void *how;

		for (int k = 0; k < 2; k++) {
			polling = false;
			assert_int_equal(pthread_create(&thread[k], NULL, k ? post_for_ever : poll_for_ever, NULL), 0);
			while (!polling)
				usleep(10);
		}
		for (uint64_t k = 0; k < 10; k++) {
			write_post(k);
			polled(A, k);
		}
		for (int k = 0; k < 2; k++) {
			pthread_cancel(thread[k]);
			pthread_join(thread[k], &how);
			assert_ptr_equal(how, PTHREAD_CANCELED);
		}
		write_post(1);
		polled(A, 1);
	}
	pair_destroy(&pair);
}

static void *destroy_when_events_are_out(void *qp)
{
	ibv_destroy_qp(qp);
	return NULL;
}

/* The thread that destroys a queue pair waits for the acknowledgement of its events, and is cancelled there. */
TEST(who_acknowledges_need_not_wait_for_the_cancelled)
{
	struct ibv_async_event event;
	pthread_t thread;
	void *how;

	pair_make(&pair, (struct wishes){.with_srq = true});
	assert_int_equal(state_set(pair.side[B].qp, IBV_QPS_ERR), 0);
	assert_int_equal(ibv_get_async_event(pair.ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(pthread_create(&thread, NULL, destroy_when_events_are_out, pair.side[B].qp), 0);
	usleep(50000);
	pthread_cancel(thread);
	pthread_join(thread, &how);
	assert_ptr_equal(how, PTHREAD_CANCELED);
	ibv_ack_async_event(&event);
	/* What is left of the queue pair is not destroyed again. */
	assert_int_equal(ibv_close_device(pair.ctx), 0);
}

int main(int argc, char **argv)
{
	const char *protocol = getenv("VERBENA_PROTOCOL");

	if (protocol && !strcmp(protocol, "rocev1") && geteuid()) {
		puts("skipped: RoCEv1 needs CAP_NET_RAW");
		return 77;
	}
	alarm(STUCK_S);
	return test_run(argc, argv);
}
