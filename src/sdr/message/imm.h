/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The 32 bits of immediate data of a transport Write name the packet's message and its place in that message, and carry
 * a fragment of the user's own immediate. With the default split of 10, 18 and 4 bits:
 *
 *      31                22 21                                    4 3       0
 *     +--------------------+---------------------------------------+---------+
 *     |     message id     |  packet offset in the receive buffer  | fragment|
 *     +--------------------+---------------------------------------+---------+
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct imm_split {
	uint8_t id_bits;     /* 1 to 16 */
	uint8_t offset_bits; /* at least 1 */
	uint8_t frag_bits;   /* 1, 2, 4 or 8 */
};

struct imm {
	uint32_t id;     /* of the message: its slot */
	uint32_t offset; /* packets from the start of the receive buffer */
	uint32_t frag;
};

/* Whether the widths are allowed and fill the 32 bits. */
bool imm_split_valid(struct imm_split);

/* Each field fits its width. */
uint32_t imm_pack(struct imm_split, struct imm);
struct imm imm_unpack(struct imm_split, uint32_t);

/* In how many fragments the user's 32 bits travel. */
static inline uint32_t imm_fragments(struct imm_split s)
{
	return 32u / s.frag_bits;
}

/* The fragment of the user's immediate that the packet at this offset carries; the least significant is the first. */
static inline uint32_t imm_fragment(struct imm_split s, uint32_t user, uint32_t offset)
{
	return user >> offset % imm_fragments(s) * s.frag_bits & ((1u << s.frag_bits) - 1);
}
