/* SPDX-License-Identifier: BSD-2-Clause */
/* Goodput counts bytes when receivers get them, and queue lengths are right. */

#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

/* Three into one, with losses, and after a silence one more. */
static const char lossy[] = "[topology]\nkind = star\nhosts = 4\n"
			    "[switch]\nbuffer = 100KB\n"
			    "[transport]\npayload = 1000B\n"
			    "[cc]\nalgorithm = none\n"
			    "[workload.many]\nkind = incast\nfan_in = 3\nreceivers = 0\nsize = 500KB\n"
			    "[workload.late]\nkind = flow\nsenders = 1\nreceivers = 2\nstart = 9ms\nsize = 1MB\n";

enum { WINDOW_US = 10, LINE_BYTES_A_US = 12500, FLOWS = 4, PACKET_BYTES = 1000 };

/* At most as much as a port of 100 Gbit/s carries in a window, and a packet of each flow that began in the
 * window before. */
static void fits(const struct results_series *s, uint64_t ports)
{
	uint64_t windows = s->window_ps / (WINDOW_US * UINT64_C(1000000));
	uint64_t most = windows * WINDOW_US * LINE_BYTES_A_US * ports + FLOWS * PACKET_BYTES;

	for (uint32_t i = 0; i < s->count; i++) {
		if (s->value[i] > most)
			fail_msg("window %u has %llu bytes, at most %llu fit", i, (unsigned long long)s->value[i],
				 (unsigned long long)most);
	}
}

static uint64_t sum(const struct results_series *s)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < s->count; i++)
		bytes += s->value[i];
	return bytes;
}

TEST(a_window_has_what_arrived_in_it)
{
	static const char *const sets[][3] = {
		{"transport.protocol=rocev2"},
		{"transport.protocol=veroce"},
		{"transport.protocol=veroce", "output.queue_sample=33us"},
		{"transport.protocol=veroce", "output.goodput_flows=0"},
	};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		struct sim_run run;
		const struct results_goodput *g = &run.results.goodput;

		sim_run_do(&run, lossy, sets[i]);
		assert_true(sim_dropped(&run) > 0);
		assert_int_equal(run.results.flows_done, FLOWS);
		fits(&g->total, 1); /* the late one is alone */
		for (uint32_t k = 0; k < g->curve_count; k++)
			fits(&g->curve[k].series, 1);
		assert_int_equal(sum(&g->total), 3 * 500000 + 1000000);
		for (uint32_t k = 0; k < FLOWS; k++)
			assert_int_equal(run.results.flows[k].received_bytes, run.results.flows[k].bytes);
		sim_run_free(&run);
	}
}

/* The part of a cut-off flow that arrived counts, early packets too; lost packets do not. */
TEST(a_run_that_is_cut_off_tells_all_that_arrived)
{
	static const char *const lost[] = {"run.until=53us", "link.lost=0:5", "transport.rto=1ms", NULL};
	static const char *const none[] = {"run.until=53us", "output.goodput_window=none", NULL};
	static const char text[] = "[topology]\nkind = star\nhosts = 2\n[transport]\npayload = 1000B\npaths = 1\n"
				   "[cc]\nalgorithm = none\n"
				   "[workload.w]\nkind = flow\nsenders = 0\nreceivers = 1\nsize = 1MB\n";
	struct sim_run run;
	uint64_t all;

	sim_run_do(&run, text, none);
	all = run.results.flows[0].received_bytes;
	/* From 2 us on, 12.5 KB a microsecond, of which headers are a tenth. */
	assert_in_range(all, 51 * 11000, 51 * 12500);
	sim_run_free(&run);
	sim_run_do(&run, text, lost);
	assert_in_range(run.results.flows[0].received_bytes, all - 2000, all + 1000);
	assert_int_equal(sum(&run.results.goodput.total), run.results.flows[0].received_bytes);
	sim_run_free(&run);
}

/* A burst that comes and goes between two ends of windows is not visible at those. */
TEST(a_queue_over_time_has_the_longest_of_each_window)
{
	static const char *const sets[] = {"output.goodput_window=200us", "switch.buffer=32MB", "transport.window=10MB",
					   NULL};
	const struct results_port *longest = NULL;
	struct sim_run run;
	uint64_t seen = 0;

	sim_run_do(&run, lossy, sets);
	for (uint32_t i = 0; i < run.results.port_count; i++) {
		if (!longest || run.results.ports[i].queue_bytes_max > longest->queue_bytes_max)
			longest = &run.results.ports[i];
	}
	assert_non_null(longest);
	assert_true(longest->queue_bytes_max > 500000);
	for (uint32_t k = 0; k < longest->queue.count; k++)
		seen = longest->queue.value[k] > seen ? longest->queue.value[k] : seen;
	assert_int_equal(seen, longest->queue_bytes_max);
	sim_run_free(&run);
}
