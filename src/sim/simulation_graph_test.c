/* SPDX-License-Identifier: BSD-2-Clause */
/* Graphs over the simulated network: what they take against closed forms, and how they end. */

#include <stdio.h>

#include "sim/host.h"
#include "support/sim_run.h"
#include "support/test.h"
#include "workload/goal.h"

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
