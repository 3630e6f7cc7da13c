/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work of the protocol core for a message: two real nics in one loop, one or several QPs between them,
 * virtual time, no sockets unless --udp. It counts packets, trains (datagrams, where there is a kernel) and calls that
 * send exactly, and under callgrind instructions too:
 *
 *     valgrind --tool=callgrind --collect-atstart=no --toggle-collect=measured core [options]
 *
 *     core [--op write|read|send|pingpong] [--size BYTES] [--mtu BYTES] [--messages N] [--depth N]
 *          [--protocol veroce|rocev2] [--qps N] [--both] [--remote] [--paths N] [--udp]
 *
 * --qps: so many QPs take turns at posting; --messages is the sum over all, --depth is of each. --both: both ends post,
 * each as many messages.
 *
 * --udp: packets go through UDP sockets of 127.0.0.1 and 127.0.0.2 (both UDP ports must be free). One thread does the
 * work of both ends and waits for nothing, so the processor time of a message is the kernel's and ours, and can be
 * compared on a busy machine too: it is the least of ten parts. The calls that send are counted then.
 *
 * Both ends are of one host, as in `make bench`, unless --remote: then veRoCE has congestion control and 16 paths, or
 * as many as --paths says. pingpong: SENDs to and fro: each is posted when the receive of the one before completes; both
 * ends poll.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/pkt.h"
#include "duo/duo.h"
#include "io/udp/udp.h"
#include "wire/rocev2.h"

#include "options.h"

enum {
	BURST = 2 * PKT_TRAIN_MAX + NIC_TX_ANSWERS, /* as in the engine */
	WINDOW_BYTES = 1 << 20,                     /* as the product where buffers allow */
	DEPTH_MAX = 512,
	QPS_MAX = 64,
	TURN_NS = 1000,
	WARM_UP = 64, /* messages */
	PARTS = 10
};

static const uint64_t stalled_ns = UINT64_C(2000000000);

enum op { OP_WRITE, OP_READ, OP_SEND, OP_PINGPONG };

static struct {
	enum op op;
	enum protocol protocol;
	uint32_t size, mtu, messages, depth, qps, paths;
	bool remote, udp, both;
} set = {.op = OP_WRITE,
	 .protocol = PROTOCOL_VEROCE,
	 .size = 1 << 20,
	 .mtu = 4096,
	 .messages = 500,
	 .depth = 16,
	 .qps = 1,
	 .paths = PATHS_MAX};

/* One end of a connection; its index is the wr_id of all its work requests. */
struct end_qp {
	struct duo_qp *qp;
	uint32_t posted, sent; /* messages; and completions of them */
};

struct end {
	struct duo_host *host;
	struct end_qp qps[QPS_MAX];
	uint32_t posted; /* messages of all QPs */
	uint32_t turn;   /* the QP that posts next */
	struct cq *cq;
	struct duo_buf *buf;
	struct duo_wr wr;                /* what is posted, each time */
	uint64_t trains, packets, bytes; /* sent */
	uint32_t sent, received;         /* completions */
	struct io *io;                   /* with --udp */
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
	struct udp_config u = {.no_ipv6 = true, .paths = set.paths, .counters = &e->io_counters};
	char why[128];

	u.rx_fds[u.rx_count++] = receive_socket(ROCEV2_UDP_PORT, side);
	u.rx_fds[u.rx_count++] = receive_socket(VEROCE_UDP_PORT, side);
	if (udp_open(&e->io, &u, why, sizeof(why)) < 0)
		die(why);
	for (unsigned i = 0; i < set.paths; i++)
		c->transport.sport_ipv4[i] = udp_source_port(e->io, UDP_V4, i);
	c->transport.train_max = (uint16_t)io_train_max(e->io);
	address(c->gids[DUO_GID_IPV4].raw, side);
	if (!set.remote)
		address(c->gids[DUO_GIDS + DUO_GID_IPV4].raw, !side);
}

static void tweak(struct nic_config *c, enum duo_side side)
{
	c->transport.protocol = set.protocol;
	c->transport.paths = set.paths;
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

	o.mtu = set.mtu;
	o.psn[DUO_A] = o.psn[DUO_B] = 1;
	o.cap = (struct qp_cap){
		.max_send_wr = DEPTH_MAX, .max_recv_wr = DEPTH_MAX, .max_send_sge = 1, .max_recv_sge = 1};
	for (int side = 0; side < DUO_SIDES; side++) {
		struct end *e = &ends[side];

		e->host = &duo->host[side];
		nic_hold_acks(e->host->nic, set.op == OP_PINGPONG);
		if (nic_cq_create(e->host->nic, 4 * DEPTH_MAX * set.qps, e, &e->cq))
			die("out of memory");
		o.cq[side] = e->cq;
		e->buf = duo_buf(e->host, set.size, MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ);
	}
	for (uint32_t i = 0; i < set.qps; i++) {
		struct duo_pair pair = duo_connect(duo, &o);

		ends[DUO_A].qps[i].qp = pair.a;
		ends[DUO_B].qps[i].qp = pair.b;
	}
}

static void prepare(int side)
{
	static const enum wr_opcode opcodes[] = {
		[OP_WRITE] = WR_WRITE, [OP_READ] = WR_READ, [OP_SEND] = WR_SEND, [OP_PINGPONG] = WR_SEND};
	struct end *e = &ends[side];

	e->wr = duo_write_wr(0, e->buf, 0, set.size, ends[!side].buf, 0);
	e->wr.opcode = opcodes[set.op];
}

/* ---- work --------------------------------------------------------------------------------------
 */

static void post(int side, uint32_t qp)
{
	struct end *e = &ends[side];

	e->wr.wr_id = qp;
	if (!duo_post(e->qps[qp].qp, &e->wr))
		die("the send queue is full");
	e->qps[qp].posted++;
	e->posted++;
}

static void post_receive(int side, uint32_t qp)
{
	struct end *e = &ends[side];

	if (!duo_recv(e->qps[qp].qp, qp, e->buf, 0, set.size))
		die("the receive queue is full");
}

/* Fills the send queues in turn, until so many messages were posted. */
static void post_until(int side, uint32_t until)
{
	struct end *e = &ends[side];
	uint32_t full = 0;

	while (e->posted != until && full < set.qps) {
		struct end_qp *q = &e->qps[e->turn];

		if (q->posted - q->sent < set.depth) {
			post(side, e->turn);
			full = 0;
		} else {
			full++;
		}
		e->turn = e->turn + 1 < set.qps ? e->turn + 1 : 0;
	}
}

static void poll(int side)
{
	struct end *e = &ends[side];
	const struct cqe *c;

	while ((c = cq_peek(e->cq, 0))) {
		bool receive = c->opcode & WC_RECV;
		uint32_t qp = (uint32_t)c->wr_id;

		if (c->status != WC_SUCCESS)
			die("a completion in error");
		cq_consume(e->cq, 1);
		if (!receive) {
			e->qps[qp].sent++;
			e->sent++;
			continue;
		}
		e->received++;
		post_receive(side, qp);
		if (set.op == OP_PINGPONG)
			post(side, qp);
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
		nic_input(ends[side].host->nic, pkts, n, duo->now_ns);
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
	}
	if (!set.udp && n)
		nic_input(ends[!side].host->nic, burst, n, duo->now_ns);
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

/* Returns the processor time of a message (with --both: of one each way), the least of the parts. */
static double run(uint32_t messages)
{
	double begun_ns = processor_ns(), least_ns = 1e18;
	uint32_t part = messages / PARTS ? messages / PARTS : 1, begun = ends[0].sent;
	uint32_t until = ends[0].sent + messages;
	uint32_t sent = ends[0].sent + ends[1].sent;
	uint64_t moved_ns = duo->now_ns;

	begin_part();
	while (ends[0].sent < until || (set.both && ends[1].sent < until)) {
		for (int side = 0; side < 1 + set.both && set.op != OP_PINGPONG; side++)
			post_until(side, until);
		turn();
		if (ends[0].sent - begun >= part) {
			double now_ns = processor_ns(), ns = (now_ns - begun_ns) / (ends[0].sent - begun);

			least_ns = ns < least_ns ? ns : least_ns;
			end_part(ends[0].sent - begun);
			begin_part();
			begun_ns = now_ns;
			begun = ends[0].sent;
		}
		if (ends[0].sent + ends[1].sent != sent) {
			sent = ends[0].sent + ends[1].sent;
			moved_ns = duo->now_ns;
		}
		if (duo->now_ns - moved_ns > stalled_ns)
			die("stalled");
	}
	return least_ns;
}

static void forget_counts(void)
{
	for (int side = 0; side < 2; side++) {
		struct end *e = &ends[side];

		e->trains = e->packets = e->bytes = 0;
		e->least_ns = 0;
		e->io_counters.tx_syscalls = 0;
	}
}

static void report(double ns)
{
	double messages = set.messages, mib = messages * set.size / (1 << 20);
	double packets = messages * (set.size > set.mtu ? (set.size + set.mtu - 1) / set.mtu : 1);

	for (int side = 0; side < 2; side++) {
		const struct end *e = &ends[side];
		double calls = (double)e->io_counters.tx_syscalls, trains = (double)e->trains;

		printf("%s: a message %.2f packets, %.3f trains, ", side ? "target   " : "initiator",
		       (double)e->packets / messages, trains / messages);
		if (set.udp)
			printf("%.3f calls that send, ", calls / messages);
		printf("%.0f bytes", (double)e->bytes / messages);
		if (set.size >= 1024)
			printf("; a MiB %.2f trains", trains / mib);
		if (set.size >= 1024 && set.udp)
			printf(", %.2f calls", calls / mib);
		if (e->least_ns)
			printf("; %.0f ns of processor a message", e->least_ns);
		printf("\n");
	}
	printf("both: %.0f ns of processor a message, %.0f a packet of data; %.0f packets of data\n", ns,
	       ns * messages / packets, packets);
	for (int side = 0; side < 2; side++) {
		const struct nic_counters *c = nic_counters(ends[side].host->nic);

		if (c->retransmits || c->timeouts)
			printf("%s: %" PRIu64 " packets sent again, %" PRIu64 " timeouts\n",
			       side ? "target" : "initiator", c->retransmits, c->timeouts);
	}
}

/* Not inlined, for callgrind. */
static __attribute__((noinline)) double measured(void)
{
	return run(set.messages);
}

static void options(int argc, char **argv)
{
	uint64_t op = OP_WRITE, protocol = 0;
	const struct option_row rows[] = {
		{0, "op", OPTION_WORD, &op, 0, 0, "write|read|send|pingpong", NULL},
		{0, "protocol", OPTION_WORD, &protocol, 0, 0, "veroce|rocev2", NULL},
		{0, "size", OPTION_U32, &set.size, 0, UINT32_MAX, "BYTES", NULL},
		{0, "mtu", OPTION_U32, &set.mtu, 256, 4096, "BYTES", NULL},
		{0, "messages", OPTION_U32, &set.messages, 1, UINT32_MAX, "N", NULL},
		{0, "depth", OPTION_U32, &set.depth, 1, DEPTH_MAX, "N", NULL},
		{0, "qps", OPTION_U32, &set.qps, 1, QPS_MAX, "N", NULL},
		{0, "paths", OPTION_U32, &set.paths, 1, PATHS_MAX, "N", NULL},
		{0, "both", OPTION_FLAG, &set.both, 0, 0, NULL, NULL},
		{0, "remote", OPTION_FLAG, &set.remote, 0, 0, NULL, NULL},
		{0, "udp", OPTION_FLAG, &set.udp, 0, 0, NULL, NULL},
	};

	if (options_read(argc, argv, rows, OPTION_COUNT(rows), "usage: core [OPTION ...]\n") != argc)
		die("only options");
	set.op = (enum op)op;
	set.protocol = protocol ? PROTOCOL_ROCEV2 : PROTOCOL_VEROCE;
	if (set.both && set.op == OP_PINGPONG)
		die("a pingpong is both ways already");
}

int main(int argc, char **argv)
{
	double ns;

	options(argc, argv);
	duo = duo_create(1, tweak);
	for (int side = 0; set.udp && side < 2; side++)
		address(duo->host[side].gids[DUO_GID_IPV4].raw, side);
	connect_ends();
	prepare(0);
	prepare(1);
	for (uint32_t qp = 0; qp < set.qps; qp++) {
		for (int i = 0; i < DEPTH_MAX / 2; i++) {
			post_receive(0, qp);
			post_receive(1, qp);
		}
	}
	for (int i = 0; i < 1000; i++)
		turn(); /* the CAPS of both ends */
	for (uint32_t qp = 0; set.op == OP_PINGPONG && qp < set.qps; qp++)
		post(0, qp);
	run(WARM_UP);
	forget_counts();
	ns = measured();
	report(ns);
	return 0;
}
