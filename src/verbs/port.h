/* SPDX-License-Identifier: BSD-2-Clause */
/* How a port's state and speed are told, by verbs and in files. */
#pragma once

#include <stdint.h>

#include "engine/engine.h"

struct port_state {
	uint8_t state, phys_state;                /* by IBTA's tables 155 ff. */
	const char *state_text, *phys_state_text; /* as in the kernel's files */
};

/* Never NULL; static. */
const struct port_state *port_state(const struct engine_port *);

struct port_rate {
	uint64_t bps_max;
	uint8_t speed, width; /* as in struct ibv_port_attr */
	const char *text;     /* as in the kernel's file "rate" */
};

/* As Linux's ib_get_eth_speed(); 0: unknown, which is the fastest that it told of when it was new. Never NULL; static.
 */
const struct port_rate *port_rate(uint64_t bps);
