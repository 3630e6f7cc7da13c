/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of the simulated network by itself: hosts without a transport on a fat tree, each packet
 * answered with an ACK.
 *
 *     sim_net [--run incast|permutation|spray] [-k K] [--packets N] [--window N] [--seed N]
 *             [--features none|pfc|hpcc|trim]
 *
 * Features: pfc is ours with RED, hpcc the reference model with RED and INT (without stacks, which
 * hosts bring), trim queues of eight packets and spraying.
 *
 * Prints packet-hops per second of processor time, events per hop, time to set up, and peak memory.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/prng.h"
#include "net/network.h"
#include "support/sim_flows.h"
#include "support/sim_trees.h"

enum run { RUN_INCAST, RUN_PERMUTATION, RUN_SPRAY };

struct setting {
	enum run run;
	uint32_t k;
	uint64_t packets, window, seed;
};

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A permutation without fixed points, as a single cycle (Sattolo). */
static uint32_t *cycle(uint32_t count, uint64_t seed)
{
	uint32_t *to = malloc(count * sizeof(*to));
	struct prng prng;

	if (!to)
		abort();
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

static void start(struct flow_host *hosts, uint32_t count, const struct setting *s)
{
	uint32_t *to = cycle(count, s->seed);

	for (uint32_t i = 0; i < count; i++) {
		hosts[i].acks = true;
		hosts[i].window = s->window;
		hosts[i].new_sport = s->run == RUN_SPRAY;
		hosts[i].flags |= PACKET_TRIMMABLE;
		if (s->run != RUN_INCAST)
			flow_start(&hosts[i], to[i], s->packets, 1000 + 90);
		else if (i)
			flow_start(&hosts[i], 0, s->packets, 1000 + 90);
	}
	free(to);
}

static int bench(const struct setting *s, const struct network_config *config)
{
	static const char *const names[] = {"incast", "permutation", "spray"};
	char error[NETWORK_ERROR_BYTES];
	struct topology t;
	struct network_counts counts;
	struct rusage usage;
	double before_s, created_s, after_s;

	tree_fat(&t, s->k, UINT64_C(100000000000), 1000000);
	before_s = cpu_s();
	struct network *net = network_create(&t, config, error);

	created_s = cpu_s();
	if (!net) {
		fprintf(stderr, "sim_net: %s\n", error);
		return 1;
	}
	struct flow_host *hosts = flow_hosts(net, t.host_count);

	start(hosts, t.host_count, s);
	enum network_stop stop = network_run(net, NETWORK_NEVER_PS, UINT64_MAX);

	after_s = cpu_s();
	network_count(net, &counts);
	getrusage(RUSAGE_SELF, &usage);
	printf("%s k %u, %u hosts, %" PRIu64 " packets each, window %" PRIu64 ", seed %" PRIu64 "\n", names[s->run],
	       s->k, t.host_count, s->packets, s->window, s->seed);
	printf("  stop %d, virtual %.3f us, %" PRIu64 " packets, %" PRIu64 " hops, %" PRIu64 " events, %" PRIu64
	       " dropped\n",
	       (int)stop, (double)network_now_ps(net) * 1e-6, counts.packets, counts.hops, counts.events,
	       counts.dropped);
	printf("  set-up %.2f ms, run %.3f s, %.2f M hops/s, %.3f events/hop, peak %ld KiB\n",
	       (created_s - before_s) * 1e3, after_s - created_s, (double)counts.hops / (after_s - created_s) * 1e-6,
	       (double)counts.events / (double)(counts.hops ? counts.hops : 1), usage.ru_maxrss);
	network_destroy(net);
	tree_free(&t);
	free(hosts);
	return 0;
}

static void set_features(struct network_config *c, const char *name)
{
	const uint64_t g25 = UINT64_C(25000000000);
	bool hpcc = !strcmp(name, "hpcc");

	if (hpcc || !strcmp(name, "pfc")) {
		c->buffer_bytes = 32 << 20;
		c->lossless_classes = 1 << 1;
		c->pfc = NETWORK_PFC;
		if (hpcc)
			network_config_hpcc(c, 1 << 1);
		c->alpha_log2[1] = -3;
		c->red = (struct network_red){.classes = 1 << 1,
					      .kmin_bytes = 100000,
					      .kmax_bytes = 400000,
					      .pmax_ppb = 200000000,
					      .rate_bps = g25};
		c->int_stamp = hpcc;
	} else if (!strcmp(name, "trim")) {
		c->port_queue_bytes = 8 * 1090;
		c->trim_wire_bytes = 84;
	} else if (strcmp(name, "none") != 0) {
		fprintf(stderr, "sim_net: features %s: none, pfc, hpcc and trim are known\n", name);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"run", required_argument, NULL, 'r'},      {"packets", required_argument, NULL, 'p'},
		{"window", required_argument, NULL, 'w'},   {"seed", required_argument, NULL, 's'},
		{"features", required_argument, NULL, 'f'}, {NULL, 0, NULL, 0},
	};
	struct setting s = {.run = RUN_PERMUTATION, .k = 8, .packets = 2000, .seed = 1};
	struct network_config config;
	int c;

	network_config_init(&config);

	while ((c = getopt_long(argc, argv, "k:", options, NULL)) != -1) {
		switch (c) {
		case 'r':
			s.run = !strcmp(optarg, "incast")  ? RUN_INCAST
				: !strcmp(optarg, "spray") ? RUN_SPRAY
							   : RUN_PERMUTATION;
			break;
		case 'k': s.k = (uint32_t)strtoul(optarg, NULL, 10) & ~1u; break;
		case 'p': s.packets = strtoull(optarg, NULL, 10); break;
		case 'w': s.window = strtoull(optarg, NULL, 10); break;
		case 'f': set_features(&config, optarg); break;
		case 's': s.seed = strtoull(optarg, NULL, 10); break;
		default: return 2;
		}
	}
	config.seed = s.seed;
	return bench(&s, &config);
}
