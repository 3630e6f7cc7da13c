/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A wrapper that does to packets what the fault engine says (faults/faults.h): those of VERBENA_IMPAIR, which concern
 * received packets alone, so that each direction of a conversation is spoiled once, by its receiver, and trains leave
 * whole; and those of scripts, in both directions.
 *
 * A packet that is late is held until as many have passed as the engine says, or a millisecond has. A corrupted one has
 * one bit of its payload flipped. A marked one is ECT(0) or ECT(1) and goes on as CE (RFC 3168); others never become CE.
 * A packet through memory has no checksum: a corrupted one is dropped, as its receiver would on a network, and it is
 * neither marked, doubled, delayed nor late.
 *
 * Of a stream there are no packets to spoil: it only stands still while nothing may pass.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "io/clock.h"
#include "io/io.h"

struct faults;

struct spoil_config {
	struct faults *faults; /* *borrowed* */
	uint32_t limit;        /* packets held back at most, each way; more are dropped. 1 .. FAULT_LIMIT_MAX */
	bool streams;
	/* The time, or none: that of the call. A process that loses its processor behind the clock's reading finds
	 * packets that came later, and would let them go too early. */
	struct io_clock clock;
};

/* *Takes* lower on success. 0 or -ENOMEM. counters are *borrowed*. */
int spoil_open(struct io **, struct io *lower, const struct spoil_config *, struct io_counters *counters);
