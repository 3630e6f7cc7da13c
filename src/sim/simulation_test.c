/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenarios from their text to their results. With the argument "many": what megabytes and large scenarios take. */

#include <dirent.h>
#include <stdio.h>

#include "support/sim_run.h"
#include "support/test.h"

static const char two_hosts[] = "[topology]\nkind = star\nhosts = 2\n"
				"[workload.w]\nkind = flow\nsenders = 0\nreceivers = 1\nsize = 100KB\n";

/* ---- what is refused --------------------------------------------------------------------------------- */

TEST(refusals_name_the_key)
{
	static const struct {
		const char *set, *says;
	} cases[] = {
		{"host.rx_buffer=1MB", "host.rx_buffer: "},
		{"transport.payload=1001B", "transport.payload: "},
		{"transport.payload=8192B", "transport.payload: "},
		{"transport.paths=17", "transport.paths: "},
		{"transport.rx_window=64", "transport.rx_window: "},
		{"transport.ack_every=17", "transport.ack_every: "},
		{"switch.egress_alpha=1/3", "switch.egress_alpha: "},
		{"cc.algorithm=cubic", "cc.algorithm: \"cubic\" is none of none, "},
		{"cc.preset=fast", "cc.preset: swift has no preset \"fast\""},
		{"cc.beta_of_nothing=1", "cc.beta_of_nothing: "},
		{"cc.algorithm=hpcc", "switch.int: "},
		{"switch.buffer=4KB", "switch.buffer: 4000 bytes are less than a packet"},
		{"switch.port_limit=4KB", "switch.port_limit: "},
		{"workload.w.hosts=0-2", "workload.w.hosts: "},
		{"workload.w.senders=2", "workload.w: a sender is 2; allowed are 0 to 1"},
		{"workload.w.receivers=99", "workload.w: a receiver is 99; allowed are 0 to 1"},
		{"workload.w.receivers=0", "workload.w: host 0 is to send to itself"},
		{"workload.w.senders=all", "workload.w: pairs is 0; allowed are 1 "},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *sets[] = {cases[i].set, NULL};
		struct sim_run run;

		sim_run_start(&run, two_hosts, sets);
		if (run.simulation)
			fail_msg("%s is accepted", cases[i].set);
		if (strncmp(run.why, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("%s: says \"%s\"", cases[i].set, run.why);
		sim_run_free(&run);
	}
}

/* There are so many queue pair numbers that this takes long. */
TEST_MANY(more_queue_pairs_than_numbers_are_refused)
{
	static const char *const sets[] = {"host.idle_qps=100000", NULL};
	struct sim_run run;

	sim_run_start(&run, two_hosts, sets);
	assert_null(run.simulation);
	assert_memory_equal(run.why, "host.idle_qps: ", 15);
	sim_run_free(&run);
}

TEST(several_keys_that_do_not_go_together_are_refused)
{
	static const struct {
		const char *sets[5], *says;
	} cases[] = {
		{{"cc.algorithm=hpcc", "switch.int=on"}, "transport.protocol: "},
		{{"switch.trim=on", "transport.protocol=rocev2"}, "switch.trim: "},
		{{"cc.algorithm=dctcp", "switch.ecn=off"}, "switch.ecn: dctcp "},
		{{"cc.algorithm=dcqcn", "transport.ecn=off"}, "transport.ecn: dcqcn "},
		{{"workload.w.class=5", "transport.ack_class=data"}, "transport.ack_class: "},
		{{"cc.scope=hosts", "transport.protocol=rocev2"}, "cc.scope: of rocev2 "},
		{{"transport.flowlet_gap=1us", "transport.protocol=rocev2"}, "transport.flowlet_gap: "},
		{{"host.rx_drain=10Gbps", "host.rx_buffer=10GB"}, "host.rx_buffer: "},
		{{"host.rx_drain=10Gbps", "host.rx_buffer=10KB", "switch.pfc=on"}, "host.rx_buffer: "},
		{{"switch.pfc=hpcc", "switch.pfc_resume_frames=off"}, "switch.pfc_resume_frames: "},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sim_run run;

		sim_run_start(&run, two_hosts, cases[i].sets);
		assert_null(run.simulation);
		if (strncmp(run.why, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("%s ...: says \"%s\"", cases[i].sets[0], run.why);
		sim_run_free(&run);
	}
}

TEST(a_link_that_is_not_there_cannot_fail)
{
	char text[512];
	struct sim_run run;

	snprintf(text, sizeof(text), "%s[failure.x]\nlink = 0-1\n", two_hosts);
	sim_run_start(&run, text, NULL);
	assert_null(run.simulation);
	assert_memory_equal(run.why, "failure.x.link: ", 16);
	sim_run_free(&run);
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

/* With thousands of queue pairs these take longer than all others together. */
static bool is_large(const char *name)
{
	static const char *const large[] = {
		"all-to-all.ini",      "exchange-rocev2.ini",    "exchange-veroce.ini",   "goal-against-rocev2.ini",
		"goal-all-to-all.ini", "hpcc-hadoop-incast.ini", "hpcc-websearch-30.ini", "hpcc-websearch-50.ini",
		"ndp-permutation.ini", "train-7b-1024.ini"};

	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		if (strcmp(name, large[i]) == 0)
			return true;
	}
	return false;
}

/* Under the sanitizers the large ones are left out, and one that has 128,000. */
static bool is_wanted(const char *name)
{
#ifdef __SANITIZE_ADDRESS__
	return !is_large(name) && strcmp(name, "goal-many-qps.ini") != 0;
#else
	(void)name;
	return true;
#endif
}

static unsigned run_folder(const char *folder, bool (*wanted)(const char *name))
{
	static const char *const sets[] = {"run.events=1000", "run.check=on", NULL};
	DIR *d = opendir(folder);
	struct dirent *e;
	unsigned count = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name);
		struct sim_run run;
		struct scenario_wanted files[4];
		char *text, *file[4];
		size_t n;

		if (len < 5 || strcmp(e->d_name + len - 4, ".ini") != 0 || !wanted(e->d_name))
			continue;
		text = text_of(folder, e->d_name);
		sim_run_read(&run, text, sets);
		n = scenario_files(run.scenario, files, 4);
		assert_true(n <= 4);
		for (size_t i = 0; i < n; i++) {
			files[i].file->text = file[i] = text_of(folder, files[i].file->path);
			files[i].file->text_bytes = strlen(file[i]);
		}
		sim_run_create(&run);
		if (!run.simulation)
			fail_msg("%s: %s", e->d_name, run.why);
		sim_run_end(&run);
		if (!run.results.events || !run.results.partial)
			fail_msg("%s: over after %llu events", e->d_name, (unsigned long long)run.results.events);
		assert_string_equal(run.results.partial_why, "run.events were spent");
		sim_run_free(&run);
		free(text);
		for (size_t i = 0; i < n; i++)
			free(file[i]);
		count++;
	}
	closedir(d);
	return count;
}

TEST(each_scenario_that_comes_along_runs)
{
	assert_true(run_folder(SHARE_SCENARIOS, is_wanted) >= 10);
	assert_true(run_folder(BENCH_SCENARIOS, is_wanted) >= 5);
}

TEST_MANY(each_large_scenario_runs)
{
	assert_true(run_folder(SHARE_SCENARIOS, is_large) >= 5);
	assert_true(run_folder(BENCH_SCENARIOS, is_large) >= 3);
}

/* ---- ends -------------------------------------------------------------------------------------------- */

TEST(a_run_ends_with_its_last_flow)
{
	struct sim_run run;
	struct simulation_progress p;

	sim_run_do(&run, two_hosts, NULL);
	assert_false(run.results.partial);
	assert_int_equal(run.results.flow_count, 1);
	assert_int_equal(run.results.flows_done, 1);
	assert_int_equal(run.results.flows[0].received_bytes, 100000);
	assert_int_equal(run.results.time_ps, run.results.flows[0].fct_ps);
	simulation_progress(run.simulation, &p);
	assert_int_equal(p.flows, 1);
	assert_int_equal(p.flows_done, 1);
	assert_int_equal(p.events, run.results.events);
	sim_run_free(&run);
}

TEST(a_run_that_is_cut_off_says_so)
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

		sim_run_do(&run, two_hosts, cases[i].sets);
		assert_int_equal(run.results.partial, cases[i].partial);
		assert_string_equal(run.results.partial_why, cases[i].why);
		sim_run_free(&run);
	}
}

/* Each kind is built by code of its own. */
TEST(a_workload_starts_when_it_is_to)
{
	static const char *const kinds[] = {"flow\nsenders = 0\nreceivers = 1",
					    "incast",
					    "permutation",
					    "all-to-all",
					    "ring-allreduce",
					    "halving-doubling",
					    "tree-allreduce",
					    "moe",
					    "cdf\nflows = 10"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char text[256];
		struct sim_run run;

		snprintf(text, sizeof(text),
			 "[topology]\nkind = star\nhosts = 4\n"
			 "[workload.w]\nstart = 100us\nkind = %s\n",
			 kinds[i]);
		sim_run_do(&run, text, NULL);
		assert_false(run.results.partial);
		assert_true(run.results.flow_count > 0);
		for (uint32_t k = 0; k < run.results.flow_count; k++) {
			if (run.results.flows[k].start_ps < 100000000)
				fail_msg("%s starts at %llu", kinds[i],
					 (unsigned long long)run.results.flows[k].start_ps);
		}
		sim_run_free(&run);
	}
}

TEST(slices_of_any_size_give_the_same_run)
{
	static const char *const sets[] = {"workload.w.size=1MB", "link.loss=1%", NULL};
	uint64_t want = 0;

	for (uint64_t slice = 1; slice < 100000; slice *= 13) {
		struct sim_run run;
		enum simulation_state s = SIMULATION_RUNS;

		sim_run_start(&run, two_hosts, sets);
		while (s == SIMULATION_RUNS)
			s = simulation_run(run.simulation, slice);
		assert_int_equal(s, SIMULATION_ENDED);
		simulation_finish(run.simulation);
		if (!want)
			want = sim_hash(&run.results);
		assert_int_equal(sim_hash(&run.results), want);
		sim_run_free(&run);
	}
}

/* The flow starts when all CAPS are exchanged. */
TEST(idle_queue_pairs_do_not_slow_a_flow)
{
	static const char *const later[] = {"workload.w.start=100us", "cc.algorithm=none", NULL};
	static const char *const idle[] = {"workload.w.start=100us", "cc.algorithm=none", "host.idle_qps=100", NULL};
	struct sim_run with, without;

	sim_run_do(&without, two_hosts, later);
	sim_run_do(&with, two_hosts, idle);
	assert_int_equal(with.results.flows[0].fct_ps, without.results.flows[0].fct_ps);
	sim_run_free(&with);
	sim_run_free(&without);
}

/* ---- classes ----------------------------------------------------------------------------------------- */

/* The result of a workload's only flow. */
static uint64_t fct_ps_of(const struct results *r, uint32_t workload)
{
	for (uint32_t i = 0; i < r->flow_count; i++) {
		if (r->flows[i].workload == workload)
			return r->flows[i].fct_ps;
	}
	fail_msg("workload %u has no flow", workload);
	return 0;
}

/* Host 0 is one of four that send to host 4, and the only one that sends to host 3. */
TEST_MANY(a_pause_stops_its_class_alone)
{
	static const char *const protocols[] = {"transport.protocol=rocev2", "transport.protocol=veroce"};
	static const char text[] = "[topology]\nkind = star\nhosts = 5\n[link]\nrate = 100Gbps\n"
				   "[switch]\npfc = on\nbuffer = 2MB\n[cc]\nalgorithm = none\n"
				   "[run]\ncheck = on\n[transport]\nrto = 100ms\n"
				   "[workload.crowd]\nkind = flow\nsenders = 0-3\nreceivers = 4,4,4,4\nsize = 4MB\n"
				   "[workload.lone]\nkind = flow\nsenders = 0\nreceivers = 3\nsize = 2MB\n";

	uint64_t bps[4];

	for (int i = 0; i < 4; i++) {
		const char *sets[] = {protocols[i / 2], i % 2 ? "workload.lone.class=4" : NULL, NULL};
		struct sim_run run;

		sim_run_do(&run, text, sets);
		assert_false(run.results.partial);
		assert_int_equal(sim_dropped(&run), 0);
		assert_true(run.results.pfc.pause_frames > 0);
		bps[i] = (uint64_t)((unsigned __int128)2000000 * 8 * 1000000000000 / fct_ps_of(&run.results, 1));
		sim_run_free(&run);
	}
	/*
	 * In one class they take turns at best, but for a packet after each of some twenty pauses, 4 % of the bytes; in two
	 * the four leave room, as host 4 drains little.
	 */
	assert_in_range(bps[0], 25000000000, 52000000000);
	assert_in_range(bps[1], 60000000000, 75000000000);
	/* With veRoCE a window limits the four, too. */
	assert_in_range(bps[3], bps[2] + 1, 90000000000);
}

/* One queue pair and eight: each class has every other packet. */
TEST_MANY(classes_of_a_host_take_turns)
{
	static const char text[] = "[topology]\nkind = star\nhosts = 3\n[link]\nrate = 100Gbps\n"
				   "[cc]\nalgorithm = none\n[transport]\nheader_bytes = 64\nprotocol = rocev2\n"
				   "[workload.many]\nkind = flow\nsenders = 0\nreceivers = 1\nsize = 16MB\nqps = 8\n"
				   "[workload.one]\nkind = flow\nsenders = 0\nreceivers = 2\nsize = 2MB\n";
	static const char *const classes[] = {"workload.one.class=3", "workload.one.class=4", "workload.one.class=2"};

	for (int i = 0; i < 3; i++) {
		const char *sets[] = {classes[i], NULL};
		struct sim_run run;
		uint64_t alone_ps = 2000000 * UINT64_C(80) * 4160 / 4096;

		sim_run_do(&run, text, sets);
		assert_false(run.results.partial);
		assert_in_range(fct_ps_of(&run.results, 1), (i ? 2 : 9) * alone_ps, (i ? 2 : 9) * alone_ps + 10000000);
		sim_run_free(&run);
	}
}

/* ---- queue pairs of two hosts -------------------------------------------------------------------------- */

/*
 * Each QP has few packets in the windows that all share, and none may wait for a delayed
 * acknowledgement of another.
 */
TEST_MANY(queue_pairs_of_two_hosts_fill_the_line_together)
{
	static const char text[] = "[topology]\nkind = star\nhosts = 2\n[link]\nrate = 400Gbps\ndelay = 1us\n"
				   "[workload.w]\nkind = incast\nsize = 2MB\n";
	static const char *const sets[][3] = {
		{"cc.algorithm=none", "workload.w.fan_in=16", NULL},
		{"cc.algorithm=swift", "workload.w.fan_in=16", NULL},
		{"cc.algorithm=swift", "workload.w.fan_in=64", NULL},
		{"transport.protocol=rocev2", "workload.w.fan_in=16", NULL},
	};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		struct sim_run run;
		uint64_t bytes = 0, end_ps = 0;

		sim_run_do(&run, text, sets[i]);
		for (uint32_t f = 0; f < run.results.flow_count; f++) {
			const struct results_flow *flow = &run.results.flows[f];

			bytes += flow->bytes;
			if (flow->start_ps + flow->fct_ps > end_ps)
				end_ps = flow->start_ps + flow->fct_ps;
		}
		/* 0.97 of the line is payload; the start takes some. */
		assert_true(bytes * 20 * 100 > end_ps * 88);
		sim_run_free(&run);
	}
}

/*
 * Windows for a few packets and many QPs that need them: QPs that wait get room in turn. The spread is that
 * of a few turns: on one path turns are strict, and with more paths all are equally good.
 */
TEST_MANY(queue_pairs_that_wait_for_room_get_it_in_turn)
{
	static const char text[] = "[run]\nuntil = 1ms\n"
				   "[topology]\nkind = star\nhosts = 2\n[link]\nrate = 100Gbps\ndelay = 1us\n"
				   "[transport]\nwindow = 64KB\npayload = 1000B\n"
				   "[workload.w]\nkind = incast\nfan_in = 100\nsize = 4MB\n";
	static const char *const sets[][3] = {
		{"cc.algorithm=none", "transport.paths=1", NULL},
		{"cc.algorithm=none", "transport.paths=16", NULL},
		{"cc.algorithm=swift", "transport.paths=16", NULL},
	};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		struct sim_run run;
		uint64_t least = UINT64_MAX, most = 0;

		sim_run_do(&run, text, sets[i]);
		assert_int_equal(run.results.flow_count, 100);
		for (uint32_t f = 0; f < run.results.flow_count; f++) {
			uint64_t bytes = run.results.flows[f].received_bytes;

			least = bytes < least ? bytes : least;
			most = bytes > most ? bytes : most;
		}
		assert_true(least > 80000);
		assert_true(most - least <= 4000);
		sim_run_free(&run);
	}
}

/* ---- paths and windows ------------------------------------------------------------------------------- */

/* Two queue pairs, and a window that does not fill a round trip. */
TEST(a_window_is_a_queue_pairs_or_all_of_theirs)
{
	static const char *const scopes[] = {"cc.scope=hosts", "cc.scope=auto", "cc.scope=path", "cc.scope=qp"};
	uint64_t took_ps[4];

	for (int i = 0; i < 4; i++) {
		const char *sets[] = {
			scopes[i],          "cc.algorithm=none",   "transport.window=40KB", "link.delay=50us",
			"workload.w.qps=2", "workload.w.size=2MB", "run.check=on",          NULL};
		struct sim_run run;

		sim_run_do(&run, two_hosts, sets);
		assert_false(run.results.partial);
		assert_int_equal(run.results.flows_done, 2);
		took_ps[i] = run.results.time_ps;
		sim_run_free(&run);
	}
	assert_int_equal(took_ps[1], took_ps[0]);
	assert_in_range(took_ps[0] * 100 / took_ps[2], 180, 220);
	assert_int_equal(took_ps[3], took_ps[2]); /* nothing is controlled: the window is the same */
}

/* Without a silence all packets take one of four ways. */
TEST(a_flow_changes_its_path_after_a_silence)
{
	static const struct {
		const char *gap;
		unsigned uplinks_min, uplinks_max;
	} cases[] = {{"transport.flowlet_gap=0", 4, 4},
		     {"transport.flowlet_gap=20us", 1, 1},
		     {"transport.flowlet_gap=1ns", 4, 4}};
	static const char text[] = "[topology]\nkind = leaf-spine\nleaves = 2\nhosts = 1\nspines = 4\n"
				   "[cc]\nalgorithm = none\n"
				   "[workload.w]\nkind = flow\nsenders = 0\nreceivers = 1\nsize = 2MB\n";

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *sets[] = {cases[i].gap, "run.check=on", NULL};
		struct sim_run run;
		unsigned used = 0;

		sim_run_do(&run, text, sets);
		assert_false(run.results.partial);
		for (uint32_t k = 0; k < run.results.port_count; k++) {
			const struct results_port *p = &run.results.ports[k];

			used += p->node == 2 && p->to > 3 && p->tx_bytes > 10000;
		}
		assert_in_range(used, cases[i].uplinks_min, cases[i].uplinks_max);
		sim_run_free(&run);
	}
}

/* ---- broken queue pairs ------------------------------------------------------------------------------ */

/*
 * One of four hosts cannot be reached: the rest of the collective waits for it in vain, but the run
 * ends.
 */
TEST(a_broken_queue_pair_ends_a_collective)
{
	static const char *const protocols[] = {"transport.protocol=rocev2", "transport.protocol=veroce"};
	static const char text[] = "[topology]\nkind = star\nhosts = 4\n"
				   "[failure.cable]\nlink = 3-4\ntime = 2us\n"
				   "[workload.w]\nkind = ring-allreduce\nsize = 1MB\n";

	for (int i = 0; i < 2; i++) {
		const char *sets[] = {protocols[i], NULL};
		struct sim_run run;

		sim_run_do(&run, text, sets);
		assert_true(run.results.partial);
		assert_true(run.results.flows_done < 4 * 6);
		assert_int_equal(run.results.collective_count, 1);
		assert_true(run.results.collectives[0].time_ps == RESULTS_NOT_DONE);
		sim_run_free(&run);
	}
}

/* ---- totals ------------------------------------------------------------------------------------------ */

TEST(totals_of_loss_are_those_of_all_hosts)
{
	static const char *const sets[] = {"workload.w.size=2MB", "link.loss=2%", "run.check=on", NULL};
	struct sim_run run;
	uint64_t lost = 0;

	sim_run_do(&run, two_hosts, sets);
	assert_false(run.results.partial);
	for (uint32_t i = 0; i < run.results.drop_count; i++) {
		assert_int_equal(run.results.drops[i].reason, RESULTS_DROP_LOSS);
		if (run.results.drops[i].class)
			lost += run.results.drops[i].packets;
	}
	assert_true(lost > 5);
	/* each lost packet once again, and those sent in vain */
	assert_true(run.results.recovery.retransmitted_packets >= lost);
	assert_true(run.results.recovery.retransmitted_packets <= 2 * lost + run.results.recovery.spurious_packets);
	sim_run_free(&run);
}

/* Host 2 and the switch, node 3, at a rate that its port cannot take. */
TEST(loss_is_told_by_port_reason_and_class)
{
	static const char text[] = "[topology]\nkind = star\nhosts = 3\n"
				   "[workload.w]\nkind = incast\nreceivers = 2\nsize = 1MB\n"
				   "start = 100us\n[cc]\nalgorithm = none\n";
	/* By 100 us both ends know that packets may be trimmed. */
	static const char *const sets[][3] = {
		{"transport.protocol=rocev2", "switch.port_limit=60KB", NULL},
		{"switch.trim=on", "switch.trim_queue=60KB", NULL},
	};

	for (int i = 0; i < 2; i++) {
		uint64_t dropped = 0, trimmed = 0;
		struct sim_run run;

		sim_run_do(&run, text, sets[i]);
		assert_true(run.results.drop_count > 0);
		for (uint32_t k = 0; k < run.results.drop_count; k++) {
			const struct results_drop *d = &run.results.drops[k];

			assert_int_equal(d->place, RESULTS_AT_SWITCH);
			assert_int_equal(d->node, 3);
			assert_int_equal(d->to, 2);
			assert_int_equal(d->port, 2);
			assert_int_equal(d->class, 3);
			assert_int_equal(d->reason, i ? RESULTS_TRIMMED : RESULTS_DROP_BUFFER);
			*(i ? &trimmed : &dropped) += d->packets;
		}
		for (uint32_t k = 0; k < run.results.port_count; k++)
			assert_true(run.results.ports[k].queue_bytes_max <= (i ? 460000 : 60000));
		assert_int_equal(sim_dropped(&run), dropped);
		assert_int_equal(run.results.recovery.trimmed_packets, trimmed);
		sim_run_free(&run);
	}
}

TEST(pause_frames_over_time_are_all_of_them)
{
	static const char text[] = "[topology]\nkind = star\nhosts = 9\n"
				   "[workload.w]\nkind = incast\nsize = 1MB\n"
				   "[transport]\nprotocol = rocev2\n[cc]\nalgorithm = none\n"
				   "[switch]\npfc = on\nbuffer = 2MB\n";
	static const char *const runs_out[] = {"switch.pfc_resume_frames=off", NULL};

	for (int i = 0; i < 2; i++) {
		const struct results_series *s;
		struct sim_run run;
		uint64_t frames = 0;
		unsigned windows = 0;

		sim_run_do(&run, text, i ? runs_out : NULL);
		s = &run.results.pfc.frames;
		for (uint32_t k = 0; k < s->count; k++) {
			frames += s->value[k];
			windows += s->value[k] != 0;
		}
		assert_true(frames > 0);
		assert_int_equal(frames, run.results.pfc.pause_frames);
		if (i)
			assert_int_equal(run.results.pfc.resume_frames, 0);
		else
			assert_true(windows > 3);
		assert_int_equal(sim_dropped(&run), 0);
		sim_run_free(&run);
	}
}

/* ---- exact loss -------------------------------------------------------------------------------------- */

/* Two flows of host 0 take turns; a third flow comes from another host. */
TEST(exact_packets_are_a_flows_and_not_a_hosts)
{
	static const char text[] = "[topology]\nkind = star\nhosts = 4\n"
				   "[workload.a]\nkind = flow\nsenders = 0,0,1\nreceivers = 1,2,2\nsize = 400KB\n"
				   "[cc]\nalgorithm = none\n";
	static const char *const lists[] = {"link.lost=0:3", "link.lost=1:1,1:90", "link.lost=2:98,3:1"};
	static const struct {
		uint32_t node;
		uint64_t packets;
	} want[] = {{0, 1}, {0, 2}, {1, 1}};

	for (int protocol = 0; protocol < 2; protocol++) {
		for (int i = 0; i < 3; i++) {
			const char *sets[] = {protocol ? "transport.protocol=rocev2" : "transport.protocol=veroce",
					      lists[i], NULL};
			struct sim_run run;

			sim_run_do(&run, text, sets);
			assert_false(run.results.partial);
			assert_int_equal(run.results.drop_count, 1);
			assert_int_equal(run.results.drops[0].place, RESULTS_AT_LINK);
			assert_int_equal(run.results.drops[0].node, want[i].node);
			assert_int_equal(run.results.drops[0].packets, want[i].packets);
			sim_run_free(&run);
		}
	}
}

/*
 * Two messages at a time are under way on one queue pair: only a packet's PSN shows to which it
 * belongs.
 */
TEST(messages_on_one_queue_pair_are_flows_of_their_own)
{
	static const char text[] =
		"[topology]\nkind = star\nhosts = 2\n"
		"[workload.w]\nkind = staircase\nfan_in = 1\nsize = 40KB\ninterval = 1us\nstop = 20us\n"
		"[cc]\nalgorithm = none\n";
	static const struct {
		const char *list;
		uint64_t packets;
	} cases[] = {{"link.lost=0:10", 1}, {"link.lost=0:11", 0}, {"link.lost=1:1", 1},
		     {"link.lost=1:10", 1}, {"link.lost=1:11", 0}, {"link.lost=999:1", 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *sets[] = {cases[i].list, NULL};
		struct sim_run run;

		sim_run_do(&run, text, sets);
		assert_int_equal(sim_dropped(&run), cases[i].packets);
		sim_run_free(&run);
	}
}

/* ---- queues ------------------------------------------------------------------------------------------ */

TEST(a_queue_is_as_long_as_the_scenario_lets_it_be)
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

		sim_run_do(&run,
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
		sim_run_free(&run);
	}
}

/* Files name a queue by these two. */
TEST(a_port_is_known_by_its_node_and_number)
{
	struct sim_run run;

	sim_run_do(&run,
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
	sim_run_free(&run);
}

static bool joins(const struct results_port *p, uint32_t a, uint32_t b)
{
	return (p->node == a && p->to == b) || (p->node == b && p->to == a);
}

TEST(a_port_tells_the_rate_that_its_link_came_to_have)
{
	static const char text[] = "[topology]\nkind = leaf-spine\nleaves = 2\nspines = 2\nhosts = 2\n"
				   "[link]\nrate = 100Gbps\n[run]\ncheck = on\n"
				   "[workload.w]\nkind = permutation\nsize = 100KB\n";
	static const char *const all[] = {"failures.degraded=100%", "failures.degraded_rate=25%", NULL};
	/* Nodes 4 and 5 are the leaves, 6 and 7 the spines. */
	static const char slow[] = "[failure.slow]\nlink = 4-6\naction = rate\nrate = 40Gbps\ntime = 1us\n";
	char one[sizeof(text) + sizeof(slow)];
	struct sim_run run;

	sim_run_do(&run, text, all);
	for (uint32_t i = 0; i < run.results.port_count; i++) {
		const struct results_port *p = &run.results.ports[i];

		/* Links of hosts are never drawn. */
		assert_int_equal(p->rate_bps,
				 p->node >= 4 && p->to >= 4 ? UINT64_C(25000000000) : UINT64_C(100000000000));
	}
	sim_run_free(&run);
	snprintf(one, sizeof(one), "%s%s", text, slow);
	sim_run_do(&run, one, NULL);
	for (uint32_t i = 0; i < run.results.port_count; i++) {
		const struct results_port *p = &run.results.ports[i];

		assert_int_equal(p->rate_bps, joins(p, 4, 6) ? UINT64_C(40000000000) : UINT64_C(100000000000));
	}
	sim_run_free(&run);
}
