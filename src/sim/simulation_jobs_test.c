/* SPDX-License-Identifier: BSD-2-Clause */
/* Several jobs on one fabric: what each has of it, and that alone it is the workload that it names. */

#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

#define NS UINT64_C(1000)

/* Two leaves of 4 hosts each, and one uplink of each. */
#define FABRIC                                                                                               \
	"[topology]\nkind = leaf-spine\nleaves = 2\nspines = 1\nhosts = 4\n[workload.train]\nkind = graph\n" \
	"file = train.txt\n"

/* A step: two layers, whose weights' gradients are reduced while the layer before is computed. */
static const char step[] =
	"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 "
	"checkpoints: 0 checkpoint_initiates: 0\n2\n"
	"a -1 20000 NONE 0 20000 NONE 0 20000 ALLREDUCE 1000000 100\n"
	"b -1 20000 NONE 0 20000 NONE 0 20000 ALLREDUCE 1000000 100\n";

static const char placed[] = "# rank 0 first\n7 2\n\n5 0 # the rest\n";

static void start(struct sim_run *run, const char *text, const char *const *sets, const char *graph)
{
	sim_run_read(run, text, sets);
	for (uint32_t i = 0; i < run->scenario->workload_count; i++) {
		struct scenario_workload *w = &run->scenario->workload[i];

		w->file.text = graph;
		w->file.text_bytes = strlen(graph);
		w->place.file.text = placed;
		w->place.file.text_bytes = strlen("# rank 0 first\n7 2\n\n5 0\n") - 1;
	}
	sim_run_create(run);
}

static void run_all(struct sim_run *run, const char *text, const char *const *sets, const char *graph)
{
	start(run, text, sets, graph);
	sim_run_end(run);
	assert_false(run->results.partial);
}

static uint64_t mean_step_ps(const char *text, const char *only)
{
	const char *sets[] = {only, NULL};
	struct results_job *jobs;
	struct sim_run run;
	uint32_t count;
	uint64_t ps;

	run_all(&run, text, sets, step);
	assert_int_equal(results_jobs(&run.results, &jobs, &count), 0);
	ps = jobs[0].time_ps;
	free(jobs);
	sim_run_free(&run);
	return ps;
}

TEST(a_job_alone_is_the_workload_that_it_names)
{
	static const char *const places[] = {"packed", "round-robin", "random"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char plain[512], job[512];
		struct sim_run a, b;

		snprintf(plain, sizeof(plain), "%splace = %s\nhosts = 2-6\nrepeat = 2\nstart = 3us\n", FABRIC,
			 places[i]);
		snprintf(job, sizeof(job),
			 "%shosts = 2-6\nplace = %s\n[job.one]\nworkload = train\nrepeat = 2\nstart = 3us\n", FABRIC,
			 places[i]);
		run_all(&a, plain, NULL, step);
		run_all(&b, job, NULL, step);
		assert_string_equal(b.scenario->workload[0].name, "one");
		assert_int_equal(a.results.step_count, 2);
		assert_int_equal(b.results.step_count, 2);
		assert_int_equal(sim_hash(&a.results), sim_hash(&b.results));
		for (uint32_t k = 0; k < 2; k++)
			assert_int_equal(a.results.steps[k].time_ps, b.results.steps[k].time_ps);
		sim_run_free(&a);
		sim_run_free(&b);
	}
}

/* Both cross the one uplink of each leaf: half of it is each one's. On leaves of their own they do not meet. */
TEST(jobs_that_share_uplinks_slow_each_other_down)
{
	static const char shared[] = FABRIC "place = round-robin\n[job.a]\nworkload = train\nhosts = 0,1,4,5\n[job.b]\n"
					    "workload = train\nhosts = 2,3,6,7\n";
	static const char apart[] =
		FABRIC "[job.a]\nworkload = train\nhosts = 0-3\n[job.b]\nworkload = train\nhosts = 4-7\n";
	uint64_t alone_a = mean_step_ps(shared, "run.only=a"), alone_b = mean_step_ps(shared, "run.only=b");
	struct results_job *jobs;
	struct sim_run run;
	uint32_t count;

	run_all(&run, shared, NULL, step);
	assert_int_equal(results_jobs(&run.results, &jobs, &count), 0);
	assert_int_equal(count, 2);
	assert_true(jobs[0].time_ps > alone_a * 12 / 10 && jobs[0].time_ps < alone_a * 22 / 10);
	assert_true(jobs[1].time_ps > alone_b * 12 / 10 && jobs[1].time_ps < alone_b * 22 / 10);
	free(jobs);
	sim_run_free(&run);

	run_all(&run, apart, NULL, step);
	assert_int_equal(results_jobs(&run.results, &jobs, &count), 0);
	assert_int_equal(jobs[0].time_ps, mean_step_ps(apart, "run.only=a"));
	assert_int_equal(jobs[1].time_ps, mean_step_ps(apart, "run.only=b"));
	free(jobs);
	sim_run_free(&run);
}

TEST(arrivals_are_those_of_the_seed_and_the_name)
{
	static const char text[] =
		FABRIC "[job.a]\nworkload = train\nstart = 1us\narrive = poisson 1000\nrepeat = 400\n"
		       "[job.b]\nworkload = train\narrive = poisson 1000\nrepeat = 3\n";
	static const char calc[] = "num_ranks 1\nrank 0 {\ncalc 100\n}\n";
	static const char *const only[] = {"run.only=a", NULL}, *const seed[] = {"run.seed=2", NULL};
	struct sim_run run, alone, other;
	uint64_t last = 0;

	run_all(&run, text, NULL, calc);
	run_all(&alone, text, only, calc);
	run_all(&other, text, seed, calc);
	assert_int_equal(run.results.step_count, 403);
	for (uint32_t i = 0; i < 400; i++) {
		assert_int_equal(run.results.steps[i].start_ps, alone.results.steps[i].start_ps);
		assert_true(run.results.steps[i].start_ps > last);
		last = run.results.steps[i].start_ps;
	}
	assert_int_not_equal(run.results.steps[0].start_ps, other.results.steps[0].start_ps);
	assert_int_not_equal(run.results.steps[0].start_ps - 1000 * NS, run.results.steps[400].start_ps);
	/* 400 gaps of 1 ms each; their sum deviates by a twentieth. */
	assert_in_range(last, 340000000 * NS, 460000000 * NS);
	sim_run_free(&run);
	sim_run_free(&alone);
	sim_run_free(&other);
}

TEST(a_file_says_where_ranks_are)
{
	static const char text[] = FABRIC "hosts = 1-3\n[job.a]\nworkload = train\nplace = ./placed\n";
	static const char graph[] = "num_ranks 4\nrank 0 {\nsend 5000b to 3\n}\nrank 1 {\nrecv 5000b from 2\n}\n"
				    "rank 2 {\nsend 5000b to 1\n}\nrank 3 {\nrecv 5000b from 0\n}\n";
	struct sim_run run;

	run_all(&run, text, NULL, graph);
	assert_int_equal(run.results.flow_count, 2);
	assert_int_equal(run.results.flows[0].src, 7);
	assert_int_equal(run.results.flows[0].dst, 0);
	assert_int_equal(run.results.flows[1].src, 5);
	assert_int_equal(run.results.flows[1].dst, 2);
	sim_run_free(&run);
}

TEST(an_infinite_network_leaves_what_is_computed)
{
	static const char text[] = FABRIC "[job.a]\nworkload = train\nrepeat = 2\n";
	static const char chain[] = "num_ranks 2\nrank 0 {\na: calc 1000\nb: send 5000b to 1\nb requires a\n}\n"
				    "rank 1 {\nc: recv 5000b from 0\nd: calc 2000\nd requires c\n}\n";
	struct results_job *jobs;
	struct sim_run run;
	uint32_t count;

	run_all(&run, text, NULL, chain);
	assert_int_equal(run.results.steps[1].infinite_ps, 3000 * NS);
	assert_int_equal(results_jobs(&run.results, &jobs, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(jobs[0].ranks, 2);
	assert_int_equal(jobs[0].steps, 2);
	assert_int_equal(jobs[0].steps_done, 2);
	assert_int_equal(jobs[0].infinite_ps, 3000 * NS);
	assert_int_equal(jobs[0].time_ps, (run.results.steps[0].time_ps + run.results.steps[1].time_ps) / 2);
	assert_int_equal(jobs[0].alone_ps, 0);
	assert_int_equal(jobs[0].bus_bps, 0);
	assert_true(jobs[0].time_ps > 3000 * NS);
	free(jobs);
	sim_run_free(&run);
}

/* Two all-reduces of 4 ranks each: S x 2 (n - 1) / n of both, by the time that both take. */
TEST(bus_bandwidth_of_a_job_is_that_of_its_collectives)
{
	static const char text[] = FABRIC "[job.a]\nworkload = train\n";
	struct results_kind *kinds;
	struct results_job *jobs;
	struct sim_run run;
	uint32_t count;

	run_all(&run, text, NULL, step);
	assert_int_equal(results_jobs(&run.results, &jobs, &count), 0);
	assert_int_equal(results_kinds(&run.results.steps[0], &kinds, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(kinds[0].count, 2);
	assert_in_range(jobs[0].bus_bps, kinds[0].bus_bps - 1, kinds[0].bus_bps);
	assert_in_range(jobs[0].bus_bps, 2000000 * 8 * 1000000000000.0 * 1.5 / (2 * (double)kinds[0].time_ps) - 1e6,
			2000000 * 8 * 1000000000000.0 * 1.5 / (2 * (double)kinds[0].time_ps) + 1e6);
	free(kinds);
	free(jobs);
	sim_run_free(&run);
}

TEST(what_is_wrong_with_a_job_is_named)
{
	static const struct {
		const char *jobs, *graph, *says;
	} cases[] = {
		{"[job.x]\nworkload = train\nhosts = 5-9\n", step, "job.x.hosts: beyond the topology's last host"},
		{"[job.x]\nworkload = train\nhosts = 1-3\n", step, "job.x: the graph has 4 ranks; it has 3 hosts"},
		{"[job.x]\nworkload = train\n[job.y]\nworkload = train\n", "num_ranks 2\nx\n",
		 "workload.train.file: train.txt:2: "},
		{"leaves = 1\n[job.x]\nworkload = train\nplace = ./placed\n", step,
		 "job.x.place: ./placed:2: '7'; allowed are the numbers of hosts, 0 to 3"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *leaves[] = {"topology.leaves=1", NULL};
		bool small = cases[i].jobs[0] == 'l';
		struct sim_run run;
		char text[512];

		snprintf(text, sizeof(text), "%s%s", FABRIC, cases[i].jobs + (small ? strlen("leaves = 1\n") : 0));
		start(&run, text, small ? leaves : NULL, cases[i].graph);
		assert_null(run.simulation);
		if (strncmp(run.why, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("says \"%s\"", run.why);
		sim_run_free(&run);
	}
}
