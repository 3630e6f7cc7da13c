/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The time of a message that is alone in the network: the store-and-forward pipeline of its packets
 * along the links, every fixed delay on the way, and the way back of the answer to the last packet.
 * Waiting for a window, a pace or a fetched state is not part of it.
 */
#pragma once

#include <stdint.h>

#include "sim/host.h"

enum { IDEAL_LINKS_MAX = 64 };

struct ideal_way {
	const uint64_t *rates_bps; /* of the links in order, `links` of them: 1 .. IDEAL_LINKS_MAX */
	uint32_t links;
	uint64_t delay_ps;   /* of all wires together, one way */
	uint64_t latency_ps; /* of each switch; there is one between two links */
	uint64_t read_bps;   /* at which the sender reads payload; 0: unlimited */
	uint64_t drain_bps;  /* at which the receiver's buffer drains; 0: at once */
	uint64_t hosts_ps;   /* delays of hosts: after the post, before the ACK, before
				the completion */
};

/* From the post to the sender's completion. The same links lead back. */
uint64_t ideal_ps(const struct ideal_way *, const struct host_message *, uint32_t mtu_bytes);
/* The part of it that the answer takes on the wires and in switches. */
uint64_t ideal_answer_ps(const struct ideal_way *, const struct host_message *);
