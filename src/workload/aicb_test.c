/* SPDX-License-Identifier: BSD-2-Clause */
/* AICB's workloads: the one that others made (tests/traces), groups, order, and what is wrong. */
#include <stdio.h>

#include "support/test.h"
#include "workload/aicb.h"
#include "workload/graph_describe.h"
#include "workload/graph_read.h"

static struct graph *must_read(const char *text)
{
	struct graph_fault fault = {0};
	struct graph_file file = {text, strlen(text)};
	struct graph *g;

	if (graph_read(&file, 1, &g, &fault))
		fail_msg("%u: %s", fault.error.line, fault.error.message);
	return g;
}

/* The bytes and groups of the sample add up: two all-reduces among 8 ranks, 16 MiB and 64 MiB. */
TEST(the_sample_is_taken_as_it_is)
{
	static char text[4096];
	struct graph_description d;
	struct graph_use *uses;
	struct graph *g;
	uint32_t count;
	FILE *f = fopen(TRACES "/aicb/microAllReduce.txt", "r");

	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	g = must_read(text);
	assert_int_equal(g->rank_count, 8);
	assert_int_equal(graph_uses(g, &uses, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(uses[0].kind, COLLECTIVE_ALL_REDUCE);
	assert_int_equal(uses[0].members, 8);
	assert_int_equal(uses[0].count, 2);
	assert_int_equal(uses[0].bytes, 16777216 + 67108864);
	assert_int_equal(graph_describe(&(struct graph_run_config){.graph = g, .chunks = 1}, &d), 0);
	assert_int_equal(d.left, 0);
	/* Forward 556,000 ns each; input, weight and update 1 ns each; all on one stream. */
	assert_int_equal(d.bound_ps, UINT64_C(1000) * 2 * (556000 + 3));
	free(uses);
	graph_free(g);
}

#define HEADER \
	"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 2 vpp: 1 ga: 1 all_gpus: 16 pp_comm: 100\n"

static void check_group(const struct graph *g, uint32_t node, const uint32_t *ranks, uint32_t count)
{
	const struct graph_group *of = &g->groups[g->nodes[node].peer];

	assert_int_equal(g->nodes[node].kind, GRAPH_COLLECTIVE);
	assert_int_equal(of->count, count);
	assert_memory_equal(&g->members[of->first], ranks, count * sizeof(*ranks));
}

TEST(groups_are_tensor_data_expert_and_the_rest)
{
	/* Rank 6 of 16: tensor position 0, data 3 of 4, stage 0. Its nodes begin with forward compute and collective. */
	static const struct {
		const char *forward, *weight;
		uint32_t ranks[4], count;
	} cases[] = {
		{"ALLREDUCE", "NONE", {6, 7}, 2},        {"ALLTOALL_EP", "NONE", {4, 6}, 2},
		{"ALLGATHER_DP_EP", "NONE", {2, 6}, 2},  {"NONE", "ALLREDUCE", {0, 2, 4, 6}, 4},
		{"NONE", "REDUCESCATTER_EP", {4, 6}, 2},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];
		struct graph *g;
		uint32_t node;

		snprintf(text, sizeof(text), HEADER "1\nlayer -1 10 %s 64 10 NONE 0 10 %s 64 1\n", cases[i].forward,
			 cases[i].weight);
		g = must_read(text);
		for (node = g->first_node[6]; g->nodes[node].kind != GRAPH_COLLECTIVE; node++)
			;
		check_group(g, node, cases[i].ranks, cases[i].count);
		graph_free(g);
	}
}

TEST(stages_wait_for_each_other)
{
	struct graph_description d;
	struct graph *g = must_read(HEADER "1\nlayer -1 10 NONE 0 20 NONE 0 40 NONE 0 1\n");

	assert_int_equal(graph_describe(&(struct graph_run_config){.graph = g, .chunks = 1}, &d), 0);
	assert_int_equal(d.nodes[GRAPH_SEND], 16);
	assert_int_equal(d.nodes[GRAPH_RECV], 16);
	assert_int_equal(d.bytes[GRAPH_SEND], 1600);
	assert_int_equal(d.left, 0);
	/* Forward twice; then the last stage's backward, and only then the first one's. */
	assert_int_equal(d.bound_ps, 1000 * (10 + 10 + 20 + 40 + 20 + 40 + 1));
	graph_free(g);
}

/* The weight gradient's compute goes beside the input gradient's collective, and its collective beside what follows. */
TEST(the_next_row_waits_for_the_input_gradient_alone)
{
	static const char text[] =
		"HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4\n2\n"
		"a -1 1 NONE 0 2 NONE 0 3 NONE 0 4\nb -1 5 NONE 0 6 ALLREDUCE 64 7 ALLREDUCE 64 8\n";
	struct graph *g = must_read(text);
	/* a and b forward; b input, its collective, weight, its collective, update; a input ... */
	static const uint32_t stream[] = {0, 0, 0, 1, 0, 2, 0, 0, 0, 0};

	assert_int_equal(g->nodes_of[0], 10);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(g->nodes[i].stream, stream[i]);
	assert_int_equal(g->first_edge[3] - g->first_edge[2], 2); /* b input: the collective, and weight */
	assert_int_equal(g->edges[g->first_edge[3]].node, 7);
	assert_int_equal(g->edges[g->first_edge[5]].node, 6); /* the collective of weights: the update alone */
	assert_int_equal(g->first_edge[6] - g->first_edge[5], 1);
	graph_free(g);
}

TEST(checkpoints_repeat_forward_rows)
{
	struct graph_description d;
	struct graph *g =
		must_read("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: 1 vpp: 1 ga: 1 "
			  "all_gpus: 1 checkpoints: 1 1 checkpoint_initiates: 1 3\n4\n"
			  "a -1 1 NONE 0 0 NONE 0 0 NONE 0 0\nb -1 10 NONE 0 0 NONE 0 0 NONE 0 0\n"
			  "c -1 100 NONE 0 0 NONE 0 0 NONE 0 0\nd -1 1000 NONE 0 0 NONE 0 0 NONE 0 0\n");

	assert_int_equal(graph_describe(&(struct graph_run_config){.graph = g, .chunks = 1}, &d), 0);
	assert_int_equal(d.bound_ps, 1000 * (1111 + 110));
	graph_free(g);
}

TEST(what_is_wrong_is_named_with_its_line)
{
#define OK "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4\n"
	static const struct {
		const char *text;
		uint32_t line;
		const char *says;
	} cases[] = {
		{"MICRO\n", 1, "'MICRO'; of AICB's workloads HYBRID_TRANSFORMER_FWD_IN_BCKWD and HYBRID_TRANSFORMER"},
		{"HYBRID_TRANSFORMER tp: 2\n", 1, "'tp:' in the header; allowed are model_parallel_NPU_group:"},
		{"HYBRID_TRANSFORMER model_parallel_NPU_group: 3 ep: 1 pp: 1 all_gpus: 4\n", 1,
		 "all_gpus 4 is no multiple of model_parallel_NPU_group 3 x pp 1"},
		{"HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 3 pp: 1 all_gpus: 4\n", 1,
		 "ep 3 does not divide the 2 ranks"},
		{"HYBRID_TRANSFORMER model_parallel_NPU_group: 2 all_gpus: 1152921504606846976\n", 1,
		 "for all_gpus; allowed are 0 to 1048576"},
		{OK, 2, "the text ends where the number of rows should be"},
		{OK "1000000\n", 2, "1000000 rows cannot be in this text"},
		{OK "2\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n                              \n", 5,
		 "the text ends behind 1 rows"},
		{OK "1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\nb -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n", 4,
		 "more rows than the 1 announced"},
		{OK "1\na -1 1 ALLSHARE 0 1 NONE 0 1 NONE 0 1\n", 3, "'ALLSHARE' for a collective; allowed are NONE"},
		{OK "1\na -1 1 ALLREDUCE_TP 0 1 NONE 0 1 NONE 0 1\n", 3, "'ALLREDUCE_TP' for a collective"},
		{OK "1\na -1 1 NONE -5 1 NONE 0 1 NONE 0 1\n", 3, "'-5' for a size in bytes"},
		{OK "1\na -1 1 NONE 0 1 NONE 0 1 NONE 0     \n", 3,
		 "the line ends where an update time in ns should be"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text_error err = {0};
		struct graph *g;

		assert_true(aicb_is(cases[i].text, strlen(cases[i].text)));
		assert_int_equal(aicb_read(cases[i].text, strlen(cases[i].text), &g, &err), -22);
		if (err.line != cases[i].line || !strstr(err.message, cases[i].says))
			fail_msg("case %zu: %u: %s", i, err.line, err.message);
	}
}
