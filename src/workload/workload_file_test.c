/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "net/topology/topology_build.h"
#include "net/topology/topology_hpcc.h"
#include "support/test.h"
#include "workload/workload.h"

static struct workload *read_text(const char *kind, const char *text, const struct topology *t)
{
	struct workload *w = workload_create();
	struct text_error err = {0};
	struct workload_params p = {.text = text, .text_bytes = strlen(text), .topology = t};

	assert_non_null(w);
	if (workload_add(w, kind, &p, &err))
		fail_msg("line %u: %s", err.line, err.message);
	return w;
}

static struct message next(struct workload *w)
{
	struct message m;

	assert_true(workload_next(w, &m));
	return m;
}

static void no_more(struct workload *w)
{
	struct message m;

	assert_false(workload_next(w, &m));
}

static struct message released(struct workload *w)
{
	struct message m;

	assert_true(workload_released(w, &m));
	return m;
}

static void nothing_released(struct workload *w)
{
	struct message m;

	assert_false(workload_released(w, &m));
}

TEST(hpcc_flows_are_read_as_their_simulator_reads_them)
{
	/*
	 * Of three announced flows the third is early; the text behind them is the file's own
	 * explanation.
	 */
	static const char text[] = "3 \n"
				   "2 1 3 100 200000000 2\n"
				   "3 1 3 100 1 2.000000001\n"
				   "0 4 1 65535 5000000 1.999999999\n"
				   "9 9 9 9 9 9\n"
				   "\nFirst line: # of flows\n";
	struct workload *w = read_text("hpcc-flows", text, NULL);
	struct workload_facts facts;
	struct message m = next(w);

	assert_int_equal(m.src, 0);
	assert_int_equal(m.dst, 4);
	assert_int_equal(m.bytes, 5000000);
	assert_int_equal(m.class, 1);
	assert_int_equal(m.start_ps, 1999999999000);
	assert_true(m.last);
	m = next(w);
	assert_int_equal(m.src, 2);
	assert_int_equal(m.dst, 1);
	assert_int_equal(m.class, 3);
	assert_int_equal(m.bytes, 200000000);
	assert_int_equal(m.start_ps, 2000000000000);
	m = next(w);
	assert_int_equal(m.start_ps, 2000000001000);
	no_more(w);
	workload_facts(w, 0, &facts);
	assert_int_equal(facts.message_count, 3);
	assert_int_equal(facts.bytes, 205000001);
	assert_int_equal(facts.classes, 1 << 1 | 1 << 3);
	workload_free(w);
}

TEST(node_numbers_are_the_topologys)
{
	static const char nodes[] = "5 2 4\n0 3\n1 0 1G 0 0\n2 0 1G 0 0\n4 3 1G 0 0\n0 3 1G 0 0\n";
	struct workload_params p = {.text = "1\n4 3 3 100 1 0", .text_bytes = 15};
	struct text_error err;
	struct topology t;
	struct message m;

	assert_int_equal(topology_read_hpcc(&t, nodes, sizeof(nodes) - 1, &err), 0);

	struct workload *w = read_text("hpcc-flows", "1\n4 1 3 100 1 0", &t);

	m = next(w);
	assert_int_equal(m.src, 2);
	assert_int_equal(m.dst, 0);
	workload_free(w);
	w = workload_create();
	p.topology = &t;
	assert_int_equal(workload_add(w, "hpcc-flows", &p, &err), -EINVAL);
	assert_string_equal(err.message, "the topology has no host 3");
	workload_free(w);
	topology_free(&t);
}

TEST(a_connection_matrix_is_read)
{
	static const char text[] = "Nodes 128\n"
				   "Connections 3\n"
				   "# a comment\n"
				   "1->0 id 1 start 0 size 2000000\n"
				   "2->127 id 2 start 1500000.5 size 2000000 prio 4\n"
				   "\n"
				   "3->0 start 7 size 1\n";
	struct workload *w = read_text("htsim-matrix", text, NULL);
	struct message m = next(w);

	assert_int_equal(m.src, 1);
	assert_int_equal(m.dst, 0);
	assert_int_equal(m.start_ps, 0);
	assert_int_equal(m.bytes, 2000000);
	m = next(w);
	assert_int_equal(m.src, 3);
	assert_int_equal(m.start_ps, 7);
	m = next(w);
	assert_int_equal(m.dst, 127);
	assert_int_equal(m.start_ps, 1500001);
	no_more(w);
	workload_free(w);
}

TEST(a_oneshot_releases_all_its_flows_once)
{
	static const char text[] = "Nodes 8\nConnections 4\nTriggers 1\n"
				   "0->1 id 1 start 5 size 10 send_done_trigger 9\n"
				   "0->2 id 2 start 6 size 10 send_done_trigger 9\n"
				   "3->4 id 3 trigger 9 size 11\n"
				   "5->6 id 4 trigger 9 size 12\n"
				   "trigger id 9 oneshot\n";
	struct workload *w = read_text("htsim-matrix", text, NULL);
	struct message a = next(w), b = next(w), m;

	no_more(w);
	workload_received(w, &a, 50);
	nothing_released(w);
	workload_sent(w, &a, 100);
	m = released(w);
	assert_int_equal(m.src, 3);
	assert_int_equal(m.start_ps, 100);
	assert_int_equal(m.bytes, 11);
	m = released(w);
	assert_int_equal(m.src, 5);
	nothing_released(w);
	workload_sent(w, &b, 200);
	nothing_released(w);
	workload_free(w);
}

TEST(a_multishot_releases_one_flow_each_time)
{
	static const char text[] = "Nodes 8\nConnections 5\nTriggers 1\n"
				   "trigger id 1 multishot\n"
				   "0->1 start 0 size 1 recv_done_trigger 1\n"
				   "0->2 start 0 size 1 recv_done_trigger 1\n"
				   "0->3 start 0 size 1 recv_done_trigger 1\n"
				   "4->5 id 7 trigger 1 size 1\n"
				   "4->6 id 8 trigger 1 size 1\n";
	struct workload *w = read_text("htsim-matrix", text, NULL);
	struct message a = next(w), b = next(w), c = next(w);

	workload_received(w, &b, 10);
	assert_int_equal(released(w).dst, 5);
	nothing_released(w);
	workload_received(w, &a, 20);
	assert_int_equal(released(w).dst, 6);
	nothing_released(w);
	workload_received(w, &c, 30);
	nothing_released(w);
	workload_free(w);
}

TEST(a_barrier_waits_for_its_count)
{
	static const char text[] = "Nodes 8\nConnections 4\nTriggers 2\n"
				   "0->1 start 0 size 1 send_done_trigger 3\n"
				   "2->1 start 0 size 1 send_done_trigger 3\n"
				   "1->0 id 1 trigger 3 size 2 recv_done_trigger 2\n"
				   "1->2 id 2 trigger 2 size 3\n"
				   "trigger id 3 barrier count 2\n"
				   "trigger id 2 oneshot\n";
	struct workload *w = read_text("htsim-matrix", text, NULL);
	struct message a = next(w), b = next(w), m;

	workload_sent(w, &a, 10);
	nothing_released(w);
	workload_sent(w, &b, 20);
	m = released(w);
	assert_int_equal(m.bytes, 2);
	nothing_released(w);
	/* Triggers may fire other triggers. */
	workload_received(w, &m, 40);
	assert_int_equal(released(w).bytes, 3);
	workload_free(w);
}

TEST(a_wrong_text_names_line_and_reason)
{
#define HEAD "Nodes 4\nConnections 1\n"
	static const struct {
		const char *kind, *text;
		uint32_t line;
		const char *says;
	} rows[] = {
		{"hpcc-flows", "", 1, "the number of flows should be"},
		{"hpcc-flows", "x", 1, "'x' for the number of flows"},
		{"hpcc-flows", "1000000\n1 2 3 4 5 6", 1, "1000000 flows in a text of 19 bytes"},
		{"hpcc-flows", "16777217", 1, "allowed are 0 to 16777216"},
		{"hpcc-flows", "2\n1 2 3 100 5 2\n1 2 3 100 5\n", 4, "the text ends within flow 2"},
		{"hpcc-flows", "1\n1 1 3 100 5 2\n", 2, "a flow from host 1 to itself"},
		{"hpcc-flows", "1\n1 9999999 3 100 5 2\n", 2, "'9999999' for a host"},
		{"hpcc-flows", "1\n1 2 8 100 5 2\n", 2, "'8' for a class; allowed are 1 to 7"},
		{"hpcc-flows", "1\n1 2 0 100 5 2\n", 2, "'0' for a class; allowed are 1 to 7"},
		{"hpcc-flows", "1\n1 2 3 65536 5 2\n", 2, "'65536' for a port"},
		{"hpcc-flows", "1\n1 2 3 100 0 2\n", 2, "'0' for a size; allowed are 1 to"},
		{"hpcc-flows", "1\n1 2 3 100 5 -2\n", 2, "'-2' for a start"},
		{"hpcc-flows", "1\n1 2 3 100 5 1e7\n", 2, "here in seconds"},
		{"htsim-matrix", "", 1, "Nodes and Connections must come before"},
		{"htsim-matrix", "Nodes 1\n", 1, "'1' for Nodes; allowed are 2 to"},
		{"htsim-matrix", "Nodes\n", 1, "the line ends where Nodes should be"},
		{"htsim-matrix", "0->1 start 0 size 1\n", 1, "must come before"},
		{"htsim-matrix", "Nodes 4\nConnections 9999999\n0->1 start 0 size 1\n", 3, "cannot be"},
		{"htsim-matrix", HEAD "0->4 start 0 size 1\n", 3, "'4' for a host; allowed are 0 to 3"},
		{"htsim-matrix", HEAD "0->0 start 0 size 1\n", 3, "to itself"},
		{"htsim-matrix", HEAD "->1 start 0 size 1\n", 3, "'' for a host"},
		{"htsim-matrix", HEAD "0-> start 0 size 1\n", 3, "'' for a host"},
		{"htsim-matrix", HEAD "0->1 start 0\n", 3, "without a size"},
		{"htsim-matrix", HEAD "0->1 size 4\n", 3, "either a start or a trigger"},
		{"htsim-matrix", HEAD "0->1 start 1 trigger 1 id 1 size 4\n", 3, "either a start or"},
		{"htsim-matrix", HEAD "0->1 start 0 size\n", 3, "the value of 'size'"},
		{"htsim-matrix", HEAD "0->1 id 0 start 0 size 1\n", 3, "'0' for an id; allowed are 1"},
		{"htsim-matrix", HEAD "0->1 colour 0\n", 3, "'colour' in a connection; allowed are id"},
		{"htsim-matrix", HEAD "0->1 start 0 size 1\n1->0 start 0 size 1\n", 4,
		 "more connections than the 1 announced"},
		{"htsim-matrix", HEAD "\n", 4, "0 connections; 1 were announced"},
		{"htsim-matrix", HEAD "0->1 id 1 trigger 5 size 1\n", 3, "no line describes trigger 5"},
		{"htsim-matrix", HEAD "trigger id 1 oneshot\n", 3, "more triggers than the 0"},
		{"htsim-matrix", HEAD "0->1 start 0 size 1\nNodes 5\n", 4, "Nodes after the first connection"},
		{"htsim-matrix", HEAD "failure switch_type TOR\n", 3, "'failure'; allowed are Nodes"},
		{"htsim-matrix", "Nodes 4\nConnections 0\nTriggers 1\ntrigger id 1\n", 4, "needs an id and a type"},
		{"htsim-matrix", "Nodes 4\nConnections 0\nTriggers 1\ntrigger oneshot\n", 4, "needs an id and a type"},
		{"htsim-matrix", "Nodes 4\nConnections 0\nTriggers 1\ntrigger id 1 barrier\n", 4,
		 "a barrier needs a count"},
		{"htsim-matrix", "Nodes 4\nConnections 0\nTriggers 1\ntrigger id 1 oneshot barrier\n", 4,
		 "'barrier' in a trigger"},
		{"htsim-matrix", "Nodes 4\nConnections 0\nTriggers 2\ntrigger id 1 oneshot\ntrigger id 1 oneshot\n", 0,
		 "two triggers have the id 1"},
		{"htsim-matrix", "Nodes 4\nConnections 2\n0->1 id 3 start 0 size 1\n0->1 id 3 start 0 size 1\n", 0,
		 "two connections have the id 3"},
		{"htsim-matrix", "Nodes 4\nConnections 0\nTriggers 2\ntrigger id 1 oneshot\n", 5,
		 "1 triggers; 2 were announced"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct workload *w = workload_create();
		struct text_error err = {0};
		struct workload_params p = {.text = rows[i].text, .text_bytes = strlen(rows[i].text)};

		assert_int_equal(workload_add(w, rows[i].kind, &p, &err), -EINVAL);
		if (!strstr(err.message, rows[i].says) || err.line != rows[i].line)
			fail_msg("row %zu: line %u: %s", i, err.line, err.message);
		no_more(w);
		workload_free(w);
	}
}
