/* SPDX-License-Identifier: BSD-2-Clause */
/* The same results, to the last event, on any number of cores. */

#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

/* Two pods of two racks, and rounds of messages short and long from all hosts to all. */
static const char mixed[] = "[topology]\nkind = fat-tree\nk = 4\n"
			    "[link]\nrate = 100Gbps\ndelay = 1us\n"
			    "[switch]\nbuffer = 300KB\n"
			    "[transport]\npayload = 1000B\n"
			    "[workload.some]\nkind = cdf\ncdf = FB_Hadoop\nload = 60%\nstop = 100us\n"
			    "[workload.many]\nkind = incast\nfan_in = 30\nreceivers = 5\nsize = 60KB\nstart = 20us\n"
			    "[workload.others]\nkind = permutation\nsize = 150KB\n"
			    "[output]\ngoodput_window = 7us\n";

static void on_cores(struct sim_run *run, const char *text, const char *const *sets, uint32_t cores)
{
	sim_run_read(run, text, sets);
	run->scenario->cores = cores;
	sim_run_create(run);
}

static void series_are_equal(const struct results_series *a, const struct results_series *b)
{
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->window_ps, b->window_ps);
	if (a->count)
		assert_memory_equal(a->value, b->value, a->count * sizeof(*a->value));
}

static void results_are_equal(const struct results *a, const struct results *b)
{
	assert_int_equal(a->time_ps, b->time_ps);
	assert_int_equal(a->events, b->events);
	assert_int_equal(a->packet_hops, b->packet_hops);
	assert_int_equal(a->flow_count, b->flow_count);
	assert_int_equal(a->flows_done, b->flows_done);
	for (uint32_t i = 0; i < a->flow_count; i++) {
		assert_int_equal(a->flows[i].src, b->flows[i].src);
		assert_int_equal(a->flows[i].start_ps, b->flows[i].start_ps);
		assert_int_equal(a->flows[i].fct_ps, b->flows[i].fct_ps);
		assert_int_equal(a->flows[i].received_bytes, b->flows[i].received_bytes);
	}
	for (uint32_t i = 0; i < a->port_count; i++) {
		assert_int_equal(a->ports[i].tx_bytes, b->ports[i].tx_bytes);
		assert_int_equal(a->ports[i].ce_packets, b->ports[i].ce_packets);
		assert_int_equal(a->ports[i].queue_bytes_max, b->ports[i].queue_bytes_max);
		assert_int_equal(a->ports[i].queue_byte_ps_lo, b->ports[i].queue_byte_ps_lo);
		assert_int_equal(a->ports[i].pause_rx, b->ports[i].pause_rx);
		series_are_equal(&a->ports[i].queue, &b->ports[i].queue);
	}
	assert_int_equal(a->drop_count, b->drop_count);
	for (uint32_t i = 0; i < a->drop_count; i++)
		assert_int_equal(a->drops[i].packets, b->drops[i].packets);
	series_are_equal(&a->goodput.total, &b->goodput.total);
	for (uint32_t i = 0; i < a->goodput.curve_count; i++)
		series_are_equal(&a->goodput.curve[i].series, &b->goodput.curve[i].series);
}

static void same_on_cores(const char *text, const char *const *sets, uint64_t dropped)
{
	static const uint32_t cores[] = {2, 3, 4};
	struct sim_run one;

	on_cores(&one, text, sets, 1);
	sim_run_end(&one);
	assert_true(sim_dropped(&one) >= dropped);
	for (size_t i = 0; i < sizeof(cores) / sizeof(cores[0]); i++) {
		struct sim_run run;

		on_cores(&run, text, sets, cores[i]);
		sim_run_end(&run);
		results_are_equal(&one.results, &run.results);
		sim_run_free(&run);
	}
	sim_run_free(&one);
}

TEST(results_do_not_depend_on_the_number_of_cores)
{
	static const struct {
		const char *sets[6];
		uint64_t dropped; /* at least */
	} cases[] = {
		{{"transport.protocol=veroce"}, 1},
		{{"transport.protocol=rocev2", "switch.pfc=on", "switch.buffer=2MB", "cc.algorithm=dcqcn"}, 0},
		{{"transport.protocol=rocev2", "switch.int=on", "cc.algorithm=hpcc", "run.seed=7"}, 0},
		{{"switch.routing=flowlet", "link.corrupt=0.1%", "link.loss=0.5%"}, 1},
		{{"host.ack_delay=2us", "host.rx_drain=80Gbps", "host.rx_buffer=200KB", "output.queue_sample=3us"}, 1},
		{{"run.until=33us", "switch.latency=300ns"}, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		same_on_cores(mixed, cases[i].sets, cases[i].dropped);
}

/* A link between pods fails and comes back, and with it what is on its way between parts. */
TEST(links_between_parts_may_fail)
{
	static const char *const sets[] = {"switch.t_conv=10us", NULL};
	char text[2048];

	snprintf(text, sizeof(text), "%s[failure.down]\ntime = 30us\nlink = 24-32\nup_after = 50us\n", mixed);
	same_on_cores(text, sets, 1);
}

/* The last flow never ends: its queue pair breaks. */
TEST(a_run_that_breaks_ends_at_the_same_time)
{
	static const char text[] = "[topology]\nkind = leaf-spine\nleaves = 2\nspines = 1\nhosts = 2\n"
				   "[transport]\nprotocol = rocev2\nrto = 100us\n"
				   "[failure.down]\ntime = 20us\nlink = 0-4\n"
				   "[workload.w]\nkind = flow\nsenders = 2,3\nreceivers = 0,1\nsize = 1MB\n";
	struct sim_run one, two;

	on_cores(&one, text, NULL, 1);
	on_cores(&two, text, NULL, 2);
	sim_run_end(&one);
	sim_run_end(&two);
	assert_true(one.results.partial);
	assert_string_equal(one.results.partial_why, two.results.partial_why);
	results_are_equal(&one.results, &two.results);
	sim_run_free(&one);
	sim_run_free(&two);
}

TEST(what_cannot_run_on_several_cores_is_refused)
{
	static const struct {
		const char *set, *says;
	} cases[] = {
		{"switch.flow_control=credits", "switch.flow_control: "},
		{"link.jitter=1us", "link.jitter: "},
		{"host.qp_cache=10", "host.qp_cache: "},
		{"run.check=on", "run.check: "},
		{"run.events=1000", "run.events: "},
		{"output.event_log=on", "output.event_log: "},
		{"output.cc_trace=0", "output.cc_trace: "},
		{"topology.k=2", "topology: 3 cores: at most 2 are allowed"},
		{"link.delay=0", "topology: a network whose switches are joined by links without delay"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *sets[] = {cases[i].set, i ? NULL : "transport.protocol=rocev2",
				      i ? NULL : "cc.algorithm=none", i ? NULL : "switch.ecn=off", NULL};
		struct sim_run run;

		on_cores(&run, mixed, sets, 3);
		if (run.simulation)
			fail_msg("%s is accepted", cases[i].set);
		if (strncmp(run.why, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("%s: says \"%s\"", cases[i].set, run.why);
		sim_run_free(&run);
	}
}

TEST(workloads_whose_messages_wait_run_on_one_core)
{
	static const char *const kinds[] = {"kind = all-to-all\nsize = 1MB\nactive = 4",
					    "kind = ring-allreduce\nsize = 1MB",
					    "kind = permutation\nsize = 1MB\nrepeat = 2"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char text[512];
		struct sim_run run;

		snprintf(text, sizeof(text), "[topology]\nkind = fat-tree\nk = 4\n[workload.w]\n%s\n", kinds[i]);
		on_cores(&run, text, NULL, 2);
		assert_null(run.simulation);
		assert_memory_equal(run.why, "workload.w: ", 12);
		sim_run_free(&run);
	}
}
