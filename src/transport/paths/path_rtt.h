/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round trips of a path, and what is derived from them: its timeout, its reordering time, and the bytes that
 * the pair may have in flight.
 *
 * Private to src/transport.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/paths/pair.h"

/* A round trip was measured; neither it nor the network's part of it is 0. */
void path_rtt_sample(const struct transport_config *, struct pair *, uint32_t path, uint64_t rtt_ns,
		     uint64_t network_ns);
/* RTO of a path, before back-off. */
uint64_t path_rto_ns(const struct transport_config *, const struct path *);

/* Where a round trip is longer, waiting for the first acknowledgement costs more than a queue would. */
#define PATH_LONG_NS UINT64_C(25000)

/*
 * Whether a base RTT, 0 if it is unknown, is longer than a data centre's. New paths of such a pair begin with their
 * whole window, and those of others with a flowlet (veRoCE 9, 3).
 */
static inline bool path_rtt_is_long(uint64_t rtt_ns)
{
	return rtt_ns > PATH_LONG_NS;
}

/*
 * A packet and its answer, that carried no data, took that long. Before a round trip was measured this shortens the
 * timeout, and may show that the pair is a long one, no more: the packets of a first flight may wait for each other.
 */
void path_rtt_expect(const struct transport_config *, struct pair *, uint64_t rtt_ns);

/* A packet was retransmitted although the first copy was only late. */
void path_was_late(struct pair *, uint32_t path, uint64_t late_ns, uint64_t now_ns);
/* Lowers the reordering time of a path that has not reordered for a while. */
void path_reo_expire(struct path *, uint64_t now_ns);

enum { STARVED_NS_MIN = 1000000 };

/* The period of least round trips; as Swift's for a base RTT that it measures. */
#define PATH_LEAST_WHILE_NS UINT64_C(5000000000)

/*
 * The stamps told how much of a round trip the hosts took. A NIC takes some microseconds. A process that takes
 * STARVED_NS_MIN or more waited for a processor, and is likely to do so again: for a second the pair counts as starved.
 */
void path_rtt_told(struct pair *, uint64_t hosts_ns, uint64_t now_ns);
static inline bool pair_is_starved(const struct pair *pair, uint64_t now_ns)
{
	return now_ns < pair->starved_until_ns;
}

/*
 * The round trip for congestion control: once in each round trip, the sample of it with the shortest time in the
 * network, in *network_ns, and with its time at the hosts. A standing queue delays every packet; a host that did not
 * run for a while, ours or the peer's, delays only some. False: none is due now.
 *
 * Of a starved pair all packets of a round trip may have waited, as the round trip itself consists of waits. A thread
 * may also lose its processor between a stamp and the system call that sends, which looks like time in the network. So
 * there a round trip counts only if the network took little more than in the shortest of several, and the time at the
 * hosts does not count. A queue is answered when it has stood for so long; no window grows meanwhile.
 */
bool path_rtt_round(struct path *, bool starved, uint64_t *network_ns, uint64_t *hosts_ns, uint64_t now_ns);
/*
 * By how much a path is longer than the shortest of the pair. A configured base RTT is one for all paths, so a longer
 * link would look like a queue that never drains; therefore congestion control gets round trips without the detour
 * (our choice). A queue that all paths share is in the least round trip of each, and so in no detour. A queue of one
 * path alone counts as a detour as long as it never drains, up to a fourth of the shortest. The least values are
 * forgotten after one to two periods, as routes change.
 */
uint64_t path_detour_ns(const struct pair *, struct path *, uint64_t rtt_ns, uint64_t now_ns);
