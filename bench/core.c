/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work of the protocol core for a message: two real nics in one loop, one QP between them,
 * virtual time, no sockets unless --udp. It counts packets and trains (datagrams, where there is a kernel)
 * exactly, and under callgrind instructions too:
 *
 *     valgrind --tool=callgrind --collect-atstart=no --toggle-collect=measured core [options]
 *
 *     core [--op write|read|send|pingpong] [--size BYTES] [--mtu BYTES] [--messages N] [--depth N]
 *          [--protocol veroce|rocev2] [--remote] [--udp]
 *
 * --udp: packets go through UDP sockets of 127.0.0.1 and 127.0.0.2 (both UDP ports must be free). One thread does the
 * work of both ends and waits for nothing, so the processor time of a message is the kernel's and ours, and can be
 * compared on a busy machine too: it is the least of ten parts.
 *
 * Both ends are of one host, as in `make bench`, unless --remote: then veRoCE has 16 paths and
 * congestion control. pingpong: SENDs to and fro: each is posted when the receive of the one before
 * completes; both ends poll.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/pkt.h"
#include "duo/duo.h"
#include "io/udp.h"
#include "wire/rocev2.h"

enum {
	BURST = 2 * PKT_TRAIN_MAX,
	WINDOW_BYTES = 1 << 20, /* as the product where buffers allow */
	DEPTH_MAX = 512,
	TURN_NS = 1000,
	WARM_UP = 64, /* messages */
	PARTS = 10
};

static const uint64_t stalled_ns = UINT64_C(2000000000);

enum op { OP_WRITE, OP_READ, OP_SEND, OP_PINGPONG };

static struct {
	enum op op;
	enum protocol protocol;
	uint32_t size, mtu, messages, depth;
	bool remote, udp;
} set = {.op = OP_WRITE,
	 .protocol = PROTOCOL_VEROCE,
	 .size = 1 << 20,
	 .mtu = 4096,
	 .messages = 500,
	 .depth = 16};

struct end {
	struct duo_host *host;
	struct duo_qp *qp;
	struct cq *cq;
	struct duo_buf *buf;
	struct duo_wr wr; /* what is posted, each time */
	uint64_t trains, packets, bytes; /* sent */
	uint32_t sent, received;         /* completions */
	struct io *io; /* with --udp */
	struct io_counters io_counters;
	double spent_ns, least_ns; /* processor time: of this part, and the least of a message */
};

static struct end ends[DUO_SIDES];
static struct duo *duo;
static double lap_ns;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "core: %s\n", what);
	exit(1);
}

/* ---- the two ends ---------------------------------------------------------------------------- */

static void address(uint8_t gid[16], int side)
{
	static const uint8_t first[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};

	memcpy(gid, first, sizeof(first));
	gid[15] = (uint8_t)(gid[15] + side);
}

static int receive_socket(uint16_t port, int side)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = udp_rx_socket(UDP_V4);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)side);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		die("a UDP port is not free");
	return fd;
}

static void use_sockets(struct nic_config *c, enum duo_side side)
{
	struct end *e = &ends[side];
	struct udp_config u = {.no_ipv6 = true, .paths = PATHS_MAX, .counters = &e->io_counters};
	char why[128];

	u.rx_fds[u.rx_count++] = receive_socket(ROCEV2_UDP_PORT, side);
	u.rx_fds[u.rx_count++] = receive_socket(VEROCE_UDP_PORT, side);
	if (udp_open(&e->io, &u, why, sizeof(why)) < 0)
		die(why);
	for (unsigned i = 0; i < PATHS_MAX; i++)
		c->transport.sport_ipv4[i] = udp_source_port(e->io, UDP_V4, i);
	c->transport.train_max = (uint16_t)io_train_max(e->io);
	address(c->gids[DUO_GID_IPV4].raw, side);
	if (!set.remote)
		address(c->gids[DUO_GIDS + DUO_GID_IPV4].raw, !side);
}

static void tweak(struct nic_config *c, enum duo_side side)
{
	c->transport.protocol = set.protocol;
	c->transport.paths = PATHS_MAX;
	c->transport.window_bytes = WINDOW_BYTES;
	c->transport.ack_delay_ns = 20000;
	c->transport.rocev2.only_bytes = 65536;
	c->transport.veroce.rto_ns_min = 5000000;
	c->transport.veroce.pto_ns_min = 2000000;
	c->transport.cc.target_ns = 4000000;
	if (!set.remote)
		duo_same_host(c);
	if (set.udp)
		use_sockets(c, side);
}

static void connect_ends(void)
{
	struct duo_options o = duo_options();
	struct duo_pair pair;

	o.mtu = set.mtu;
	o.psn[DUO_A] = o.psn[DUO_B] = 1;
	o.cap = (struct qp_cap){.max_send_wr = DEPTH_MAX,
				.max_recv_wr = DEPTH_MAX,
				.max_send_sge = 1,
				.max_recv_sge = 1};
	for (int side = 0; side < DUO_SIDES; side++) {
		struct end *e = &ends[side];

		e->host = &duo->host[side];
		nic_hold_acks(e->host->nic, set.op == OP_PINGPONG);
		if (nic_cq_create(e->host->nic, 4 * DEPTH_MAX, e, &e->cq))
			die("out of memory");
		o.cq[side] = e->cq;
		e->buf = duo_buf(e->host, set.size, MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ);
	}
	pair = duo_connect(duo, &o);
	ends[DUO_A].qp = pair.a;
	ends[DUO_B].qp = pair.b;
}

static void prepare(int side)
{
	static const enum wr_opcode opcodes[] = {[OP_WRITE] = WR_WRITE,
						 [OP_READ] = WR_READ,
						 [OP_SEND] = WR_SEND,
						 [OP_PINGPONG] = WR_SEND};
	struct end *e = &ends[side];

	e->wr = duo_write_wr(0, e->buf, 0, set.size, ends[!side].buf, 0);
	e->wr.opcode = opcodes[set.op];
}

/* ---- work --------------------------------------------------------------------------------------
 */

static void post(int side)
{
	if (!duo_post(ends[side].qp, &ends[side].wr))
		die("the send queue is full");
}

static void post_receive(int side)
{
	struct end *e = &ends[side];

	if (!duo_recv(e->qp, 0, e->buf, 0, set.size))
		die("the receive queue is full");
}

static void poll(int side)
{
	struct end *e = &ends[side];
	const struct cqe *c;

	while ((c = cq_peek(e->cq, 0))) {
		bool receive = c->opcode & WC_RECV;

		if (c->status != WC_SUCCESS)
			die("a completion in error");
		cq_consume(e->cq, 1);
		if (!receive) {
			e->sent++;
			continue;
		}
		e->received++;
		post_receive(side);
		if (set.op == OP_PINGPONG)
			post(side);
	}
}

static double processor_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The processor time since the last call was that end's. Each call costs a system call, so not in a ping-pong. */
static void lap(int side)
{
	double now_ns;

	if (!set.udp || set.op == OP_PINGPONG)
		return;
	now_ns = processor_ns();
	ends[side].spent_ns += now_ns - lap_ns;
	lap_ns = now_ns;
}

/* What has come through the sockets. */
static void receive(int side)
{
	struct pkt pkts[BURST];
	size_t n;

	/* The last call has no system call: the one before took all there was. */
	while ((n = io_recv(ends[side].io, pkts, BURST, duo->now_ns)))
		for (size_t i = 0; i < n; i++)
			nic_input(ends[side].host->nic, &pkts[i], duo->now_ns);
}

/* Delivers one end's packets to the other at once. Returns the bytes. */
static uint64_t carry(int side)
{
	struct end *e = &ends[side];
	struct pkt burst[BURST];
	uint64_t bytes = 0;
	size_t n;

	if (nic_deadline(e->host->nic) <= duo->now_ns)
		nic_expire(e->host->nic, duo->now_ns);
	n = nic_output(e->host->nic, burst, BURST, duo->now_ns);
	for (size_t i = 0; i < n; i++) {
		e->trains += !burst[i].ip_id;
		bytes += burst[i].len;
		if (!set.udp)
			nic_input(ends[!side].host->nic, &burst[i], duo->now_ns);
	}
	if (set.udp && n) {
		if (io_send(e->io, burst, n, duo->now_ns) < n)
			die("a socket's buffer is full");
		lap(side);
		receive(!side);
		lap(!side);
	}
	e->packets += n;
	e->bytes += bytes;
	return bytes;
}

/*
 * As in the engine: a post sends, input is answered in the same turn, and then the program polls.
 * Time advances as if a link carried 100 Gbit/s.
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
	duo->now_ns += took_ns > TURN_NS ? took_ns : TURN_NS;
}

static void begin_part(void)
{
	lap_ns = processor_ns();
	ends[0].spent_ns = ends[1].spent_ns = 0;
}

static void end_part(uint32_t messages)
{
	for (int side = 0; side < 2; side++) {
		double ns = ends[side].spent_ns / messages;

		if (!ends[side].least_ns || ns < ends[side].least_ns)
			ends[side].least_ns = ns;
	}
}

/* Returns the processor time of a message, the least of the parts. */
static double run(uint32_t messages)
{
	double begun_ns = processor_ns(), least_ns = 1e18;
	uint32_t part = messages / PARTS ? messages / PARTS : 1, begun = ends[0].sent;
	uint32_t until = ends[0].sent + messages, posted = ends[0].sent;
	uint64_t give_up_ns = duo->now_ns + stalled_ns;

	begin_part();
	while (ends[0].sent < until) {
		while (set.op != OP_PINGPONG && posted < until &&
		       posted - ends[0].sent < set.depth) {
			post(0);
			posted++;
		}
		turn();
		if (ends[0].sent - begun >= part) {
			double now_ns = processor_ns(), ns = (now_ns - begun_ns) / (ends[0].sent - begun);

			least_ns = ns < least_ns ? ns : least_ns;
			end_part(ends[0].sent - begun);
			begin_part();
			begun_ns = now_ns;
			begun = ends[0].sent;
		}
		if (duo->now_ns > give_up_ns)
			die("stalled");
	}
	return least_ns;
}

/* Not inlined, for callgrind. */
static __attribute__((noinline)) double measured(void)
{
	return run(set.messages);
}

static void options(int argc, char **argv)
{
	static const struct option longs[] = {
		{"op", required_argument, NULL, 'o'},    {"size", required_argument, NULL, 's'},
		{"mtu", required_argument, NULL, 'm'},   {"messages", required_argument, NULL, 'n'},
		{"depth", required_argument, NULL, 'd'}, {"protocol", required_argument, NULL, 'p'},
		{"remote", no_argument, NULL, 'r'},      {"udp", no_argument, NULL, 'u'},         {0}};
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
			set.protocol = *optarg == 'v' ? PROTOCOL_VEROCE : PROTOCOL_ROCEV2;
			break;
		case 'r':
			set.remote = true;
			break;
		case 'u':
			set.udp = true;
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
	double messages, packets, ns;

	options(argc, argv);
	duo = duo_create(1, tweak);
	for (int side = 0; set.udp && side < 2; side++)
		address(duo->host[side].gids[DUO_GID_IPV4].raw, side);
	connect_ends();
	prepare(0);
	prepare(1);
	for (int i = 0; i < DEPTH_MAX / 2; i++) {
		post_receive(0);
		post_receive(1);
	}
	for (int i = 0; i < 1000; i++)
		turn(); /* the CAPS of both ends */
	if (set.op == OP_PINGPONG)
		post(0);
	run(WARM_UP);
	for (int side = 0; side < 2; side++) {
		ends[side].trains = ends[side].packets = ends[side].bytes = 0;
		ends[side].least_ns = 0;
	}
	ns = measured();
	messages = set.messages;
	packets = messages * (set.size > set.mtu ? (set.size + set.mtu - 1) / set.mtu : 1);
	for (int side = 0; side < 2; side++) {
		printf("%s: a message %.2f packets, %.3f trains, %.0f bytes", side ? "target   " : "initiator",
		       (double)ends[side].packets / messages, (double)ends[side].trains / messages,
		       (double)ends[side].bytes / messages);
		if (ends[side].least_ns)
			printf(", %.0f ns of processor", ends[side].least_ns);
		printf("\n");
	}
	printf("both: %.0f ns of processor a message, %.0f a packet of data; %.0f packets of "
	       "data\n",
	       ns, ns * messages / packets, packets);
	for (int side = 0; side < 2; side++)
		if (nic_counters(ends[side].host->nic)->retransmits)
			printf("retransmitted: %" PRIu64 "\n",
			       nic_counters(ends[side].host->nic)->retransmits);
	return 0;
}
