/* SPDX-License-Identifier: BSD-2-Clause */
/* The links at each node, as one array, for walks over a topology. Private to src/net. */
#pragma once

#include <stdint.h>

#include "net/topology/topology.h"

struct topology_adjacent {
	/* Links at node n: links[first[n]] .. links[first[n + 1] - 1], in order of link number. */
	uint32_t *first;
	uint32_t *links;
};

/* 0 or -ENOMEM. The topology's links must join nodes that exist. */
int topology_adjacent_init(struct topology_adjacent *, const struct topology *);
void topology_adjacent_free(struct topology_adjacent *);

static inline uint32_t topology_link_other(const struct topology_link *l, uint32_t node)
{
	return l->a == node ? l->b : l->a;
}
