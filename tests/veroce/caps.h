/* SPDX-License-Identifier: BSD-2-Clause */
/* Which packets are CAPS, and a script that loses some of them. */
#pragma once

#include "duo/duo.h"
#include "wire/rocev2.h"
#include "wire/veroce.h"

static inline bool is_caps(const struct duo_packet *p, const void *arg)
{
	return p->veroce && (p->bth.opcode == OP_CAPS_REQUEST || p->bth.opcode == OP_CAPS_RESPONSE);
}

/* The n-th packets of CAPS that are lost, by bit. */
static inline bool lose_by_mask(void *ctx, const struct duo_packet *p, enum duo_fate *fate, uint64_t *n)
{
	uint64_t *mask = ctx;
	bool lost = *mask & 1;

	if (!is_caps(p, NULL))
		return false;
	*mask >>= 1;
	*fate = DUO_DROP;
	*n = 0;
	return lost;
}
