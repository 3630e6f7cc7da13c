/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sdr_allreduce: the sum of a buffer over several hosts, by a ring. Each rank sends to the next. In
 * N - 1 rounds a segment goes round and is added to, in N - 1 more the sums go round. A round begins
 * when what the last one brought is there, not when what it sent is acknowledged.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "sdr/meet.h"
#include "sdr/chosen_scheme.h"

enum { RANKS_MAX = 32 };

/* All ranks must have the same; the order is that of the wire. */
enum plan_number {
	PLAN_MAGIC,
	PLAN_RANKS,
	PLAN_SIZE,
	PLAN_ITERS,
	PLAN_SCHEME,
	PLAN_CHUNK,
	PLAN_RATE,
	PLAN_GATED,
	PLAN_FILL,
	PLAN_NUMBERS
};

#define MAGIC UINT64_C(0x7364725f72696e32) /* "sdr_rin2" */

/* A connection to a neighbour. */
struct link {
	int tcp;
	struct verbena_sdr_qp *qp;
	struct scheme_way way;
};

static struct {
	const char *hosts[RANKS_MAX], *device;
	uint64_t rank, port, gid_index, rtt_us;
	uint64_t plan[PLAN_NUMBERS];
	struct verbena_sdr_context *ctx;
	struct verbena_sdr_mr *mr, *part_mr;
	uint32_t lkey, part_lkey;
	uint32_t *sum;    /* the buffer */
	uint32_t *parts;  /* a segment for each round that adds */
	uint64_t segment; /* bytes */
	struct link next, prev;
} g = {.port = 18600, .plan = {MAGIC, 0, 1 << 20, 20, SCHEME_AUTO, 65536}};

static const struct option_row rows[] = {
	/* clang-format off */
	{'s', "size", OPTION_U64, &g.plan[PLAN_SIZE], 4, 1 << 30, NULL, "bytes of the buffer"},
	{'n', "iters", OPTION_U64, &g.plan[PLAN_ITERS], 1, 1000000, NULL, "sums"},
	{'S', "scheme", OPTION_WORD, &g.plan[PLAN_SCHEME], 0, 0, SCHEME_NAMES, "how losses are repaired"},
	{'k', "chunk", OPTION_POWER, &g.plan[PLAN_CHUNK], 64, 262144, NULL, "bytes of a chunk, a power of two"},
	{'r', "rate", OPTION_U64, &g.plan[PLAN_RATE], 0, 10000000, NULL, "Mbit/s that are sent at most (no limit)"},
	{'t', "rtt", OPTION_U64, &g.rtt_us, 0, 100000000, NULL, "microseconds that a round trip takes (measured)"},
	{'g', "sender-gated", OPTION_ONE, &g.plan[PLAN_GATED], 0, 0, NULL, "a round waits for the acknowledgement of the last one"},
	{'F', "idle-fill", OPTION_ONE, &g.plan[PLAN_FILL], 0, 0, NULL, "parities of tail go on until a message has arrived"},
	{'p', "port", OPTION_U64, &g.port, 1, 65535 - RANKS_MAX, NULL, "the first TCP port"},
	{'d', "ib-dev", OPTION_TEXT, &g.device, 0, 0, "NAME", "the device (the first)"},
	{'x', "gid-index", OPTION_U64, &g.gid_index, 0, 255, NULL, "index in its port's GID table"},
	/* clang-format on */
};

static void command_read(int argc, char **argv)
{
	int first =
		options_read(argc, argv, rows, OPTION_COUNT(rows),
			     "Usage: sdr_allreduce [OPTION ...] RANK HOST0 HOST1 ...\n"
			     "Adds up a buffer over all hosts, in a ring, and tells how long that takes. Rank n is on\n"
			     "HOSTn and meets on TCP port PORT + n. All ranks are given the same options.\n\n");
	uint64_t ranks = (uint64_t)(argc - first - 1);
	char *end;

	if (argc - first < 3 || ranks > RANKS_MAX)
		die("a rank and 2 to %d hosts are wanted; --help tells", RANKS_MAX);
	scheme_fill_check(g.plan[PLAN_FILL], (enum scheme)g.plan[PLAN_SCHEME]);
	g.plan[PLAN_RANKS] = ranks;
	g.rank = strtoull(argv[first], &end, 0);
	if (end == argv[first] || *end || g.rank >= ranks)
		die("--rank %s: a number of 0 to %llu is allowed", argv[first], (unsigned long long)(ranks - 1));
	for (uint64_t i = 0; i < ranks; i++)
		g.hosts[i] = argv[first + 1 + (int)i];
	/* Every rank has as many bytes of the buffer, whole numbers of four. */
	g.segment = (g.plan[PLAN_SIZE] + 4 * ranks - 1) / (4 * ranks) * 4;
}

/* ---- the ring */

static uint64_t ranks(void)
{
	return g.plan[PLAN_RANKS];
}

static uint64_t rounds(void)
{
	return 2 * ranks() - 2;
}

static void link_open(struct link *l, bool sends)
{
	const struct meet_device device = {
		.chunk = g.plan[PLAN_CHUNK],
		/* All rounds of a sum, and of the next. */
		.messages_log = log2_up(4 * rounds()),
		.message_bytes = g.segment,
		.sends = sends,
		.receives = !sends,
		.rate_mbps = g.plan[PLAN_RATE],
		.rtt_ns = g.rtt_us * 1000,
		.idle_fill = g.plan[PLAN_FILL],
	};
	uint64_t plan[PLAN_NUMBERS];

	if (sends)
		meet_send_numbers(l->tcp, g.plan, PLAN_NUMBERS);
	else
		meet_recv_numbers(l->tcp, plan, PLAN_NUMBERS);
	if (!sends && memcmp(plan, g.plan, sizeof(plan)))
		die("rank %llu has other options, or is no sdr_allreduce of this version",
		    (unsigned long long)((g.rank + ranks() - 1) % ranks()));
	l->qp = meet_qp(g.ctx, &device);
	meet_connect(l->tcp, l->qp);
	l->way = (struct scheme_way){.scheme = (enum scheme)g.plan[PLAN_SCHEME],
				     .rtt_ns = g.rtt_us * 1000,
				     .rate_mbps = g.plan[PLAN_RATE],
				     .chunk = g.plan[PLAN_CHUNK]};
	scheme_open(&l->way, g.ctx, l->qp, l->tcp, sends, NULL);
}

static void to_next(void)
{
	uint64_t next = (g.rank + 1) % ranks();

	g.next.tcp = meet(g.hosts[next], (uint16_t)(g.port + next));
	link_open(&g.next, true);
}

static void from_prev(void)
{
	g.prev.tcp = meet(NULL, (uint16_t)(g.port + g.rank));
	link_open(&g.prev, false);
}

/* The first rank calls before it is called, and so all find somebody who waits. */
static void ring_open(void)
{
	const struct meet_device device = {.name = g.device, .gid_index = g.gid_index};

	g.ctx = meet_context(&device);
	if (g.rank == 0) {
		to_next();
		from_prev();
	} else {
		from_prev();
		to_next();
	}
}

/* Waits for all: a number goes round twice. */
static void barrier(void)
{
	uint64_t token = 0;

	for (int turn = 0; turn < 2; turn++) {
		if (g.rank == 0)
			meet_send_numbers(g.next.tcp, &token, 1);
		while (!meet_poll(g.prev.tcp, &token, sizeof(token), 1, 0))
			verbena_sdr_progress(g.ctx);
		if (g.rank != 0)
			meet_send_numbers(g.next.tcp, &token, 1);
	}
}

/* ---- the buffer */

/* What a rank gives to the i-th number. */
static uint32_t given(uint64_t rank, uint64_t iter, uint64_t i)
{
	return (uint32_t)((i + 1) * 2654435761u + rank * 40503u + iter * 97u);
}

static uint64_t numbers(void)
{
	return g.segment * ranks() / 4;
}

static void fill(uint64_t iter)
{
	for (uint64_t i = 0; i < numbers(); i++)
		g.sum[i] = given(g.rank, iter, i);
}

static uint64_t wrong(uint64_t iter)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < numbers(); i++) {
		uint32_t sum = 0;

		for (uint64_t r = 0; r < ranks(); r++)
			sum += given(r, iter, i);
		n += g.sum[i] != sum;
	}
	return n;
}

static uint32_t *segment(uint64_t s)
{
	return g.sum + s % ranks() * (g.segment / 4);
}

/* The segment that a round sends, and the one that it receives. */
static uint64_t sent_in(uint64_t round)
{
	return g.rank + 2 * ranks() - round;
}

static uint64_t received_in(uint64_t round)
{
	return sent_in(round) - 1;
}

/* ---- a sum */

struct sum {
	struct verbena_sdr_recv *recv; /* one for each round */
	struct verbena_sdr_send *send;
	uint64_t acknowledged; /* rounds */
};

static bool adds(uint64_t round)
{
	return round < ranks() - 1;
}

static void post(struct sum *s, uint64_t round)
{
	struct verbena_sdr_recv_attr attr = {.address = adds(round) ? g.parts + round * (g.segment / 4)
								    : segment(received_in(round)),
					     .max_length = g.segment,
					     .lkey = adds(round) ? g.part_lkey : g.lkey};
	int r;

	while ((r = scheme_recv_post(g.prev.qp, &g.prev.way, &attr, &s->recv[round])) == VERBENA_SDR_RETRY)
		verbena_sdr_progress(g.ctx);
	if (r)
		die("posting a receive: %s", strerror(errno));
}

static void peers_alive(void)
{
	uint64_t none;

	meet_poll(g.prev.tcp, &none, sizeof(none), 0, 0);
	meet_poll(g.next.tcp, &none, sizeof(none), 0, 0);
}

static void send(struct sum *s, uint64_t round)
{
	struct verbena_sdr_block b = {.address = segment(sent_in(round)), .length = g.segment, .lkey = g.lkey};
	int r;

	while ((r = scheme_send(g.next.qp, &g.next.way, &b, 0, NULL, NULL, &s->send[round])) == VERBENA_SDR_RETRY) {
		if (!verbena_sdr_progress(g.ctx))
			peers_alive();
	}
	if (r)
		die("sending: %s", strerror(errno));
}

/* Looks after what was sent in the rounds before `end`; whether all of it is acknowledged. */
static bool acknowledged(struct sum *s, uint64_t end)
{
	bool done = true;

	while (s->acknowledged < end && done) {
		if (scheme_poll(&g.next.way, &s->send[s->acknowledged], &done))
			die("sending: %s", strerror(errno));
		s->acknowledged += done;
	}
	return s->acknowledged >= end;
}

static void receive(struct sum *s, uint64_t round)
{
	uint32_t *to = segment(received_in(round)), *from = g.parts + round * (g.segment / 4);
	bool done = false;

	while (!done || (g.plan[PLAN_GATED] && !acknowledged(s, round + 1))) {
		bool busy = verbena_sdr_progress(g.ctx);

		if (!done && scheme_recv_poll(&g.prev.way, &s->recv[round], &done))
			die("receiving: %s", strerror(errno));
		acknowledged(s, round + 1);
		if (!busy && !done)
			peers_alive();
	}
	if (verbena_sdr_recv_complete(&s->recv[round]))
		die("completing a receive: %s", strerror(errno));
	for (uint64_t i = 0; adds(round) && i < g.segment / 4; i++)
		to[i] += from[i];
}

/* Returns how long it took, until the sum is here. */
static uint64_t sum_once(struct sum *s, uint64_t iter)
{
	uint64_t start_ns, ns;

	fill(iter);
	for (uint64_t r = 0; r < rounds(); r++)
		post(s, r);
	s->acknowledged = 0;
	barrier();
	start_ns = now_ns();
	for (uint64_t r = 0; r < rounds(); r++) {
		send(s, r);
		receive(s, r);
	}
	ns = now_ns() - start_ns;
	/* Half of a round trip passes in each round, and the rest with sending. */
	if (ns / rounds() > g.next.way.rtt_ns / 2)
		scheme_learn(&g.next.way, g.segment, ns / rounds() - g.next.way.rtt_ns / 2);
	while (!acknowledged(s, rounds())) {
		if (!verbena_sdr_progress(g.ctx))
			peers_alive();
	}
	return ns;
}

static void report(uint64_t *ns, uint64_t count)
{
	double sum = 0;

	qsort(ns, count, sizeof(*ns), by_value);
	for (uint64_t i = 0; i < count; i++)
		sum += (double)ns[i] / 1e3;
	printf("rank %llu of %llu, %llu bytes, scheme %s, a round trip of %.1f us\n", (unsigned long long)g.rank,
	       (unsigned long long)ranks(), (unsigned long long)(g.segment * ranks()), scheme_name(g.next.way.scheme),
	       (double)g.next.way.rtt_ns / 1e3);
	printf("us for a sum: mean %.1f, least %.1f, median %.1f, 99 %% %.1f, most %.1f\n", sum / (double)count,
	       (double)ns[0] / 1e3, (double)ns[count / 2] / 1e3, (double)ns[(count - 1) * 99 / 100] / 1e3,
	       (double)ns[count - 1] / 1e3);
}

static void close_all(void)
{
	verbena_sdr_qp_destroy(g.next.qp);
	verbena_sdr_qp_destroy(g.prev.qp);
	verbena_sdr_mr_dereg(g.mr);
	verbena_sdr_mr_dereg(g.part_mr);
	verbena_sdr_context_destroy(g.ctx);
	free(g.sum);
	free(g.parts);
}

int main(int argc, char **argv)
{
	uint64_t *ns, bad = 0;
	struct sum s;

	command_read(argc, argv);
	ring_open();
	g.sum = meet_memory(g.ctx, g.segment * ranks(), VERBENA_SDR_REMOTE_WRITE, &g.mr, &g.lkey);
	g.parts = meet_memory(g.ctx, g.segment * (ranks() - 1), VERBENA_SDR_REMOTE_WRITE, &g.part_mr, &g.part_lkey);
	ns = calloc(g.plan[PLAN_ITERS], sizeof(*ns));
	s.recv = calloc(rounds(), sizeof(*s.recv));
	s.send = calloc(rounds(), sizeof(*s.send));
	if (!ns || !s.recv || !s.send)
		die("no memory");
	for (uint64_t i = 0; i < g.plan[PLAN_ITERS]; i++) {
		ns[i] = sum_once(&s, i);
		bad += wrong(i);
	}
	barrier(); /* until then the others are answered */
	report(ns, g.plan[PLAN_ITERS]);
	if (bad)
		fprintf(stderr, "sdr_allreduce: %llu numbers are wrong\n", (unsigned long long)bad);
	close_all();
	free(ns);
	free(s.recv);
	free(s.send);
	return bad ? 1 : 0;
}
