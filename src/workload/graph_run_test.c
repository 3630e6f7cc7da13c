/* SPDX-License-Identifier: BSD-2-Clause */
/* When nodes start and end, with a network in which each message takes a given time. */
#include <stdio.h>

#include "support/test.h"
#include "workload/goal.h"
#include "workload/graph_describe.h"
#include "workload/graph_run.h"

#define NS UINT64_C(1000)

struct flight {
	uint64_t at_ps, number;
	bool arrives;
};

/* Runs the graph; messages arrive after `delay_ps`, and are acknowledged after twice that. */
struct world {
	struct graph *graph;
	struct graph_run *run;
	struct flight flights[8192];
	uint32_t count, messages;
	uint64_t now_ps, delay_ps;
};

static void fly(struct world *w)
{
	struct graph_message m;

	while (graph_run_take(w->run, &m)) {
		assert_true(w->count + 2 <= 8192 && m.src != m.dst && m.bytes);
		w->flights[w->count++] = (struct flight){w->now_ps + w->delay_ps, m.number, true};
		w->flights[w->count++] = (struct flight){w->now_ps + 2 * w->delay_ps, m.number, false};
		w->messages++;
	}
}

static void go_on(struct world *w)
{
	for (;;) {
		uint32_t first = 0;
		struct flight f;

		for (uint32_t i = 1; i < w->count; i++)
			first = w->flights[i].at_ps < w->flights[first].at_ps ? i : first;
		if (w->count && w->flights[first].at_ps <= graph_run_deadline(w->run)) {
			f = w->flights[first];
			memmove(&w->flights[first], &w->flights[first + 1],
				(--w->count - first) * sizeof(w->flights[0]));
			w->now_ps = f.at_ps;
			if (f.arrives)
				graph_run_received(w->run, f.number, f.at_ps);
			else
				graph_run_sent(w->run, f.number, f.at_ps);
		} else if (graph_run_deadline(w->run) != GRAPH_NEVER_PS) {
			w->now_ps = graph_run_deadline(w->run);
			graph_run_expire(w->run, w->now_ps);
		} else {
			return;
		}
		fly(w);
	}
}

static void run_graph(struct world *w, struct graph *g, const struct graph_run_config *c, uint64_t delay_ps)
{
	struct graph_run_config config = c ? *c : (struct graph_run_config){.chunks = 1};

	memset(w, 0, sizeof(*w));
	config.graph = w->graph = g;
	w->run = graph_run_create(&config);
	w->delay_ps = delay_ps;
	graph_run_begin(w->run, 0);
	fly(w);
	go_on(w);
	assert_false(graph_run_failed(w->run));
}

static void run_text(struct world *w, const char *text, const struct graph_run_config *c, uint64_t delay_ps)
{
	struct text_error err = {0};
	struct graph *g;

	if (goal_read(text, strlen(text), &g, &err))
		fail_msg("%u: %s", err.line, err.message);
	run_graph(w, g, c, delay_ps);
}

static void end(struct world *w)
{
	graph_run_free(w->run);
	graph_free(w->graph);
}

static struct world w;

TEST(a_chain_of_calcs_takes_their_sum)
{
	run_text(&w, "num_ranks 1\nrank 0 {\na: calc 10\nb: calc 20\nc: calc 30\nb requires a\nc requires b\n}\n", NULL,
		 0);
	assert_int_equal(w.now_ps, 60 * NS);
	assert_int_equal(graph_run_left(w.run), 0);
	end(&w);
}

TEST(a_stream_runs_one_node_at_a_time_in_the_order_of_the_file)
{
	run_text(&w, "num_ranks 1\nrank 0 {\na: calc 10\nb: calc 20\nc: calc 15 cpu 1\nd: calc 5\nd requires c\n}\n",
		 NULL, 0);
	assert_int_equal(graph_run_spans(w.run)[1].begin_ps, 10 * NS);
	assert_int_equal(graph_run_spans(w.run)[2].begin_ps, 0);
	assert_int_equal(graph_run_spans(w.run)[3].begin_ps, 30 * NS);
	assert_int_equal(w.now_ps, 35 * NS);
	end(&w);
	/* Both become ready at one time: the first one in the file goes first, whatever the order of the edges. */
	run_text(&w, "num_ranks 1\nrank 0 {\na: calc 10\nb: calc 20\nc: calc 30\nc requires a\nb requires a\n}\n", NULL,
		 0);
	assert_int_equal(graph_run_spans(w.run)[1].begin_ps, 10 * NS);
	assert_int_equal(graph_run_spans(w.run)[2].begin_ps, 30 * NS);
	end(&w);
}

TEST(irequires_waits_for_the_start)
{
	run_text(
		&w,
		"num_ranks 1\nrank 0 {\na: calc 10\nb: calc 20 cpu 1\nc: calc 7 cpu 2\nb requires a\nc irequires b\n}\n",
		NULL, 0);
	assert_int_equal(graph_run_spans(w.run)[2].begin_ps, 10 * NS);
	end(&w);
}

/* A message of a rank's is under way while it computes: the longer one counts. */
TEST(compute_and_communication_overlap_where_they_may)
{
	static const uint64_t delays_ns[] = {3, 50};

	for (int i = 0; i < 2; i++) {
		uint64_t m = 2 * delays_ns[i], c = 20;

		run_text(&w, "num_ranks 2\nrank 0 {\ncalc 20\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n", NULL,
			 delays_ns[i] * NS);
		assert_int_equal(w.now_ps, (m > c ? m : c) * NS);
		end(&w);
	}
}

TEST(messages_match_by_source_and_tag_in_order)
{
	static const char text[] =
		"num_ranks 2\n"
		"rank 0 {\n"
		"a: send 1b to 1 tag 1\nb: calc 10\nb requires a\nc: send 2b to 1 tag 2\nc requires b\n"
		"d: calc 10\nd requires c\ne: send 3b to 1 tag 1\ne requires d\n}\n"
		"rank 1 {\nrecv 3b from 0 tag 2\nrecv 1b from 0 tag 1\nrecv 1b from 0 tag 1\n}\n";
	const struct graph_span *s;

	run_text(&w, text, NULL, 5 * NS);
	s = graph_run_spans(w.run) + 5;
	assert_int_equal(s[1].end_ps, 5 * NS);
	assert_int_equal(s[0].end_ps, 25 * NS);
	assert_int_equal(s[2].end_ps, 45 * NS);
	assert_int_equal(graph_run_left(w.run), 0);
	end(&w);
}

TEST(a_message_that_comes_before_its_receive_waits)
{
	run_text(&w,
		 "num_ranks 2\nrank 0 {\nsend 1b to 1\n}\nrank 1 {\na: calc 100\nb: recv 1b from 0\nb requires a\n}\n",
		 NULL, 5 * NS);
	assert_int_equal(graph_run_spans(w.run)[2].end_ps, 100 * NS);
	end(&w);
}

TEST(eager_sends_are_done_at_once)
{
	static const char text[] = "num_ranks 2\nrank 0 {\na: send 100b to 1\nb: send 101b to 1\n}\n"
				   "rank 1 {\nrecv 100b from 0\nrecv 101b from 0\n}\n";

	run_text(&w, text, &(struct graph_run_config){.chunks = 1, .eager_bytes = 100}, 5 * NS);
	assert_int_equal(graph_run_spans(w.run)[0].end_ps, 0);
	assert_int_equal(graph_run_spans(w.run)[1].end_ps, 10 * NS);
	assert_int_equal(graph_run_left(w.run), 0);
	end(&w);
}

TEST(a_rank_may_send_to_itself_and_messages_may_be_empty)
{
	run_text(&w,
		 "num_ranks 2\nrank 0 {\nsend 9b to 0\nrecv 9b from 0\nsend 0b to 1\n}\nrank 1 {\nrecv 0b from 0\n}\n",
		 NULL, 5 * NS);
	assert_int_equal(graph_run_left(w.run), 0);
	assert_int_equal(w.messages, 1);
	assert_int_equal(graph_run_spans(w.run)[1].end_ps, 0);
	end(&w);
}

TEST(slow_ranks_compute_longer)
{
	static const struct graph_slow slow = {.rank = 1, .to_ps = GRAPH_NEVER_PS, .factor_ppb = 1200000000};

	run_text(&w, "num_ranks 2\nrank 0 {\ncalc 100\n}\nrank 1 {\ncalc 100\n}\n",
		 &(struct graph_run_config){.chunks = 1, .slow = &slow, .slow_count = 1}, 0);
	assert_int_equal(graph_run_spans(w.run)[0].end_ps, 100 * NS);
	assert_int_equal(graph_run_spans(w.run)[1].end_ps, 120 * NS);
	end(&w);
}

/* Twice as long from 100 to 200 ns, not at all from 300 to 400 ns (a factor of 0), four times as long from 500 ns on. */
TEST(ranks_are_slow_for_a_while)
{
	static const struct graph_slow slow[] = {
		{.rank = 0, .from_ps = 100 * NS, .to_ps = 200 * NS, .factor_ppb = 2000000000},
		{.rank = 1, .from_ps = 700 * NS, .to_ps = 800 * NS, .factor_ppb = 1},
		{.rank = 0, .from_ps = 300 * NS, .to_ps = 400 * NS, .factor_ppb = 0},
		{.rank = 0, .from_ps = 500 * NS, .to_ps = GRAPH_NEVER_PS, .factor_ppb = 4000000000},
	};
	static const struct {
		uint64_t before_ns, calc_ns, end_ns;
	} cases[] = {
		{0, 100, 100},   {0, 101, 102},   {0, 150, 200},    {0, 151, 201},  {50, 75, 150},  {100, 10, 120},
		{200, 100, 300}, {200, 150, 300}, {200, 5000, 300}, {450, 50, 500}, {450, 60, 540}, {600, 7, 628},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[256];

		/* Rank 1, which is not slow then, says when the calc of rank 0 begins. */
		snprintf(text, sizeof(text),
			 "num_ranks 2\nrank 0 {\na: recv 1b from 1\nb: calc %lu\nb requires a\n}\n"
			 "rank 1 {\nc: calc %lu\nd: send 1b to 0\nd requires c\n}\n",
			 cases[i].calc_ns, cases[i].before_ns);
		run_text(&w, text, &(struct graph_run_config){.chunks = 1, .slow = slow, .slow_count = 4}, 0);
		assert_int_equal(graph_run_spans(w.run)[1].begin_ps, cases[i].before_ns * NS);
		assert_int_equal(graph_run_spans(w.run)[1].end_ps, cases[i].end_ns * NS);
		end(&w);
	}
}

/* A chain of a million nodes that take no time needs no stack. */
TEST(long_chains_of_nothing_are_no_recursion)
{
	enum { NODES = 300000 };
	struct graph *g = graph_create(1);
	uint32_t node;

	for (uint32_t i = 0; i < NODES; i++) {
		assert_int_equal(graph_add(g, &(struct graph_node){.kind = GRAPH_CALC}, &node), 0);
		if (i)
			assert_int_equal(graph_require(g, node, node - 1, false), 0);
	}
	assert_int_equal(graph_finish(g, NULL), 0);
	run_graph(&w, g, NULL, 0);
	assert_int_equal(graph_run_left(w.run), 0);
	end(&w);
}

/* ---- collectives ------------------------------------------------------------------------------------------------ */

/* Each of n ranks computes for 10 ns x its number and then takes part. */
static struct graph *collective_graph(uint32_t n, enum collective_kind kind, uint64_t bytes, uint32_t times)
{
	struct graph *g = graph_create(n);
	uint32_t ranks[64], group, calc, node;

	for (uint32_t i = 0; i < n; i++)
		ranks[i] = n - 1 - i;
	assert_int_equal(graph_group(g, ranks, n, &group), 0);
	for (uint32_t i = 0; i < n; i++) {
		graph_add(g, &(struct graph_node){.kind = GRAPH_CALC, .rank = i, .amount = 10 * NS * i}, &calc);
		for (uint32_t k = 0; k < times; k++) {
			graph_add(g,
				  &(struct graph_node){.kind = GRAPH_COLLECTIVE,
						       .rank = i,
						       .amount = bytes,
						       .peer = group,
						       .collective = kind,
						       .stream = 1},
				  &node);
			graph_require(g, node, calc, false);
		}
	}
	assert_int_equal(graph_finish(g, NULL), 0);
	return g;
}

TEST(collectives_end_at_all_ranks_whatever_the_algorithm)
{
	for (int kind = 0; kind < COLLECTIVE_KINDS; kind++) {
		for (int a = 0; a < COLLECTIVE_ALGORITHMS; a++) {
			for (uint32_t n = 1; n < 10; n += 3) {
				struct graph_run_config c = {.chunks = 2, .algorithm = (enum collective_algorithm)a};

				run_graph(&w, collective_graph(n, (enum collective_kind)kind, 1000, 3), &c, 7 * NS);
				assert_int_equal(graph_run_left(w.run), 0);
				end(&w);
			}
		}
	}
}

/* 2(n-1) steps, each of which waits for the one before, after the last rank has come. */
TEST(a_ring_takes_its_steps)
{
	run_graph(&w, collective_graph(4, COLLECTIVE_ALL_REDUCE, 1000000, 1), NULL, 100 * NS);
	assert_int_equal(graph_run_spans(w.run)[w.graph->first_node[0] + 1].begin_ps, 0);
	assert_int_equal(w.now_ps, (30 + 6 * 100 + 100) * NS); /* the last acknowledgement, too */
	assert_int_equal(w.messages, 4 * 6);
	end(&w);
}

TEST(a_chain_with_chunks_is_a_pipeline)
{
	struct graph_run_config c = {.chunks = 5, .algorithm = COLLECTIVE_RING};

	run_graph(&w, collective_graph(4, COLLECTIVE_BROADCAST, 1000, 1), &c, 100 * NS);
	assert_int_equal(w.messages, 3 * 5);
	assert_int_equal(graph_run_left(w.run), 0);
	end(&w);
}

TEST(collectives_of_a_stream_follow_each_other)
{
	run_graph(&w, collective_graph(2, COLLECTIVE_BARRIER, 0, 3), NULL, 100 * NS);
	for (uint32_t i = 1; i < 3; i++)
		assert_true(graph_run_spans(w.run)[i + 1].begin_ps >= graph_run_spans(w.run)[i].end_ps);
	end(&w);
}

/* ---- runs that cannot go on --------------------------------------------------------------------------------------- */

static void stuck(const char *text, uint32_t left, const char *says)
{
	char why[512];

	run_text(&w, text, NULL, 5 * NS);
	assert_int_equal(graph_run_left(w.run), left);
	graph_run_why(w.run, why, sizeof(why));
	if (!strstr(why, says))
		fail_msg("says \"%s\"", why);
	end(&w);
}

TEST(what_cannot_go_on_says_who_waits_for_whom)
{
	stuck("num_ranks 2\nrank 0 {\na: recv 4096b from 1 tag 2\nb: calc 1\nb requires a\n}\nrank 1 {\n}\n", 2,
	      "rank 0 node 0 (recv 4096 from 1 tag 2, line 3) waits for a message that nobody sends");
	stuck("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n", 2,
	      "rank 0 node 0 (calc 1000 ps, line 3) waits for rank 0 node 1 (calc 1000 ps, line 4) waits for the first "
	      "one again: a cycle");
	stuck("num_ranks 2\nrank 0 {\na: recv 1b from 1\nb: send 1b to 1\nb requires a\n}\n"
	      "rank 1 {\na: recv 1b from 0\nb: send 1b to 0\nb requires a\n}\n",
	      4, "a cycle");
	stuck("num_ranks 1\nrank 0 {\na: calc 1\na requires a\n}\n", 1, "the first one again: a cycle");
}

TEST(a_member_that_never_comes_is_named)
{
	struct graph *g = graph_create(3);
	uint32_t ranks[] = {0, 1, 2}, group, node;
	char why[256];

	graph_group(g, ranks, 3, &group);
	for (uint32_t i = 0; i < 2; i++)
		graph_add(g, &(struct graph_node){.kind = GRAPH_COLLECTIVE, .rank = i, .peer = group, .amount = 8},
			  &node);
	assert_int_equal(graph_finish(g, NULL), 0);
	run_graph(&w, g, NULL, NS);
	assert_int_equal(graph_run_left(w.run), 2);
	graph_run_why(w.run, why, sizeof(why));
	assert_string_equal(why,
			    "rank 0 node 0 (all-reduce 8 of group 0) waits for rank 2, which has no such collective");
	end(&w);
}

/* ---- what it takes at least ---------------------------------------------------------------------------------------- */

TEST(a_description_has_the_chain_and_the_bound)
{
	static const char text[] = "num_ranks 2\nrank 0 {\na: calc 10\nb: calc 20\nc: send 5b to 1\nc requires a\n}\n"
				   "rank 1 {\nd: recv 5b from 0\ne: calc 7\ne requires d\n}\n";
	struct graph_description d;
	struct graph *g;

	assert_int_equal(goal_read(text, strlen(text), &g, NULL), 0);
	assert_int_equal(graph_describe(&(struct graph_run_config){.graph = g, .chunks = 1}, &d), 0);
	assert_int_equal(d.nodes[GRAPH_CALC], 3);
	assert_int_equal(d.bytes[GRAPH_SEND], 5);
	assert_int_equal(d.bound_ps, 30 * NS);
	assert_int_equal(d.chain_ps, 20 * NS);
	assert_int_equal(d.calc_ps_most, 30 * NS);
	assert_int_equal(d.left, 0);
	graph_free(g);
}
