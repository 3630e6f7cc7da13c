/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Topologies by name. Nodes are numbered as they are indexed: hosts from 0, then switches, tier by
 * tier.
 *
 *   star          `hosts` on one switch
 *   dumbbell      `hosts` on each of two switches, 0 .. hosts-1 left, the others right; one
 *                 fabric link
 *   parking-lot   `bottlenecks` fabric links in a row of switches; host 0 on the first switch,
 *                 host 1 on the last, and for the bottleneck i host 2+2i before it and host
 *                 3+2i behind it
 *   leaf-spine    `leaves` x `hosts_per_leaf` hosts; leaf l has `uplinks` fabric links, to the
 *                 spines l, l + 1, .. modulo `spines` (0 uplinks: one to each spine)
 *   fat-tree      k^3/4 hosts, k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores;
 *                 the cores (k/2)i .. (k/2)i + k/2 - 1 are linked to the i-th aggregation
 *                 switch of every pod
 *   hpcc          5 pods of 4 ToR and 4 aggregation switches, 16 cores, 16 hosts a ToR: 320
 *                 hosts. By default 100 Gbit/s at hosts, four times the hosts' rate above, 1 us
 *   rail          `hosts` nodes of `nics` NICs; every NIC is a host (node x nics + rail); a
 *                 leaf for each rail and group of `hosts_per_leaf` nodes (0: all nodes); each
 *                 leaf linked to each spine
 *   dragonfly     `groups` (0: leaves x uplinks + 1) of `leaves` switches, each with a link to each
 *                 other one of its group, `hosts_per_leaf` hosts and `uplinks` links to other
 *                 groups. Each two groups are joined by leaves x uplinks / (groups - 1) links,
 *                 rounded down: link l of group g to the n-th other one is number l (groups - 1)
 *                 + n of g's, and its switch has `uplinks` of these numbers, in order
 *   two-dc        two fabrics of the kind `site_kind` and of these same parameters; in each,
 *                 `borders` switches linked to every switch of its highest tier; long link i
 *                 joins the borders i mod `borders`. Hosts of the first data centre come first
 *   file          read from `text`: the format of topology_hpcc.h
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/topology/topology.h"

/* The kind's own delay: that of the host links, which is 1 us by default. */
#define TOPOLOGY_DELAY_DEFAULT UINT64_MAX

struct topology_long_link {
	uint64_t rate_bps; /* 0: as the fabric */
	uint64_t delay_ps; /* one way; 5 us a km of fibre */
	uint32_t loss_ppb;
};

struct topology_params {
	uint32_t hosts;
	uint32_t bottlenecks;
	uint32_t leaves, hosts_per_leaf, spines, uplinks;
	uint32_t k;
	uint32_t nics;
	uint32_t groups;

	uint64_t rate_bps; /* of host links; 0: 100 Gbit/s */
	uint64_t delay_ps;
	uint64_t fabric_rate_bps; /* between switches; 0: the kind's, else as host links */
	uint64_t fabric_delay_ps; /* default: as host links */
	uint32_t loss_ppb;        /* of every link but the long ones */

	const char *site_kind;                       /* two-dc; NULL: leaf-spine */
	uint32_t borders;                            /* 0: 1 */
	uint64_t border_rate_bps;                    /* 0: the fabric's */
	const struct topology_long_link *long_links; /* borrowed during the call */
	uint32_t long_link_count;

	const char *text; /* file; borrowed during the call */
	size_t text_bytes;
};

/* All zero but the delays, which are TOPOLOGY_DELAY_DEFAULT. */
struct topology_params topology_params_default(void);

/* The kinds' names, ended by NULL. */
extern const char *const topology_kinds[];

/*
 * Fills in *t, which the caller frees with topology_free, and has checked it (topology_check). 0;
 * -EINVAL with the reason in *err; -ENOMEM. On failure *t is untouched.
 */
int topology_build(struct topology *t, const char *kind, const struct topology_params *, struct text_error *err);
