/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which virtual lane sends next (IBTA 7.6.9): two tables of lanes and weights, each served in turns. The table of high
 * priority goes first, until so many bytes of it were sent in a row; then one packet of low priority has its turn.
 */
#pragma once

#include <stdint.h>

enum {
	VL_ENTRIES_MAX = 64,
	VL_LANES = 8,
	VL_HIGH_UNLIMITED = 255,
	VL_HIGH_LIMIT_BYTES = 4096, /* unit of the limit of high priority */
	VL_NONE = -1
};

/* The weight is in units of 64 bytes; 0: the entry is skipped. A lane may have several entries. */
struct vl_entry {
	uint8_t vl, weight;
};

struct vl_tables {
	struct vl_entry high[VL_ENTRIES_MAX], low[VL_ENTRIES_MAX];
	uint8_t high_count, low_count;
	/* in units of 4 KiB: 255: high priority may go on for ever; 0: for one packet */
	uint8_t high_limit;
};

/* Whose turn it is in a table. Zeroes: nobody's yet. */
struct vl_turn {
	uint8_t at;
	int32_t left; /* of the entry's weight; a packet may overdraw it */
};

struct vl_arbiter {
	struct vl_turn high, low;
	uint32_t high_bytes; /* sent since the last packet of low priority */
};

/*
 * The lane among those in `ready`, a mask, whose first packet is sent now; bytes[] has the sizes of these packets.
 * VL_NONE: `ready` is 0. Lanes that no table names go last, the lowest number first.
 */
int vl_choose(struct vl_arbiter *, const struct vl_tables *, uint8_t ready, const uint32_t bytes[VL_LANES]);
