/* SPDX-License-Identifier: BSD-2-Clause */
/* A running graph, for the files that it is made of. Private to src/workload. */
#pragma once

#include "workload/agenda.h"
#include "workload/graph_match.h"
#include "workload/graph_run.h"

enum graph_state { GRAPH_WAITS, GRAPH_READY, GRAPH_RUNS, GRAPH_DONE };

/*
 * A number of a node or, of a collective that runs at a rank, of an op of its plan: the act's slot + 1 in the high half
 * and the op in the low one; the high half of a node is 0.
 */
enum graph_what { GRAPH_IS_READY, GRAPH_HAS_STARTED, GRAPH_HAS_ENDED };

struct graph_todo {
	uint64_t of;
	enum graph_what what;
};

/* A queue in order, in an array that goes round; a power of two. */
struct graph_fifo {
	void *items;
	uint32_t first, count, room;
};

/* A rank's part in a collective, while it runs. */
struct graph_act {
	struct collective_plan plan;
	uint32_t node; /* GRAPH_NO_NODE: the slot is free */
	uint32_t position;
	uint32_t left;    /* ops that have not ended */
	uint32_t reports; /* still to come for its messages */
	uint8_t *waits;   /* of each op */
	uint32_t *first;  /* of each op: the first entry of who waits for it, + 1 */
	uint32_t *next;   /* of each entry; entry 3i + k: op i waits for needs[k], or begun */
	uint32_t free_next;
};

struct graph_stream {
	uint32_t running; /* node + 1; 0: none */
	uint32_t ready;   /* the root of a pairing heap, node + 1 */
	bool dirty;       /* in run.dirty */
};

struct graph_run {
	struct graph_run_config c;
	struct graph *g;
	uint32_t *waits; /* of each node: what it waits for */
	uint8_t *state;  /* enum graph_state */
	struct graph_span *spans;
	uint32_t *child, *sibling;    /* of the heaps, node + 1 */
	struct graph_stream *streams; /* rank x stream_count + stream */
	struct agenda calcs;          /* that run; one for each stream at most, or each node without streams */
	struct graph_fifo todo, out, dirty;
	struct graph_act **acts;
	uint32_t act_count, act_room, act_free; /* slot + 1 */
	struct match match;
	uint64_t now_ps;
	uint32_t left;
	bool failed;
};
