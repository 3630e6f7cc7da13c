/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of a run: from the workload, through channels, into the results. Private to src/sim. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/channel.h"
#include "sim/inside.h"
#include "sim/results.h"
#include "sim/sdr_line.h"
#include "sim/simulation_rates.h"
#include "net/topology/topology_path.h"
#include "workload/workload.h"

struct flows;

struct flows_config {
	struct network *network; /* these four are borrowed until flows_destroy() */
	struct host **hosts;
	struct topology_paths *paths;
	struct workload *workload;
	struct results *results;           /* likewise; gets a record for each message */
	struct inside *inside;             /* likewise; NULL: nodes have no links inside */
	bool pxn;                          /* messages to other rails go by the ranks of these rails */
	uint32_t piece_bytes;              /* of channel_open() */
	uint32_t parts;                    /* of the network, if it is divided; else 0 */
	uint64_t switch_latency_ps;        /* these two for the ideal time of a message */
	uint64_t drain_bps;                /* of receivers; 0: they do not wait */
	const struct part_origin *origins; /* by part of the workload */
	bool named;                        /* flows_flow_of() will be asked */
	const struct sdr_config *sdr;      /* messages go by lines of SDR; NULL: by channels */
	/*
	 * Called at the time of the event, with the flow's number in the results, and NULL for what goes without a
	 * channel; may be NULL.
	 */
	void (*posted)(void *ctx, uint32_t flow, const struct channel *);
	void (*ended)(void *ctx, uint32_t flow, const struct channel *, bool good);
	void *ctx;
};

/* NULL: no memory. */
struct flows *flows_create(const struct flows_config *);
/* Closes the open channels. Harmless on NULL. */
void flows_destroy(struct flows *);

/* For struct host_config, with the flows as context. */
void flows_completed(void *flows, struct channel *, uint64_t wr_id, uint64_t bytes, bool good);
void flows_received(void *flows, uint32_t imm);

/*
 * For struct network_cores, with the flows as context. The workload must be one whose messages do not wait for others,
 * and go by channels.
 */
bool flows_apart(void *flows, uint64_t end_ps);

/* For struct sdr_config, likewise. */
void flows_line_sent(void *flows, struct sdr_message *, bool good);
void flows_line_received(void *flows, struct sdr_message *);

/*
 * For struct host_config, with the flows as context: the flow of a data packet's PSN, or the flow that an
 * answer's queue pair is working on.
 */
uint32_t flows_flow_of(void *flows, uint32_t to, uint32_t qpn, uint32_t psn, bool data);

/*
 * When a message arrives at the receiving program, and when the sending one knows that, after its post, if it is alone
 * in a network whose links between switches are no slower than those of its hosts. 0: not known.
 */
void flows_alone(const struct flows *, const struct message *, uint64_t *arrives_ps, uint64_t *acked_ps);

/*
 * When to call flows_post_due(); NETWORK_NEVER_PS: not before a message is done. If that makes it earlier than was
 * returned last, the network stops.
 */
uint64_t flows_next_ps(struct flows *);
/* Posts what is due at network_now_ps(), and ends calcs that are. */
void flows_post_due(struct flows *);

/* Adds to the results what has arrived of the messages under way. */
void flows_sample(struct flows *);

struct flows_count {
	uint64_t begun, done;
	uint64_t failed;    /* of those done: their QP broke */
	bool out_of_memory; /* there was no memory to begin or record a message */
	bool ended;         /* nothing is under way and nothing will begin */
};

/* Counts them by state. */
void flows_count(const struct flows *, struct flows_count *);
