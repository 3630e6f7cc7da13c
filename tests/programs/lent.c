/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary program of librdmacm whose client takes its memory back, and writes something else there, while its
 *WRITEs are on their way to a server that reads nothing.
 *
 *	lent ADDRESS PORT           the server: stops itself when it is connected; says what is in its memory at the end
 *	lent -c HOW ADDRESS PORT    the client: HOW is dereg, destroy, reset or close, the verb by which it takes the
 *memory back
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <rdma/rdma_verbs.h>

#include "cm_end.h"

enum { WRITES = 16, EACH = 1 << 20, QUIET_MS = 500, OLD = 0xaa, NEW = 0x55 };

struct target {
	uint64_t addr;
	uint32_t rkey;
};

static uint8_t *memory;

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Until none completes any more: how many have. */
static int completions(struct rdma_cm_id *id)
{
	uint64_t until_ms = now_ms() + QUIET_MS;
	struct ibv_wc wc;
	int n, done = 0;

	while (now_ms() < until_ms) {
		n = ibv_poll_cq(id->send_cq, 1, &wc);
		if (n < 0 || (n && wc.status))
			fail("completion");
		if (n)
			until_ms = now_ms() + QUIET_MS;
		done += n;
	}
	return done;
}

static void take_back(const char *how, struct rdma_cm_id *id, struct ibv_mr *mr)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	int err = 0;

	if (!strcmp(how, "dereg"))
		err = ibv_dereg_mr(mr);
	else if (!strcmp(how, "destroy"))
		rdma_destroy_qp(id);
	else if (!strcmp(how, "reset"))
		err = ibv_modify_qp(id->qp, &attr, IBV_QP_STATE);
	else
		err = ibv_close_device(id->verbs);
	if (err)
		fail(how);
}

static void client(const char *how, char **where)
{
	struct rdma_cm_id *id = endpoint(where, 0, WRITES, 1);
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct ibv_mr *mr = rdma_reg_msgs(id, memory, EACH);
	struct target target;
	uint64_t began_ms;
	int done;

	memset(memory, OLD, EACH);
	if (!mr || rdma_connect(id, &param))
		fail("connect");
	memcpy(&target, id->event->param.conn.private_data, sizeof(target));
	for (uint64_t i = 0; i < WRITES; i++) {
		if (rdma_post_write(id, NULL, memory, EACH, mr, 0, target.addr + i * EACH, target.rkey))
			fail("post");
	}
	done = completions(id);
	began_ms = now_ms();
	take_back(how, id, mr);
	memset(memory, NEW, EACH);
	printf("%d complete, taken back in %llu ms\n", done, (unsigned long long)(now_ms() - began_ms));
	/* Bytes that were not given back in time would leave in these two seconds. */
	sleep(2);
	_exit(0);
}

static void server(char **where)
{
	struct rdma_cm_id *listener = endpoint(where, RAI_PASSIVE, 4, 1), *id;
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	uint64_t old = 0, changed = 0;
	struct target target;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	if (rdma_listen(listener, 1) || printf("listening\n") < 0 || rdma_get_request(listener, &id))
		fail("request");
	mr = rdma_reg_write(id, memory, WRITES * EACH);
	if (!mr || rdma_post_recv(id, NULL, memory, 0, mr))
		fail("region");
	target = (struct target){(uintptr_t)memory, mr->rkey};
	param.private_data = &target;
	param.private_data_len = sizeof(target);
	if (rdma_accept(id, &param))
		fail("accept");
	raise(SIGSTOP);
	/* The receive is flushed when the connection is over. */
	if (rdma_get_recv_comp(id, &wc) != 1)
		fail("completion");
	for (size_t i = 0; i < (size_t)WRITES * EACH; i++) {
		old += memory[i] == OLD;
		changed += memory[i] == NEW;
	}
	printf("%llu old, %llu changed\n", (unsigned long long)old, (unsigned long long)changed);
}

int main(int argc, char **argv)
{
	setlinebuf(stdout);
	memory = calloc(WRITES, EACH);
	if (!memory || argc < 3)
		return 2;
	if (strcmp(argv[1], "-c"))
		server(argv + 1);
	else
		client(argv[2], argv + 3);
	return 0;
}
