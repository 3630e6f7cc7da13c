/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A run turns a scenario into results, in slices of work, so that the caller can look at the clock
 * and at Ctrl-C between them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/results.h"
#include "sim/scenario.h"
#include "workload/program.h"

struct simulation;

enum simulation_state {
	SIMULATION_RUNS,  /* call again */
	SIMULATION_ENDED, /* done, or run.until or run.events came; results may be partial and then say why */
	SIMULATION_STUCK, /* flows that can never end, or begin: results are partial and say why */
	SIMULATION_FAILED /* an invariant does not hold, or no memory: results say why */
};

struct simulation_progress {
	uint64_t time_ps;
	uint64_t events, packet_hops;
	uint64_t flows_done, flows; /* flows: begun or known to begin */
};

/*
 * Borrows the scenario, with the text of its files, and the results, which are initialised. NULL:
 * refused, and why is a sentence; if it is about a key it begins with "section.key: ".
 */
struct simulation *simulation_create(const struct scenario *, struct results *, char *why, size_t why_bytes);
/* The same for a scenario with a workload that is this program, which is borrowed. */
struct simulation *simulation_create_for(const struct scenario *, struct program *, struct results *, char *why,
					 size_t why_bytes);

/*
 * A frame whose first bit a captured port sends, lent for the call: the bytes that exist (see
 * sim/frame.h), and its length on the wire. Times do not go backwards.
 */
typedef void (*simulation_frame)(void *context, const uint8_t *frame, size_t bytes, uint32_t length, uint64_t time_ps);

/*
 * Shows from now on every frame on the links of output.pcap_hosts and output.pcap_links, in both
 * directions. False: a host or link does not exist; why says so as in simulation_create().
 */
bool simulation_capture(struct simulation *, simulation_frame, void *context, char *why, size_t why_bytes);

/* A line of the event log (sim/event_log.h), which ends in a newline; lent for the call. */
typedef void (*simulation_line)(void *context, const char *line, size_t bytes);

/*
 * Reports every event from now on, without changing the run. To be called before the first
 * simulation_run().
 */
void simulation_log(struct simulation *, simulation_line, void *context);

/* Runs about so many events. */
enum simulation_state simulation_run(struct simulation *, uint64_t events);
/*
 * Runs until that time has come, with all that happens then, or the program has stopped, which both are SIMULATION_RUNS,
 * or to the end. It can be called after the end as well, if the program has sent or scheduled something since.
 */
enum simulation_state simulation_run_to(struct simulation *, uint64_t until_ps);

/* The time: at any time. */
uint64_t simulation_now_ps(const struct simulation *);
/* How far it is: any time between two steps. */
void simulation_progress(const struct simulation *, struct simulation_progress *);

/*
 * Puts the final numbers into the results, in any state of the run. Once. False: one of them is impossible, a
 * fault of the simulator; the results are then partial and say which.
 */
bool simulation_finish(struct simulation *);

/* Harmless on NULL. */
void simulation_destroy(struct simulation *);
