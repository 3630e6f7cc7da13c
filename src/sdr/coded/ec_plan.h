/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the sender of an erasure-coded message tells the receiver about it: the payload of EC_PLAN.
 * Big-endian:
 *
 *      0      1       2      4        6       8            10      12           16       20          24       28
 *     +------+-------+------+--------+-------+------------+-------+------------+--------+-----------+--------+
 *     | kind | flags | data | parity | early | parity max | depth | coded from | RTT us | inject ns | RTO us |
 *     +------+-------+------+--------+-------+------------+-------+------------+--------+-----------+--------+
 *
 * Flags: 1: fresh parities answer a shortage (else Selective Repeat does); 2: end marker; 4: the
 * repeat's receiver names what it lacks; 8: a piece is a chunk (else a packet).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sdr/message/control.h"
#include "sdr/coded/ec_config.h"

/* Of the config: everything that both ends must have, and the times. The round trip and the RTO are
 * whole microseconds, and below 2^32 of them; an inject_ns of 2^32 or more is sent as 2^32 - 1. */
void ec_plan_encode(uint8_t payload[EC_PLAN_LEN], const struct ec_config *, bool chunks);
/* Whether the plan's piece is a chunk. */
bool ec_plan_chunks(const uint8_t *payload);
/* Makes a receiver's config for a message of so many data pieces, of which the parity message has at
 * most parity_pieces. Times that are too short are lengthened: an RTT is at least rtt_ns_min. False,
 * and nothing changes, if the plan makes no sense, is no code's, or its parities have no room. */
bool ec_plan_decode(struct ec_config *, const uint8_t *payload, uint32_t pieces, uint64_t parity_pieces,
		    uint64_t rtt_ns_min);
