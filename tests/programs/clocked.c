/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ping-pong by SEND over one connection of rdma_cm, timed by the device's own clock (ibv_query_rt_values_ex):
 *
 *     clocked serve|ask ADDRESS PORT BYTES ROUNDS poll|sleep
 *
 * `ask` prints the nanoseconds that all rounds took. poll: both ends poll their completion queues; sleep: they wait for
 * completion events.
 */
#include <rdma/rdma_verbs.h>

#include "cm_end.h"

enum { WRS = 4 };

struct end {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char *buffer;
	size_t bytes;
	int sleeps;
};

static unsigned long long now_ns(struct ibv_context *context)
{
	struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	if (ibv_query_rt_values_ex(context, &v))
		fail("clock");
	return (unsigned long long)v.raw_clock.tv_sec * 1000000000 + (unsigned long long)v.raw_clock.tv_nsec;
}

static void complete(struct ibv_cq *cq, struct ibv_comp_channel *channel, int sleeps)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc))) {
		struct ibv_cq *which;
		void *context;

		if (!sleeps)
			continue;
		if (ibv_req_notify_cq(cq, 0))
			fail("notify");
		n = ibv_poll_cq(cq, 1, &wc);
		if (n)
			break;
		if (ibv_get_cq_event(channel, &which, &context))
			fail("event");
		ibv_ack_cq_events(cq, 1);
	}
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		fail(n < 0 ? "poll" : ibv_wc_status_str(wc.status));
}

static void receive(struct end *e)
{
	complete(e->id->recv_cq, e->id->recv_cq_channel, e->sleeps);
	if (rdma_post_recv(e->id, NULL, e->buffer, e->bytes, e->mr))
		fail("receive");
}

static void send_one(struct end *e)
{
	if (rdma_post_send(e->id, NULL, e->buffer, e->bytes, e->mr, IBV_SEND_SIGNALED))
		fail("send");
	complete(e->id->send_cq, e->id->send_cq_channel, e->sleeps);
}

static void prepare(struct end *e)
{
	e->buffer = calloc(1, e->bytes);
	e->mr = rdma_reg_msgs(e->id, e->buffer, e->bytes);
	if (!e->mr)
		fail("memory");
	for (int i = 0; i < WRS / 2; i++)
		if (rdma_post_recv(e->id, NULL, e->buffer, e->bytes, e->mr))
			fail("receive");
}

static void serve(struct end *e, struct rdma_cm_id *listener, long rounds)
{
	if (rdma_listen(listener, 1) || rdma_get_request(listener, &e->id))
		fail("listen");
	prepare(e);
	if (rdma_accept(e->id, NULL))
		fail("accept");
	for (long i = 0; i < rounds; i++) {
		receive(e);
		send_one(e);
	}
}

static void ask(struct end *e, long rounds)
{
	unsigned long long begun_ns;

	prepare(e);
	if (rdma_connect(e->id, NULL))
		fail("connect");
	begun_ns = now_ns(e->id->verbs);
	for (long i = 0; i < rounds; i++) {
		send_one(e);
		receive(e);
	}
	printf("%llu ns\n", now_ns(e->id->verbs) - begun_ns);
}

int main(int argc, char **argv)
{
	struct end e = {0};
	struct rdma_cm_id *id;
	int serves;

	if (argc != 7)
		return 2;
	serves = !strcmp(argv[1], "serve");
	e.bytes = strtoul(argv[4], NULL, 10);
	e.sleeps = !strcmp(argv[6], "sleep");
	id = endpoint(argv + 2, serves ? RAI_PASSIVE : 0, WRS, 0);
	e.id = id;
	if (serves)
		serve(&e, id, strtol(argv[5], NULL, 10));
	else
		ask(&e, strtol(argv[5], NULL, 10));
	rdma_disconnect(e.id);
	return 0;
}
