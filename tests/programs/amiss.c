/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary program of librdmacm whose client does one thing that its server does not allow. Both say what verbs and rdma_cm
 * told them of it, in lines that the test compares.
 *
 *	amiss ADDRESS PORT          the server, of one client
 *	amiss WHAT ADDRESS PORT     the client: key, bounds or read (a WRITE with a wrong key, beyond the region, a READ with a
 *	                            wrong key), send (no receive is posted for it), long (the receive is shorter)
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/rdma_verbs.h>

#include "cm_end.h"

enum { BYTES = 4096, SHORT = 100 };

struct target {
	uint64_t addr;
	uint32_t rkey;
};

static uint8_t memory[2 * BYTES];

/* The completions of one queue, in its order, up to that of a work request that was posted last. */
static void tell_completions(struct ibv_cq *cq, const char *queue, uint64_t last)
{
	struct ibv_wc wc = {.wr_id = last + 1};
	int n = 0;

	while (n >= 0 && (!n || wc.wr_id != last)) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n > 0)
			printf("%s %d: %s\n", queue, (int)wc.wr_id, ibv_wc_status_str(wc.status));
	}
	if (n < 0)
		fail("poll");
}

static void tell_disconnected(struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(id->channel, &event))
		fail("event");
	printf("%s\n", rdma_event_str(event->event));
	rdma_ack_cm_event(event);
}

static void post_amiss(struct rdma_cm_id *id, const char *what, const struct target *t, struct ibv_mr *mr)
{
	void *first = (void *)1;
	int err;

	if (!strcmp(what, "key"))
		err = rdma_post_write(id, first, memory, SHORT, mr, 0, t->addr, t->rkey ^ 0x5500);
	else if (!strcmp(what, "bounds"))
		err = rdma_post_write(id, first, memory, SHORT, mr, 0, t->addr + BYTES - SHORT + 1, t->rkey);
	else if (!strcmp(what, "read"))
		err = rdma_post_read(id, first, memory, SHORT, mr, 0, t->addr, t->rkey ^ 0x5500);
	else
		err = rdma_post_send(id, first, memory, SHORT + 1, mr, 0);
	if (err)
		fail("post");
}

static void client(const char *what, char **where)
{
	struct rdma_cm_id *id = endpoint(where, 0, 4, 1);
	struct rdma_conn_param param = {.responder_resources = 1,
					.initiator_depth = 1,
					.private_data = what,
					.private_data_len = (uint8_t)(strlen(what) + 1)};
	struct ibv_mr *mr = rdma_reg_msgs(id, memory, sizeof(memory));
	struct target target;

	if (!mr || rdma_post_recv(id, (void *)7, memory, 1, mr) || rdma_connect(id, &param))
		fail("connect");
	memcpy(&target, id->event->param.conn.private_data, sizeof(target));
	memset(memory, 0xff, sizeof(memory));
	post_amiss(id, what, &target, mr);
	tell_disconnected(id);
	tell_completions(id->send_cq, "send", 1);
	tell_completions(id->recv_cq, "receive", 7);
	/* The connection is over, for what is posted now as well. */
	if (rdma_post_write(id, (void *)2, memory, 1, mr, 0, target.addr, target.rkey))
		fail("post");
	tell_completions(id->send_cq, "send", 2);
}

static void server(char **where)
{
	struct rdma_cm_id *listener = endpoint(where, RAI_PASSIVE, 4, 1), *id;
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct ibv_async_event event;
	struct target target;
	struct ibv_mr *mr;
	int receives = 0, changed = 0;

	if (rdma_listen(listener, 1) || printf("listening\n") < 0 || rdma_get_request(listener, &id))
		fail("request");
	mr = ibv_reg_mr(id->pd, memory, BYTES,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	target = (struct target){(uintptr_t)memory, mr ? mr->rkey : 0};
	param.private_data = &target;
	param.private_data_len = sizeof(target);
	if (!mr)
		fail("region");
	if (strcmp(id->event->param.conn.private_data, "send")) {
		for (; receives < 2; receives++) {
			if (rdma_post_recv(id, (void *)(intptr_t)(receives + 1), memory, SHORT, mr))
				fail("receive");
		}
	}
	if (rdma_accept(id, &param) || ibv_get_async_event(id->verbs, &event))
		fail("accept");
	printf("%s\n", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
	tell_disconnected(id);
	if (receives)
		tell_completions(id->recv_cq, "receive", (uint64_t)receives);
	for (size_t i = 0; i < sizeof(memory); i++)
		changed += memory[i] != 0;
	printf("%d bytes changed\n", changed);
}

int main(int argc, char **argv)
{
	setlinebuf(stdout);
	if (argc == 3)
		server(argv + 1);
	else if (argc == 4)
		client(argv[1], argv + 2);
	else
		return 2;
	return 0;
}
