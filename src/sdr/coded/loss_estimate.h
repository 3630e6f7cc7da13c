/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many packets a link loses, estimated upwards: too high costs a little parity, too low a round trip. Older
 * packets count less; before the first one the estimate is one in a hundred.
 */
#pragma once

#include <stdint.h>

struct loss_estimate {
	double seen, lost, bursts; /* packets, of these lost, and in how many runs */
};

/* Nothing was counted. */
void loss_estimate_init(struct loss_estimate *);
/* bursts <= lost <= seen. */
void loss_estimate_add(struct loss_estimate *, uint32_t seen, uint32_t lost, uint32_t bursts);
/* The loss that the true one exceeds once in a hundred cases; 1e-5 .. 0.5. */
double loss_estimate_high(const struct loss_estimate *);
/* Lost packets in a row; 1 or more. */
double loss_estimate_burst(const struct loss_estimate *);
