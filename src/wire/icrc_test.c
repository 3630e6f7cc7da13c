/* SPDX-License-Identifier: BSD-2-Clause */
/* The ICRC against packets made by others, and its test without the IPv4 identification. */

#include "base/flow_golden.h"
#include "base/ipudp.h"
#include "base/prng.h"
#include "support/test.h"
#include "wire/bth.h"
#include "wire/icrc.h"

enum { BUF_LEN = 65536 };

static uint8_t buf[BUF_LEN];
static struct icrc_ctx ctx;

/* A packet in buf whose n bytes behind BTH are 3, 10, 17 .. as in the golden vectors. */
static struct pkt make(uint8_t opcode, uint32_t n, const struct flow *f, uint16_t ip_id)
{
	struct bth bth = {
		.opcode = opcode, .migreq = true, .pkey = 0xffff, .dqpn = 0x123456, .ackreq = true, .psn = 0xabcdef};

	bth_encode(buf, &bth);
	for (uint32_t i = 0; i < n; i++)
		buf[BTH_LEN + i] = (uint8_t)(i * 7 + 3);
	return (struct pkt){.data = buf, .flow = f, .len = BTH_LEN + n + ICRC_LEN, .ip_id = ip_id, .train = 1};
}

/*
 * IPv4: Scapy 2.5, contrib/roce. IPv6, which that layer lacks: Scapy's IPv6 and BTH bytes, masked
 * as Annex A17 says and put through zlib's crc32.
 */
TEST(icrc_seal_matches_golden_vectors)
{
	static const struct {
		const struct flow *flow;
		uint8_t opcode;
		uint32_t n;
		uint16_t ip_id;
		uint8_t icrc[4];
	} row[] = {
		{&flow4, 0x11, 4, 0, {0x21, 0x00, 0xe9, 0x92}},
		{&flow4, 0x04, 0, 1, {0x06, 0x17, 0x94, 0x46}},
		{&flow4, 0x64, 72, 0xbeef, {0x8d, 0x78, 0x1b, 0x60}},
		{&flow4, 0x0a, 1040, 0x8001, {0xc0, 0x81, 0xf4, 0x25}},
		{&flow4, 0x01, 4096, 0xffff, {0x98, 0x1f, 0x4f, 0x01}},
		{&flow6, 0x11, 4, 7, {0x8b, 0xd0, 0xd0, 0x89}},
		{&flow6, 0x04, 0, 7, {0x71, 0x9b, 0xfb, 0x79}},
		{&flow6, 0x64, 72, 7, {0x27, 0x29, 0x62, 0xdb}},
		{&flow6, 0x0a, 1040, 7, {0xa2, 0xeb, 0xdc, 0x4b}},
		{&flow6, 0x01, 4096, 7, {0xed, 0x98, 0xa0, 0x57}},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct pkt p = make(row[i].opcode, row[i].n, row[i].flow, row[i].ip_id);
		uint16_t id = 0x5a5a;

		icrc_seal(NULL, &p, 0);
		assert_memory_equal(p.data + p.len - ICRC_LEN, row[i].icrc, ICRC_LEN);
		p.ip_id = 0;
		assert_true(icrc_check(&ctx, &p, 0, &id));
		assert_int_equal(id, row[i].flow == &flow4 ? row[i].ip_id : 0);
	}
}

/* A CNP sent by a ConnectX-4 Lx, published with the tests of Scapy's RoCE layer. */
TEST(icrc_check_accepts_a_cnp_captured_from_hardware)
{
	static const struct flow f = {
		.src = {[10] = 0xff, [11] = 0xff, 10, 0, 17, 1},
		.dst = {[10] = 0xff, [11] = 0xff, 10, 0, 18, 1},
		.sport = 0,
		.dport = 4791,
		.tos = 0xc2,
		.ttl = 64,
	};
	uint8_t cnp[32] = {0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18, [28] = 0x82, 0xfd, 0x00, 0x2a};
	struct pkt p = {.data = cnp, .flow = &f, .len = sizeof(cnp)};
	uint16_t id;

	assert_true(icrc_check(&ctx, &p, 0, &id));
	assert_int_equal(id, 0x718c);
}

/* The example of a UC SEND in the same tests, its ICRC stated there. */
TEST(icrc_check_accepts_a_published_uc_send)
{
	static const struct flow f = {
		.src = {[10] = 0xff, [11] = 0xff, 192, 168, 0, 7},
		.dst = {[10] = 0xff, [11] = 0xff, 192, 168, 0, 7},
		.sport = 49152,
		.dport = 4791,
		.tos = 1,
		.ttl = 64,
	};
	static const uint8_t tail[24] = {0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89, 0x35, 0xd9, 0x0e, 0x9a, 0x95, 0x50,
					 0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0x00, 0x00, 0x78, 0xf3, 0x53, 0xf3};
	struct bth bth = {.opcode = 0x24, .migreq = true, .pad = 2, .pkey = 0xffff, .dqpn = 211, .psn = 13571856};
	uint8_t send[BTH_LEN + sizeof(tail)];
	struct pkt p = {.data = send, .flow = &f, .len = sizeof(send)};
	uint16_t id;

	bth_encode(send, &bth);
	memcpy(send + BTH_LEN, tail, sizeof(tail));
	assert_true(icrc_check(&ctx, &p, 0, &id));
	assert_int_equal(id, 1144);
}

TEST(icrc_check_finds_every_identification_whatever_the_guess)
{
	for (uint32_t id = 0; id < 0x10000; id++) {
		struct pkt p = make(0x04, 64, &flow4, (uint16_t)id);
		const uint16_t guesses[] = {0, (uint16_t)id, (uint16_t)(id - 1), (uint16_t)~id};

		icrc_seal(NULL, &p, 0);
		for (size_t i = 0; i < sizeof(guesses) / sizeof(guesses[0]); i++) {
			uint16_t got = (uint16_t)~id;

			p.ip_id = guesses[i];
			assert_true(icrc_check(&ctx, &p, 0, &got));
			assert_int_equal(got, id);
		}
	}
}

/* The bytes that the ICRC covers, divided bit by bit. */
static uint32_t divide(const struct pkt *p, uint16_t ip_id)
{
	uint8_t bytes[8 + 28 + 512];
	uint32_t crc = 0xffffffff, n = p->len - ICRC_LEN;

	memset(bytes, 0xff, 8);
	ipudp_encode(bytes + 8, p->flow, ip_id, p->len);
	bytes[9] = bytes[16] = bytes[18] = bytes[19] = bytes[34] = bytes[35] = 0xff;
	memcpy(bytes + 36, p->data, n);
	bytes[36 + 4] = 0xff;
	for (uint32_t i = 0; i < 36 + n; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return ~crc;
}

static uint32_t icrc_of(const struct pkt *p)
{
	const uint8_t *t = p->data + p->len - ICRC_LEN;

	return t[0] | (uint32_t)t[1] << 8 | (uint32_t)t[2] << 16 | (uint32_t)t[3] << 24;
}

/* Each of their bits has a constant of its own. */
TEST(icrc_seal_knows_every_bit_of_identification_and_masked_byte)
{
	for (int bit = 0; bit < 16; bit++) {
		struct pkt p = make(0x04, 8, &flow4, (uint16_t)(1u << bit));

		icrc_seal(NULL, &p, 0);
		assert_int_equal(icrc_of(&p), divide(&p, p.ip_id));
	}
	for (uint32_t byte = 0; byte < 256; byte++) {
		struct pkt p = make(0x04, 8, &flow4, 0x1234);

		p.data[4] = (uint8_t)byte;
		icrc_seal(NULL, &p, 0);
		assert_int_equal(icrc_of(&p), divide(&p, p.ip_id));
	}
}

/* Packets of several flows and lengths by turns, so that the places in the cache are taken over. */
TEST(icrc_seal_does_not_depend_on_the_cache)
{
	static struct icrc_ctx seals;
	struct prng rng;

	prng_init(&rng, 3);
	for (int i = 0; i < 20000; i++) {
		struct flow f = flow4;
		struct pkt p = make(0x04, (uint32_t)prng_below(&rng, 80) * 4, &f, (uint16_t)prng_below(&rng, 64));
		uint32_t alone;

		f.src[15] ^= (uint8_t)prng_below(&rng, 4);
		f.dst[12] ^= (uint8_t)prng_below(&rng, 2);
		f.src[13] ^= (uint8_t)prng_below(&rng, 2);
		f.sport ^= (uint16_t)(prng_below(&rng, 2) << 12);
		f.dport ^= (uint16_t)prng_below(&rng, 2);
		icrc_seal(NULL, &p, 0);
		alone = icrc_of(&p);
		icrc_seal(&seals, &p, 0);
		assert_int_equal(icrc_of(&p), alone);
		assert_int_equal(alone, divide(&p, p.ip_id));
	}
}

/* More lengths than the cache has rows, in an order that makes them evict one another. */
TEST(icrc_check_finds_the_identification_at_every_length)
{
	struct prng rng;

	prng_init(&rng, 1);
	for (uint32_t n = 0; n < 4300; n++) {
		struct pkt p = make(0x04, n, &flow4, (uint16_t)prng_next(&rng));
		uint16_t got;

		icrc_seal(NULL, &p, 0);
		assert_true(icrc_check(&ctx, &p, 0, &got));
		assert_int_equal(got, p.ip_id);
		p.ip_id = (uint16_t)prng_next(&rng);
		p.len = BTH_LEN + ICRC_LEN + (uint32_t)prng_below(&rng, 1000) * 4;
		icrc_seal(NULL, &p, 0);
		assert_true(icrc_check(&ctx, &p, 0, &got));
		assert_int_equal(got, p.ip_id);
	}
}

TEST(icrc_check_does_not_depend_on_the_cache)
{
	struct prng rng;

	prng_init(&rng, 2);
	for (int i = 0; i < 20000; i++) {
		struct pkt p = make(0x04, (uint32_t)prng_below(&rng, 64) * 4, &flow4, 0);
		uint8_t *icrc = p.data + p.len - ICRC_LEN;
		struct icrc_ctx fresh;
		uint16_t id = 1, id_fresh = 1;

		p.ip_id = (uint16_t)prng_next(&rng);
		icrc_seal(NULL, &p, 0);
		icrc[0] ^= (uint8_t)(prng_next(&rng) & 7);
		icrc[3] ^= (uint8_t)(prng_next(&rng) & 7);
		memset(&fresh, 0, sizeof(fresh));
		assert_int_equal(icrc_check(&ctx, &p, 0, &id), icrc_check(&fresh, &p, 0, &id_fresh));
		assert_int_equal(id, id_fresh);
	}
}

TEST(icrc_check_rejects_every_single_bit_error)
{
	static const struct flow *const flows[] = {&flow4, &flow6};

	for (size_t i = 0; i < 2; i++) {
		struct pkt p = make(0x04, 256, flows[i], 0x1234);

		icrc_seal(NULL, &p, 0);
		for (uint32_t bit = 0; bit < p.len * 8; bit++) {
			uint16_t id = 0x5a5a;

			if (bit / 8 == 4) /* FECN, BECN and what is reserved beside them */
				continue;
			p.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
			assert_false(icrc_check(&ctx, &p, 0, &id));
			assert_int_equal(id, 0x5a5a);
			p.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

/*
 * The flags and fragment offset follow the identification and are covered, so an ICRC that differs
 * by any one of their bits is wrong: the search stops at 16 bits exactly.
 */
TEST(icrc_check_searches_no_bit_beyond_the_identification)
{
	struct pkt p = make(0x04, 256, &flow4, 0x1234);

	for (int bit = 0; bit < 16; bit++) {
		/* The register after that bit and all that follows it up to the ICRC, bit by bit.
		 */
		uint32_t effect = 1u << bit;
		uint32_t n = 28 - 6 + p.len - ICRC_LEN;
		uint8_t *icrc = p.data + p.len - ICRC_LEN;
		uint16_t id;

		for (uint32_t i = 0; i < n * 8; i++)
			effect = effect & 1 ? effect >> 1 ^ 0xedb88320 : effect >> 1;
		icrc_seal(NULL, &p, 0);
		assert_true(icrc_check(&ctx, &p, 0, &id));
		for (int i = 0; i < ICRC_LEN; i++)
			icrc[i] ^= (uint8_t)(effect >> (8 * i));
		assert_false(icrc_check(&ctx, &p, 0, &id));
	}
}

/* What routers may change, Annex A17.3.3. */
TEST(icrc_check_ignores_the_variant_fields)
{
	static const struct flow *const flows[] = {&flow4, &flow6};

	for (size_t i = 0; i < 2; i++) {
		struct pkt p = make(0x04, 256, flows[i], 0x1234);
		struct flow f = *flows[i];
		uint16_t id;

		icrc_seal(NULL, &p, 0);
		f.tos ^= 0xff;
		f.ttl ^= 0xff;
		f.flow_label ^= 0xfffff;
		p.flow = &f;
		p.data[4] ^= 0xff;
		assert_true(icrc_check(&ctx, &p, 0, &id));
	}
}

TEST(icrc_check_covers_addresses_and_ports)
{
	static const struct flow *const flows[] = {&flow4, &flow6};

	for (size_t i = 0; i < 2; i++) {
		struct pkt p = make(0x04, 256, flows[i], 0x1234);
		struct flow f = *flows[i];
		uint16_t id;

		icrc_seal(NULL, &p, 0);
		p.flow = &f;
		for (size_t k = i ? 0 : 12; k < 16; k++) {
			f.src[k] ^= 1;
			assert_false(icrc_check(&ctx, &p, 0, &id));
			f.src[k] ^= 1;
			f.dst[k] ^= 1;
			assert_false(icrc_check(&ctx, &p, 0, &id));
			f.dst[k] ^= 1;
		}
		f.sport ^= 1;
		assert_false(icrc_check(&ctx, &p, 0, &id));
		f.sport ^= 1;
		f.dport ^= 0x8000;
		assert_false(icrc_check(&ctx, &p, 0, &id));
		f.dport ^= 0x8000;
		assert_true(icrc_check(&ctx, &p, 0, &id));
	}
}

TEST(icrc_check_rejects_impossible_lengths)
{
	static const uint32_t lens[] = {0, 3, 4, BTH_LEN, BTH_LEN + ICRC_LEN - 1, 65508, UINT32_MAX};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct pkt p = {.data = buf, .flow = &flow4, .len = lens[i]};
		uint16_t id;

		assert_false(icrc_check(&ctx, &p, 0, &id));
	}
}

TEST(icrc_works_at_the_largest_datagram)
{
	struct pkt p = make(0x04, 65507 - BTH_LEN - ICRC_LEN, &flow4, 0xabcd);
	uint16_t id;

	icrc_seal(NULL, &p, 0);
	assert_true(icrc_check(&ctx, &p, 0, &id));
	assert_int_equal(id, 0xabcd);
}
