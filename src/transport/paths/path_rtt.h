/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round trips of a path, and what follows from them: its timeout, the time that it gets for reordering, and
 * what the pair may have in flight.
 */
#ifndef TRANSPORT_PATHS_PATH_RTT_H
#define TRANSPORT_PATHS_PATH_RTT_H

#include <stdint.h>

#include "transport/paths/pair.h"

/* One was measured; it is not 0. */
void path_rtt_sample(const struct transport_config *, struct pair *, uint32_t path, uint64_t rtt_ns);
/* RTO of a path, before back-off. */
uint64_t path_rto_ns(const struct transport_config *, const struct path *);

/* It was sent again in vain: the first copy was only late. */
void path_was_late(struct pair *, uint32_t path, uint64_t late_ns, uint64_t now_ns);
/* If it has reordered nothing for long, it is taken for one that does not. */
void path_reo_expire(struct path *, uint64_t now_ns);

/*
 * What congestion control is told: once a round trip, the least that was measured in it. A queue that stands
 * delays every packet; a host that did not run for a while, ours or the peer's, only some. 0: not now.
 */
uint64_t path_rtt_round_ns(struct path *, uint64_t rtt_ns, uint64_t now_ns);
/*
 * By how much a path is longer than the shortest of the pair. Where the base RTT is told, it is one for all
 * paths, and what a longer link takes would be a queue that never goes; so congestion control is told of round
 * trips without it (our choice). A queue that all paths share is in the least of each, and so in no detour. One
 * that a path has alone is taken for a detour for as long as it never drains, up to a fourth of the shortest. What was
 * least is forgotten after one to two whiles, as routes change.
 */
uint64_t path_detour_ns(const struct pair *, struct path *, uint64_t rtt_ns, uint64_t now_ns);

#endif
