/* SPDX-License-Identifier: BSD-2-Clause */
/* An accepted GOAL text is what it is written as, to the byte from the second time on, and runs as far as it can. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_input.h"
#include "workload/goal.h"
#include "workload/graph_describe.h"

enum { RANKS_MAX = 4096 }; /* more are accepted, and take long */

struct memory {
	char *text;
	size_t len, room;
};

static bool keep(void *ctx, const char *text, size_t bytes)
{
	struct memory *m = ctx;

	if (m->len + bytes > m->room) {
		m->room = 2 * (m->len + bytes);
		m->text = realloc(m->text, m->room);
		assert(m->text);
	}
	memcpy(m->text + m->len, text, bytes);
	m->len += bytes;
	return true;
}

static struct memory write_one(const struct graph *g)
{
	struct memory m = {0};

	must(!goal_write(g, keep, &m));
	return m;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text_error err = {0};
	struct graph *g, *again;
	struct memory first, second;
	struct graph_description d;

	if (goal_read((const char *)data, size, &g, &err)) {
		must(err.message[0] && strlen(err.message) < sizeof(err.message));
		return 0;
	}
	if (g->rank_count <= RANKS_MAX) {
		must(!graph_describe(&(struct graph_run_config){.graph = g, .chunks = 1}, &d));
		must(!d.left == !d.why[0]);
		first = write_one(g);
		must(!goal_read(first.text, first.len, &again, &err));
		must(again->node_count == g->node_count && again->edge_count == g->edge_count);
		second = write_one(again);
		must(first.len == second.len && !memcmp(first.text, second.text, first.len));
		graph_free(again);
		free(first.text);
		free(second.text);
	}
	graph_free(g);
	return 0;
}
