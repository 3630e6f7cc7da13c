/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole simulations over links with credits, beside PFC. */

#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

enum { INCAST = 8, VICTIM = 8 };

/* As share/scenarios/credits.ini, smaller. */
static const char text[] =
	"[topology]\nkind = leaf-spine\nhosts = 4\nleaves = 4\nspines = 1\n"
	"[link]\nrate = 100Gbps\nfabric_rate = 400Gbps\ndelay = 1us\n"
	"[switch]\necn = off\nbuffer = 2MB\n"
	"[transport]\nprotocol = rocev2\npayload = 4096B\n[cc]\nalgorithm = none\n[run]\ncheck = on\n"
	"[workload.incast]\nkind = flow\nsenders = 0-2,5-9\nreceivers = 12,12,12,12,12,12,12,12\nsize = 300KB\n"
	"[workload.victim]\nkind = flow\nsenders = 3\nreceivers = 4\nsize = 300KB\n";

static void run_victim(struct sim_run *run, const char *const *flow_control, const char *class)
{
	const char *sets[] = {class, flow_control[0], flow_control[1], NULL};

	sim_run_do(run, text, sets);
	assert_int_equal(run->results.flows_done, INCAST + 1);
	assert_int_equal(sim_dropped(run), 0);
	assert_int_equal(run->results.recovery.retransmitted_packets, 0);
	assert_int_equal(run->results.recovery.timeouts, 0);
}

/* Go-back-N, which a loss would make resend, resends nothing; what a host's lane waits for is told. */
TEST(neither_credits_nor_pfc_lose_and_a_lane_of_its_own_frees_a_victim)
{
	static const char *const kinds[][2] = {
		{"switch.flow_control=credits", "switch.lane_queue=input"},
		{"switch.flow_control=credits", "switch.lane_queue=output"},
		{"switch.flow_control=pfc", "switch.pfc=on"},
	};

	for (size_t i = 0; i < 3; i++) {
		struct sim_run shared, own;

		run_victim(&shared, kinds[i], "workload.victim.class=3");
		run_victim(&own, kinds[i], "workload.victim.class=4");
		assert_true(results_slowdown(&shared.results.flows[VICTIM]) > 3);
		assert_true(results_slowdown(&own.results.flows[VICTIM]) < 1.05);
		assert_int_equal(shared.results.credits.used, i < 2);
		assert_int_equal(shared.results.credits.hosts_waited, i < 2 ? 9 : 0);
		assert_int_equal(own.results.credits.hosts_waited, i < 2 ? 8 : 0);
		assert_true((shared.results.pfc.pause_frames > 0) == (i == 2));
		assert_true(shared.results.credits.buffer_bytes_max <= 65536);
		sim_run_free(&shared);
		sim_run_free(&own);
	}
}

/* LRH, BTH, RETH, payload, ICRC, VCRC and two delimiters, and no Ethernet, IP or UDP. */
TEST(packets_have_the_size_of_infinibands)
{
	static const char *const sets[] = {"switch.flow_control=credits", "workload.incast.size=4096B",
					   "workload.victim.size=4096B", NULL};
	struct sim_run run;

	sim_run_do(&run, text, sets);
	for (uint32_t i = 0; i < run.results.port_count; i++) {
		const struct results_port *p = &run.results.ports[i];

		if (p->node == 3)
			assert_int_equal(p->tx_bytes, 8 + 12 + 16 + 4096 + 4 + 2 + 2);
	}
	sim_run_free(&run);
}

/* Five switches in a ring, a host each, which sends to the second one on. */
static void run_ring(struct sim_run *run, const char *receivers, const char *lifetime)
{
	static const char ring[] =
		"10 5 10\n5 6 7 8 9\n"
		"0 5 100Gbps 1us 0\n1 6 100Gbps 1us 0\n2 7 100Gbps 1us 0\n3 8 100Gbps 1us 0\n4 9 100Gbps 1us 0\n"
		"5 6 100Gbps 1us 0\n6 7 100Gbps 1us 0\n7 8 100Gbps 1us 0\n8 9 100Gbps 1us 0\n9 5 100Gbps 1us 0\n";
	static const char scenario[] =
		"[topology]\nkind = file\nfile = ring\n[switch]\nflow_control = credits\nlane_buffer = 16KiB\n"
		"[transport]\nprotocol = rocev2\npayload = 4096B\n[cc]\nalgorithm = none\n"
		"[workload.w]\nkind = flow\nsenders = 0-4\nsize = 1MB\n";
	const char *sets[] = {receivers, lifetime, NULL};

	sim_run_read(run, scenario, sets);
	run->scenario->topology.file.text = ring;
	run->scenario->topology.file.text_bytes = strlen(ring);
	sim_run_create(run);
	sim_run_end(run);
}

TEST(a_deadlock_ends_the_run_and_is_told)
{
	struct sim_run run;

	run_ring(&run, "workload.w.receivers=2,3,4,0,1", "switch.lane_lifetime=never");
	assert_true(run.results.partial);
	assert_non_null(strstr(run.results.partial_why, "deadlock"));
	assert_non_null(strstr(run.results.partial_why, "5 lanes"));
	assert_non_null(strstr(run.results.partial_why, "5-6 lane 3"));
	assert_int_equal(run.results.flows_done, 0);
	assert_int_equal(sim_dropped(&run), 0);
	sim_run_free(&run);
}

TEST(without_a_circle_the_ring_is_done)
{
	struct sim_run run;

	run_ring(&run, "workload.w.receivers=1,2,3,4,0", "switch.lane_lifetime=never");
	assert_false(run.results.partial);
	assert_int_equal(run.results.flows_done, 5);
	assert_int_equal(sim_dropped(&run), 0);
	sim_run_free(&run);
}

/*
 * The network moves again. The queue pairs, all alike, resend in step, meet in the same circle each time, and give up.
 */
TEST(a_lifetime_drops_what_waits_in_a_circle)
{
	struct sim_run run;

	run_ring(&run, "workload.w.receivers=2,3,4,0,1", "switch.lane_lifetime=50us");
	assert_null(strstr(run.results.partial_why, "deadlock"));
	assert_true(sim_dropped(&run) > 0 && run.results.recovery.retransmitted_packets > 0);
	for (uint32_t i = 0; i < run.results.drop_count; i++)
		assert_int_equal(run.results.drops[i].reason, RESULTS_DROP_LIFETIME);
	sim_run_free(&run);
}

/* A torus of 5 x 5 switches, routed by opensm's LASH: the shortest ways, on three service levels. The caller frees it.
 */
static char *read_routes(void)
{
	char *routes = calloc(1, 1 << 17);
	FILE *f = fopen(FABRICS "torus-5x5-lash.routes", "r");
	size_t n;

	assert_non_null(f);
	assert_non_null(routes);
	n = fread(routes, 1, (1 << 17) - 1, f);
	fclose(f);
	assert_in_range(n, 1000, (1 << 17) - 2);
	return routes;
}

/* Each host sends to the second one on in its row. Without levels all packets are on one lane. */
static void run_torus(struct sim_run *run, bool levels)
{
	static const char scenario[] =
		"[topology]\nkind = subnet\nfile = routes\n[link]\ndelay = 100ns\n"
		"[switch]\nflow_control = credits\nlane_buffer = 16KiB\n"
		"[transport]\nprotocol = rocev2\npayload = 4096B\nack_class = data\n[cc]\nalgorithm = none\n"
		"[workload.rows]\nkind = flow\nsenders = 0-24\n"
		"receivers = 2-4,0-1,7-9,5-6,12-14,10-11,17-19,15-16,22-24,20-21\nsize = 500KB\n";
	char *routes = read_routes(), *first = strstr(routes, "\nlevels ");

	assert_non_null(first);
	if (!levels)
		first[1] = '\0';
	sim_run_read(run, scenario, NULL);
	run->scenario->topology.file.text = routes;
	run->scenario->topology.file.text_bytes = strlen(routes);
	sim_run_create(run);
	sim_run_end(run);
	free(routes);
}

/* Round a row, each link waits for the next one. */
TEST(a_torus_on_shortest_ways_and_one_lane_stands_still)
{
	struct sim_run run;

	run_torus(&run, false);
	assert_true(run.results.partial);
	assert_non_null(strstr(run.results.partial_why, "deadlock"));
	assert_non_null(strstr(run.results.partial_why, "5 lanes"));
	assert_int_equal(run.results.flows_done, 0);
	sim_run_free(&run);
}

TEST(lanes_of_lash_end_that_and_nothing_is_lost)
{
	struct sim_run run;

	run_torus(&run, true);
	assert_false(run.results.partial);
	assert_int_equal(run.results.flows_done, 25);
	assert_int_equal(sim_dropped(&run), 0);
	assert_int_equal(run.results.recovery.retransmitted_packets, 0);
	sim_run_free(&run);
}

TEST(what_has_no_meaning_with_credits_is_refused)
{
	static const char *const sets[] = {"switch.pfc=on",
					   "switch.ecn=on",
					   "switch.trim=on",
					   "switch.int=on",
					   "switch.border_buffer=1MB",
					   "link.jitter=1us",
					   "host.rx_drain=1Gbps",
					   "transport.protocol=veroce"};
	static const char *const scenario = "[switch]\nflow_control = credits\n[transport]\nprotocol = rocev2\n"
					    "[workload.w]\nkind = flow\nsenders = 0\nreceivers = 1\nsize = 1KB\n";

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		struct scenario_source *source = scenario_source_create();
		struct scenario *out = malloc(sizeof(*out));
		struct scenario_error e = {0};

		assert_non_null(source);
		assert_non_null(out);
		assert_int_equal(scenario_source_text(source, "test.ini", scenario, &e), 0);
		assert_int_equal(scenario_source_settle(source, out, &e), 0);
		assert_int_equal(scenario_source_set(source, sets[i], &e), 0);
		assert_int_not_equal(scenario_source_settle(source, out, &e), 0);
		assert_non_null(strstr(e.what, "flow_control = credits"));
		scenario_source_destroy(source);
		free(out);
	}
}
