/* SPDX-License-Identifier: BSD-2-Clause */
/* GOAL text, read and written. */
#include "support/test.h"
#include "workload/goal.h"

static struct graph *read_text(const char *text)
{
	struct text_error err = {0};
	struct graph *g;

	if (goal_read(text, strlen(text), &g, &err))
		fail_msg("%u: %s", err.line, err.message);
	return g;
}

TEST(statements_become_nodes)
{
	struct graph *g =
		read_text("/* a\n comment */ num_ranks 3\n\nrank 2 {\nl1: send 8b to 1 tag 7 cpu 1 nic 2 // behind\n"
			  "recv 9 b from 0\nl1 requires l_2\nl_2: calc 15 cpu 3\n}\nrank 0 {\n}\n");

	assert_int_equal(g->rank_count, 3);
	assert_int_equal(g->node_count, 3);
	assert_int_equal(g->nodes[0].kind, GRAPH_SEND);
	assert_int_equal(g->nodes[0].amount, 8);
	assert_int_equal(g->nodes[0].peer, 1);
	assert_int_equal(g->nodes[0].tag, 7);
	assert_int_equal(g->nodes[0].rank, 2);
	assert_int_equal(g->nodes[0].source, 5);
	assert_int_equal(g->nodes[1].kind, GRAPH_RECV);
	assert_int_equal(g->nodes[1].amount, 9);
	assert_int_equal(g->nodes[2].kind, GRAPH_CALC);
	assert_int_equal(g->nodes[2].amount, 15000);
	assert_int_equal(g->nodes[2].stream, 3);
	assert_int_equal(g->edge_count, 1);
	assert_int_equal(g->edges[0].node, 0);
	assert_int_equal(g->edges[0].needs, 2);
	graph_free(g);
}

TEST(what_is_wrong_is_named_with_its_line)
{
	static const struct {
		const char *text;
		uint32_t line;
		const char *says;
	} cases[] = {
		{"", 1, "the line ends where num_ranks should be"},
		{"num_ranks 0\n", 1, "0 ranks; allowed are 1 to 1048576"},
		{"num_ranks 1152921504606846976\n", 1,
		 "'1152921504606846976' for a number of ranks; allowed are 0 to 1048576"},
		{"num_ranks 2\nrank 2 {\n}\n", 2, "'2' for a rank; allowed are 0 to 1"},
		{"num_ranks 2\nrank 0 {\ncalc 1\n}\nrank 0 {\n", 5, "a second block of rank 0"},
		{"num_ranks 2\nrank 0 {\ncalc 1\n", 4, "the text ends within rank 0"},
		{"num_ranks 2\nrank 0 {\na: calc 1\na: calc 2\n}\n", 4, "a second 'a' in rank 0"},
		{"num_ranks 2\nrank 0 {\na: calc 1\n\nb requires a\n}\n", 5, "rank 0 has no 'b'"},
		{"num_ranks 2\nrank 0 {\na: calc 1\na irequires b\n}\n", 4, "rank 0 has no 'b'"},
		{"num_ranks 2\nrank 0 {\nsend 17592186044417b to 1\n}\n", 3,
		 "'17592186044417' for a size; allowed are 0 to 17592186044416"},
		{"num_ranks 2\nrank 0 {\nsend 1152921504606846976b to 1\n}\n", 3, "for a size; allowed are 0 to"},
		{"num_ranks 2\nrank 0 {\nsend 1b to 2\n}\n", 3, "'2' for a rank; allowed are 0 to 1"},
		{"num_ranks 2\nrank 0 {\nrecv 1b from -1\n}\n", 3,
		 "'-' for a rank; a source or a tag of any (-1) is not simulated"},
		{"num_ranks 2\nrank 0 {\nrecv 1b to 1\n}\n", 3, "'to'; here should be from"},
		{"num_ranks 2\nrank 0 {\nrecv 1 from 1\n}\n", 3, "'from'; here should be b"},
		{"num_ranks 2\nrank 0 {\nsend 1b to 1 tag 4294967296\n}\n", 3,
		 "for a tag; allowed are 0 to 4294967295"},
		{"num_ranks 2\nrank 0 {\ncalc 1 cpu 64\n}\n", 3, "'64' for a cpu; allowed are 0 to 63"},
		{"num_ranks 2\nrank 0 {\ncalc 1 nic 0\n}\n", 3, "'nic'; here should be cpu"},
		{"num_ranks 2\nrank 0 {\nfoo: put 1b to 1\n}\n", 3, "'put'; here should be calc, send or recv"},
		{"num_ranks 2\nrank 0 {\nfoo wants a\n}\n", 3, "'wants'; here should be ':', requires or irequires"},
		{"num_ranks 2\n}\n", 2, "'}'; here should be rank"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text_error err = {0};
		struct graph *g;

		assert_int_equal(goal_read(cases[i].text, strlen(cases[i].text), &g, &err), -22);
		if (err.line != cases[i].line || !strstr(err.message, cases[i].says))
			fail_msg("case %zu: %u: %s", i, err.line, err.message);
	}
}

struct memory {
	char text[4096];
	size_t len;
};

static bool keep(void *ctx, const char *text, size_t bytes)
{
	struct memory *m = ctx;

	assert_true(m->len + bytes < sizeof(m->text));
	memcpy(m->text + m->len, text, bytes);
	m->len += bytes;
	return true;
}

TEST(what_was_written_is_read_as_it_was)
{
	static const char text[] = "num_ranks 2\n\nrank 0 {\nl0: calc 12\nl1: calc 7 cpu 2\nl2: send 5b to 1 tag 3\n"
				   "l2 requires l0\nl1 irequires l0\n}\n\nrank 1 {\nl0: recv 5b from 0 tag 3\n}\n";
	struct graph *g = read_text(text);
	struct memory m = {.len = 0};

	assert_int_equal(goal_write(g, keep, &m), 0);
	m.text[m.len] = '\0';
	assert_string_equal(m.text, text);
	graph_free(g);
}
