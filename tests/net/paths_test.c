/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole simulations of veRoCE over paths of different length, over switches that trim, and through an outage. */

#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

#define US UINT64_C(1000000)

/* Two flows fill two links of 100 Gbit/s, of which one takes 40 us more there and back than 200. */
TEST(a_pair_fills_a_longer_link_as_it_does_the_shorter)
{
	static const char text[] =
		"[topology]\nkind = two-dc\nsite = leaf-spine\nhosts = 2\nleaves = 1\nspines = 1\nlong_links = 2\n"
		"[link]\nrate = 100Gbps\nfabric_rate = 400Gbps\ndelay = 1us\n"
		"long_rate = 100Gbps\nlong_delay = 100us\nlong_skew = 20us\n"
		"[transport]\npayload = 4096B\n[run]\nuntil = 6ms\nall_flows = off\n"
		"[workload.bulk]\nkind = flow\nsenders = 0-1\nreceivers = 2-3\nsize = 1GB\n"
		"[output]\ngoodput_window = 500us\nqueue_histograms = off\n";

	for (unsigned seed = 1; seed <= 2; seed++) {
		char set[32];
		const char *sets[] = {set, NULL};
		struct results_fairness fair;
		struct sim_run run;

		snprintf(set, sizeof(set), "run.seed=%u", seed);
		sim_run_do(&run, text, sets);
		fair = results_fairness_between(&run.results, 4000 * US, 2000 * US);
		assert_int_equal(fair.flows, 2);
		if (fair.min_bps < UINT64_C(90000000000))
			fail_msg("seed %u: %llu bit/s", seed, (unsigned long long)fair.min_bps);
		sim_run_free(&run);
	}
}

/*
 * 64 hosts with 16 paths each send to one, whose port's queue holds three packets for each host: less than a
 * path's least window. Trimming costs the port at most eight per cent of its goodput, with at least two of
 * three seeds, because the last copy of a flow's last packet may be lost.
 */
TEST_MANY(an_incast_over_switches_that_trim_sends_little_again)
{
	static const char text[] =
		"[topology]\nkind = star\nhosts = 65\n[link]\nrate = 100Gbps\ndelay = 3us\n[switch]\ntrim = on\n"
		"[transport]\npayload = 1000B\nheader_bytes = 64B\n"
		"[workload.w]\nkind = incast\nfan_in = 64\nsize = 2MB\n[output]\nqueue_histograms = off\n";
	static const char *const seeds[][2] = {{"run.seed=1"}, {"run.seed=2"}, {"run.seed=3"}};
	uint64_t ideal_ps = 64 * UINT64_C(2000) * 1064 * 80;
	uint32_t quick = 0;

	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		struct sim_run run;
		uint64_t last_ps = 0;

		sim_run_do(&run, text, seeds[i]);
		assert_false(run.results.partial);
		for (uint32_t f = 0; f < run.results.flow_count; f++) {
			if (run.results.flows[f].fct_ps > last_ps)
				last_ps = run.results.flows[f].fct_ps;
		}
		assert_true(run.results.recovery.retransmitted_packets <= 64 * 2000 / 10);
		assert_true(run.results.recovery.timeouts <= 64);
		quick += last_ps <= ideal_ps + ideal_ps / 12;
		sim_run_free(&run);
	}
	assert_true(quick >= 2);
}

/*
 * 16 MiB over 25 ms each way at 50 Mbit/s, with 1 % lost: 3.1 s, and half a second more as nothing gets through for so
 * long. Fifteen of the sixteen paths go down meanwhile, and each comes up again.
 */
TEST_MANY(an_outage_of_a_long_link_shuts_no_path_for_good)
{
	static const char text[] =
		"[topology]\nkind = dumbbell\nhosts = 1\n"
		"[link]\nrate = 50Mbps\nfabric_delay = 25ms\nloss = 1%\nloss_place = fabric\n"
		"[switch]\nbuffer = 312KB\n[transport]\npayload = 1024B\n[cc]\nalgorithm = swift\n"
		"[workload.w]\nkind = flow\nsenders = 0\nreceivers = 1\nsize = 16MiB\n"
		"[failure.f]\ntime = 1s\nlink = 2-3\nup_after = 500ms\n[output]\nqueue_histograms = off\n";

	for (unsigned seed = 1; seed <= 3; seed++) {
		char set[32];
		const char *sets[] = {set, NULL};
		struct sim_run run;

		snprintf(set, sizeof(set), "run.seed=%u", seed);
		sim_run_do(&run, text, sets);
		assert_false(run.results.partial);
		assert_true(run.results.recovery.timeouts >= 2);
		if (run.results.flows[0].fct_ps > 4300000 * US)
			fail_msg("seed %u: %llu us", seed, (unsigned long long)(run.results.flows[0].fct_ps / US));
		sim_run_free(&run);
	}
}
