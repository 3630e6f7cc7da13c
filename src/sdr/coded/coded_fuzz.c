/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both ends of tail coding are told anything at any time. Nothing may break, packets and parities stay within the
 * message, a sender sends nothing once it has ended and fills no more than a round trip, and a receiver is whole only
 * if it has, or can compute, every packet: a model with a flag for each packet counts again.
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
	coded_sender_named(&b->s, payload, b->now_ns);
}

static void hear_state(struct both *b, const uint8_t *arg)
{
	struct coded_state t = {(uint32_t)(arg[0] * 3), arg[1], arg[2], arg[3] > 250};
	uint8_t payload[CODED_STATE_LEN];

	coded_state_encode(payload, &t);
	coded_sender_state(&b->s, payload, b->now_ns);
	must(loss_estimate_high(&b->s.estimate) <= 0.5 && loss_estimate_burst(&b->s.estimate) >= 1);
}

static void hear_plan(struct both *b, const uint8_t *arg)
{
	struct coded_plan p = {
		.packets = arg[3] & 1 ? b->packets : arg[3],
		.tail = arg[0],
		.size = arg[1],
		.depth = arg[2] % 80,
		.parity = arg[3] % 16,
	};
	uint8_t payload[CODED_PLAN_LEN];

	coded_plan_encode(payload, &p, arg[3] & 2);
	coded_receiver_plan(&b->r, payload, b->now_ns);
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
		must(b->s.fills <= b->s.config.rtt_ns / b->s.config.packet_ns);
		if (p.parity)
			must(p.packet < b->s.plan.groups * b->s.plan.parity &&
			     p.packet < coded_parity_packets(&b->s.config, b->packets));
		else
			must(p.packet < b->packets);
	}
}

static void speak(struct both *b)
{
	uint8_t payload[64];
	enum control_type type;

	for (int i = 0; i < 8 && coded_receiver_tell(&b->r, payload, sizeof(payload), &type, b->now_ns); i++)
		;
	coded_sender_tell(&b->s, payload, b->now_ns);
}

/* Whole only if it is; packets that came afterwards do not count. */
static void must_be_whole(const struct both *b)
{
	const struct coded_plan *p = &b->r.plan;
	uint16_t got[PACKETS_MAX + 1] = {0};

	if (!coded_receiver_whole(&b->r))
		return;
	for (uint32_t i = 0; i < b->packets; i++) {
		must(b->have[i] || (b->r.planned && i >= p->tail));
		if (b->r.planned && i >= p->tail)
			got[coded_plan_group(p, i)] += b->have[i];
	}
	for (uint32_t i = 0; b->r.planned && i < p->groups * p->parity; i++)
		got[i % p->groups] += b->parity[i];
	for (uint32_t g = 0; b->r.planned && g < p->groups; g++)
		must(got[g] >= coded_plan_size(p, g));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heap heap = HEAP_INIT;
	const struct alloc alloc = heap_alloc(&heap);
	struct coded_config config = {.rtt_ns = 100000, .packet_ns = 100, .timeout_ns = 50000000};
	struct loss_estimate e;
	struct both b = {0};

	if (size < 2)
		return 0;
	b.packets = 1 + (uint32_t)(data[0] | data[1] << 8) % PACKETS_MAX;
	config.fill = data[1] >> 7;
	loss_estimate_init(&e);
	must(!coded_sender_init(&b.s, &config, b.packets, &e, 0, &alloc));
	must(!coded_receiver_init(&b.r, config.rtt_ns, b.packets, PARITIES, 0, &alloc));
	data += 2;
	size -= 2;
	for (int op = 0; op < OPS_MAX && size >= 6; op++, data += 6, size -= 6) {
		b.now_ns += data[1] * 256u;
		switch (data[0] % 8) {
		case 0: hear_names(&b, data + 2); break;
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
