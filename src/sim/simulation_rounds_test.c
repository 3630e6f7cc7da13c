/* SPDX-License-Identifier: BSD-2-Clause */
/* Rounds of a workload, flows that wait for others, and what a scenario's defaults stand for. */

#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

#define STAR "[topology]\nkind = star\nhosts = 8\n"

static const char *const round_kinds[] = {
	"kind = incast\nsize = 50KB\n",
	"kind = permutation\nsize = 50KB\n",
	"kind = flow\nsenders = 0-3\nreceivers = 4-7\nsize = 50KB\n",
	"kind = victim\nsenders = 7\nreceivers = 0,6\nfan_in = 3\nsize = 50KB\n",
	"kind = all-to-all\nsize = 80KB\nactive = 2\norder = random\n",
	"kind = moe\nsize = 80KB\n",
	"kind = ring-allreduce\nsize = 80KB\n",
	"kind = halving-doubling\nsize = 80KB\n",
	"kind = tree-allreduce\nsize = 80KB\n",
};

enum { ROUND_KINDS = sizeof(round_kinds) / sizeof(round_kinds[0]), ROUNDS = 3 };

static void run_rounds(struct sim_run *run, const char *kind, const char *more)
{
	char text[512];

	snprintf(text, sizeof(text), STAR "[workload.w]\n%srepeat = %d\n%s", kind, ROUNDS, more);
	sim_run_do(run, text, NULL);
	assert_false(run->results.partial);
}

/* When the first flow of each round began, and when the last one ended. */
static void span_of_rounds(const struct results *r, uint64_t start_ps[ROUNDS], uint64_t end_ps[ROUNDS])
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		start_ps[i] = UINT64_MAX;
		end_ps[i] = 0;
	}
	for (uint32_t i = 0; i < r->flow_count; i++) {
		const struct results_flow *f = &r->flows[i];

		assert_true(f->round < ROUNDS);
		if (f->start_ps < start_ps[f->round])
			start_ps[f->round] = f->start_ps;
		if (f->start_ps + f->fct_ps > end_ps[f->round])
			end_ps[f->round] = f->start_ps + f->fct_ps;
	}
}

TEST(a_round_begins_when_the_one_before_is_done)
{
	for (uint32_t i = 0; i < ROUND_KINDS; i++) {
		for (uint32_t qps = 1; qps <= 2; qps++) {
			uint64_t start_ps[ROUNDS], end_ps[ROUNDS];
			struct sim_run run;

			run_rounds(&run, round_kinds[i], qps == 1 ? "" : "qps = 2\n");
			span_of_rounds(&run.results, start_ps, end_ps);
			for (uint32_t k = 1; k < ROUNDS; k++)
				assert_int_equal(start_ps[k], end_ps[k - 1]);
			sim_run_free(&run);
		}
	}
}

TEST(rounds_with_an_interval_begin_by_the_clock)
{
	uint64_t start_ps[ROUNDS], end_ps[ROUNDS];
	struct sim_run run;

	run_rounds(&run, round_kinds[0], "interval = 3us\nstart = 1us\n");
	span_of_rounds(&run.results, start_ps, end_ps);
	for (uint32_t k = 0; k < ROUNDS; k++)
		assert_int_equal(start_ps[k], 1000000 + k * 3000000);
	assert_true(end_ps[0] > start_ps[1]);
	sim_run_free(&run);
}

static bool shares(const struct results *r, uint32_t flow)
{
	for (uint32_t i = 0; i < r->flow_count; i++) {
		if (r->flows[i].round < r->flows[flow].round && r->flows[i].connection == r->flows[flow].connection) {
			assert_int_equal(r->flows[i].src, r->flows[flow].src);
			assert_int_equal(r->flows[i].dst, r->flows[flow].dst);
			assert_int_equal(r->flows[i].qp, r->flows[flow].qp);
			return true;
		}
	}
	return false;
}

/* A permutation has other pairs in each round; only where it draws a pair again is its queue pair the same. */
TEST(rounds_share_their_queue_pairs_unless_new_ones_are_asked_for)
{
	for (uint32_t i = 0; i < ROUND_KINDS; i++) {
		for (int fresh = 0; fresh < 2; fresh++) {
			struct sim_run run;

			run_rounds(&run, round_kinds[i], fresh ? "round_qps = new\nqps = 2\n" : "qps = 2\n");
			for (uint32_t f = 0; f < run.results.flow_count; f++) {
				if (run.results.flows[f].round && i != 1)
					assert_int_equal(shares(&run.results, f), !fresh);
			}
			sim_run_free(&run);
		}
	}
}

TEST(a_round_of_several_queue_pairs_is_one_collective)
{
	struct sim_run run;

	run_rounds(&run, round_kinds[6], "qps = 2\nhosts = 2-5\n");
	assert_int_equal(run.results.collective_count, ROUNDS);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		assert_int_equal(run.results.collectives[i].round, i);
		assert_int_equal(run.results.collectives[i].bytes, 80000);
		assert_int_equal(run.results.collectives[i].hosts, 4);
	}
	sim_run_free(&run);
}

/* ---- flows in a file ---------------------------------------------------------------------------------- */

static void start_file(struct sim_run *run, const char *flows, const char *const *sets)
{
	sim_run_read(run, STAR "[workload.w]\nkind = file\nfile = flows\n", sets);
	run->scenario->workload[0].file.text = flows;
	run->scenario->workload[0].file.text_bytes = strlen(flows);
	sim_run_create(run);
}

TEST(a_flow_that_is_never_released_is_counted)
{
	static const char matrix[] = "Nodes 4\nConnections 3\nTriggers 1\n"
				     "0->1 id 1 start 0 size 1000 send_done_trigger 1\n"
				     "1->2 id 2 start 0 size 1000 send_done_trigger 1\n"
				     "2->3 id 3 trigger 1 size 1000\n"
				     "trigger id 1 barrier count 3\n";
	struct sim_run run;

	start_file(&run, matrix, NULL);
	sim_run_end(&run);
	assert_int_equal(run.results.flows_done, 2);
	assert_int_equal(run.results.flows_held_back, 1);
	assert_true(run.results.partial);
	assert_string_equal(run.results.partial_why,
			    "1 of the flows never began, the first is 2 to 3 of 1000 bytes in [workload.w]");
	sim_run_free(&run);
}

TEST(more_nodes_than_hosts_are_refused)
{
	struct sim_run run;

	start_file(&run, "Nodes 9\nConnections 1\n0->1 id 1 start 0 size 1000\n", NULL);
	assert_null(run.simulation);
	assert_string_equal(run.why, "workload.w.file: line 1: Nodes 9; the topology has 8 hosts");
	sim_run_free(&run);
}

/* How many data packets hosts have sent in each class; node 8 is the switch. */
static void count_class(void *counts, const char *line, size_t bytes)
{
	const char *class = strstr(line, " class ");

	(void)bytes;
	if (strstr(line, " sent ") && !strstr(line, " sent 8-") && strstr(line, "RC_WRITE") && class)
		((uint32_t *)counts)[class[7] - '0']++;
}

TEST(flows_of_a_file_have_their_own_classes)
{
	static const char flows[] = "2\n0 1 1 100 40960 0\n2 1 5 100 81920 0\n";
	static const struct {
		const char *set;
		uint32_t counts[8];
	} rows[] = {{NULL, {[1] = 10, [5] = 20}}, {"workload.w.class=2", {[2] = 30}}};

	for (size_t i = 0; i < 2; i++) {
		const char *sets[] = {rows[i].set, NULL};
		uint32_t counts[8] = {0};
		struct sim_run run;

		start_file(&run, flows, sets);
		simulation_log(run.simulation, count_class, counts);
		sim_run_end(&run);
		assert_memory_equal(counts, rows[i].counts, sizeof(counts));
		sim_run_free(&run);
	}
}

TEST(answers_in_the_class_of_data_need_one_class)
{
	static const char *const sets[] = {"transport.ack_class=data", NULL};
	struct sim_run run;

	start_file(&run, "1\n0 1 5 100 40960 0\n", sets);
	assert_null(run.simulation);
	assert_memory_equal(run.why, "transport.ack_class: ", 21);
	sim_run_free(&run);
}

/* ---- what figures are measured against ---------------------------------------------------------------- */

/* The best that any algorithm can do is to keep the link of the busiest host full. */
TEST(the_ideal_of_an_exchange_is_that_of_its_busiest_host)
{
	static const char *const kinds[] = {"kind = moe\nsize = 4MB\n", "kind = moe\nzipf = 0\nsize = 4MB\n",
					    "kind = all-to-all\nsize = 4MB\n"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		uint64_t in[8] = {0}, most = 0;
		const struct results_collective *c;
		char text[256];
		struct sim_run run;

		snprintf(text, sizeof(text), STAR "[workload.w]\n%s", kinds[i]);
		sim_run_do(&run, text, NULL);
		for (uint32_t f = 0; f < run.results.flow_count; f++)
			in[run.results.flows[f].dst] += run.results.flows[f].bytes;
		for (int h = 0; h < 8; h++)
			most = in[h] > most ? in[h] : most;
		c = &run.results.collectives[0];
		assert_in_range(c->ideal_ps * (__int128)run.results.header_share_ppb / 1000000000, most * 80 - 1000,
				most * 80 + 1000);
		assert_in_range(c->time_ps, c->ideal_ps, c->ideal_ps * 103 / 100);
		sim_run_free(&run);
	}
}

static uint64_t longest_queue(const struct results *r)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < r->port_count; i++)
		most = r->ports[i].queue_bytes_max > most ? r->ports[i].queue_bytes_max : most;
	return most;
}

/* Two senders without congestion control: half of what both send waits, unless a window keeps it back. */
TEST(no_window_is_none)
{
	static const char text[] =
		STAR "[switch]\nbuffer = 1GB\n[transport]\nprotocol = rocev2\n[cc]\nalgorithm = none\n"
		     "[workload.w]\nkind = flow\nsenders = 0,1\nreceivers = 2,2\nsize = 2MB\n";
	static const char *const none[] = {"transport.window=none", NULL};
	struct sim_run run;

	sim_run_do(&run, text, NULL);
	assert_in_range(longest_queue(&run.results), 1, 2 * 2 * 60000 + 200000);
	sim_run_free(&run);
	sim_run_do(&run, text, none);
	assert_in_range(longest_queue(&run.results), 1900000, 2300000);
	sim_run_free(&run);
}

/* Flows of a site do not queue for as long as the way to the other one takes. */
TEST(each_pair_of_hosts_has_its_own_base_rtt)
{
	static const char text[] =
		"[topology]\nkind = two-dc\nsite = star\nhosts = 5\n[link]\nlong_delay = 100km\n"
		"[switch]\nbuffer = 256MB\n[workload.w]\nkind = flow\nsenders = 0-3\nreceivers = 4,4,4,4\nsize = 5MB\n";
	static const char *const longest[] = {"cc.base_rtt=longest", NULL};
	struct sim_run run;

	sim_run_do(&run, text, NULL);
	assert_in_range(longest_queue(&run.results), 1, 1000000);
	sim_run_free(&run);
	sim_run_do(&run, text, longest);
	assert_in_range(longest_queue(&run.results), 4000000, 20000000);
	sim_run_free(&run);
}

/* One message alone, on a round trip of 500 us: on queue pairs and paths that nothing was sent on, and again. */
TEST(a_new_pair_needs_no_round_trip_to_learn_of_its_paths)
{
	static const char *const algorithms[] = {"none", "swift", "dctcp"}, *const sizes[] = {"520KB", "600KB", "2MB"};
	char text[512];
	struct sim_run run;

	for (unsigned i = 0; i < 9; i++) {
		snprintf(text, sizeof(text),
			 "[topology]\nkind = dumbbell\nhosts = 1\n[link]\nrate = 400Gbps\nfabric_delay = 248us\n"
			 "[run]\nseed = %u\n[cc]\nalgorithm = %s\n[workload.w]\nkind = flow\nsenders = 0\n"
			 "receivers = 1\nsize = %s\nrepeat = 2\nround_qps = %s\n",
			 i + 1, algorithms[i % 3], sizes[i / 3], i % 2 ? "new" : "same");
		sim_run_do(&run, text, NULL);
		assert_int_equal(run.results.flow_count, 2);
		for (uint32_t k = 0; k < 2; k++)
			assert_in_range(run.results.flows[k].fct_ps * 100, run.results.flows[k].ideal_ps * 99,
					run.results.flows[k].ideal_ps * 105);
		sim_run_free(&run);
	}
}

static void count_answers(void *counts, const char *line, size_t bytes)
{
	(void)bytes;
	if (strstr(line, " sent 0-")) /* by the sender, and not the switch */
		((uint32_t *)counts)[0] += strstr(line, "RC_WRITE") != NULL;
	if (strstr(line, " sent 1-"))
		((uint32_t *)counts)[1] += strstr(line, "RC_ACK") != NULL;
}

TEST(hpcc_hears_of_every_packet)
{
	static const char text[] = STAR "[switch]\nint = on\n[transport]\nprotocol = rocev2\n[cc]\nalgorithm = hpcc\n"
					"[workload.w]\nkind = flow\nsenders = 0\nreceivers = 1\nsize = 1MB\n";
	uint32_t counts[2] = {0};
	struct sim_run run;

	sim_run_start(&run, text, NULL);
	simulation_log(run.simulation, count_answers, counts);
	sim_run_end(&run);
	assert_int_equal(counts[0], 245);
	assert_int_equal(counts[1], counts[0]);
	sim_run_free(&run);
}
