/* SPDX-License-Identifier: BSD-2-Clause */
/* The three fields of a transport immediate. */
#include "sdr/message/imm.h"

static uint32_t low_mask(uint8_t bits)
{
	return (uint32_t)((UINT64_C(1) << bits) - 1);
}

bool imm_split_valid(struct imm_split s)
{
	bool fragment = s.frag_bits == 1 || s.frag_bits == 2 || s.frag_bits == 4 || s.frag_bits == 8;

	return fragment && s.id_bits >= 1 && s.id_bits <= 16 && s.offset_bits >= 1 &&
	       s.id_bits + s.offset_bits + s.frag_bits == 32;
}

uint32_t imm_pack(struct imm_split s, struct imm f)
{
	return f.id << (s.offset_bits + s.frag_bits) | f.offset << s.frag_bits | f.frag;
}

struct imm imm_unpack(struct imm_split s, uint32_t bits)
{
	return (struct imm){
		.id = bits >> (s.offset_bits + s.frag_bits),
		.offset = bits >> s.frag_bits & low_mask(s.offset_bits),
		.frag = bits & low_mask(s.frag_bits),
	};
}
