/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary verbs program whose client writes to its server with a key and an address that it is given, as they are the server's
 * or another's. end.h has what it shares with transfer.c.
 *
 *	keys [-p PORT] [-g GID] [-k KEY -a ADDRESS] [HOST]
 *
 * The server says its own, and at the end whether its memory is as it was. Without -k the client writes where the server says.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "end.h"

enum { BYTES = 4096, HERE = 'h', THERE = 't', TIMEOUT = 14, RETRIES = 7, CONNECTED = 1, WRITTEN = 2 };

static struct {
	uint32_t key;
	uint64_t addr;
	uint8_t memory[BYTES];
} g;

static void connect_ends(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_mr *mr;

	end_open();
	memset(g.memory, end.host ? THERE : HERE, BYTES);
	mr = ibv_reg_mr(end.pd, g.memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	end.cq = ibv_create_cq(end.context, 8, NULL, NULL, 0);
	CHECK(mr && end.cq, "objects: %s", strerror(errno));
	end_create_qp(&init, IBV_ACCESS_REMOTE_WRITE);
	end.mine.addr = (uintptr_t)g.memory;
	end.mine.rkey = mr->rkey;
	if (!end.host)
		printf("key 0x%x address 0x%lx\n", mr->rkey, (unsigned long)(uintptr_t)g.memory);
	end_connect(TIMEOUT, RETRIES);
	end_meet(CONNECTED); /* a queue pair that has refused a request does not get to RTS any more */
	if (end.host) {
		struct ibv_sge sge = {(uintptr_t)g.memory, BYTES, mr->lkey};
		struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					       .num_sge = 1,
					       .opcode = IBV_WR_RDMA_WRITE,
					       .send_flags = IBV_SEND_SIGNALED,
					       .wr.rdma = {.remote_addr = g.key ? g.addr : end.theirs.addr,
							   .rkey = g.key ? g.key : end.theirs.rkey}};
		struct ibv_wc wc = {0};
		int n;

		CHECK(!ibv_post_send(end.qp, &wr, &bad), "post_send");
		while (!(n = ibv_poll_cq(end.cq, 1, &wc))) {
		}
		CHECK(n == 1, "poll_cq: %d", n);
		printf("%s\n", ibv_wc_status_str(wc.status));
	}
	end_meet(WRITTEN);
}

int main(int argc, char **argv)
{
	size_t changed = 0;
	int c;

	while ((c = getopt(argc, argv, "p:g:k:a:")) != -1) {
		switch (c) {
		case 'p': end.port = atoi(optarg); break;
		case 'g': end.gid = atoi(optarg); break;
		case 'k': g.key = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 'a': g.addr = strtoul(optarg, NULL, 0); break;
		default: return 2;
		}
	}
	end.host = argv[optind];
	setvbuf(stdout, NULL, _IOLBF, 0);
	connect_ends();
	for (size_t i = 0; i < BYTES; i++)
		changed += g.memory[i] != (end.host ? THERE : HERE);
	if (!end.host) {
		printf("%zu bytes changed\n", changed);
		pause();
	}
	return 0;
}
