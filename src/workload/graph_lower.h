/* SPDX-License-Identifier: BSD-2-Clause */
/* Graphs without collectives, for formats that have none. */
#pragma once

#include "workload/graph.h"

/*
 * A copy in which sends and receives stand for the collectives, between a calc of no time at which the collective
 * begins and one at which it ends, on a stream behind the others. Their tags are above those of the graph. A collective
 * of a stream waits for the one before it in the file, unless edges of that rank go against the file's order.
 *
 * 0 with the finished copy in *out, which the caller frees; -EINVAL with the reason; -ENOMEM.
 */
int graph_lower(const struct graph *, enum collective_algorithm, uint32_t chunks, struct graph **out,
		struct text_error *);
