/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a division has a remainder, the last block takes it: all others are alike. */
#include "sdr/coded/ec_layout.h"

#include "sdr/ec/code.h"

static uint32_t full_block(const struct ec_layout *l)
{
	return l->depth * l->data;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t divided_up(uint32_t a, uint32_t b)
{
	return a / b + (a % b > 0);
}

bool ec_layout_is_wide(const struct ec_layout *l)
{
	return l->data + l->parity_max > EC_PIECES_MAX;
}

static bool is_code(const struct ec_layout *l)
{
	if (l->data < 1 || l->data > EC_WIDE_DATA_MAX || l->parity > l->parity_max || l->parity_max > EC_PIECES_MAX)
		return false;
	return !ec_layout_is_wide(l) || l->parity_max <= EC_WIDE_PARITY_MAX;
}

bool ec_layout_settle(struct ec_layout *l)
{
	const uint64_t limit = UINT64_C(1) << 31;
	uint32_t groups;

	if (l->first >= l->pieces || !is_code(l) || !l->depth || l->pieces >= limit ||
	    (uint64_t)l->depth * l->data >= limit)
		return false;
	groups = divided_up(l->pieces - l->first, l->data);
	if ((uint64_t)groups * l->parity_max >= limit)
		return false;
	l->groups = groups;
	return true;
}

uint32_t ec_layout_blocks(const struct ec_layout *l)
{
	return divided_up(l->groups, l->depth);
}

struct ec_block ec_layout_block(const struct ec_layout *l, uint32_t block)
{
	uint32_t group = block * l->depth, at = l->first + block * full_block(l);

	return (struct ec_block){.group = group,
				 .groups = least(l->depth, l->groups - group),
				 .at = at,
				 .pieces = least(full_block(l), l->pieces - at)};
}

uint32_t ec_layout_block_of(const struct ec_layout *l, uint32_t at)
{
	return (at - l->first) / full_block(l);
}

uint32_t ec_layout_size(const struct ec_layout *l, uint32_t group)
{
	struct ec_block b = ec_layout_block(l, group / l->depth);

	return divided_up(b.pieces - (group - b.group), b.groups);
}

struct ec_piece ec_layout_data(const struct ec_layout *l, uint32_t at)
{
	struct ec_block b = ec_layout_block(l, ec_layout_block_of(l, at));

	return (struct ec_piece){.group = b.group + (at - b.at) % b.groups, .index = (at - b.at) / b.groups, .at = at};
}

struct ec_piece ec_layout_parity(const struct ec_layout *l, uint32_t at)
{
	return (struct ec_piece){.group = at % l->groups, .index = at / l->groups, .parity = true, .at = at};
}

struct ec_piece ec_layout_data_of(const struct ec_layout *l, uint32_t group, uint32_t index)
{
	struct ec_block b = ec_layout_block(l, group / l->depth);

	return (struct ec_piece){.group = group, .index = index, .at = b.at + (group - b.group) + index * b.groups};
}

struct ec_piece ec_layout_parity_of(const struct ec_layout *l, uint32_t group, uint32_t index)
{
	return (struct ec_piece){.group = group, .index = index, .parity = true, .at = index * l->groups + group};
}
