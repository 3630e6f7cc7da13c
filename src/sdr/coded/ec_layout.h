/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a message is cut into the groups of an erasure code. Pure arithmetic.
 *
 * The message has `pieces` data pieces, and those from `first` on are coded. A block of these is `depth` groups of at
 * most `data` pieces each, dealt out in turn: of a block's pieces in their order the first is of its first group, the
 * second of its second. So pieces go in the order of memory, and a burst of losses takes few pieces of each group. The
 * last block has no more groups than it needs, of sizes that differ by at most one. A group smaller than `data` is coded
 * as if the pieces that it lacks were zero.
 *
 *      0 .. first - 1 uncoded | block 0: data of its groups, parities 0, parities 1, .. | block 1: ..
 *
 * Behind the data of each block go `parity` parities of each of its groups. More, up to `parity_max`, may be sent later.
 * Parity i of group g is piece i * groups + g of the parity message.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ec_layout {
	uint32_t pieces;     /* of data */
	uint32_t first;      /* coded one, < pieces */
	uint32_t data;       /* of a group, at most */
	uint32_t parity;     /* sent unasked, of a group */
	uint32_t parity_max; /* that there are of a group */
	uint32_t depth;      /* groups of a block */
	uint32_t groups;     /* derived */
};

struct ec_piece {
	uint32_t group;
	uint32_t index; /* in the group: of the data pieces, or of the parities */
	bool parity;
	uint32_t at; /* the piece's place in the data or in the parity message */
};

/* Groups `group` .. group + groups - 1, which have the pieces at .. at + pieces - 1. */
struct ec_block {
	uint32_t group, groups;
	uint32_t at, pieces;
};

/* Derives `groups`. False, and nothing changes, unless there is such a code (code.h, wide.h): at least one coded piece,
 * data and depth at least 1, parity <= parity_max, no more of a group than a code has; and both messages have less than
 * 2^31 pieces. */
bool ec_layout_settle(struct ec_layout *);
/* Whether the code is wide (wide.h). */
bool ec_layout_is_wide(const struct ec_layout *);

/* How many blocks the message has; and one of them, from 0 on. */
uint32_t ec_layout_blocks(const struct ec_layout *);
struct ec_block ec_layout_block(const struct ec_layout *, uint32_t block);
/* That of a coded piece. */
uint32_t ec_layout_block_of(const struct ec_layout *, uint32_t at);
/* Data pieces of a group. */
uint32_t ec_layout_size(const struct ec_layout *, uint32_t group);

/* at >= first. */
struct ec_piece ec_layout_data(const struct ec_layout *, uint32_t at);
/* at < parity_max * groups. */
struct ec_piece ec_layout_parity(const struct ec_layout *, uint32_t at);
/* The same piece by its group. */
struct ec_piece ec_layout_data_of(const struct ec_layout *, uint32_t group, uint32_t index);
struct ec_piece ec_layout_parity_of(const struct ec_layout *, uint32_t group, uint32_t index);
