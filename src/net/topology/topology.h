/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes and the full-duplex links between them, as plain data. Hosts are nodes 0 .. host_count - 1,
 * in rising order of their numbers; switches follow. Hosts do not forward.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/text.h"

enum { TOPOLOGY_NODES_MAX = 1 << 20, TOPOLOGY_LINKS_MAX = 1 << 22 };

/* With these, the delay and the serialisation of any path fit in 64 bits. */
#define TOPOLOGY_RATE_BPS_MIN 1000000ull       /* 1 Mbit/s */
#define TOPOLOGY_RATE_BPS_MAX 8000000000000ull /* 8 Tbit/s: a byte takes 1 ps */
#define TOPOLOGY_DELAY_PS_MAX 1000000000000ull /* 1 s */
#define TOPOLOGY_LOSS_PPB_MAX 1000000000u

struct topology_node {
	uint32_t number; /* as the user's file or the builder calls it; unique */
	uint8_t tier;    /* 0: host, 1: first switch above hosts, ... */
	uint8_t site;    /* data centre; 0 where there is one */
};

struct topology_link {
	uint32_t a, b;     /* nodes */
	uint64_t rate_bps; /* each direction; > 0 */
	uint64_t delay_ps; /* one way */
	uint32_t loss_ppb; /* packets lost of 10^9, each direction, independently */
};

struct topology {
	struct topology_node *nodes;
	struct topology_link *links;
	uint32_t host_count;
	uint32_t node_count; /* hosts and switches */
	uint32_t link_count;
	/* Of a dragonfly: switches of each group, one group behind the other; each has hosts. 0: it is none. */
	uint32_t group_switches;
};

/*
 * Whether a simulation can run on it: sizes, rates, delays and losses within the limits above, no
 * link from a node to itself, hosts in rising order of unique numbers, and one connected set of
 * switches that every host has a link to (or two hosts and a link between them). 0, -EINVAL with
 * the reason in *err, or -ENOMEM.
 */
int topology_check(const struct topology *, struct text_error *err);

/* Sets every node's tier: hosts 0, a switch one more than the nearest host's distance less one. */
int topology_set_tiers(struct topology *);

/* The host that the user's file calls `number`. */
bool topology_host(const struct topology *, uint32_t number, uint32_t *host);

/* Frees nodes and links, not the struct itself. Safe on a zeroed struct. */
void topology_free(struct topology *);
