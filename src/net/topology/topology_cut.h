/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cut of a network that limits given messages most. The hosts on one side of a cut send what they have for the
 * other side, and receive what that has for them, over the links between the two: no routing, spreading or congestion
 * control is faster. Which links these are says the maximum flow between the sides' hosts (Ford and Fulkerson: the
 * least cut). The sides that are tried:
 *
 *   - each host;
 *   - the hosts at one switch, those that the lower tiers alone connect (a pod), those of a data centre;
 *   - both sides of the least cuts between any two switches with hosts (Gusfield's tree), for topologies without
 *     tiers, where there are not more than CUTS_SWITCHES_MAX such switches.
 *
 * So another cut may be slower: the time that follows is a lower bound.
 */
#pragma once

#include <stdint.h>

#include "net/topology/topology.h"

enum { CUTS_SWITCHES_MAX = 256, CUTS_GROUPS_MAX = 2048 };

struct topology_cut {
	unsigned __int128 bytes; /* that cross it, in the direction that has more */
	uint64_t bps;            /* of its links together, each way; 0: there is no cut that anything crosses */
	uint32_t hosts;          /* on its side */
	uint32_t node;           /* one of these, the first */
};

/* The hosts' attachments, and the messages between them. */
struct topology_cuts;

/*
 * Borrows the topology and the rates of its links, which may differ from the topology's (0: down), until topology_cuts_free().
 * NULL: no memory.
 */
struct topology_cuts *topology_cuts_create(const struct topology *, const uint64_t *link_bps);
void topology_cuts_free(struct topology_cuts *);
/* A message of so many bytes, counted with its headers or without, but all alike. */
void topology_cuts_add(struct topology_cuts *, uint32_t src, uint32_t dst, uint64_t bytes);
/* The cut whose bytes take longest. 0 or -ENOMEM. */
int topology_cuts_slowest(struct topology_cuts *, struct topology_cut *);
