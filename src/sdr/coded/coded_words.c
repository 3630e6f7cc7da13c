/* SPDX-License-Identifier: BSD-2-Clause */
/* Lengths were judged by control_decode(). */
#include "base/byteorder.h"
#include "sdr/coded/coded_words.h"

enum { ENDED = 1, CHUNKS = 2, XOR = 4, REPEATS = 8, NACK = 16, FLAGS = 63 };

static uint32_t us(uint64_t ns)
{
	return ns / 1000 < UINT32_MAX ? (uint32_t)(ns / 1000) : UINT32_MAX;
}

uint16_t coded_plan_encode(uint8_t at[CODED_PLAN_LEN_MAX], const struct coded_plan *p)
{
	int flags = (p->ended ? ENDED : 0) | (p->chunks ? CHUNKS : 0) | (p->is_xor ? XOR : 0) |
		    (p->repeats ? REPEATS : 0) | (p->nack ? NACK : 0) | (p->rtt_ns ? CODED_PLAN_TIMES : 0);

	put_be32(at, p->layout.pieces);
	put_be32(at + 4, p->layout.first);
	put_be16(at + 8, (uint16_t)p->layout.data);
	put_be16(at + 10, (uint16_t)p->layout.depth);
	put_be16(at + 12, (uint16_t)p->layout.parity_max);
	put_be16(at + 14, (uint16_t)flags);
	if (!p->rtt_ns)
		return CODED_PLAN_LEN;
	put_be32(at + 16, us(p->rtt_ns));
	put_be32(at + 20, us(p->wait_ns));
	return CODED_PLAN_LEN_MAX;
}

bool coded_plan_decode(struct coded_plan *p, const uint8_t *at)
{
	uint16_t flags = get_be16(at + 14);
	struct coded_plan got = {
		.layout = {.pieces = get_be32(at),
			   .first = get_be32(at + 4),
			   .data = get_be16(at + 8),
			   .depth = get_be16(at + 10),
			   .parity = get_be16(at + 12),
			   .parity_max = get_be16(at + 12)},
		.ended = flags & ENDED,
		.chunks = flags & CHUNKS,
		.is_xor = flags & XOR,
		.repeats = flags & REPEATS,
		.nack = flags & NACK,
	};

	if (flags > FLAGS || !ec_layout_settle(&got.layout))
		return false;
	/* Of XOR not every parity helps, so that pieces cannot be named by their number. */
	if (got.is_xor && (!got.repeats || ec_layout_is_wide(&got.layout) || got.layout.parity > got.layout.data))
		return false;
	if (flags & CODED_PLAN_TIMES) {
		got.rtt_ns = (uint64_t)get_be32(at + 16) * 1000;
		got.wait_ns = (uint64_t)get_be32(at + 20) * 1000;
	}
	*p = got;
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
