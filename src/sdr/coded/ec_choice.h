/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much redundancy a message gets, by rate, round trip and losses of the link. One rule for all links:
 * a loss that is answered while the rest is being sent costs nothing. So parities go unasked with the
 * last bandwidth-delay product of the data alone, and as many that another round trip is hardly ever
 * needed. For all other data parities are sent on demand.
 */
#pragma once

#include "sdr/coded/ec_layout.h"

/* Losses so far; all zero: none are known. Counts fade, so that a link may change. */
struct loss_counts {
	double sent, lost; /* pieces */
};

void loss_note(struct loss_counts *, uint64_t sent, uint64_t lost);
/* What to reckon with: a bound that the loss is below with 99 % certainty, since too little costs a
 * round trip and too much next to nothing. 1 % where nothing is known; at least 1e-5. */
double loss_upper(const struct loss_counts *);

struct ec_link {
	uint64_t rate_bps; /* of payload, > 0 */
	uint64_t rtt_ns;   /* > 0 */
	double loss;       /* of a piece, to be reckoned with, 0 <= it <= 0.5 */
};

enum ec_reason {
	EC_NOTHING_EXPOSED, /* more than a bandwidth-delay product follows: answers cost no time */
	EC_NOTHING_LOST,    /* a message in ten thousand would lose anything */
	EC_TAIL_CODED,      /* the last bandwidth-delay product */
	EC_ALL_CODED,       /* the message is smaller than that */
};

/* Settles a layout for a message of `pieces` pieces of piece_bytes, after which `behind` bytes more
 * will be sent on the same link. parity_room: pieces that the parity message may have, at least
 * `pieces` / 16 + 1. */
enum ec_reason ec_choose(const struct ec_link *, uint32_t pieces, uint32_t piece_bytes, uint64_t behind,
			 uint64_t parity_room, struct ec_layout *);
