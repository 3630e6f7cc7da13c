/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole simulations of queue pairs that have one congestion control for all their paths (veRoCE 10, 11). */

#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

#define US UINT64_C(1000000)

#define SCOPE "cc.scope=qp"

/* The bytes of all flows over the time until the last is done, bit/s. */
static uint64_t rate_bps(const struct sim_run *run, uint64_t bytes)
{
	uint64_t last_ps = 0;

	assert_false(run->results.partial);
	for (uint32_t f = 0; f < run->results.flow_count; f++)
		last_ps = run->results.flows[f].fct_ps > last_ps ? run->results.flows[f].fct_ps : last_ps;
	return bytes * 8000 / (last_ps / 1000000) * 1000;
}

/* Four ways of 100 Gbit/s are a host's line; a queue pair takes all four. */
TEST(one_window_fills_many_paths)
{
	static const char text[] = "[topology]\nkind = leaf-spine\nleaves = 2\nhosts = 1\nspines = 4\n"
				   "[link]\nrate = 400Gbps\nfabric_rate = 100Gbps\ndelay = 1us\n"
				   "[transport]\npayload = 4096B\n"
				   "[workload.w]\nkind = flow\nsenders = 0\nreceivers = 1\nsize = 64MB\n";
	static const char *const sets[][4] = {{SCOPE, "cc.algorithm=swift"},
					      {SCOPE, "cc.algorithm=dctcp"},
					      {SCOPE, "cc.algorithm=dcqcn", "cc.window=on"},
					      {SCOPE, "cc.algorithm=rttcc", "cc.window=on"}};
	/* Hashes give the four ways 2 to 6 of 16 paths. With a window for each path it is 379, 307, 304 and 310. */
	static const uint64_t least_gbps[] = {340, 330, 280, 225};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		struct sim_run run;
		uint64_t bps;

		sim_run_do(&run, text, sets[i]);
		bps = rate_bps(&run, 64000000);
		if (bps < least_gbps[i] * 1000000000)
			fail_msg("%s: %llu bit/s", sets[i][1], (unsigned long long)bps);
		sim_run_free(&run);
	}
}

/* The queue that is longest, half of the time. */
static uint64_t longest_median(const struct results *r)
{
	uint64_t longest = 0;

	for (uint32_t i = 0; i < r->port_count; i++) {
		uint64_t median = results_queue_percentile(&r->ports[i], 500000);

		longest = median > longest ? median : longest;
	}
	return longest;
}

/* The least window of a queue pair is two packets, not two on each of 16 paths. Shares would leave no queue of either. */
TEST(an_incast_of_joint_windows_has_a_short_queue)
{
	static const char text[] = "[topology]\nkind = star\nhosts = 65\n[link]\nrate = 100Gbps\ndelay = 1us\n"
				   "[switch]\nbuffer = 64MB\n"
				   "[transport]\npayload = 4096B\n[run]\nuntil = 3ms\nall_flows = off\n"
				   "[workload.w]\nkind = incast\nfan_in = 64\nsize = 1GB\n"
				   "[output]\ngoodput_window = none\n";
	static const char *const scopes[] = {"cc.scope=path", SCOPE};
	uint64_t queue_bytes[2];

	for (size_t i = 0; i < 2; i++) {
		const char *sets[] = {scopes[i], "cc.rxshare=off", NULL};
		struct sim_run run;

		sim_run_do(&run, text, sets);
		queue_bytes[i] = longest_median(&run.results);
		sim_run_free(&run);
	}
	if (queue_bytes[1] > queue_bytes[0] / 3)
		fail_msg("%llu and %llu bytes", (unsigned long long)queue_bytes[0], (unsigned long long)queue_bytes[1]);
}

/* A way is cut and comes back: the others carry the flow meanwhile. */
TEST(a_dead_path_takes_no_part_of_a_joint_window)
{
	static const char text[] = "[topology]\nkind = leaf-spine\nleaves = 2\nhosts = 1\nspines = 4\n"
				   "[link]\nrate = 100Gbps\ndelay = 1us\n[switch]\nt_conv = never\n"
				   "[failure.f]\nlink = 2-4\ntime = 100us\n"
				   "[transport]\npayload = 4096B\n"
				   "[workload.w]\nkind = flow\nsenders = 0\nreceivers = 1\nsize = 64MB\n";
	static const char *const sets[] = {SCOPE, NULL};
	struct sim_run run;
	uint64_t bps;

	sim_run_do(&run, text, sets);
	bps = rate_bps(&run, 64000000);
	if (bps < UINT64_C(80000000000))
		fail_msg("%llu bit/s", (unsigned long long)bps);
	sim_run_free(&run);
}
