/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An experiment without a scenario file: a topology, a network, hosts with the nic that ships, and
 * one message each from some hosts to others.
 */
#pragma once

#include "sim/channel.h"
#include "net/topology/topology_build.h"

struct experiment {
	/* To be set before experiment_run(). */
	const char *kind; /* of topology_build() */
	struct topology_params topology;
	struct network_config network;
	struct host_config host;
	uint64_t bytes;                                /* of each message */
	uint32_t (*to)(uint32_t from, uint32_t hosts); /* the host to send to; itself: none */
	uint32_t watched_link;                         /* its queue towards link.a is watched */
	/* The results. */
	uint32_t sent, done;
	uint64_t last_ps;
	uint64_t marked_packets; /* at the watched port, as are these */
	uint32_t queue_bytes_max;
	uint64_t time_ps, short_ps; /* ... of which its queue was below 4 KiB for so long */
	uint64_t retransmits;       /* everywhere */

	struct network *net;
};

/* A star of a hundred hosts at 100 Gbit/s that speak RoCEv2, 1024 bytes a packet, without congestion control. */
void experiment_init(struct experiment *);
/* Runs until all messages have arrived. False: the network was refused, or a second was not enough. */
bool experiment_run(struct experiment *);
