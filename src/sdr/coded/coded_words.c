/* SPDX-License-Identifier: BSD-2-Clause */
/* Lengths were judged by control_decode(). */
#include "base/byteorder.h"
#include "sdr/coded/coded_words.h"

uint16_t coded_plan_encode(uint8_t *at, const struct coded_plan *p, bool ended)
{
	put_be32(at, p->packets);
	put_be32(at + 4, p->tail);
	put_be16(at + 8, p->size);
	put_be16(at + 10, p->depth);
	put_be16(at + 12, p->parity);
	put_be16(at + 14, ended);
	return CODED_PLAN_LEN;
}

bool coded_plan_decode(struct coded_plan *p, bool *ended, const uint8_t *at)
{
	struct coded_plan got = {
		.packets = get_be32(at),
		.tail = get_be32(at + 4),
		.size = get_be16(at + 8),
		.depth = get_be16(at + 10),
		.parity = get_be16(at + 12),
	};

	if (!coded_plan_settle(&got))
		return false;
	*p = got;
	*ended = get_be16(at + 14);
	return true;
}

uint16_t coded_state_encode(uint8_t *at, const struct coded_state *s)
{
	put_be32(at, s->seen);
	put_be32(at + 4, s->lost);
	put_be32(at + 8, s->bursts);
	put_be32(at + 12, s->whole);
	return CODED_STATE_LEN;
}

bool coded_state_decode(struct coded_state *s, const uint8_t *at)
{
	struct coded_state got = {get_be32(at), get_be32(at + 4), get_be32(at + 8), get_be32(at + 12)};

	if (got.lost > got.seen || got.bursts > got.lost)
		return false;
	*s = got;
	return true;
}
