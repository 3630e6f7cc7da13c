/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each collective of a run could reach at best over this network, with its links that are down or slow: the
 * longer of two times,
 *
 *   - what its bytes take over the cut that limits them most (net/topology/topology_cut.h);
 *   - its longest chain of messages that wait for each other, where each is alone in the network and its links
 *     between switches are as fast as the hosts' (a message may take several ways).
 *
 * Both are lower bounds for the messages of that algorithm. Links that change during the run have the best of their
 * rates.
 *
 * Private to src/sim.
 */
#pragma once

#include <stdbool.h>

#include "sim/simulation_state.h"

/* Sets possible_ps and limit of the results' collectives that are done. Without memory some have none. */
void possible_find(struct simulation *);
