/* SPDX-License-Identifier: BSD-2-Clause */
/* Graphs as they are built. */
#include "support/test.h"
#include "workload/graph.h"

TEST(edges_are_found_by_what_they_come_from)
{
	struct graph *g = graph_create(2);
	uint32_t n[4];

	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(graph_add(g, &(struct graph_node){.kind = GRAPH_CALC, .rank = i / 2}, &n[i]), 0);
	graph_require(g, n[1], n[0], true);
	graph_require(g, n[3], n[2], false);
	graph_require(g, n[0], n[1], false);
	assert_int_equal(graph_finish(g, NULL), 0);
	assert_int_equal(g->first_edge[0], 0);
	assert_int_equal(g->edges[0].node, 1);
	assert_true(g->edges[0].start);
	assert_int_equal(g->first_edge[1], 1);
	assert_int_equal(g->edges[1].node, 0);
	assert_int_equal(g->first_edge[2], 2);
	assert_int_equal(g->edges[2].node, 3);
	assert_int_equal(g->first_edge[4], 3);
	assert_int_equal(graph_number(g, n[3]), 1);
	graph_free(g);
}

static void add_collective(struct graph *g, uint32_t rank, uint32_t group, uint64_t bytes)
{
	uint32_t node;

	graph_add(g, &(struct graph_node){.kind = GRAPH_COLLECTIVE, .rank = rank, .peer = group, .amount = bytes},
		  &node);
}

TEST(collectives_that_belong_together_must_be_alike)
{
	static const uint32_t ranks[] = {1, 0};
	struct text_error err;
	struct graph *g = graph_create(2);
	uint32_t group;

	graph_group(g, ranks, 2, &group);
	add_collective(g, 0, group, 5);
	add_collective(g, 0, group, 6);
	add_collective(g, 1, group, 5);
	add_collective(g, 1, group, 7);
	assert_int_equal(graph_finish(g, &err), -22);
	assert_string_equal(err.message,
			    "collective 1 of group 0 is all-reduce 7 of group 0 at rank 1 and all-reduce 6 of "
			    "group 0 at rank 0; they must be alike");
	graph_free(g);
}

TEST(who_is_no_member_cannot_take_part)
{
	static const uint32_t ranks[] = {0, 1};
	struct text_error err;
	struct graph *g = graph_create(3);
	uint32_t group;

	graph_group(g, ranks, 2, &group);
	add_collective(g, 2, group, 5);
	assert_int_equal(graph_finish(g, &err), -22);
	assert_string_equal(err.message, "rank 2 has a collective of group 0, whose member it is not");
	graph_free(g);
}
