/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts of different speeds, and impossible figures. */

#include <stdio.h>

#include "sim/simulation_rates.h"
#include "support/sim_run.h"
#include "support/test.h"

/* Host 0 is slow; 1 to 3 are not. Node 4 is the switch. */
static const char mixed[] = "5 1 4\n4\n0 4 10Gbps 0.001ms 0\n1 4 100Gbps 0.001ms 0\n2 4 100Gbps 0.001ms 0\n"
			    "3 4 100Gbps 0.001ms 0\n";

static const char sizes[] = "1000 100\n";

#define MIXED "[topology]\nkind = file\nfile = mixed\n"

static void start(struct sim_run *run, const char *text, const char *const *sets)
{
	sim_run_read(run, text, sets);
	run->scenario->topology.file.text = mixed;
	run->scenario->topology.file.text_bytes = strlen(mixed);
	run->scenario->workload[0].cdf_file.text = sizes;
	run->scenario->workload[0].cdf_file.text_bytes = strlen(sizes);
	sim_run_create(run);
}

TEST(a_host_is_as_fast_as_its_own_link)
{
	static const char *const kinds[][4] = {
		{"transport.protocol=veroce", NULL},
		{"transport.protocol=rocev2", "cc.algorithm=dcqcn", NULL},
		{"transport.protocol=rocev2", "cc.algorithm=hpcc", "switch.int=on", NULL},
		{"transport.protocol=rocev2", "cc.algorithm=none", NULL},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct sim_run run;
		const struct results *r = &run.results;

		start(&run,
		      MIXED "[workload.fast]\nkind = flow\nsenders = 1\nreceivers = 2\nsize = 20MB\n"
			    "[workload.slow]\nkind = flow\nsenders = 0\nreceivers = 3\nsize = 2MB\n",
		      kinds[i]);
		sim_run_end(&run);
		assert_false(r->partial);
		assert_int_equal(r->host_rate_bps, 100000000000);
		assert_int_equal(r->host_rate_bps_min, 10000000000);
		assert_int_equal(r->receivers_bps, 200000000000);
		for (uint32_t f = 0; f < 2; f++)
			assert_in_range(results_bps(r->flows[f].bytes, r->flows[f].fct_ps),
					f ? 8000000000 : 80000000000, f ? 10000000000 : 100000000000);
		sim_run_free(&run);
	}
}

/* Each host's own link is used to that share. */
TEST_MANY(load_is_a_share_of_each_hosts_link)
{
	uint64_t bytes[4] = {0};
	struct sim_run run;

	start(&run,
	      MIXED "[cc]\nalgorithm = none\n[workload.w]\nkind = cdf\ncdf = sizes.txt\nload = "
		    "20%\nstop = 1ms\n",
	      NULL);
	sim_run_end(&run);
	for (uint32_t i = 0; i < run.results.flow_count; i++)
		bytes[run.results.flows[i].src] += run.results.flows[i].bytes;
	for (int i = 0; i < 4; i++) {
		uint64_t want = UINT64_C(250000) * (i ? 10 : 1);

		assert_in_range(bytes[i], want * 7 / 10, want * 13 / 10);
	}
	sim_run_free(&run);
}

TEST(a_collective_is_as_fast_as_its_slowest_host)
{
	static const char text[] = MIXED "[workload.w]\nkind = ring-allreduce\nsize = 4MB\n";
	struct sim_run run;
	const struct results_collective *c;

	start(&run, text, NULL);
	sim_run_end(&run);
	c = run.results.collectives;
	assert_int_equal(run.results.collective_count, 1);
	assert_in_range(c->bus_bps, 8000000000, 10000000000);
	assert_true(c->ideal_ps < c->time_ps && c->time_ps < c->ideal_ps * 12 / 10);
	sim_run_free(&run);
}

/* Only a fault of the simulator could cause one, so here the test puts it into the results. */
TEST(a_figure_that_cannot_be_is_an_internal_error)
{
	struct sim_run run;

	start(&run, MIXED "[workload.w]\nkind = flow\nsenders = 1\nreceivers = 2\nsize = 1MB\n", NULL);
	while (simulation_run(run.simulation, 1000000) == SIMULATION_RUNS)
		;
	run.results.flows[0].fct_ps = 79000000; /* 8 Mbit at 100 Gbit/s take 80 us */
	assert_false(simulation_finish(run.simulation));
	assert_true(run.results.partial);
	assert_string_equal(run.results.partial_why,
			    "internal error: flow 0 had 101265822784 bit/s, more than its hosts' 100000000000");
	sim_run_free(&run);
}

/* ---- what is possible ------------------------------------------------------------------------------- */

/* Payload of that many bytes at that rate, with its headers, ps. */
static uint64_t takes_ps(const struct results *r, uint64_t bytes, uint64_t rate_bps)
{
	return rates_time_ps((unsigned __int128)bytes * 8, rate_bps, r->header_share_ppb);
}

/*
 * A fat tree of 16 hosts, of which each has pieces for 15 others, and 2 are below each edge switch. With a third of the
 * links between switches at half rate, a set of hosts has less to the others than its own links.
 */
TEST(a_collective_is_compared_with_the_slowest_cut)
{
	static const char text[] = "[topology]\nkind = fat-tree\nk = 4\n[failures]\ndegraded = 33%\n"
				   "[workload.w]\nkind = all-to-all\nsize = 4MB\n";
	static const char *const sound[] = {"failures.degraded=0", NULL};
	const struct results_collective *c;
	struct sim_run run;
	uint64_t pieces;

	sim_run_do(&run, text, NULL);
	c = &run.results.collectives[0];
	pieces = (uint64_t)c->limit.hosts * (16 - c->limit.hosts);
	assert_true(c->limit.hosts > 1 && c->limit.bps < c->limit.hosts * run.results.host_rate_bps);
	assert_int_equal(c->possible_ps, takes_ps(&run.results, pieces * (4000000 / 16), c->limit.bps));
	assert_true(c->possible_ps > c->ideal_ps && c->possible_ps < c->time_ps);
	sim_run_free(&run);
	sim_run_do(&run, text, sound);
	c = &run.results.collectives[0];
	assert_int_equal(c->limit.hosts, 1);
	assert_int_equal(c->possible_ps, c->ideal_ps);
	sim_run_free(&run);
}

/* 16 KB in 8 hosts: 14 steps of 2 KB, each of which is a packet that crosses a switch and two wires. */
TEST(a_collective_of_short_steps_is_compared_with_their_chain)
{
	static const char text[] = "[topology]\nkind = star\nhosts = 8\n[link]\nrate = 100Gbps\ndelay = 1us\n"
				   "[workload.w]\nkind = ring-allreduce\nsize = 16000B\n";
	const struct results_collective *c;
	struct sim_run run;
	uint64_t step_ps;

	sim_run_do(&run, text, NULL);
	c = &run.results.collectives[0];
	assert_int_equal(c->limit.hosts, 0);
	/* The steps are one way, and the last one's answer comes back. */
	step_ps = (c->possible_ps - run.results.flows[0].ideal_ps) / 13;
	assert_in_range(step_ps, 2 * 1000000 + 2 * 2000 * 80, 2 * 1000000 + 2 * 2150 * 80);
	assert_in_range(c->time_ps, c->possible_ps, c->possible_ps * 104 / 100);
	sim_run_free(&run);
}
