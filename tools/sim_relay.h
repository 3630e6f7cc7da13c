/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP between programs in simulated time: the other end of all their sockets (lockstep/lockstep.h). What a program has
 * done by the time at which all wait, to open, to send and to close, reaches the other one a fixed delay later. There is
 * no bandwidth and no loss. Programs' calls of one moment are in the order of hosts and ports.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct relay;

/* Both are called within relay_collect() and relay_deliver() alone. */
struct relay_sink {
	/* A thread of that host may have been woken. */
	void (*woken)(void *ctx, uint32_t host);
	void *ctx;
};

/* Borrows the sink. run: a number of this run alone. NULL: errno says why. */
struct relay *relay_open(uint64_t run, uint64_t delay_ns, const struct relay_sink *);
/* Harmless on NULL. */
void relay_close(struct relay *);

/* Takes what programs, all of which wait, have done. False: out of memory. */
bool relay_collect(struct relay *, uint64_t now_ns);
/* Passes on what is due by now. False: out of memory. */
bool relay_deliver(struct relay *, uint64_t now_ns);
/* When something is due next, and a host with a program that it is about; UINT64_MAX: nothing. */
uint64_t relay_next_ns(const struct relay *, uint32_t *host);
