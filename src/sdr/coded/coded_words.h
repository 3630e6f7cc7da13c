/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two messages that only tail coding has; holes are named by CONTROL_SR_NACK, whose chunks are then packets.
 *
 *     CONTROL_CODED_PLAN    packets 32, tail 32, size 16, depth 16, parity 16, ended 16    see coded_plan.h; ended: all was sent
 *     CONTROL_CODED_STATE   seen 32, lost 32, bursts 32, whole 32                          of the first packets of the message
 */
#pragma once

#include "sdr/message/control.h"
#include "sdr/coded/coded_plan.h"

/* What the receiver has noticed; grows. */
struct coded_state {
	uint32_t seen;   /* packets up to the last that came */
	uint32_t lost;   /* of these, those that did not come in their turn */
	uint32_t bursts; /* runs of them */
	bool whole;      /* all is there, or can be computed */
};

uint16_t coded_plan_encode(uint8_t *, const struct coded_plan *, bool ended);
/* False: no such plan can be. */
bool coded_plan_decode(struct coded_plan *, bool *ended, const uint8_t *);
uint16_t coded_state_encode(uint8_t *, const struct coded_state *);
/* False: bursts > lost, or lost > seen. */
bool coded_state_decode(struct coded_state *, const uint8_t *);
