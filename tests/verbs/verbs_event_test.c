/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels and asynchronous events: edges, counts, acknowledgements. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

#include "pair.h"
#include "support/test.h"

static void nonblocking(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

static int readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms);
}

static void send_one(struct pair *p, bool solicited)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED | (solicited ? IBV_SEND_SOLICITED : 0)};
	struct ibv_send_wr *bad;

	recv_post(p, B, 1, 0, 0);
	assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
	assert_int_equal(wc_await(p->side[A].cq).status, IBV_WC_SUCCESS);
}

static void event_take(struct side *s)
{
	struct ibv_cq *cq = NULL;
	void *context = NULL;

	assert_int_equal(ibv_get_cq_event(s->channel, &cq, &context), 0);
	assert_ptr_equal(cq, s->cq);
	assert_ptr_equal(context, s);
	ibv_ack_cq_events(cq, 1);
}

TEST(an_armed_cq_raises_one_event)
{
	struct ibv_cq *cq;
	void *context;
	struct pair p;

	pair_make(&p, (struct wishes){.with_channel = true});
	nonblocking(p.side[B].channel->fd);
	send_one(&p, false);
	assert_int_equal(readable(p.side[B].channel->fd, 50), 0);
	assert_int_equal(ibv_get_cq_event(p.side[B].channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(wc_await(p.side[B].cq).wr_id, 1);

	assert_int_equal(ibv_req_notify_cq(p.side[B].cq, 0), 0);
	send_one(&p, false);
	send_one(&p, false);
	assert_int_equal(readable(p.side[B].channel->fd, 2000), 1);
	event_take(&p.side[B]);
	assert_int_equal(readable(p.side[B].channel->fd, 20), 0);
	assert_int_equal(ibv_get_cq_event(p.side[B].channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	pair_destroy(&p);
}

/* What UCX relies on: it polls until nothing comes, arms, and sleeps in poll(). */
PAIR_TEST(completions_that_wait_raise_an_event_when_the_cq_is_armed, .with_channel = true)
{
	send_one(p, false);
	send_one(p, false);
	assert_int_equal(readable(p->side[B].channel->fd, 20), 0);
	assert_int_equal(ibv_req_notify_cq(p->side[B].cq, 1), 0);
	assert_int_equal(readable(p->side[B].channel->fd, 20), 0);
	assert_int_equal(ibv_req_notify_cq(p->side[B].cq, 0), 0);
	assert_int_equal(readable(p->side[B].channel->fd, 0), 1);
	event_take(&p->side[B]);
	assert_int_equal(readable(p->side[B].channel->fd, 0), 0);
	send_one(p, true);
	assert_int_equal(readable(p->side[B].channel->fd, 20), 0);
	assert_int_equal(ibv_req_notify_cq(p->side[B].cq, 1), 0);
	assert_int_equal(readable(p->side[B].channel->fd, 0), 1);
	event_take(&p->side[B]);
}

/*
 * What perftest relies on: with -e -b it takes an event, asks for the next and polls only a part; ib_send_lat -e takes
 * every event for a message.
 */
PAIR_TEST(each_completion_can_be_polled_by_an_event, .with_channel = true)
{
	assert_int_equal(ibv_req_notify_cq(p->side[B].cq, 0), 0);
	for (int i = 0; i < 3; i++) {
		send_one(p, false);
		event_take(&p->side[B]);
		assert_int_equal(ibv_req_notify_cq(p->side[B].cq, 0), 0);
		assert_int_equal(wc_await(p->side[B].cq).wr_id, 1);
		assert_int_equal(readable(p->side[B].channel->fd, 0), 0);
	}
	send_one(p, false);
	send_one(p, false);
	for (int i = 0; i < 2; i++) {
		event_take(&p->side[B]);
		assert_int_equal(ibv_req_notify_cq(p->side[B].cq, 0), 0);
		assert_int_equal(wc_await(p->side[B].cq).wr_id, 1);
	}
}

PAIR_TEST(solicited_notification_waits_for_a_solicited_message, .with_channel = true)
{
	assert_int_equal(ibv_req_notify_cq(p->side[B].cq, 1), 0);
	send_one(p, false);
	assert_int_equal(readable(p->side[B].channel->fd, 50), 0);
	send_one(p, true);
	assert_int_equal(readable(p->side[B].channel->fd, 2000), 1);
	event_take(&p->side[B]);

	/* An error counts as solicited. */
	assert_int_equal(ibv_req_notify_cq(p->side[B].cq, 1), 0);
	recv_post(p, B, 3, 0, 0);
	assert_int_equal(state_set(p->side[B].qp, IBV_QPS_ERR), 0);
	assert_int_equal(readable(p->side[B].channel->fd, 2000), 1);
	event_take(&p->side[B]);
}

PAIR_TEST(every_event_is_a_new_edge, .with_channel = true)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	nonblocking(p->side[B].channel->fd);
	assert_int_equal(epoll_ctl(epfd, EPOLL_CTL_ADD, p->side[B].channel->fd, &ev), 0);
	for (int i = 0; i < 3; i++) {
		/* The event before is still unread. */
		assert_int_equal(ibv_req_notify_cq(p->side[B].cq, 0), 0);
		send_one(p, false);
		assert_int_equal(epoll_wait(epfd, &ev, 1, 2000), 1);
		assert_int_equal(epoll_wait(epfd, &ev, 1, 0), 0);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(readable(p->side[B].channel->fd, 0), 1);
		event_take(&p->side[B]);
	}
	assert_int_equal(readable(p->side[B].channel->fd, 0), 0);
	close(epfd);
}

PAIR_TEST(a_blocked_reader_is_woken, .with_channel = true)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.num_sge = 1, .sg_list = &sge, .opcode = IBV_WR_SEND}, *bad;

	for (uint32_t i = 0; i < 50; i++) {
		sge = sge_at(p, A, 0, 1000 * i);
		recv_post(p, B, i, 0, 1000 * i);
		assert_int_equal(ibv_req_notify_cq(p->side[B].cq, 0), 0);
		assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
		event_take(&p->side[B]);
		assert_int_equal(wc_await(p->side[B].cq).wr_id, i);
	}
}

static void on_alarm(int signo)
{
}

TEST(a_signal_interrupts_only_if_it_asks_to)
{
	struct sigaction interrupts = {.sa_handler = on_alarm};
	struct itimerval soon = {.it_value = {.tv_usec = 30000}};
	struct ibv_cq *cq;
	void *context;
	struct pair p;

	pair_make(&p, (struct wishes){.with_channel = true});
	assert_int_equal(sigaction(SIGALRM, &interrupts, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	assert_int_equal(ibv_get_cq_event(p.side[B].channel, &cq, &context), -1);
	assert_int_equal(errno, EINTR);
	signal(SIGALRM, SIG_DFL);
	pair_destroy(&p);
}

TEST(events_of_a_destroyed_cq_are_taken_back)
{
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	void *context;
	struct pair p;

	pair_make(&p, (struct wishes){.with_channel = true});
	channel = p.side[B].channel;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ibv_req_notify_cq(p.side[B].cq, 0), 0);
		send_one(&p, false);
		assert_int_equal(readable(channel->fd, 2000), 1);
	}
	event_take(&p.side[B]);
	assert_int_equal(ibv_destroy_qp(p.side[B].qp), 0);
	p.side[B].qp = NULL;
	assert_int_equal(ibv_destroy_cq(p.side[B].cq), 0);
	p.side[B].cq = NULL;
	assert_int_equal(readable(channel->fd, 20), 0);
	nonblocking(channel->fd);
	assert_int_equal(ibv_get_cq_event(channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	pair_destroy(&p);
}

struct later {
	struct ibv_cq *cq;
	struct ibv_async_event event;
	bool done;
};

static void *ack_cq_later(void *arg)
{
	struct later *l = arg;

	usleep(100000);
	__atomic_store_n(&l->done, true, __ATOMIC_SEQ_CST);
	ibv_ack_cq_events(l->cq, 2);
	return NULL;
}

TEST(destroying_a_cq_waits_for_acknowledgements)
{
	struct later l = {0};
	pthread_t thread;
	struct ibv_cq *cq;
	void *context;
	struct pair p;

	pair_make(&p, (struct wishes){.with_channel = true});
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_req_notify_cq(p.side[B].cq, 0), 0);
		send_one(&p, false);
		assert_int_equal(ibv_get_cq_event(p.side[B].channel, &cq, &context), 0);
	}
	l.cq = p.side[B].cq;
	assert_int_equal(ibv_destroy_qp(p.side[B].qp), 0);
	p.side[B].qp = NULL;
	assert_int_equal(pthread_create(&thread, NULL, ack_cq_later, &l), 0);
	assert_int_equal(ibv_destroy_cq(p.side[B].cq), 0);
	assert_true(__atomic_load_n(&l.done, __ATOMIC_SEQ_CST));
	p.side[B].cq = NULL;
	pthread_join(thread, NULL);
	pair_destroy(&p);
}

/* ---- asynchronous events ----------------------------------------------------------------------- */

static struct ibv_async_event async_take(struct ibv_context *ctx, enum ibv_event_type type)
{
	struct ibv_async_event ev;

	assert_int_equal(readable(ctx->async_fd, 2000), 1);
	assert_int_equal(ibv_get_async_event(ctx, &ev), 0);
	if (ev.event_type != type)
		fail_msg("event is '%s'", ibv_event_type_str(ev.event_type));
	return ev;
}

TEST(no_event_is_no_event)
{
	struct ibv_context *ctx = device_open();
	struct ibv_async_event ev;

	nonblocking(ctx->async_fd);
	assert_int_equal(readable(ctx->async_fd, 0), 0);
	assert_int_equal(ibv_get_async_event(ctx, &ev), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_close_device(ctx), 0);
}

PAIR_TEST(an_srq_below_its_limit_says_so_once, .with_srq = true)
{
	struct ibv_srq_attr attr = {.srq_limit = 5};
	struct ibv_async_event ev;

	nonblocking(p->ctx->async_fd);
	for (int i = 0; i < 6; i++)
		recv_post(p, B, 100, 0, 0);
	assert_int_equal(ibv_modify_srq(p->side[B].srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(p->side[B].srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 5);
	for (int i = 0; i < 3; i++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;

		assert_int_equal(readable(p->ctx->async_fd, 20), i < 2 ? 0 : 1);
		assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
		wc_await(p->side[B].cq);
	}
	ev = async_take(p->ctx, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(ev.element.srq, p->side[B].srq);
	ibv_ack_async_event(&ev);
	assert_int_equal(readable(p->ctx->async_fd, 20), 0);
	assert_int_equal(ibv_query_srq(p->side[B].srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
}

PAIR_TEST(a_dying_qp_of_an_srq_reports_its_last_wqe, .with_srq = true)
{
	struct ibv_async_event ev;

	recv_post(p, B, 1, 0, 0);
	assert_int_equal(state_set(p->side[B].qp, IBV_QPS_ERR), 0);
	ev = async_take(p->ctx, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(ev.element.qp, p->side[B].qp);
	ibv_ack_async_event(&ev);
	wc_none(p->side[B].cq, 5);
}

PAIR_TEST(a_violation_is_reported_to_the_responder)
{
	struct ibv_async_event ev;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.num_sge = 1, .sg_list = &sge, .opcode = IBV_WR_RDMA_WRITE}, *bad;

	sge = sge_at(p, A, 0, 8);
	wr.wr.rdma.rkey = p->side[B].mr->rkey ^ 0x12345678;
	assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
	assert_int_equal(wc_await(p->side[A].cq).status, IBV_WC_REM_ACCESS_ERR);
	ev = async_take(p->ctx, IBV_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(ev.element.qp, p->side[B].qp);
	ibv_ack_async_event(&ev);
}

PAIR_TEST(a_drained_queue_says_so_when_asked)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_async_event ev;

	assert_int_equal(ibv_modify_qp(p->side[A].qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	ev = async_take(p->ctx, IBV_EVENT_SQ_DRAINED);
	assert_ptr_equal(ev.element.qp, p->side[A].qp);
	ibv_ack_async_event(&ev);
}

PAIR_TEST(an_overrun_cq_is_an_event_and_a_poll_error, .cqe = 4, .all_signaled = true, .max_wr = 64)
{
	struct ibv_async_event ev;
	struct ibv_wc wc;
	int n, total = 0;

	for (int i = 0; i < 40; i++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE}, *bad;

		assert_int_equal(ibv_post_send(p->side[A].qp, &wr, &bad), 0);
	}
	do {
		ev = async_take(p->ctx, IBV_EVENT_CQ_ERR);
		ibv_ack_async_event(&ev);
	} while (ev.element.cq != p->side[A].cq);
	while ((n = ibv_poll_cq(p->side[A].cq, 1, &wc)) > 0)
		total++;
	assert_true(n < 0);
	assert_true(total < 40);
}

static void *ack_async_later(void *arg)
{
	struct later *l = arg;

	usleep(100000);
	__atomic_store_n(&l->done, true, __ATOMIC_SEQ_CST);
	ibv_ack_async_event(&l->event);
	return NULL;
}

TEST(destroying_a_qp_waits_for_acknowledgements)
{
	struct later l = {0};
	pthread_t thread;
	struct pair p;

	pair_make(&p, (struct wishes){.with_srq = true});
	assert_int_equal(state_set(p.side[B].qp, IBV_QPS_ERR), 0);
	l.event = async_take(p.ctx, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(pthread_create(&thread, NULL, ack_async_later, &l), 0);
	assert_int_equal(ibv_destroy_qp(p.side[B].qp), 0);
	assert_true(__atomic_load_n(&l.done, __ATOMIC_SEQ_CST));
	p.side[B].qp = NULL;
	pthread_join(thread, NULL);
	pair_destroy(&p);
}

PAIR_TEST(undelivered_events_go_with_their_object, .with_srq = true)
{
	struct ibv_async_event ev;

	assert_int_equal(state_set(p->side[B].qp, IBV_QPS_ERR), 0);
	assert_int_equal(readable(p->ctx->async_fd, 2000), 1);
	assert_int_equal(ibv_destroy_qp(p->side[B].qp), 0);
	p->side[B].qp = NULL;
	assert_int_equal(readable(p->ctx->async_fd, 20), 0);
	nonblocking(p->ctx->async_fd);
	assert_int_equal(ibv_get_async_event(p->ctx, &ev), -1);
	assert_int_equal(errno, EAGAIN);
}
