/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which scenarios may run on several cores, and the network of such a run. Results are the same on any number of them.
 * Private to src/sim.
 */
#pragma once

#include <stdbool.h>

#include "sim/simulation_state.h"

/* Divides the network, whose links and receivers are set up, among scenario.cores of them. */
bool cores_divide(struct simulation *, struct why);
/* The workload is there: false if its messages wait for each other. */
bool cores_take(const struct simulation *, struct why);
