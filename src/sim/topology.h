/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is connected to whom: nodes and full-duplex links, as plain data. Hosts are nodes 0 ..
 * host_count - 1, switches follow.
 */
#ifndef SIM_TOPOLOGY_H
#define SIM_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TOPOLOGY_NODES_MAX = 1 << 20,
	TOPOLOGY_LINKS_MAX = 1 << 22
};

struct topology_node {
	uint32_t number; /* as the user's file or the builder calls it; unique */
	uint8_t tier;    /* 0: host, 1: first switch above hosts, ... */
	uint8_t site;    /* data centre; 0 where there is one */
};

struct topology_link {
	uint32_t a, b;      /* nodes */
	uint64_t rate_bps;  /* each direction; > 0 */
	uint64_t delay_ps;  /* one way */
	uint32_t loss_ppb;  /* packets lost of 10^9, each direction, independently */
};

struct topology {
	struct topology_node *nodes;
	struct topology_link *links;
	uint32_t host_count;
	uint32_t node_count; /* hosts and switches */
	uint32_t link_count;
};

#endif
