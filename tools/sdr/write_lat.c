/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sdr_write_lat: how long a message takes that must arrive, from the first packet's sending to the
 * sender's notice that all has arrived. One message at a time; the server compares every byte.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "sdr/meet.h"
#include "sdr/chosen_scheme.h"

enum { MESSAGES_LOG = 2, MESSAGES = 1 << MESSAGES_LOG, MESSAGE_MAX = 1 << 28 };

/* What the client says and both do; the order is that of the wire. */
enum plan_number {
	PLAN_MAGIC,
	PLAN_SIZE,
	PLAN_ITERS,
	PLAN_SCHEME,
	PLAN_CHUNK,
	PLAN_RATE,
	PLAN_RTT_US,
	PLAN_FILL,
	PLAN_NUMBERS
};

#define MAGIC UINT64_C(0x7364725f6c617432) /* "sdr_lat2" */

static struct {
	const char *host, *device;
	uint64_t port, gid_index;
	uint64_t plan[PLAN_NUMBERS];
	int tcp;
	struct verbena_sdr_context *ctx;
	struct verbena_sdr_qp *qp;
	struct verbena_sdr_mr *mr;
	uint8_t *memory; /* the client's is one message, the server's MESSAGES */
	uint32_t lkey;
	struct scheme_way way;
} g = {.port = 18518, .plan = {MAGIC, 65536, 1000, SCHEME_AUTO, 65536}};

static const struct option_row rows[] = {
	/* clang-format off */
	{'p', "port", OPTION_U64, &g.port, 1, 65535, NULL, "TCP port to meet on"},
	{'d', "ib-dev", OPTION_TEXT, &g.device, 0, 0, "NAME", "the device (the first)"},
	{'x', "gid-index", OPTION_U64, &g.gid_index, 0, 255, NULL, "index in its port's GID table"},
	{0, NULL, OPTION_HEADING, NULL, 0, 0, NULL, "The client's:"},
	{'s', "size", OPTION_U64, &g.plan[PLAN_SIZE], 1, MESSAGE_MAX, NULL, "bytes of a message"},
	{'n', "iters", OPTION_U64, &g.plan[PLAN_ITERS], 1, 10000000, NULL, "messages"},
	{'S', "scheme", OPTION_WORD, &g.plan[PLAN_SCHEME], 0, 0, SCHEME_NAMES, "how losses are repaired"},
	{'k', "chunk", OPTION_POWER, &g.plan[PLAN_CHUNK], 64, 262144, NULL, "bytes of a chunk, a power of two"},
	{'r', "rate", OPTION_U64, &g.plan[PLAN_RATE], 0, 10000000, NULL, "Mbit/s that are sent at most (no limit)"},
	{'t', "rtt", OPTION_U64, &g.plan[PLAN_RTT_US], 0, 100000000, NULL, "microseconds that a round trip takes (measured)"},
	{'F', "idle-fill", OPTION_ONE, &g.plan[PLAN_FILL], 0, 0, NULL, "parities of tail go on until a message has arrived"},
	/* clang-format on */
};

static void command_read(int argc, char **argv)
{
	int first = options_read(argc, argv, rows, OPTION_COUNT(rows),
				 "Usage: sdr_write_lat [OPTION ...] [HOST]\n"
				 "Tells how long messages take until the sender knows that they have arrived.\n"
				 "Without HOST it is the server.\n\n");

	if (argc - first > 1)
		die("one host at most, not '%s' too", argv[first + 1]);
	scheme_fill_check(g.plan[PLAN_FILL], (enum scheme)g.plan[PLAN_SCHEME]);
	g.host = argv[first];
}

/* ---- both ends */

static void agree(void)
{
	meet_agree(g.tcp, g.host, g.plan, PLAN_NUMBERS);
	if (g.plan[PLAN_MAGIC] != MAGIC || !options_allow(rows, OPTION_COUNT(rows), g.plan, g.plan + PLAN_NUMBERS) ||
	    (g.plan[PLAN_FILL] && !scheme_fills((enum scheme)g.plan[PLAN_SCHEME])))
		die("the peer is not the sdr_write_lat of this version");
}

static void open_all(void)
{
	const struct meet_device device = {
		.name = g.device,
		.gid_index = g.gid_index,
		.chunk = g.plan[PLAN_CHUNK],
		.messages_log = MESSAGES_LOG + 1,
		.message_bytes = g.plan[PLAN_SIZE],
		.sends = g.host,
		.receives = !g.host,
		.rate_mbps = g.plan[PLAN_RATE],
		.rtt_ns = g.plan[PLAN_RTT_US] * 1000,
		.idle_fill = g.plan[PLAN_FILL],
	};
	g.ctx = meet_context(&device);
	g.qp = meet_qp(g.ctx, &device);
	g.memory = meet_memory(g.ctx, g.plan[PLAN_SIZE] * (g.host ? 1 : MESSAGES),
			       g.host ? 0 : VERBENA_SDR_REMOTE_WRITE, &g.mr, &g.lkey);
	meet_connect(g.tcp, g.qp);
	g.way = (struct scheme_way){.scheme = (enum scheme)g.plan[PLAN_SCHEME],
				    .rtt_ns = g.plan[PLAN_RTT_US] * 1000,
				    .rate_mbps = g.plan[PLAN_RATE],
				    .chunk = g.plan[PLAN_CHUNK]};
	scheme_open(&g.way, g.ctx, g.qp, g.tcp, g.host, NULL);
}

static void close_all(void)
{
	verbena_sdr_qp_destroy(g.qp);
	verbena_sdr_mr_dereg(g.mr);
	verbena_sdr_context_destroy(g.ctx);
	free(g.memory);
}

static void fill(uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < g.plan[PLAN_SIZE]; i++)
		p[i] = (uint8_t)(i * 7 + i / 256 * 31 + n * 13);
}

static bool right(const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < g.plan[PLAN_SIZE]; i++) {
		if (p[i] != (uint8_t)(i * 7 + i / 256 * 31 + n * 13))
			return false;
	}
	return true;
}

/* ---- the server */

static bool post_one(struct verbena_sdr_recv *recvs, uint64_t n)
{
	struct verbena_sdr_recv_attr attr = {.address = g.memory + n % MESSAGES * g.plan[PLAN_SIZE],
					     .max_length = g.plan[PLAN_SIZE],
					     .lkey = g.lkey};
	int r = scheme_recv_post(g.qp, &g.way, &attr, &recvs[n % MESSAGES]);

	if (r == VERBENA_SDR_ERROR)
		die("posting a receive: %s", strerror(errno));
	return r == VERBENA_SDR_SUCCESS;
}

/* The client tells its figures last: until then it is answered. */
static void serve(void)
{
	struct verbena_sdr_recv recvs[MESSAGES];
	uint64_t posted = 0, there = 0, wrong = 0, end;

	while (there < g.plan[PLAN_ITERS]) {
		uint32_t busy = verbena_sdr_progress(g.ctx);
		bool done = false;

		while (posted < g.plan[PLAN_ITERS] && posted - there < MESSAGES && post_one(recvs, posted))
			posted++;
		if (there < posted && scheme_recv_poll(&g.way, &recvs[there % MESSAGES], &done))
			die("receiving: %s", strerror(errno));
		if (done) {
			wrong += !right(g.memory + there % MESSAGES * g.plan[PLAN_SIZE], there);
			if (verbena_sdr_recv_complete(&recvs[there++ % MESSAGES]))
				die("completing a receive: %s", strerror(errno));
		} else if (!busy) {
			meet_poll(g.tcp, &end, sizeof(end), 0, 0); /* notices a peer that is gone */
		}
	}
	while (!meet_poll(g.tcp, &end, sizeof(end), 1, 0))
		verbena_sdr_progress(g.ctx);
	meet_send_numbers(g.tcp, &wrong, 1);
}

/* ---- the client */

static uint64_t send_one(uint64_t n)
{
	struct verbena_sdr_block b = {.address = g.memory, .length = g.plan[PLAN_SIZE], .lkey = g.lkey};
	struct verbena_sdr_send send;
	uint64_t start_ns, ns, none;
	bool done = false;
	int r;

	fill(g.memory, n);
	do {
		verbena_sdr_progress(g.ctx);
		meet_poll(g.tcp, &none, sizeof(none), 0, 0);
		start_ns = now_ns();
		r = scheme_send(g.qp, &g.way, &b, 0, NULL, NULL, &send);
	} while (r == VERBENA_SDR_RETRY);
	while (!r && !done) {
		verbena_sdr_progress(g.ctx);
		r = scheme_poll(&g.way, &send, &done);
	}
	if (r)
		die("sending: %s", strerror(errno));
	ns = now_ns() - start_ns;
	/* Sending took the time that the round trip does not explain. */
	if (ns > g.way.rtt_ns)
		scheme_learn(&g.way, g.plan[PLAN_SIZE], ns - g.way.rtt_ns);
	return ns;
}

static void report(uint64_t *ns, uint64_t count)
{
	const struct {
		const char *name;
		double share;
	} quantiles[] = {{"least", 0}, {"median", 0.5}, {"99 %", 0.99}, {"99.9 %", 0.999}, {"most", 1}};
	double sum = 0;

	qsort(ns, count, sizeof(*ns), by_value);
	for (uint64_t i = 0; i < count; i++)
		sum += (double)ns[i] / 1e3;
	printf("%llu messages of %llu bytes, scheme %s, a round trip of %.1f us\n", (unsigned long long)count,
	       (unsigned long long)g.plan[PLAN_SIZE], scheme_name(g.way.scheme), (double)g.way.rtt_ns / 1e3);
	printf("us until acknowledged: mean %.1f", sum / (double)count);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		printf(", %s %.1f", quantiles[i].name,
		       (double)ns[(uint64_t)((double)(count - 1) * quantiles[i].share)] / 1e3);
	printf("\n");
}

static int ask(void)
{
	uint64_t *ns = calloc(g.plan[PLAN_ITERS], sizeof(*ns));
	uint64_t wrong;

	if (!ns)
		die("no memory");
	for (uint64_t i = 0; i < g.plan[PLAN_ITERS]; i++)
		ns[i] = send_one(i);
	report(ns, g.plan[PLAN_ITERS]);
	free(ns);
	meet_send_numbers(g.tcp, g.plan, 1);
	meet_recv_numbers(g.tcp, &wrong, 1);
	if (wrong)
		fprintf(stderr, "sdr_write_lat: %llu messages arrived with other bytes than were sent\n",
			(unsigned long long)wrong);
	return wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
	int status = 0;

	command_read(argc, argv);
	g.tcp = meet(g.host, (uint16_t)g.port);
	agree();
	open_all();
	if (g.host)
		status = ask();
	else
		serve();
	close_all();
	return status;
}
