/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the peer process of a pair within this host last ran, as far as its answers prove it. veroce/stall.h has what
 * that means for timers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct transport_config;

/* Times of sending are by our clock; times of different clocks are never compared. */
struct stall {
	uint64_t ran_ns;  /* the peer has read all packets sent until then, and ran on for a while */
	uint64_t read_ns; /* ... has read all packets sent until then: known since told_ns */
	uint64_t told_ns;
	uint64_t asked_ns;  /* TX1 of the last question; 0: none */
	uint64_t ask_ns;    /* no question leaves earlier */
	uint64_t silent_ns; /* when the first of `asks` was asked */
	uint64_t forced_ns; /* when a QP last acted without proof */
	uint8_t asks;       /* in a row without an answer */
};

/* The peer has read the packet that was sent at tx_ns. */
void stall_read(const struct transport_config *, struct stall *, uint64_t tx_ns, uint64_t now_ns);
/* The same for the answer to an RTT request of this pair, the last one or an earlier one. False: it is none. */
bool stall_answered(const struct transport_config *, struct stall *, uint32_t tx1, uint64_t now_ns);
