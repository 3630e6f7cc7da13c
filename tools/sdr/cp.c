/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sdr_cp: copies a file to a server that waits for it, by messages that are coded or repeated until they
 * are whole. The file has its name there only when its checksum is the sender's.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sdr/meet.h"
#include "sdr/number.h"
#include "sdr/scheme.h"

enum {
	MESSAGE_LOG = 22,
	DEPTH_LOG = 4,
	DEPTH = 1 << DEPTH_LOG,
	MESSAGE = 1 << MESSAGE_LOG,
	PATH_BYTES = 4096
};

/* Settings that the sender sends and both use, in the order of the wire. */
enum plan_number {
	PLAN_MAGIC,
	PLAN_BYTES,
	PLAN_MTU,
	PLAN_CHUNK,
	PLAN_RTT_US,
	PLAN_SCHEME,
	PLAN_RATE,
	PLAN_NUMBERS
};

#define MAGIC UINT64_C(0x7364725f63703032) /* "sdr_cp02" */

static struct {
	const char *host, *path, *device;
	uint64_t port, gid_index;
	uint64_t plan[PLAN_NUMBERS];
	char part[PATH_BYTES]; /* what is being written; empty: nothing */

	int tcp;
	struct verbena_sdr_context *ctx;
	struct verbena_sdr_qp *qp;
	struct verbena_sdr_mr *mr;
	uint8_t *memory; /* the file, or DEPTH messages */
	uint32_t lkey;
	uint64_t messages;
	struct scheme_way way;
	uint64_t start_ns;
	struct verbena_sdr_ec_attr said; /* the choice that was printed last */
} g = {.port = 18517,
       .plan = {[PLAN_MAGIC] = MAGIC, [PLAN_CHUNK] = 65536, [PLAN_SCHEME] = SCHEME_AUTO}};

static void remove_part(void)
{
	if (g.part[0])
		unlink(g.part);
}

/* ---- the command line */

static void usage(void)
{
	printf("Usage: sdr_cp [OPTION ...] FILE HOST    sends a file\n"
	       "       sdr_cp [OPTION ...] FILE         waits for one and writes it\n\n"
	       "  -p, --port N        TCP port to meet on (18517)\n"
	       "  -d, --ib-dev NAME   the device (the first)\n"
	       "  -x, --gid-index N   index in its port's GID table (0)\n"
	       "The sender's:\n"
	       "  -r, --rate N        Mbit/s that are sent at most (no limit)\n"
	       "  -k, --chunk N       bytes that are repeated together, a power of two (65536)\n"
	       "  -m, --mtu N         bytes of a packet, a power of two (what both ports carry)\n"
	       "  -t, --rtt N         microseconds that a round trip takes (measured)\n"
	       "  -S, --scheme NAME   how losses are repaired: " SCHEME_NAMES " (auto)\n"
	       "  -h, --help          this\n");
}

static void option_take(int letter)
{
	switch (letter) {
	case 'p':
		g.port = number_read("port", optarg, (struct number_range){1, 65535, false});
		break;
	case 'd':
		g.device = optarg;
		break;
	case 'x':
		g.gid_index =
			number_read("gid-index", optarg, (struct number_range){0, 255, false});
		break;
	case 'r':
		g.plan[PLAN_RATE] =
			number_read("rate", optarg, (struct number_range){1, 10000000, false});
		break;
	case 'k':
		g.plan[PLAN_CHUNK] =
			number_read("chunk", optarg, (struct number_range){64, 262144, true});
		break;
	case 'm':
		g.plan[PLAN_MTU] =
			number_read("mtu", optarg, (struct number_range){64, 4096, true});
		break;
	case 't':
		g.plan[PLAN_RTT_US] =
			number_read("rtt", optarg, (struct number_range){1, 100000000, false});
		break;
	case 'S':
		g.plan[PLAN_SCHEME] = scheme_named(optarg);
		break;
	case 'h':
		usage();
		exit(0);
	default:
		fprintf(stderr, "sdr_cp --help lists the options\n");
		exit(1);
	}
}

static void options_read(int argc, char **argv)
{
	static const struct option longs[] = {{"port", required_argument, NULL, 'p'},
					      {"ib-dev", required_argument, NULL, 'd'},
					      {"gid-index", required_argument, NULL, 'x'},
					      {"rate", required_argument, NULL, 'r'},
					      {"chunk", required_argument, NULL, 'k'},
					      {"mtu", required_argument, NULL, 'm'},
					      {"rtt", required_argument, NULL, 't'},
					      {"scheme", required_argument, NULL, 'S'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	int letter;

	while ((letter = getopt_long(argc, argv, "p:d:x:r:k:m:t:S:h", longs, NULL)) != -1)
		option_take(letter);
	if (argc - optind < 1 || argc - optind > 2)
		die("a file, and a host to send it to, are wanted; --help tells");
	g.path = argv[optind];
	g.host = argv[optind + 1];
}

/* ---- both ends */

static uint64_t message_bytes(uint64_t n)
{
	uint64_t left = g.plan[PLAN_BYTES] - n * MESSAGE;

	return left < MESSAGE ? left : MESSAGE;
}

/* Takes messages in their order: but for the last they are multiples of 8 bytes long. */
static uint64_t checksum(uint64_t sum, const uint8_t *p, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i += 8) {
		uint64_t v = 0;

		memcpy(&v, p + i, bytes - i < 8 ? bytes - i : 8);
		sum = (sum ^ v) * UINT64_C(0x9e3779b97f4a7c15);
		sum ^= sum >> 29;
	}
	return sum;
}

static void qp_open(void)
{
	const struct meet_device device = {
		.name = g.device,
		.gid_index = g.gid_index,
		.mtu = g.plan[PLAN_MTU],
		.chunk = g.plan[PLAN_CHUNK],
		.messages_log = DEPTH_LOG + 1,
		.message_bytes = MESSAGE,
		.sends = g.host,
		.receives = !g.host,
		.rate_mbps = g.plan[PLAN_RATE],
		.rtt_ns = g.plan[PLAN_RTT_US] * 1000,
	};

	g.ctx = meet_context(&device);
	g.qp = meet_qp(g.ctx, &device);
}

/* Both ends are connected. */
static void way_find(void)
{
	g.way = (struct scheme_way){.scheme = (enum scheme)g.plan[PLAN_SCHEME],
				    .rtt_ns = scheme_rtt_ns(g.ctx, g.qp, g.tcp, g.host),
				    .rate_mbps = g.plan[PLAN_RATE],
				    .chunk = g.plan[PLAN_CHUNK]};
	if (g.plan[PLAN_RTT_US])
		g.way.rtt_ns = g.plan[PLAN_RTT_US] * 1000;
	if (!g.way.rtt_ns)
		die("no round trip could be measured; --rtt tells it");
}

static void memory_register(uint64_t bytes, uint32_t flags)
{
	g.mr = verbena_sdr_mr_reg(g.ctx, g.memory, bytes, flags);
	if (!g.mr || verbena_sdr_mr_lkey_get(g.mr, &g.lkey))
		die("registering %llu bytes: %s", (unsigned long long)bytes, strerror(errno));
}

static void agree(void)
{
	if (g.host)
		meet_send_numbers(g.tcp, g.plan, PLAN_NUMBERS);
	else
		meet_recv_numbers(g.tcp, g.plan, PLAN_NUMBERS);
	if (g.plan[PLAN_MAGIC] != MAGIC || g.plan[PLAN_BYTES] > INT64_MAX ||
	    g.plan[PLAN_MTU] > 4096 || g.plan[PLAN_CHUNK] > 262144 ||
	    g.plan[PLAN_RTT_US] > 100000000 || g.plan[PLAN_SCHEME] >= SCHEMES ||
	    g.plan[PLAN_RATE] > 10000000)
		die("the peer is not the sdr_cp of this version");
	g.messages = (g.plan[PLAN_BYTES] + MESSAGE - 1) / MESSAGE;
}

static void close_all(void)
{
	verbena_sdr_qp_destroy(g.qp);
	if (g.mr)
		verbena_sdr_mr_dereg(g.mr);
	verbena_sdr_context_destroy(g.ctx);
}

/* Rests a little if nothing happened: the other end may need the processor. Notices a peer that is
 * gone. */
static void rest(bool idle)
{
	uint64_t none;

	if (idle)
		meet_poll(g.tcp, &none, sizeof(none), 0, 1);
}

/* ---- sending */

static int source_open(void)
{
	struct stat st;
	int fd = open(g.path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st))
		die("%s: %s", g.path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		die("%s: not a file", g.path);
	g.plan[PLAN_BYTES] = (uint64_t)st.st_size;
	return fd;
}

static void source_map(int fd)
{
	if (!g.plan[PLAN_BYTES])
		return;
	g.memory = mmap(NULL, g.plan[PLAN_BYTES], PROT_READ, MAP_PRIVATE, fd, 0);
	if (g.memory == MAP_FAILED)
		die("%s: %s", g.path, strerror(errno));
	memory_register(g.plan[PLAN_BYTES], 0);
}

/* Says what is chosen, and why, when it is another code than before. */
static void say_choice(const struct verbena_sdr_ec_attr *a, const char *reason)
{
	if (a->data == g.said.data && a->parity == g.said.parity)
		return;
	if (a->parity)
		printf("%u parities with %u packets, at %.2g %% of loss: %s\n", a->parity, a->data,
		       a->loss * 100, reason);
	else
		printf("parities on demand alone: %s\n", reason);
	g.said = *a;
}

/* How fast it has gone so far, where no rate was given. */
static void learn_rate(uint64_t there)
{
	uint64_t ns = now_ns() - g.start_ns;

	if (!g.plan[PLAN_RATE] && there > DEPTH)
		g.way.rate_mbps = there * MESSAGE * 8000 / (ns + 1) + 1;
}

static bool send_one(struct verbena_sdr_send *sends, uint64_t n)
{
	struct verbena_sdr_block b = {
		.address = g.memory + n * MESSAGE, .length = message_bytes(n), .lkey = g.lkey};
	uint64_t behind = g.plan[PLAN_BYTES] - n * MESSAGE - message_bytes(n);
	struct verbena_sdr_ec_attr attr = {0};
	const char *reason;
	int r = scheme_send(g.qp, &g.way, &b, behind, &attr, &reason, &sends[n % DEPTH]);

	if (r == VERBENA_SDR_ERROR)
		die("sending: %s", strerror(errno));
	if (!r && attr.data)
		say_choice(&attr, reason);
	return r == VERBENA_SDR_SUCCESS;
}

static void send_all(void)
{
	struct verbena_sdr_send sends[DEPTH];
	uint64_t sent = 0, there = 0;

	while (there < g.messages) {
		bool busy = verbena_sdr_progress(g.ctx), done = true;

		while (sent < g.messages && sent - there < DEPTH && send_one(sends, sent))
			sent++;
		while (there < sent && done) {
			if (scheme_poll(&g.way, &sends[there % DEPTH], &done))
				die("sending: %s", strerror(errno));
			there += done;
			if (done)
				learn_rate(there);
			busy |= done;
		}
		rest(!busy);
	}
}

static void send_file(void)
{
	uint64_t sum, verdict, ns;
	struct verbena_sdr_stats stats;
	int fd = source_open();

	g.tcp = meet(g.host, (uint16_t)g.port);
	agree();
	qp_open();
	source_map(fd);
	meet_connect(g.tcp, g.qp);
	way_find();
	g.start_ns = now_ns();
	send_all();
	ns = now_ns() - g.start_ns;
	sum = checksum(0, g.memory, g.plan[PLAN_BYTES]);
	meet_send_numbers(g.tcp, &sum, 1);
	meet_recv_numbers(g.tcp, &verdict, 1);
	if (verdict)
		die("%s has arrived, but not as it was sent", g.path);
	verbena_sdr_qp_stats_get(g.qp, &stats);
	printf("%llu bytes in %.3f s, %.3f Gbit/s, %llu packets, a round trip of %.1f ms\n",
	       (unsigned long long)g.plan[PLAN_BYTES], (double)ns / 1e9,
	       (double)g.plan[PLAN_BYTES] * 8 / (double)(ns ? ns : 1),
	       (unsigned long long)stats.sent, (double)g.way.rtt_ns / 1e6);
	close_all();
	close(fd);
}

/* ---- receiving */

static int part_open(void)
{
	int fd;

	if (snprintf(g.part, sizeof(g.part), "%s.part", g.path) >= (int)sizeof(g.part)) {
		g.part[0] = 0;
		die("%s: %s", g.path, strerror(ENAMETOOLONG));
	}
	fd = open(g.part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0) {
		g.part[0] = 0;
		die("%s.part: %s", g.path, strerror(errno));
	}
	atexit(remove_part);
	return fd;
}

static bool post_one(struct verbena_sdr_recv *recvs, uint64_t n)
{
	struct verbena_sdr_recv_attr attr = {.address = g.memory + n % DEPTH * MESSAGE,
					     .max_length = message_bytes(n),
					     .lkey = g.lkey};
	int r = scheme_recv_post(g.qp, &g.way, &attr, &recvs[n % DEPTH]);

	if (r == VERBENA_SDR_RETRY)
		return false;
	if (r)
		die("posting a receive: %s", strerror(errno));
	return true;
}

static void write_all(int fd, const uint8_t *p, uint64_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, p, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			die("%s: %s", g.part, strerror(errno));
		p += n;
		bytes -= (uint64_t)n;
	}
}

/* The checksum of what was written. */
static uint64_t recv_all(int fd)
{
	struct verbena_sdr_recv recvs[DEPTH];
	uint64_t posted = 0, there = 0, sum = 0;

	while (there < g.messages) {
		bool busy = verbena_sdr_progress(g.ctx), done = false;

		while (posted < g.messages && posted - there < DEPTH && post_one(recvs, posted))
			posted++;
		if (there < posted && scheme_recv_poll(&g.way, &recvs[there % DEPTH], &done))
			die("receiving: %s", strerror(errno));
		if (done) {
			uint8_t *p = g.memory + there % DEPTH * MESSAGE;

			if (verbena_sdr_recv_complete(&recvs[there % DEPTH]))
				die("completing a receive: %s", strerror(errno));
			write_all(fd, p, message_bytes(there));
			sum = checksum(sum, p, message_bytes(there++));
		}
		rest(!busy && !done);
	}
	return sum;
}

/* The sender may not know yet that all has arrived, so it is answered until it does. */
static uint64_t sum_of_sender(void)
{
	uint64_t sum;

	while (!meet_poll(g.tcp, &sum, sizeof(sum), 1, 1))
		verbena_sdr_progress(g.ctx);
	return be64toh(sum);
}

static void recv_file(void)
{
	struct verbena_sdr_stats stats;
	uint64_t sum, verdict;
	int fd;

	g.tcp = meet(NULL, (uint16_t)g.port);
	agree();
	fd = part_open();
	qp_open();
	g.memory = aligned_alloc(4096, (size_t)DEPTH * MESSAGE);
	if (!g.memory)
		die("no memory");
	memset(g.memory, 0, (size_t)DEPTH * MESSAGE);
	memory_register((uint64_t)DEPTH * MESSAGE, VERBENA_SDR_REMOTE_WRITE);
	meet_connect(g.tcp, g.qp);
	way_find();
	sum = recv_all(fd);
	verdict = sum != sum_of_sender();
	if (fsync(fd) || close(fd))
		die("%s: %s", g.part, strerror(errno));
	if (!verdict && rename(g.part, g.path))
		die("%s: %s", g.path, strerror(errno));
	if (!verdict)
		g.part[0] = 0;
	meet_send_numbers(g.tcp, &verdict, 1);
	verbena_sdr_qp_stats_get(g.qp, &stats);
	printf("%llu bytes, %llu packets, %llu computed, %llu again, %llu late\n",
	       (unsigned long long)g.plan[PLAN_BYTES], (unsigned long long)stats.packets,
	       (unsigned long long)stats.ec_recovered, (unsigned long long)stats.duplicates,
	       (unsigned long long)stats.dropped_late);
	close_all();
	free(g.memory);
	if (verdict)
		die("%s has arrived, but not as it was sent", g.path);
}

int main(int argc, char **argv)
{
	options_read(argc, argv);
	if (g.host)
		send_file();
	else
		recv_file();
	return 0;
}
