/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which pieces of a message get parities, and how many. What was sent more than a round trip before the end is repaired
 * meanwhile, at no cost in time; so only the tail is coded, the pieces on whose loss no word can come before the last one
 * has left.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sdr/coded/ec_layout.h"
#include "sdr/ec/code.h"

/* Parities of any group that is planned here, and groups of a block. */
enum { CODED_PARITY_MAX = 127, CODED_DEPTH_MAX = 64 };

/* The link, as far as it is known. */
struct coded_link {
	uint64_t rtt_ns;
	uint64_t piece_ns; /* what a piece takes to leave; at least 1 */
	double loss;       /* of a piece, 0 .. 1 */
	double burst;      /* lost pieces in a row, on average; at least 1 */
	double feared; /* the loss that all parities there are of a group must do for; 0: those of the plan are all */
};

/* A plan whose message needs a second round with a chance of at most CODED_FAIL, by these figures. */
#define CODED_FAIL 3e-4
/* Pieces of the tail. */
uint32_t coded_plan_tail(uint32_t pieces, uint64_t rtt_ns, uint64_t piece_ns);
/* All parities that there are of its groups go unasked. */
void coded_plan_make(struct ec_layout *, uint32_t pieces, const struct coded_link *);

/* The loss that idle fill prepares for, when `loss` is assumed: higher, as the assumption may be wrong. */
double coded_plan_feared(double loss);
/* Raises a plan's parities to all that there are, if so many pieces of them have room; returns how many of the added
 * ones may be sent for idle fill: no more than a round trip has. */
uint32_t coded_plan_fill(struct ec_layout *, const struct coded_link *, uint64_t room);

/* How many parities there are of a group of `size` pieces. */
static inline uint32_t coded_plan_parity_max(uint32_t size)
{
	uint32_t narrow = size < EC_PIECES_MAX ? EC_PIECES_MAX - size : 0;

	narrow = narrow < CODED_PARITY_MAX ? narrow : CODED_PARITY_MAX;
	return narrow > EC_WIDE_PARITY_MAX ? narrow : EC_WIDE_PARITY_MAX;
}

/* Of a repair that gets no second chance: how often each of its `count` pieces goes, 1 .. 8. */
uint32_t coded_copies(double count, double loss);

/* How long after its beginning a message is given up to Selective Repeat: what goes unasked is sent, and half of the slack
 * that an RTO leaves beyond the round trip follows (beta = alpha / 2, RTO = RTT (1 + alpha)). */
static inline uint64_t coded_wait_ns(const struct ec_layout *l, uint64_t piece_ns, uint64_t rtt_ns, uint64_t rto_ns)
{
	uint64_t slack_ns = rto_ns > rtt_ns ? (rto_ns - rtt_ns) / 2 : 0;

	return (l->pieces + (uint64_t)l->groups * l->parity) * piece_ns + slack_ns;
}
