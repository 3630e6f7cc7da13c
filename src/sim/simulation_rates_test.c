/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts of different speeds, and impossible figures. */

#include <stdio.h>

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
