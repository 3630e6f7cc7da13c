/* SPDX-License-Identifier: BSD-2-Clause */
/* Chakra traces that others made (tests/traces), and messages that are written here. */
#include <stdio.h>

#include "support/test.h"
#include "workload/chakra.h"

/* ---- messages that are written here -------------------------------------------------------------------------------- */

struct trace {
	uint8_t bytes[4096];
	size_t len;
};

static void put(struct trace *t, uint8_t byte)
{
	assert_true(t->len < sizeof(t->bytes));
	t->bytes[t->len++] = byte;
}

static void put_varint(struct trace *t, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		put(t, (uint8_t)(v | 0x80));
	put(t, (uint8_t)v);
}

static void put_number(struct trace *t, uint32_t field, uint64_t v)
{
	put_varint(t, field << 3);
	put_varint(t, v);
}

static void put_bytes(struct trace *t, uint32_t field, const void *at, size_t len)
{
	put_varint(t, field << 3 | 2);
	put_varint(t, len);
	for (size_t i = 0; i < len; i++)
		put(t, ((const uint8_t *)at)[i]);
}

static void put_message(struct trace *t, const struct trace *m)
{
	put_varint(t, m->len);
	for (size_t i = 0; i < m->len; i++)
		put(t, m->bytes[i]);
}

static void begin(struct trace *t, const char *version)
{
	struct trace m = {.len = 0};

	t->len = 0;
	put_bytes(&m, 1, version, strlen(version));
	put_message(t, &m);
}

static void put_attribute(struct trace *m, const char *name, uint32_t field, uint64_t value)
{
	struct trace a = {.len = 0};

	put_bytes(&a, 1, name, strlen(name));
	put_number(&a, field, value);
	put_bytes(m, 10, a.bytes, a.len);
}

static void put_text_attribute(struct trace *m, const char *name, const char *value)
{
	struct trace a = {.len = 0};

	put_bytes(&a, 1, name, strlen(name));
	put_bytes(&a, 29, value, strlen(value));
	put_bytes(m, 10, a.bytes, a.len);
}

static struct trace node(uint64_t id, uint64_t type)
{
	struct trace m = {.len = 0};

	put_number(&m, 1, id);
	put_number(&m, 3, type);
	return m;
}

static int read_traces(struct trace *t, uint32_t count, struct graph **g, struct graph_fault *fault)
{
	struct graph_file files[8];

	for (uint32_t i = 0; i < count; i++)
		files[i] = (struct graph_file){(const char *)t[i].bytes, t[i].len};
	return graph_read(files, count, g, fault);
}

static struct graph *must_read(struct trace *t, uint32_t count)
{
	struct graph_fault fault = {0};
	struct graph *g;

	if (read_traces(t, count, &g, &fault))
		fail_msg("file %u: %u: %s", fault.file, fault.error.line, fault.error.message);
	return g;
}

static struct trace t[8];

TEST(nodes_become_nodes_in_the_order_of_their_ids)
{
	struct graph *g;
	struct trace m;

	begin(&t[0], "0.0.4");
	m = node(9, 4);
	put_number(&m, 7, 5);            /* 5 us */
	put_bytes(&m, 2, "matmul\n", 7); /* its name */
	put_number(&m, 5, 3);
	put_bytes(&m, 8, "x", 1); /* inputs, which mean nothing here */
	put_message(&t[0], &m);
	m = node(3, 5);
	put_attribute(&m, "comm_size", 13, 4096);
	put_attribute(&m, "comm_dst", 7, 1);
	put_attribute(&m, "comm_tag", 11, 77);
	put_attribute(&m, "comm_priority", 7, 1);
	put_message(&t[0], &m);
	m = node(4, 4);
	put_attribute(&m, "is_cpu_op", 27, 1);
	put_attribute(&m, "runtime", 9, 2);
	put_bytes(&m, 4, "\x03\x09", 2); /* packed */
	put_message(&t[0], &m);
	begin(&t[1], "0.0.4");
	m = node(1, 6);
	put_attribute(&m, "comm_size", 9, 4096);
	put_attribute(&m, "comm_src", 9, 0);
	put_attribute(&m, "comm_tag", 9, 77);
	put_message(&t[1], &m);
	g = must_read(t, 2);
	assert_int_equal(g->rank_count, 2);
	assert_int_equal(g->node_count, 4);
	assert_int_equal(g->nodes[0].kind, GRAPH_SEND);
	assert_int_equal(g->nodes[0].peer, 1);
	assert_int_equal(g->nodes[0].tag, 77);
	assert_int_equal(g->nodes[0].amount, 4096);
	assert_int_equal(g->nodes[0].source, 3);
	assert_int_equal(g->nodes[1].kind, GRAPH_CALC);
	assert_int_equal(g->nodes[1].amount, 2000000);
	assert_int_equal(g->nodes[1].stream, 2);
	assert_int_equal(g->nodes[2].amount, 5000000);
	assert_int_equal(g->nodes[2].stream, 0);
	assert_string_equal(g->names + g->nodes[2].name, "matmul?");
	assert_int_equal(g->nodes[3].kind, GRAPH_RECV);
	assert_int_equal(g->nodes[3].rank, 1);
	assert_int_equal(g->edge_count, 3);
	assert_int_equal(g->first_edge[1] - g->first_edge[0], 2);
	assert_int_equal(g->skipped, 2);
	graph_free(g);
}

TEST(groups_are_those_who_name_them)
{
	struct graph *g;

	for (uint32_t i = 0; i < 4; i++) {
		struct trace m = node(1, 7);

		begin(&t[i], "0.0.4");
		put_attribute(&m, "comm_type", 9, 2);
		put_attribute(&m, "comm_size", 9, 100);
		put_text_attribute(&m, "pg_name", i % 2 ? "odd" : "even");
		put_message(&t[i], &m);
	}
	g = must_read(t, 4);
	assert_int_equal(g->group_count, 3);
	for (uint32_t i = 0; i < 4; i++) {
		const struct graph_group *of = &g->groups[g->nodes[i].peer];

		assert_int_equal(of->count, 2);
		assert_int_equal(g->members[of->first], i % 2);
		assert_int_equal(g->members[of->first + 1], i % 2 + 2);
		assert_int_equal(g->nodes[i].collective, COLLECTIVE_ALL_GATHER);
		assert_int_equal(g->nodes[i].amount, 200);
	}
	graph_free(g);
}

static void add_collective(struct trace *to, uint64_t id, uint64_t type, uint64_t bytes)
{
	struct trace m = node(id, 7);

	put_attribute(&m, "comm_type", 9, type);
	put_attribute(&m, "comm_size", 9, bytes);
	put_message(to, &m);
}

TEST(what_is_wrong_is_named_with_its_message)
{
	static const char *const says[] = {
		"schema version '0.0.3'; allowed is 0.0.4",
		"two nodes have the id 5",
		"node 5 waits for node 6, which the file has not",
		"node 5 has no attribute comm_dst",
		"comm_dst of node 5 is 1; allowed are 0 to 0",
		"comm_size of node 5 is 1152921504606846976; allowed are 0 to 17592186044416",
		"comm_type of node 5 is 10; allowed are 0 to 9",
		"the file ends within a message",
		"a node is not protobuf",
		"node 5 takes 18446744073709551615 us; allowed are 0 to",
		"an attribute is not protobuf",
	};

	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
		struct graph_fault fault = {0};
		struct trace m = node(5, i >= 3 && i <= 5 ? 5 : 4);
		struct graph *g;

		begin(&t[0], i ? "0.0.4" : "0.0.3");
		if (i == 1)
			put_message(&t[0], &m);
		if (i == 2)
			put_number(&m, 4, 6);
		if (i >= 3 && i <= 5)
			put_attribute(&m, "comm_size", 9, i == 5 ? 1ull << 60 : 1);
		if (i == 4 || i == 5)
			put_attribute(&m, "comm_dst", 9, i == 4);
		if (i == 8)
			put(&m, 0x0b); /* a group */
		if (i == 9)
			put_number(&m, 7, UINT64_MAX);
		if (i == 10)
			put_bytes(&m, 10, "\x0a\x09", 2);
		if (i == 6)
			add_collective(&t[0], 5, 10, 1);
		else
			put_message(&t[0], &m);
		t[0].len -= i == 7;
		assert_int_equal(read_traces(t, 1, &g, &fault), -22);
		if (!strstr(fault.error.message, says[i]))
			fail_msg("case %zu: %u: %s", i, fault.error.line, fault.error.message);
		assert_int_equal(fault.error.line, i == 0 ? 1 : i == 1 ? 3 : 2);
	}
}

TEST(ranks_that_do_not_agree_are_refused)
{
	struct graph_fault fault = {0};
	struct graph *g;

	for (uint32_t i = 0; i < 2; i++) {
		begin(&t[i], "0.0.4");
		add_collective(&t[i], 1, 0, 100 + i);
	}
	assert_int_equal(read_traces(t, 2, &g, &fault), -22);
	assert_non_null(strstr(fault.error.message, "they must be alike"));
	assert_int_equal(fault.file, 1);
}

TEST(a_rank_without_a_file_is_named)
{
	struct graph_file files[3] = {{"\x02\x0a", 2}, {NULL, 0}, {"", 0}};
	struct graph_fault fault = {0};
	struct graph *g;

	assert_int_equal(graph_read(files, 3, &g, &fault), -22);
	assert_int_equal(fault.file, 1);
	assert_string_equal(fault.error.message, "rank 1 has no file, and there are files of later ones");
}

/* ---- traces that others made ----------------------------------------------------------------------------------------- */

static void read_sample(struct trace *to, const char *kind, uint32_t ranks, uint32_t rank)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), TRACES "/chakra/%s/%unpus_1MB/%s.%u.et", kind, ranks, kind, rank);
	f = fopen(path, "rb");
	if (!f)
		fail_msg("%s cannot be read", path);
	to->len = fread(to->bytes, 1, sizeof(to->bytes), f);
	fclose(f);
}

TEST(samples_are_taken_as_they_are)
{
	static const struct {
		const char *name;
		enum collective_kind kind;
	} samples[] = {{"all_reduce", COLLECTIVE_ALL_REDUCE},
		       {"all_gather", COLLECTIVE_ALL_GATHER},
		       {"all_to_all", COLLECTIVE_ALL_TO_ALL},
		       {"reduce_scatter", COLLECTIVE_REDUCE_SCATTER}};

	for (size_t i = 0; i < 4; i++) {
		for (uint32_t ranks = 4; ranks <= 8; ranks += 4) {
			struct graph *g;
			char name[64];

			for (uint32_t r = 0; r < ranks; r++)
				read_sample(&t[r], samples[i].name, ranks, r);
			g = must_read(t, ranks);
			assert_int_equal(g->node_count, ranks);
			assert_int_equal(g->skipped, 0);
			for (uint32_t r = 0; r < ranks; r++) {
				assert_int_equal(g->nodes[r].kind, GRAPH_COLLECTIVE);
				assert_int_equal(g->nodes[r].collective, samples[i].kind);
				assert_int_equal(g->nodes[r].amount,
						 (samples[i].kind == COLLECTIVE_ALL_GATHER ? ranks : 1) * 1048576);
				assert_int_equal(g->groups[g->nodes[r].peer].count, ranks);
			}
			snprintf(name, sizeof(name), "%s_%unpus_1MB", samples[i].name, ranks);
			assert_string_equal(g->names + g->nodes[0].name, name);
			graph_free(g);
		}
	}
}
