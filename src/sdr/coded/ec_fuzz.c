/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both ends of an erasure-coded message take any words and any pieces at any time. The sender stays
 * within its bounds and within its layout, and the receiver says that all is there exactly when
 * each group has enough pieces, by a count of its own here.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/byteorder.h"
#include "sdr/coded/ec_receiver.h"
#include "sdr/coded/ec_sender.h"
#include "support/heap.h"

enum { PIECES_MAX = 128, PARITIES_MAX = 1024, OPS_MAX = 600 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int claim)
{
	if (!claim)
		abort();
}

struct both {
	struct ec_config c;
	struct ec_sender s;
	struct ec_receiver r;
	uint64_t data_bits[PIECES_MAX / 64], parity_bits[PARITIES_MAX / 64];
	uint64_t now_ns, sent;
};

static void send_one(struct both *b)
{
	const struct ec_layout *l = &b->c.layout;
	struct ec_piece p;

	if (!ec_sender_next(&b->s, &p))
		return;
	must(p.group < l->groups && p.at < (p.parity ? l->groups * l->parity_max : l->pieces));
	must(p.index < (p.parity ? l->parity_max : ec_layout_size(l, p.group)));
	ec_sender_sent(&b->s, b->now_ns);
	b->sent++;
	must(b->sent <= l->pieces + l->groups * l->parity_max + (uint64_t)b->c.tries_max * (l->pieces + l->groups));
}

/* The sender's words are made of the input's bytes, the lengths are right. */
static void say(struct both *b, const uint8_t *arg)
{
	struct ec_lack lacks[2] = {{arg[1] % 32, arg[2] % 64}, {arg[3] % 32, arg[0] % 64}};
	uint32_t groups[2] = {arg[1] % 32, arg[3] % 32};
	uint8_t payload[64];

	switch (arg[0] % 5) {
	case 0:
		ec_short_encode(payload, &(struct ec_short){arg[0] / 64u, arg[3] % 8u, 2}, lacks);
		ec_sender_take(&b->s, CONTROL_EC_SHORT, payload, b->now_ns);
		break;
	case 1:
		ec_nack_encode(payload, groups, 1 + arg[2] % 2);
		ec_sender_take(&b->s, CONTROL_EC_NACK, payload, b->now_ns);
		break;
	case 2:
		sr_ack_encode(payload, &(struct sr_ack){arg[1], arg[0] % 17u, 1}, &(struct ack_run){arg[2], arg[3]});
		ec_sender_take(&b->s, CONTROL_SR_ACK, payload, b->now_ns);
		break;
	case 3:
		sr_nack_encode(payload, &(struct chunk_run){arg[1], arg[2]}, 1);
		ec_sender_take(&b->s, CONTROL_SR_NACK, payload, b->now_ns);
		break;
	default:
		put_be32(payload, arg[1] * 2u);
		if (arg[2] > 250)
			ec_sender_take(&b->s, CONTROL_EC_ACK, payload, b->now_ns);
		ec_receiver_take(&b->r, arg[3] % 2 ? CONTROL_EC_END : CONTROL_PROBE, payload, b->now_ns);
	}
}

static bool bit(const uint64_t *bits, uint32_t at)
{
	return bits[at / 64] >> at % 64 & 1;
}

static bool group_enough(const struct both *b, uint32_t g)
{
	const struct ec_layout *l = &b->c.layout;
	uint32_t classes = b->c.kind == EC_XOR ? l->parity : 1;
	uint32_t size = ec_layout_size(l, g);

	for (uint32_t c = 0; c < classes; c++) {
		uint32_t missing = 0, spare = 0;

		for (uint32_t i = c; i < size; i += classes)
			missing += !bit(b->data_bits, ec_layout_data_of(l, g, i).at);
		for (uint32_t i = c; i < l->parity_max; i += classes)
			spare += bit(b->parity_bits, ec_layout_parity_of(l, g, i).at);
		if (missing > spare)
			return false;
	}
	return true;
}

static bool all_enough(const struct both *b)
{
	for (uint32_t g = 0; g < b->c.layout.groups; g++) {
		if (!group_enough(b, g))
			return false;
	}
	return true;
}

static void come(struct both *b, uint32_t n, bool parity)
{
	const struct ec_layout *l = &b->c.layout;
	uint32_t all = parity ? l->groups * l->parity_max : l->pieces;
	enum control_type type;
	uint8_t payload[64];
	uint32_t messages = 0;

	if (ec_receiver_whole(&b->r))
		return;
	if (all)
		(parity ? b->parity_bits : b->data_bits)[n % all / 64] |= UINT64_C(1) << n % all % 64;
	ec_receiver_look(&b->r, b->now_ns);
	must(ec_receiver_whole(&b->r) == all_enough(b));
	while (ec_receiver_tell(&b->r, payload, sizeof(payload), &type, b->now_ns))
		must(messages++ <= l->groups + 2);
	must(ec_receiver_deadline(&b->r) > b->now_ns);
}

static bool config_of(struct ec_config *c, const uint8_t *data)
{
	bool by_sr = data[0] % 2;

	*c = (struct ec_config){
		.layout = {.pieces = 1 + data[1] % PIECES_MAX,
			   .data = 4 + data[2] % 28,
			   .parity = data[3] % 8,
			   .depth = 1 + data[4] % 5,
			   .coded_from = data[5] % 4},
		.kind = by_sr && data[0] & 2 && data[3] % 8 ? EC_XOR : EC_CAUCHY,
		.fallback = by_sr ? EC_FALLBACK_SR : EC_FALLBACK_PARITY,
		.end_marker = data[0] & 4,
		.nack = data[0] & 8,
		.reorder = 2,
		.tries_max = 6,
		.rtt_ns = 100,
		.rto_ns = 300,
		.timeout_ns = 20000,
		.guard_ns = data[0] & 16 ? 10 : 0,
		.fallback_ns = 200,
		.ack_ns = 10,
		.loss = 0.1,
	};
	c->layout.parity_max = c->layout.parity + (c->kind == EC_XOR ? 0 : data[6] % 24);
	return ec_layout_settle(&c->layout) && c->layout.groups * c->layout.parity_max <= PARITIES_MAX;
}

static void step(struct both *b, const uint8_t *data)
{
	enum control_type type;
	uint8_t payload[EC_END_LEN];
	uint16_t len;

	b->now_ns += data[0] / 8;
	switch (data[0] % 8) {
	case 0: say(b, data + 1); break;
	case 1:
	case 2: come(b, data[1] * 256u + data[2], data[0] % 2); break;
	case 3:
		ec_sender_expire(&b->s, b->now_ns);
		while (ec_sender_tell(&b->s, payload, &len, &type, b->now_ns))
			must(len <= EC_END_LEN);
		break;
	default: send_one(b);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heap heap = HEAP_INIT;
	struct alloc alloc = heap_alloc(&heap);
	struct both b = {.now_ns = 1};

	if (size < 7 || !config_of(&b.c, data))
		return 0;
	must(!ec_sender_init(&b.s, &b.c, b.now_ns, &alloc));
	must(!ec_receiver_init(&b.r, &b.c, b.data_bits, b.parity_bits, b.now_ns, &alloc));
	data += 7;
	size -= 7;
	for (int op = 0; op < OPS_MAX && size >= 5; op++, data += 5, size -= 5)
		step(&b, data);
	ec_sender_free(&b.s);
	ec_receiver_free(&b.r);
	must(!heap.blocks);
	return 0;
}
