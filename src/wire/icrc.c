/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RoCEv2 ICRC, and its test where the IPv4 identification is hidden.
 *
 * A CRC register holds a polynomial over GF(2) modulo P, bit 31 being the coefficient of x^0.
 * Feeding a zero byte multiplies it by x^8, and the register is linear in the message. So let D be
 * the difference between the ICRC received and the one computed with identification 0: if the
 * packet is intact, D = d * x^(8n), where d is a register with the two identification bytes in its
 * low 16 bits and n counts the bytes from the identification to the ICRC. Multiplying D by x^(-8n)
 * brings d back: where its high 16 bits are 0, the low ones are the only identification that
 * explains the ICRC; where they are not, none does. n depends on the length alone, and
 * multiplication by a constant is eight table look-ups, one a nibble; icrc_ctx keeps those tables
 * for the lengths last seen.
 */
#include "wire/icrc.h"

#include <assert.h>
#include <string.h>

#include <isa-l/crc.h>

#include "base/byteorder.h"
#include "base/ipudp.h"
#include "wire/bth.h"

enum {
	IPV4_ID_OFFSET = 4,
	BTH_RESV8A = 4,       /* FECN, BECN and 6 reserved bits: masked as one byte */
	CRC_LRH = 0x2144df1c, /* CRC-32 of the 8 bytes of ones */
	UNWIND_MAX_BITS = 17  /* n needs no more bits */
};

#define CRC_POLY     0xedb88320u /* x^32 mod P, bit-reversed */
#define CRC_POLY_ONE 0x80000000u /* x^0 */

static uint32_t icrc_compute(const struct pkt *pkt, uint16_t ip_id);
static bool icrc_len_ok(uint32_t len);
static const struct icrc_unwind *ctx_unwind(struct icrc_ctx *ctx, uint32_t len);

static uint32_t get_le32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

void icrc_seal(struct pkt *pkt)
{
	assert(icrc_len_ok(pkt->len));

	uint32_t crc = icrc_compute(pkt, pkt->ip_id);
	uint8_t *p = pkt->data + pkt->len - ICRC_LEN;

	p[0] = (uint8_t)crc;
	p[1] = (uint8_t)(crc >> 8);
	p[2] = (uint8_t)(crc >> 16);
	p[3] = (uint8_t)(crc >> 24);
}

bool icrc_check(struct icrc_ctx *ctx, const struct pkt *pkt, uint16_t *ip_id)
{
	if (!icrc_len_ok(pkt->len))
		return false;

	uint32_t diff = icrc_compute(pkt, 0) ^ get_le32(pkt->data + pkt->len - ICRC_LEN);

	if (diff && !flow_is_ipv4(pkt->flow))
		return false;
	if (diff) {
		const struct icrc_unwind *u = ctx_unwind(ctx, pkt->len);
		uint32_t d = 0;

		for (int i = 0; i < 8; i++)
			d ^= u->part[i][diff >> (4 * i) & 0xf];
		if (d >> 16)
			return false;
		diff = d;
	}
	/* The first byte on the wire, the high one, is in the register's low bits. */
	*ip_id = (uint16_t)((diff & 0xff) << 8 | diff >> 8);
	return true;
}

static bool icrc_len_ok(uint32_t len)
{
	return len >= BTH_LEN + ICRC_LEN && len <= IPUDP_PAYLOAD_MAX;
}

/*
 * IP, UDP and BTH as the ICRC sees them: what ipudp_encode() and bth_encode() write, with ones where
 * the fields are variant. Written here at once, since a header checksum that is then masked would be
 * a tenth of a small packet's cost. Returns the length.
 */
static size_t masked_head(uint8_t *p, const struct pkt *pkt, uint16_t ip_id)
{
	const struct flow *f = pkt->flow;
	uint16_t udp_len = (uint16_t)(IPUDP_UDP_LEN + pkt->len);
	size_t n;

	if (flow_is_ipv4(f)) {
		put_be32(p, 0x45ff0000u | (IPUDP_V4_LEN + pkt->len)); /* TOS */
		put_be32(p + 4, (uint32_t)ip_id << 16 | 0x4000);
		put_be32(p + 8, 0xff11ffffu); /* TTL, header checksum */
		memcpy(p + 12, f->src + 12, 4);
		memcpy(p + 16, f->dst + 12, 4);
		n = IPUDP_IPV4_LEN;
	} else {
		put_be32(p, 0x6fffffffu); /* traffic class, flow label */
		put_be32(p + 4, (uint32_t)udp_len << 16 | 0x11ff); /* hop limit */
		memcpy(p + 8, f->src, 16);
		memcpy(p + 24, f->dst, 16);
		n = IPUDP_V6_LEN - IPUDP_UDP_LEN;
	}
	put_be16(p + n, f->sport);
	put_be16(p + n + 2, f->dport);
	put_be32(p + n + 4, (uint32_t)udp_len << 16 | 0xffff); /* UDP checksum */
	n += IPUDP_UDP_LEN;
	memcpy(p + n, pkt->data, BTH_LEN);
	p[n + BTH_RESV8A] = 0xff;
	return n + BTH_LEN;
}

static uint32_t icrc_compute(const struct pkt *pkt, uint16_t ip_id)
{
	enum { SMALL = 160 }; /* two runs of the CRC cost more than a copy of so few bytes */
	uint8_t head[IPUDP_LEN_MAX + BTH_LEN + SMALL];
	size_t n = masked_head(head, pkt, ip_id);
	size_t rest = pkt->len - BTH_LEN - ICRC_LEN;
	uint32_t crc;

	if (rest <= SMALL) {
		memcpy(head + n, pkt->data + BTH_LEN, rest);
		return crc32_gzip_refl(CRC_LRH, head, n + rest);
	}
	crc = crc32_gzip_refl(CRC_LRH, head, n);
	return crc32_gzip_refl(crc, pkt->data + BTH_LEN, rest);
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
