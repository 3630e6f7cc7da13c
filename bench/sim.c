/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of a simulation: hosts with the whole transport on a fat tree of 100 Gbit/s and 1 us a link.
 *
 *     sim [--run NAME] [--runs N] [--seed N] [-k K] [--bytes N]
 *
 * Runs are incast, permutation (RoCEv2, an ACK a packet, 1000 bytes of payload), the same over veRoCE as
 * it is by default (16 paths), set-up (a fat tree with hosts, without queue pairs), and big and big-veroce
 * (k = 32, a permutation of 8192 hosts under way, which measure memory). Without a name all of them run, each in a
 * process of its own, so that its peak of memory is its own. Prints the median of N (5) and the fastest.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/prng.h"
#include "sim/channel.h"
#include "net/topology/topology_build.h"

#include "options.h"

enum { RUNS_MAX = 101, PAYLOAD = 1000, DATA_CLASS = 3 };

#define MS_PS UINT64_C(1000000000)

struct run {
	const char *name;
	bool veroce, incast, setup;
	uint32_t k;
	uint64_t bytes;    /* of each host's message */
	uint64_t until_ps; /* 0: until all have arrived */
	const char *goal;
};

static const struct run runs[] = {
	{"incast", .incast = true, .k = 8, .bytes = 1000000, .goal = "3.5 M, goal 8 M"},
	{"permutation", .k = 8, .bytes = 2000000, .goal = "1.8 M, goal 5 M"},
	{"incast-veroce", .veroce = true, .incast = true, .k = 8, .bytes = 1000000},
	{"permutation-veroce", .veroce = true, .k = 8, .bytes = 2000000},
	{"setup", .setup = true, .k = 16, .goal = "50 ms"},
	{"big", .k = 32, .bytes = 1000000, .until_ps = MS_PS / 50, .goal = "500 MB"},
	{"big-veroce", .veroce = true, .k = 32, .bytes = 1000000, .until_ps = MS_PS / 50, .goal = "500 MB"},
};

/* The report of a run's process. */
struct figures {
	double setup_s, hosts_s, run_s;
	uint64_t hosts, events, hops, done, sent;
	uint64_t memory_bytes; /* peak */
};

struct bench {
	struct network *net;
	uint64_t done, sent;
};

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *must(void *p, const char *what)
{
	if (p)
		return p;
	fprintf(stderr, "sim: no %s: out of memory?\n", what);
	exit(1);
}

static void completed(void *ctx, struct channel *c, uint64_t wr_id, uint64_t bytes, bool good)
{
	struct bench *b = ctx;
	uint64_t of;
	bool whole;

	channel_completed(c, wr_id, &of, &whole);
	if (!good) {
		fprintf(stderr, "sim: a queue pair broke\n");
		exit(1);
	}
	if (whole && ++b->done == b->sent)
		network_stop(b->net);
}

static void received(void *ctx, uint32_t imm)
{
}

/* A permutation without fixed points, as a single cycle (Sattolo). */
static uint32_t *cycle(uint32_t count, uint64_t seed)
{
	uint32_t *to = must(malloc(count * sizeof(*to)), "permutation");
	struct prng prng;

	prng_init(&prng, seed);
	for (uint32_t i = 0; i < count; i++)
		to[i] = i;
	for (uint32_t i = count - 1; i > 0; i--) {
		uint32_t j = (uint32_t)prng_below(&prng, i), swap = to[i];

		to[i] = to[j];
		to[j] = swap;
	}
	return to;
}

static void post(struct bench *b, const struct run *r, struct host **hosts, uint32_t n, uint64_t seed)
{
	uint32_t *to = cycle(n, seed);
	struct message_post *posts = must(calloc(n, sizeof(*posts)), "messages");

	for (uint32_t i = 0; i < n; i++) {
		uint32_t dst = r->incast ? 0 : to[i];

		if (dst == i)
			continue;
		posts[i].bytes = r->bytes;
		channel_post(must(channel_open(hosts[i], hosts[dst], CHANNEL_PIECE_BYTES_MAX), "channel"), &posts[i]);
		b->sent++;
	}
	free(to);
}

static struct figures measure(const struct run *r, uint64_t seed)
{
	struct topology_params params = topology_params_default();
	struct network_config config;
	struct bench b = {0};
	struct host_config host = {
		.seed = seed,
		.mtu_bytes = PAYLOAD,
		.data_class = DATA_CLASS,
		.credits = 64,
		.timeout = 18,
		.completed = completed,
		.received = received,
		.ctx = &b,
		.nic =
			{
				.transport.protocol = r->veroce ? PROTOCOL_VEROCE : PROTOCOL_ROCEV2,
				.transport.paths = r->veroce ? PATHS_MAX : 1,
				.transport.veroce.cc = r->veroce ? VEROCE_CC_SWIFT : VEROCE_CC_NONE,
				.transport.cc.base_rtt_ns = 12000,
				.transport.window_bytes = r->veroce ? 300000 : 150000,
				.transport.rocev2.ackreq_packets = 1,
				.qpn_bits = 10,
			},
	};
	struct network_counts counts;
	struct topology topology;
	struct text_error err;
	struct rusage usage;
	struct figures f = {0};
	char why[NETWORK_ERROR_BYTES];
	double began = cpu_s(), built, ready;

	params.k = r->k;
	if (topology_build(&topology, "fat-tree", &params, &err)) {
		fprintf(stderr, "sim: %s\n", err.message);
		exit(1);
	}
	network_config_init(&config);
	config.seed = seed;
	config.port_queue_bytes = r->incast ? 400 << 20 : 100 << 20; /* nothing is dropped */
	b.net = network_create(&topology, &config, why);
	if (!b.net) {
		fprintf(stderr, "sim: %s\n", why);
		exit(1);
	}
	built = cpu_s();
	struct host **hosts = must(calloc(topology.host_count, sizeof(struct host *)), "hosts");

	for (uint32_t i = 0; i < topology.host_count; i++)
		hosts[i] = must(host_create(b.net, i, &host), "host");
	ready = cpu_s();
	f.hosts = topology.host_count;
	f.setup_s = ready - began;
	f.hosts_s = ready - built;
	if (!r->setup) {
		post(&b, r, hosts, topology.host_count, seed);
		ready = cpu_s();
		network_run(b.net, r->until_ps ? r->until_ps : 10000 * MS_PS, UINT64_MAX);
		f.run_s = cpu_s() - ready;
		if (!r->until_ps && b.done != b.sent)
			fprintf(stderr, "sim: %" PRIu64 " of %" PRIu64 " done\n", b.done, b.sent);
	}
	network_count(b.net, &counts);
	f.events = counts.events;
	f.hops = counts.hops;
	f.done = b.done;
	f.sent = b.sent;
	getrusage(RUSAGE_SELF, &usage);
	f.memory_bytes = (uint64_t)usage.ru_maxrss * 1024;
	return f; /* what is left goes with the process */
}

/* In a child. False: it failed. */
static bool apart(const struct run *r, uint64_t seed, struct figures *f)
{
	int ends[2], status;
	pid_t child;
	bool whole;

	if (pipe(ends))
		return false;
	child = fork();
	if (child == 0) {
		*f = measure(r, seed);
		_exit(write(ends[1], f, sizeof(*f)) != sizeof(*f));
	}
	close(ends[1]);
	whole = child > 0 && read(ends[0], f, sizeof(*f)) == sizeof(*f);
	close(ends[0]);
	return child > 0 && waitpid(child, &status, 0) == child && !status && whole;
}

static int by_time(const void *a, const void *b)
{
	const struct figures *x = a, *y = b;
	double tx = x->run_s > 0 ? x->run_s : x->setup_s, ty = y->run_s > 0 ? y->run_s : y->setup_s;

	return (tx > ty) - (tx < ty);
}

static bool bench(const struct run *r, unsigned count, uint64_t seed)
{
	struct figures f[RUNS_MAX];

	for (unsigned i = 0; i < count; i++) {
		if (!apart(r, seed, &f[i]))
			return false;
	}
	qsort(f, count, sizeof(f[0]), by_time);
	const struct figures *m = &f[count / 2], *best = &f[0];

	printf("%-19s %5" PRIu64 " hosts ", r->name, m->hosts);
	if (r->setup)
		printf("%6.1f ms (fastest %.1f), hosts %.1f us each of it", m->setup_s * 1e3, best->setup_s * 1e3,
		       m->hosts_s * 1e6 / (double)m->hosts);
	else
		printf("%6.2f M hops/s (fastest %.2f), %5.1f ns and %.2f events a hop, %.1f M hops",
		       (double)m->hops / m->run_s / 1e6, (double)best->hops / best->run_s / 1e6,
		       m->run_s * 1e9 / (double)m->hops, (double)m->events / (double)m->hops, (double)m->hops / 1e6);
	printf(", peak %.1f MB", (double)m->memory_bytes / 1e6);
	if (r->goal)
		printf("  [%s]", r->goal);
	putchar('\n');
	fflush(stdout);
	return true;
}

int main(int argc, char **argv)
{
	const char *name = NULL;
	uint64_t seed = 1, bytes = 0;
	uint32_t count = 5, k = 0;
	bool found = false;
	const struct option_row rows[] = {
		{0, "run", OPTION_TEXT, &name, 0, 0, "NAME", NULL},
		{0, "runs", OPTION_U32, &count, 1, RUNS_MAX, "N", NULL},
		{0, "seed", OPTION_U64, &seed, 0, 1e18, "N", NULL},
		{'k', NULL, OPTION_U32, &k, 2, 64, "K", NULL},
		{0, "bytes", OPTION_U64, &bytes, 1, 1e15, "BYTES", NULL},
	};

	if (options_read(argc, argv, rows, OPTION_COUNT(rows), "usage: sim [OPTION ...]\n") != argc)
		return 2;
	printf("seed %" PRIu64 ", median of %u, one core; fat tree at 100 Gbit/s, 1 us a link; payload %d bytes, an ACK"
	       " a packet\n",
	       seed, count, PAYLOAD);
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct run r = runs[i];

		if (name && strcmp(name, r.name) != 0)
			continue;
		found = true;
		r.k = k ? k : r.k;
		r.bytes = bytes ? bytes : r.bytes;
		if (!bench(&r, count, seed))
			return 1;
	}
	if (!found)
		fprintf(stderr, "sim: there is no run %s\n", name);
	return !found;
}
