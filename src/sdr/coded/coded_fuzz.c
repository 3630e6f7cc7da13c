/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both ends of coding, over the tail or with a code that was chosen, are told anything at any time. Nothing may break,
 * packets and parities stay within the message, a sender sends nothing once it has ended and fills no more than a round
 * trip, and a receiver is whole only if it has, or can compute, every packet: a model with a flag for each packet counts
 * again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sdr/coded/coded_receiver.h"
#include "sdr/coded/coded_sender.h"
#include "support/heap.h"

enum { PACKETS_MAX = 600, PARITIES = 1000, OPS_MAX = 400 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int claim)
{
	if (!claim)
		abort();
}

struct both {
	struct coded_sender s;
	struct coded_receiver r;
	uint8_t have[PACKETS_MAX], parity[PARITIES];
	uint32_t packets;
	uint64_t now_ns;
};

static void hear_names(struct both *b, const uint8_t *arg)
{
	struct chunk_run runs[2] = {{(uint32_t)(arg[0] * 3), arg[1] % 64}, {(uint32_t)(arg[2] * 3), arg[3] % 64}};
	uint8_t payload[SR_NACK_FIXED_LEN + 2 * SR_NACK_RUN_LEN];

	sr_nack_encode(payload, runs, 2);
	coded_sender_take(&b->s, CONTROL_SR_NACK, payload, b->now_ns);
}

static void hear_state(struct both *b, const uint8_t *arg)
{
	struct coded_state t = {(uint32_t)(arg[0] * 3), arg[1], arg[2], arg[3] > 250};
	uint8_t payload[CODED_STATE_LEN];

	coded_state_encode(payload, &t);
	coded_sender_take(&b->s, CONTROL_CODED_STATE, payload, b->now_ns);
	must(loss_estimate_high(&b->s.estimate) <= 0.5 && loss_estimate_burst(&b->s.estimate) >= 1);
}

static void hear_ack(struct both *b, const uint8_t *arg)
{
	uint8_t payload[SR_ACK_FIXED_LEN + SR_ACK_RUN_LEN];

	sr_ack_encode(payload, &(struct sr_ack){arg[0], arg[1], 1}, &(struct ack_run){arg[2], arg[3]});
	coded_sender_take(&b->s, CONTROL_SR_ACK, payload, b->now_ns);
}

static void hear_plan(struct both *b, const uint8_t *arg)
{
	struct coded_plan p = {
		.layout = {.pieces = arg[3] & 1 ? b->packets : arg[3],
			   .first = arg[0],
			   .data = arg[1],
			   .depth = arg[2] % 80,
			   .parity_max = arg[3] % 16},
		.ended = arg[3] & 2,
		.is_xor = arg[3] & 64,
		.repeats = arg[3] & 128,
		.rtt_ns = arg[3] & 32 ? 100000 : 0,
		.wait_ns = arg[2] * 1000,
	};
	uint8_t payload[CODED_PLAN_LEN_MAX];

	coded_plan_encode(payload, arg[2] & 128 ? &b->s.plan : &p);
	coded_receiver_take(&b->r, arg[2] == 127 ? CONTROL_PROBE : CONTROL_CODED_PLAN, payload, b->now_ns);
}

static void receive(struct both *b, const uint8_t *arg)
{
	uint32_t packet = (uint32_t)(arg[0] | arg[1] << 8) % (PARITIES + 8);
	bool parity = arg[2] & 1;

	for (uint32_t i = 0; i <= arg[3] % 32; i++, packet++) {
		coded_receiver_came(&b->r, parity, packet, b->now_ns);
		if (parity && packet < PARITIES)
			b->parity[packet] = 1;
		else if (!parity && packet < b->packets)
			b->have[packet] = 1;
	}
}

static void send(struct both *b, uint32_t count)
{
	struct coded_send p;

	while (count-- && (coded_sender_next(&b->s, &p, b->now_ns) || coded_sender_fill(&b->s, &p, b->now_ns))) {
		must(b->s.end == SR_RUNNING);
		must(b->s.fills <= b->s.config.rtt_ns / b->s.config.piece_ns);
		if (p.parity)
			must(p.piece < b->s.plan.layout.groups * b->s.plan.layout.parity_max &&
			     (b->s.config.plan.layout.groups ||
			      p.piece < coded_parity_pieces(&b->s.config, b->packets)));
		else
			must(p.piece < b->packets);
	}
}

static void speak(struct both *b)
{
	uint8_t payload[64];
	enum control_type type;

	for (int i = 0; i < 8 && coded_receiver_tell(&b->r, payload, sizeof(payload), &type, b->now_ns); i++)
		;
	coded_sender_tell(&b->s, payload, &type, b->now_ns);
}

/* Of XOR a class lacks one at most. */
static void must_have_classes(const struct both *b, uint32_t g)
{
	const struct ec_layout *l = &b->r.plan.layout;

	for (uint32_t c = 0; c < l->parity_max; c++) {
		uint32_t lacks = 0;

		for (uint32_t i = c; i < ec_layout_size(l, g); i += l->parity_max)
			lacks += !b->have[ec_layout_data_of(l, g, i).at];
		must(lacks <= b->parity[ec_layout_parity_of(l, g, c).at]);
	}
}

/* Whole only if it is; packets that came afterwards do not count. */
static void must_be_whole(const struct both *b)
{
	const struct ec_layout *l = &b->r.plan.layout;
	uint16_t got[PACKETS_MAX + 1] = {0};

	if (!coded_receiver_whole(&b->r))
		return;
	for (uint32_t i = 0; i < b->packets; i++) {
		must(b->have[i] || (b->r.planned && i >= l->first));
		if (b->r.planned && i >= l->first)
			got[ec_layout_data(l, i).group] += b->have[i];
	}
	for (uint32_t i = 0; b->r.planned && i < l->groups * l->parity_max; i++)
		got[i % l->groups] += b->parity[i];
	for (uint32_t g = 0; b->r.planned && g < l->groups; g++) {
		must(got[g] >= ec_layout_size(l, g));
		if (b->r.plan.is_xor)
			must_have_classes(b, g);
	}
}

/* Mostly codes that can be. */
static void choose(struct coded_config *c, uint8_t how, uint32_t packets)
{
	struct coded_plan *p = &c->plan;

	p->layout = (struct ec_layout){.pieces = packets,
				       .first = how & 8 ? packets / 3 : 0,
				       .data = 4 + how % 29,
				       .parity = how % 5,
				       .parity_max = how % 5 + (how & 16 ? 0 : 6),
				       .depth = 1 + how % 4};
	must(ec_layout_settle(&p->layout));
	p->repeats = how & 2;
	p->is_xor = p->repeats && how & 4 && p->layout.parity == p->layout.parity_max && p->layout.parity;
	p->nack = p->repeats && how & 32;
	p->rtt_ns = c->rtt_ns;
	p->wait_ns = 2 * c->rtt_ns;
	c->fresh = !p->repeats;
	c->silent = how & 64;
	c->rto_ns = 3 * c->rtt_ns;
	c->tries_max = 6;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heap heap = HEAP_INIT;
	const struct alloc alloc = heap_alloc(&heap);
	struct coded_config config = {.rtt_ns = 100000, .piece_ns = 100, .timeout_ns = 50000000};
	struct loss_estimate e;
	struct both b = {0};

	if (size < 3)
		return 0;
	b.packets = 1 + (uint32_t)(data[0] | data[1] << 8) % PACKETS_MAX;
	config.fill = data[1] >> 7;
	if (data[2])
		choose(&config, data[2], b.packets);
	loss_estimate_init(&e);
	must(!coded_sender_init(&b.s, &config, b.packets, &e, 0, &alloc));
	must(!coded_receiver_init(&b.r, config.rtt_ns, b.packets, PARITIES, 0, &alloc));
	data += 3;
	size -= 3;
	for (int op = 0; op < OPS_MAX && size >= 6; op++, data += 6, size -= 6) {
		b.now_ns += data[1] * 256u;
		switch (data[0] % 8) {
		case 0: (data[0] & 8 ? hear_ack : hear_names)(&b, data + 2); break;
		case 1: hear_state(&b, data + 2); break;
		case 2: hear_plan(&b, data + 2); break;
		case 3:
		case 4: receive(&b, data + 2); break;
		case 5:
			coded_sender_expire(&b.s, b.now_ns);
			coded_receiver_expire(&b.r, b.now_ns);
			break;
		default: send(&b, data[2]);
		}
		speak(&b);
		must_be_whole(&b);
	}
	coded_sender_free(&b.s);
	coded_receiver_free(&b.r);
	must(!heap.blocks);
	return 0;
}
