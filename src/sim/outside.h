/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network of a scenario whose hosts' nics are elsewhere, in the processes of programs. Packets go through it whole,
 * as bytes; it is the caller who gives the nics time.
 *
 * A host's port has two queues, for control and for data, as deep as OUTSIDE_QUEUE_BYTES; what does not fit is dropped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pkt.h"
#include "sim/scenario.h"

enum { OUTSIDE_QUEUE_BYTES = 64 << 20 };

struct outside;

/* Both are called within outside_run() alone. */
struct outside_sink {
	/* A packet has arrived; it and its flow are *lent* for the call. */
	void (*arrived)(void *ctx, uint32_t host, const struct pkt *);
	/* The time of outside_set_timer() has come. */
	void (*woken)(void *ctx, uint32_t host);
	/* The number of the host with that address. False: there is none. */
	bool (*host_of)(void *ctx, const uint8_t gid[16], uint32_t *host);
	void *ctx;
};

/*
 * Borrows the scenario for the call, and the sink. NULL: refused, and why is a sentence that begins with the key that it
 * is about.
 */
struct outside *outside_create(const struct scenario *, const struct outside_sink *, char *why, size_t why_bytes);
/* Harmless on NULL. */
void outside_destroy(struct outside *);

uint32_t outside_hosts(const struct outside *);
uint64_t outside_now_ps(const struct outside *);

/*
 * The host sends a packet now, after those that it has sent before. The packet may be anything. False: it was dropped,
 * because no host has its destination, there is no room, or no memory.
 */
bool outside_send(struct outside *, uint32_t host, const struct pkt *);
/* Sets the host's one timer, or moves it; UINT64_MAX turns it off. A time that has passed is now. */
void outside_set_timer(struct outside *, uint32_t host, uint64_t at_ps);

enum outside_end {
	OUTSIDE_TOLD, /* the sink was called, once or more */
	OUTSIDE_IDLE, /* nothing will happen any more */
	OUTSIDE_FAILED
};

/* Lets time pass until the sink has been called. OUTSIDE_FAILED: why is a sentence. */
enum outside_end outside_run(struct outside *, char *why, size_t why_bytes);

struct outside_counts {
	uint64_t packets, delivered; /* put into the network; taken out by hosts */
	uint64_t dropped;            /* in the network */
	uint64_t refused;            /* by outside_send() */
};

void outside_count(const struct outside *, struct outside_counts *);
