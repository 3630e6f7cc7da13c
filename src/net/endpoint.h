/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contract between network and host: sending is pulled, receiving is pushed. No call re-enters:
 * a request that a host makes inside one of its own calls takes effect after that call has
 * returned, at the same time.
 */
#pragma once

#include <stdint.h>

#include "net/packet.h"

struct network;

struct endpoint_ops {
	/*
	 * The next packet to put on the wire, now, from the network's store (network_packets());
	 * its class is one of the bits of allowed_classes, which excludes those that PFC has
	 * paused. The network takes it. Called when the host's port is idle. NULL: nothing now; the
	 * network calls again only after network_kick(), or after a class was resumed.
	 */
	struct packet *(*pull)(void *host, uint32_t allowed_classes, uint64_t now_ps);
	/* Takes a packet that has arrived completely. */
	void (*arrive)(void *host, struct packet *, uint64_t now_ps);
	/* The time of network_set_timer() has come; the timer is off until it is set again. */
	void (*timer)(void *host, uint64_t now_ps);
};
