/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a short READ is requested in pairs of packets. Of the responses to one request the First and the Last have an
 * AETH, and the others have none, so they part into two trains for each READ. A First is as long as the Last behind it,
 * and those of many requests travel as one train. But each request counts against max_rd_atomic, so less may be under
 * way in one round trip: where that is too little, READs are requested whole.
 *
 * Private to src/transport.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "transport/qp.h"

/* Whether that READ is requested in pairs of packets now. */
bool read_pairs_suit(const struct transport *, const struct qp *, const struct send_wqe *);
/* A request of that READ, with that PSN, was sent for the first time. */
void read_pairs_sent(struct qp *, const struct send_wqe *, uint32_t psn, uint64_t now_ns);
/* The response with that PSN came, of a READ of so many bytes. */
void read_pairs_came(struct qp *, uint32_t psn, uint32_t bytes, uint64_t now_ns);
/* Requests are sent again: what comes may be the answer to either. */
void read_pairs_again(struct qp *);
