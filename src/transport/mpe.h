/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FLUSH and ATOMIC WRITE at the responder, in any protocol (Memory Placement Extensions, IBTA A19): executed in their
 * turn, when all before them is placed, and answered by a READ response of no bytes.
 *
 * Private to src/transport.
 */
#pragma once

#include "transport/message.h"
#include "wire/feth.h"

struct mpe_request {
	bool flush; /* or an ATOMIC WRITE */
	struct feth feth;
	uint32_t rkey;
	uint32_t len; /* RETH's: of a FLUSH the range's */
	uint64_t va;
	uint32_t payload_len;
	uint64_t value; /* the payload, if it has that length */
};

/* What an ATOMIC WRITE with that payload writes; 0 where there is no payload, or not a word of it. */
uint64_t mpe_value(const struct transport *, const uint8_t *payload, uint32_t len);
/* The verdict apart from its order. */
enum rx_verdict mpe_judge(const struct transport *, const struct qp *, const struct mpe_request *);
/* Judges it, and executes it if that is RX_EXECUTE. RX_ACCESS also if the memory is gone; then nothing was done. */
enum rx_verdict mpe_execute(const struct transport *, const struct qp *, const struct mpe_request *);
