/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary program of librdmacm whose client ends as soon as its WRITEs are complete, without a word to its server.
 *
 *	depart ADDRESS PORT      the server: stops itself when it is connected; says how many WRITEs are in its memory
 *	depart -c ADDRESS PORT   the client: writes until a WRITE does not complete; says how many did
 *
 * WRITE i fills the i-th part of the server's region with its number.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <rdma/rdma_verbs.h>

#include "cm_end.h"

enum { PART_WORDS = 8192, PARTS = 1024, QUIET_MS = 500 };

struct target {
	uint64_t addr;
	uint32_t rkey;
};

static uint32_t (*parts)[PART_WORDS];

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* False: nothing completes. */
static int completes(struct rdma_cm_id *id)
{
	uint64_t until_ms = now_ms() + QUIET_MS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(id->send_cq, 1, &wc))) {
		if (now_ms() >= until_ms)
			return 0;
	}
	if (n < 0 || wc.status)
		fail("completion");
	return 1;
}

static int is_whole(uint32_t part)
{
	for (uint32_t i = 0; i < PART_WORDS; i++) {
		if (parts[part][i] != part + 1)
			return 0;
	}
	return 1;
}

static void client(char **where)
{
	struct rdma_cm_id *id = endpoint(where, 0, 4, 1);
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct ibv_mr *mr = rdma_reg_msgs(id, parts, sizeof(*parts));
	struct target target;
	uint32_t done = 0;

	if (!mr || rdma_connect(id, &param))
		fail("connect");
	memcpy(&target, id->event->param.conn.private_data, sizeof(target));
	for (; done < PARTS; done++) {
		for (int k = 0; k < PART_WORDS; k++)
			parts[0][k] = done + 1;
		if (rdma_post_write(id, NULL, parts, sizeof(*parts), mr, 0, target.addr + done * sizeof(*parts),
				    target.rkey))
			fail("post");
		if (!completes(id))
			break;
	}
	printf("%u complete\n", done);
}

static void server(char **where)
{
	struct rdma_cm_id *listener = endpoint(where, RAI_PASSIVE, 4, 1), *id;
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct target target;
	uint32_t whole = 0;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	if (rdma_listen(listener, 1) || printf("listening\n") < 0 || rdma_get_request(listener, &id))
		fail("request");
	mr = rdma_reg_write(id, parts, PARTS * sizeof(*parts));
	if (!mr || rdma_post_recv(id, NULL, parts, 0, mr))
		fail("region");
	target = (struct target){(uintptr_t)parts, mr->rkey};
	param.private_data = &target;
	param.private_data_len = sizeof(target);
	if (rdma_accept(id, &param))
		fail("accept");
	raise(SIGSTOP);
	/* The receive is flushed when the connection is over. */
	if (rdma_get_recv_comp(id, &wc) != 1)
		fail("completion");
	while (whole < PARTS && is_whole(whole))
		whole++;
	printf("%u whole\n", whole);
}

int main(int argc, char **argv)
{
	setlinebuf(stdout);
	parts = calloc(PARTS, sizeof(*parts));
	if (!parts || argc < 3)
		return 2;
	if (strcmp(argv[1], "-c"))
		server(argv + 1);
	else
		client(argv + 2);
	return 0;
}
