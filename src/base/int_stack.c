/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file knows the fields' widths and units, and nothing of what a stack is used for. The codes
 * of B are ours, since HPCC's are too few; they rise with the speed.
 */
#include "base/int_stack.h"

#include "base/byteorder.h"

enum {
	RATE_SHIFT = 60,
	TS_BITS = 24,
	TS_SHIFT = 36,
	TX_BITS = 20,
	TX_SHIFT = 16,
	QLEN_BITS = 16,
	TX_UNIT_BYTES = 128,
	QLEN_UNIT_BYTES = 80,
	PATH_ID_BITS = 12,
};

#define MASK(bits) ((UINT64_C(1) << (bits)) - 1)

static const uint64_t rates_bps[16] = {
	0,           100000000,   1000000000,   2500000000,   5000000000,   10000000000,  25000000000,
	40000000000, 50000000000, 100000000000, 200000000000, 400000000000, 800000000000, 1600000000000,
};

static unsigned int rate_code(uint64_t rate_bps)
{
	unsigned int code = 0;

	while (code + 1 < 16 && rates_bps[code + 1] && rates_bps[code + 1] <= rate_bps)
		code++;
	return code;
}

/* m of HPCC: faster ports count in larger units, so that all wrap about as fast. */
static uint64_t unit_factor(uint64_t rate_bps)
{
	uint64_t m = rate_bps / UINT64_C(25000000000);

	return m ? m : 1;
}

bool int_rate_is_known(uint64_t rate_bps)
{
	return rate_bps && rates_bps[rate_code(rate_bps)] == rate_bps;
}

uint64_t int_hop_pack(const struct int_hop *h)
{
	unsigned int code = rate_code(h->rate_bps);
	uint64_t m = unit_factor(rates_bps[code]);
	uint64_t qlen = h->qlen_bytes / (QLEN_UNIT_BYTES * m);

	if (qlen > MASK(QLEN_BITS))
		qlen = MASK(QLEN_BITS);
	return (uint64_t)code << RATE_SHIFT | (h->ts_ns & MASK(TS_BITS)) << TS_SHIFT |
	       (h->tx_bytes / (TX_UNIT_BYTES * m) & MASK(TX_BITS)) << TX_SHIFT | qlen;
}

struct int_hop int_hop_unpack(uint64_t packed)
{
	uint64_t rate_bps = rates_bps[packed >> RATE_SHIFT], m = unit_factor(rate_bps);

	return (struct int_hop){
		.rate_bps = rate_bps,
		.ts_ns = packed >> TS_SHIFT & MASK(TS_BITS),
		.tx_bytes = (packed >> TX_SHIFT & MASK(TX_BITS)) * TX_UNIT_BYTES * m,
		.qlen_bytes = (uint32_t)((packed & MASK(QLEN_BITS)) * QLEN_UNIT_BYTES * m),
	};
}

uint64_t int_ts_diff_ns(const struct int_hop *later, const struct int_hop *earlier)
{
	return (later->ts_ns - earlier->ts_ns) & MASK(TS_BITS);
}

uint64_t int_tx_diff_bytes(const struct int_hop *later, const struct int_hop *earlier)
{
	uint64_t unit = TX_UNIT_BYTES * unit_factor(later->rate_bps);

	/* a modulus of 2^20 units, and a unit need not be a power of two */
	return (later->tx_bytes - earlier->tx_bytes + (unit << TX_BITS)) % (unit << TX_BITS);
}

bool int_stack_push(struct int_stack *s, const struct int_hop *h, uint32_t switch_id)
{
	if (s->hops >= INT_HOPS_MAX)
		return false;
	s->hop[s->hops++] = int_hop_pack(h);
	s->path_id ^= (uint16_t)(switch_id & MASK(PATH_ID_BITS));
	return true;
}

size_t int_stack_encode(uint8_t *p, const struct int_stack *s)
{
	put_be16(p, (uint16_t)(s->hops << PATH_ID_BITS | s->path_id));
	for (unsigned int i = 0; i < s->hops; i++)
		put_be64(p + INT_HEADER_LEN + i * INT_HOP_LEN, s->hop[i]);
	return int_stack_len(s->hops);
}

size_t int_stack_decode(struct int_stack *s, const uint8_t *p, size_t len)
{
	unsigned int hops;

	if (len < INT_HEADER_LEN)
		return 0;
	hops = p[0] >> 4;
	if (hops > INT_HOPS_MAX || len < int_stack_len(hops))
		return 0;
	int_stack_init(s);
	s->hops = (uint8_t)hops;
	s->path_id = get_be16(p) & MASK(PATH_ID_BITS);
	for (unsigned int i = 0; i < hops; i++)
		s->hop[i] = get_be64(p + INT_HEADER_LEN + i * INT_HOP_LEN);
	return int_stack_len(hops);
}
