/* SPDX-License-Identifier: BSD-2-Clause */
/* Graphs without collectives send what the graphs with them send, and end when they end. */
#include "support/test.h"
#include "workload/graph_describe.h"
#include "workload/graph_lower.h"

/* Each rank computes, takes part in two collectives of all and one of its half, sends to the next one, and computes. */
static struct graph *make(uint32_t n, enum collective_kind kind)
{
	struct graph *g = graph_create(n);
	uint32_t ranks[16], all, half[2], last, node;

	for (uint32_t i = 0; i < n; i++)
		ranks[i] = i;
	graph_group(g, ranks, n, &all);
	graph_group(g, ranks, n / 2, &half[0]);
	graph_group(g, ranks + n / 2, n - n / 2, &half[1]);
	for (uint32_t i = 0; i < n; i++) {
		graph_add(g, &(struct graph_node){.kind = GRAPH_CALC, .rank = i, .amount = 1000000 + 5000 * i}, &last);
		for (int k = 0; k < 3; k++) {
			graph_add(g,
				  &(struct graph_node){.kind = GRAPH_COLLECTIVE,
						       .rank = i,
						       .amount = 100 + k,
						       .peer = k == 1 ? half[i >= n / 2] : all,
						       .collective = kind,
						       .stream = 1},
				  &node);
			graph_require(g, node, last, false);
		}
		graph_add(g,
			  &(struct graph_node){.kind = GRAPH_SEND,
					       .rank = i,
					       .amount = 7,
					       .peer = (i + 1) % n,
					       .tag = 5,
					       .stream = GRAPH_NO_STREAM},
			  &node);
		graph_add(g,
			  &(struct graph_node){.kind = GRAPH_RECV,
					       .rank = i,
					       .amount = 7,
					       .peer = (i + n - 1) % n,
					       .tag = 5,
					       .stream = GRAPH_NO_STREAM},
			  &node);
		graph_add(g, &(struct graph_node){.kind = GRAPH_CALC, .rank = i, .amount = 3000}, &last);
		graph_require(g, last, node - 2, false);
	}
	assert_int_equal(graph_finish(g, NULL), 0);
	return g;
}

TEST(a_lowered_graph_ends_when_the_whole_one_does)
{
	for (int kind = 0; kind < COLLECTIVE_KINDS; kind++) {
		for (int a = 0; a < COLLECTIVE_ALGORITHMS; a++) {
			struct graph_run_config c = {.chunks = 2, .algorithm = (enum collective_algorithm)a};
			struct graph_description whole, low;
			struct graph *g = make(6, (enum collective_kind)kind), *lowered;

			c.graph = g;
			assert_int_equal(graph_lower(g, c.algorithm, c.chunks, &lowered, NULL), 0);
			assert_int_equal(graph_describe(&c, &whole), 0);
			c.graph = lowered;
			assert_int_equal(graph_describe(&c, &low), 0);
			assert_int_equal(low.nodes[GRAPH_COLLECTIVE], 0);
			assert_int_equal(low.nodes[GRAPH_SEND], low.nodes[GRAPH_RECV]);
			assert_int_equal(low.bytes[GRAPH_SEND], low.bytes[GRAPH_RECV]);
			assert_int_equal(low.left, 0);
			assert_int_equal(whole.left, 0);
			assert_int_equal(low.bound_ps, whole.bound_ps);
			graph_free(g);
			graph_free(lowered);
		}
	}
}

TEST(tags_are_above_those_of_the_graph)
{
	struct graph *g = make(4, COLLECTIVE_ALL_REDUCE), *lowered;
	uint32_t own = 0;

	assert_int_equal(graph_lower(g, COLLECTIVE_RING, 1, &lowered, NULL), 0);
	for (uint32_t i = 0; i < lowered->node_count; i++) {
		if (lowered->nodes[i].kind != GRAPH_CALC)
			own += lowered->nodes[i].tag <= 5;
	}
	assert_int_equal(own, 8);
	graph_free(g);
	graph_free(lowered);
}
