/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The worked examples of docs/simulator.md: a marking policy, a routing policy and a congestion
 * control from outside the simulator, each in a file of its own.
 */
#pragma once

#include <stdint.h>

#include "cc/params.h"
#include "net/policy.h"

/* phantom.c */
struct phantom {
	uint32_t drain_ppb;       /* of the port's rate */
	uint32_t threshold_bytes; /* a longer phantom queue marks */
};

struct marking_policy phantom_policy(const struct phantom *); /* borrows it as long as the policy is used */

/* sticky.c */
struct sticky {
	uint32_t margin_bytes; /* how much shorter another queue must be */
};

struct routing_policy sticky_policy(const struct sticky *); /* likewise */

/* nudge.c */
struct nudge {
	struct cc_params params; /* first nudge_params(), then what all algorithms have */
	uint32_t cut_q16;        /* of each marked packet, in 1/65536 */
};

/* Fills it in; the nic borrows &n->params. */
void nudge_params(struct nudge *n);
