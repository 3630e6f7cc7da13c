/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Policies of switches that are not built in: which of the ports towards its destination a packet
 * takes, and which packets are marked. A policy is a few functions in a file of its own, handed to
 * network_create() in struct network_config; docs/simulator.md walks through one.
 *
 * A policy is called in the order of events. Its answer must depend on its arguments, its own state
 * and the generator alone, so that equal runs stay equal. State is zeroes at first; the network
 * owns its memory, and only the policy uses it. A policy keeps no argument beyond the call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/packet.h"

struct network;
struct prng;
struct sim_switch;

/*
 * A packet that has arrived completely in a switch, and the ports on its shortest paths: numbered 0
 * .. count - 1.
 */
struct routing_question {
	const struct network *network;
	const struct sim_switch *sw;
	uint64_t now_ps;
	uint32_t count; /* at least 2; changes when links fail and come back */
	uint32_t group; /* of hosts behind one switch, the destination's; below group_count */
	uint32_t group_count;
	uint32_t first;    /* the network's own */
	uint32_t hash;     /* of addresses and ports, with the switch's seed: all 32 bits */
	struct prng *prng; /* the switch's */
};

/* The load of a port: the bytes that wait, plus 1 if it is sending. */
uint64_t routing_load_bytes(const struct routing_question *, uint32_t port);
uint64_t routing_rate_bps(const struct routing_question *, uint32_t port);

struct routing_policy {
	size_t switch_bytes; /* of state, for each switch; 0: none */
	/* Returns the port's number, which is taken modulo count. */
	uint32_t (*choose)(const void *parameters, void *state, const struct routing_question *, const struct packet *);
	const void *parameters; /* the policy's, borrowed as long as the network lives */
};

/* A packet whose first bit leaves a switch's port now, and the queues behind it. */
struct marking_question {
	uint64_t now_ps;
	uint64_t rate_bps;    /* of the port */
	uint32_t class_bytes; /* that wait in the packet's class */
	uint32_t port_bytes;  /* ... in all of them */
	struct prng *prng;    /* the port's */
};

struct marking_policy {
	size_t port_bytes; /* of state, for each port of a switch; 0: none */
	/*
	 * Called for every packet, in addition to network_config.red. True: the packet is marked if
	 * it is ECN-capable.
	 */
	bool (*marks)(const void *parameters, void *state, const struct marking_question *, const struct packet *);
	const void *parameters;
};
