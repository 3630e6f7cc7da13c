/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A wrapper that spoils the network on purpose. It acts on *received* packets only, so that each
 * direction of a conversation is spoiled once, by its receiver, and trains leave whole.
 *
 * A specification is a list of key=value with commas between, in any order, each key once:
 *
 *	drop, dup, reorder, corrupt   probability per packet: 0.01 or 1%
 *	burst                         packets in a row that drop takes on average: 1 .. 1000000 (1)
 *	ce                            probability that an ECN-capable packet is marked
 *	delay, jitter                 time: 5ms, 300us, 10ns, 1s; each packet waits delay and a
 *	                              uniform share of jitter, so jitter also reorders
 *	rate                          bits of UDP payload a second: 1G, 100M, 64k
 *	limit                         packets held back at most, 1 .. 65536 (8192); more are dropped
 *	seed                          unsigned integer (1)
 *
 * With burst, losses follow Gilbert's model: in its bad state every packet is dropped, and drop is the share of packets
 * in all. A silence of 10 ms ends a burst. Without, each packet is dropped by itself.
 *
 * A reordered packet is held until 1 to 8 later ones have passed, or a millisecond has. A corrupted
 * one has one bit of its payload flipped. A marked one has arrived as ECT(0) or ECT(1) and goes on as
 * CE (RFC 3168); others never become CE. Packets of all ports and paths are treated alike. Every
 * packet draws the same number of random numbers with any probabilities, so that only the seed and
 * the order of packets decide which ones are dropped.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/clock.h"
#include "io/io.h"

struct impair_config {
	double drop, dup, reorder, corrupt, ce; /* 0 .. 1 */
	uint64_t delay_ns, jitter_ns;
	uint64_t rate_bps; /* 0: unlimited */
	uint32_t burst;    /* 0 and 1: each by itself */
	uint32_t limit;
	uint64_t seed;
	/* The time, or none: that of the call. A process that loses its processor behind the clock's reading finds
	 * packets that came later, and would let them go too early. */
	struct io_clock clock;
};

/*
 * 0 with *cfg set, or -EINVAL with a sentence in why that names the key, the value and what is
 * allowed. An empty text spoils nothing.
 */
int impair_parse(const char *text, struct impair_config *cfg, char *why, size_t why_bytes);

/* *Takes* lower on success. 0 or -ENOMEM. counters are *borrowed*. */
int impair_open(struct io **, struct io *lower, const struct impair_config *, struct io_counters *counters);
