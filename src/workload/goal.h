/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GOAL text, the schedules of LogGOPSim and ATLAHS:
 *
 *     num_ranks 2
 *     rank 0 {
 *     a: calc 1000                          ns, on cpu 0
 *     b: send 4096b to 1 tag 7 cpu 0 nic 0  the tag is 0 if there is none
 *     b requires a
 *     }
 *     rank 1 {
 *     c: recv 4096b from 0 tag 7
 *     d: calc 500 cpu 1
 *     d irequires c
 *     }
 *
 * Statements end with their lines; comments are those of C++. A label may stand behind its use. A cpu is a stream
 * (graph.h); sends and receives hold none, since a NIC takes all work at once: their cpu and nic are read and have no
 * effect. A source or tag of -1, which is any, is refused.
 */
#pragma once

#include <stddef.h>

#include "workload/graph.h"

/* 0 with the finished graph in *out, which the caller frees; -EINVAL with the line and the reason; -ENOMEM. */
int goal_read(const char *text, size_t bytes, struct graph **out, struct text_error *);

/* Called with pieces of the text, in order; false: the rest is not wanted. */
typedef bool (*goal_sink)(void *ctx, const char *text, size_t bytes);

/*
 * Writes a finished graph without collectives (graph_lower.h). Times are rounded to ns. 0, or -EIO: the sink refused.
 */
int goal_write(const struct graph *, goal_sink, void *ctx);
