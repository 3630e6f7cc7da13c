/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>

#include "support/sim_run.h"

static const char two_hosts[] = "[topology]\nkind = star\nhosts = 2\n"
				"[workload.w]\nkind = flow\nsenders = 0\nreceivers = 1\nsize = 100KB\n";

/* ---- what is refused --------------------------------------------------------------------------------- */

static void refusals_name_the_key(void **state)
{
	static const struct {
		const char *set, *says;
	} cases[] = {
		{"host.post_delay=1us", "host.post_delay: "},
		{"host.completion_delay=1us", "host.completion_delay: "},
		{"host.ack_delay=1us", "host.ack_delay: "},
		{"host.read_rate=10Gbps", "host.read_rate: "},
		{"host.rx_buffer=1MB", "host.rx_buffer: "},
		{"host.rx_drain=10Gbps", "host.rx_drain: "},
		{"host.qp_cache=10", "host.qp_cache: "},
		{"host.idle_qps=100000", "host.idle_qps: "},
		{"transport.cnp_gap_port=1us", "transport.cnp_gap_port: "},
		{"transport.flowlet_gap=1us", "transport.flowlet_gap: "},
		{"transport.payload=1001B", "transport.payload: "},
		{"transport.payload=8192B", "transport.payload: "},
		{"transport.paths=17", "transport.paths: "},
		{"transport.rx_window=64", "transport.rx_window: "},
		{"transport.ack_every=17", "transport.ack_every: "},
		{"switch.pfc_resume_frames=off", "switch.pfc_resume_frames: "},
		{"switch.trim_ecn=on", "switch.trim_ecn: "},
		{"switch.egress_alpha=1/3", "switch.egress_alpha: "},
		{"cc.algorithm=cubic", "cc.algorithm: \"cubic\" is none of none, "},
		{"cc.preset=fast", "cc.preset: swift has no preset \"fast\""},
		{"cc.beta_of_nothing=1", "cc.beta_of_nothing: "},
		{"cc.algorithm=hpcc", "switch.int: "},
		{"cc.scope=qp", "cc.scope: "},
		{"workload.w.class=5", "workload.w.class: "},
		{"workload.w.hosts=0-2", "workload.w.hosts: "},
		{"output.cc_trace=all", "output.cc_trace: "},
		{"output.event_log=on", "output.event_log: "},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *sets[] = {cases[i].set, NULL};
		struct sim_run run;

		sim_start(&run, two_hosts, sets);
		if (run.simulation)
			fail_msg("%s is accepted", cases[i].set);
		if (strncmp(run.why, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("%s: says \"%s\"", cases[i].set, run.why);
		sim_free(&run);
	}
}

static void several_keys_that_do_not_go_together_are_refused(void **state)
{
	static const struct {
		const char *sets[5], *says;
	} cases[] = {
		{{"cc.algorithm=hpcc", "switch.int=on"}, "transport.protocol: "},
		{{"switch.trim=on", "transport.protocol=rocev2"}, "switch.trim: "},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sim_run run;

		sim_start(&run, two_hosts, cases[i].sets);
		assert_null(run.simulation);
		if (strncmp(run.why, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("%s ...: says \"%s\"", cases[i].sets[0], run.why);
		sim_free(&run);
	}
}

static void a_link_that_is_not_there_cannot_fail(void **state)
{
	char text[512];
	struct sim_run run;

	snprintf(text, sizeof(text), "%s[failure.x]\nlink = 0-1\n", two_hosts);
	sim_start(&run, text, NULL);
	assert_null(run.simulation);
	assert_memory_equal(run.why, "failure.x.link: ", 16);
	sim_free(&run);
}

/* ---- what is accepted -------------------------------------------------------------------------------- */

static char *text_of(const char *folder, const char *name)
{
	char path[1024];
	char *text = calloc(1, 1 << 16);
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "r");
	if (!text || !f || !fread(text, 1, (1 << 16) - 1, f))
		fail_msg("%s cannot be read", path);
	fclose(f);
	return text;
}

static unsigned run_folder(const char *folder)
{
	static const char *const sets[] = {"run.events=3000", "run.check=on", NULL};
	DIR *d = opendir(folder);
	struct dirent *e;
	unsigned count = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name);
		struct sim_run run;
		struct scenario_file *nodes;
		char *text, *file = NULL;

		if (len < 5 || strcmp(e->d_name + len - 4, ".ini") != 0)
			continue;
		text = text_of(folder, e->d_name);
		sim_read(&run, text, sets);
		nodes = &run.scenario->topology.file;
		if (nodes->path[0]) {
			nodes->text = file = text_of(folder, nodes->path);
			nodes->text_bytes = strlen(file);
		}
		sim_create(&run);
		if (!run.simulation)
			fail_msg("%s: %s", e->d_name, run.why);
		sim_end(&run);
		if (!run.results.events || !run.results.partial)
			fail_msg("%s: over after %llu events", e->d_name,
				 (unsigned long long)run.results.events);
		assert_string_equal(run.results.partial_why, "run.events were spent");
		sim_free(&run);
		free(text);
		free(file);
		count++;
	}
	closedir(d);
	return count;
}

static void each_scenario_that_comes_along_runs(void **state)
{
	assert_true(run_folder(SHARE_SCENARIOS) >= 10);
	assert_true(run_folder(BENCH_SCENARIOS) >= 5);
}

/* ---- ends -------------------------------------------------------------------------------------------- */

static void a_run_ends_with_its_last_flow(void **state)
{
	struct sim_run run;
	struct simulation_progress p;

	sim_do(&run, two_hosts, NULL);
	assert_false(run.results.partial);
	assert_int_equal(run.results.flow_count, 1);
	assert_int_equal(run.results.flows_done, 1);
	assert_int_equal(run.results.flows[0].acked_bytes, 100000);
	assert_int_equal(run.results.time_ps, run.results.flows[0].fct_ps);
	simulation_progress(run.simulation, &p);
	assert_int_equal(p.flows, 1);
	assert_int_equal(p.flows_done, 1);
	assert_int_equal(p.events, run.results.events);
	sim_free(&run);
}

static void a_run_that_is_cut_off_says_so(void **state)
{
	static const struct {
		const char *sets[3], *why;
		bool partial;
	} cases[] = {
		{{"run.events=5"}, "run.events were spent", true},
		{{"run.until=2us"}, "run.until came before all flows were done", true},
		{{"run.until=2us", "run.all_flows=off"}, "", false},
		{{"run.until=1s"}, "", false},
		{{"link.loss=100%"}, "queue pairs broke: their flows never ended", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sim_run run;

		sim_do(&run, two_hosts, cases[i].sets);
		assert_int_equal(run.results.partial, cases[i].partial);
		assert_string_equal(run.results.partial_why, cases[i].why);
		sim_free(&run);
	}
}

/* Each kind is built by code of its own. */
static void a_workload_starts_when_it_is_to(void **state)
{
	static const char *const kinds[] = {"flow\nsenders = 0\nreceivers = 1", "incast", "permutation",
					    "all-to-all", "ring-allreduce", "halving-doubling",
					    "tree-allreduce", "moe", "cdf\nflows = 10"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char text[256];
		struct sim_run run;

		snprintf(text, sizeof(text), "[topology]\nkind = star\nhosts = 4\n"
			 "[workload.w]\nstart = 100us\nkind = %s\n", kinds[i]);
		sim_do(&run, text, NULL);
		assert_false(run.results.partial);
		assert_true(run.results.flow_count > 0);
		for (uint32_t k = 0; k < run.results.flow_count; k++) {
			if (run.results.flows[k].start_ps < 100000000)
				fail_msg("%s starts at %llu", kinds[i],
					 (unsigned long long)run.results.flows[k].start_ps);
		}
		sim_free(&run);
	}
}

static void slices_of_any_size_give_the_same_run(void **state)
{
	static const char *const sets[] = {"workload.w.size=1MB", "link.loss=1%", NULL};
	uint64_t want = 0;

	for (uint64_t slice = 1; slice < 100000; slice *= 13) {
		struct sim_run run;
		enum simulation_state s = SIMULATION_RUNS;

		sim_start(&run, two_hosts, sets);
		while (s == SIMULATION_RUNS)
			s = simulation_run(run.simulation, slice);
		assert_int_equal(s, SIMULATION_ENDED);
		simulation_finish(run.simulation);
		if (!want)
			want = sim_hash(&run.results);
		assert_int_equal(sim_hash(&run.results), want);
		sim_free(&run);
	}
}

/* The flow starts when they have all asked each other what they can. */
static void idle_queue_pairs_do_not_slow_a_flow(void **state)
{
	static const char *const later[] = {"workload.w.start=100us", "cc.algorithm=none", NULL};
	static const char *const idle[] = {"workload.w.start=100us", "cc.algorithm=none", "host.idle_qps=100",
					   NULL};
	struct sim_run with, without;

	sim_do(&without, two_hosts, later);
	sim_do(&with, two_hosts, idle);
	assert_int_equal(with.results.flows[0].fct_ps, without.results.flows[0].fct_ps);
	sim_free(&with);
	sim_free(&without);
}

/* ---- broken queue pairs ------------------------------------------------------------------------------ */

/* One of four cannot be reached: the rest of the collective waits for it in vain, and the run ends all the same. */
static void a_broken_queue_pair_ends_a_collective(void **state)
{
	static const char *const protocols[] = {"transport.protocol=rocev2", "transport.protocol=veroce"};
	static const char text[] = "[topology]\nkind = star\nhosts = 4\n"
				   "[failure.cable]\nlink = 3-4\ntime = 2us\n"
				   "[workload.w]\nkind = ring-allreduce\nsize = 1MB\n";

	for (int i = 0; i < 2; i++) {
		const char *sets[] = {protocols[i], NULL};
		struct sim_run run;

		sim_do(&run, text, sets);
		assert_true(run.results.partial);
		assert_true(run.results.flows_done < 4 * 6);
		assert_int_equal(run.results.collective_count, 1);
		assert_true(run.results.collectives[0].time_ps == RESULTS_NOT_DONE);
		sim_free(&run);
	}
}

/* ---- totals ------------------------------------------------------------------------------------------ */

static void totals_of_loss_are_those_of_all_hosts(void **state)
{
	static const char *const sets[] = {"workload.w.size=2MB", "link.loss=2%", "run.check=on", NULL};
	struct sim_run run;
	uint64_t lost = 0;

	sim_do(&run, two_hosts, sets);
	assert_false(run.results.partial);
	for (uint32_t i = 0; i < run.results.drop_count; i++) {
		assert_int_equal(run.results.drops[i].reason, RESULTS_DROP_LOSS);
		if (run.results.drops[i].class)
			lost += run.results.drops[i].packets;
	}
	assert_true(lost > 5);
	/* each that was lost once again, and those for nothing */
	assert_true(run.results.recovery.retransmitted_packets >= lost);
	assert_true(run.results.recovery.retransmitted_packets <=
		    2 * lost + run.results.recovery.spurious_packets);
	sim_free(&run);
}

/* ---- queues ------------------------------------------------------------------------------------------ */

static void a_queue_is_as_long_as_the_scenario_lets_it_be(void **state)
{
	static const struct {
		const char *sets[3];
		uint64_t least, most;
	} cases[] = {
		{{NULL}, 300000, UINT64_MAX},
		{{"switch.port_limit=100KB"}, 90000, 100000},
		/* and the headers of what was trimmed */
		{{"switch.trim=on", "switch.trim_queue=50KB"}, 45000, 100000},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sim_run run;
		uint64_t longest = 0;

		sim_do(&run,
		       "[topology]\nkind = star\nhosts = 17\n[cc]\nalgorithm = none\n"
		       "[workload.w]\nkind = incast\nsize = 100KB\n[run]\ncheck = on\n",
		       cases[i].sets);
		assert_int_equal(run.results.flows_done, 16);
		for (uint32_t p = 0; p < run.results.port_count; p++) {
			if (run.results.ports[p].queue_bytes_max > longest)
				longest = run.results.ports[p].queue_bytes_max;
		}
		if (longest < cases[i].least || longest > cases[i].most)
			fail_msg("%s: %llu bytes", cases[i].sets[0] ? cases[i].sets[0] : "no limit",
				 (unsigned long long)longest);
		sim_free(&run);
	}
}

/* Files name a queue by these two. */
static void a_port_is_known_by_its_node_and_number(void **state)
{
	struct sim_run run;

	sim_do(&run,
	       "[topology]\nkind = leaf-spine\nleaves = 2\nspines = 2\nhosts = 2\nuplinks = 4\n"
	       "[workload.w]\nkind = permutation\nsize = 1KB\n",
	       NULL);
	assert_true(run.results.port_count >= 2 * (2 + 4));
	for (uint32_t i = 0; i < run.results.port_count; i++) {
		for (uint32_t j = 0; j < i; j++) {
			const struct results_port *a = &run.results.ports[i], *b = &run.results.ports[j];

			assert_false(a->node == b->node && a->port == b->port);
		}
		assert_true(run.results.ports[i].port < 6);
	}
	sim_free(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals_name_the_key),
		cmocka_unit_test(several_keys_that_do_not_go_together_are_refused),
		cmocka_unit_test(a_link_that_is_not_there_cannot_fail),
		cmocka_unit_test(a_run_ends_with_its_last_flow),
		cmocka_unit_test(a_run_that_is_cut_off_says_so),
		cmocka_unit_test(a_workload_starts_when_it_is_to),
		cmocka_unit_test(slices_of_any_size_give_the_same_run),
		cmocka_unit_test(idle_queue_pairs_do_not_slow_a_flow),
		cmocka_unit_test(a_broken_queue_pair_ends_a_collective),
		cmocka_unit_test(totals_of_loss_are_those_of_all_hosts),
		cmocka_unit_test(a_queue_is_as_long_as_the_scenario_lets_it_be),
		cmocka_unit_test(a_port_is_known_by_its_node_and_number),
		cmocka_unit_test(each_scenario_that_comes_along_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
