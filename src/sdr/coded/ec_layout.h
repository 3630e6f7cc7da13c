/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a message is cut into the groups of an erasure code, and the order in which their pieces are
 * sent. Pure arithmetic.
 *
 * The message has `pieces` data pieces; a block of them is `depth` groups of at most `data` pieces
 * each, dealt out in turn: of a block's pieces in their order the first is of its first group, the
 * second of its second. So pieces go in the order of memory, and a burst of losses is spread over
 * `depth` groups. The last block has no more groups than it needs, of sizes that differ by at most
 * one. A group smaller than `data` is coded as if the pieces that it lacks were zero.
 *
 *      block 0: data of its groups | their parities 0 | their parities 1 .. || block 1: ..
 *
 * Behind the data of each block go the first parities of its groups: `early` of each in the blocks
 * before `coded_from`, `parity` of each from there on. More, up to `parity_max`, may be sent when
 * they are asked for. Parity i of group g is piece i * groups + g of the parity message.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ec_layout {
	uint32_t pieces;        /* of data */
	uint32_t data;          /* of a group, at most */
	uint32_t early, parity; /* sent unasked, of a group; early <= parity */
	uint32_t parity_max;    /* that there are of a group */
	uint32_t depth;         /* groups of a block */
	uint32_t coded_from;    /* the first block with `parity` parities */
	uint32_t groups;        /* derived */
};

struct ec_piece {
	uint32_t group;
	uint32_t index; /* in the group: of the data pieces, or of the parities */
	bool parity;
	uint32_t at; /* the piece's place in the data or in the parity message */
};

/* Derives `groups`. False, and nothing changes, unless pieces, data and depth are at least 1, early
 * <= parity <= parity_max, and both messages have less than 2^31 pieces. */
bool ec_layout_settle(struct ec_layout *);

static inline uint32_t ec_layout_block(const struct ec_layout *l, uint32_t group)
{
	return group / l->depth;
}

uint32_t ec_layout_blocks(const struct ec_layout *);
/* The first group of a block, and one more than the last; block <= ec_layout_blocks(). */
uint32_t ec_layout_block_group(const struct ec_layout *, uint32_t block);
/* Data pieces of a group. */
uint32_t ec_layout_size(const struct ec_layout *, uint32_t group);
/* Parities of a group that are sent unasked. */
uint32_t ec_layout_unasked(const struct ec_layout *, uint32_t group);

struct ec_piece ec_layout_data(const struct ec_layout *, uint32_t at);
/* at < parity_max * groups. */
struct ec_piece ec_layout_parity(const struct ec_layout *, uint32_t at);
/* The same piece by its group. */
struct ec_piece ec_layout_data_of(const struct ec_layout *, uint32_t group, uint32_t index);
struct ec_piece ec_layout_parity_of(const struct ec_layout *, uint32_t group, uint32_t index);

/* Pieces that are sent unasked, and how many of these belong to the blocks before one. */
uint64_t ec_layout_before(const struct ec_layout *, uint32_t block);
static inline uint64_t ec_layout_all(const struct ec_layout *l)
{
	return ec_layout_before(l, ec_layout_blocks(l));
}
/* The place of a piece in the order of sending. False for a parity that is sent when asked alone.
 */
bool ec_layout_turn(const struct ec_layout *, const struct ec_piece *, uint64_t *turn);
/* The piece of block `block` whose turn in it is `turn`. */
struct ec_piece ec_layout_in_turn(const struct ec_layout *, uint32_t block, uint32_t turn);
