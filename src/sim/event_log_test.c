/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "sim/event_log.h"
#include "support/sim_run.h"
#include "support/test.h"

static const char star[] = "[topology]\nkind = star\nhosts = 4\n"
			   "[workload.w]\nkind = incast\nsize = 100KB\nstart = 50us\n"
			   "[output]\nevent_log = on\n";

struct log {
	char *at;
	size_t bytes, room;
};

static void keep(void *context, const char *line, size_t bytes)
{
	struct log *t = context;

	assert_true(bytes > 0 && bytes < EVENT_LOG_LINE_BYTES);
	assert_int_equal(line[bytes - 1], '\n');
	if (t->bytes + bytes + 1 > t->room) {
		t->room = 2 * (t->room + bytes + 1);
		t->at = realloc(t->at, t->room);
		assert_non_null(t->at);
	}
	memcpy(t->at + t->bytes, line, bytes);
	t->bytes += bytes;
	t->at[t->bytes] = 0;
}

static void do_logged(struct sim_run *run, struct log *t, const char *text, const char *const *sets)
{
	memset(t, 0, sizeof(*t));
	sim_run_start(run, text, sets);
	if (!run->simulation)
		fail_msg("refused: %s", run->why);
	simulation_log(run->simulation, keep, t);
	sim_run_end(run);
}

static uint64_t lines_with(const struct log *t, const char *words)
{
	uint64_t n = 0;

	for (const char *at = t->at; (at = strstr(at, words)); at++)
		n++;
	return n;
}

TEST(a_line_says_when_what_where_and_of_which_packet)
{
	static const char two[] = "[topology]\nkind = star\nhosts = 2\n"
				  "[transport]\nprotocol = rocev2\n[cc]\nalgorithm = none\n"
				  "[workload.w]\nkind = flow\nsenders = 0\nreceivers = 1\nsize = 5000B\n"
				  "[output]\nevent_log = on\n";
	static const char *const want[] = {
		"0 posted 0-1 flow 0 bytes 5000\n",
		"0 sent 0-2 flow 0 RC_WRITE_FIRST psn ",
		"335520 sent 0-2 flow 0 RC_WRITE_LAST psn ",
		"1335520 arrived 0-2 flow 0 RC_WRITE_FIRST psn ",
		" bytes 4194 class 3\n",
		" done 0-1 flow 0 bytes 5000\n",
		" flow 0 RC_ACK psn ",
	};
	struct sim_run run;
	struct log t;

	do_logged(&run, &t, two, NULL);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		if (!strstr(t.at, want[i]))
			fail_msg("no \"%s\" in\n%s", want[i], t.at);
	}
	free(t.at);
	sim_run_free(&run);
}

TEST(the_log_changes_nothing_and_is_the_same_each_time)
{
	static const char *const sets[][4] = {
		{"link.loss=2%", NULL},
		{"transport.protocol=rocev2", "switch.pfc=on", "switch.buffer=1MB", NULL},
	};

	for (int i = 0; i < 2; i++) {
		struct sim_run quiet, once, again;
		struct log a, b;

		sim_run_do(&quiet, star, sets[i]);
		do_logged(&once, &a, star, sets[i]);
		do_logged(&again, &b, star, sets[i]);
		assert_true(sim_hash(&quiet.results) == sim_hash(&once.results));
		assert_int_equal(quiet.results.events, once.results.events);
		assert_int_equal(a.bytes, b.bytes);
		assert_memory_equal(a.at, b.at, a.bytes);
		free(a.at);
		free(b.at);
		sim_run_free(&quiet);
		sim_run_free(&once);
		sim_run_free(&again);
	}
}

TEST(every_hop_and_every_loss_has_its_line)
{
	static const struct {
		const char *sets[4];
		const char *loss;
	} cases[] = {
		{{"link.loss=2%", "run.check=on"}, " loss\n"},
		{{"link.corrupt=2%"}, " corrupt\n"},
		{{"switch.port_limit=30KB", "transport.protocol=rocev2", "cc.algorithm=none"}, " buffer-full\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t dropped, arrived, corrupt;
		struct sim_run run;
		struct log t;

		do_logged(&run, &t, star, cases[i].sets);
		dropped = lines_with(&t, " dropped ");
		corrupt = lines_with(&t, " corrupt\n");
		/* A corrupted packet takes its time on the wire, but is no hop. */
		arrived = lines_with(&t, " arrived ") - corrupt;
		assert_true(dropped > 0);
		assert_int_equal(dropped, sim_dropped(&run));
		assert_int_equal(lines_with(&t, cases[i].loss), dropped);
		assert_int_equal(arrived, run.results.packet_hops);
		assert_int_equal(lines_with(&t, " posted "), run.results.flow_count);
		assert_int_equal(lines_with(&t, " done "), run.results.flows_done);
		free(t.at);
		sim_run_free(&run);
	}
}

TEST(pauses_trims_marks_and_failures_are_told)
{
	static const struct {
		const char *sets[6];
		const char *word;
	} cases[] = {
		{{"transport.protocol=rocev2", "cc.algorithm=none", "switch.pfc=on", "switch.buffer=500KB"},
		 " pfc classes 0x08 pause 0x08 quanta 65535\n"},
		{{"switch.trim=on", "switch.trim_queue=20KB", "cc.algorithm=none", "switch.ecn=off"},
		 " trimmed queue "},
		{{"switch.kmin=4KB", "switch.kmax=8KB", "switch.ecn_rate=0"}, " class 3 ce"},
	};
	static const char *const fails[] = {"failure.x.time=60us", "failure.x.up_after=30us", NULL};
	char with_failure[512];
	struct sim_run run;
	struct log t;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		do_logged(&run, &t, star, cases[i].sets);
		if (!strstr(t.at, cases[i].word))
			fail_msg("no \"%s\" with %s", cases[i].word, cases[i].sets[0]);
		free(t.at);
		sim_run_free(&run);
	}
	snprintf(with_failure, sizeof(with_failure), "%s[failure.x]\nlink = 1-4\n", star);
	do_logged(&run, &t, with_failure, fails);
	assert_non_null(strstr(t.at, "60000000 link-down 1-4\n"));
	assert_non_null(strstr(t.at, "90000000 link-up 1-4\n"));
	assert_true(lines_with(&t, " link-down\n") > 0); /* what was lost */
	free(t.at);
	sim_run_free(&run);
}
