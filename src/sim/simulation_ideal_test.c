/* SPDX-License-Identifier: BSD-2-Clause */
/* The time of a flow that is alone equals its ideal time in the results. */

#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

static const char star[] = "[topology]\nkind = star\nhosts = 2\n"
			   "[workload.w]\nkind = flow\nsenders = 0\nreceivers = 1\n";
/* Over a spine. */
static const char leaves[] = "[topology]\nkind = leaf-spine\nhosts = 1\nleaves = 2\nspines = 2\n"
			     "[workload.w]\nkind = flow\nsenders = 0\nreceivers = 1\n";

/*
 * The network rounds the time of a byte. An answer may wait for the one before it, which is as
 * short. veRoCE sends CAPS first, and has time stamps and probes.
 */
static void judge(const struct results_flow *f, bool veroce, const char *what)
{
	uint64_t slack_ps = f->ideal_ps / 10000 + 4000, answer_ps = 86 * 8 * 40;

	if (f->fct_ps + slack_ps < f->ideal_ps)
		fail_msg("%s: %llu ps, less than the ideal %llu", what, (unsigned long long)f->fct_ps,
			 (unsigned long long)f->ideal_ps);
	slack_ps += answer_ps + (veroce ? f->ideal_ps / 50 : 0);
	if (f->fct_ps > f->ideal_ps + slack_ps)
		fail_msg("%s: %llu ps, the ideal %llu", what, (unsigned long long)f->fct_ps,
			 (unsigned long long)f->ideal_ps);
}

static void takes_its_ideal(const char *text, const char *const *sets)
{
	static const char *const sizes[] = {"1B", "64B", "999B", "1000B", "1001B", "2500B", "30KB", "500KB"};
	char size[64], what[256];

	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		bool veroce = i & 1;
		const char *all[16] = {size,
				       veroce ? "transport.protocol=veroce" : "transport.protocol=rocev2",
				       "cc.algorithm=none",
				       "transport.payload=1000B",
				       "transport.window=100MB",
				       "transport.paths=1"};
		struct sim_run run;
		size_t n = 0;

		snprintf(size, sizeof(size), "workload.w.size=%s", sizes[i / 2]);
		for (; sets[n]; n++)
			all[6 + n] = sets[n];
		snprintf(what, sizeof(what), "%s, %s, %s", n ? sets[n - 1] : "nothing set", all[1], sizes[i / 2]);
		sim_run_do(&run, text, all);
		assert_int_equal(run.results.flows_done, 1);
		judge(&run.results.flows[0], veroce, what);
		sim_run_free(&run);
	}
}

#define SETS(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

TEST(one_flow_alone_takes_its_ideal_time)
{
	takes_its_ideal(star, SETS());
	takes_its_ideal(leaves, SETS());
	takes_its_ideal(leaves, SETS("switch.latency=600ns"));
	takes_its_ideal(leaves, SETS("link.fabric_rate=400Gbps"));
	takes_its_ideal(leaves, SETS("link.rate=400Gbps", "link.fabric_rate=56Gbps", "link.fabric_delay=3us"));
}

/* The base RTT for congestion control and in reports. */
TEST(the_base_rtt_counts_the_latency_of_switches)
{
	struct sim_run without, with;

	sim_run_do(&without, leaves, SETS("workload.w.size=1KB"));
	sim_run_do(&with, leaves, SETS("workload.w.size=1KB", "switch.latency=600ns"));
	/* Leaf, spine and leaf, there and back. */
	assert_int_equal(with.results.base_rtt_ps, without.results.base_rtt_ps + 2 * 3 * 600000);
	sim_run_free(&without);
	sim_run_free(&with);
}

TEST(what_hosts_take_is_part_of_the_ideal_time)
{
	takes_its_ideal(star, SETS("host.post_delay=700ns"));
	takes_its_ideal(star, SETS("host.completion_delay=900ns"));
	takes_its_ideal(star, SETS("host.ack_delay=2us"));
	takes_its_ideal(leaves, SETS("host.read_rate=60Gbps"));
	takes_its_ideal(leaves, SETS("host.read_rate=200Gbps", "link.fabric_rate=25Gbps"));
	takes_its_ideal(star, SETS("host.rx_drain=80Gbps"));
}

/*
 * A flow alone behind switches of 600 ns has slowdown 1, not the 1.28 of an ideal without
 * latencies.
 */
TEST(a_slowdown_is_what_it_is)
{
	const struct results_flow quick = {.fct_ps = 99, .ideal_ps = 100}, open = {.fct_ps = RESULTS_NOT_DONE},
				  unknown = {.fct_ps = 99};

	assert_true(results_slowdown(&quick) < 1);
	assert_true(results_slowdown(&open) == 0);
	assert_true(results_slowdown(&unknown) == 0);
}
