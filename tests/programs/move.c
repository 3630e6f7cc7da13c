/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary verbs program whose two ends send each other messages that are numbered and hashed, until the client gets
 * SIGINT: SENDs, WRITEs with immediate, READs and FETCH_ADDs in turn. Each end looks at every completion: each request
 * and each message once, in order, with the bytes that it was sent with. At the end both compare what they counted.
 *
 *	move [-p PORT] [-g GID] [-b BYTES] [-w WINDOW] [-e] [HOST]
 *
 * -e: with events of the completion channel instead of polls. It prints the longest time between two completions, and at
 * each SIGUSR1 that since the last one.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "end.h"

enum { KINDS = 4, SEND = 0, WRITE = 1, READ = 2, ADD = 3, WINDOW_MAX = 256, STUCK_S = 60, SOURCE_BYTES = 1 << 16 };

struct totals {
	uint64_t messages, hash, adds;
};

static struct {
	uint32_t bytes, window;
	int events;

	struct ibv_comp_channel *channel;
	struct ibv_mr *mr;
	/*
	 * What the peer reads; then what it adds to; where its WRITEs go; what receives, requests and answers take. The
	 * first two parts and `writes` are at the same place at both ends.
	 */
	uint8_t *memory;
	size_t counter_at, writes_at, receives_at, requests_at, memory_bytes;
	uint64_t posted, completed, received;
	double completed_s, pause_s, pause_lately_s;
	struct totals sent, got;
} g = {.bytes = 4096, .window = 16};

static volatile sig_atomic_t stopped, asked;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

static void ask(int number)
{
	(void)number;
	asked = 1;
}

/* ---- memory ----------------------------------------------------------------------------------- */

static uint64_t *counter(void)
{
	return (uint64_t *)(g.memory + g.counter_at);
}

/* Twice as many as there are receives: the peer cannot be further ahead of what this end has looked at. */
static size_t write_slot(uint64_t message)
{
	return g.writes_at + message % (2 * g.window) * g.bytes;
}

static uint8_t *receive_slot(uint64_t n)
{
	return g.memory + g.receives_at + n % g.window * g.bytes;
}

static uint8_t *request_slot(uint64_t n)
{
	return g.memory + g.requests_at + n % g.window * g.bytes;
}

/* The same at both ends. */
static void fill_source(void)
{
	for (size_t i = 0; i < SOURCE_BYTES; i += 8)
		*(uint64_t *)(g.memory + i) = mix(i);
}

static size_t source_at(uint64_t n)
{
	return mix(n) % ((SOURCE_BYTES - g.bytes) / 8) * 8;
}

static void fill_message(uint8_t *to, uint64_t n)
{
	uint64_t state = n;

	for (uint32_t i = 0; i < g.bytes; i += 8)
		*(uint64_t *)(to + i) = i ? draw(&state) : n;
}

static uint64_t hash(uint64_t before, const uint8_t *p)
{
	for (uint32_t i = 0; i < g.bytes; i += 8)
		before = mix(before ^ *(const uint64_t *)(p + i));
	return before;
}

static void open_all(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = g.window, .max_recv_wr = g.window, .max_send_sge = 1, .max_recv_sge = 1}};
	int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	end_open();
	g.counter_at = SOURCE_BYTES;
	g.writes_at = g.counter_at + 64;
	g.receives_at = g.writes_at + 2 * (size_t)g.window * g.bytes;
	g.requests_at = g.receives_at + (size_t)g.window * g.bytes;
	g.memory_bytes = g.requests_at + (size_t)g.window * g.bytes;
	g.memory = calloc(1, g.memory_bytes);
	CHECK(g.memory, "memory");
	fill_source();
	g.mr = ibv_reg_mr(end.pd, g.memory, g.memory_bytes, access);
	CHECK(g.mr, "reg_mr: %s", strerror(errno));
	if (g.events) {
		g.channel = ibv_create_comp_channel(end.context);
		CHECK(g.channel, "create_comp_channel: %s", strerror(errno));
	}
	end.cq = ibv_create_cq(end.context, 2 * (int)g.window, NULL, g.channel, 0);
	CHECK(end.cq, "create_cq: %s", strerror(errno));
	end_create_qp(&init, access);
	end.mine.rkey = g.mr->rkey;
	end.mine.addr = (uintptr_t)g.memory;
}

/* ---- requests ----------------------------------------------------------------------------------- */

static void post_receive(uint64_t n)
{
	struct ibv_sge sge = {.addr = (uintptr_t)receive_slot(n), .length = g.bytes, .lkey = g.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_recv(end.qp, &wr, &bad), "post_recv");
}

static void post(void)
{
	uint64_t n = g.posted++;
	struct ibv_sge sge = {.addr = (uintptr_t)request_slot(n), .length = g.bytes, .lkey = g.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;

	switch (n % KINDS) {
	case SEND: wr.opcode = IBV_WR_SEND; break;
	case WRITE:
		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.imm_data = (uint32_t)n;
		wr.wr.rdma.remote_addr = end.theirs.addr + write_slot(g.sent.messages);
		wr.wr.rdma.rkey = end.theirs.rkey;
		break;
	case READ:
		wr.opcode = IBV_WR_RDMA_READ;
		wr.wr.rdma.remote_addr = end.theirs.addr + source_at(n);
		wr.wr.rdma.rkey = end.theirs.rkey;
		break;
	default:
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		sge.length = 8;
		wr.wr.atomic.remote_addr = end.theirs.addr + g.counter_at;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = end.theirs.rkey;
	}
	if (n % KINDS <= WRITE) {
		fill_message(request_slot(n), n);
		g.sent.hash = hash(g.sent.hash, request_slot(n));
		g.sent.messages++;
	}
	CHECK(!ibv_post_send(end.qp, &wr, &bad), "post_send");
}

/* ---- completions ---------------------------------------------------------------------------------- */

static void complete_request(uint64_t n)
{
	CHECK(n == g.completed, "request %lu is complete instead of %lu", (unsigned long)n, (unsigned long)g.completed);
	g.completed++;
	if (n % KINDS == READ)
		CHECK(!memcmp(request_slot(n), g.memory + source_at(n), g.bytes), "READ %lu", (unsigned long)n);
	if (n % KINDS == ADD)
		CHECK(*(uint64_t *)request_slot(n) == g.sent.adds++, "FETCH_ADD %lu brings %lu", (unsigned long)n,
		      (unsigned long)*(uint64_t *)request_slot(n));
}

/* Messages are requests 0, 1, 4, 5, 8 and so on of the peer. */
static void take_message(const struct ibv_wc *wc)
{
	uint64_t n = g.received++, is = n / 2 * KINDS + n % 2;
	bool written = n % 2 == WRITE;
	const uint8_t *at = written ? g.memory + write_slot(n) : receive_slot(n);

	CHECK(wc->wr_id == n, "message %lu takes receive %lu", (unsigned long)n, (unsigned long)wc->wr_id);
	CHECK(written == (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM), "message %lu is of another kind", (unsigned long)n);
	CHECK(!written || wc->imm_data == (uint32_t)is, "immediate of message %lu", (unsigned long)n);
	CHECK(*(const uint64_t *)at == is, "message %lu is number %lu", (unsigned long)is,
	      (unsigned long)*(const uint64_t *)at);
	g.got.hash = hash(g.got.hash, at);
	g.got.messages++;
	post_receive(n + g.window);
}

static int poll_once(void)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(end.cq, 1, &wc);
	double now;

	CHECK(n >= 0, "poll_cq");
	if (!n)
		return 0;
	CHECK(wc.status == IBV_WC_SUCCESS, "completion %lu: %s", (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status));
	if (wc.opcode & IBV_WC_RECV)
		take_message(&wc);
	else
		complete_request(wc.wr_id);
	now = now_s();
	if (now - g.completed_s > g.pause_lately_s)
		g.pause_lately_s = now - g.completed_s;
	if (g.pause_lately_s > g.pause_s)
		g.pause_s = g.pause_lately_s;
	g.completed_s = now;
	return 1;
}

/* Until there may be a completion, or a moment is over. */
static void wait_for_some(void)
{
	struct pollfd p = {.events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	CHECK(now_s() - g.completed_s < STUCK_S, "stuck after request %lu", (unsigned long)g.completed);
	if (!g.events) {
		sched_yield();
		return;
	}
	CHECK(!ibv_req_notify_cq(end.cq, 0), "req_notify_cq");
	if (poll_once())
		return;
	p.fd = g.channel->fd;
	if (poll(&p, 1, 20) <= 0)
		return;
	CHECK(!ibv_get_cq_event(g.channel, &cq, &context), "get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

/* ---- the end ---------------------------------------------------------------------------------------- */

static void say(const void *what, size_t bytes)
{
	CHECK(send(end.tcp, what, bytes, MSG_NOSIGNAL) == (ssize_t)bytes, "send by TCP");
}

static void hear(void *what, size_t bytes)
{
	CHECK(recv(end.tcp, what, bytes, MSG_WAITALL) == (ssize_t)bytes, "receive by TCP");
}

/* The peer posts no more: it says so once, with how many messages there are. */
static bool peer_stops(void)
{
	char junk;

	return recv(end.tcp, &junk, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* Both ends take all of each other's messages, and then compare. */
static void finish(void)
{
	struct totals theirs;

	while (g.completed < g.posted)
		if (!poll_once())
			wait_for_some();
	say(&g.sent, sizeof(g.sent));
	while (!peer_stops())
		if (!poll_once())
			wait_for_some();
	hear(&theirs, sizeof(theirs));
	g.completed_s = now_s();
	while (g.received < theirs.messages)
		if (!poll_once())
			wait_for_some();
	CHECK(g.got.messages == theirs.messages && g.got.hash == theirs.hash, "%lu messages came of %lu, or others",
	      (unsigned long)g.got.messages, (unsigned long)theirs.messages);
	CHECK(*counter() == theirs.adds, "the counter is %lu after %lu FETCH_ADDs", (unsigned long)*counter(),
	      (unsigned long)theirs.adds);
	printf("%lu requests, %lu messages, %lu added, longest pause %.1f ms\n", (unsigned long)g.completed,
	       (unsigned long)g.received, (unsigned long)*counter(), g.pause_s * 1e3);
}

static void say_pause(void)
{
	printf("pause %.2f ms\n", g.pause_lately_s * 1e3);
	g.pause_lately_s = 0;
	asked = 0;
}

static void run(void)
{
	while (!stopped && !peer_stops()) {
		if (asked)
			say_pause();
		while (g.posted - g.completed < g.window)
			post();
		if (!poll_once())
			wait_for_some();
	}
	finish();
}

int main(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "p:g:b:w:e")) != -1) {
		switch (opt) {
		case 'p': end.port = atoi(optarg); break;
		case 'g': end.gid = atoi(optarg); break;
		case 'b': g.bytes = (uint32_t)atoi(optarg); break;
		case 'w': g.window = (uint32_t)atoi(optarg); break;
		case 'e': g.events = 1; break;
		default: return 2;
		}
	}
	end.host = argv[optind];
	CHECK(g.bytes >= 8 && g.bytes % 8 == 0 && g.bytes < SOURCE_BYTES && g.window && g.window <= WINDOW_MAX,
	      "options");
	signal(SIGINT, stop);
	signal(SIGUSR1, ask);
	open_all();
	for (uint64_t n = 0; n < g.window; n++)
		post_receive(n);
	end_connect(14, 7);
	g.completed_s = now_s();
	run();
	end_meet(0);
	ibv_dereg_mr(g.mr);
	end_close(g.channel);
	return 0;
}
