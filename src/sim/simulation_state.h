/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A run of a scenario, for the files that it is made of: simulation.c and simulation_finish.c.
 *
 * Private to src/sim.
 */
#pragma once

#include <stdint.h>

#include "sim/cc_trace.h"
#include "sim/host.h"
#include "sim/inside.h"
#include "sim/results.h"
#include "sim/scenario.h"
#include "sim/simulation.h"
#include "sim/simulation_flows.h"
#include "sim/simulation_parts.h"
#include "sim/simulation_rates.h"

struct simulation {
	const struct scenario *scenario;
	struct results *results;
	struct topology topology;
	struct subnet subnet; /* of topology.kind = subnet; its topology is that one */
	struct topology_paths *paths;
	struct network *network;
	struct cc_params cc;
	struct host_config host_config;
	struct sdr_config sdr;
	struct host **hosts;
	struct program *program; /* borrowed; NULL: there is none */
	struct workload *workload;
	struct inside *inside; /* NULL: nodes have no links inside */
	struct flows *flows;
	struct channel **idle; /* QPs that do nothing; idle_count of them */
	uint64_t idle_count;
	struct part_origin origins[WORKLOAD_PARTS_MAX]; /* by part */
	struct rates rates;
	uint64_t events_left;
	simulation_frame frame;
	void *frame_context;
	simulation_line line; /* NULL: there is no event log */
	void *line_context;
	struct cc_trace *trace; /* NULL: no flow is traced */
	uint32_t *port_link;    /* of each port of the results: 2 x link + end */
	uint16_t *port_number;  /* [2 x link + end]: which port of its node */
	uint64_t pauses_told;   /* PFC frames that the results know of */
};

/* Counts up to just before now: a window ends before the moment at its end. */
void simulation_end_window(struct simulation *, uint64_t now_ps);
