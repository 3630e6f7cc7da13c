/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What both ends of an erasure-coded message go by. Layout, kind, fallback and end_marker must be
 * the same at both.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sdr/ec/code.h"
#include "sdr/coded/ec_layout.h"

/* The answer to a group that cannot be recovered. */
enum ec_fallback {
	/* The receiver names them, and Selective Repeat delivers their data. */
	EC_FALLBACK_SR,
	/* The receiver says how many pieces each lacks, and the sender answers with parities that
	 * it has not sent before. Not with EC_XOR, where not every parity helps. */
	EC_FALLBACK_PARITY,
};

struct ec_config {
	struct ec_layout layout; /* settled */
	enum ec_kind kind;
	enum ec_fallback fallback;
	/* The sender says when it has sent everything, and the receiver does not wait for a timer.
	 */
	bool end_marker;
	bool nack;          /* with EC_FALLBACK_SR: the receiver names what the repeat lacks */
	uint32_t reorder;   /* pieces: how far one may overtake another */
	uint32_t tries_max; /* of a group's or a piece's repair; 1 to 255 */
	uint64_t rtt_ns, rto_ns;
	uint64_t timeout_ns;  /* of the whole message, from its start at the sender */
	uint64_t inject_ns;   /* what a piece takes on the link; 0: nothing to speak of */
	uint64_t guard_ns;    /* how much later than the end marker a piece may come */
	uint64_t fallback_ns; /* with EC_FALLBACK_SR: from the first piece until groups are named */
	uint64_t ack_ns;      /* between two acknowledgements of a repeat */
	double loss;          /* of a piece, as expected; 0 <= it < 1 */
};

/* The time from the first piece to the fall-back: all pieces sent unasked are injected, and half of
 * the slack that an RTO leaves beyond the round trip follows (beta = alpha / 2, RTO = RTT (1 +
 * alpha)). */
static inline uint64_t ec_fallback_ns(const struct ec_layout *l, uint64_t inject_ns, uint64_t rtt_ns, uint64_t rto_ns)
{
	uint64_t slack_ns = rto_ns > rtt_ns ? (rto_ns - rtt_ns) / 2 : 0;

	return ec_layout_all(l) * inject_ns + slack_ns;
}

/* Whether all members are within their limits and go together. */
static inline bool ec_config_valid(const struct ec_config *c)
{
	return c->layout.groups && c->rtt_ns && c->rto_ns && c->timeout_ns && c->ack_ns && c->tries_max >= 1 &&
	       c->tries_max <= 255 && c->loss >= 0 && c->loss < 1 &&
	       !(c->kind == EC_XOR && c->fallback == EC_FALLBACK_PARITY) &&
	       !(c->kind == EC_XOR && c->layout.parity != c->layout.parity_max);
}
