/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of a run: from the workload that says what is to be sent, through channels, into the
 * results.
 */
#ifndef SIM_SIMULATION_FLOWS_H
#define SIM_SIMULATION_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/channel.h"
#include "sim/results.h"
#include "net/topology/topology_path.h"
#include "workload/workload.h"

struct flows;

struct flows_config {
	struct network *network;        /* these four are borrowed until flows_destroy() */
	struct host **hosts;
	struct topology_paths *paths;
	struct workload *workload;
	struct results *results;        /* likewise; gets a record for each message */
	uint32_t piece_bytes;           /* of channel_open() */
	uint64_t switch_latency_ps;     /* these two for what a message would take alone */
	uint64_t drain_bps;             /* of receivers; 0: they do not wait */
	const uint32_t *part_workload;  /* of each part of the workload, what the results call it */
	const uint8_t *workload_class;  /* of each of those, the class of its data */
	bool named;                     /* flows_flow_of() will be asked */
	/* Called as it happens, with the number that results have for the flow; NULL: nobody looks on. */
	void (*posted)(void *ctx, uint32_t flow, const struct channel *);
	void (*ended)(void *ctx, uint32_t flow, const struct channel *, bool good);
	void *ctx;
};

/* NULL: no memory. */
struct flows *flows_create(const struct flows_config *);
/* Closes what channels are open. Harmless on NULL. */
void flows_destroy(struct flows *);

/* For struct host_config, with the flows as context. */
void flows_completed(void *flows, struct channel *, uint64_t wr_id, uint64_t bytes, bool good);
void flows_received(void *flows, uint32_t imm);

/*
 * For struct host_config, with the flows as context: of data the flow of its PSN, of an answer the flow that
 * its queue pair is at.
 */
uint32_t flows_flow_of(void *flows, uint32_t to, uint32_t qpn, uint32_t psn, bool data);

/* When the next message is to be posted; NETWORK_NEVER_PS: only if another is done before. */
uint64_t flows_next_ps(const struct flows *);
/* Posts what is due at network_now_ps(). */
void flows_post_due(struct flows *);

/* Lets the results know how much of the messages under way has arrived by now, which is after the start. */
void flows_sample(struct flows *);

struct flows_count {
	uint64_t begun, done;
	uint64_t failed;    /* of done: their QP broke */
	bool out_of_memory; /* messages could not be begun, or not recorded */
	bool ended;         /* nothing is under way and nothing will begin */
};

void flows_count(const struct flows *, struct flows_count *);

#endif
