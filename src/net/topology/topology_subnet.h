/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An InfiniBand subnet as its manager has set it up: which nodes there are, and what their tables say. `verbena fabric --save`
 * writes the text:
 *
 *   subnet HOSTS SWITCHES                hosts are the nodes 0 .. HOSTS-1, switches follow
 *   link NODE PORT NODE PORT
 *   forward SWITCH PORT ...              for each host the port towards it; -: none
 *   lanes NODE IN OUT VL ...             SLtoVL: the lanes of service levels 0 .. 15 from port to port; of a host, 0 0.
 *                                        15: packets are dropped. A map that is not given is the level modulo 8
 *   levels HOST SL ...                   of packets to each host
 *   arbitrate NODE PORT LIMIT N VL WEIGHT ... M VL WEIGHT ...   VL arbitration: N entries of high priority, whose limit is LIMIT, and M
 *                                        of low priority; of a host, port 0. A port without it has the scenario's weights
 *
 * The first line is the first; `#` begins a line that is not read.
 */
#pragma once

#include <stddef.h>

#include "net/topology/topology.h"
#include "net/vl_arbiter.h"

enum { SUBNET_NODES_MAX = 4096, SUBNET_PORTS_MAX = 256, SUBNET_LEVELS = 16, SUBNET_LANES = 8, SUBNET_LANE_DROPS = 15 };
#define SUBNET_NONE UINT32_MAX

struct subnet_lanes {
	uint32_t node, in_link, out_link; /* links: of a switch; in_link may be out_link */
	uint8_t vl[SUBNET_LEVELS];
};

struct subnet_arbitration {
	uint32_t node, link; /* link: of a switch */
	struct vl_tables tables;
};

struct subnet {
	struct topology topology;
	uint32_t *forwarding; /* [switch][host]: the link, or SUBNET_NONE */
	uint8_t *levels;      /* [source][destination] */
	struct subnet_lanes *lanes;
	uint32_t lane_count;
	struct subnet_arbitration *arbitrations;
	uint32_t arbitration_count;
};

/* Rates and delays of links, which the text has not. */
struct subnet_links {
	uint64_t host_rate_bps, host_delay_ps, fabric_rate_bps, fabric_delay_ps;
};

/* As topology_read_hpcc(); subnet_free() frees it. */
int subnet_read(struct subnet *, const struct subnet_links *, const char *text, size_t bytes, struct text_error *);
/* Safe on a zeroed struct. */
void subnet_free(struct subnet *);
