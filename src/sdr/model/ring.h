/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring all-reduce between data centres, of 2 * nodes - 2 rounds. In each round a node sends a
 * message to the next node. A node begins a round when it has ended the round before and has its
 * neighbour's message of that round.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sdr/model/completion.h"

struct model_ring {
	unsigned nodes;                /* >= 2 */
	struct model_message message;  /* of one round: the buffer / nodes */
	const struct model_code *code; /* NULL: selective repeat */
	const struct model_tail *tail; /* not NULL: parity over the tail, in place of both; chunks are packets */
	bool is_bound;                 /* what no scheme can beat, in place of all of these */
	double rto_s;
	/*
	 * The paper's rounds end when the sender knows that all has arrived. With this they end
	 * half a round trip earlier, when the receiver has it, and only the last one waits for its
	 * acknowledgement.
	 */
	bool receiver_gated;
};

/*
 * Runs `trials` all-reduces and writes how long each took, in ascending order. The time of each
 * message is drawn from the scheme's distribution; the same seed gives the same times.
 */
void model_ring_run(const struct model_ring *, uint64_t seed, double *times_s, unsigned trials);

/* The mean and the percentiles of `trials` ascending times; `extra` is 0. */
void model_time_of(const double *times_s, unsigned trials, struct model_time *);
