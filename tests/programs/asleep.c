/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary verbs program that sleeps whenever it has nothing to do. end.h has what it shares with other programs.
 *
 *	asleep [-p PORT] [-g GID] [-n MESSAGES] [HOST]
 *
 * Each end sends the other MESSAGES messages, each of them, but for the first few, when one of the other's has come. An end takes
 * completions until there are none, arms the CQ, and sleeps in epoll without another look: so what came in between must wake it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "end.h"

enum {
	AHEAD = 3, /* messages of each end that are under way: so many more than have come of the other's */
	RECVS = 2 * AHEAD,
	BYTES = 8,
	SLEEP_MS = 30000
};

static struct {
	uint64_t messages;

	struct ibv_comp_channel *channel;
	int epoll;
	struct ibv_mr *mr;
	uint8_t memory[(1 + RECVS) * BYTES];
	uint64_t posted, sent, received, naps;
} g = {.messages = 20000};

static struct ibv_sge slot(size_t i)
{
	return (struct ibv_sge){(uintptr_t)g.memory + i * BYTES, BYTES, g.mr->lkey};
}

static void recv_post(size_t i)
{
	struct ibv_sge sge = slot(1 + i);
	struct ibv_recv_wr *bad, wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};

	CHECK(!ibv_post_recv(end.qp, &wr, &bad), "post_recv");
}

static void send_some(void)
{
	struct ibv_sge sge = slot(0);
	struct ibv_send_wr *bad, wr = {.wr_id = RECVS,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	for (; g.posted < g.messages && g.posted < g.received + AHEAD && g.posted < g.sent + AHEAD; g.posted++)
		CHECK(!ibv_post_send(end.qp, &wr, &bad), "post_send");
}

static void open_all(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = AHEAD, .max_recv_wr = RECVS, .max_send_sge = 1, .max_recv_sge = 1}};
	struct epoll_event readable = {.events = EPOLLIN};

	end_open();
	g.mr = ibv_reg_mr(end.pd, g.memory, sizeof(g.memory), IBV_ACCESS_LOCAL_WRITE);
	g.channel = ibv_create_comp_channel(end.context);
	CHECK(g.mr && g.channel, "objects: %s", strerror(errno));
	end.cq = ibv_create_cq(end.context, RECVS + AHEAD, NULL, g.channel, 0);
	g.epoll = epoll_create1(EPOLL_CLOEXEC);
	CHECK(end.cq && !fcntl(g.channel->fd, F_SETFL, O_NONBLOCK), "objects: %s", strerror(errno));
	CHECK(!epoll_ctl(g.epoll, EPOLL_CTL_ADD, g.channel->fd, &readable), "epoll_ctl: %s", strerror(errno));
	end_create_qp(&init, 0);
	for (size_t i = 0; i < RECVS; i++)
		recv_post(i);
	end_connect(18, 7);
	end_meet(0);
}

static bool take(void)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(end.cq, 1, &wc);

	CHECK(n >= 0, "poll_cq: %d", n);
	if (!n)
		return false;
	CHECK(wc.status == IBV_WC_SUCCESS, "wr %lu: %s", (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status));
	if (wc.wr_id == RECVS) {
		g.sent++;
	} else {
		g.received++;
		recv_post(wc.wr_id);
	}
	return true;
}

static void nap(void)
{
	struct epoll_event e;
	struct ibv_cq *cq;
	void *context;

	CHECK(!ibv_req_notify_cq(end.cq, 0), "req_notify_cq");
	if (epoll_wait(g.epoll, &e, 1, SLEEP_MS) != 1)
		die("%lu sent, %lu received, and nothing wakes it: a completion is %s", (unsigned long)g.sent,
		    (unsigned long)g.received, take() ? "there" : "not there either");
	while (!ibv_get_cq_event(g.channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	g.naps++;
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "p:g:n:")) != -1) {
		switch (c) {
		case 'p': end.port = atoi(optarg); break;
		case 'g': end.gid = atoi(optarg); break;
		case 'n': g.messages = strtoull(optarg, NULL, 0); break;
		default: return 2;
		}
	}
	end.host = argv[optind];
	open_all();
	for (;;) {
		send_some();
		if (take())
			continue;
		if (g.sent == g.messages && g.received == g.messages)
			break;
		nap();
	}
	end_meet(1);
	printf("%lu messages each way, %lu naps\n", (unsigned long)g.messages, (unsigned long)g.naps);
	CHECK(!ibv_dereg_mr(g.mr), "dereg_mr");
	end_close(g.channel);
	return 0;
}
