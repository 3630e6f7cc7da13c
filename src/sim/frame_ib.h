/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet on a link with credits as a capture shows it: a record of the extensible record format (ERF), type 21, and
 * behind its header the InfiniBand packet from LRH to VCRC; of a flow control packet, padded with zeroes, type 25. Host
 * n has the LID n + 1.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/packet.h"
#include "sim/frame.h"

enum { FRAME_ERF_BYTES = 16 };

/*
 * Writes the record; returns how many bytes exist: of a data packet without payload, ICRC and VCRC. *length: those of
 * the whole record.
 */
size_t frame_ib_encode(uint8_t frame[FRAME_BYTES_MAX], const struct packet *, uint64_t now_ps, uint32_t *length);

/* Completes it in a buffer of `length` bytes: payload of zeroes, and the ICRC and VCRC that belong to it. */
void frame_ib_fill(uint8_t *frame, size_t bytes, uint32_t length);
