/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The goals of docs/results.md at a size that a test can have, by default settings and for five seeds: what is reached
 * here must not get worse. Each row says the share of what is possible that the worst seed must have.
 */
#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

enum { SEEDS = 5 };

#define TREE   "[topology]\nkind = fat-tree\nk = 4\n[link]\nrate = 400Gbps\ndelay = 500ns\n[transport]\npayload = 4096B\n"
#define OUTPUT "[output]\ngoodput_window = none\nqueue_histograms = off\n"

/* Of all flows, the one that took longest against its time alone. */
static double slowest_flow(const struct results *r)
{
	double most = 0;

	for (uint32_t i = 0; i < r->flow_count; i++) {
		double slowdown = results_slowdown(&r->flows[i]);

		if (!slowdown)
			return 0;
		if (slowdown > most)
			most = slowdown;
	}
	return most ? 1 / most : 0;
}

/* Of the collective, against the least time for its messages over this network. */
static double collective(const struct results *r)
{
	const struct results_collective *c = r->collectives;

	return r->collective_count && c->time_ps != RESULTS_NOT_DONE ? (double)c->possible_ps / (double)c->time_ps : 0;
}

/* The last of many flows of one host, against the time that the host's link needs for all of them. */
static double many_from_one(const struct results *r)
{
	uint64_t last_ps = 0, bytes = 0;

	for (uint32_t i = 0; i < r->flow_count; i++) {
		if (r->flows[i].fct_ps == RESULTS_NOT_DONE)
			return 0;
		if (r->flows[i].fct_ps > last_ps)
			last_ps = r->flows[i].fct_ps;
		bytes += r->flows[i].bytes;
	}
	return last_ps ? (double)bytes * 80 / (double)last_ps : 0;
}

/* The flow that got least of an incast, against the one that got most, as they end. */
static double evenness(const struct results *r)
{
	uint64_t first_ps = UINT64_MAX, last_ps = 0;

	for (uint32_t i = 0; i < r->flow_count; i++) {
		first_ps = r->flows[i].fct_ps < first_ps ? r->flows[i].fct_ps : first_ps;
		last_ps = r->flows[i].fct_ps > last_ps ? r->flows[i].fct_ps : last_ps;
	}
	return last_ps ? (double)first_ps / (double)last_ps : 0;
}

static const struct {
	const char *what, *text;
	double (*share)(const struct results *);
	double least;
} goals[] = {
	{"one message of 600 KB on a path that was not used yet",
	 "[topology]\nkind = dumbbell\nhosts = 1\n[link]\nrate = 400Gbps\nfabric_delay = 248us\n"
	 "[workload.f]\nkind = flow\nsenders = 0\nreceivers = 1\nsize = 600KB\n" OUTPUT,
	 slowest_flow, 0.95},
	{"80 to one, all as far, 500 KB each: who ends first against who ends last",
	 "[topology]\nkind = star\nhosts = 81\n[link]\nrate = 100Gbps\ndelay = 2us\n[transport]\npayload = 1000B\n"
	 "[workload.incast]\nkind = incast\nfan_in = 80\nsize = 500KB\n" OUTPUT,
	 evenness, 0.93},
	{"60 messages of 1 MB at once, 5 % lost",
	 "[topology]\nkind = dumbbell\nhosts = 1\n[link]\nrate = 100Gbps\nfabric_delay = 5us\nloss = 5%\nloss_place = fabric\n"
	 "[transport]\npayload = 4096B\n[workload.f]\nkind = flow\nsenders = 0\nreceivers = 1\nqps = 60\nsize = 60MB\n" OUTPUT,
	 many_from_one, 0.885},
	{"all-to-all", TREE "[workload.a]\nkind = all-to-all\nactive = 32\nsize = 4MB\n" OUTPUT, collective, 0.84},
	{"ring allreduce", TREE "[workload.a]\nkind = ring-allreduce\nrings = 4\nsize = 8MB\n" OUTPUT, collective, 0.8},
	{"halving and doubling", TREE "[workload.a]\nkind = halving-doubling\nsize = 8MB\n" OUTPUT, collective, 0.72},
	{"all-to-all, a tenth of the links at half of their rate",
	 TREE
	 "[failures]\ndegraded = 10%\ndegraded_rate = 50%\n[workload.a]\nkind = all-to-all\nactive = 32\nsize = 4MB\n" OUTPUT,
	 collective, 0.65},
};

TEST(goals_are_reached_as_far_as_they_were)
{
	for (size_t i = 0; i < sizeof(goals) / sizeof(goals[0]); i++) {
		for (unsigned seed = 1; seed <= SEEDS; seed++) {
			char set[32];
			const char *sets[] = {set, NULL};
			struct sim_run run;
			double share;

			snprintf(set, sizeof(set), "run.seed=%u", seed);
			sim_run_do(&run, goals[i].text, sets);
			share = goals[i].share(&run.results);
			if (share < goals[i].least)
				fail_msg("%s, seed %u: %.3f of what is possible, less than %.3f", goals[i].what, seed,
					 share, goals[i].least);
			sim_run_free(&run);
		}
	}
}
