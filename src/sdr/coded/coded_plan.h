/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which packets of a message get parities, and how many. What was sent more than a round trip before the end is repaired
 * meanwhile, at no cost in time; so only the tail is coded, the packets on whose loss no word can come before the last
 * one has left. The tail is cut into groups of an erasure code, and dealt out to the groups of a block in turn, so that a
 * burst of losses takes few packets of each.
 *
 *      0 .. tail - 1 uncoded | block 0: depth x size packets, parities 0, parities 1, .. | block 1: ..
 *
 * The last block has no more groups than it needs. Parity i of group g is packet i * groups + g of the parity message.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sdr/ec/code.h"

/*
 * Packets of a group with its parities, any `size` of which give the others; and groups of a block. A group may also be
 * wide (EC_WIDE), of up to EC_WIDE_DATA_MAX packets and EC_WIDE_PARITY_MAX parities: then now and then it takes a packet
 * more, and ec_wide_solve() says whether it does.
 */
enum {
	CODED_PARITY_MAX = 127, /* of any group */
	CODED_DEPTH_MAX = 64,
};

struct coded_plan {
	uint32_t packets; /* of the message, at least 1 */
	uint32_t tail;    /* the first coded packet, < packets */
	uint16_t size;    /* packets of a group, at most */
	uint16_t depth;   /* groups of a block, at most */
	uint16_t parity;  /* packets of each group; may be 0 */
	uint32_t groups;  /* derived */
};

/* The link, as far as it is known. */
struct coded_link {
	uint64_t rtt_ns;
	uint64_t packet_ns; /* what a packet takes to leave; at least 1 */
	double loss;        /* of a packet, 0 .. 1 */
	double burst;       /* lost packets in a row, on average; at least 1 */
	double feared; /* the loss that all parities there are of a group must do for; 0: those of the plan are all */
};

/* A plan whose message needs a second round with a chance of at most CODED_FAIL, by these figures. */
#define CODED_FAIL 3e-4
/* Packets of the tail. */
uint32_t coded_plan_tail(uint32_t packets, uint64_t rtt_ns, uint64_t packet_ns);
void coded_plan_make(struct coded_plan *, uint32_t packets, const struct coded_link *);
/* Derives `groups`. False, and nothing changes, unless all members are within their limits. */
bool coded_plan_settle(struct coded_plan *);
static inline bool coded_plan_is_wide(const struct coded_plan *p)
{
	return p->size + p->parity > EC_PIECES_MAX;
}

/* The loss that idle fill prepares for, when `loss` is assumed: higher, as the assumption may be wrong. */
double coded_plan_feared(double loss);
/* Raises a plan's parities to all that there are, if so many packets of them have room; returns how many of the added
 * ones may be sent for idle fill: no more than a round trip has. */
uint32_t coded_plan_fill(struct coded_plan *, const struct coded_link *, uint64_t room);

/* How many parities there are of a group of `size` packets. */
static inline uint32_t coded_plan_parity_max(uint32_t size)
{
	uint32_t narrow = size < EC_PIECES_MAX ? EC_PIECES_MAX - size : 0;

	narrow = narrow < CODED_PARITY_MAX ? narrow : CODED_PARITY_MAX;
	return narrow > EC_WIDE_PARITY_MAX ? narrow : EC_WIDE_PARITY_MAX;
}

/* The group of a packet of the tail. */
uint32_t coded_plan_group(const struct coded_plan *, uint32_t packet);
uint32_t coded_plan_block(const struct coded_plan *, uint32_t packet);
uint32_t coded_plan_blocks(const struct coded_plan *);
/* Block b is groups first .. first + count - 1, and packets from `packet` on. */
struct coded_block {
	uint32_t first, count;
	uint32_t packet, packets;
};
struct coded_block coded_plan_block_at(const struct coded_plan *, uint32_t block);
/* Data packets of a group; the i-th of them. */
uint32_t coded_plan_size(const struct coded_plan *, uint32_t group);
uint32_t coded_plan_packet(const struct coded_plan *, uint32_t group, uint32_t i);

/* Of a repair that gets no second chance: how often each of its `count` packets goes, 1 .. 8. */
uint32_t coded_copies(double count, double loss);
