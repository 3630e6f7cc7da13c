/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns a scenario into a topology, a network's configuration, a host's, and a workload. Each
 * function fails with a sentence that begins with the key that caused it ("switch.buffer: ...").
 *
 * Private to src/sim.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/host.h"
#include "sim/inside.h"
#include "net/network.h"
#include "sim/scenario.h"
#include "sim/simulation_rates.h"
#include "net/topology/topology.h"
#include "net/topology/topology_subnet.h"
#include "workload/workload.h"

struct why {
	char *text; /* a sentence, NUL-terminated */
	size_t bytes;
};

/* Writes the sentence; false, so that a caller can return it. */
__attribute__((format(printf, 2, 3))) bool refuse(struct why, const char *format, ...);

/* For topology.kind = subnet; the caller frees it with subnet_free(). */
bool parts_subnet(const struct scenario *, struct subnet *out, struct why);

/* For all other kinds. The caller frees it with topology_free(). */
bool parts_topology(const struct scenario *, struct topology *out, struct why);

/* The links inside nodes, which the caller frees; NULL in *out: there are none. */
bool parts_inside(const struct scenario *, const struct topology *, struct inside **out, struct why);

/* *buffers: of each node, borrowed by *out and the caller's to free; NULL where all are alike. */
bool parts_network(const struct scenario *, const struct topology *, struct network_config *out, uint64_t **buffers,
		   struct why);

/* For parts_network(): links with credits. */
bool parts_credits(const struct scenario *, struct network_config *, struct why);
/* Says who waits for whom, by the topology's numbers of nodes; cut to what fits. */
void parts_deadlock_text(const struct network_deadlock *, const struct topology *, char *text, size_t bytes);

/* Sets up links that lose, are slow or down, now or later; after network_create(). */
bool parts_links(const struct scenario *, const struct topology *, struct network *, struct why);

/* The best rate that each link has during the run, 0 if it is always down; the caller frees. NULL: no memory. */
uint64_t *parts_link_rates(const struct scenario *, const struct topology *);

/* Sets up slow receivers; after network_create(). */
bool parts_receivers(const struct scenario *, struct network *, uint32_t host_count, struct why);

/*
 * *out points to *cc; longest_rtt_ps is the topology's, longest_queue_ps the longest wait of a packet in
 * switches without loss.
 */
bool parts_host(const struct scenario *, const struct topology *, uint64_t longest_rtt_ps, uint64_t longest_queue_ps,
		struct cc_params *cc, struct host_config *out, struct why);

/* Orders the hosts of a graph by enum scenario_placement; they exist. False: no memory. */
bool parts_place(unsigned place, const struct topology *, uint64_t seed, uint32_t *hosts, uint32_t count);

/* The classes of the data of all workloads, a mask. */
uint8_t parts_classes(const struct scenario *, const struct topology *);

/*
 * Fills in origins[i] for each part i of the workload; there is room for WORKLOAD_PARTS_MAX. The program is that of a
 * workload of this kind; NULL: there is none.
 */
bool parts_workload(const struct scenario *, const struct topology *, const struct rates *, struct program *,
		    struct workload *, struct part_origin *origins, struct why);
