/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in a graph, and how long it takes at least. */
#pragma once

#include "workload/graph_run.h"

struct graph_description {
	uint64_t nodes[GRAPH_KINDS];
	uint64_t bytes[GRAPH_KINDS]; /* of calcs: ps */
	uint64_t edges;
	uint64_t calc_ps_most; /* of one rank, the one that has most */
	uint32_t ranks_empty;  /* without a node */
	/*
	 * With a network in which messages take no time: until the last node has ended, and the same if each rank could
	 * compute any number of nodes at a time, which is the longest chain of calcs. Of a graph that does not end,
	 * until nothing more happens.
	 */
	uint64_t bound_ps, chain_ps;
	uint32_t left; /* nodes that never end */
	char why[256]; /* then, what the first one waits for */
};

/* The graph of the configuration is finished. 0 or -ENOMEM. */
int graph_describe(const struct graph_run_config *, struct graph_description *);

/* When its last node ends if it begins at start_ps and messages take no time; less, if it does not end. 0 or -ENOMEM. */
int graph_end_alone(const struct graph_run_config *, uint64_t start_ps, uint64_t *end_ps);

/* Collectives of one kind among groups of one size. */
struct graph_use {
	uint32_t kind, members; /* enum collective_kind */
	uint64_t count;         /* of collectives; those that some members lack count in part, rounded up */
	uint64_t bytes;         /* S of all of them */
};

/* *uses, which the caller frees, in order of kind and members; how many in *count. 0 or -ENOMEM. */
int graph_uses(const struct graph *, struct graph_use **uses, uint32_t *count);
