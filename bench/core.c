/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the protocol core does for a message: two real nics in one loop, one QP between them,
 * virtual time, no sockets. For counting: packets and trains (datagrams of the kernel's, where
 * there is one) come out exact, and instructions too, under callgrind:
 *
 *     valgrind --tool=callgrind --collect-atstart=no --toggle-collect=measured core [options]
 *
 *     core [--op write|read|send|pingpong] [--size BYTES] [--mtu BYTES] [--messages N] [--depth N]
 *          [--protocol veroce|rocev2] [--remote]
 *
 * Both ends are of one host, as in `make bench`, unless --remote: then veRoCE has 16 paths and
 * congestion control. pingpong: SENDs to and fro, each posted when the other's receive completes,
 * both ends polling.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pkt.h"
#include "nic/nic.h"

enum {
	BURST = 2 * PKT_TRAIN_MAX,
	SPORT = 49152,
	WINDOW_BYTES = 1 << 20, /* as the product where buffers allow */
	DEPTH_MAX = 512,
	TURN_NS = 1000,
	WARM_UP = 64 /* messages */
};

static const uint64_t stalled_ns = UINT64_C(2000000000);

enum op { OP_WRITE, OP_READ, OP_SEND, OP_PINGPONG };

static struct {
	enum op op;
	enum nic_protocol protocol;
	uint32_t size, mtu, messages, depth;
	bool remote;
} set = {.op = OP_WRITE,
	 .protocol = NIC_PROTOCOL_VEROCE,
	 .size = 1 << 20,
	 .mtu = 4096,
	 .messages = 500,
	 .depth = 16};

struct host {
	struct nic *nic;
	struct pd *pd;
	struct cq *cq;
	struct mr *mr;
	struct qp *qp;
	uint8_t *memory;
	uint64_t trains, packets, bytes; /* sent */
	uint32_t sent, received;         /* completions */
};

static struct host hosts[2];
static uint64_t now_ns = 1000000;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "core: %s\n", what);
	exit(1);
}

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "core: %s: %s\n", what, strerror(-err));
	exit(1);
}

static void *heap_get(void *ctx, size_t bytes)
{
	size_t lines = (bytes + 63) / 64 * 64;
	void *p = aligned_alloc(64, lines);

	(void)ctx;
	return p ? memset(p, 0, lines) : NULL;
}

static void heap_put(void *ctx, void *p, size_t bytes)
{
	(void)ctx;
	(void)bytes;
	free(p);
}

/* ---- the two ends ---------------------------------------------------------------------------- */

static void gid_of(uint8_t gid[16], int side)
{
	memcpy(gid, (uint8_t[16]){[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(1 + side)}, 16);
}

static void host_create(int side)
{
	struct host *h = &hosts[side];
	struct nic_config config = {
		.alloc = {.get = heap_get, .put = heap_put},
		.secret = {[0] = (uint8_t)(1 + side)},
		.qpn_slot = 1 + (uint32_t)side,
		.qpn_bits = 4,
		.protocol = set.protocol,
		.paths = NIC_PATHS_MAX,
		.window_bytes = WINDOW_BYTES,
		.ack_delay_ns = 20000,
		.rto_ns_min = 5000000,
		.pto_ns_min = 2000000,
		.gid_count = set.remote ? 1 : 2,
	};

	for (uint16_t i = 0; i < NIC_PATHS_MAX; i++)
		config.sport_ipv4[i] = (uint16_t)(SPORT + i);
	for (uint32_t i = 0; i < config.gid_count; i++) {
		gid_of(config.gids[i].raw, i ? !side : side);
		config.gids[i].ifindex = 1;
		config.gids[i].ip_mtu = 9000;
	}
	h->nic = nic_create(&config);
	h->memory = calloc(1, set.size ? set.size : 1);
	if (!h->nic || !h->memory)
		die("out of memory");
	nic_hold_acks(h->nic, set.op == OP_PINGPONG);
	must(nic_pd_alloc(h->nic, &h->pd), "PD");
	must(nic_mr_reg(h->nic, h->pd, h->memory, set.size, (uintptr_t)h->memory,
			MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ, &h->mr),
	     "MR");
	must(nic_cq_create(h->nic, 4 * DEPTH_MAX, h, &h->cq), "CQ");
	must(nic_qp_create(h->nic,
			   &(struct qp_init){.type = QPT_RC,
					     .pd = h->pd,
					     .send_cq = h->cq,
					     .recv_cq = h->cq,
					     .cap = {.max_send_wr = DEPTH_MAX,
						     .max_recv_wr = DEPTH_MAX,
						     .max_send_sge = 1,
						     .max_recv_sge = 1},
					     .owner = h},
			   &h->qp),
	     "QP");
}

static void connect(int side)
{
	struct host *h = &hosts[side];
	struct qp_attr init = {
		.state = QPS_INIT, .port = 1, .access = MR_REMOTE_WRITE | MR_REMOTE_READ};
	struct qp_attr rtr = {
		.state = QPS_RTR,
		.path_mtu_bytes = set.mtu,
		.dest_qpn = qp_number(hosts[!side].qp),
		.rq_psn = 1,
		.max_dest_rd_atomic = 16,
		.av = {.port = 1, .is_global = 1, .hop_limit = 64},
	};
	struct qp_attr rts = {.state = QPS_RTS,
			      .sq_psn = 1,
			      .timeout = 14,
			      .retry_cnt = 7,
			      .rnr_retry = 7,
			      .max_rd_atomic = 16};

	gid_of(rtr.av.dgid, !side);
	must(nic_qp_modify(h->nic, h->qp, &init,
			   QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, now_ns),
	     "to INIT");
	must(nic_qp_modify(h->nic, h->qp, &rtr,
			   QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
				   QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
			   now_ns),
	     "to RTR");
	must(nic_qp_modify(h->nic, h->qp, &rts,
			   QPA_STATE | QPA_SQ_PSN | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY |
				   QPA_MAX_RD_ATOMIC,
			   now_ns),
	     "to RTS");
}

/* ---- work --------------------------------------------------------------------------------------
 */

static void post(int side)
{
	static const uint8_t opcodes[] = {[OP_WRITE] = WR_WRITE,
					  [OP_READ] = WR_READ,
					  [OP_SEND] = WR_SEND,
					  [OP_PINGPONG] = WR_SEND};
	struct host *h = &hosts[side];
	struct send_wqe *w = sq_slot(qp_sq(h->qp), 0);

	if (!w)
		die("the send queue is full");
	*w = (struct send_wqe){
		.opcode = opcodes[set.op],
		.flags = WR_SIGNALED,
		.remote_va = (uintptr_t)hosts[!side].memory,
		.rkey = hosts[!side].mr->key,
		.num_sge = 1,
		.length = set.size,
	};
	w->sge[0] =
		(struct wqe_sge){.addr = (uintptr_t)h->memory, .len = set.size, .lkey = h->mr->key};
	sq_post(qp_sq(h->qp), 1);
	nic_doorbell(h->nic, h->qp);
}

static void post_receive(int side)
{
	struct host *h = &hosts[side];
	struct recv_wqe *w = rq_slot(qp_rq(h->qp));

	if (!w)
		die("the receive queue is full");
	w->num_sge = 1;
	w->length = set.size;
	w->sge[0] =
		(struct wqe_sge){.addr = (uintptr_t)h->memory, .len = set.size, .lkey = h->mr->key};
	rq_post(qp_rq(h->qp), w);
}

static void poll(int side)
{
	struct host *h = &hosts[side];
	const struct cqe *e;

	while ((e = cq_peek(h->cq, 0))) {
		bool receive = e->opcode & WC_RECV;

		if (e->status != WC_SUCCESS)
			die("a completion in error");
		cq_consume(h->cq, 1);
		if (!receive) {
			h->sent++;
			continue;
		}
		h->received++;
		post_receive(side);
		if (set.op == OP_PINGPONG)
			post(side);
	}
}

/* What one end has to send goes to the other at once. Returns the bytes. */
static uint64_t carry(int side)
{
	struct host *h = &hosts[side];
	struct pkt burst[BURST];
	uint64_t bytes = 0;
	size_t n;

	if (nic_deadline(h->nic) <= now_ns)
		nic_expire(h->nic, now_ns);
	n = nic_output(h->nic, burst, BURST, now_ns);
	for (size_t i = 0; i < n; i++) {
		h->trains += !burst[i].ip_id;
		bytes += burst[i].len;
		nic_input(hosts[!side].nic, &burst[i], now_ns);
	}
	h->packets += n;
	h->bytes += bytes;
	return bytes;
}

/*
 * As the engine has it: a post sends, what comes in is answered in the same turn, and then the
 * program polls. Time goes on as if a link carried 100 Gbit/s.
 */
static void turn(void)
{
	uint64_t bytes = 0, took_ns;

	for (int side = 0; side < 2; side++) {
		bytes += carry(side);
		bytes += carry(!side);
		poll(!side);
	}
	took_ns = bytes * 8 / 100;
	now_ns += took_ns > TURN_NS ? took_ns : TURN_NS;
}

static void run(uint32_t messages)
{
	uint32_t until = hosts[0].sent + messages, posted = hosts[0].sent;
	uint64_t give_up_ns = now_ns + stalled_ns;

	while (hosts[0].sent < until) {
		while (set.op != OP_PINGPONG && posted < until &&
		       posted - hosts[0].sent < set.depth) {
			post(0);
			posted++;
		}
		turn();
		if (now_ns > give_up_ns)
			die("stalled");
	}
}

/* Not inlined, for callgrind. */
static __attribute__((noinline)) void measured(void)
{
	run(set.messages);
}

static void options(int argc, char **argv)
{
	static const struct option longs[] = {
		{"op", required_argument, NULL, 'o'},    {"size", required_argument, NULL, 's'},
		{"mtu", required_argument, NULL, 'm'},   {"messages", required_argument, NULL, 'n'},
		{"depth", required_argument, NULL, 'd'}, {"protocol", required_argument, NULL, 'p'},
		{"remote", no_argument, NULL, 'r'},      {0}};
	static const char *const ops[] = {"write", "read", "send", "pingpong"};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
		uint32_t n = optarg ? (uint32_t)strtoul(optarg, NULL, 0) : 0, i;

		switch (c) {
		case 'o':
			for (i = 0; i < 4 && strcmp(optarg, ops[i]) != 0; i++)
				;
			if (i == 4)
				die("--op is write, read, send or pingpong");
			set.op = (enum op)i;
			break;
		case 's':
			set.size = n;
			break;
		case 'm':
			set.mtu = n;
			break;
		case 'n':
			set.messages = n;
			break;
		case 'd':
			set.depth = n;
			break;
		case 'p':
			if (strcmp(optarg, "veroce") != 0 && strcmp(optarg, "rocev2") != 0)
				die("--protocol is veroce or rocev2");
			set.protocol = *optarg == 'v' ? NIC_PROTOCOL_VEROCE : NIC_PROTOCOL_ROCEV2;
			break;
		case 'r':
			set.remote = true;
			break;
		default:
			exit(2);
		}
	}
	if (!set.depth || set.depth > DEPTH_MAX)
		die("--depth is 1 to 512");
}

int main(int argc, char **argv)
{
	struct timespec t[2];
	double messages, packets, ns;

	options(argc, argv);
	host_create(0);
	host_create(1);
	connect(0);
	connect(1);
	for (int i = 0; i < DEPTH_MAX / 2; i++) {
		post_receive(0);
		post_receive(1);
	}
	for (int i = 0; i < 1000; i++)
		turn(); /* what the ends have to agree on */
	if (set.op == OP_PINGPONG)
		post(0);
	run(WARM_UP);
	for (int side = 0; side < 2; side++)
		hosts[side].trains = hosts[side].packets = hosts[side].bytes = 0;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t[0]);
	measured();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t[1]);
	ns = (double)(t[1].tv_sec - t[0].tv_sec) * 1e9 + (double)(t[1].tv_nsec - t[0].tv_nsec);
	messages = set.messages;
	packets = messages * (set.size > set.mtu ? (set.size + set.mtu - 1) / set.mtu : 1);
	for (int side = 0; side < 2; side++)
		printf("%s: a message %.2f packets, %.2f trains, %.0f bytes\n",
		       side ? "target   " : "initiator", (double)hosts[side].packets / messages,
		       (double)hosts[side].trains / messages, (double)hosts[side].bytes / messages);
	printf("both: %.0f ns of processor a message, %.0f a packet of data; %.0f packets of "
	       "data\n",
	       ns / messages, ns / packets, packets);
	for (int side = 0; side < 2; side++)
		if (nic_counters(hosts[side].nic)->retransmits)
			printf("retransmitted: %" PRIu64 "\n",
			       nic_counters(hosts[side].nic)->retransmits);
	return 0;
}
