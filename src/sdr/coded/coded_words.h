/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two messages that codes have of their own; holes are named by CONTROL_SR_NACK, whose chunks are then pieces.
 *
 *     CONTROL_CODED_PLAN    pieces 32, first 32, data 16, depth 16, parity max 16, flags 16    see ec_layout.h
 *                           with TIMES: RTT 32, wait 32                                        in microseconds
 *     CONTROL_CODED_STATE   seen 32, lost 32, bursts 32, whole 32                      of the first pieces of the message
 *
 * Flags: 1: all was sent; 2: a piece is a chunk (else a packet); 4: the code is EC_XOR; 8: Selective Repeat delivers what
 * no code gives back; 16: and its receiver names what it lacks; 32: TIMES.
 */
#pragma once

#include "sdr/coded/ec_layout.h"
#include "sdr/message/control.h"

/* How a message is coded, as both ends know it. */
struct coded_plan {
	struct ec_layout layout; /* `parity` is not told: at the receiver all go unasked */
	bool chunks, is_xor;
	bool repeats; /* by Selective Repeat: no piece is named before that */
	bool nack;    /* with `repeats` */
	bool ended;   /* all was sent */
	/* 0: not told. With `repeats` groups are given up wait_ns after the first piece, if that is not 0. */
	uint64_t rtt_ns, wait_ns;
};

/* What the receiver has noticed; grows. */
struct coded_state {
	uint32_t seen;   /* pieces up to the last that came */
	uint32_t lost;   /* of these, those that did not come in their turn */
	uint32_t bursts; /* runs of them */
	bool whole;      /* all is there, or can be computed */
};

/* Returns its length. */
uint16_t coded_plan_encode(uint8_t[CODED_PLAN_LEN_MAX], const struct coded_plan *);
/* False: no such plan can be. */
bool coded_plan_decode(struct coded_plan *, const uint8_t *);
uint16_t coded_state_encode(uint8_t *, const struct coded_state *);
/* False: bursts > lost, or lost > seen. */
bool coded_state_decode(struct coded_state *, const uint8_t *);
