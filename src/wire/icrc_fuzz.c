/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * icrc_seal and icrc_check against a model that builds the covered bytes one by one and divides
 * them bit by bit. The input is a recipe: byte 0 chooses (bit 0: IPv6, bit 1: keep the ICRC of the
 * input instead of sealing, bit 2: damage, bit 3: RoCEv1 instead of UDP), bytes 1..2 the identification, 3..22 the rest
 * of the flow, 23..26 where and what to damage, and from 27 on the transport bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_input.h"
#include "wire/bth.h"
#include "wire/icrc.h"

enum {
	RECIPE_LEN = 27,
	BRUTE_LEN_MAX = 200, /* trying all identifications is affordable up to here */
	MODEL_LEN_MAX = 8 + 48 + 16384
};

static uint32_t divide(uint32_t crc, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return crc;
}

/* Writes the covered bytes, returns how many. */
static size_t model_bytes(uint8_t *out, const struct pkt *p, uint16_t ip_id, int ipv6)
{
	const struct flow *f = p->flow;
	uint32_t udp_len = 8 + p->len, ip_len = 20 + udp_len;
	size_t n = 0;

	for (int i = 0; i < 8; i++)
		out[n++] = 0xff;
	if (!f->dport) {
		const uint8_t head[8] = {0x6f, 0xff, 0xff, 0xff, (uint8_t)(p->len >> 8), (uint8_t)p->len, 27, 0xff};

		memcpy(out + n, head, 8);
		memcpy(out + n + 8, f->src, 16);
		memcpy(out + n + 24, f->dst, 16);
		n += 40;
	} else if (ipv6) {
		const uint8_t head[8] = {0x6f, 0xff, 0xff, 0xff, (uint8_t)(udp_len >> 8), (uint8_t)udp_len, 17, 0xff};

		memcpy(out + n, head, 8);
		memcpy(out + n + 8, f->src, 16);
		memcpy(out + n + 24, f->dst, 16);
		n += 40;
	} else {
		const uint8_t head[12] = {0x45,
					  0xff,
					  (uint8_t)(ip_len >> 8),
					  (uint8_t)ip_len,
					  (uint8_t)(ip_id >> 8),
					  (uint8_t)ip_id,
					  0x40,
					  0,
					  0xff,
					  17,
					  0xff,
					  0xff};

		memcpy(out + n, head, 12);
		memcpy(out + n + 12, f->src + 12, 4);
		memcpy(out + n + 16, f->dst + 12, 4);
		n += 20;
	}
	const uint8_t udp[8] = {(uint8_t)(f->sport >> 8),
				(uint8_t)f->sport,
				(uint8_t)(f->dport >> 8),
				(uint8_t)f->dport,
				(uint8_t)(udp_len >> 8),
				(uint8_t)udp_len,
				0xff,
				0xff};

	memcpy(out + n, udp, 8);
	n += f->dport ? 8 : 0;
	memcpy(out + n, p->data, p->len - 4);
	out[n + 4] = 0xff;
	return n + p->len - 4;
}

static uint32_t model(const struct pkt *p, uint16_t ip_id, int ipv6)
{
	static uint8_t bytes[MODEL_LEN_MAX];

	return ~divide(0xffffffff, bytes, model_bytes(bytes, p, ip_id, ipv6));
}

static uint32_t received(const struct pkt *p)
{
	const uint8_t *t = p->data + p->len - 4;

	return t[0] | (uint32_t)t[1] << 8 | (uint32_t)t[2] << 16 | (uint32_t)t[3] << 24;
}

/* Whether any identification explains the ICRC: all 2^16 by Gray code, one bit's effect a step. */
static int model_any(const struct pkt *p)
{
	uint32_t crc = model(p, 0, 0), want = received(p), effect[16];

	for (int bit = 0; bit < 16; bit++)
		effect[bit] = crc ^ model(p, (uint16_t)(1u << bit), 0);
	for (uint32_t i = 1; i < 1u << 16; i++) {
		if (crc == want)
			return 1;
		crc ^= effect[__builtin_ctz(i)];
	}
	return crc == want;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct icrc_ctx ctx; /* kept from input to input: its state must not matter */
	struct flow f = {0};

	if (size < RECIPE_LEN || size - RECIPE_LEN > 16384)
		return 0;

	int ipv6 = data[0] & 1, keep = data[0] & 2, damage = data[0] & 4;
	uint16_t ip_id = (uint16_t)(data[1] << 8 | data[2]);
	uint16_t got = 0x5a5a;
	struct pkt p = {.flow = &f, .len = (uint32_t)(size - RECIPE_LEN), .ip_id = ip_id};

	if (!ipv6)
		f.src[10] = f.src[11] = f.dst[10] = f.dst[11] = 0xff;
	memcpy(f.src + 12, data + 3, 4);
	memcpy(f.dst + 12, data + 7, 4);
	f.sport = (uint16_t)(data[11] << 8 | data[12]);
	f.dport = data[0] & 8 ? 0 : (uint16_t)(data[13] << 8 | data[14]);
	f.tos = data[15];
	f.ttl = data[16];
	memcpy(&f.flow_label, data + 17, 4);
	ipv6 |= !f.dport; /* neither has an identification */
	p.data = malloc(p.len ? p.len : 1);
	memcpy(p.data, data + RECIPE_LEN, p.len);

	if (p.len < BTH_LEN + ICRC_LEN) {
		must(!icrc_check(&ctx, &p, 0, &got) && got == 0x5a5a);
		free(p.data);
		return 0;
	}

	if (!keep) {
		icrc_seal(&ctx, &p, 0);
		must(received(&p) == model(&p, ip_id, ipv6));
		memset(p.data + p.len - ICRC_LEN, 0, ICRC_LEN);
		icrc_seal(NULL, &p, 0);
		must(received(&p) == model(&p, ip_id, ipv6));
		p.ip_id = (uint16_t)(data[20] << 8 | data[21]); /* a guess */
		must(icrc_check(&ctx, &p, 0, &got) && got == (ipv6 ? 0 : ip_id));
	}
	if (damage)
		p.data[(data[23] << 8 | data[24]) % p.len] ^= data[25];

	got = 0x5a5a;
	if (icrc_check(&ctx, &p, 0, &got)) {
		must(model(&p, got, ipv6) == received(&p));
		must(!ipv6 || got == 0);
	} else {
		must(got == 0x5a5a);
		must(ipv6 || p.len > BRUTE_LEN_MAX || !model_any(&p));
		must(!ipv6 || model(&p, 0, 1) != received(&p));
	}
	free(p.data);
	return 0;
}
