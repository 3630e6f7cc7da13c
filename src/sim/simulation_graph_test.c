/* SPDX-License-Identifier: BSD-2-Clause */
/* Graphs over the simulated network: what they take against closed forms, and how they end. */

#include <stdio.h>

#include "sim/host.h"
#include "support/sim_run.h"
#include "support/test.h"
#include "workload/goal.h"
#include "workload/graph_lower.h"
#include "workload/graph_read.h"

#define NS UINT64_C(1000)
/* Nothing but the wires: RoCEv2 has no time stamps, and a window has room for all. */
#define STAR                                                                                                          \
	"[topology]\nkind = star\nhosts = 8\n[link]\nrate = 100Gbps\ndelay = 500ns\n[transport]\nprotocol = rocev2\n" \
	"window = none\n[cc]\nalgorithm = none\n[workload.w]\nkind = graph\nfile = w.goal\n"

static void run_goal(struct sim_run *run, const char *text, const char *const *sets)
{
	sim_run_read(run, STAR, sets);
	run->scenario->workload[0].file.text = text;
	run->scenario->workload[0].file.text_bytes = strlen(text);
	sim_run_create(run);
	sim_run_end(run);
}

static bool append(void *text, const char *piece, size_t bytes)
{
	return strncat(text, piece, bytes);
}

static const struct results_step *step_of(const struct sim_run *run, uint32_t i)
{
	assert_true(i < run->results.step_count);
	return &run->results.steps[i];
}

TEST(a_chain_of_calcs_is_their_sum)
{
	struct sim_run run;

	run_goal(&run, "num_ranks 1\nrank 0 {\na: calc 1000\nb: calc 2000\nb requires a\nc: calc 5\nc requires b\n}\n",
		 NULL);
	assert_false(run.results.partial);
	assert_int_equal(step_of(&run, 0)->time_ps, 3005 * NS);
	assert_int_equal(step_of(&run, 0)->compute_ps, 3005 * NS);
	assert_int_equal(step_of(&run, 0)->exposed_ps, 0);
	assert_int_equal(run.results.time_ps, 3005 * NS);
	sim_run_free(&run);
}

static const char overlap[] =
	"num_ranks 2\nrank 0 {\ncalc %d\nsend 1000000b to 1\n}\nrank 1 {\nrecv 1000000b from 0\n}\n";

TEST(compute_over_communication_is_the_longer_one)
{
	uint64_t alone_ps = 0;

	for (int compute_ns = 0; compute_ns <= 200000; compute_ns += 40000) {
		char text[256];
		struct sim_run run;
		const struct results_step *s;

		snprintf(text, sizeof(text), overlap, compute_ns);
		run_goal(&run, text, NULL);
		s = step_of(&run, 0);
		assert_int_equal(run.results.flow_count, 1);
		if (!compute_ns)
			alone_ps = s->time_ps;
		assert_int_equal(alone_ps, run.results.flows[0].fct_ps);
		assert_int_equal(s->time_ps, compute_ns * NS > alone_ps ? compute_ns * NS : alone_ps);
		assert_int_equal(s->compute_ps_max, compute_ns * NS);
		sim_run_free(&run);
	}
}

/*
 * LogGP: a message takes o + L + (k - 1) G + o, a round twice that. Here o is 0, L two wires and the longest packet once
 * more, as the switch stores it, and G a byte's time. BTH, RETH, immediate data and ICRC have 12, 16, 4 and 4 bytes.
 */
TEST(a_ping_pong_takes_two_messages)
{
	enum { FRAME = HOST_FRAME_BYTES + 12 + 4 };
	static const struct {
		uint64_t bytes, wire, longest;
	} cases[] = {
		{4, 4 + FRAME + 20, 4 + FRAME + 20},
		{4096, 4096 + FRAME + 20, 4096 + FRAME + 20},
		{8192, 8192 + 2 * FRAME + 20, 4096 + FRAME + 16},
		{409600, 409600 + 100 * FRAME + 20, 4096 + FRAME + 16},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t k = cases[i].bytes, ack_ps = (FRAME + 4) * 80;
		const uint64_t message_ps = 2 * 500 * NS + (cases[i].wire + cases[i].longest) * 80;
		char text[512];
		struct sim_run run;

		snprintf(text, sizeof(text),
			 "num_ranks 2\nrank 0 {\na: send %lub to 1\nb: recv %lub from 1\n}\n"
			 "rank 1 {\nc: recv %lub from 0\nd: send %lub to 0\nd requires c\n}\n",
			 k, k, k, k);
		run_goal(&run, text, NULL);
		assert_false(run.results.partial);
		assert_int_equal(run.results.flow_count, 2);
		assert_int_equal(run.results.flows[1].start_ps, message_ps);
		/* The answer leaves behind the ACK of the last packet. */
		assert_int_equal(step_of(&run, 0)->spans[1].end_ps, 2 * message_ps + ack_ps);
		sim_run_free(&run);
	}
}

TEST(what_cannot_go_on_is_partial_and_says_why)
{
	struct sim_run run;

	run_goal(&run, "num_ranks 2\nrank 0 {\na: recv 4096b from 1 tag 2\n}\nrank 1 {\nb: send 4096b to 0 tag 3\n}\n",
		 NULL);
	assert_true(run.results.partial);
	assert_string_equal(
		run.results.partial_why,
		"1 nodes of [workload.w] never ended: rank 0 node 0 (recv 4096 from 1 tag 2, line 3) waits for "
		"a message that nobody sends, or that was lost with its queue pair");
	assert_int_equal(step_of(&run, 0)->time_ps, RESULTS_NOT_DONE);
	assert_int_equal(step_of(&run, 0)->nodes_done, 1);
	sim_run_free(&run);
}

TEST(a_broken_queue_pair_is_named_by_who_waits_for_it)
{
	static const char *const sets[] = {"link.loss=100%", NULL};
	struct sim_run run;

	run_goal(&run, "num_ranks 2\nrank 0 {\na: send 4096b to 1\n}\nrank 1 {\nb: recv 4096b from 0\n}\n", sets);
	assert_string_equal(
		run.results.partial_why,
		"queue pairs broke: 2 nodes of [workload.w] never ended: rank 0 node 0 (send 4096 to 1 tag 0, "
		"line 3) waits for an acknowledgement that was lost with its queue pair");
	sim_run_free(&run);
}

TEST(rounds_follow_each_other_on_the_same_queue_pairs)
{
	static const char *const sets[] = {"workload.w.repeat=3", NULL};
	struct sim_run run;

	run_goal(&run,
		 "num_ranks 2\nrank 0 {\na: calc 100\nb: send 5000b to 1\nb requires a\n}\n"
		 "rank 1 {\nc: recv 5000b from 0\nd: calc 50000\nd requires c\n}\n",
		 sets);
	assert_false(run.results.partial);
	assert_int_equal(run.results.step_count, 3);
	assert_int_equal(run.results.flow_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(step_of(&run, i)->round, i);
		assert_int_equal(step_of(&run, i)->time_ps, step_of(&run, 0)->time_ps);
		assert_int_equal(step_of(&run, i)->start_ps, i * step_of(&run, 0)->time_ps);
		assert_int_equal(run.results.flows[i].connection, run.results.flows[0].connection);
	}
	sim_run_free(&run);
}

TEST(rounds_with_an_interval_overlap_and_end)
{
	static const char *const sets[] = {"workload.w.repeat=3", "workload.w.interval=10us", "workload.w.start=1us",
					   NULL};
	struct sim_run run;

	run_goal(&run, "num_ranks 1\nrank 0 {\ncalc 25000\n}\n", sets);
	assert_false(run.results.partial);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(step_of(&run, i)->start_ps, (1000 + i * 10000) * NS);
	assert_int_equal(run.results.time_ps, 46000 * NS);
	sim_run_free(&run);
}

TEST(a_straggler_computes_longer)
{
	static const char *const sets[] = {"host.slow=3:1.2,5:2", "workload.w.hosts=2-3", NULL};
	struct sim_run run;

	run_goal(&run, "num_ranks 2\nrank 0 {\ncalc 1000\n}\nrank 1 {\ncalc 1000\n}\n", sets);
	assert_int_equal(step_of(&run, 0)->spans[0].end_ps, 1000 * NS);
	assert_int_equal(step_of(&run, 0)->spans[1].end_ps, 1200 * NS);
	assert_int_equal(step_of(&run, 0)->compute_ps_max, 1200 * NS);
	sim_run_free(&run);
}

/* Half of the 2nd step is slow; the first and the third are not. */
TEST(a_straggler_begins_and_ends)
{
	static const char *const sets[] = {"host.slow=1:3@15us-30us", "workload.w.repeat=3", NULL};
	struct sim_run run;

	run_goal(&run, "num_ranks 2\nrank 0 {\ncalc 10000\n}\nrank 1 {\ncalc 10000\n}\n", sets);
	assert_int_equal(step_of(&run, 0)->time_ps, 10000 * NS);
	assert_int_equal(step_of(&run, 1)->time_ps, 20000 * NS);
	assert_int_equal(step_of(&run, 2)->time_ps, 10000 * NS);
	assert_int_equal(step_of(&run, 1)->infinite_ps, 20000 * NS);
	sim_run_free(&run);
}

TEST(exposed_communication_is_what_nothing_is_computed_in)
{
	struct sim_run run;
	const struct results_step *s;
	struct results_rank of;

	run_goal(&run,
		 "num_ranks 2\nrank 0 {\nsend 1000000b to 1\n}\n"
		 "rank 1 {\na: recv 1000000b from 0\nb: calc 50000\nc: calc 7\nc requires a\nc requires b\n}\n",
		 NULL);
	s = step_of(&run, 0);
	assert_int_equal(results_rank_of(s, 1, &of), 0);
	assert_int_equal(of.compute_ps, 50007 * NS);
	assert_int_equal(of.exposed_ps, s->spans[1].end_ps - 50000 * NS);
	assert_int_equal(of.end_ps, s->spans[1].end_ps + 7 * NS);
	assert_int_equal(of.exposed_count, 1);
	assert_int_equal(of.exposed[0].begin_ps, 50000 * NS);
	assert_int_equal(of.compute_count, 2);
	results_rank_free(&of);
	sim_run_free(&run);
}

TEST(refusals_name_the_file_and_its_line)
{
	static const struct {
		const char *text, *set, *says;
	} cases[] = {
		{"num_ranks 2\nrank 0 {\nfoo\n}\n", NULL, "workload.w.file: w.goal:3: the line ends where"},
		{"num_ranks 9\n", NULL, "workload.w: the graph has 9 ranks; it has 8 hosts"},
		{"num_ranks 3\n", "workload.w.hosts=1-2", "workload.w: the graph has 3 ranks; it has 2 hosts"},
		{"num_ranks 3\n", "host.slow=8:2", "host.slow: there is no host 8, only 0 to 7"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *sets[] = {cases[i].set, NULL};
		struct sim_run run;

		sim_run_read(&run, STAR, sets);
		run.scenario->workload[0].file.text = cases[i].text;
		run.scenario->workload[0].file.text_bytes = strlen(cases[i].text);
		sim_run_create(&run);
		assert_null(run.simulation);
		if (strncmp(run.why, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("says \"%s\"", run.why);
		sim_run_free(&run);
	}
}

/* ---- collectives -------------------------------------------------------------------------------------------------- */

static char texts[8][256];
static struct graph_file files[8];

/* A trace that others made, in the scenario's files. */
static void use_trace(struct sim_run *run, const char *kind, uint32_t ranks)
{
	for (uint32_t i = 0; i < ranks; i++) {
		char path[512];
		FILE *f;

		snprintf(path, sizeof(path), TRACES "/chakra/%s/%unpus_1MB/%s.%u.et", kind, ranks, kind, i);
		f = fopen(path, "rb");
		if (!f)
			fail_msg("%s cannot be read", path);
		files[i] = (struct graph_file){texts[i], fread(texts[i], 1, sizeof(texts[i]), f)};
		fclose(f);
	}
	run->scenario->workload[0].file.ranks = files;
	run->scenario->workload[0].file.rank_count = ranks;
}

static uint64_t run_trace(const char *kind, uint32_t ranks, const char *const *sets)
{
	struct sim_run run;
	uint64_t time_ps;

	sim_run_read(&run, STAR, sets);
	use_trace(&run, kind, ranks);
	sim_run_create(&run);
	sim_run_end(&run);
	assert_false(run.results.partial);
	time_ps = step_of(&run, 0)->time_ps;
	sim_run_free(&run);
	return time_ps;
}

/* The last completion of a workload that is a collective. */
static uint64_t run_kind(const char *lines, const char *const *sets)
{
	struct sim_run run;
	uint64_t time_ps;
	char text[1024];

	snprintf(text, sizeof(text), "%.*s%s", (int)(strstr(STAR, "[workload") - STAR), STAR, lines);
	sim_run_do(&run, text, sets);
	assert_int_equal(run.results.collective_count, 1);
	time_ps = run.results.collectives[0].time_ps;
	sim_run_free(&run);
	return time_ps;
}

/* A graph's collectives are those that are workloads of their own, to the picosecond. */
TEST(collectives_of_graphs_take_what_they_take_alone)
{
	static const struct {
		const char *trace, *algorithm, *alone;
	} cases[] = {
		{"all_reduce", "workload.w.algorithm=ring", "kind = ring-allreduce\n"},
		{"all_reduce", "workload.w.algorithm=halving-doubling", "kind = halving-doubling\n"},
		{"all_reduce", "workload.w.algorithm=tree", "kind = tree-allreduce\n"},
		{"all_to_all", NULL, "kind = all-to-all\norder = shifted\n"},
	};
	static const char *const protocols[] = {"transport.protocol=rocev2", "transport.protocol=veroce"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int p = 0; p < 2; p++) {
			const char *graph_sets[] = {protocols[p], cases[i].algorithm, NULL};
			const char *alone_sets[] = {protocols[p], NULL};
			char text[256];

			snprintf(text, sizeof(text), "[workload.w]\nsize = 1MiB\n%s", cases[i].alone);
			assert_int_equal(run_trace(cases[i].trace, 8, graph_sets), run_kind(text, alone_sets));
		}
	}
}

/*
 * The traces on a ring of 50 GB/s and 500 ns from one rank to the next, in 4 chunks, with 10 ns at each end, as their
 * examples run: (n-1)/n of the bytes at the rate of payload, and the wires of the last message and its acknowledgement.
 * ASTRA-sim's comm_size of an all-gather is what each rank puts in. With chunks a step's wires are hidden by the others'.
 */
TEST(traces_of_others_take_what_their_formulas_say)
{
	static const char *const sets[] = {"link.rate=400Gbps",   "link.delay=250ns",          "host.post_delay=10ns",
					   "workload.w.chunks=4", "workload.w.algorithm=ring", NULL};
	static const struct {
		const char *kind;
		uint64_t of_n, times_n; /* shares of S that a rank sends: of_n (n - 1), each S / n, or S */
	} cases[] = {{"all_reduce", 2, 0}, {"all_gather", 1, 1}, {"reduce_scatter", 1, 0}, {"all_to_all", 1, 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (uint32_t n = 4; n <= 8; n += 4) {
			const uint64_t share = cases[i].times_n ? 1048576 : 1048576 / n;
			const uint64_t bytes = cases[i].of_n * (n - 1) * share;
			const uint64_t wires_ps = 2 * 500 * NS + 4200 * 20 + 10 * NS;
			/* 20 ps a byte; a packet of 4096 bytes has 82 around them. */
			const uint64_t formula_ps = bytes * 20 * (4096 + 82) / 4096 + wires_ps;
			uint64_t time_ps = run_trace(cases[i].kind, n, sets);

			if (time_ps < formula_ps * 98 / 100 || time_ps > formula_ps * 102 / 100)
				fail_msg("%s of %u: %lu ps, by formula %lu", cases[i].kind, n, time_ps, formula_ps);
		}
	}
}

/* Without collectives, as sends and receives of GOAL text, the same takes as long. */
TEST(a_converted_trace_takes_as_long)
{
	struct graph_fault fault = {0};
	struct graph *g, *lowered;
	struct sim_run run;
	char *text = calloc(1, 1 << 20);

	sim_run_read(&run, STAR, NULL);
	use_trace(&run, "all_reduce", 8);
	assert_int_equal(graph_read(files, 8, &g, &fault), 0);
	free(run.scenario);
	assert_int_equal(graph_lower(g, COLLECTIVE_RING, 1, &lowered, NULL), 0);
	assert_int_equal(goal_write(lowered, append, text), 0);
	run_goal(&run, text, NULL);
	assert_int_equal(step_of(&run, 0)->time_ps,
			 run_trace("all_reduce", 8, (const char *const[]){"workload.w.algorithm=ring", NULL}));
	sim_run_free(&run);
	graph_free(g);
	graph_free(lowered);
	free(text);
}

/* A broadcast among 4 ranks in k chunks, along their chain, as GOAL text in `text`. */
static void write_broadcast(char *text, uint32_t chunks)
{
	static const uint32_t ranks[] = {0, 1, 2, 3};
	struct graph *g = graph_create(4), *lowered;
	uint32_t group, node;

	graph_group(g, ranks, 4, &group);
	for (uint32_t i = 0; i < 4; i++)
		graph_add(g,
			  &(struct graph_node){.kind = GRAPH_COLLECTIVE,
					       .rank = i,
					       .amount = 1 << 20,
					       .peer = group,
					       .collective = COLLECTIVE_BROADCAST},
			  &node);
	assert_int_equal(graph_finish(g, NULL), 0);
	assert_int_equal(graph_lower(g, COLLECTIVE_RING, chunks, &lowered, NULL), 0);
	text[0] = '\0';
	assert_int_equal(goal_write(lowered, append, text), 0);
	graph_free(g);
	graph_free(lowered);
}

/* n - 1 messages of a chunk behind each other, and k - 1 more chunks at the rate of the links. */
TEST(a_pipeline_takes_its_first_chunk_and_the_others_behind_it)
{
	char *text = calloc(1, 1 << 20);

	for (uint32_t k = 1; k <= 16; k *= 4) {
		const uint64_t packets = (1 << 20) / k / 4096, wire_ps = ((1 << 20) / k + packets * 82 + 20) * 80;
		const uint64_t message_ps = 2 * 500 * NS + wire_ps + 4194 * 80;
		const uint64_t formula_ps = 3 * message_ps + (k - 1) * wire_ps;
		struct sim_run run;
		uint64_t last_ps = 0;

		write_broadcast(text, k);
		run_goal(&run, text, NULL);
		assert_int_equal(run.results.flow_count, 3 * k);
		for (uint32_t i = 0; i < step_of(&run, 0)->graph->node_count; i++) {
			if (step_of(&run, 0)->graph->nodes[i].kind == GRAPH_RECV &&
			    step_of(&run, 0)->spans[i].end_ps > last_ps)
				last_ps = step_of(&run, 0)->spans[i].end_ps;
		}
		if (last_ps < formula_ps * 99 / 100 || last_ps > formula_ps * 101 / 100)
			fail_msg("%u chunks: %lu ps, by formula %lu", k, last_ps, formula_ps);
		sim_run_free(&run);
	}
	free(text);
}

TEST(small_collectives_take_fewer_steps)
{
	static const char *const ring[] = {"workload.w.algorithm=ring", NULL};
	static const char *const halving[] = {"workload.w.algorithm=halving-doubling", NULL};

	/* 1 MiB is above what auto takes for small. */
	assert_int_equal(run_trace("all_reduce", 8, NULL), run_trace("all_reduce", 8, ring));
	assert_true(run_trace("all_reduce", 8, halving) < run_trace("all_reduce", 8, ring));
}

/* Bytes and bus bandwidth of a step's collectives: 2 (n - 1) / n x S / time. */
TEST(bus_bandwidth_is_that_of_the_step)
{
	struct results_kind *kinds;
	struct sim_run run;
	uint32_t count;

	sim_run_read(&run, STAR, NULL);
	use_trace(&run, "all_reduce", 8);
	sim_run_create(&run);
	sim_run_end(&run);
	assert_int_equal(results_kinds(step_of(&run, 0), &kinds, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(kinds[0].kind, COLLECTIVE_ALL_REDUCE);
	assert_int_equal(kinds[0].members, 8);
	assert_int_equal(kinds[0].bytes, 1048576);
	assert_int_equal(kinds[0].count, 1);
	assert_int_equal(kinds[0].time_ps, step_of(&run, 0)->time_ps);
	assert_int_equal(kinds[0].skew_ps, 0);
	assert_int_equal(kinds[0].bus_bps, (uint64_t)(results_bps(1048576, kinds[0].time_ps) * 14.0 / 8));
	free(kinds);
	sim_run_free(&run);
}

/* ---- jobs ---------------------------------------------------------------------------------------------------------- */

/* Two leaves of 4 hosts each and one uplink: jobs on a leaf each meet no one, those on both share it. */
#define TWO_JOBS                                                                                                   \
	"[topology]\nkind = leaf-spine\nleaves = 2\nspines = 1\nhosts = 4\n[workload.a]\nkind = graph\nfile = a\n" \
	"place = round-robin\nhosts = %s\n[workload.b]\nkind = graph\nfile = a\nhosts = %s\n"

static void run_jobs(struct sim_run *run, const char *a, const char *b, const char *const *sets)
{
	char text[1024];

	snprintf(text, sizeof(text), TWO_JOBS, a, b);
	sim_run_read(run, text, sets);
	use_trace(run, "all_reduce", 4);
	run->scenario->workload[run->scenario->workload_count - 1].file = run->scenario->workload[0].file;
	sim_run_create(run);
	sim_run_end(run);
	assert_false(run->results.partial);
}

TEST(jobs_that_share_links_slow_each_other_down)
{
	static const char *const alone[] = {"run.only=a", NULL};
	uint64_t alone_ps, packed_ps;
	struct sim_run run;

	run_jobs(&run, "0-3", "4-7", alone);
	assert_int_equal(run.results.step_count, 1);
	alone_ps = step_of(&run, 0)->time_ps;
	sim_run_free(&run);
	run_jobs(&run, "0-3", "4-7", NULL);
	assert_int_equal(run.results.step_count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(step_of(&run, i)->time_ps < alone_ps * 101 / 100);
		assert_true(step_of(&run, i)->time_ps > alone_ps * 99 / 100);
	}
	packed_ps = step_of(&run, 1)->time_ps;
	sim_run_free(&run);
	/* Each job has hosts on both leaves, so the uplinks carry several flows. */
	run_jobs(&run, "0,1,4,5", "2,6,3,7", NULL);
	assert_true(step_of(&run, 0)->time_ps > packed_ps * 3 / 2);
	assert_true(step_of(&run, 1)->time_ps > packed_ps * 3 / 2);
	sim_run_free(&run);
}

/* Rank by rank, the hosts of the first flows. */
static void check_places(const char *place, const uint32_t *hosts)
{
	char set[64];
	const char *const sets[] = {set, "run.only=a", NULL};
	struct sim_run run;

	snprintf(set, sizeof(set), "workload.a.place=%s", place);
	run_jobs(&run, "0,1,4,5", "2", sets);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(run.results.flows[i].src, hosts[i]);
	sim_run_free(&run);
}

TEST(ranks_are_placed_as_the_scenario_says)
{
	static const uint32_t packed[] = {0, 1, 4, 5}, turns[] = {0, 4, 1, 5};

	check_places("packed", packed);
	check_places("round-robin", turns);
}
