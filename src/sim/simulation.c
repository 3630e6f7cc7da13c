/* SPDX-License-Identifier: BSD-2-Clause */
/* A simulation of nothing yet: it refuses every scenario, and says so. */
#include "sim/simulation.h"

#include <stdio.h>

struct simulation *simulation_create(const struct scenario *s, struct results *r, char *why,
				     size_t why_bytes)
{
	snprintf(why, why_bytes, "this build has no simulator");
	return NULL;
}

enum simulation_state simulation_run(struct simulation *s, uint64_t events)
{
	return SIMULATION_FAILED;
}

void simulation_progress(const struct simulation *s, struct simulation_progress *p)
{
}

void simulation_finish(struct simulation *s)
{
}

void simulation_destroy(struct simulation *s)
{
}
