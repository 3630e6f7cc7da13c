/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ranks compute and send, and what waits for what: nodes, edges between nodes of one rank, and groups of ranks.
 * Readers of trace formats build a graph, graph_run.h runs it, goal.h writes it.
 *
 *   calc        takes `amount` ps
 *   send        `amount` bytes to `peer`; done when they are acknowledged, or at once if they are few (graph_run.h)
 *   recv        done when the message has arrived. The n-th receive with a source and a tag takes the n-th message
 *               from there with that tag; the sizes are not compared
 *   collective  `amount` bytes among the group `peer`, as collective.h has it. The n-th collective of a group at one of
 *               its ranks belongs with the n-th at each other one
 *
 * A node is ready when all nodes that it requires have ended, and all that it irequires have started. A rank has
 * streams: each runs one node at a time, ready nodes in the order in which they were added. A node of GRAPH_NO_STREAM
 * starts when it is ready.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/text.h"
#include "workload/collective.h"

enum {
	GRAPH_RANKS_MAX = 1 << 20,
	GRAPH_NODES_MAX = 1 << 28,
	GRAPH_EDGES_MAX = 1 << 30,
	GRAPH_STREAMS_MAX = 64,
	GRAPH_NO_STREAM = UINT8_MAX
};

#define GRAPH_NO_NODE     UINT32_MAX
#define GRAPH_BYTES_MAX   (1ull << 44)
#define GRAPH_CALC_PS_MAX (1ull << 56) /* 20 hours */

enum graph_kind { GRAPH_CALC, GRAPH_SEND, GRAPH_RECV, GRAPH_COLLECTIVE, GRAPH_KINDS };

struct graph_node {
	uint64_t amount; /* calc: ps; others: bytes */
	uint32_t rank;
	uint32_t peer;   /* send: to; recv: from; collective: group */
	uint32_t tag;    /* of a collective: how many of its group came before at this rank; set by graph_finish() */
	uint32_t root;   /* of a collective: position in the group */
	uint32_t source; /* where it stands in its file; graph.source_word says what that counts */
	uint32_t name;   /* of graph_name(); 0: none */
	uint8_t kind;    /* enum graph_kind */
	uint8_t stream;  /* or GRAPH_NO_STREAM */
	uint8_t collective, algorithm; /* of collective.h */
};

/* The node `node` waits for the end of `needs`, or for its start. */
struct graph_edge {
	uint32_t node;
	uint32_t needs : 31;
	uint32_t start : 1;
};

struct graph_group {
	uint32_t first, count; /* of graph.members */
};

/* Read-only but for the calls below. */
struct graph {
	uint32_t rank_count;
	uint32_t stream_count;    /* of each rank */
	struct graph_node *nodes; /* those of a rank stand together */
	uint32_t node_count, node_room;
	uint32_t *first_node, *nodes_of; /* of each rank */
	struct graph_edge *edges;        /* after graph_finish() in order of `needs` */
	uint32_t edge_count, edge_room;
	uint32_t *first_edge; /* of each node, and one more; after graph_finish() */
	struct graph_group *groups;
	uint32_t group_count, group_room;
	uint32_t *members; /* ranks */
	uint32_t member_count, member_room;
	char *names; /* NUL behind each */
	uint32_t name_bytes, name_room;
	const char *source_word; /* "line", "id"; static */
	uint64_t skipped;        /* fields and attributes of its file that mean nothing here */
	uint32_t holders;
};

/* Of so many ranks, 1 .. GRAPH_RANKS_MAX, without nodes. NULL: no memory. */
struct graph *graph_create(uint32_t ranks);
/* One more holder; the last graph_free() frees. Harmless on NULL. */
struct graph *graph_hold(struct graph *);
void graph_free(struct graph *);

/*
 * Adds a node, which is valid: rank, peer, group and stream exist, amounts are within the limits. All nodes of a rank
 * are added before those of the next one. 0, -ENOMEM, or -E2BIG.
 */
int graph_add(struct graph *, const struct graph_node *, uint32_t *number);
/* The node waits for another one of its rank. 0, -ENOMEM or -E2BIG. */
int graph_require(struct graph *, uint32_t node, uint32_t needs, bool its_start);
/* Ranks that differ; *number is the group's. 0 or -ENOMEM. */
int graph_group(struct graph *, const uint32_t *ranks, uint32_t count, uint32_t *number);
/* A copy of the characters, other than printable ones as '?'. 0 or -ENOMEM. */
int graph_name(struct graph *, const char *at, size_t bytes, uint32_t *name);

/*
 * Once, after the last node and edge: orders the edges, numbers the collectives and checks that those of a group that
 * belong together are alike. 0; -EINVAL with the reason; -ENOMEM.
 */
int graph_finish(struct graph *, struct text_error *);

/* The node's number among those of its rank. */
static inline uint32_t graph_number(const struct graph *g, uint32_t node)
{
	return node - g->first_node[g->nodes[node].rank];
}

/* The rank's position in the group; the group's count: it has none. */
uint32_t graph_position(const struct graph *, uint32_t group, uint32_t rank);

/* "recv 4096 from 5 tag 2", NUL-terminated and cut to what fits. Returns its length. */
size_t graph_node_text(const struct graph *, uint32_t node, char *text, size_t bytes);
