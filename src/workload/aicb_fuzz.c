/* SPDX-License-Identifier: BSD-2-Clause */
/* An accepted workload of AICB ends on every rank. */
#include "support/fuzz_input.h"
#include "workload/aicb.h"
#include "workload/graph_describe.h"

enum { NODES_MAX = 1 << 16, RANKS_MAX = 256 }; /* more are accepted, and take long */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text_error err = {0};
	struct graph_description d;
	struct graph *g;

	if (aicb_read((const char *)data, size, &g, &err)) {
		must(err.message[0]);
		return 0;
	}
	if (g->node_count <= NODES_MAX && g->rank_count <= RANKS_MAX) {
		must(!graph_describe(&(struct graph_run_config){.graph = g, .chunks = 1}, &d));
		must(!d.left);
	}
	graph_free(g);
	return 0;
}
