/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes of several ranks, with links inside and a NIC for each rank, against closed forms. */

#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

#define NS UINT64_C(1000)

/* Two nodes of 4 ranks. Inside a byte takes 8 ps. RoCEv2 has no time stamps, and a window has room for all. */
#define NODES                                                                                               \
	"[topology]\nkind = rail\nhosts = 2\nnics = 4\nspines = 2\n[link]\nrate = 100Gbps\ndelay = 500ns\n" \
	"[transport]\nprotocol = rocev2\nwindow = none\n[cc]\nalgorithm = none\n"
#define GOAL   NODES "[workload.w]\nkind = graph\nfile = w.goal\n"
#define INSIDE "topology.inside_rate=1Tbps"
#define PXN    "topology.pxn=on"

static void run_goal(struct sim_run *run, const char *graph, const char *const *sets)
{
	sim_run_read(run, GOAL, sets);
	run->scenario->workload[0].file.text = graph;
	run->scenario->workload[0].file.text_bytes = strlen(graph);
	sim_run_create(run);
	sim_run_end(run);
	assert_false(run->results.partial);
}

/* One message; when it has arrived at the receiving rank. */
static uint64_t arrival_ps(struct sim_run *run, uint32_t src, uint32_t dst, uint64_t bytes, const char *const *sets)
{
	char text[512] = "num_ranks 8\n";

	for (uint32_t rank = 0; rank < 8; rank++) {
		if (rank == src)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "rank %u {\nsend %lub to %u\n}\n",
				 rank, bytes, dst);
		if (rank == dst)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "rank %u {\nrecv %lub from %u\n}\n",
				 rank, bytes, src);
	}
	run_goal(run, text, sets);
	assert_int_equal(run->results.flow_count, 1);
	return run->results.steps[0].spans[src < dst].end_ps;
}

/* By switches of the second tier. */
static uint64_t spine_packets(const struct sim_run *run)
{
	uint64_t packets = 0;

	for (uint32_t i = 0; i < run->results.port_count; i++)
		packets += run->results.ports[i].tier == 2 ? run->results.ports[i].tx_packets : 0;
	return packets;
}

TEST(inside_a_node_a_message_takes_its_link)
{
	static const char *const sets[] = {INSIDE, "topology.inside_delay=300ns", NULL};
	struct sim_run run;
	uint64_t at_ps = arrival_ps(&run, 5, 7, 1000000, sets);

	assert_int_equal(at_ps, 8000 * NS + 300 * NS);
	assert_int_equal(run.results.packets, 0);
	assert_int_equal(run.results.flows[0].fct_ps, 8000 * NS + 600 * NS);
	assert_int_equal(run.results.flows[0].ideal_ps, run.results.flows[0].fct_ps);
	assert_int_equal(run.results.flows[0].received_bytes, 0);
	assert_true(run.results.flows[0].inside);
	sim_run_free(&run);
}

TEST(between_nodes_the_own_rail_is_as_without_links_inside)
{
	static const char *const sets[] = {INSIDE, NULL}, *const pxn[] = {INSIDE, PXN, NULL};
	struct sim_run with, without, relayed;
	uint64_t at_ps = arrival_ps(&without, 1, 5, 300000, NULL);

	assert_int_equal(arrival_ps(&with, 1, 5, 300000, sets), at_ps);
	assert_int_equal(arrival_ps(&relayed, 1, 5, 300000, pxn), at_ps);
	assert_int_equal(sim_hash(&with.results), sim_hash(&without.results));
	assert_int_equal(sim_hash(&relayed.results), sim_hash(&without.results));
	assert_int_equal(spine_packets(&with), 0);
	sim_run_free(&with);
	sim_run_free(&without);
	sim_run_free(&relayed);
}

TEST(another_rail_is_reached_by_spines_or_by_a_relay)
{
	static const char *const sets[] = {INSIDE, NULL}, *const pxn[] = {INSIDE, PXN, NULL};
	struct sim_run spines, relayed, rail;
	uint64_t by_spines_ps = arrival_ps(&spines, 0, 5, 300000, sets);
	uint64_t rail_ps = arrival_ps(&rail, 1, 5, 300000, sets), relayed_ps = arrival_ps(&relayed, 0, 5, 300000, pxn);

	assert_true(spine_packets(&spines) > 0);
	assert_true(by_spines_ps > rail_ps);
	assert_int_equal(spine_packets(&relayed), 0);
	/* First to rank 1, which is of that rail, and then by it. */
	assert_int_equal(relayed_ps, 2400 * NS + 500 * NS + rail_ps);
	assert_int_equal(relayed.results.flows[0].src, 0);
	assert_int_equal(relayed.results.flows[0].ideal_ps, 2900 * NS + rail.results.flows[0].ideal_ps);
	assert_int_equal(relayed.results.flows[0].fct_ps, 2900 * NS + rail.results.flows[0].fct_ps);
	assert_false(relayed.results.flows[0].inside);
	sim_run_free(&spines);
	sim_run_free(&relayed);
	sim_run_free(&rail);
}

/* 2 (n - 1) steps of S / n, and the last one's sender knows a delay later. */
TEST(a_ring_inside_a_node_takes_its_steps)
{
	static const char *const sets[] = {INSIDE, NULL};
	struct sim_run run;

	sim_run_do(&run, NODES "[workload.w]\nkind = ring-allreduce\nhosts = 4-7\nsize = 4000000B\n", sets);
	assert_int_equal(run.results.collective_count, 1);
	assert_int_equal(run.results.collectives[0].time_ps, 6 * (8000 + 500) * NS + 500 * NS);
	assert_int_equal(run.results.collectives[0].ideal_ps, 0);
	assert_int_equal(run.results.packets, 0);
	sim_run_free(&run);
}

/* Each rail reduces a quarter between the nodes; both nodes do the rest inside. */
TEST(rails_carry_what_is_between_nodes)
{
	static const char graph[] =
		"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 8 "
		"checkpoints: 0 checkpoint_initiates: 0\n1\na -1 1000 ALLREDUCE 400000 1000 NONE 0 1000 ALLREDUCE 40000 0\n";
	static const char *const sets[] = {INSIDE, NULL};
	struct sim_run run;
	uint64_t inside = 0, outside = 0;

	run_goal(&run, graph, sets);
	for (uint32_t i = 0; i < run.results.flow_count; i++) {
		const struct results_flow *f = &run.results.flows[i];

		assert_int_equal(f->inside, f->src / 4 == f->dst / 4);
		inside += f->inside ? f->bytes : 0;
		outside += f->inside ? 0 : f->bytes;
		assert_true(f->inside || f->src % 4 == f->dst % 4);
		assert_true(f->fct_ps != RESULTS_NOT_DONE);
	}
	/* 2 (n - 1) messages of S / n of each of n ranks. */
	assert_int_equal(inside, 2 * 2 * 3 * 400000);
	assert_int_equal(outside, 4 * 2 * 1 * 40000);
	assert_int_equal(spine_packets(&run), 0);
	sim_run_free(&run);
}

TEST(relays_carry_an_exchange_of_all_ranks)
{
	static const char *const sets[] = {INSIDE, PXN, "transport.protocol=veroce", "cc.algorithm=swift", NULL};
	static const char *const again[] = {
		INSIDE, PXN, "transport.protocol=veroce", "cc.algorithm=swift", "workload.w.repeat=3", NULL};
	struct sim_run run, rounds;

	sim_run_do(&run, NODES "[workload.w]\nkind = all-to-all\nsize = 800000B\n", sets);
	assert_false(run.results.partial);
	assert_int_equal(run.results.flows_done, 56);
	assert_int_equal(spine_packets(&run), 0);
	sim_run_do(&rounds, NODES "[workload.w]\nkind = all-to-all\nsize = 800000B\n", again);
	assert_int_equal(rounds.results.flows_done, 3 * 56);
	sim_run_free(&run);
	sim_run_free(&rounds);
}

TEST(ranks_must_fill_their_nodes)
{
	struct sim_run run;

	sim_run_start(
		&run,
		"[topology]\nkind = star\nhosts = 10\nnics = 4\ninside_rate = 1Tbps\n[workload.w]\nkind = permutation\n",
		NULL);
	assert_null(run.simulation);
	assert_string_equal(run.why, "topology.nics: 10 hosts are not nodes of 4; allowed is a divisor");
	sim_run_free(&run);
}
