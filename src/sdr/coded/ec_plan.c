/* SPDX-License-Identifier: BSD-2-Clause */
#include "sdr/coded/ec_plan.h"

#include "base/byteorder.h"

enum { PARITY = 1, MARKER = 2, NACK = 4, CHUNKS = 8, FLAGS = 15 };

static uint32_t fitted(uint64_t v)
{
	return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

void ec_plan_encode(uint8_t p[EC_PLAN_LEN], const struct ec_config *c, bool chunks)
{
	p[0] = (uint8_t)c->kind;
	p[1] = (uint8_t)((c->fallback == EC_FALLBACK_PARITY ? PARITY : 0) | (c->end_marker ? MARKER : 0) |
			 (c->nack ? NACK : 0) | (chunks ? CHUNKS : 0));
	put_be16(p + 2, (uint16_t)c->layout.data);
	put_be16(p + 4, (uint16_t)c->layout.parity);
	put_be16(p + 6, (uint16_t)c->layout.early);
	put_be16(p + 8, (uint16_t)c->layout.parity_max);
	put_be16(p + 10, (uint16_t)c->layout.depth);
	put_be32(p + 12, c->layout.coded_from);
	put_be32(p + 16, fitted(c->rtt_ns / 1000));
	put_be32(p + 20, fitted(c->inject_ns));
	put_be32(p + 24, fitted(c->rto_ns / 1000));
}

bool ec_plan_chunks(const uint8_t *p)
{
	return p[1] & CHUNKS;
}

static bool layout_read(struct ec_layout *l, const uint8_t *p, uint32_t pieces, uint64_t parity_pieces)
{
	*l = (struct ec_layout){
		.pieces = pieces,
		.data = get_be16(p + 2),
		.parity = get_be16(p + 4),
		.early = get_be16(p + 6),
		.parity_max = get_be16(p + 8),
		.depth = get_be16(p + 10),
		.coded_from = get_be32(p + 12),
	};
	return l->parity_max && l->data + l->parity_max <= EC_PIECES_MAX && ec_layout_settle(l) &&
	       (uint64_t)l->groups * l->parity_max <= parity_pieces;
}

static uint64_t at_least(uint64_t v, uint64_t low)
{
	return v > low ? v : low;
}

bool ec_plan_decode(struct ec_config *c, const uint8_t *p, uint32_t pieces, uint64_t parity_pieces, uint64_t rtt_ns_min)
{
	uint64_t rtt_ns = at_least((uint64_t)get_be32(p + 16) * 1000, rtt_ns_min);
	struct ec_config made = {
		.kind = (enum ec_kind)p[0],
		.fallback = p[1] & PARITY ? EC_FALLBACK_PARITY : EC_FALLBACK_SR,
		.end_marker = p[1] & MARKER,
		.nack = p[1] & NACK,
		.reorder = 2,
		.tries_max = 1,
		.rtt_ns = rtt_ns,
		.rto_ns = at_least((uint64_t)get_be32(p + 24) * 1000, rtt_ns),
		.timeout_ns = UINT64_MAX,
		.inject_ns = get_be32(p + 20),
		.guard_ns = at_least(rtt_ns / 64, 500000),
		.ack_ns = at_least(rtt_ns / 64, 20000),
	};

	if (p[0] > EC_XOR || p[1] > FLAGS || !layout_read(&made.layout, p, pieces, parity_pieces))
		return false;
	made.fallback_ns = ec_fallback_ns(&made.layout, made.inject_ns, rtt_ns, made.rto_ns);
	/* Pieces of a block overtake each other on several channels. */
	made.reorder = 16;
	if (!ec_config_valid(&made) || (made.kind == EC_XOR && made.layout.parity > made.layout.data))
		return false;
	*c = made;
	return true;
}
