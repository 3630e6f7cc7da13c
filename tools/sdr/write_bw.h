/* SPDX-License-Identifier: BSD-2-Clause */
/* What sdr_write_bw was asked to do. */
#ifndef TOOLS_SDR_WRITE_BW_H
#define TOOLS_SDR_WRITE_BW_H

#include <stdbool.h>
#include <stdint.h>

/* Settings that the client sends and the server takes over, in the order of the wire. */
enum plan_number {
	PLAN_SIZE,
	PLAN_ITERS,
	PLAN_WARMUP,
	PLAN_IN_FLIGHT,
	PLAN_MTU,
	PLAN_CHUNK,
	PLAN_CHANNELS,
	PLAN_GENERATIONS,
	PLAN_RC,
	PLAN_VERIFY,
	PLAN_SCHEME, /* 0: nothing is repaired; else one more than an enum scheme */
	PLAN_FILL,
	PLAN_NUMBERS
};

struct options {
	const char *host; /* NULL: server */
	const char *device;
	uint64_t port, ib_port, gid_index, workers, batch, rate_mbps;
	uint64_t plan[PLAN_NUMBERS];
};

/* Ends the program if they make no sense. */
void options_read(struct options *, int argc, char **argv);
/* Whether the numbers of a plan are within what options_read() takes. */
bool plan_valid(const uint64_t *plan);

#endif
