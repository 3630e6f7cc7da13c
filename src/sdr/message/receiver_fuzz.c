/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first byte chooses a shape, then each six bytes are a receive posted, one completed, or a packet with any
 * immediate and length; a model with a byte for each packet does the same and must agree on every verdict and bit.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sdr/message/receiver.h"
#include "support/heap.h"

enum { SLOTS = 4, PACKETS_MAX = 1024, OPS_MAX = 600 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct model {
	bool open;
	uint64_t number, bytes;
	uint8_t packet[PACKETS_MAX];
};

static void must(int claim)
{
	if (!claim)
		abort();
}

static uint32_t packet_bytes(const struct shape *s, const struct model *m, uint64_t offset)
{
	uint64_t at = offset * s->mtu;

	if (at >= m->bytes)
		return 0;
	return (uint32_t)(m->bytes - at < s->mtu ? m->bytes - at : s->mtu);
}

static bool chunk_whole(const struct shape *s, const struct model *m, uint32_t chunk)
{
	uint32_t n = s->chunk_bytes / s->mtu;

	for (uint32_t p = chunk * n; p < (chunk + 1) * n && packet_bytes(s, m, p); p++) {
		if (!m->packet[p])
			return false;
	}
	return true;
}

static enum sdr_verdict model_note(const struct shape *s, struct model *slots, uint32_t generation, struct imm imm,
				   uint32_t bytes)
{
	struct model *m = &slots[imm.id % SLOTS];

	if (imm.id >= SLOTS)
		return SDR_DROP_ID;
	if (!m->open || m->number / SLOTS % s->generations != generation)
		return SDR_DROP_LATE;
	if (!bytes)
		return imm.offset < 32u / s->split.frag_bits ? SDR_IMM_ONLY : SDR_DROP_OFFSET;
	if (!packet_bytes(s, m, imm.offset))
		return SDR_DROP_OFFSET;
	if (packet_bytes(s, m, imm.offset) != bytes)
		return SDR_DROP_LEN;
	if (m->packet[imm.offset])
		return SDR_DUP;
	m->packet[imm.offset] = 1;
	return chunk_whole(s, m, imm.offset / (s->chunk_bytes / s->mtu)) ? SDR_CHUNK : SDR_TAKEN;
}

static void must_agree(const struct receiver *r, const struct model *m)
{
	const struct shape *s = &r->shape;
	const struct slot *slot = receiver_slot(r, m->number);
	uint32_t chunks = shape_chunks(s, m->bytes), n = s->chunk_bytes / s->mtu;

	must(!!slot == m->open);
	if (!slot)
		return;
	for (uint32_t c = 0; c < chunks; c++) {
		uint64_t mask = slot_chunk_mask(slot, s, c);

		for (uint32_t j = 0; j < n; j++)
			must((mask >> j & 1) == m->packet[c * n + j]);
		must((slot->chunk_bits[c / 64] >> c % 64 & 1) == chunk_whole(s, m, c));
	}
	must(chunks % 64 == 0 || !(slot->chunk_bits[chunks / 64] >> chunks % 64));
}

static void post(struct receiver *r, struct model *slots, uint64_t bytes)
{
	struct model *m = &slots[r->posted % SLOTS];
	uint64_t number, next = r->posted;
	int err = receiver_post(r, bytes, &number);

	must((err == 0) == (bytes && bytes <= r->shape.message_bytes && !m->open));
	if (err)
		return;
	must(number == next);
	*m = (struct model){.open = true, .number = number, .bytes = bytes};
}

static void complete(struct receiver *r, struct worker *w, struct model *m, uint64_t number)
{
	struct slot *slot = receiver_complete(r, number);

	must(!!slot == (m->open && m->number == number));
	if (!slot)
		return;
	worker_rest(w);
	must(!slot_busy(slot));
	slot_reset(slot);
	m->open = false;
}

static struct shape shape_of(uint8_t byte)
{
	struct shape s = {
		.split = {10, 18, 4},
		.mtu = 64,
		.chunk_bytes = 64u << byte % 7,
		.slots = SLOTS,
		.generations = 1 + byte / 8 % 5,
		.channels = 1,
		.message_bytes = PACKETS_MAX * 64,
	};

	if (byte & 128)
		s.split = (struct imm_split){12, 18, 2};
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct model slots[SLOTS];
	struct heap heap = HEAP_INIT;
	struct alloc alloc = heap_alloc(&heap);
	struct worker w = {0};
	struct receiver r;
	struct shape shape;

	if (!size)
		return 0;
	shape = shape_of(data[0]);
	must(shape_valid(&shape));
	must(!receiver_init(&r, &shape, &alloc));
	for (int i = 0; i < SLOTS; i++)
		slots[i] = (struct model){.number = UINT64_MAX};
	data++;
	size--;
	for (int op = 0; op < OPS_MAX && size >= 6; op++, data += 6, size -= 6) {
		uint32_t arg = data[1] | (uint32_t)data[2] << 8;
		uint32_t bytes = data[3] | (uint32_t)data[4] << 8;

		if (data[0] % 8 == 0) {
			post(&r, slots, (uint64_t)arg + bytes);
		} else if (data[0] % 8 == 1) {
			complete(&r, &w, &slots[arg % SLOTS], arg % 2 ? slots[arg % SLOTS].number : arg);
		} else {
			struct imm imm = {.id = data[0] / 8 % 5, .offset = arg % (PACKETS_MAX + 2)};
			uint32_t generation = data[5] % shape.generations;

			if (data[5] & 128)
				bytes = packet_bytes(&shape, &slots[imm.id % SLOTS], imm.offset);
			if (data[5] & 64)
				generation = (uint32_t)(slots[imm.id % SLOTS].number / SLOTS % shape.generations);
			must(worker_note(&w, &r, generation, imm_pack(shape.split, imm), bytes) ==
			     model_note(&shape, slots, generation, imm, bytes));
		}
	}
	worker_rest(&w);
	for (int i = 0; i < SLOTS; i++)
		must_agree(&r, &slots[i]);
	receiver_free(&r);
	must(!heap.blocks);
	return 0;
}
