/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A graph, run: which nodes start and end when. The caller has the clock and the network:
 *
 *   begin      once, then and after each call below: while graph_run_take(), send the message now
 *   sent       its sender knows all of the message acknowledged
 *   received   all of it has arrived; sent and received come in either order, once each
 *   expire     when graph_run_deadline() has come
 *
 * Nothing is random. A rank's collective is planned when it starts and is gone when it has ended, so memory is that of
 * the nodes and of what runs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workload/graph.h"

#define GRAPH_NEVER_PS UINT64_MAX

/* From one time up to another, what a rank computes takes so many parts of 10^9 of its time. */
struct graph_slow {
	uint32_t rank;
	uint64_t from_ps, to_ps; /* GRAPH_NEVER_PS: to the end */
	uint64_t factor_ppb;
};

struct graph_run_config {
	struct graph *graph;                 /* finished; held until graph_run_free() */
	uint64_t eager_bytes;                /* a send of no more is done at once */
	uint32_t chunks;                     /* of collectives, 1 .. COLLECTIVE_CHUNKS_MAX */
	enum collective_algorithm algorithm; /* of those that have none of their own */
	/* In order of their times; those of a rank do not overlap. Held by the caller. */
	const struct graph_slow *slow;
	uint32_t slow_count;
	bool no_streams; /* nodes start when they are ready */
};

struct graph_message {
	uint64_t number;   /* unique among those under way */
	uint64_t bytes;    /* 1 or more: one without any is sent as a byte */
	uint32_t src, dst; /* ranks, which differ */
};

struct graph_span {
	uint64_t begin_ps, end_ps; /* GRAPH_NEVER_PS: it has not started, or ended */
};

struct graph_run;

/* NULL: no memory. */
struct graph_run *graph_run_create(const struct graph_run_config *);
/* Harmless on NULL. */
void graph_run_free(struct graph_run *);

void graph_run_begin(struct graph_run *, uint64_t now_ps);
bool graph_run_take(struct graph_run *, struct graph_message *);
void graph_run_sent(struct graph_run *, uint64_t number, uint64_t now_ps);
void graph_run_received(struct graph_run *, uint64_t number, uint64_t now_ps);
/* The end of the next calc; GRAPH_NEVER_PS: none runs. */
uint64_t graph_run_deadline(const struct graph_run *);
void graph_run_expire(struct graph_run *, uint64_t now_ps);

/* How many nodes have not ended. */
uint32_t graph_run_left(const struct graph_run *);
/* There was no memory to go on. */
bool graph_run_failed(const struct graph_run *);
/* Of each node; lent until graph_run_free(). */
const struct graph_span *graph_run_spans(const struct graph_run *);

/*
 * What the first node that has not ended waits for, once nothing is under way: "rank 3 node 17 (recv 4096 from 5 tag 2)
 * waits for ...", NUL-terminated and cut to what fits.
 */
void graph_run_why(const struct graph_run *, char *text, size_t bytes);
