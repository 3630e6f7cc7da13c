/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accepted traces run as far as they can, with their collectives whole and as sends and receives, and
 * then end or do not end alike. The first byte says how many files there are; the length of each but the last stands before it.
 */
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_input.h"
#include "workload/chakra.h"
#include "workload/graph_describe.h"
#include "workload/graph_lower.h"

static void run(struct graph *g)
{
	struct graph_description whole, low;
	struct text_error err = {0};
	struct graph *lowered;
	struct graph_use *uses;
	uint32_t count;

	must(!graph_describe(&(struct graph_run_config){.graph = g, .chunks = 2}, &whole));
	must(!whole.left == !whole.why[0]);
	must(!graph_uses(g, &uses, &count));
	free(uses);
	if (graph_lower(g, COLLECTIVE_AUTO, 2, &lowered, &err)) {
		must(err.message[0]);
		return;
	}
	must(!graph_describe(&(struct graph_run_config){.graph = lowered, .chunks = 1}, &low));
	must(!low.nodes[GRAPH_COLLECTIVE]);
	must(!low.left == !whole.left);
	graph_free(lowered);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	uint32_t count = 1 + next_byte(&in) % 4;
	struct graph_file files[4];
	struct graph_fault fault = {0};
	struct graph *g;

	for (uint32_t i = 0; i < count; i++) {
		size_t bytes = i + 1 < count ? next_number(&in, 2) : in.size;

		if (bytes > in.size)
			bytes = in.size;
		files[i] = (struct graph_file){(const char *)in.data, bytes};
		in.data += bytes;
		in.size -= bytes;
	}
	if (chakra_read(files, count, &g, &fault)) {
		must(fault.error.message[0] && fault.file < count);
		return 0;
	}
	run(g);
	graph_free(g);
	return 0;
}
