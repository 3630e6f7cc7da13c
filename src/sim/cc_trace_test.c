/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

enum { SETS = 6 };

static const char incast[] = "[topology]\nkind = star\nhosts = 5\n"
			     "[workload.w]\nkind = incast\nsize = 400KB\n"
			     "[switch]\nkmin = 20KB\nkmax = 80KB\necn_rate = 0\n";

struct algorithm {
	const char *sets[SETS];
	const char *signal, *target;
	bool paced;
};

static const struct algorithm algorithms[] = {
	{{"cc.algorithm=none"}, NULL, NULL, false},
	{{"cc.algorithm=swift"}, "rtt_ns", NULL, false},
	{{"cc.algorithm=dctcp"}, "alpha_ppb", NULL, false},
	{{"cc.algorithm=dcqcn"}, "alpha_ppb", "target_bps", true},
	{{"cc.algorithm=dcqcn_fw"}, "alpha_ppb", "target_bps", true},
	{{"cc.algorithm=timely"}, "rtt_ns", NULL, true},
	{{"cc.algorithm=rttcc"}, "base_rtt_ns", "target_ns", true},
	{{"cc.algorithm=hpcc", "switch.int=on"}, "utilisation_ppb", "target_bytes", true},
};

enum { ALGORITHMS = sizeof(algorithms) / sizeof(algorithms[0]) };

static void run_traced(struct sim_run *run, const struct algorithm *a, const char *protocol, const char *trace)
{
	const char *sets[SETS + 3] = {protocol};
	unsigned n = 1;

	for (unsigned i = 0; i < SETS && a->sets[i]; i++)
		sets[n++] = a->sets[i];
	if (trace)
		sets[n++] = trace;
	sim_run_do(run, incast, sets);
	assert_false(run->results.partial);
}

static const char *const protocols[] = {"transport.protocol=rocev2", "transport.protocol=veroce"};

static bool goes(const struct algorithm *a, int protocol)
{
	return !protocol || strcmp(a->sets[0], "cc.algorithm=hpcc") != 0; /* only of rocev2 */
}

TEST(tracing_changes_nothing)
{
	for (unsigned i = 0; i < ALGORITHMS; i++) {
		for (int p = 0; p < 2; p++) {
			struct sim_run with, without;

			if (!goes(&algorithms[i], p))
				continue;
			run_traced(&without, &algorithms[i], protocols[p], NULL);
			run_traced(&with, &algorithms[i], protocols[p], "output.cc_trace=all");
			assert_int_equal(without.results.trace_count, 0);
			assert_true(with.results.trace_count >= with.results.flow_count);
			assert_true(sim_hash(&with.results) == sim_hash(&without.results));
			sim_run_free(&with);
			sim_run_free(&without);
		}
	}
}

TEST(signal_and_target_are_the_algorithms_own)
{
	for (unsigned i = 0; i < ALGORITHMS; i++) {
		const struct algorithm *a = &algorithms[i];
		struct sim_run run;

		run_traced(&run, a, protocols[0], "output.cc_trace=all");
		if (a->signal)
			assert_string_equal(run.results.trace_signal, a->signal);
		else
			assert_null(run.results.trace_signal);
		if (a->target)
			assert_string_equal(run.results.trace_target, a->target);
		else
			assert_null(run.results.trace_target);
		assert_int_equal(run.results.trace[0].rate_bps != UINT64_MAX, a->paced);
		sim_run_free(&run);
	}
}

/*
 * Records of one flow of four are in order of time, no two alike in a row, from its start to its
 * end.
 */
TEST(a_record_is_a_change_of_a_flow_that_was_asked_for)
{
	struct sim_run run;
	const struct results_flow *f;
	const struct results_trace *t;

	run_traced(&run, &algorithms[3], protocols[0], "output.cc_trace=2");
	f = &run.results.flows[2];
	t = run.results.trace;
	assert_true(run.results.trace_count > 3);
	assert_int_equal(t[0].time_ps, f->start_ps);
	for (uint32_t i = 0; i < run.results.trace_count; i++) {
		assert_int_equal(t[i].flow, 2);
		assert_int_equal(t[i].path, 0);
		assert_true(t[i].time_ps <= f->start_ps + f->fct_ps);
		if (!i)
			continue;
		assert_true(t[i].time_ps >= t[i - 1].time_ps);
		assert_false(t[i].rate_bps == t[i - 1].rate_bps && t[i].cwnd_bytes == t[i - 1].cwnd_bytes &&
			     t[i].signal == t[i - 1].signal && t[i].target == t[i - 1].target);
	}
	sim_run_free(&run);
}

/* Four senders at line rate meet, and DCQCN cuts: rates begin at the line's, alpha is at most one. */
TEST(the_trace_of_dcqcn_is_dcqcn)
{
	uint64_t least = UINT64_MAX;
	struct sim_run run;

	run_traced(&run, &algorithms[3], protocols[0], "output.cc_trace=0");
	assert_int_equal(run.results.trace[0].rate_bps, 100000000000);
	assert_int_equal(run.results.trace[0].signal, 1000000000);
	for (uint32_t i = 0; i < run.results.trace_count; i++) {
		const struct results_trace *t = &run.results.trace[i];

		assert_true(t->signal <= 1000000000);
		assert_true(t->rate_bps <= t->target);
		least = t->rate_bps < least ? t->rate_bps : least;
	}
	assert_true(run.results.recovery.cnps > 0);
	assert_true(least <= 50000000000);
	sim_run_free(&run);
}

TEST(each_path_of_a_veroce_flow_has_its_own)
{
	uint32_t records[16] = {0};
	struct sim_run run;

	run_traced(&run, &algorithms[1], protocols[1], "output.cc_trace=1");
	for (uint32_t i = 0; i < run.results.trace_count; i++) {
		assert_int_equal(run.results.trace[i].flow, 1);
		assert_in_range(run.results.trace[i].path, 0, 15);
		records[run.results.trace[i].path]++;
	}
	for (unsigned i = 0; i < 16; i++)
		assert_true(records[i] > 1); /* its start, and changes */
	sim_run_free(&run);
}
