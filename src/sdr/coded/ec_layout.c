/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a division has a remainder, the last block takes it: all others are alike. */
#include <assert.h>

#include "sdr/coded/ec_layout.h"

static uint32_t full_block(const struct ec_layout *l)
{
	return l->depth * l->data;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint64_t divided_up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

/* Data pieces before a block. */
static uint32_t block_at(const struct ec_layout *l, uint32_t block)
{
	uint64_t at = (uint64_t)block * full_block(l);

	return at < l->pieces ? (uint32_t)at : l->pieces;
}

static uint32_t block_size(const struct ec_layout *l, uint32_t block)
{
	return least(full_block(l), l->pieces - block_at(l, block));
}

/* Groups of a block that is there. */
static uint32_t block_groups(const struct ec_layout *l, uint32_t block)
{
	return (uint32_t)divided_up(block_size(l, block), l->data);
}

bool ec_layout_settle(struct ec_layout *l)
{
	const uint64_t limit = UINT64_C(1) << 31;
	uint64_t groups;

	if (!l->pieces || !l->data || !l->depth || l->early > l->parity || l->parity > l->parity_max ||
	    l->pieces >= limit || l->data >= limit || (uint64_t)l->depth * l->data >= limit)
		return false;
	groups = divided_up(l->pieces, l->data);
	if (groups * l->parity_max >= limit)
		return false;
	l->groups = (uint32_t)groups;
	return true;
}

uint32_t ec_layout_blocks(const struct ec_layout *l)
{
	return (uint32_t)divided_up(l->pieces, full_block(l));
}

uint32_t ec_layout_block_group(const struct ec_layout *l, uint32_t block)
{
	uint64_t group = (uint64_t)block * l->depth;

	return group < l->groups ? (uint32_t)group : l->groups;
}

uint32_t ec_layout_size(const struct ec_layout *l, uint32_t group)
{
	uint32_t block = ec_layout_block(l, group), place = group % l->depth;

	return (block_size(l, block) - place + block_groups(l, block) - 1) / block_groups(l, block);
}

static uint32_t block_unasked(const struct ec_layout *l, uint32_t block)
{
	return block < l->coded_from ? l->early : l->parity;
}

uint32_t ec_layout_unasked(const struct ec_layout *l, uint32_t group)
{
	return block_unasked(l, ec_layout_block(l, group));
}

struct ec_piece ec_layout_data(const struct ec_layout *l, uint32_t at)
{
	uint32_t block = at / full_block(l), turn = at - block_at(l, block);
	uint32_t groups = block_groups(l, block);

	return (struct ec_piece){.group = block * l->depth + turn % groups, .index = turn / groups, .at = at};
}

struct ec_piece ec_layout_parity(const struct ec_layout *l, uint32_t at)
{
	return (struct ec_piece){.group = at % l->groups, .index = at / l->groups, .parity = true, .at = at};
}

struct ec_piece ec_layout_data_of(const struct ec_layout *l, uint32_t group, uint32_t index)
{
	uint32_t block = ec_layout_block(l, group);
	uint32_t at = block_at(l, block) + index * block_groups(l, block) + group % l->depth;

	return (struct ec_piece){.group = group, .index = index, .at = at};
}

struct ec_piece ec_layout_parity_of(const struct ec_layout *l, uint32_t group, uint32_t index)
{
	return (struct ec_piece){.group = group, .index = index, .parity = true, .at = index * l->groups + group};
}

uint64_t ec_layout_before(const struct ec_layout *l, uint32_t block)
{
	uint64_t early = ec_layout_block_group(l, least(block, l->coded_from));
	uint64_t coded = ec_layout_block_group(l, block) - early;

	return block_at(l, block) + early * l->early + coded * l->parity;
}

bool ec_layout_turn(const struct ec_layout *l, const struct ec_piece *p, uint64_t *turn)
{
	uint32_t block = ec_layout_block(l, p->group);
	uint32_t in_block;

	if (p->parity && p->index >= block_unasked(l, block))
		return false;
	in_block = p->index * block_groups(l, block) + p->group % l->depth;
	*turn = ec_layout_before(l, block) + in_block + (p->parity ? block_size(l, block) : 0);
	return true;
}

struct ec_piece ec_layout_in_turn(const struct ec_layout *l, uint32_t block, uint32_t turn)
{
	uint32_t size = block_size(l, block), groups = block_groups(l, block);

	if (turn < size)
		return ec_layout_data(l, block_at(l, block) + turn);
	turn -= size;
	assert(turn < groups * block_unasked(l, block));
	return ec_layout_parity_of(l, block * l->depth + turn % groups, turn / groups);
}
