/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The links inside nodes. Hosts 0 .. n-1 are the ranks of one node, the next n those of another one, and so on; a link of
 * its own joins each rank with the switch in its node. Messages go by it whole and in order: one leaves when its sender's
 * link is free, its first byte is at the receiver's link after the delay, and waits there for messages that came before.
 * Links have one rate, so a message alone takes bytes / rate + delay; the sender knows after the delay once more. Nothing
 * is lost, the switch has room for all, and there are neither packets nor headers.
 *
 * Private to src/sim.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define INSIDE_NEVER_PS UINT64_MAX

struct inside;

/* Of the caller's, who sets the first members; the rest is the links' own until its last report. */
struct inside_message {
	uint64_t bytes;
	uint32_t src, dst; /* hosts of one node, which differ */
	bool quiet;        /* its sender wants no report */
	struct inside_message *next;
};

/* `per_node` divides `hosts`. NULL: no memory. */
struct inside *inside_create(uint32_t hosts, uint32_t per_node, uint64_t rate_bps, uint64_t delay_ps);
/* Harmless on NULL. */
void inside_free(struct inside *);

/* Whether they are ranks of one node; false on NULL. */
bool inside_joins(const struct inside *, uint32_t a, uint32_t b);
/* The rank of a's node that stands where b does in its own node. */
uint32_t inside_relay(const struct inside *, uint32_t a, uint32_t b);
/* From a message's post to its arrival, if it is alone. */
uint64_t inside_alone_ps(const struct inside *, uint64_t bytes);
uint64_t inside_delay_ps(const struct inside *);

/* False: no memory. */
bool inside_post(struct inside *, struct inside_message *, uint64_t now_ps);
/* When the next report is due; INSIDE_NEVER_PS: none. NULL has none. */
uint64_t inside_deadline(const struct inside *);
/* The next report that is due: the message has arrived, or `sent`: its sender knows. NULL: none. */
struct inside_message *inside_report(struct inside *, uint64_t now_ps, bool *sent);
