/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The environment of an engine whose program runs in simulated time (lockstep/lockstep.h). Time stands while a thread of
 * the program runs. When all are asleep, the engine's thread gives the simulator the turn, and gets it back with packets
 * that have arrived, or when the time is there until which something here waits.
 *
 * Private to src/engine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/env.h"

/* Whether this process runs in simulated time. */
bool env_is_simulated(void);
/* Makes it, for the one device that there may be: *env is the engine's until it closes it. 0, or a negative errno with a
 * sentence in why. */
int env_simulated_open(struct engine_env **env, unsigned device, char *why, size_t why_bytes);
