/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ICRC, and its test where the IPv4 identification is hidden.
 *
 * A CRC register holds a polynomial over GF(2) modulo P, bit 31 being the coefficient of x^0.
 * Feeding a zero byte multiplies it by x^8, and the register is linear in the message. So let D be
 * the difference between the ICRC received and the one computed with some identification: if the
 * packet is intact, D = d * x^(8n), where the low 16 bits of the register d are the error of that
 * identification, and n counts the bytes from the identification to the ICRC. Multiplying D by
 * x^(-8n) gives d: if its high 16 bits are 0, the low ones lead to the only identification that
 * explains the ICRC; otherwise none does. n depends on the length alone, and multiplication by a
 * constant is eight table look-ups, one a nibble; icrc_ctx keeps those tables for the lengths last
 * seen.
 *
 * For the same reason only the packet's own bytes are fed each time, in one piece. The register's
 * value behind IP and UDP headers depends on flow and length, and is kept too; an identification
 * changes it by a sum of constants, one for each bit. One byte of the BTH counts as ones though it
 * is not. The difference can be added to the register before the BTH, divided by x^(8k), where k
 * counts the bytes from there to that byte.
 */
#include "wire/icrc.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/byteorder.h"
#include "base/ipudp.h"
#include "wire/bth.h"
#include "wire/crc32.h"
#include "wire/encap.h"

enum {
	IPV4_ID_OFFSET = 4,
	BTH_RESV8A = 4,       /* FECN, BECN and 6 reserved bits: masked as one byte */
	CRC_LRH = 0x2144df1c, /* CRC-32 of the 8 bytes of ones */
	UNWIND_MAX_BITS = 17  /* n needs no more bits */
};

#define CRC_POLY     0xedb88320u /* x^32 mod P, bit-reversed */
#define CRC_POLY_ONE 0x80000000u /* x^0 */

static bool icrc_len_ok(uint32_t len);
static const struct icrc_unwind *ctx_unwind(struct icrc_ctx *ctx, uint32_t len);

static uint32_t get_le32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* All sums of four of a register's bits' images. */
#define NIBBLE(a, b, c, d)                                                                                  \
	{                                                                                                   \
		0, a, b, (a) ^ (b), c, (a) ^ (c), (b) ^ (c), (a) ^ (b) ^ (c), d, (a) ^ (d), (b) ^ (d),      \
			(a) ^ (b) ^ (d), (c) ^ (d), (a) ^ (c) ^ (d), (b) ^ (c) ^ (d), (a) ^ (b) ^ (c) ^ (d) \
	}

/* Bit i of the identification's bytes, the first on the wire being the low one: times x^(8 * 24).
 */
static const uint32_t id_part[4][16] = {
	NIBBLE(0x81256527, 0xd93bcc0f, 0x69069e5f, 0xd20d3cbe),
	NIBBLE(0x7f6b7f3d, 0xfed6fe7a, 0x26dcfab5, 0x4db9f56a),
	NIBBLE(0x9b73ead4, 0xed96d3e9, 0x005ca193, 0x00b94326),
	NIBBLE(0x0172864c, 0x02e50c98, 0x05ca1930, 0x0b943260),
};
static_assert(IPUDP_V4_LEN - IPV4_ID_OFFSET == 24, "as the constants have it");

/* Bit i of a byte, divided by x^(8 * 4). */
static const uint32_t resv8a_part[2][16] = {
	NIBBLE(0xdb710641, 0x6d930ac3, 0xdb261586, 0x6d3d2d4d),
	NIBBLE(0xda7a5a9a, 0x6f85b375, 0xdf0b66ea, 0x6567cb95),
};
static_assert(BTH_RESV8A == 4, "as the constants have it");

static uint32_t id_effect(uint16_t ip_id)
{
	uint32_t low = id_part[2][ip_id & 0xf] ^ id_part[3][ip_id >> 4 & 0xf];

	return ip_id < 0x100 ? low : low ^ id_part[0][ip_id >> 8 & 0xf] ^ id_part[1][ip_id >> 12];
}

static uint32_t resv8a_effect(uint8_t byte)
{
	return resv8a_part[0][byte & 0xf] ^ resv8a_part[1][byte >> 4];
}

/* Both addresses, and both ports, lie side by side: each pair is copied and compared as one. */
static_assert(offsetof(struct flow, src) == 0 && offsetof(struct flow, dst) == sizeof(((struct flow *)0)->src) &&
		      offsetof(struct flow, dport) == offsetof(struct flow, sport) + sizeof(uint16_t),
	      "as struct icrc_start has them");

static const uint8_t *ports_of(const struct flow *f)
{
	return (const uint8_t *)f + offsetof(struct flow, sport);
}

static const struct icrc_start *start_fill(struct icrc_start *s, const struct flow *f, uint32_t len)
{
	const struct encap *encap = encap_of(f);
	uint8_t head[ENCAP_HEAD_MAX];
	size_t n = encap->masked_head(head, f, len);

	*s = (struct icrc_start){
		.len = len, .hides_id = encap->hides_id, .crc = crc32_ieee(CRC_LRH, head, n) ^ resv8a_effect(0xff)};
	memcpy(s->addresses, f, sizeof(s->addresses));
	memcpy(s->ports, ports_of(f), sizeof(s->ports));
	return s;
}

static inline bool is_start_of(const struct icrc_start *s, const struct flow *f, uint32_t len)
{
	return s->len == len && memcmp(s->ports, ports_of(f), sizeof(s->ports)) == 0 &&
	       memcmp(s->addresses, f, sizeof(s->addresses)) == 0;
}

/* 16 paths, and lengths that are near each other, have places of their own. */
static const struct icrc_start *start_find(struct icrc_starts *starts, const struct flow *f, uint32_t len)
{
	static_assert((ICRC_CTX_STARTS & (ICRC_CTX_STARTS - 1)) == 0, "a power of 2");
	uint32_t at = f->sport ^ f->src[15] ^ f->dst[15] ^ len / 4 << 4 ^ len / 4 >> 3;

	starts->last = at % ICRC_CTX_STARTS;
	if (!is_start_of(&starts->of[starts->last], f, len))
		start_fill(&starts->of[starts->last], f, len);
	return &starts->of[starts->last];
}

/* From those of one direction. */
static inline const struct icrc_start *start_of(struct icrc_starts *starts, const struct flow *f, uint32_t len)
{
	const struct icrc_start *last = &starts->of[starts->last];

	return is_start_of(last, f, len) ? last : start_find(starts, f, len);
}

static uint32_t icrc_compute(const struct icrc_start *s, const struct pkt *pkt)
{
	uint32_t crc = s->crc;

	if (s->hides_id && pkt->ip_id)
		crc ^= id_effect(pkt->ip_id);
	if (pkt->data[BTH_RESV8A])
		crc ^= resv8a_effect(pkt->data[BTH_RESV8A]);
	return crc32_ieee(crc, pkt->data, pkt->len - ICRC_LEN);
}

void icrc_seal(struct icrc_ctx *ctx, struct pkt *pkt, uint32_t secret)
{
	uint8_t *p = pkt->data + pkt->len - ICRC_LEN;
	struct icrc_start once;
	uint32_t crc;

	assert(icrc_len_ok(pkt->len));
	crc = icrc_compute(ctx ? start_of(&ctx->sealed, pkt->flow, pkt->len) : start_fill(&once, pkt->flow, pkt->len),
			   pkt) ^
	      secret;
	p[0] = (uint8_t)crc;
	p[1] = (uint8_t)(crc >> 8);
	p[2] = (uint8_t)(crc >> 16);
	p[3] = (uint8_t)(crc >> 24);
}

/*
 * The error of the identification; if it has more than 16 bits, no identification explains the
 * ICRC.
 */
static uint32_t unwind(struct icrc_ctx *ctx, uint32_t len, uint32_t diff)
{
	const struct icrc_unwind *u = ctx_unwind(ctx, len);
	uint32_t d = 0;

	for (int i = 0; i < 8; i++)
		d ^= u->part[i][diff >> (4 * i) & 0xf];
	return d;
}

static inline uint32_t diff_of(struct icrc_ctx *ctx, const struct pkt *pkt)
{
	return icrc_compute(start_of(&ctx->checked, pkt->flow, pkt->len), pkt) ^
	       get_le32(pkt->data + pkt->len - ICRC_LEN);
}

uint32_t icrc_diff(struct icrc_ctx *ctx, const struct pkt *pkt)
{
	return diff_of(ctx, pkt);
}

bool icrc_check(struct icrc_ctx *ctx, const struct pkt *pkt, uint32_t secret, uint16_t *ip_id)
{
	uint32_t diff;

	if (!icrc_len_ok(pkt->len))
		return false;
	diff = diff_of(ctx, pkt) ^ secret;
	if (!encap_of(pkt->flow)->hides_id) {
		if (diff)
			return false;
		*ip_id = 0;
		return true;
	}
	if (diff)
		diff = unwind(ctx, pkt->len, diff);
	if (diff >> 16)
		return false;
	/* The first byte on the wire, the high one, is in the register's low bits. */
	*ip_id = (uint16_t)(pkt->ip_id ^ ((diff & 0xff) << 8 | diff >> 8));
	return true;
}

static bool icrc_len_ok(uint32_t len)
{
	return len >= BTH_LEN + ICRC_LEN && len <= IPUDP_PAYLOAD_MAX;
}

/* The register r times x, and its inverse. */
static uint32_t poly_mul_x(uint32_t r)
{
	return r >> 1 ^ (r & 1 ? CRC_POLY : 0);
}

static uint32_t poly_div_x(uint32_t r)
{
	return r & CRC_POLY_ONE ? (r ^ CRC_POLY) << 1 | 1 : r << 1;
}

static uint32_t poly_mul(uint32_t a, uint32_t b)
{
	uint32_t r = 0;

	for (; a; a <<= 1) {
		r ^= a & CRC_POLY_ONE ? b : 0;
		b = poly_mul_x(b);
	}
	return r;
}

/* x^(-8n), by repeated squaring. */
static uint32_t poly_unwind(uint32_t n)
{
	uint32_t r = CRC_POLY_ONE;

	for (int bit = UNWIND_MAX_BITS - 1; bit >= 0; bit--) {
		r = poly_mul(r, r);
		for (int i = 0; i < 8 && n >> bit & 1; i++)
			r = poly_div_x(r);
	}
	return r;
}

static void unwind_fill(struct icrc_unwind *u, uint32_t len)
{
	static_assert(IPUDP_PAYLOAD_MAX + IPUDP_V4_LEN < 1 << UNWIND_MAX_BITS, "n fits");
	uint32_t image = poly_unwind(IPUDP_V4_LEN - IPV4_ID_OFFSET + len - ICRC_LEN);

	/* From bit 31, which is x^0, down: each bit's image is the one above it times x. */
	for (int bit = 31; bit >= 0; bit--) {
		uint32_t *part = u->part[bit / 4];
		int v = 1 << bit % 4;

		part[v] = image;
		image = poly_mul_x(image);
	}
	for (int i = 0; i < 8; i++) {
		uint32_t *part = u->part[i];

		part[0] = 0;
		for (int v = 1; v < 16; v++)
			part[v] = part[v & (v - 1)] ^ part[v & -v];
	}
	u->len = len;
}

static const struct icrc_unwind *ctx_unwind(struct icrc_ctx *ctx, uint32_t len)
{
	static_assert((ICRC_CTX_LENGTHS & (ICRC_CTX_LENGTHS - 1)) == 0, "a power of 2");
	/* Packet lengths are multiples of 4. */
	struct icrc_unwind *u = &ctx->row[len / 4 % ICRC_CTX_LENGTHS];

	if (u->len != len)
		unwind_fill(u, len);
	return u;
}
