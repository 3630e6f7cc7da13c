/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "sim/scenario.h"
#include "sim/scenario_row.h"
#include "support/test.h"

#define WORKLOAD "[workload.a]\n"
#define GRAPH    "[workload.a]\nkind = graph\nfile = g.txt\n"

static struct scenario *out; /* too large for the stack */

static int setup(void **state)
{
	out = malloc(sizeof(*out));
	return out ? 0 : -1;
}

static int teardown(void **state)
{
	free(out);
	return 0;
}

/* Text and at most one override to *out; *e on failure. */
static int scenario_of(const char *text, const char *set, struct scenario_error *e)
{
	struct scenario_source *s = scenario_source_create();
	int rc;

	assert_non_null(s);
	memset(e, 0, sizeof(*e));
	rc = scenario_source_text(s, "dir/some.ini", text, e);
	if (!rc && set)
		rc = scenario_source_set(s, set, e);
	if (!rc)
		rc = scenario_source_settle(s, out, e);
	scenario_source_destroy(s);
	return rc;
}

static void accepted(const char *text)
{
	struct scenario_error e;

	if (scenario_of(text, NULL, &e))
		fail_msg("%s: line %" PRIu32 ": %s: %s", text, e.line, e.key, e.what);
}

TEST(defaults_are_as_the_table_says)
{
	accepted(WORKLOAD);
	assert_string_equal(out->name, "some");
	assert_int_equal(out->topology.kind, SCENARIO_TOPOLOGY_STAR);
	assert_int_equal(out->topology.hosts, 16);
	assert_int_equal(out->link.rate_bps, UINT64_C(100000000000));
	assert_int_equal(out->link.fabric_rate_bps, out->link.rate_bps);
	assert_int_equal(out->link.delay_ps, 1000000);
	assert_int_equal(out->link.long_delay_ps, 500000000);
	assert_int_equal(out->sw.pmax_ppb, 200000000);
	assert_int_equal(out->sw.pfc_alpha_ppb, 125000000);
	assert_int_equal(out->sw.weight[0], 0);
	assert_int_equal(out->sw.weight[7], 1);
	assert_int_equal(out->transport.loss, SCENARIO_LOSS_FAST);
	assert_int_equal(out->workload_count, 1);
	assert_string_equal(out->workload[0].name, "a");
	assert_int_equal(out->workload[0].traffic_class, out->transport.data_class);
	assert_int_equal(out->run.seed, 1);
	assert_true(out->run.all_flows);
	assert_int_equal(out->run.until_ps, SCENARIO_NONE);
}

TEST(every_row_has_a_default_that_it_accepts)
{
	size_t count;
	const struct scenario_row *r = scenario_rows(&count);
	char why[1024];
	static union {
		struct scenario all;
		struct scenario_workload workload;
		struct scenario_failure failure;
	} base;

	assert_true(count <= SCENARIO_KEYS_MAX);
	for (size_t i = 0; i < count; i++) {
		if (r[i].standard[0] && !scenario_value_set(&r[i], &base, r[i].standard, why, sizeof(why)))
			fail_msg("%s.%s = %s: %s", r[i].section, r[i].name, r[i].standard, why);
		assert_true(strlen(r[i].name) < 18);
		for (size_t k = 0; k < i; k++)
			assert_false(!strcmp(r[i].section, r[k].section) && !strcmp(r[i].name, r[k].name));
	}
}

TEST(values_carry_exact_units)
{
	static const struct {
		const char *section, *key, *text;
		size_t offset;
		uint64_t value;
	} rows[] = {
		{"link", "rate", "100Gbps", offsetof(struct scenario, link.rate_bps), UINT64_C(100000000000)},
		{"link", "rate", "2.5 Gbit/s", offsetof(struct scenario, link.rate_bps), UINT64_C(2500000000)},
		{"link", "rate", "1e3Mbps", offsetof(struct scenario, link.rate_bps), UINT64_C(1000000000)},
		{"link", "rate", "1.6Tbps", offsetof(struct scenario, link.rate_bps), UINT64_C(1600000000000)},
		{"link", "delay", "1us", offsetof(struct scenario, link.delay_ps), 1000000},
		{"link", "delay", "0.333ns", offsetof(struct scenario, link.delay_ps), 333},
		{"link", "delay", "0", offsetof(struct scenario, link.delay_ps), 0},
		{"link", "delay", "100km", offsetof(struct scenario, link.delay_ps), 500000000},
		{"link", "delay", "1e-6s", offsetof(struct scenario, link.delay_ps), 1000000},
		{"link", "loss", "5%", offsetof(struct scenario, link.loss_ppb), 50000000},
		{"link", "loss", "0.05", offsetof(struct scenario, link.loss_ppb), 50000000},
		{"link", "loss", "1/3", offsetof(struct scenario, link.loss_ppb), 333333333},
		{"link", "loss", "1e-9", offsetof(struct scenario, link.loss_ppb), 1},
		{"switch", "buffer", "32MB", offsetof(struct scenario, sw.buffer_bytes), 32000000},
		{"switch", "buffer", "64KiB", offsetof(struct scenario, sw.buffer_bytes), 65536},
		{"switch", "buffer", "1000B", offsetof(struct scenario, sw.buffer_bytes), 1000},
		{"switch", "buffer", "4096", offsetof(struct scenario, sw.buffer_bytes), 4096},
		{"switch", "t_conv", "never", offsetof(struct scenario, sw.t_conv_ps), SCENARIO_NEVER},
		{"run", "events", "10M", offsetof(struct scenario, run.events), 10000000},
		{"run", "seed", "18446744073709551614", offsetof(struct scenario, run.seed), UINT64_MAX - 1},
	};
	char text[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t v;

		snprintf(text, sizeof(text), "[%s]\n%s = %s\n" WORKLOAD, rows[i].section, rows[i].key, rows[i].text);
		accepted(text);
		memcpy(&v, (char *)out + rows[i].offset, sizeof(v));
		if (v != rows[i].value)
			fail_msg("%s: %" PRIu64, text, v);
	}
}

TEST(what_is_wrong_names_line_key_and_what_is_allowed)
{
	static const struct {
		const char *text;
		uint32_t line;
		const char *key;
		const char *words[3]; /* of the message */
	} rows[] = {
		{"", 0, "", {"[workload.NAME]"}},
		{"x = 1\n", 1, "", {"x", "before the first [section]"}},
		{"[nosuch]\n", 1, "", {"nosuch", "no such section", "[workload.NAME]"}},
		{"[switch]\nkmni = 1KB\n", 2, "switch.kmni", {"no such key", "did you mean kmin?", "pfc_alpha"}},
		{"[link]\nkmin = 1KB\n", 2, "link.kmin", {"it is a key of [switch]", "[link] has rate"}},
		{"[link]\nrate = 100\n", 2, "link.rate", {"its unit is missing", "Gbps", "1Mbps"}},
		{"[link]\nrate = 100Gbs\n", 2, "link.rate", {"100Gbs", "no such unit"}},
		{"[link]\nrate = fast\n", 2, "link.rate", {"not a number"}},
		{"[link]\nrate = -1Gbps\n", 2, "link.rate", {"not a number"}},
		{"[link]\nrate = 99Tbps\n", 2, "link.rate", {"out of range", "8Tbps"}},
		{"[link]\nrate = 1.5bps\n", 2, "link.rate", {"too fine: no exact value"}},
		{"[link]\nrate = 99999999999999999999bps\n", 2, "link.rate", {"too large"}},
		{"[link]\nrate = 100000000000000000000000000001bps\n", 2, "link.rate", {"too many digits"}},
		{"[link]\nrate = 1e99bps\n", 2, "link.rate", {"too large"}},
		{"[link]\nrate = 1e18Gbps\n", 2, "link.rate", {"too large"}},
		{"[link]\nloss = 101%\n", 2, "link.loss", {"out of range"}},
		{"[link]\nloss = 1/0\n", 2, "link.loss", {"not a fraction"}},
		{"[link]\nloss = 1/8x\n", 2, "link.loss", {"not a fraction"}},
		{"[link]\nloss =\n", 2, "link.loss", {"not a number"}},
		{"[link]\nrate = 1Gbps\nrate = 2Gbps\n", 3, "link.rate", {"given before, in line 2"}},
		{"[link]\n rate = 1Gbps\n", 2, "", {"blank"}},
		{"[link]\nrate\n", 2, "", {"key = value"}},
		{"[link\n", 1, "", {"[section]"}},
		{"[link]\nlost = 0:0\n", 2, "link.lost", {"FLOW:N"}},
		{"[switch]\nweights = 0,1,1\n", 2, "switch.weights", {"weights of classes"}},
		{"[switch]\npfc = maybe\n", 2, "switch.pfc", {"'maybe'", "off, on or hpcc"}},
		{"[switch]\necn = yes\n", 2, "switch.ecn", {"off or on"}},
		{"[switch]\nkmin = 1MB\n" WORKLOAD, 2, "switch.kmin", {"above kmax"}},
		{"[switch]\npfc_alpha = 0.3\n" WORKLOAD, 2, "switch.pfc_alpha", {"0.3", "power of two"}},
		{"[topology]\nk = 4\n" WORKLOAD, 2, "topology.k", {"kind = star", "fat-tree"}},
		{"[topology]\nkind = fat-tree\nk = 5\n" WORKLOAD, 3, "topology.k", {"5 is odd", "even"}},
		{"[topology]\nkind = file\n" WORKLOAD, 0, "topology.file", {"path"}},
		{"[topology]\nkind = dragonfly\ngroups = 10\n" WORKLOAD, 3, "topology.groups", {"10 groups", "9"}},
		{"[switch]\nrouting = ugal\n" WORKLOAD, 2, "switch.routing", {"kind = dragonfly"}},
		{"[topology]\nnics = 4\n" WORKLOAD, 2, "topology.nics", {"nothing without inside_rate", "kind = rail"}},
		{"[topology]\npxn = on\n" WORKLOAD, 2, "topology.pxn", {"nothing without inside_rate"}},
		{"[topology]\ninside_delay = 1ns\n" WORKLOAD, 2, "topology.inside_delay", {"without inside_rate"}},
		{"[topology]\ninside_rate = 9Tbps\n", 2, "topology.inside_rate", {"1Mbps to 8Tbps", "or none"}},
		{"[transport]\nloss = gbn\n" WORKLOAD, 2, "transport.loss", {"veroce"}},
		{"[transport]\nprotocol = rocev2\nloss = irn\n" WORKLOAD, 3, "transport.loss", {"go-back-N"}},
		{"[transport]\nrx_window = 100\n" WORKLOAD, 2, "transport.rx_window", {"100", "power of two"}},
		{"[workload.a]\n[workload.a]\n", 2, "", {"begun before, in line 1"}},
		{"[workload.a b]\n", 1, "", {"letters"}},
		{"[link.a]\n", 1, "", {"no such section"}},
		{"[workload.a]\nkind = incast\nload = 3%\n", 3, "workload.a.load", {"kind = incast", "cdf"}},
		{"[workload.a]\nkind = incast\nsenders = 1-3\n", 3, "workload.a.senders", {"kind = incast", "flow"}},
		{"[workload.a]\nkind = cdf\n", 1, "workload.a.stop", {"never end"}},
		{"[workload.a]\nkind = cdf\ncdf = cubic\n", 3, "workload.a.cdf", {"WebSearch"}},
		{"[workload.a]\nkind = file\n", 1, "workload.a.file", {"path"}},
		{"[workload.a]\nkind = staircase\n", 1, "workload.a.interval", {"steps"}},
		{"[workload.a]\nhosts = 5-2\n", 2, "workload.a.hosts", {"backwards"}},
		{"[workload.a]\nhosts = 1;2\n", 2, "workload.a.hosts", {"ranges"}},
		{"[host]\nslow = 3\n", 2, "host.slow", {"'3'", "HOST:FACTOR@FROM-TO", "3:1.2@10ms-20ms"}},
		{"[host]\nslow = 3:2@1ms\n", 2, "host.slow", {"HOST:FACTOR@FROM-TO"}},
		{"[host]\nslow = 3:2@2ms-1ms\n", 2, "host.slow", {"HOST:FACTOR@FROM-TO"}},
		{"[host]\nslow = 3:2@1-2\n", 2, "host.slow", {"HOST:FACTOR@FROM-TO"}},
		{"[host]\nslow = 3:1001\n", 2, "host.slow", {"0 to 1000"}},
		{"[host]\nslow = 3:2@1s-3s,4:1,3:1@2s-4s\n", 2, "host.slow", {"host 3 has two factors at one time"}},
		{"[job.x]\n" WORKLOAD, 1, "job.x.workload", {"there is no [workload.]"}},
		{"[job.x]\nworkload = b\n" WORKLOAD, 1, "job.x.workload", {"there is no [workload.b]"}},
		{"[job.x]\nworkload = a\n" WORKLOAD, 1, "job.x.workload", {"[workload.a] is not of kind = graph"}},
		{"[job.x]\narrive = 7\n", 2, "job.x.arrive", {"'7'", "poisson N"}},
		{"[job.x]\narrive = poisson 0\n", 2, "job.x.arrive", {"0.01 to 1000000000"}},
		{"[job.x]\nplace = near\n", 2, "job.x.place", {"'near'", "packed, round-robin, random", "a file"}},
		{"[job.x]\nsize = 1\n", 2, "job.x.size", {"it is a key of [workload]"}},
		{"[job.b]\nworkload = a\n" GRAPH "[workload.b]\n", 1, "", {"[job.b]", "a workload of that name"}},
		{"[job.x]\nworkload = a\nhosts = 1\nplace = ./f\n" GRAPH, 1, "job.x.hosts", {"place = ./f"}},
		{GRAPH "hosts = 1\nplace = ./f\n", 1, "workload.a.hosts", {"place = ./f"}},
		{"[run]\nonly = c\n" WORKLOAD, 2, "run.only", {"[workload.c] or [job.c]"}},
		{"[program.x]\nhosts = 1\n" WORKLOAD, 1, "program.x.command", {"say what"}},
		{"[program.x]\ncommand = a\n", 1, "program.x.hosts", {"say which"}},
		{"[program.x]\ncommand = a\nhosts = 1\n[run]\nonly = all\n" WORKLOAD,
		 5,
		 "run.only",
		 {"beside programs"}},
		{"[failure.x]\naction = down\n" WORKLOAD, 1, "failure.x.link", {"A-B"}},
		{"[failure.x]\nlink = 1-1\n" WORKLOAD, 2, "failure.x.link", {"two nodes"}},
		{"[failure.x]\nlink = 1-2\naction = rate\n" WORKLOAD, 1, "failure.x.rate", {"new rate"}},
		{"[run]\nall_flows = off\n" WORKLOAD, 2, "run.all_flows", {"never end"}},
		{"[cc]\nG = 1\n", 2, "cc.G", {"no such key"}},
		{"[cc]\ng = 1\ng = 2\n", 3, "cc.g", {"given before, in line 2"}},
		{"[run]\ntitle = a\x01z\n" WORKLOAD, 2, "run.title", {"control character"}},
		{"[run]\ntitle = a\xffz\n" WORKLOAD, 2, "run.title", {"UTF-8"}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scenario_error e;
		char text[2048];

		if (!scenario_of(rows[i].text, NULL, &e))
			fail_msg("accepted: %s", rows[i].text);
		scenario_error_text(&e, text, sizeof(text));
		if (e.line != rows[i].line || strcmp(e.key, rows[i].key))
			fail_msg("%s: %s", rows[i].text, text);
		for (int k = 0; k < 3 && rows[i].words[k]; k++) {
			if (!strstr(e.what, rows[i].words[k]))
				fail_msg("%s: no word of '%s' in: %s", rows[i].text, rows[i].words[k], text);
		}
		assert_non_null(strstr(text, "dir/some.ini"));
	}
}

TEST(long_lines_and_long_lists_are_refused)
{
	struct scenario_error e;
	char text[4096] = "[workload.a]\nhosts = 1";

	for (int i = 0; i < 70; i++)
		strcat(text, ",1");
	strcat(text, "\n");
	assert_int_not_equal(scenario_of(text, NULL, &e), 0);
	assert_non_null(strstr(e.what, "ranges"));
	text[0] = 0;
	for (int i = 0; i < 300; i++)
		strcat(text, "x");
	assert_int_not_equal(scenario_of(text, NULL, &e), 0);
	assert_int_equal(e.line, 1);
	assert_non_null(strstr(e.what, "longer than"));
}

TEST(overrides_win_and_know_instances)
{
	struct scenario_error e;
	static const char text[] = "[link]\nrate = 1Gbps\n[workload.a]\nkind = cdf\nstop = 1ms\n";
	static const char two[] = "[workload.a]\n[workload.b]\n";

	assert_int_equal(scenario_of(text, "link.rate=2Gbps", &e), 0);
	assert_int_equal(out->link.rate_bps, UINT64_C(2000000000));
	assert_int_equal(scenario_of(text, "workload.a.load=50%", &e), 0);
	assert_int_equal(out->workload[0].load_ppb, 500000000);
	assert_int_equal(scenario_of(text, "workload.load=60%", &e), 0);
	assert_int_equal(out->workload[0].load_ppb, 600000000);
	assert_int_equal(scenario_of(text, "cc.g=1/16", &e), 0);
	assert_int_equal(out->cc.param_count, 1);
	assert_string_equal(out->cc.param[0].name, "g");
	assert_string_equal(out->cc.param[0].value, "1/16");

	assert_int_not_equal(scenario_of(text, "link.rate=x", &e), 0);
	assert_string_equal(e.file, "--set");
	assert_string_equal(e.key, "link.rate");
	assert_int_not_equal(scenario_of(text, "rate=1Gbps", &e), 0);
	assert_non_null(strstr(e.what, "section.key=value"));
	assert_int_not_equal(scenario_of(text, "lnk.rate=1Gbps", &e), 0);
	assert_non_null(strstr(e.what, "no such section"));
	assert_int_not_equal(scenario_of(two, "workload.size=1MB", &e), 0);
	assert_non_null(strstr(e.what, "workload.a, workload.b"));
	assert_int_not_equal(scenario_of(two, "workload.c.size=1MB", &e), 0);
	assert_non_null(strstr(e.what, "workload.a, workload.b"));
	/* An error caused by an override names the override. */
	assert_int_not_equal(scenario_of(text, "switch.kmin=1MB", &e), 0);
	assert_string_equal(e.file, "--set");
}

TEST(sources_remember_where_keys_were_given)
{
	struct scenario_source *s = scenario_source_create();
	struct scenario_error e;

	assert_int_equal(scenario_source_text(s, "f.ini", "[cc]\nalgorithm = x\ng = 1\n[workload.w]\nsize = 1MB\n", &e),
			 0);
	assert_int_equal(scenario_source_set(s, "link.rate=1Gbps", &e), 0);
	assert_true(scenario_source_where(s, "cc.algorithm", &e));
	assert_int_equal(e.line, 2);
	assert_true(scenario_source_where(s, "cc.g", &e));
	assert_int_equal(e.line, 3);
	assert_true(scenario_source_where(s, "workload.w.size", &e));
	assert_int_equal(e.line, 5);
	assert_true(scenario_source_where(s, "link.rate", &e));
	assert_string_equal(e.file, "--set");
	assert_false(scenario_source_where(s, "link.delay", &e));
	assert_false(scenario_source_where(s, "workload.x.size", &e));
	assert_false(scenario_source_where(s, "workload.size", &e));
	assert_false(scenario_source_where(s, "nosuch.key", &e));
	assert_false(scenario_source_where(s, "", &e));
	scenario_source_destroy(s);
}

TEST(lists_and_files_are_told)
{
	struct scenario_wanted files[8];

	accepted("[topology]\nkind = file\nfile = net.txt\n"
		 "[link]\nlost = 0:1, 3:17\n"
		 "[workload.a]\nkind = cdf\ncdf = ./sizes\nhosts = 0-7, 12\nstop = 1ms\n"
		 "[workload.b]\nkind = file\nfile = flows.txt ; with a comment\n"
		 "[output]\ncc_trace = all\n");
	assert_int_equal(out->link.lost_count, 2);
	assert_int_equal(out->link.lost[1].flow, 3);
	assert_int_equal(out->link.lost[1].nth, 17);
	assert_int_equal(out->workload[0].hosts.count, 2);
	assert_int_equal(out->workload[0].hosts.range[0].last, 7);
	assert_int_equal(out->workload[0].hosts.range[1].first, 12);
	assert_true(out->output.cc_trace_all);
	assert_int_equal(scenario_files(out, files, 8), 3);
	assert_string_equal(files[0].file->path, "net.txt");
	assert_string_equal(files[1].file->path, "./sizes");
	assert_string_equal(files[2].file->path, "flows.txt");
	assert_string_equal(files[0].key, "topology.file");
	assert_string_equal(files[2].key, "workload.b.file");
	assert_int_equal(scenario_files(out, files, 1), 3);
}

TEST(stragglers_come_in_order_of_time)
{
	accepted("[host]\nslow = 3:1.5@2ms-3ms, 2:2,3:0.5@1ms-2ms\n" WORKLOAD);
	assert_int_equal(out->host.slow_count, 3);
	assert_int_equal(out->host.slow[0].host, 2);
	assert_int_equal(out->host.slow[0].to_ps, SCENARIO_NEVER);
	assert_int_equal(out->host.slow[1].factor_ppb, 500000000);
	assert_int_equal(out->host.slow[1].to_ps, out->host.slow[2].from_ps);
	assert_int_equal(out->host.slow[2].from_ps, UINT64_C(2000000000));
}

TEST(jobs_are_workloads_once_they_are_settled)
{
	struct scenario_wanted files[8];

	accepted(GRAPH
		 "hosts = 0-3\nstart = 2us\nrepeat = 5\nplace = random\n[workload.other]\n"
		 "[job.x]\nworkload = a\n[job.y]\nworkload = a\nplace = ./order\n"
		 "[job.z]\nworkload = a\nhosts = 8\nrepeat = 1\narrive = poisson 2.5\nstart = 0\nplace = packed\n");
	assert_int_equal(out->job_count, 0);
	assert_int_equal(out->workload_count, 4);
	assert_string_equal(out->workload[0].name, "other");
	assert_string_equal(out->workload[1].name, "x");
	assert_string_equal(out->workload[1].of, "a");
	assert_string_equal(out->workload[1].section, "job");
	assert_int_equal(out->workload[1].start_ps, 2000000);
	assert_int_equal(out->workload[1].repeat, 5);
	assert_int_equal(out->workload[1].place.by, SCENARIO_PLACE_RANDOM);
	assert_int_equal(out->workload[1].arrive_gap_ps, 0);
	assert_int_equal(out->workload[2].hosts.count, 0);
	assert_int_equal(out->workload[2].place.by, SCENARIO_PLACE_FILE);
	assert_int_equal(out->workload[3].hosts.range[0].first, 8);
	assert_int_equal(out->workload[3].start_ps, 0);
	assert_int_equal(out->workload[3].repeat, 1);
	assert_int_equal(out->workload[3].place.by, SCENARIO_PLACE_PACKED);
	assert_int_equal(out->workload[3].arrive_gap_ps, UINT64_C(400000000000));
	assert_int_equal(scenario_files(out, files, 8), 4);
	assert_string_equal(files[0].key, "workload.a.file");
	assert_string_equal(files[2].key, "job.y.place");
	assert_string_equal(files[3].key, "workload.a.file");
}

TEST(distributions_are_known_in_any_case)
{
	accepted("[workload.a]\nkind = cdf\ncdf = fb_hadoop\nstop = 1ms\n");
	assert_string_equal(out->workload[0].cdf, "FB_Hadoop");
	accepted("[workload.a]\nkind = cdf\nstop = 1ms\n");
	assert_string_equal(out->workload[0].cdf, "WebSearch");
}

/* A scenario with programs is for these, unless it names the workload that runs. */
TEST(programs_or_workloads_run)
{
	accepted("[program.x]\ncommand = sh -c 'a; b'\nhosts = 0-3,7\nstart = 2ms\n" WORKLOAD);
	assert_int_equal(out->program_count, 1);
	assert_int_equal(out->workload_count, 0);
	assert_string_equal(out->program[0].command, "sh -c 'a; b'");
	assert_int_equal(out->program[0].hosts.range[1].last, 7);
	assert_true(out->program[0].start_ps == UINT64_C(2000000000));
	accepted("[program.x]\ncommand = a\nhosts = 0\n[run]\nonly = a\n" WORKLOAD);
	assert_int_equal(out->program_count, 0);
	assert_int_equal(out->workload_count, 1);
}

TEST(failures_come_in_order_of_time)
{
	accepted("[failure.late]\ntime = 2ms\nlink = 0-1\n[failure.early]\nlink = 0-2\ntime = 1ms\n"
		 "[failure.also]\ntime = 2ms\nlink = 0-3\n" WORKLOAD);
	assert_int_equal(out->failure_count, 3);
	assert_string_equal(out->failure[0].name, "early");
	assert_string_equal(out->failure[1].name, "late");
	assert_string_equal(out->failure[2].name, "also");
	assert_int_equal(out->failure[1].link_b, 1);
}

TEST(rocev2_means_go_back_n_and_hpcc_four_times_the_rate)
{
	accepted("[transport]\nprotocol = rocev2\n[topology]\nkind = hpcc\n[workload]\n");
	assert_int_equal(out->transport.loss, SCENARIO_LOSS_GBN);
	assert_int_equal(out->link.fabric_rate_bps, UINT64_C(400000000000));
	assert_string_equal(out->workload[0].name, "workload");
}

TEST_PROGRAM(setup, teardown)
