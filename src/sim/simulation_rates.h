/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast each host is, what a network of such hosts could do at best, and whether a run's figures
 * are possible: a higher figure would be a fault of the simulator.
 *
 * Private to src/sim.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/network.h"
#include "sim/results.h"
#include "sim/scenario.h"
#include "net/topology/topology.h"
#include "workload/workload.h"

struct rates {
	uint64_t *host_bps; /* *owned*; of each host's link, as the topology has it */
	uint32_t hosts;
	uint64_t least_bps, most_bps;
	bool inside; /* nodes have links inside, so that collectives may be faster than NICs */
};

/* 0 or -ENOMEM. The caller frees with rates_free(), which is harmless on zeroes. */
int rates_read(struct rates *, const struct network *, uint32_t hosts);
void rates_free(struct rates *);

/* What a part of the workload is in the scenario. */
struct part_origin {
	uint32_t workload;
	uint32_t round; /* of it, from 0 */
	uint32_t qp;    /* of the queue pairs between two hosts, which share a round's bytes */
};

/* What so many bits of payload take at that rate, of which headers take their part. */
uint64_t rates_time_ps(unsigned __int128 bits, uint64_t bps, uint32_t header_share_ppb);

/*
 * Sets the times of all collectives: from the first message's start to the last one's completion. Once, after the
 * last flow. `origins` is by part.
 */
void rates_collectives(const struct rates *, const struct workload *, const struct part_origin *origins,
		       struct results *);

/* The rates of the hosts that flows end at, together; 0: no memory. */
uint64_t rates_of_receivers(const struct rates *, const struct results *);

/*
 * Checks that no port sent, no flow arrived and no collective ended sooner than links allow. False:
 * results.partial and partial_why say which one did.
 */
bool rates_judge(const struct rates *, const struct scenario *, const struct topology *, const struct network *,
		 struct results *);
