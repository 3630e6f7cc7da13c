/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The empty network between two hosts: base RTT, hops and the narrowest link, along a path of the
 * fewest links (in a dragonfly: that cross between groups once), and among those the one with the shortest base RTT.
 */
#pragma once

#include <stdint.h>

#include "net/topology/topology.h"

struct topology_path {
	uint32_t hops;         /* links */
	uint32_t rates;        /* the sequence of links' rates; the paths' own */
	uint64_t delay_ps;     /* one way, wire only */
	uint64_t serialise_ps; /* of one packet on every link of the way, one way */
	uint64_t rate_bps;     /* of the narrowest link */
};

/*
 * Of a whole path, one switch between each two links: as the HPCC simulator counts it, the wire both ways and the
 * serialisation of a packet one way, and besides, which that simulator has not, each switch's latency both ways. The
 * answer's serialisation is not included.
 */
static inline uint64_t topology_path_base_rtt_ps(const struct topology_path *p, uint64_t switch_latency_ps)
{
	uint64_t switches = p->hops ? p->hops - 1 : 0;

	return 2 * (p->delay_ps + switches * switch_latency_ps) + p->serialise_ps;
}

struct topology_paths;

/*
 * Borrows the topology, which must have passed topology_check, until topology_paths_free. A packet
 * has `packet_bytes` bytes on the wire (the HPCC simulator counts its payload, 1000). NULL: no
 * memory.
 */
struct topology_paths *topology_paths_create(const struct topology *, uint32_t packet_bytes);
void topology_paths_free(struct topology_paths *);

/*
 * Between two hosts that differ. The first call for a host's switch walks the topology and keeps
 * the results (32 bytes for each switch with hosts); later calls are a look-up. 0 or -ENOMEM;
 * -EINVAL: no such hosts.
 */
int topology_paths_get(struct topology_paths *, uint32_t src, uint32_t dst, struct topology_path *out);

/*
 * The links of that path in order, from src to dst. Returns their number, the path's `hops`; the
 * first `room` are in links[]; -EINVAL as above. Walks the topology each time.
 */
int64_t topology_paths_links(struct topology_paths *, uint32_t src, uint32_t dst, uint32_t *links, uint32_t room);

enum { TOPOLOGY_HOPS_MAX = 64 };

/*
 * The rates of that path's links in order, from src to dst. Returns their number, the path's
 * `hops`; those beyond TOPOLOGY_HOPS_MAX are not in rates_bps[]. -EINVAL as above. A look-up after
 * the first call.
 */
int64_t topology_paths_rates(struct topology_paths *, uint32_t src, uint32_t dst,
			     uint64_t rates_bps[TOPOLOGY_HOPS_MAX]);

/* The longest base RTT between any two hosts, which HPCC and others take as T; keeps nothing. */
int topology_paths_longest_rtt_ps(struct topology_paths *, uint64_t switch_latency_ps, uint64_t *out);

/* A BDP at that RTT: rate x RTT / 8. */
static inline uint64_t topology_bdp_bytes(uint64_t rate_bps, uint64_t rtt_ps)
{
	return (uint64_t)((unsigned __int128)rate_bps * rtt_ps / 8 / 1000000000000ull);
}
