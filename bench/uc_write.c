/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What libverbena-sdr's packets cost without it: a process sends messages to another one, each packet of them an RDMA
 * WRITE Only with Immediate on a UC queue pair, in lists of 8 over several queue pairs in turn, as sdr_write_bw does.
 * The receiver counts the packets of a message and says when it has all. Nothing is noted by packet, checked or
 * repaired; so the channel has to lose nothing. `verbena run build/bench/uc_write`, beside `sdr_write_bw -s 16777216 -t
 * 4` in turn.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	CHANNELS_MAX = 64,
	BATCH = 8,
	DEPTH = 512,
	POLL = 64,
	RECEIVES = 4096,
	MTU_LOG = 12,
	MTU = 1 << MTU_LOG,
	WARM_UP = 10
};

static struct {
	uint64_t size, messages, ahead;
	unsigned channels;
	int link;
	struct ibv_context *device;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[CHANNELS_MAX];
	struct ibv_mr *mr;
	uint8_t *memory;
} g = {.size = 16 << 20, .messages = 200, .ahead = 4, .channels = 8};

struct end {
	union ibv_gid gid;
	uint64_t address;
	uint32_t rkey, qpn[CHANNELS_MAX];
};

static void must(bool claim, const char *what)
{
	if (claim)
		return;
	fprintf(stderr, "uc_write: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- setting up --------------------------------------------------------------------------------------- */

static void open_device(struct end *mine)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_pd *pd;

	must(list && list[0], "no device");
	g.device = ibv_open_device(list[0]);
	must(g.device, "opening the device");
	pd = ibv_alloc_pd(g.device);
	g.cq = ibv_create_cq(g.device, 2 * RECEIVES, NULL, NULL, 0);
	g.srq = ibv_create_srq(pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = RECEIVES, .max_sge = 1}});
	g.memory = mmap(NULL, g.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	g.mr = ibv_reg_mr(pd, g.memory, g.size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	must(g.cq && g.srq && g.mr && !ibv_query_gid(g.device, 1, 0, &mine->gid), "setting up");
	mine->address = (uintptr_t)g.memory;
	mine->rkey = g.mr->rkey;
	for (unsigned c = 0; c < g.channels; c++) {
		struct ibv_qp_init_attr a = {.send_cq = g.cq,
					     .recv_cq = g.cq,
					     .srq = g.srq,
					     .qp_type = IBV_QPT_UC,
					     .cap = {.max_send_wr = DEPTH, .max_send_sge = 1}};

		g.qp[c] = ibv_create_qp(pd, &a);
		must(g.qp[c], "a queue pair");
		mine->qpn[c] = g.qp[c]->qp_num;
	}
}

static void connect_to(const struct end *peer)
{
	for (unsigned c = 0; c < g.channels; c++) {
		struct ibv_qp_attr a = {
			.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

		must(!ibv_modify_qp(g.qp[c], &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		     "to INIT");
		a = (struct ibv_qp_attr){
			.qp_state = IBV_QPS_RTR,
			.path_mtu = IBV_MTU_4096,
			.dest_qp_num = peer->qpn[c],
			.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer->gid, .hop_limit = 64}}};
		must(!ibv_modify_qp(g.qp[c], &a,
				    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
		     "to RTR");
		a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
		must(!ibv_modify_qp(g.qp[c], &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "to RTS");
	}
}

static void tell(const void *p, size_t n)
{
	must(write(g.link, p, n) == (ssize_t)n, "telling the other process");
}

static void hear(void *p, size_t n)
{
	must(recv(g.link, p, n, MSG_WAITALL) == (ssize_t)n, "hearing the other process");
}

static struct end meet(void)
{
	struct end mine, peer;

	open_device(&mine);
	tell(&mine, sizeof(mine));
	hear(&peer, sizeof(peer));
	return peer;
}

static void agree(void)
{
	char c = 0;

	tell(&c, 1);
	hear(&c, 1);
}

/* ---- the receiver ------------------------------------------------------------------------------------- */

static void post_receives(unsigned n)
{
	struct ibv_recv_wr wr[POLL] = {0}, *bad;

	for (unsigned i = 0; i + 1 < n; i++)
		wr[i].next = &wr[i + 1];
	must(!n || !ibv_post_srq_recv(g.srq, wr, &bad), "posting receives");
}

static void receive(void)
{
	uint64_t packets = g.size / MTU, all = g.messages + WARM_UP, left[256], done = 0;
	struct end peer = meet();

	for (unsigned i = 0; i < 256; i++)
		left[i] = packets;
	for (unsigned i = 0; i < RECEIVES; i += POLL)
		post_receives(POLL);
	connect_to(&peer);
	agree();
	while (done < all) {
		struct ibv_wc wc[POLL];
		int n = ibv_poll_cq(g.cq, POLL, wc);

		must(n >= 0, "polling");
		for (int i = 0; i < n; i++) {
			must(wc[i].status == IBV_WC_SUCCESS, "a packet");
			left[be32toh(wc[i].imm_data) & 255]--;
		}
		post_receives((unsigned)n);
		for (; done < all && !left[done & 255]; done++) {
			char c = 0;

			left[done & 255] = packets;
			tell(&c, 1);
		}
	}
	agree();
}

/* ---- the sender --------------------------------------------------------------------------------------- */

static struct {
	unsigned in_flight[CHANNELS_MAX], all;
} out;

static void collect(void)
{
	struct ibv_wc wc[POLL];
	int n = ibv_poll_cq(g.cq, POLL, wc);

	for (int i = 0; i < n; i++) {
		must(wc[i].status == IBV_WC_SUCCESS, "a send");
		out.in_flight[wc[i].wr_id] -= BATCH;
	}
}

/* Packets first + channels * i, for i below BATCH. */
static void post(const struct end *peer, uint64_t message, uint64_t first, unsigned channel)
{
	struct ibv_send_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];

	for (unsigned i = 0; i < BATCH; i++) {
		uint64_t at = (first + (uint64_t)i * g.channels) << MTU_LOG;

		sge[i] = (struct ibv_sge){.addr = (uintptr_t)g.memory + at, .length = MTU, .lkey = g.mr->lkey};
		wr[i] = (struct ibv_send_wr){.wr_id = channel,
					     .next = i + 1 < BATCH ? &wr[i + 1] : NULL,
					     .sg_list = &sge[i],
					     .num_sge = 1,
					     .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
					     .send_flags = i + 1 < BATCH ? 0 : IBV_SEND_SIGNALED,
					     .imm_data = htobe32((uint32_t)message & 255),
					     .wr.rdma = {.remote_addr = peer->address + at, .rkey = peer->rkey}};
	}
	while (out.in_flight[channel] + BATCH > DEPTH)
		collect();
	out.in_flight[channel] += BATCH;
	must(!ibv_post_send(g.qp[channel], wr, &bad), "posting");
}

static void send_all(void)
{
	struct end peer = meet();
	uint64_t done = 0, all = g.messages + WARM_UP, start_ns = 0, took_ns;
	char c;

	connect_to(&peer);
	agree();
	for (uint64_t m = 0; m < all; m++) {
		if (m == WARM_UP)
			start_ns = now_ns();
		for (; m - done >= g.ahead; done++)
			hear(&c, 1);
		for (uint64_t p = 0; p < g.size / MTU; p += (uint64_t)g.channels * BATCH) {
			for (unsigned i = 0; i < g.channels; i++)
				post(&peer, m, p + i, i);
			collect();
		}
	}
	for (; done < all; done++) {
		while (recv(g.link, &c, 1, MSG_DONTWAIT) != 1)
			collect();
	}
	took_ns = now_ns() - start_ns;
	agree();
	printf("%.2f Gbit/s, %.0f ns a packet\n", (double)(g.size * g.messages) * 8 / (double)took_ns,
	       (double)took_ns / (double)(g.messages * (g.size / MTU)));
}

int main(int argc, char **argv)
{
	int link[2], opt, status;
	pid_t child;

	while ((opt = getopt(argc, argv, "s:n:t:c:")) != -1) {
		switch (opt) {
		case 's': g.size = strtoull(optarg, NULL, 10); break;
		case 'n': g.messages = strtoull(optarg, NULL, 10); break;
		case 't': g.ahead = strtoull(optarg, NULL, 10); break;
		case 'c': g.channels = (unsigned)strtoul(optarg, NULL, 10); break;
		default: g.size = 0;
		}
	}
	if (!g.size || !g.messages || !g.ahead || g.ahead > 128 || !g.channels || g.channels > CHANNELS_MAX ||
	    g.size % ((uint64_t)MTU * BATCH * g.channels)) {
		fprintf(stderr, "uc_write [-s BYTES] [-n MESSAGES] [-t MESSAGES_UNDER_WAY] [-c CHANNELS]\n");
		return 2;
	}
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, link), "socketpair");
	child = fork();
	must(child >= 0, "fork");
	g.link = link[!child];
	close(link[!!child]);
	if (!child) {
		receive();
		return 0;
	}
	send_all();
	return waitpid(child, &status, 0) == child && !status ? 0 : 1;
}
