/* SPDX-License-Identifier: BSD-2-Clause */
/* Small topologies for tests and benchmarks of the simulated network. */
#pragma once

#include <stdlib.h>

#include "net/topology/topology.h"

static inline void tree_new(struct topology *t, uint32_t hosts, uint32_t nodes, uint32_t links)
{
	*t = (struct topology){.host_count = hosts, .node_count = nodes};
	t->nodes = calloc(nodes, sizeof(*t->nodes));
	t->links = calloc(links ? links : 1, sizeof(*t->links));
	if (!t->nodes || !t->links)
		abort();
	for (uint32_t i = 0; i < nodes; i++) {
		t->nodes[i].number = i;
		t->nodes[i].tier = i >= hosts;
	}
}

static inline void tree_link(struct topology *t, uint32_t a, uint32_t b, uint64_t rate_bps, uint64_t delay_ps)
{
	t->links[t->link_count++] = (struct topology_link){.a = a, .b = b, .rate_bps = rate_bps, .delay_ps = delay_ps};
}

static inline void tree_free(struct topology *t)
{
	free(t->nodes);
	free(t->links);
}

static inline void tree_star(struct topology *t, uint32_t hosts, uint64_t rate_bps, uint64_t delay_ps)
{
	tree_new(t, hosts, hosts + 1, hosts);
	for (uint32_t i = 0; i < hosts; i++)
		tree_link(t, i, hosts, rate_bps, delay_ps);
}

/*
 * Each leaf has `hosts` hosts and a link to each spine. Hosts of one leaf have neighbouring
 * numbers.
 */
static inline void tree_leaf_spine(struct topology *t, uint32_t leaves, uint32_t hosts, uint32_t spines,
				   uint64_t rate_bps, uint64_t up_rate_bps, uint64_t delay_ps)
{
	uint32_t n = leaves * hosts;

	tree_new(t, n, n + leaves + spines, n + leaves * spines);
	for (uint32_t i = 0; i < n; i++)
		tree_link(t, i, n + i / hosts, rate_bps, delay_ps);
	for (uint32_t l = 0; l < leaves; l++) {
		for (uint32_t s = 0; s < spines; s++)
			tree_link(t, n + l, n + leaves + s, up_rate_bps, delay_ps);
	}
	for (uint32_t s = 0; s < spines; s++)
		t->nodes[n + leaves + s].tier = 2;
}

/* k pods of k/2 edge and k/2 aggregation switches, k^2/4 cores, k^3/4 hosts. */
static inline void tree_fat(struct topology *t, uint32_t k, uint64_t rate_bps, uint64_t delay_ps)
{
	uint32_t half = k / 2, hosts = k * half * half, edges = hosts, aggs = edges + k * half;
	uint32_t cores = aggs + k * half;

	tree_new(t, hosts, cores + half * half, 3 * hosts);
	for (uint32_t h = 0; h < hosts; h++)
		tree_link(t, h, edges + h / half, rate_bps, delay_ps);
	for (uint32_t pod = 0; pod < k; pod++) {
		for (uint32_t e = 0; e < half; e++) {
			for (uint32_t a = 0; a < half; a++)
				tree_link(t, edges + pod * half + e, aggs + pod * half + a, rate_bps, delay_ps);
		}
		for (uint32_t a = 0; a < half; a++) {
			for (uint32_t c = 0; c < half; c++)
				tree_link(t, aggs + pod * half + a, cores + a * half + c, rate_bps, delay_ps);
		}
	}
	for (uint32_t i = aggs; i < t->node_count; i++)
		t->nodes[i].tier = i < cores ? 2 : 3;
}
